//! The list of all checks, and what is made of it: one call that runs them all, and one macro that
//! makes a test of each. A new check is added here and nowhere else.

use std::pin::Pin;
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
            race_replay {
                G test_duplicate_start_preserves_pinned_handler,
                G test_continue_as_new_unregistered_backoff,
                G test_continue_as_new_poisoned_successor_is_own_execution,
                G test_continue_as_new_duplicate_start,
                S test_continue_as_new_transition_delivery,
                G test_queue_race_cancellation_replay,
                G test_continue_as_new_queue_race_replay,
                G test_queue_replay_version_stamp_roundtrip,
                G test_positional_wait_race_replay,
                G test_legacy_queue_race_decision_preserved,
            }
            instance_locking {
                G test_exclusive_instance_lock,
                G test_lock_token_uniqueness,
                G test_invalid_lock_token_rejection,
                G test_concurrent_instance_fetching,
                G test_completions_arriving_during_lock_blocked,
                G test_cross_instance_lock_isolation,
                G test_message_tagging_during_lock,
                G test_ack_only_affects_locked_messages,
                G test_multi_threaded_lock_contention,
                G test_multi_threaded_no_duplicate_processing,
                G test_multi_threaded_lock_expiration_recovery,
            }
            lock_expiration {
                G test_lock_expires_after_timeout,
                G test_abandon_releases_lock_immediately,
                G test_lock_renewal_on_ack,
                G test_concurrent_lock_attempts_respect_expiration,
                G test_worker_lock_renewal_success,
                G test_worker_lock_renewal_invalid_token,
                G test_worker_lock_renewal_after_expiration,
                G test_worker_lock_renewal_extends_timeout,
                G test_worker_lock_renewal_after_ack,
                G test_abandon_work_item_releases_lock,
                G test_abandon_work_item_with_delay,
                G test_worker_ack_fails_after_lock_expiry,
                G test_orchestration_lock_renewal_after_expiration,
            }
            multi_execution {
                G test_execution_isolation,
                G test_latest_execution_detection,
                G test_execution_id_sequencing,
                G test_continue_as_new_creates_new_execution,
                G test_execution_history_persistence,
            }
            queue_semantics {
                G test_worker_queue_fifo_ordering,
                G test_worker_peek_lock_semantics,
                G test_worker_ack_atomicity,
                G test_timer_delayed_visibility,
                G test_lost_lock_token_handling,
                G test_worker_item_immediate_visibility,
                G test_worker_delayed_visibility_skips_future_items,
                G test_orphan_queue_messages_dropped,
            }
            cancellation {
                G test_fetch_returns_running_state_for_active_orchestration,
                G test_fetch_returns_terminal_state_when_orchestration_completed,
                G test_fetch_returns_terminal_state_when_orchestration_failed,
                G test_fetch_returns_terminal_state_when_orchestration_continued_as_new,
                G test_fetch_returns_missing_state_when_instance_deleted,
                G test_renew_returns_running_when_orchestration_active,
                G test_renew_returns_terminal_when_orchestration_completed,
                G test_renew_returns_missing_when_instance_deleted,
                G test_ack_work_item_none_deletes_without_enqueue,
                G test_cancelled_activities_deleted_from_worker_queue,
                G test_ack_work_item_fails_when_entry_deleted,
                G test_renew_fails_when_entry_deleted,
                G test_cancelling_nonexistent_activities_is_idempotent,
                G test_batch_cancellation_deletes_multiple_activities,
                G test_same_activity_in_worker_items_and_cancelled_is_noop,
                G test_orphan_activity_after_instance_force_deletion,
            }
            error_handling {
                G test_invalid_lock_token_on_ack,
                G test_duplicate_event_id_rejection,
                G test_missing_instance_metadata,
                G test_corrupted_serialization_data,
                G test_lock_expiration_during_ack,
                G test_read_corrupted_history_returns_error,
                G test_read_with_execution_corrupted_history_returns_error,
            }
            long_polling {
                T test_short_poll_returns_immediately,
                P test_long_poll_waits_for_timeout,
                P test_fetch_respects_timeout_upper_bound,
                T test_short_poll_work_item_returns_immediately,
                P test_long_poll_work_item_waits_for_timeout,
            }
            poison_message {
                D orchestration_attempt_count_starts_at_one,
                D orchestration_attempt_count_increments_on_refetch,
                D worker_attempt_count_starts_at_one,
                D worker_attempt_count_increments_on_lock_expiry,
                D attempt_count_is_per_message,
                D abandon_work_item_ignore_attempt_decrements,
                D abandon_orchestration_item_ignore_attempt_decrements,
                D ignore_attempt_never_goes_negative,
                D max_attempt_count_across_message_batch,
                D orchestration_ignore_attempt_preserves_hidden_start,
                D orchestration_delayed_abandon_preserves_unlocked_rows,
            }
            capability_filtering {
                G test_fetch_with_filter_none_returns_any_item,
                G test_fetch_with_compatible_filter_returns_item,
                G test_fetch_with_incompatible_filter_skips_item,
                G test_fetch_filter_skips_incompatible_selects_compatible,
                G test_fetch_filter_does_not_lock_skipped_instances,
                G test_fetch_filter_null_pinned_version_always_compatible,
                G test_fetch_filter_boundary_versions,
                G test_pinned_version_stored_via_ack_metadata,
                G test_pinned_version_immutable_across_ack_cycles,
                G test_continue_as_new_execution_gets_own_pinned_version,
                G test_filter_with_empty_supported_versions_returns_nothing,
                G test_concurrent_filtered_fetch_no_double_lock,
                G test_ack_stores_pinned_version_via_metadata_update,
                G test_provider_updates_pinned_version_when_told,
                G test_fetch_corrupted_history_filtered_vs_unfiltered,
                G test_fetch_deserialization_error_increments_attempt_count,
                G test_fetch_deserialization_error_eventually_reaches_poison,
                G test_fetch_filter_applied_before_history_deserialization,
                G test_fetch_single_range_only_uses_first_range,
                G test_ack_appends_event_to_corrupted_history,
            }
            sessions {
                D test_non_session_items_fetchable_by_any_worker,
                D test_session_item_claimable_when_no_session,
                D test_session_affinity_same_worker,
                D test_session_affinity_blocks_other_worker,
                D test_different_sessions_different_workers,
                D test_mixed_session_and_non_session_items,
                D test_session_claimable_after_lock_expiry,
                D test_none_session_skips_session_items,
                D test_some_session_returns_all_items,
                D test_renew_session_lock_active,
                D test_renew_session_lock_skips_idle,
                D test_renew_session_lock_no_sessions,
                D test_cleanup_removes_expired_no_items,
                D test_cleanup_keeps_sessions_with_pending_items,
                D test_cleanup_keeps_active_sessions,
                D test_ack_updates_session_last_activity,
                D test_renew_work_item_updates_session_last_activity,
                D test_session_items_processed_in_order,
                D test_non_session_items_returned_with_session_config,
                D test_shared_worker_id_any_caller_can_fetch_owned_session,
                D test_concurrent_session_claim_only_one_wins,
                D test_session_takeover_after_lock_expiry,
                D test_cleanup_then_new_item_recreates_session,
                D test_abandoned_session_item_retryable,
                D test_abandoned_session_item_ignore_attempt,
                D test_renew_session_lock_after_expiry_returns_zero,
                D test_original_worker_reclaims_expired_session,
                D test_activity_lock_expires_session_lock_valid_same_worker_refetches,
                D test_session_lock_expires_new_owner_gets_redelivery,
                D test_session_lock_expires_same_worker_reacquires,
                D test_both_locks_expire_different_worker_claims,
                D test_session_lock_expires_activity_lock_valid_ack_succeeds,
                D test_session_lock_renewal_extends_past_original_timeout,
            }
            tag_filtering {
                D test_default_only_fetches_untagged,
                D test_tags_fetches_only_matching,
                D test_default_and_fetches_untagged_and_matching,
                D test_none_filter_returns_nothing,
                D test_multi_tag_filter,
                D test_tag_round_trip_preservation,
                D test_any_filter_fetches_everything,
                D test_tag_survives_abandon_and_refetch,
                D test_multi_runtime_tag_isolation,
                D test_tag_preserved_through_ack_orchestration_item,
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
            // Boxed: two hundred futures side by side would not fit on a thread's stack.
            let check = Box::pin(async { $crate::__run_validation!($kind $category $check $factory) });
            $results.push(run_one((stringify!($category), stringify!($check)), check).await);
        )*)*
    };
}

/// Runs every check, one after the other, each on a store of its own.
pub async fn run_all_validations<F: ProviderFactory>(factory: &F) -> ValidationReport {
    let mut results = Vec::new();
    crate::__provider_validations! { __run_validations factory results }
    ValidationReport { results }
}

/// Runs one check and notes how it ended.
async fn run_one(
    (category, name): (&'static str, &'static str),
    check: Pin<Box<dyn Future<Output = Option<&'static str>> + '_>>,
) -> ValidationResult {
    let began = Instant::now();
    let outcome = match catch_panic(check).await {
        Ok(None) => Outcome::Passed,
        Ok(Some(why)) => Outcome::Skipped(why),
        Err(reason) => Outcome::Failed(reason),
    };
    ValidationResult { category, name, outcome, took: began.elapsed() }
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
