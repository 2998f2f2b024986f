//! Properties of replay: random programs in a random world, random histories.
//!
//! A failure prints the smallest program and choices that show it.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod batches;
mod chaos;
mod invariants;
mod lives;
mod script;
mod world;

use proptest::test_runner::Config;

/// So many cases, nothing written to disk.
fn cases(cases: u32) -> Config {
    Config { cases, failure_persistence: None, ..Config::default() }
}
