//! The counters behind a snapshot.

use std::sync::atomic::{AtomicU64, Ordering};

/// Counters of one runtime since its start (R9.11).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MetricsSnapshot {
    /// Executions that started.
    pub orch_starts: u64,
    /// Executions that ended, in whatever way.
    pub orch_completions: u64,
    /// Executions that failed.
    pub orch_failures: u64,
    /// Executions that failed by user code.
    pub orch_application_errors: u64,
    /// Executions that failed because the machinery did.
    pub orch_infrastructure_errors: u64,
    /// Executions that failed because of their deployment.
    pub orch_configuration_errors: u64,
    /// Turns given up after too many attempts.
    pub orch_poison: u64,
    /// Activities that returned a result.
    pub activity_success: u64,
    /// Activities that returned an error.
    pub activity_app_errors: u64,
    /// Activities whose result could not be stored.
    pub activity_infra_errors: u64,
    /// Activities that could not be run here.
    pub activity_config_errors: u64,
    /// Activities given up after too many attempts.
    pub activity_poison: u64,
    /// Turns fetched.
    pub orch_dispatcher_items_fetched: u64,
    /// Activities fetched.
    pub worker_dispatcher_items_fetched: u64,
    /// Executions that were succeeded by another.
    pub orch_continue_as_new: u64,
    /// Children that ended.
    pub suborchestration_calls: u64,
    /// Store operations that failed.
    pub provider_errors: u64,
}

/// Declares live counters for the fields of the snapshot; one left out does not compile.
macro_rules! counters {
    ($($field:ident,)*) => {
        /// Counters still counting.
        #[derive(Default)]
        pub(super) struct Counters {
            $(pub(super) $field: AtomicU64,)*
        }

        impl Counters {
            pub(super) fn snapshot(&self) -> MetricsSnapshot {
                MetricsSnapshot { $($field: self.$field.load(Ordering::Relaxed),)* }
            }
        }
    };
}

counters! {
    orch_starts,
    orch_completions,
    orch_failures,
    orch_application_errors,
    orch_infrastructure_errors,
    orch_configuration_errors,
    orch_poison,
    activity_success,
    activity_app_errors,
    activity_infra_errors,
    activity_config_errors,
    activity_poison,
    orch_dispatcher_items_fetched,
    worker_dispatcher_items_fetched,
    orch_continue_as_new,
    suborchestration_calls,
    provider_errors,
}
