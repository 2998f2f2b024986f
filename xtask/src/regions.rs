//! Which lines of a file are tests.

use proc_macro2::{TokenStream, TokenTree};
use syn::spanned::Spanned;
use syn::visit::{self, Visit};

use crate::files::File;

/// Whether a whole file is test code, by its place. The validation suite counts: it is a test that
/// ships.
pub(crate) fn is_test_file(path: &str) -> bool {
    let (folders, name) = path.rsplit_once('/').unwrap_or(("", path));
    let stem = name.trim_end_matches(".rs");
    stem == "tests"
        || stem.ends_with("_tests")
        || path.split('/').any(|part| part.starts_with("provider_validation"))
        || folders.split('/').any(|folder| ["tests", "examples", "benches"].contains(&folder))
}

/// Whether an attribute list keeps an item out of ordinary builds. `any(test, …)` does not: some
/// feature lets it in.
pub(crate) fn is_test_item(attributes: &[syn::Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        let is_cfg = attribute.path().is_ident("cfg");
        let tokens = match &attribute.meta {
            syn::Meta::List(list) => list.tokens.clone(),
            _ => TokenStream::new(),
        };
        let only_tests = has_ident(&tokens, "test")
            && !["not", "any"].iter().any(|word| has_ident(&tokens, word));
        attribute.path().is_ident("test") || is_cfg && only_tests
    })
}

/// The lines of a Rust file that are tests: all of a test file, else test items and doc tests.
pub(crate) fn test_lines(file: &File) -> Result<Vec<&str>, String> {
    if is_test_file(&file.path) {
        return Ok(file.text.lines().collect());
    }
    let syntax = syn::parse_file(&file.text).map_err(|error| format!("{}: {error}", file.path))?;
    let mut regions = Regions(Vec::new());
    regions.visit_file(&syntax);
    let mut fenced = false;
    let mut lines = Vec::new();
    for (number, line) in (1..).zip(file.text.lines()) {
        let doc = line.trim_start();
        let doc = doc.strip_prefix("///").or_else(|| doc.strip_prefix("//!"));
        fenced &= doc.is_some();
        if doc.is_some_and(|text| text.trim_start().starts_with("```")) {
            fenced = !fenced;
        }
        if fenced || regions.0.iter().any(|(first, last)| (*first..=*last).contains(&number)) {
            lines.push(line);
        }
    }
    Ok(lines)
}

/// First and last lines of test items.
struct Regions(Vec<(usize, usize)>);

impl<'ast> Visit<'ast> for Regions {
    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        self.note(&item.attrs, item.span());
        visit::visit_item_mod(self, item);
    }

    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        self.note(&item.attrs, item.span());
    }
}

impl Regions {
    fn note(&mut self, attributes: &[syn::Attribute], span: proc_macro2::Span) {
        if is_test_item(attributes) {
            self.0.push((span.start().line, span.end().line));
        }
    }
}

fn has_ident(tokens: &TokenStream, name: &str) -> bool {
    tokens.clone().into_iter().any(|tree| match tree {
        TokenTree::Ident(ident) => ident == name,
        TokenTree::Group(group) => has_ident(&group.stream(), name),
        _ => false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_files_are_known_by_their_place() {
        for (path, expected) in [
            ("crates/a/tests/it/main.rs", true),
            ("crates/a/src/client/tests.rs", true),
            ("crates/a/src/client/tests/wait.rs", true),
            ("crates/a/examples/hello.rs", true),
            ("crates/a/src/provider_validation/atomicity.rs", true),
            ("crates/a/src/provider_validations.rs", true),
            ("crates/a/src/client/wait.rs", false),
            ("crates/a/src/runtime/test_hooks.rs", false),
        ] {
            assert_eq!(is_test_file(path), expected, "{path}");
        }
    }

    #[test]
    fn lines_of_test_items_and_doc_tests_are_found() {
        let text = "\
//! No test.
/// An example:
/// ```
/// doc_test();
/// ```
fn code() {}
#[cfg(not(test))]
mod real {}
#[cfg(feature = \"test\")]
mod gated {}
#[cfg(any(test, feature = \"x\"))]
mod shipped {}
#[cfg(all(test, unix))]
mod tests {
    // inside
}
#[test]
fn lone() {}
";
        let file = File::new("src/a.rs", text);
        let expected = [
            "/// ```",
            "/// doc_test();",
            "#[cfg(all(test, unix))]",
            "mod tests {",
            "    // inside",
            "}",
            "#[test]",
            "fn lone() {}",
        ];
        assert_eq!(test_lines(&file).unwrap(), expected);
        assert_eq!(test_lines(&File::new("tests/a.rs", text)).unwrap().len(), 18);
        assert!(test_lines(&File::new("src/a.rs", "fn (")).is_err());
    }
}
