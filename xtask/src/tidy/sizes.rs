//! Files and functions short enough to read, and a first sentence in each file.

use proc_macro2::Span;
use syn::spanned::Spanned;
use syn::visit::{self, Visit};

use super::Finding;
use crate::files::File;
use crate::regions::is_test_file;

const FILE_LINES_MAX: usize = 400;
const TEST_FILE_LINES_MAX: usize = 600;
const FUNCTION_LINES_MAX: usize = 70;

/// Checks one file.
pub(super) fn check(file: &File, syntax: &syn::File) -> Vec<Finding> {
    let mut findings = Vec::new();
    if !file.text.starts_with("//! ") {
        findings.push(Finding::new(
            format!("{}:1", file.path),
            "begins without a `//!` sentence on what the file is",
        ));
    }
    let lines = file.text.lines().count();
    let lines_max = if is_test_file(&file.path) { TEST_FILE_LINES_MAX } else { FILE_LINES_MAX };
    if lines_max < lines {
        let message = format!("{lines} lines, at most {lines_max}: is it one idea?");
        findings.push(Finding::new(&file.path, message));
    }
    let mut functions = Functions { path: &file.path, findings };
    functions.visit_file(syntax);
    functions.findings
}

struct Functions<'a> {
    path: &'a str,
    findings: Vec<Finding>,
}

impl Functions<'_> {
    /// Counts from the signature to the closing brace, without attributes and comments above.
    fn measure(&mut self, signature: &syn::Signature, end: Span) {
        let lines = end.end().line - signature.span().start().line + 1;
        if FUNCTION_LINES_MAX < lines {
            self.findings.push(Finding::new(
                format!("{}::{}", self.path, signature.ident),
                format!("{lines} lines, at most {FUNCTION_LINES_MAX}"),
            ));
        }
    }
}

impl<'ast> Visit<'ast> for Functions<'_> {
    fn visit_item_fn(&mut self, function: &'ast syn::ItemFn) {
        self.measure(&function.sig, function.block.span());
        visit::visit_item_fn(self, function);
    }

    fn visit_impl_item_fn(&mut self, function: &'ast syn::ImplItemFn) {
        self.measure(&function.sig, function.block.span());
        visit::visit_impl_item_fn(self, function);
    }

    fn visit_trait_item_fn(&mut self, function: &'ast syn::TraitItemFn) {
        self.measure(&function.sig, function.span());
        visit::visit_trait_item_fn(self, function);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(path: &str, text: &str) -> Vec<String> {
        let syntax = syn::parse_file(text).unwrap();
        check(&File::new(path, text), &syntax).into_iter().map(|found| found.place).collect()
    }

    #[test]
    fn a_file_opens_with_a_sentence() {
        assert_eq!(places("a.rs", "//! What it is.\n"), [""; 0]);
        assert_eq!(places("a.rs", "fn f() {}\n"), ["a.rs:1"]);
        assert_eq!(places("a.rs", "//!\n//! Too late.\n"), ["a.rs:1"]);
    }

    #[test]
    fn files_have_a_limit_and_tests_a_higher_one() {
        let lines = |n: usize| format!("//! S.\n{}", "// x\n".repeat(n - 1));
        assert_eq!(places("src/a.rs", &lines(400)), [""; 0]);
        assert_eq!(places("src/a.rs", &lines(401)), ["src/a.rs"]);
        assert_eq!(places("tests/a.rs", &lines(600)), [""; 0]);
        assert_eq!(places("tests/a.rs", &lines(601)), ["tests/a.rs"]);
    }

    #[test]
    fn functions_have_a_limit_wherever_they_stand() {
        let body = |lines: usize| format!("{{\n{}}}\n", "    f();\n".repeat(lines - 2));
        let fits = body(70);
        let long = body(71);
        let text = format!(
            "//! S.\n#[inline]\n\n/// Docs.\nfn fits() {fits}fn long() {long}\
             impl A {{ fn method() {long} }}\ntrait T {{ fn default() {long} fn none(); }}\n\
             mod m {{ fn nested() {long} }}\n"
        );
        let expected = ["long", "method", "default", "nested"].map(|f| format!("tests/a.rs::{f}"));
        assert_eq!(places("tests/a.rs", &text), expected);
    }
}
