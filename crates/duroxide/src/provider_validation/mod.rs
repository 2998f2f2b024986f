//! The provider contract as checks that anyone can run.
//!
//! A store is a correct provider if and only if all of these pass. One file per promise; a check is
//! a few lines over a small vocabulary (`lab.rs`: verbs, `words.rs`: nouns) and fails with a message
//! that says which promise is broken, what was expected and what came.
//!
//! A provider author implements [`ProviderFactory`] and writes one line:
//!
//! ```ignore
//! duroxide::provider_validation_tests!(MyFactory);
//! ```
#![allow(
    clippy::panic,
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a check reports by panicking, as tests do"
)]

mod factory;
pub(crate) mod words;
mod lab;
mod patience;
mod admin_verbs;
mod comparing;
mod list;
mod run;
mod report;
pub mod instance_creation;
pub mod atomicity;
pub mod race_replay;
pub mod instance_locking;
pub mod lock_expiration;
pub mod multi_execution;
pub mod queue_semantics;
pub mod cancellation;
pub mod error_handling;
pub mod long_polling;
pub mod poison_message;
pub mod capability_filtering;
pub mod sessions;
pub mod tag_filtering;
pub mod management;
pub mod deletion;
pub mod prune;
pub mod bulk_deletion;
pub mod incarnations;
pub mod custom_status;
pub mod kv_store;
pub mod unknown_instances;
pub mod dead_letters;
pub mod tokens;
pub mod concurrency;
pub mod big_batches;
pub mod payloads_and_names;
pub mod times;
pub mod attempts;
pub mod wakeups;
pub mod turn_without_history;
pub mod several_at_once;
pub mod tried;
pub mod succession;
pub mod direct_turns;
pub mod timer_turns;
pub mod starting;
pub mod two_providers;
pub mod differential;

pub use factory::ProviderFactory;
pub use report::{Outcome, Skip, ValidationReport, ValidationResult};
pub use run::{STAMPS, run_all_validations, waits_for_work};

pub use crate::providers::ExecutionMetadata;
pub use crate::{Event, EventKind};
