//! The counters behind a snapshot.

use std::sync::atomic::{AtomicU64, Ordering};

/// Declares the snapshot and its live counters with the same fields.
macro_rules! counters {
    ($($(#[$doc:meta])* $field:ident,)*) => {
        /// Counters of one runtime since its start (R9.11).
        #[derive(Debug, Clone, Default, PartialEq, Eq)]
        pub struct MetricsSnapshot {
            $($(#[$doc])* pub $field: u64,)*
        }

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
    /// Executions that started.
    orch_starts,
    /// Executions that ended, in whatever way.
    orch_completions,
    /// Executions that failed.
    orch_failures,
    /// Executions that failed by user code.
    orch_application_errors,
    /// Executions that failed because the machinery did.
    orch_infrastructure_errors,
    /// Executions that failed because of their deployment.
    orch_configuration_errors,
    /// Turns given up after too many attempts.
    orch_poison,
    /// Activities that returned a result.
    activity_success,
    /// Activities that returned an error.
    activity_app_errors,
    /// Activities whose result could not be stored.
    activity_infra_errors,
    /// Activities that could not be run here.
    activity_config_errors,
    /// Activities given up after too many attempts.
    activity_poison,
    /// Turns fetched.
    orch_dispatcher_items_fetched,
    /// Activities fetched.
    worker_dispatcher_items_fetched,
    /// Executions that were succeeded by another.
    orch_continue_as_new,
    /// Children that ended.
    suborchestration_calls,
    /// Store operations that failed.
    provider_errors,
}
