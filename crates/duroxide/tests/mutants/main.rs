//! The validation suite can fail: every mutant of the memory provider is caught by a named check.
#![cfg(feature = "provider-test")]
#![allow(
    missing_docs,
    unreachable_pub,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "test code"
)]

mod admin;
mod commits;
mod differential;
mod list;
mod lives;
mod provider;
mod reads;
mod run;
mod table;
mod turns;
mod work;
mod wrapper;

use std::collections::BTreeSet;
use std::fs;

use list::{ALL, Listed};
use run::{Check, Verdict, all_checks, in_parallel, run_check};

/// Checks mostly wait, so more of them than cores run at a time.
const THREADS: usize = 20;

#[test]
fn every_mutant_is_caught() {
    let checks = all_checks();
    let verdicts = in_parallel(THREADS, ALL.iter().collect(), |listed: &Listed| {
        run_check(Some(listed.mutant), named(&checks, listed.caught_by))
    });
    let survivors: Vec<String> = ALL
        .iter()
        .zip(verdicts)
        .filter(|(_, verdict)| *verdict != Verdict::Caught)
        .map(|(listed, verdict)| format!("{} ({}): {verdict:?}", listed.name, listed.caught_by))
        .collect();
    assert!(survivors.is_empty(), "not caught:\n{}", survivors.join("\n"));
}

#[test]
fn the_wrapper_itself_is_right() {
    let checks = all_checks();
    let used: BTreeSet<&str> = ALL.iter().map(|listed| listed.caught_by).collect();
    let verdicts = in_parallel(THREADS, used.iter().copied().collect(), |check| {
        run_check(None, named(&checks, check))
    });
    let failed: Vec<_> =
        used.iter().zip(verdicts).filter(|(_, verdict)| *verdict != Verdict::Passed).collect();
    assert!(failed.is_empty(), "{failed:?}");
}

#[test]
fn every_mutant_is_in_the_documentation() {
    let text = table::read();
    let missing: Vec<&str> = ALL
        .iter()
        .filter(|listed| !text.contains(&table::row_begin(listed)))
        .map(|listed| listed.name)
        .collect();
    assert!(missing.is_empty(), "write the table anew for {missing:?}");
    let rows = text.lines().filter(|line| line.starts_with("| `")).count();
    assert_eq!(rows, ALL.len(), "rows of mutants that are no more");
}

/// Runs every check against every mutant, which takes minutes.
#[test]
#[ignore = "writes docs/provider-mutants.md"]
fn write_the_table() {
    let rows = who_catches(ALL.iter().collect());
    fs::write(table::path(), table::render(all_checks().len(), &rows)).unwrap();
}

/// Shows which checks catch the mutants named in the environment variable `MUTANTS`.
#[test]
#[ignore = "for the eye"]
fn who_catches_these() {
    let wanted = std::env::var("MUTANTS").expect("MUTANTS=Name,Name");
    let wanted: Vec<&str> = wanted.split(',').collect();
    let rows = who_catches(ALL.iter().filter(|listed| wanted.contains(&listed.name)).collect());
    for (listed, noticed) in rows {
        println!("{}: {noticed:#?}", listed.name);
    }
}

/// Runs every check against these mutants; those that noticed something.
fn who_catches(mutants: Vec<&Listed>) -> Vec<(&Listed, Vec<(Check, Verdict)>)> {
    let checks = all_checks();
    in_parallel(THREADS, mutants, |listed: &Listed| {
        let verdicts = checks.iter().map(|check| (*check, run_check(Some(listed.mutant), *check)));
        (listed, verdicts.filter(|(_, verdict)| *verdict != Verdict::Passed).collect())
    })
}

fn named(checks: &[Check], name: &str) -> Check {
    let found = checks.iter().find(|(category, check)| format!("{category}::{check}") == name);
    *found.unwrap_or_else(|| panic!("no check {name}"))
}
