//! What a document for authors of stores names.

use std::collections::BTreeSet;

/// A document, read.
pub(super) struct Document {
    pub(super) path: String,
    pub(super) text: String,
    /// Checks by category and name; the name `*` is the whole category.
    pub(super) checks: BTreeSet<(String, String)>,
    /// Tests of ours.
    pub(super) tests: BTreeSet<String>,
    anchors: BTreeSet<String>,
}

impl Document {
    /// Reads a document; what stands in fenced blocks is an example.
    pub(super) fn parse(path: &str, text: &str) -> Self {
        let mut checks = BTreeSet::new();
        let mut tests = BTreeSet::new();
        let mut anchors = BTreeSet::new();
        let mut fenced = false;
        for line in text.lines() {
            if line.starts_with("```") {
                fenced = !fenced;
            } else if !fenced {
                anchors.extend(heading(line).map(anchor));
                checks.extend(code_spans(line).filter_map(check));
                tests.extend(code_spans(line).filter(|span| is_test(span)).map(str::to_owned));
            }
        }
        Self { path: path.to_owned(), text: text.to_owned(), checks, tests, anchors }
    }

    /// Whether a check is named, alone or with its category.
    pub(super) fn names_check(&self, category: &str, name: &str) -> bool {
        let names = |name: &str| self.checks.contains(&(category.to_owned(), name.to_owned()));
        names(name) || names("*")
    }

    /// Whether there is a heading for this anchor.
    pub(super) fn has_anchor(&self, anchor: &str) -> bool {
        self.anchors.contains(anchor)
    }

    /// Links to sections of this document that it does not have.
    pub(super) fn broken_links(&self) -> Vec<String> {
        let links = self.text.split("](#").skip(1).filter_map(|rest| rest.split_once(')'));
        let broken = links.filter(|(target, _)| !self.has_anchor(target));
        broken.map(|(target, _)| format!("{}: no section #{target}", self.path)).collect()
    }
}

fn heading(line: &str) -> Option<&str> {
    let text = line.trim_start_matches('#');
    (text.len() < line.len()).then(|| text.strip_prefix(' ')).flatten()
}

/// The anchor of a heading, as GitHub makes it.
fn anchor(heading: &str) -> String {
    let kept = heading.trim().chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
    kept.flat_map(char::to_lowercase).map(|c| if c == ' ' { '-' } else { c }).collect()
}

/// The texts between single backticks of a line.
fn code_spans(line: &str) -> impl Iterator<Item = &str> {
    line.split('`').skip(1).step_by(2)
}

/// The check that a code span names.
fn check(span: &str) -> Option<(String, String)> {
    let (category, name) = span.split_once("::")?;
    let is_check = is_snake(category) && (is_snake(name) || name == "*");
    is_check.then(|| (category.to_owned(), name.to_owned()))
}

/// Whether a code span names a test of ours: `r8_41_…`, `l7_…`.
fn is_test(span: &str) -> bool {
    let number = span.strip_prefix(['r', 'l']).and_then(|rest| rest.split_once('_'));
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    is_snake(span) && number.is_some_and(|(digits, _)| is_number(digits))
}

fn is_snake(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_lowercase())
        && text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stand_in_code_spans() {
        let text = "\
# Title
`a::b`, `a::*`, `Type::method`, `a::b::c`, a::d, `a_b`
```rust
let x = `e::f`;
```
`r8_41_holds`, `l7_too`, `r8_41`, `retry_after`, `r_1`, `l_2`";
        let document = Document::parse("d.md", text);
        let checks: Vec<String> =
            document.checks.iter().map(|(category, name)| format!("{category}::{name}")).collect();
        assert_eq!(checks, ["a::*", "a::b"]);
        assert_eq!(document.tests.iter().collect::<Vec<_>>(), ["l7_too", "r8_41", "r8_41_holds"]);
        assert!(document.names_check("a", "anything") && !document.names_check("b", "b"));
    }

    #[test]
    fn anchors_are_those_of_the_headings() {
        let document = Document::parse("d.md", "# One\n## Giving a turn back\n#no\n### Key-value");
        for anchor in ["one", "giving-a-turn-back", "key-value"] {
            assert!(document.has_anchor(anchor), "{anchor}");
        }
        assert!(!document.has_anchor("no"));
        assert_eq!(anchor("What is it, exactly? (A `b_c`)"), "what-is-it-exactly-a-b_c");
    }

    #[test]
    fn links_inside_lead_somewhere() {
        let text = "# One\n[a](#one) [b](other.md#two) [c\nd](#three), (#four)";
        assert_eq!(Document::parse("d.md", text).broken_links(), ["d.md: no section #three"]);
    }
}
