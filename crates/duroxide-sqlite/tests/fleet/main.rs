//! Real processes on one file: a fleet under fire, crash points, and work that changes hands.
//!
//! The processes are this test binary itself, run again in a role; see `process.rs`.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "../support/mod.rs"]
mod support;
mod process;
mod journal;
mod roles;
mod programs;
mod handlers;
mod attend;
mod worker;
mod client;
mod check;
mod torture;
mod crash_points;
mod company;
mod takeover;
mod fresh_file;
mod idle;

/// What the processes of the tests run.
#[test]
#[ignore = "not a test: a process of the others"]
fn role() {
    roles::play();
}
