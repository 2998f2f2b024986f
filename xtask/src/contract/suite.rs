//! What the validation suite has: its list of checks, and the sections their failures lead to.

use std::collections::BTreeSet;

use proc_macro2::{Delimiter, Group, TokenStream, TokenTree};
use syn::visit::{self, Visit};

use crate::files::File;

/// Checks by category and name.
pub(super) type Checks = BTreeSet<(String, String)>;

/// The macro that lists all checks: `category { G check, D check, … } …`.
const LIST_MACRO: &str = "__provider_validations";
/// What a check takes.
const KINDS: &[&str] = &["G", "D", "P", "T", "S", "W", "O"];

/// The checks that list.rs lists.
pub(super) fn checks(list: &str) -> Result<Checks, String> {
    let file = syn::parse_file(list).map_err(|error| format!("the list of checks: {error}"))?;
    let body = file.items.into_iter().find_map(|item| match item {
        syn::Item::Macro(item) if item.ident.as_ref().is_some_and(|name| name == LIST_MACRO) => {
            Some(item.mac.tokens)
        }
        _ => None,
    });
    let mut checks = Checks::new();
    collect(body.unwrap_or_default(), &mut checks);
    if checks.is_empty() {
        return Err(format!("the list of checks: nothing listed in {LIST_MACRO}"));
    }
    Ok(checks)
}

/// The sections that checks name, with the file that does: in constants called `…SECTION` and in
/// fields `section`, whose values are texts or names of constants and bindings that hold one.
pub(super) fn sections(files: &[&File]) -> Result<BTreeSet<(String, String)>, String> {
    let mut texts = Texts::new();
    let mut read = Vec::new();
    for file in files {
        let failed = |error| format!("{}: {error}", file.path);
        let mut sections = Sections::default();
        sections.visit_file(&syn::parse_file(&file.text).map_err(failed)?);
        texts.append(&mut sections.constants);
        read.push((file, sections));
    }
    let mut found = BTreeSet::new();
    for (file, sections) in read {
        let constants = texts.iter().chain(&sections.bindings);
        let used = constants.filter(|(name, _)| sections.names.contains(name));
        let used = used.map(|(_, text)| text.clone()).chain(sections.texts);
        found.extend(used.map(|section| (file.path.clone(), section)));
    }
    Ok(found)
}

/// The names of all functions.
pub(super) fn functions(sources: &[File]) -> BTreeSet<String> {
    let lines = sources.iter().flat_map(|file| file.text.lines());
    let after = lines.filter_map(|line| line.trim_start().split_once("fn "));
    let names = after.map(|(_, rest)| {
        rest.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect::<String>()
    });
    names.filter(|name| !name.is_empty()).collect()
}

/// Finds `category { … }` at any depth.
fn collect(tokens: TokenStream, checks: &mut Checks) {
    let mut before = None;
    for tree in tokens {
        if let TokenTree::Group(group) = &tree {
            match (before, listed(group)) {
                (Some(TokenTree::Ident(category)), Some(names)) => {
                    checks.extend(names.into_iter().map(|name| (category.to_string(), name)));
                }
                _ => collect(group.stream(), checks),
            }
        }
        before = Some(tree);
    }
}

/// The names in `{ G check, D check, }`, if it is such a block.
fn listed(group: &Group) -> Option<Vec<String>> {
    if group.delimiter() != Delimiter::Brace {
        return None;
    }
    let mut names = Vec::new();
    let mut trees = group.stream().into_iter();
    while let Some(kind) = trees.next() {
        let (TokenTree::Ident(kind), Some(TokenTree::Ident(name))) = (kind, trees.next()) else {
            return None;
        };
        if !KINDS.contains(&kind.to_string().as_str()) {
            return None;
        }
        names.push(name.to_string());
        match trees.next() {
            None => break,
            Some(TokenTree::Punct(comma)) if comma.as_char() == ',' => {}
            Some(_) => return None,
        }
    }
    Some(names)
}

/// Texts that have a name.
type Texts = Vec<(String, String)>;

/// What a file says about sections.
#[derive(Default)]
struct Sections {
    /// Sections.
    texts: Vec<String>,
    /// Names of constants and bindings that hold sections.
    names: BTreeSet<String>,
    constants: Texts,
    bindings: Texts,
}

impl<'ast> Visit<'ast> for Sections {
    fn visit_item_const(&mut self, item: &'ast syn::ItemConst) {
        let name = item.ident.to_string();
        if let Some(text) = text(&item.expr) {
            if name.ends_with("SECTION") {
                self.texts.push(text.clone());
            }
            self.constants.push((name, text));
        }
        visit::visit_item_const(self, item);
    }

    fn visit_local(&mut self, local: &'ast syn::Local) {
        let value = local.init.as_ref().and_then(|init| text(&init.expr));
        if let (syn::Pat::Ident(name), Some(text)) = (&local.pat, value) {
            self.bindings.push((name.ident.to_string(), text));
        }
        visit::visit_local(self, local);
    }

    fn visit_field_value(&mut self, field: &'ast syn::FieldValue) {
        if matches!(&field.member, syn::Member::Named(name) if name == "section") {
            self.texts.extend(text(&field.expr));
            if let syn::Expr::Path(path) = &field.expr {
                self.names.extend(path.path.segments.last().map(|last| last.ident.to_string()));
            }
        }
        visit::visit_field_value(self, field);
    }
}

fn text(value: &syn::Expr) -> Option<String> {
    match value {
        syn::Expr::Lit(syn::ExprLit { lit: syn::Lit::Str(text), .. }) => Some(text.value()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checks_are_read_from_the_macro() {
        let list = "
            macro_rules! __provider_validations {
                ($then:ident $($args:tt)*) => {
                    $crate::$then! { ($($args)*)
                        first { G test_a, D test_b, }
                        second { T c }
                    }
                };
            }
            macro_rules! other {
                (($f:expr) $($category:ident { $($kind:ident $check:ident,)* })*) => {
                    third { G no, }
                };
            }";
        let checks: Vec<String> = checks(list)
            .unwrap()
            .iter()
            .map(|(category, name)| format!("{category} {name}"))
            .collect();
        assert_eq!(checks, ["first test_a", "first test_b", "second c"]);
    }

    #[test]
    fn a_list_without_checks_is_an_error() {
        for list in ["", "macro_rules! __provider_validations { () => { a { X b, } } }", "fn ("] {
            assert!(checks(list).is_err(), "{list}");
        }
    }

    #[test]
    fn sections_are_found_however_they_are_named() {
        let first = File::new(
            "a.rs",
            "const SECTION: &str = \"one\";
            pub const SHARED: &str = \"shared\";
            const OTHER: &str = \"no\";
            fn check() {
                const LATE_SECTION: &str = \"two\";
                promise(Promise { rule: \"R1.1\", section: \"three\" });
                promise(Promise { rule: OTHER, section: SECTION });
            }",
        );
        let second = File::new(
            "b.rs",
            "fn check() {
                let (says, section) = (\"no\", \"not seen\");
                let section = \"four\";
                let rule = \"no\";
                promise(Promise { rule, section });
                promise(Promise { rule, section: super::SHARED });
            }",
        );
        let found: Vec<String> = sections(&[&first, &second])
            .unwrap()
            .into_iter()
            .map(|(path, section)| format!("{path} {section}"))
            .collect();
        assert_eq!(found, ["a.rs one", "a.rs three", "a.rs two", "b.rs four", "b.rs shared"]);
        assert!(sections(&[&File::new("c.rs", "fn (")]).is_err());
    }

    #[test]
    fn functions_are_known_by_name() {
        let file = File::new("s.rs", "pub async fn one<F>() {}\n    fn two() {}\n// often three\n");
        assert_eq!(functions(&[file]).iter().collect::<Vec<_>>(), ["one", "two"]);
    }
}
