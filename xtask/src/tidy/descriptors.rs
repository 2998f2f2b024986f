//! Who may open files in the SQLite store, and who may ask for their times.
//!
//! The system's locks on a file belong to the process, and closing any descriptor of the file lets go
//! of them. So SQLite alone opens the database; what opens other files is in a few modules that say
//! why they may. And a log whose times were asked for is slower to sync afterwards
//! (`docs/decisions/019-names-without-times.md`): that is done before the store is open, or not at all.

use syn::visit::{self, Visit};

use super::Finding;
use crate::files::File;
use crate::regions::{is_test_file, is_test_item};

const STORE: &str = "crates/duroxide-sqlite/src/";
/// The log, which has no locks; and the lock files of owners.
const MAY_OPEN: &[&str] = &["store_files.rs", "owners.rs"];
/// Functions of `std::fs` that open a file.
const OPENING: &[&str] = &["read", "read_to_string", "write", "copy"];
/// What looks at files before they are a store's, and where there is no other way.
const MAY_ASK_TIMES: &[&str] = &["inspect.rs", "file_identity.rs"];
/// Functions and methods that ask for all there is to know of a file.
const ASKING: &[&str] = &["metadata", "symlink_metadata"];

/// Checks one file.
pub(super) fn check(file: &File, syntax: &syn::File) -> Vec<Finding> {
    let Some(name) = file.path.strip_prefix(STORE) else { return Vec::new() };
    if is_test_file(&file.path) {
        return Vec::new();
    }
    let mut uses = Uses::default();
    uses.visit_file(syntax);
    let of = |lines: Vec<usize>, allowed: &[&str], message: &str| -> Vec<Finding> {
        let lines = lines.into_iter().filter(|_| !allowed.contains(&name));
        lines.map(|n| Finding::new(format!("{}:{n}", file.path), message)).collect()
    };
    let opened = "a file opened beside SQLite: closing it lets go of the locks of the process";
    let asked = "a file asked for its times: the next sync of it is slower; see `file_identity.rs`";
    let mut findings = of(uses.opened, MAY_OPEN, opened);
    findings.extend(of(uses.asked, MAY_ASK_TIMES, asked));
    findings
}

/// Lines in which files are used.
#[derive(Default)]
struct Uses {
    opened: Vec<usize>,
    asked: Vec<usize>,
}

impl<'ast> Visit<'ast> for Uses {
    fn visit_expr_method_call(&mut self, call: &'ast syn::ExprMethodCall) {
        if ASKING.contains(&call.method.to_string().as_str()) {
            self.asked.push(call.method.span().start().line);
        }
        visit::visit_expr_method_call(self, call);
    }

    fn visit_expr_path(&mut self, path: &'ast syn::ExprPath) {
        let parts: Vec<String> =
            path.path.segments.iter().map(|part| part.ident.to_string()).collect();
        let lines = match parts.iter().map(String::as_str).collect::<Vec<_>>()[..] {
            [.., "File", "open" | "create" | "create_new" | "options"] => Some(&mut self.opened),
            [.., "OpenOptions", _] => Some(&mut self.opened),
            [.., "fs", function] if OPENING.contains(&function) => Some(&mut self.opened),
            [.., "fs", function] if ASKING.contains(&function) => Some(&mut self.asked),
            _ => None,
        };
        if let (Some(first), Some(lines)) = (path.path.segments.first(), lines) {
            lines.push(first.ident.span().start().line);
        }
        visit::visit_expr_path(self, path);
    }

    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        if !is_test_item(&item.attrs) {
            visit::visit_item_mod(self, item);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_few_modules_open_files() {
        let text = "\
fn a() { File::open(x); }
fn b() { std::fs::OpenOptions::new().open(x); std::fs::read(x).map(std::fs::File::create); }
fn c() { Connection::open(x); row.read(x); }
fn d() { std::fs::metadata(x); file.metadata().len(); }
#[cfg(test)]
mod tests { fn e() { std::fs::copy(x, y); } }
";
        let syntax = syn::parse_file(text).unwrap();
        let lines = |path: &str| {
            let found = check(&File::new(path, text), &syntax);
            found.into_iter().map(|found| found.place).collect::<Vec<_>>()
        };
        let path = "crates/duroxide-sqlite/src/inspect.rs";
        assert_eq!(lines(path), [1, 2, 2, 2].map(|n| format!("{path}:{n}")));
        let path = "crates/duroxide-sqlite/src/owners.rs";
        assert_eq!(lines(path), [4, 4].map(|n| format!("{path}:{n}")), "the times");
        assert_eq!(lines("crates/duroxide-sqlite/tests/open.rs"), [""; 0]);
        assert_eq!(lines("crates/duroxide/src/lib.rs"), [""; 0]);
    }
}
