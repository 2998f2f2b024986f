//! Stores: the contract, re-exported from the core, and the stores of this crate.
//!
//! A store of your own implements [`Provider`], and [`ProviderAdmin`] if instances are to be listed,
//! pruned or deleted; the rules are chapter 8 of `docs/behaviour.md`. A store around a store, for
//! logs or faults, forwards to another `Arc<dyn Provider>`. Methods with default bodies can be left
//! out in both cases.

pub mod memory;
pub mod instrumented;
#[cfg(test)]
pub(crate) mod scripted;
#[doc(hidden)]
pub mod invariants;

#[cfg(feature = "sqlite")]
pub use duroxide_sqlite as sqlite;

pub use duroxide_core::model::WorkItem;
pub use duroxide_core::provider::*;
