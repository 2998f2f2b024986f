//! `xtask paths`: which items of the reference API our sources do not offer yet.
//!
//! docs/public-api.txt holds one item a line, kind and path, each at the path where it is defined
//! plus every path it is re-exported under. The sources are parsed, not compiled, so this sees names
//! and kinds of items, members of types, and re-exports, and nothing else: no signatures, no derived
//! or implemented traits, no conditions of features, nothing that a macro makes. The programs in
//! `crates/duroxide/tests` are the check of those.
//!
//! The other way round it finds what would break callers: variants and fields added to types they
//! build or match, and trait methods they would have to implement.

mod list;
mod index;
mod parse;
mod resolve;
#[cfg(test)]
mod tests;

use crate::Outcome;
use crate::files;
use index::Index;
use list::{Expected, Item};

const LIST: &str = "docs/public-api.txt";
const EXPECTED: &str = "docs/public-api-missing.txt";
/// Our crates, by the names they have in paths.
const CRATES: &[(&str, &str)] = &[
    ("duroxide_core", "crates/duroxide-core/src"),
    ("duroxide_sqlite", "crates/duroxide-sqlite/src"),
    ("duroxide", "crates/duroxide/src"),
];

/// Lists missing items; strictly, only those not expected to be missing, and fails on them.
pub(crate) fn run(strict: bool) -> Outcome {
    let items = list::parse(&files::read(LIST)?)?;
    let mut expected = Expected::parse(&files::read(EXPECTED)?);
    let mut index = Index::default();
    for (name, folder) in CRATES {
        parse::add_crate(&mut index, name, &files::root().join(folder))?;
    }
    index.assign_methods();

    let missing: Vec<&Item> = items.iter().filter(|item| !index.offers(item)).collect();
    let unexpected: Vec<&&Item> =
        missing.iter().filter(|item| !expected.contains(&item.path)).collect();
    if strict {
        unexpected.iter().for_each(|item| println!("missing: {} {}", item.kind, item.path));
    } else {
        missing.iter().for_each(|item| println!("missing: {} {}", item.kind, item.path));
    }
    let added = index.additions(&items);
    added.iter().for_each(|path| println!("breaks callers: {path}"));
    let stale = expected.unused();
    stale.iter().for_each(|line| println!("{EXPECTED}: nothing like this is missing: {line}"));
    println!(
        "paths: {} listed, {} missing, {} of them unexpectedly",
        items.len(),
        missing.len(),
        unexpected.len()
    );
    if strict && !(unexpected.is_empty() && added.is_empty() && stale.is_empty()) {
        return Err("paths: see above".to_owned());
    }
    Ok(())
}
