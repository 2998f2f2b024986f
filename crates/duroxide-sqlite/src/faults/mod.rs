//! Faults that tests plant in a store, and what they watch it do.
//!
//! Each store has a plan; the threads that serve it look there before every statement and commit. Built
//! without `test-hooks` there is no plan and nothing to look at.

#[cfg(not(feature = "test-hooks"))]
mod none;
#[cfg(feature = "test-hooks")]
mod planted;

#[cfg(not(feature = "test-hooks"))]
pub(crate) use none::{
    Plan, before_begin, busy_limit, commit, done, enter, read_ended, reopen, statement, sync,
};
#[cfg(feature = "test-hooks")]
pub use planted::{CommitFault, Faults, Seen, set_busy_limit};
#[cfg(feature = "test-hooks")]
pub(crate) use planted::{
    Plan, before_begin, busy_limit, commit, done, enter, read_ended, reopen, statement, sync,
};
