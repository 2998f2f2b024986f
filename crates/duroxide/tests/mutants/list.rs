//! The mutants: what each does wrong, and a check that notices.

/// A way to be wrong, as the table shows it.
pub struct Listed {
    pub mutant: Mutant,
    pub name: &'static str,
    says: &'static str,
    /// A check that must fail, `category::name`.
    pub caught_by: &'static str,
}

impl Listed {
    pub fn says(&self) -> &'static str {
        self.says.trim()
    }
}

macro_rules! mutants {
    ($(#[doc = $says:literal] $name:ident => $check:literal,)*) => {
        /// One way to be wrong.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Mutant {
            $(#[doc = $says] $name,)*
        }

        pub const ALL: &[Listed] = &[$(Listed {
            mutant: Mutant::$name,
            name: stringify!($name),
            says: $says,
            caught_by: $check,
        },)*];
    };
}

mutants! {
    // ---- Commits --------------------------------------------------------------------------------
    /// A commit loses its last event.
    LosesLastEvent => "atomicity::test_multi_operation_atomic_ack",
    /// A commit loses its activities.
    LosesWork => "atomicity::test_multi_operation_atomic_ack",
    /// A commit loses its messages.
    LosesMessages => "atomicity::test_multi_operation_atomic_ack",
    /// A commit loses the name and version of its instance.
    LosesIdentity => "instance_creation::test_instance_creation_via_metadata",
    /// A commit loses the parent of its instance.
    LosesParent => "deletion::test_delete_get_parent_id",
    /// A commit loses the version its execution is pinned to.
    LosesPin => "capability_filtering::test_pinned_version_stored_via_ack_metadata",
    /// The first pin of an execution stays, whatever later commits say.
    PinsOnce => "capability_filtering::test_provider_updates_pinned_version_when_told",
    /// A commit loses the status of its execution.
    LosesStatus => "management::test_list_instances_by_status",
    /// A commit loses the output of its execution.
    LosesOutput => "management::test_get_execution_info",
    /// A commit loses the first turn of the next execution that comes with it.
    LosesSuccessor => "succession::two_turns_are_one_commit",
    /// A turn after a continue-as-new names the execution before.
    NamesOldExecution => "concurrency::nothing_is_lost_between_executions",
    /// A commit with a successor is two commits, the second without its lock.
    SplitsSuccession => "succession::both_turns_or_neither",
    /// A message that begins the next execution keeps the oldest hundred of what it carries.
    CarriesAHundred => "race_replay::every_unread_message_is_carried",
    /// An outcome is taken, and the turn that came with it is lost.
    LosesDirectTurn => "direct_turns::an_outcome_and_its_turn_are_one_commit",
    /// A turn that comes with an outcome is taken, whatever has happened since it looked.
    TakesBlindTurns => "direct_turns::only_an_instance_at_rest_takes_a_direct_turn",
    /// Timers are taken, and the turn that came with them is lost.
    LosesTimerTurn => "timer_turns::a_timer_and_its_turn_are_one_commit",
    /// A turn that comes with timers is taken, whatever has happened since it looked.
    TakesBlindTimerTurns => "timer_turns::only_an_instance_at_rest_takes_a_timer_turn",
    /// A turn that comes with timers is taken, whichever instance of that name it was for.
    ConfusesLivesOfTimers => "timer_turns::only_an_instance_at_rest_takes_a_timer_turn",
    /// A timer that was fired with its turn stays.
    FiresTimersTwice => "timer_turns::a_timer_and_its_turn_are_one_commit",
    /// Of timers that come with a turn, those that are not due are not looked for.
    OverlooksEarlyTimers => "timer_turns::only_timers_that_are_due_and_held_back_are_fired",
    /// A commit does not hold its timers back.
    HoldsNoTimersBack => "timer_turns::timers_are_held_back_as_asked",
    /// A commit loses its cancellations.
    LosesCancellations => "cancellation::test_cancelled_activities_deleted_from_worker_queue",
    /// A commit carries out its first cancellation only.
    CancelsFirstOnly => "cancellation::test_batch_cancellation_deletes_multiple_activities",
    /// A commit cancels before it queues, so that what it does both to is queued.
    CancelsBeforeQueueing =>
        "cancellation::test_same_activity_in_worker_items_and_cancelled_is_noop",
    /// A cancelled activity that is in work stays in the queue.
    SparesLockedWork => "cancellation::test_ack_work_item_fails_when_entry_deleted",
    /// A commit queues its activities before it looks whether it may.
    QueuesWorkFirst => "atomicity::test_atomicity_failure_rollback",
    /// A commit queues its messages before it looks whether it may.
    QueuesMessagesFirst => "atomicity::test_atomicity_failure_rollback",
    /// A commit writes its events before it looks whether it may.
    WritesEventsFirst => "instance_locking::test_invalid_lock_token_rejection",
    /// A commit queues its activities in reverse.
    ReversesWork => "queue_semantics::test_worker_queue_fifo_ordering",
    /// Timers of a commit are visible at once.
    FiresTimersAtOnce => "queue_semantics::test_timer_delayed_visibility",
    /// Everything is written to the first execution.
    WritesToFirstExecution => "multi_execution::test_execution_isolation",
    /// Events with ids that are there already are left out in silence.
    SkipsDuplicateEvents => "error_handling::test_duplicate_event_id_rejection",
    /// A commit that fails says that it succeeded.
    SwallowsCommitErrors => "error_handling::test_invalid_lock_token_on_ack",
    /// A commit that is refused for good is said to be worth trying again.
    CallsRefusalsRetryable => "error_handling::test_invalid_lock_token_on_ack",
    /// A commit with a lock that ran out goes through.
    CommitsWithExpiredLock => "error_handling::test_lock_expiration_during_ack",
    /// A commit removes messages that came after the fetch, too.
    ConsumesLateMessages => "instance_locking::test_message_tagging_during_lock",
    /// A commit leaves the messages of its turn in the queue.
    KeepsConsumedMessages => "atomicity::test_multi_operation_atomic_ack",
    /// A commit that fails releases the lock.
    UnlocksOnFailedCommit => "atomicity::test_lock_released_only_on_successful_ack",
    /// A commit keeps the instance locked until the lock runs out.
    KeepsLockAfterCommit => "lock_expiration::test_lock_renewal_on_ack",

    /// A cancellation takes activities of other executions with the same number, too.
    CancelsOtherExecutions => "cancellation::test_cancelled_activities_deleted_from_worker_queue",
    /// A cancellation takes activities of other instances with the same number, too.
    CancelsOtherInstances => "cancellation::test_cancelled_activities_deleted_from_worker_queue",
    /// A commit goes through although somebody else has locked the instance since.
    CommitsWithReplacedLock => "lock_expiration::test_lock_expires_after_timeout",
    /// Events without a number are left out in silence.
    SkipsEventZero => "error_handling::test_duplicate_event_id_rejection",

    /// Name and version of an instance stay as they were first.
    NamesOnce => "instance_creation::test_instance_creation_via_metadata",
    /// A commit that ends no execution takes back how the last one ended.
    ReopensExecution => "multi_execution::test_continue_as_new_creates_new_execution",

    // ---- Fetching turns -------------------------------------------------------------------------
    /// The messages of a turn come in reverse.
    ReversesBatch => "instance_locking::test_completions_arriving_during_lock_blocked",
    /// A turn shows the first of its messages only.
    ShowsFirstMessageOnly => "instance_locking::test_completions_arriving_during_lock_blocked",
    /// Versions are not filtered.
    IgnoresVersionFilter => "capability_filtering::test_fetch_with_incompatible_filter_skips_item",
    /// Versions are filtered after the instance was locked.
    FiltersAfterLocking => "capability_filtering::test_fetch_filter_does_not_lock_skipped_instances",
    /// All ranges of a filter count, not the first only.
    HonoursAllRanges => "capability_filtering::test_fetch_single_range_only_uses_first_range",
    /// A filter without ranges lets everything through.
    TakesEmptyFilterForNone =>
        "capability_filtering::test_filter_with_empty_supported_versions_returns_nothing",
    /// The upper end of a range of versions does not belong to it.
    ExcludesUpperVersion => "capability_filtering::test_fetch_filter_boundary_versions",
    /// A locked instance is handed out again when there is nothing else.
    HandsOutTwice => "instance_locking::test_exclusive_instance_lock",
    /// One locked instance keeps all others from being fetched.
    LocksEverything => "instance_locking::test_cross_instance_lock_isolation",
    /// All turns of an instance have the same token.
    ReusesTurnTokens => "instance_locking::test_lock_token_uniqueness",
    /// Locks of turns never run out.
    LocksTurnsForever => "lock_expiration::test_lock_expires_after_timeout",
    /// Locks of turns run out too soon.
    LocksTurnsBriefly => "instance_locking::test_exclusive_instance_lock",
    /// Attempts of turns count double.
    DoublesTurnAttempts => "poison_message::orchestration_attempt_count_starts_at_one",
    /// Every turn is the first attempt.
    ForgetsTurnAttempts => "poison_message::orchestration_attempt_count_increments_on_refetch",
    /// A turn has the attempt count of its newest message, not the highest.
    CountsNewestMessage => "poison_message::max_attempt_count_across_message_batch",
    /// A turn brings the history of the first execution.
    FetchesFirstHistory => "multi_execution::test_execution_id_sequencing",
    /// A turn does not say which version its instance has.
    ForgetsVersion => "instance_creation::test_instance_creation_via_metadata",
    /// A turn with damaged history looks like one without history.
    HidesDamage => "capability_filtering::test_fetch_corrupted_history_filtered_vs_unfiltered",
    /// A damaged history makes the fetch fail.
    FailsOnDamage => "capability_filtering::test_fetch_corrupted_history_filtered_vs_unfiltered",
    /// Queue messages for an instance that does not exist wait for it.
    KeepsOrphanQueueMessages => "queue_semantics::test_orphan_queue_messages_dropped",
    /// A fetch waits three times as long as it was told.
    PollsTooLong => "long_polling::test_fetch_respects_timeout_upper_bound",
    /// Turns are waited for, activities are not.
    WaitsForTurnsOnly => "long_polling::test_long_poll_work_item_waits_for_timeout",
    /// The snapshot of a turn has values of the running execution.
    SnapshotsRunningExecution => "kv_store::test_kv_delta_snapshot_excludes_current_execution",
    /// The snapshot of a turn is empty.
    LosesSnapshot => "kv_store::test_kv_snapshot_in_fetch",
    /// The snapshot of a turn has no times.
    LosesSnapshotTimes => "kv_store::test_kv_snapshot_in_fetch",

    /// The instance with the newest message is served first.
    FetchesNewestTurn => "instance_locking::test_cross_instance_lock_isolation",

    /// A turn shows all messages of its instance, however many.
    ShowsWholeBacklog => "big_batches::a_backlog_comes_in_bounded_turns",
    /// The message that begins an execution is left behind the backlog.
    LeavesBeginningBehind => "big_batches::a_beginning_is_found_behind_a_backlog",
    /// Turns whose locks ended come together with others.
    MixesTriedTurns => "tried::a_tried_turn_comes_alone",
    /// Turns that were given back come one by one.
    IsolatesGivenBackTurns => "tried::given_back_turns_come_together",
    /// What a fetch of several turns leaves behind is not to be seen for an hour.
    HidesWhatItLeaves => "tried::what_is_left_behind_finds_who_waits",
    /// A turn whose lock ran out comes first again.
    KeepsPlaceOfLostTurns => "tried::a_turn_whose_lock_ended_goes_behind",
    /// A turn that was given back goes behind the others.
    MovesGivenBackTurns => "tried::what_is_given_back_keeps_its_place",

    // ---- Giving turns back, renewing, sending ---------------------------------------------------
    /// A turn given back stays locked.
    SwallowsAbandon => "lock_expiration::test_abandon_releases_lock_immediately",
    /// Giving back a turn with an unknown token succeeds.
    AbandonsWithAnyToken => "instance_locking::test_invalid_lock_token_rejection",
    /// A turn given back with a delay is visible at once.
    LosesAbandonDelay => "poison_message::orchestration_delayed_abandon_preserves_unlocked_rows",
    /// The delay of a turn given back hides messages that came later, too.
    DelaysUnlockedMessages => "poison_message::orchestration_delayed_abandon_preserves_unlocked_rows",
    /// What a turn left behind is fetched while the turn is given back for a while.
    LetsBacklogOvertake => "big_batches::a_backlog_given_back_is_not_overtaken",
    /// Giving a turn back counts as an attempt, whatever is asked.
    CountsIgnoredTurnAttempts =>
        "poison_message::abandon_orchestration_item_ignore_attempt_decrements",
    /// Giving a turn back never counts as an attempt.
    NeverCountsGivenBackTurns =>
        "poison_message::abandon_orchestration_item_ignore_attempt_decrements",
    /// Renewing the lock of a turn does not extend it.
    RenewsTurnInVain => "lock_expiration::test_orchestration_lock_renewal_after_expiration",
    /// Renewing the lock of a turn succeeds after it ran out.
    RenewsExpiredTurn => "lock_expiration::test_orchestration_lock_renewal_after_expiration",
    /// Messages sent with a delay are visible at once.
    LosesSendDelay => "queue_semantics::test_timer_delayed_visibility",
    /// Messages are queued twice.
    SendsTwice => "instance_locking::test_message_tagging_during_lock",
    /// An activity sent as a message vanishes.
    SwallowsMisplacedMessages => "error_handling::test_corrupted_serialization_data",
    /// A message queued as an activity vanishes.
    SwallowsMisplacedWork => "error_handling::test_corrupted_serialization_data",
    /// An instance is listed as soon as its start is queued.
    CreatesOnEnqueue => "instance_creation::test_no_instance_creation_on_enqueue",

    /// A turn whose lock ran out can no longer be given back.
    RefusesLateAbandon => "lock_expiration::test_abandon_releases_lock_immediately",
    /// Messages of a turn given back are queued behind those that came later.
    RequeuesMessages => "instance_locking::test_completions_arriving_during_lock_blocked",

    /// Messages sent with a delay come after half of it.
    HalvesSendDelay => "queue_semantics::test_timer_delayed_visibility",
    /// A turn given back with a delay comes after half of it.
    HalvesAbandonDelay => "poison_message::orchestration_delayed_abandon_preserves_unlocked_rows",

    // ---- Activities -----------------------------------------------------------------------------
    /// The newest activity is fetched first.
    FetchesNewestWork => "queue_semantics::test_worker_queue_fifo_ordering",
    /// A fetch of several activities gives one more than asked for.
    FetchesOneTooMany => "several_at_once::several_activities_come_in_order",
    /// Several activities fetched at once come in reverse.
    ReversesSeveral => "several_at_once::several_activities_come_in_order",
    /// A fetch of several activities claims more than one session.
    BindsSeveralSessions => "several_at_once::several_activities_bind_one_session",
    /// Of several activities fetched at once only the first has to fit the tags.
    LooksAtFirstTagOnly => "several_at_once::several_activities_fit_the_tags",
    /// A fetch of several activities waits until there are so many.
    WaitsForSeveral => "several_at_once::several_wait_for_the_first_only",
    /// A fetch of several activities has them all, however large they are.
    ForgetsFetchBytes => "big_batches::several_at_once_are_bounded_together",
    /// Activities whose locks ended come together with others.
    MixesTriedWork => "tried::a_tried_activity_comes_alone",
    /// Activities that were given back come one by one.
    IsolatesGivenBackWork => "tried::given_back_activities_come_together",
    /// An activity whose lock ran out comes first again.
    KeepsPlaceOfLostWork => "tried::an_activity_whose_lock_ended_goes_behind",
    /// Tags are not filtered.
    IgnoresTags => "tag_filtering::test_default_only_fetches_untagged",
    /// A filter of tags lets untagged activities through, too.
    MixesInUntagged => "tag_filtering::test_tags_fetches_only_matching",
    /// A filter of several tags looks at one of them.
    LooksAtOneTag => "tag_filtering::test_multi_tag_filter",
    /// A filter that takes nothing takes what is untagged.
    TakesNoneForDefault => "tag_filtering::test_none_filter_returns_nothing",
    /// A commit loses the tags of its activities.
    LosesTags => "tag_filtering::test_tag_preserved_through_ack_orchestration_item",
    /// Attempts of activities count double.
    DoublesWorkAttempts => "poison_message::worker_attempt_count_starts_at_one",
    /// Every fetch of an activity is the first attempt.
    ForgetsWorkAttempts => "poison_message::worker_attempt_count_increments_on_lock_expiry",
    /// Locks of activities never run out.
    LocksWorkForever => "queue_semantics::test_lost_lock_token_handling",
    /// An answer loses the outcome.
    LosesOutcome => "queue_semantics::test_worker_ack_atomicity",
    /// An answer queues the outcome before it looks whether it may.
    QueuesOutcomeFirst => "queue_semantics::test_worker_ack_atomicity",
    /// An answer leaves the activity in the queue.
    KeepsAnsweredWork => "queue_semantics::test_worker_peek_lock_semantics",
    /// An answer with a lock that ran out goes through.
    AnswersWithExpiredLock => "lock_expiration::test_worker_ack_fails_after_lock_expiry",
    /// Renewing the lock of an activity does not extend it.
    RenewsWorkInVain => "lock_expiration::test_worker_lock_renewal_extends_timeout",
    /// Locks on activities that are held are said to be lost.
    LosesHeldWork => "tokens::lost_work_items_are_told",
    /// Locks on activities that are gone are said to be held.
    HidesLostWork => "tokens::lost_work_items_are_told",
    /// Renewing the lock of an activity succeeds after it ran out.
    RenewsExpiredWork => "lock_expiration::test_worker_lock_renewal_after_expiration",
    /// An activity given back stays locked.
    SwallowsWorkAbandon => "lock_expiration::test_abandon_work_item_releases_lock",
    /// An activity given back with a delay is visible at once.
    LosesWorkDelay => "lock_expiration::test_abandon_work_item_with_delay",
    /// Giving an activity back counts as an attempt, whatever is asked.
    CountsIgnoredWorkAttempts => "poison_message::abandon_work_item_ignore_attempt_decrements",

    /// Tags are not filtered for those who ask for sessions.
    IgnoresTagsInSessions => "tag_filtering::test_default_only_fetches_untagged",
    /// Locks of activities run out too soon.
    LocksWorkBriefly => "queue_semantics::test_lost_lock_token_handling",
    /// An answer goes through although somebody else has locked the activity since.
    AnswersWithReplacedLock => "lock_expiration::test_worker_ack_fails_after_lock_expiry",
    /// An activity whose lock ran out can no longer be given back.
    RefusesLateWorkAbandon => "lock_expiration::test_abandon_work_item_releases_lock",
    /// An activity given back is queued behind the others, as if it were new.
    RequeuesWork => "queue_semantics::test_worker_queue_fifo_ordering",
    /// An activity given back loses its tag.
    LosesTagOnAbandon => "tag_filtering::test_tag_survives_abandon_and_refetch",

    /// An activity given back with a delay comes after half of it.
    HalvesWorkDelay => "lock_expiration::test_abandon_work_item_with_delay",

    // ---- Sessions -------------------------------------------------------------------------------
    /// A session's activities go to everybody who asks for sessions.
    SharesSessions => "sessions::test_session_affinity_blocks_other_worker",
    /// Who asks for no sessions gets their activities, too.
    LeaksSessions => "sessions::test_none_session_skips_session_items",
    /// Who asks for sessions gets nothing else.
    WithholdsPlainWork => "sessions::test_non_session_items_returned_with_session_config",
    /// Leases of sessions never run out.
    LeasesForever => "sessions::test_session_claimable_after_lock_expiry",
    /// Renewing leases does not extend them.
    RenewsSessionsInVain => "sessions::test_session_lock_renewal_extends_past_original_timeout",
    /// Renewing leases renews idle ones, too.
    RenewsIdleSessions => "sessions::test_renew_session_lock_skips_idle",
    /// Renewing leases renews those of all owners.
    RenewsForeignSessions => "sessions::test_renew_session_lock_active",
    /// Renewing leases counts owners instead of leases.
    CountsOwners => "sessions::test_renew_session_lock_no_sessions",
    /// Only fetching counts as use of a session.
    CountsFetchesAsUseOnly => "sessions::test_ack_updates_session_last_activity",
    /// Cleaning up forgets leased sessions, too.
    ForgetsLeasedSessions => "sessions::test_cleanup_keeps_active_sessions",
    /// Cleaning up forgets nothing.
    ForgetsNoSessions => "sessions::test_cleanup_removes_expired_no_items",
    /// Cleaning up forgets sessions that have activities, too.
    ForgetsBusySessions => "sessions::test_cleanup_keeps_sessions_with_pending_items",

    /// A lease is as long as the lock of the activity.
    LeasesAsLongAsLocks => "sessions::test_session_lock_expires_new_owner_gets_redelivery",
    /// Giving an activity back gives its session to everybody.
    AbandonFreesSession => "sessions::test_abandoned_session_item_retryable",
    /// Answering an activity gives its session to everybody.
    AnswerFreesSession => "sessions::test_cleanup_keeps_active_sessions",

    /// Renewing leases counts those that ran out, too.
    CountsLapsedSessions => "sessions::test_renew_session_lock_after_expiry_returns_zero",

    // ---- Reading --------------------------------------------------------------------------------
    /// Reading an instance gives its first execution.
    ReadsFirstExecution => "multi_execution::test_latest_execution_detection",
    /// Reading one execution gives the latest.
    ReadsLatestExecution => "multi_execution::test_execution_isolation",
    /// Reading a damaged history gives an empty one.
    ReadsDamageAsEmpty => "error_handling::test_read_corrupted_history_returns_error",
    /// Reading a damaged history of one execution gives an empty one.
    ReadsDamagedExecutionAsEmpty =>
        "error_handling::test_read_with_execution_corrupted_history_returns_error",
    /// The version of the custom status stays at 1.
    FreezesStatusVersion => "custom_status::test_custom_status_version_increments",
    /// The custom status is always news.
    RepeatsStatus => "custom_status::test_custom_status_polling_no_change",
    /// A reset of the custom status is no news.
    HidesStatusReset => "custom_status::test_custom_status_clear",
    /// Empty values are missing.
    LosesEmptyValues => "kv_store::test_kv_empty_value",
    /// Long values are cut.
    CutsLongValues => "kv_store::test_kv_large_value",
    /// Values are read without those of the running execution.
    ReadsMergedValuesOnly => "kv_store::test_kv_delta_client_reads_merged",
    /// Removed values can still be read.
    KeepsClearedValues => "kv_store::test_kv_clear_single",
    /// Values of all instances are mixed.
    MixesInstances => "kv_store::test_kv_instance_isolation",
    /// An instance that does not exist has sizes.
    MeasuresUnknown => "management::test_get_instance_stats_nonexistent",
    /// The sizes leave out values of the running execution.
    MeasuresMergedValuesOnly => "management::test_get_instance_stats_kv_delta_only",
    /// The sizes leave out carried messages.
    MeasuresNoCarriedMessages => "management::test_get_instance_stats_carry_forward",

    /// The first custom status of a commit wins.
    TakesFirstStatus => "custom_status::test_custom_status_version_increments",
    /// A new execution begins without custom status.
    ForgetsStatusOfOldExecution => "custom_status::test_custom_status_none_preserves",
    /// Pruning takes the values along.
    PruneLosesValues => "kv_store::test_kv_prune_preserves_all_keys",
    /// Values outlive their instance.
    DeletionLeavesValues => "kv_store::test_kv_delete_instance_cascades",
    /// The sizes count the events of all executions.
    MeasuresAllExecutions => "management::test_get_instance_stats_history",

    /// Events appended outside a turn are lost.
    SwallowsAppend => "error_handling::test_duplicate_event_id_rejection",
    /// Events appended outside a turn with a taken id are skipped in silence.
    SkipsDuplicateAppend => "error_handling::test_duplicate_event_id_rejection",
    /// The sizes have no bytes of history.
    MeasuresNoBytes => "management::test_get_instance_stats_history",
    /// The sizes have no bytes of values.
    MeasuresNoValueBytes => "management::test_get_instance_stats_kv",

    // ---- Management -----------------------------------------------------------------------------
    /// Statuses are compared without regard to case.
    ListsAnyCase => "management::test_list_instances_by_status",
    /// Instances are listed by the status of any execution.
    ListsByOldStatus => "management::test_list_instances_by_status",
    /// The oldest instances are listed first.
    ListsOldestFirst => "management::test_list_instances",
    /// Executions are listed newest first.
    ListsExecutionsBackwards => "management::test_list_executions",
    /// An instance has been created at time 0.
    LosesCreationTime => "management::test_get_instance_info",
    /// An instance never changes its time.
    LosesUpdateTime => "management::test_get_instance_info",
    /// An ended execution has no end time.
    LosesEndTime => "management::test_get_execution_info",
    /// The events of an execution are miscounted.
    MiscountsEvents => "management::test_get_execution_info",
    /// All instances count as running.
    CountsAllAsRunning => "management::test_get_system_metrics",
    /// Queue depths include what is locked.
    CountsLockedRows => "management::test_get_queue_depths",
    /// Children of children are listed as children.
    ListsGrandchildren => "deletion::test_list_children",
    /// An instance that does not exist has no parent instead of an error.
    FindsParentOfUnknown => "deletion::test_delete_get_parent_id",
    /// The tree of an instance is the instance alone.
    CutsTree => "deletion::test_delete_get_instance_tree",
    /// Running instances are deleted without force.
    DeletesRunning => "deletion::test_delete_running_rejected_force_succeeds",
    /// A child can be deleted by itself.
    DeletesChildren => "deletion::test_cascade_delete_hierarchy",
    /// A deletion counts one instance, whatever it deleted.
    MiscountsDeleted => "deletion::test_cascade_delete_hierarchy",
    /// A deletion without force leaves queued messages.
    LeavesMessages => "deletion::test_delete_cleans_queues_and_locks",
    /// Deleting several instances deletes those before the one that is refused.
    DeletesOneByOne => "deletion::test_delete_instances_atomic_force",
    /// Deleting several instances takes their children along.
    DeletesOrphansToBe => "deletion::test_delete_instances_atomic_orphan_detection",
    /// Deleting what does not exist succeeds.
    DeletesUnknown => "deletion::test_delete_nonexistent_instance",
    /// Bulk deletion ignores which instances it is for.
    BulkIgnoresIds => "bulk_deletion::test_delete_instance_bulk_filter_combinations",
    /// Bulk deletion ignores its limit.
    BulkIgnoresLimit => "bulk_deletion::test_delete_instance_bulk_safety_and_limits",
    /// Bulk deletion ignores when instances ended.
    BulkIgnoresTime => "bulk_deletion::test_delete_instance_bulk_completed_before_filter",
    /// Bulk deletion deletes running instances that it is told by id.
    BulkDeletesRunning => "bulk_deletion::test_delete_instance_bulk_safety_and_limits",
    /// Pruning ignores how many to keep.
    PruneIgnoresNumber => "prune::test_prune_options_combinations",
    /// Pruning ignores when executions ended.
    PruneIgnoresTime => "prune::test_prune_options_combinations",
    /// Pruning keeps one execution too many.
    PruneKeepsOneMore => "prune::test_prune_options_combinations",
    /// Pruning takes the current execution.
    PrunesCurrent => "prune::test_prune_safety",
    /// Pruning what does not exist succeeds.
    PrunesUnknown => "prune::test_prune_safety",
    /// Bulk pruning leaves running instances alone.
    BulkPruneSkipsRunning => "prune::test_prune_bulk_includes_running_instances",
    /// Bulk pruning ignores which instances it is for.
    BulkPruneIgnoresIds => "prune::test_prune_bulk",
    /// Queue depths leave out what was given back for a while.
    CountsVisibleRowsOnly => "management::test_get_queue_depths",
    /// Queue depths count timers that are not due.
    CountsSleepingTimers => "management::test_get_queue_depths",
    /// Instance information shows the first execution.
    ShowsFirstExecution => "management::test_get_instance_info",
    /// Instance information does not show the parent.
    ShowsNoParent => "management::test_get_instance_info",
    /// A deletion leaves queued activities.
    LeavesWork => "deletion::test_delete_cleans_queues_and_locks",
    /// A deletion leaves the queued starts of children.
    LeavesStarts => "incarnations::queued_children_go_with_their_parent",
    /// A deletion leaves the starts of children that were given back for later.
    LeavesDelayedStarts => "incarnations::a_delayed_child_goes_with_its_parent",
    /// A deletion leaves the starts of children that somebody has fetched.
    LeavesFetchedStarts => "incarnations::a_child_in_its_first_turn_goes_with_its_parent",
    /// A deletion leaves what else was sent to children that have not begun.
    LeavesMailOfStarts => "incarnations::queued_children_go_with_their_parent",
    /// A deletion leaves starts of children that are for instances of others.
    LeavesStartsForOthers => "incarnations::a_start_for_somebody_else_is_taken_back",
    /// Bulk deletion leaves the queued starts of children.
    BulkLeavesStarts => "incarnations::ended_parents_take_queued_children_along",
    /// A child whose parent does not exist cannot be deleted.
    KeepsOrphans => "incarnations::a_child_without_parent_is_a_root",
    /// All instances have the same number.
    HasOneIncarnation => "incarnations::lives_have_different_numbers",
    /// The answers of children are delivered after their parent was deleted.
    DeliversLateAnswers => "incarnations::no_answer_reaches_the_next_life",
    /// A deletion leaves the custom status.
    LeavesCustomStatus => "deletion::test_delete_terminal_instances",
    /// Bulk deletion takes an empty list of ids for none.
    BulkTakesNoIdsForAll => "bulk_deletion::test_delete_instance_bulk_filter_combinations",
    /// Bulk deletion takes children that it is told by id.
    BulkDeletesChildren => "bulk_deletion::test_delete_instance_bulk_safety_and_limits",
    /// Bulk deletion takes what ended just at the given time.
    BulkIncludesTime => "bulk_deletion::test_delete_instance_bulk_completed_before_filter",
    /// Pruning takes what ended just at the given time.
    PruneIncludesTime => "prune::test_prune_options_combinations",
    /// Bulk pruning counts only instances that lost something.
    BulkPruneCountsChanged => "prune::test_prune_bulk",
    /// An instance that does not exist has information.
    InventsInstances => "management::test_get_instance_info",
    /// An execution that does not exist has information.
    InventsExecutions => "management::test_get_execution_info",
    /// The latest execution is always the first.
    LatestIsFirst => "multi_execution::test_latest_execution_detection",
    /// Administrators read the first execution instead of the newest.
    AdminReadsFirst => "management::test_list_executions",
    /// Administrators read the newest execution, whichever they ask for.
    AdminReadsNewest => "management::test_list_executions",
    /// Only current executions are counted.
    CountsCurrentExecutionsOnly => "management::test_get_system_metrics",
    /// Failed instances count as completed.
    CountsFailedAsCompleted => "management::test_get_system_metrics",
    /// Events are not counted.
    CountsNoEvents => "management::test_get_system_metrics",
    /// Instance information does not show the output.
    ShowsNoOutput => "management::test_get_instance_info",
    /// Children are listed without those that ended.
    ListsRunningChildrenOnly => "deletion::test_list_children",
}
