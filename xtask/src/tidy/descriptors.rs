//! Who may open files in the SQLite store.
//!
//! The system's locks on a file belong to the process, and closing any descriptor of the file lets go
//! of them. So SQLite alone opens the database; what opens other files is in a few modules that say
//! why they may.

use syn::visit::{self, Visit};

use super::Finding;
use crate::files::File;
use crate::regions::{is_test_file, is_test_item};

const STORE: &str = "crates/duroxide-sqlite/src/";
/// The log, which has no locks; and the lock files of owners.
const MAY_OPEN: &[&str] = &["store_files.rs", "owners.rs"];
/// Functions of `std::fs` that open a file.
const OPENING: &[&str] = &["read", "read_to_string", "write", "copy"];

/// Checks one file.
pub(super) fn check(file: &File, syntax: &syn::File) -> Vec<Finding> {
    let Some(name) = file.path.strip_prefix(STORE) else { return Vec::new() };
    if MAY_OPEN.contains(&name) || is_test_file(&file.path) {
        return Vec::new();
    }
    let mut opens = Opens::default();
    opens.visit_file(syntax);
    let message = "a file opened beside SQLite: closing it lets go of the locks of the process";
    opens.lines.into_iter().map(|n| Finding::new(format!("{}:{n}", file.path), message)).collect()
}

#[derive(Default)]
struct Opens {
    lines: Vec<usize>,
}

impl<'ast> Visit<'ast> for Opens {
    fn visit_expr_path(&mut self, path: &'ast syn::ExprPath) {
        let parts: Vec<String> =
            path.path.segments.iter().map(|part| part.ident.to_string()).collect();
        let opens = match parts.iter().map(String::as_str).collect::<Vec<_>>()[..] {
            [.., "File", "open" | "create" | "create_new" | "options"] => true,
            [.., "OpenOptions", _] => true,
            [.., "fs", function] => OPENING.contains(&function),
            _ => false,
        };
        if let (Some(first), true) = (path.path.segments.first(), opens) {
            self.lines.push(first.ident.span().start().line);
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
fn c() { std::fs::metadata(x); Connection::open(x); row.read(x); }
#[cfg(test)]
mod tests { fn d() { std::fs::copy(x, y); } }
";
        let syntax = syn::parse_file(text).unwrap();
        let lines = |path: &str| {
            let found = check(&File::new(path, text), &syntax);
            found.into_iter().map(|found| found.place).collect::<Vec<_>>()
        };
        let path = "crates/duroxide-sqlite/src/inspect.rs";
        assert_eq!(lines(path), [1, 2, 2, 2].map(|n| format!("{path}:{n}")));
        assert_eq!(lines("crates/duroxide-sqlite/src/owners.rs"), [""; 0]);
        assert_eq!(lines("crates/duroxide-sqlite/tests/open.rs"), [""; 0]);
        assert_eq!(lines("crates/duroxide/src/lib.rs"), [""; 0]);
    }
}
