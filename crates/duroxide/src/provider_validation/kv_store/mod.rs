//! Values of an instance: what ended executions left is the store, what the running one changed is
//! the delta. Outside both are seen as one; a turn is handed the store alone.

mod basics;
mod deltas;
mod lifetime;
mod snapshots;

pub use basics::*;
pub use deltas::*;
pub use lifetime::*;
pub use snapshots::*;

use super::lab::Promise;
use super::words::{CommitWords, commit, started};
use crate::providers::TurnCommit;

fn promise(rule: &'static str, says: &'static str) -> Promise {
    Promise { rule, says, section: "key-value" }
}

/// The commit that begins an execution of "a" after the first.
fn next() -> TurnCommit {
    commit().event(started("a"))
}
