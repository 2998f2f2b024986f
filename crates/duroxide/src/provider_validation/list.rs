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
