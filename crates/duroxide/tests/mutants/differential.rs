//! Random operations find mutants, too, without having been told what to look for.

use std::sync::Arc;

use duroxide::provider_validation::differential::{
    Difference, DifferentialOptions, compare_with_memory,
};
use duroxide::providers::Provider;
use tokio::runtime::Builder;

use super::list::{ALL, Listed};
use super::run::in_parallel;
use super::wrapper::MutantProvider;

/// How many mutants a few sequences find; what they find depends on the seed only.
const FOUND_SOON_MIN: usize = 120;

/// Mutants that random operations cannot find: they are wrong about damage, which is done by hand,
/// about waiting, which nobody does here, or about several or very many at once, which
/// nobody asks for here.
const OUT_OF_REACH: &[&str] = &[
    "HidesDamage",
    "FailsOnDamage",
    "ReadsDamageAsEmpty",
    "ReadsDamagedExecutionAsEmpty",
    "PollsTooLong",
    "WaitsForTurnsOnly",
    "MixesTriedTurns",
    "MixesTriedWork",
    "HidesWhatItLeaves",
    "ShowsWholeBacklog",
    "LeavesBeginningBehind",
    "ForgetsFetchBytes",
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
fn a_difference_is_short_and_can_be_repeated() {
    let listed = ALL.iter().find(|listed| listed.name == "LosesSendDelay").unwrap();
    let first = compare(Some(listed), DifferentialOptions::default()).expect("a difference");
    let printed = first.to_string();
    assert!(first.operations.len() <= 3, "{printed}");
    assert!(printed.contains(&format!("DUROXIDE_SEED={}", first.seed)), "{printed}");
    assert!(first.operations.iter().any(|operation| operation.starts_with("Send")), "{printed}");
    let again = DifferentialOptions { seed: first.seed, sequences: 1, ..Default::default() };
    let second = compare(Some(listed), again).expect("the same difference");
    assert_eq!(second.to_string(), printed);
}

#[test]
fn without_a_mutant_there_is_no_difference() {
    let difference = compare(None, DifferentialOptions::default());
    assert!(difference.is_none(), "{}", difference.unwrap());
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
fn compare(listed: Option<&Listed>, options: DifferentialOptions) -> Option<Box<Difference>> {
    let tokio = Builder::new_current_thread().enable_time().build().unwrap();
    let make = async |clock| {
        let mutant = listed.map(|listed| listed.mutant);
        Arc::new(MutantProvider::with_clock(mutant, clock)) as Arc<dyn Provider>
    };
    tokio.block_on(compare_with_memory(make, options)).err()
}
