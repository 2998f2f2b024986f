//! Statements are fixed texts: no value is ever pasted into SQL, and SQL stands in few places.
//!
//! A text is SQL if it begins like a statement. It may stand alone or in `concat!`, which takes only
//! literals; it may not be formatted or added to. Test code may do as it likes.

use proc_macro2::{Span, TokenStream, TokenTree};
use syn::spanned::Spanned;
use syn::visit::{self, Visit};

use super::Finding;
use crate::files::File;
use crate::regions::{is_test_file, is_test_item};

/// Where the rule holds.
const FOLDER: &str = "crates/duroxide-sqlite/src/";
/// Where SQL may stand, as paths inside that folder.
const PLACES: &[&str] = &[
    "tables/",
    "queries/metrics.rs",
    "schema.rs",
    "inspect.rs",
    "store.rs",
    "writer/batch.rs",
    "writer/recover.rs",
    "writer/watch.rs",
];
/// How statements begin.
const BEGINNINGS: &[&str] = &[
    "SELECT ",
    "INSERT ",
    "UPDATE ",
    "DELETE FROM",
    "CREATE ",
    "DROP ",
    "ALTER ",
    "PRAGMA ",
    "BEGIN",
    "COMMIT",
    "ROLLBACK",
    "ATTACH ",
    "VACUUM",
    "WITH ",
    "EXPLAIN ",
    "SAVEPOINT ",
];
/// Macros that put values into texts.
const FORMATTERS: &[&str] = &["format", "format_args", "write", "writeln"];

/// Checks one file.
pub(super) fn check(file: &File, syntax: &syn::File) -> Vec<Finding> {
    let Some(inside) = file.path.strip_prefix(FOLDER) else { return Vec::new() };
    if is_test_file(&file.path) {
        return Vec::new();
    }
    let is_place = PLACES.iter().any(|place| inside.starts_with(place));
    let mut statements = Statements { path: &file.path, is_place, findings: Vec::new() };
    statements.visit_file(syntax);
    statements.findings
}

struct Statements<'a> {
    path: &'a str,
    is_place: bool,
    findings: Vec<Finding>,
}

impl Statements<'_> {
    fn found(&mut self, at: Span, message: &str) {
        let place = format!("{}:{}", self.path, at.start().line);
        self.findings.push(Finding::new(place, message));
    }

    /// Looks at the literals of a macro call.
    fn note_tokens(&mut self, tokens: TokenStream, is_formatted: bool) {
        for token in tokens {
            match token {
                TokenTree::Group(group) => self.note_tokens(group.stream(), is_formatted),
                TokenTree::Literal(literal) => {
                    let text = literal.to_string();
                    if !is_sql(text.trim_start_matches(['r', '#', '"'])) {
                        continue;
                    }
                    if is_formatted {
                        self.found(literal.span(), "SQL is formatted: bind a parameter instead");
                    } else {
                        self.note_place(literal.span());
                    }
                }
                _ => {}
            }
        }
    }

    fn note_place(&mut self, at: Span) {
        if !self.is_place {
            self.found(at, "SQL outside of tables/");
        }
    }
}

impl<'ast> Visit<'ast> for Statements<'_> {
    fn visit_lit_str(&mut self, literal: &'ast syn::LitStr) {
        if is_sql(&literal.value()) {
            self.note_place(literal.span());
        }
    }

    fn visit_macro(&mut self, call: &'ast syn::Macro) {
        let name = call.path.segments.last().map(|last| last.ident.to_string());
        let is_formatter = name.is_some_and(|name| FORMATTERS.contains(&name.as_str()));
        self.note_tokens(call.tokens.clone(), is_formatter);
    }

    fn visit_expr_binary(&mut self, sum: &'ast syn::ExprBinary) {
        let is_sum = matches!(sum.op, syn::BinOp::Add(_) | syn::BinOp::AddAssign(_));
        if is_sum && (holds_sql(&sum.left) || holds_sql(&sum.right)) {
            self.found(sum.span(), "SQL is added to: bind a parameter instead");
        }
        visit::visit_expr_binary(self, sum);
    }

    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        if !is_test_item(&item.attrs) {
            visit::visit_item_mod(self, item);
        }
    }

    fn visit_attribute(&mut self, _attribute: &'ast syn::Attribute) {}
}

/// Whether an operand is SQL: a text, or what is made of one by calling its methods.
fn holds_sql(operand: &syn::Expr) -> bool {
    match operand {
        syn::Expr::Lit(literal) => match &literal.lit {
            syn::Lit::Str(text) => is_sql(&text.value()),
            _ => false,
        },
        syn::Expr::MethodCall(call) => holds_sql(&call.receiver),
        syn::Expr::Reference(reference) => holds_sql(&reference.expr),
        syn::Expr::Paren(inner) => holds_sql(&inner.expr),
        syn::Expr::Binary(sum) => holds_sql(&sum.left),
        _ => false,
    }
}

fn is_sql(text: &str) -> bool {
    BEGINNINGS.iter().any(|beginning| text.starts_with(beginning))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn messages(path: &str, text: &str) -> Vec<String> {
        let file = File::new(path, text);
        let found = check(&file, &syn::parse_file(text).unwrap());
        found.into_iter().map(|found| found.message).collect()
    }

    const TABLE: &str = "crates/duroxide-sqlite/src/tables/work.rs";

    #[test]
    fn fixed_texts_are_fine_where_they_belong() {
        let text = "const A: &str = concat!(\"SELECT \", \"1\");
             fn f(c: &C) { c.prepare(\"DELETE FROM work WHERE seq = ?1\") }";
        assert_eq!(messages(TABLE, text), [""; 0]);
        assert_eq!(messages(TABLE, "fn f() { n += run(\"DELETE FROM a\") }"), [""; 0]);
        let elsewhere = messages("crates/duroxide-sqlite/src/ops/prune.rs", text);
        assert_eq!(elsewhere, ["SQL outside of tables/"; 2]);
        assert_eq!(messages("crates/duroxide/src/client/mod.rs", text), [""; 0]);
    }

    #[test]
    fn values_are_not_pasted() {
        for text in [
            "fn f(x: u8) { g(format!(\"SELECT {x}\")) }",
            "fn f(x: u8) { g(&format!(\"DELETE FROM {x}\")) }",
            "fn f(w: W) { write!(w, \"UPDATE a SET b = {}\", 1) }",
            "fn f(x: &str) { g(\"SELECT \".to_owned() + x) }",
            "fn f(x: &str) { let mut s = String::new(); s += \"SELECT \"; }",
        ] {
            let found = messages(TABLE, text);
            assert!(
                found.iter().any(|found| found.contains("bind a parameter")),
                "{text}: {found:?}"
            );
        }
        assert_eq!(messages(TABLE, "fn f(x: u8) { g(format!(\"no {x} SELECT \")) }"), [""; 0]);
    }

    #[test]
    fn tests_may_do_as_they_like() {
        let text = "#[cfg(test)] mod tests { fn f(x: u8) { g(format!(\"SELECT {x}\")) } }";
        assert_eq!(messages(TABLE, text), [""; 0]);
    }
}
