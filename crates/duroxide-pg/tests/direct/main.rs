//! Direct turns (R8.142): an activity is done and the turn that has read its outcome committed, both or
//! neither, alone and among others, whatever else happens to the instance.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod done;
mod races;
mod refused;
mod stage;
#[path = "../support/mod.rs"]
mod support;
