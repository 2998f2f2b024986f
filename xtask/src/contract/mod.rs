//! `xtask contract`: the documents for authors of stores and the validation suite agree.
//!
//! In docs/provider-contract.md, docs/provider-checklist.md and docs/guide/writing-a-provider.md a
//! code span `category::function` names a check, `category::*` a whole category, and `r8_41_…` or
//! `l7_…` a test of ours. Checked are both directions (what is named exists, and every check is
//! named), the sections that failure messages lead to, links inside a document, and the rules it
//! cites.

mod documents;
mod suite;

use std::collections::BTreeSet;

use crate::files::{self, File};
use crate::{Outcome, rules};
use documents::Document;
use suite::Checks;

const CONTRACT: &str = "docs/provider-contract.md";
const CHECKLIST: &str = "docs/provider-checklist.md";
const GUIDE: &str = "docs/guide/writing-a-provider.md";
const SUITE: &str = "crates/duroxide/src/provider_validation/";
const LIST: &str = "crates/duroxide/src/provider_validation/list.rs";

/// Fails on what is wrong. That the documents are ahead of the code counts only strictly: they are
/// written while the checks are.
pub(crate) fn run(strict: bool) -> Outcome {
    let documents =
        [CONTRACT, CHECKLIST, GUIDE].map(|path| Ok(Document::parse(path, &files::read(path)?)));
    let documents = documents.into_iter().collect::<Result<Vec<Document>, String>>()?;
    let checks = suite::checks(&files::read(LIST)?)?;
    let sources: Vec<File> = files::all()?.into_iter().filter(File::is_rust).collect();

    let mut wrong = unnamed(&checks, &documents);
    let checking = sources.iter().filter(|file| file.path.starts_with(SUITE));
    wrong.extend(lost_sections(&checking.collect::<Vec<&File>>(), &documents)?);
    for document in &documents {
        wrong.extend(document.broken_links());
        let unknown = rules::unknown_in(&document.text)?;
        wrong.extend(unknown.iter().map(|rule| format!("{}: there is no {rule}", document.path)));
    }
    let ahead = missing(&checks, &suite::functions(&sources), &documents);

    wrong.iter().for_each(|line| println!("{line}"));
    if strict {
        ahead.iter().for_each(|line| println!("{line}"));
    }
    println!(
        "contract: {} checks, {} things wrong, {} named that do not exist",
        checks.len(),
        wrong.len(),
        ahead.len()
    );
    if wrong.is_empty() && (ahead.is_empty() || !strict) {
        Ok(())
    } else {
        Err("contract: the documents and the suite disagree".to_owned())
    }
}

/// Checks that no document names.
fn unnamed(checks: &Checks, documents: &[Document]) -> Vec<String> {
    let is_named = |category: &str, name: &str| {
        documents.iter().any(|document| document.names_check(category, name))
    };
    let lost = checks.iter().filter(|(category, name)| !is_named(category, name));
    lost.map(|(category, name)| format!("{LIST}: {category}::{name} is in no document")).collect()
}

/// What documents name and the code does not have.
fn missing(checks: &Checks, functions: &BTreeSet<String>, documents: &[Document]) -> Vec<String> {
    let mut missing = Vec::new();
    for document in documents {
        for (category, name) in &document.checks {
            let exists = match name.as_str() {
                "*" => checks.iter().any(|(known, _)| known == category),
                _ => checks.contains(&(category.clone(), name.clone())),
            };
            if !exists {
                missing.push(format!("{}: no check {category}::{name}", document.path));
            }
        }
        let tests = document.tests.iter().filter(|test| !functions.contains(*test));
        missing.extend(tests.map(|test| format!("{}: no test {test}", document.path)));
    }
    missing
}

/// Sections that checks lead to and the contract does not have.
fn lost_sections(files: &[&File], documents: &[Document]) -> Result<Vec<String>, String> {
    let exists = |anchor: &str| {
        documents.iter().any(|document| document.path == CONTRACT && document.has_anchor(anchor))
    };
    let sections = suite::sections(files)?;
    let lost = sections.iter().filter(|(_, anchor)| !exists(anchor));
    Ok(lost.map(|(path, anchor)| format!("{path}: {CONTRACT} has no section {anchor}")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair(category: &str, name: &str) -> (String, String) {
        (category.to_owned(), name.to_owned())
    }

    #[test]
    fn every_check_is_named_alone_or_with_its_category() {
        let checks = Checks::from([pair("a", "one"), pair("a", "two"), pair("b", "three")]);
        let named = |text| [Document::parse("d.md", text)];
        assert_eq!(unnamed(&checks, &named("`a::*` and `b::three`")), [""; 0]);
        assert_eq!(unnamed(&checks, &named("`a::one`, `b::*`")).len(), 1);
        assert_eq!(unnamed(&checks, &named("a::one, `b::four`")).len(), 3);
    }

    #[test]
    fn what_is_named_exists() {
        let checks = Checks::from([pair("a", "one")]);
        let functions = BTreeSet::from(["r1_1_works".to_owned()]);
        let text = "`a::one` `a::*` `a::two` `b::*` `r1_1_works` `l2_missing`";
        let expected = ["d.md: no check a::two", "d.md: no check b::*", "d.md: no test l2_missing"];
        assert_eq!(missing(&checks, &functions, &[Document::parse("d.md", text)]), expected);
    }

    #[test]
    fn sections_are_those_of_the_contract() {
        let file = File::new("s.rs", "const SECTION: &str = \"committing-a-turn\";");
        let contract = |text| [Document::parse(CONTRACT, text)];
        assert_eq!(lost_sections(&[&file], &contract("## Committing a turn")).unwrap(), [""; 0]);
        assert_eq!(lost_sections(&[&file], &contract("## Committing")).unwrap().len(), 1);
        let other = [Document::parse(CHECKLIST, "## Committing a turn")];
        assert_eq!(lost_sections(&[&file], &other).unwrap().len(), 1);
    }
}
