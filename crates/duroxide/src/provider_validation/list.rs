//! The list of all checks, and what is made of it: one call that runs them all, and one macro that
//! makes a test of each. A new check is added here and nowhere else.

use std::time::Duration;

use tokio::time::Instant;

use super::ProviderFactory;
use super::report::{Outcome, ValidationReport, ValidationResult};
use crate::providers::Provider;
use crate::runtime::catch_panic::catch_panic;

/// Calls `$then!` with all checks by category. The word before each check says what it takes:
/// `G`, `D` a factory; `S` a factory and a version stamp; `P` a store with long polls; `T` a store
/// without long polls and the time it may take.
#[doc(hidden)]
#[macro_export]
macro_rules! __provider_validations {
    ($then:ident $($args:tt)*) => {
        $crate::$then! { ($($args)*)
            instance_creation {
                G test_instance_creation_via_metadata,
                G test_no_instance_creation_on_enqueue,
                G test_null_version_handling,
                G test_sub_orchestration_instance_creation,
            }
            atomicity {
                G test_atomicity_failure_rollback,
                G test_multi_operation_atomic_ack,
                G test_lock_released_only_on_successful_ack,
                G test_concurrent_ack_prevention,
            }
            management {
                G test_list_instances,
                G test_list_instances_by_status,
                G test_list_executions,
                G test_get_instance_info,
                G test_get_execution_info,
                G test_get_system_metrics,
                G test_get_queue_depths,
                G test_get_instance_stats_nonexistent,
                G test_get_instance_stats_history,
                G test_get_instance_stats_kv,
                G test_get_instance_stats_carry_forward,
                G test_get_instance_stats_kv_delta_only,
                G test_get_instance_stats_kv_merged,
            }
            deletion {
                G test_delete_terminal_instances,
                G test_delete_running_rejected_force_succeeds,
                G test_delete_nonexistent_instance,
                G test_delete_cleans_queues_and_locks,
                G test_cascade_delete_hierarchy,
                G test_force_delete_prevents_ack_recreation,
                G test_list_children,
                G test_delete_get_parent_id,
                G test_delete_get_instance_tree,
                G test_delete_instances_atomic,
                G test_delete_instances_atomic_force,
                G test_delete_instances_atomic_orphan_detection,
                G test_stale_activity_after_delete_recreate,
            }
            prune {
                G test_prune_options_combinations,
                G test_prune_safety,
                G test_prune_bulk,
                G test_prune_bulk_includes_running_instances,
            }
            bulk_deletion {
                G test_delete_instance_bulk_filter_combinations,
                G test_delete_instance_bulk_safety_and_limits,
                G test_delete_instance_bulk_completed_before_filter,
                G test_delete_instance_bulk_cascades_to_children,
            }
            custom_status {
                G test_custom_status_set,
                G test_custom_status_clear,
                G test_custom_status_none_preserves,
                G test_custom_status_version_increments,
                G test_custom_status_polling_no_change,
                G test_custom_status_nonexistent_instance,
                G test_custom_status_default_on_new_instance,
            }
            kv_store {
                G test_kv_set_and_get,
                G test_kv_overwrite,
                G test_kv_clear_single,
                G test_kv_clear_all,
                G test_kv_get_nonexistent,
                G test_kv_snapshot_in_fetch,
                G test_kv_snapshot_after_clear_single,
                G test_kv_snapshot_after_clear_all,
                G test_kv_execution_id_tracking,
                G test_kv_cross_execution_overwrite,
                G test_kv_cross_execution_remove_readd,
                G test_kv_prune_preserves_overwritten,
                G test_kv_prune_preserves_all_keys,
                G test_kv_instance_isolation,
                G test_kv_delete_instance_cascades,
                G test_kv_clear_nonexistent_key,
                G test_kv_get_unknown_instance,
                G test_kv_set_after_clear,
                G test_kv_empty_value,
                G test_kv_large_value,
                G test_kv_special_chars_in_key,
                G test_kv_snapshot_empty,
                G test_kv_snapshot_cross_execution,
                G test_kv_prune_current_execution_protected,
                G test_kv_delete_instance_with_children,
                G test_kv_clear_isolation,
                G test_kv_delta_snapshot_excludes_current_execution,
                G test_kv_delta_snapshot_includes_completed_execution,
                G test_kv_delta_client_reads_merged,
                G test_kv_delta_tombstone_overrides_store,
                G test_kv_delta_clear_all_tombstones_store,
                G test_kv_delta_merged_on_completion,
                G test_kv_delta_merged_on_can,
                G test_kv_delta_delete_instance_cascades,
                G test_kv_delta_prune_untouched_key_survives,
            }
        }
    };
}

/// Makes a `#[tokio::test]` of every check, in one module per category, for the factory that the
/// expression gives.
#[macro_export]
macro_rules! provider_validation_tests {
    ($factory:expr) => {
        $crate::__provider_validations! { __provider_validation_tests $factory }
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __provider_validation_tests {
    (($factory:expr) $($category:ident { $($kind:ident $check:ident,)* })*) => {
        $(
            mod $category {
                #[allow(unused_imports)]
                use super::*;
                $(
                    #[tokio::test]
                    async fn $check() {
                        let factory = $factory;
                        $crate::__run_validation!($kind $category $check &factory);
                    }
                )*
            }
        )*
    };
}

/// Runs one check; `None` if it passed, else why it was skipped.
#[doc(hidden)]
#[macro_export]
macro_rules! __run_validation {
    (G $category:ident $check:ident $factory:expr) => {{
        $crate::provider_validation::$category::$check($factory).await;
        None::<&'static str>
    }};
    (D $category:ident $check:ident $factory:expr) => {{
        $crate::provider_validation::$category::$check($factory).await;
        None::<&'static str>
    }};
    (S $category:ident $check:ident $factory:expr) => {{
        for stamp in $crate::provider_validation::STAMPS {
            $crate::provider_validation::$category::$check($factory, stamp).await;
        }
        None::<&'static str>
    }};
    (P $category:ident $check:ident $factory:expr) => {{
        let store = $crate::provider_validation::ProviderFactory::create_provider($factory).await;
        if $crate::provider_validation::waits_for_work(store.as_ref()).await {
            $crate::provider_validation::$category::$check(store.as_ref()).await;
            None::<&'static str>
        } else {
            Some("the provider has no long polls")
        }
    }};
    (T $category:ident $check:ident $factory:expr) => {{
        let store = $crate::provider_validation::ProviderFactory::create_provider($factory).await;
        if $crate::provider_validation::waits_for_work(store.as_ref()).await {
            Some("the provider has long polls")
        } else {
            let limit =
                $crate::provider_validation::ProviderFactory::short_poll_threshold($factory);
            $crate::provider_validation::$category::$check(store.as_ref(), limit).await;
            None::<&'static str>
        }
    }};
}

#[doc(hidden)]
#[macro_export]
macro_rules! __run_validations {
    (($factory:ident $results:ident) $($category:ident { $($kind:ident $check:ident,)* })*) => {
        $($(
            let began = Instant::now();
            let check = async { $crate::__run_validation!($kind $category $check $factory) };
            let outcome = match catch_panic(check).await {
                Ok(None) => Outcome::Passed,
                Ok(Some(why)) => Outcome::Skipped(why),
                Err(reason) => Outcome::Failed(reason),
            };
            $results.push(ValidationResult {
                category: stringify!($category),
                name: stringify!($check),
                outcome,
                took: began.elapsed(),
            });
        )*)*
    };
}

/// Runs every check, one after the other, each on a store of its own.
pub async fn run_all_validations<F: ProviderFactory>(factory: &F) -> ValidationReport {
    let mut results = Vec::new();
    crate::__provider_validations! { __run_validations factory results }
    ValidationReport { results }
}

/// Version stamps that checks of replay run with: this library's, and one under the old race policy.
#[doc(hidden)]
pub const STAMPS: [&str; 2] = [duroxide_core::model::version::BUILD_VERSION, "0.1.30"];

/// Whether a fetch from an empty queue waits, as it may or may not (R8.32).
#[doc(hidden)]
pub async fn waits_for_work(store: &dyn Provider) -> bool {
    let poll = Duration::from_millis(300);
    let began = Instant::now();
    let nothing = store.fetch_orchestration_item(Duration::from_secs(1), poll, None).await;
    nothing.is_ok_and(|found| found.is_none()) && began.elapsed() >= poll / 2
}
