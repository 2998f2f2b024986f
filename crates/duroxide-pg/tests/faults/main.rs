//! What may happen to a database and to the way there: connections ended, servers restarted, away,
//! full, read-only, errors of all kinds, answers lost. Nothing is lost, nothing is done twice, and
//! the system goes on by itself.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "../support/mod.rs"]
mod support;
#[path = "../fleet/store.rs"]
mod store;
mod site;
mod proxy;
mod connections;
mod restarts;
mod failover;
mod sqlstates;
mod network;
mod cut_off;
mod limits;
mod contention;
mod held;
mod pooler;

use duroxide_fleet::Stage;

/// What the processes of the tests run.
#[test]
#[ignore = "not a test: a process of the others"]
fn role() {
    duroxide_fleet::play(&store::POSTGRES, async |_: &Stage, role: &str| {
        panic!("no such role: {role}")
    });
}
