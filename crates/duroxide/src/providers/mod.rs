//! Stores: the contract, re-exported from the core, and the stores of this crate.

pub mod memory;
pub mod instrumented;
#[cfg(test)]
pub(crate) mod scripted;
#[doc(hidden)]
pub mod invariants;

pub use duroxide_core::model::WorkItem;
pub use duroxide_core::provider::*;
