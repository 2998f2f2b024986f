//! Random operations find mutants, too, without having been told what to look for.

use std::sync::Arc;

use duroxide::provider_validation::differential::{DifferentialOptions, compare_with_memory};
use duroxide::providers::Provider;
use tokio::runtime::Builder;

use super::list::{ALL, Listed};
use super::run::in_parallel;
use super::wrapper::MutantProvider;

/// How many mutants a few sequences find; what they find depends on the seed only.
const FOUND_SOON_MIN: usize = 120;

/// Mutants that random operations cannot find: they are wrong about damage, which is done by hand,
/// or about waiting, which nobody does here.
const OUT_OF_REACH: &[&str] = &[
    "HidesDamage",
    "FailsOnDamage",
    "ReadsDamageAsEmpty",
    "ReadsDamagedExecutionAsEmpty",
    "PollsTooLong",
    "WaitsForTurnsOnly",
];

/// These do all their work in this thread, so more threads than cores do not help.
const THREADS: usize = 2;

#[test]
fn random_operations_find_most_mutants_soon() {
    let missed = missed(2);
    let found = ALL.len() - missed.len();
    assert!(found >= FOUND_SOON_MIN, "found only {found}; missed: {missed:?}");
}

#[test]
#[ignore = "takes minutes"]
fn random_operations_find_every_mutant_in_their_reach() {
    let mut missed = missed(200);
    missed.retain(|name| !OUT_OF_REACH.contains(name));
    assert!(missed.is_empty(), "missed: {missed:?}");
}

#[test]
fn without_a_mutant_there_is_no_difference() {
    let difference = compare(None, DifferentialOptions::default());
    assert_eq!(difference, None);
}

/// The mutants that this many sequences do not find.
fn missed(sequences: usize) -> Vec<&'static str> {
    let noticed = in_parallel(THREADS, ALL.iter().collect(), |listed: &Listed| {
        let options = DifferentialOptions {
            sequences,
            operations_per_sequence: 150,
            shrinking_tries: 0,
            ..DifferentialOptions::default()
        };
        compare(Some(listed), options).is_some()
    });
    let missed = ALL.iter().zip(noticed).filter(|(_, noticed)| !noticed);
    missed.map(|(listed, _)| listed.name).collect()
}

/// How a mutant differs, if it is noticed.
fn compare(listed: Option<&Listed>, options: DifferentialOptions) -> Option<String> {
    let tokio = Builder::new_current_thread().enable_time().build().unwrap();
    let make = async |clock| {
        let mutant = listed.map(|listed| listed.mutant);
        Arc::new(MutantProvider::with_clock(mutant, clock)) as Arc<dyn Provider>
    };
    let compared = tokio.block_on(compare_with_memory(make, options));
    compared.err().map(|difference| difference.to_string())
}
