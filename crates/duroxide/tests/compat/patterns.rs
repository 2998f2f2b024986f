//! Exhaustive patterns over every public enum and struct: no wildcard, no `..` where all fields are
//! public. A variant or field that came or went breaks callers, and this.

use std::fmt::Debug;

use duroxide::providers::*;
use duroxide::runtime::observability::MetricsSnapshot;
use duroxide::runtime::replay_engine::TurnResult;
use duroxide::runtime::{
    HistoryManager, LogFormat, ObservabilityConfig, OrchestrationDescriptor,
    UnregisteredBackoffConfig, VersionPolicy, WorkItemReader, kind_of,
};
use duroxide::*;

use crate::samples;

/// The variant's name as `Debug` prints it.
fn name(value: &impl Debug) -> String {
    let text = format!("{value:?}");
    text.split([' ', '(']).next().unwrap_or_default().to_owned()
}

/// Declares a function with an exhaustive match over an enum that names each variant, and checks
/// that the samples have each of them.
macro_rules! exhaustive {
    ($test:ident: $enum:ty = $samples:expr; $($(#[$cfg:meta])* $pattern:pat => $name:literal,)+) => {
        #[test]
        fn $test() {
            #[allow(unused_variables)]
            fn variant(value: &$enum) -> &'static str {
                match value { $($(#[$cfg])* $pattern => $name,)+ }
            }
            let samples = $samples;
            let found: Vec<&str> = samples.iter().map(variant).collect();
            let expected: Vec<String> = samples.iter().map(name).collect();
            assert_eq!(found, expected);
            $($(#[$cfg])* assert!(found.contains(&$name), "no sample of {}", $name);)+
        }
    };
}

exhaustive! { event_kind: EventKind = samples::event_kinds();
    EventKind::OrchestrationStarted {
        name, version, input, parent_instance, parent_id, parent_execution_id,
        carry_forward_events, initial_custom_status,
    } => "OrchestrationStarted",
    EventKind::OrchestrationCompleted { output } => "OrchestrationCompleted",
    EventKind::OrchestrationFailed { details } => "OrchestrationFailed",
    EventKind::ActivityScheduled { name, input, session_id, tag } => "ActivityScheduled",
    EventKind::ActivityCompleted { result } => "ActivityCompleted",
    EventKind::ActivityFailed { details } => "ActivityFailed",
    EventKind::ActivityCancelRequested { reason } => "ActivityCancelRequested",
    EventKind::TimerCreated { fire_at_ms } => "TimerCreated",
    EventKind::TimerFired { fire_at_ms } => "TimerFired",
    EventKind::ExternalSubscribed { name } => "ExternalSubscribed",
    EventKind::ExternalEvent { name, data } => "ExternalEvent",
    EventKind::OrchestrationChained { name, instance, input } => "OrchestrationChained",
    EventKind::SubOrchestrationScheduled { name, instance, input } => "SubOrchestrationScheduled",
    EventKind::SubOrchestrationCompleted { result } => "SubOrchestrationCompleted",
    EventKind::SubOrchestrationFailed { details } => "SubOrchestrationFailed",
    EventKind::SubOrchestrationCancelRequested { reason } => "SubOrchestrationCancelRequested",
    EventKind::OrchestrationContinuedAsNew { input } => "OrchestrationContinuedAsNew",
    EventKind::OrchestrationCancelRequested { reason } => "OrchestrationCancelRequested",
    EventKind::ExternalSubscribedCancelled { reason } => "ExternalSubscribedCancelled",
    EventKind::QueueSubscribed { name } => "QueueSubscribed",
    EventKind::QueueEventDelivered { name, data } => "QueueEventDelivered",
    EventKind::QueueSubscriptionCancelled { reason } => "QueueSubscriptionCancelled",
    EventKind::CustomStatusUpdated { status } => "CustomStatusUpdated",
    EventKind::KeyValueSet { key, value, last_updated_at_ms } => "KeyValueSet",
    EventKind::KeyValueCleared { key } => "KeyValueCleared",
    EventKind::KeyValuesCleared => "KeyValuesCleared",
    #[cfg(feature = "replay-version-test")]
    EventKind::ExternalSubscribed2 { name, topic } => "ExternalSubscribed2",
    #[cfg(feature = "replay-version-test")]
    EventKind::ExternalEvent2 { name, topic, data } => "ExternalEvent2",
}

exhaustive! { work_item: WorkItem = samples::work_items();
    WorkItem::StartOrchestration {
        instance, orchestration, input, version, parent_instance, parent_id,
        parent_execution_id, execution_id,
    } => "StartOrchestration",
    WorkItem::ActivityExecute {
        instance, execution_id, id, name, input, session_id, tag,
    } => "ActivityExecute",
    WorkItem::ActivityCompleted { instance, execution_id, id, result } => "ActivityCompleted",
    WorkItem::ActivityFailed { instance, execution_id, id, details } => "ActivityFailed",
    WorkItem::TimerFired { instance, execution_id, id, fire_at_ms } => "TimerFired",
    WorkItem::ExternalRaised { instance, name, data } => "ExternalRaised",
    WorkItem::SubOrchCompleted {
        parent_instance, parent_execution_id, parent_id, result,
    } => "SubOrchCompleted",
    WorkItem::SubOrchFailed {
        parent_instance, parent_execution_id, parent_id, details,
    } => "SubOrchFailed",
    WorkItem::CancelInstance { instance, reason } => "CancelInstance",
    WorkItem::ContinueAsNew {
        instance, orchestration, input, version, parent_instance, parent_id,
        parent_execution_id, carry_forward_events, initial_custom_status,
    } => "ContinueAsNew",
    WorkItem::QueueMessage { instance, name, data } => "QueueMessage",
    #[cfg(feature = "replay-version-test")]
    WorkItem::ExternalRaised2 { instance, name, topic, data } => "ExternalRaised2",
}

#[test]
fn kind_of_is_the_variant_but_for_queue_messages() {
    for item in samples::work_items() {
        let expected = match name(&item).as_str() {
            "QueueMessage" => "ExternalRaisedPersistent".to_owned(),
            other => other.to_owned(),
        };
        assert_eq!(kind_of(&item), expected);
    }
}

exhaustive! { action: Action = samples::actions();
    Action::CallActivity { scheduling_event_id, name, input, session_id, tag } => "CallActivity",
    Action::CreateTimer { scheduling_event_id, fire_at_ms } => "CreateTimer",
    Action::WaitExternal { scheduling_event_id, name } => "WaitExternal",
    Action::StartOrchestrationDetached {
        scheduling_event_id, name, version, instance, input,
    } => "StartOrchestrationDetached",
    Action::StartSubOrchestration {
        scheduling_event_id, name, version, instance, input,
    } => "StartSubOrchestration",
    Action::ContinueAsNew { input, version } => "ContinueAsNew",
    Action::UpdateCustomStatus { status } => "UpdateCustomStatus",
    Action::DequeueEvent { scheduling_event_id, name } => "DequeueEvent",
    Action::SetKeyValue { key, value, last_updated_at_ms } => "SetKeyValue",
    Action::ClearKeyValue { key } => "ClearKeyValue",
    Action::ClearKeyValues => "ClearKeyValues",
    #[cfg(feature = "replay-version-test")]
    Action::WaitExternal2 { scheduling_event_id, name, topic } => "WaitExternal2",
}

exhaustive! { error_details: ErrorDetails = samples::errors();
    ErrorDetails::Infrastructure { operation, message, retryable } => "Infrastructure",
    ErrorDetails::Configuration {
        kind: ConfigErrorKind::Nondeterminism, resource, message,
    } => "Configuration",
    ErrorDetails::Application {
        kind: AppErrorKind::ActivityFailed
            | AppErrorKind::OrchestrationFailed
            | AppErrorKind::Panicked
            | AppErrorKind::Cancelled { reason: _ },
        message, retryable,
    } => "Application",
    ErrorDetails::Poison {
        attempt_count, max_attempts,
        message_type: PoisonMessageType::Orchestration { instance: _, execution_id: _ }
            | PoisonMessageType::Activity {
                instance: _, execution_id: _, activity_name: _, activity_id: _,
            }
            | PoisonMessageType::FailedDeserialization { instance: _, execution_id: _, error: _ },
        message,
    } => "Poison",
}

exhaustive! { client_error: ClientError = samples::client_errors();
    ClientError::Provider(ProviderError { operation, message, retryable }) => "Provider",
    ClientError::ManagementNotAvailable => "ManagementNotAvailable",
    ClientError::InvalidInput { message } => "InvalidInput",
    ClientError::Timeout => "Timeout",
    ClientError::InstanceStillRunning { instance_id } => "InstanceStillRunning",
    ClientError::CannotDeleteSubOrchestration { instance_id } => "CannotDeleteSubOrchestration",
    ClientError::InstanceNotFound { instance_id } => "InstanceNotFound",
}

exhaustive! { orchestration_status: OrchestrationStatus = samples::statuses();
    OrchestrationStatus::NotFound => "NotFound",
    OrchestrationStatus::Running { custom_status, custom_status_version } => "Running",
    OrchestrationStatus::Completed { output, custom_status, custom_status_version } => "Completed",
    OrchestrationStatus::Failed { details, custom_status, custom_status_version } => "Failed",
}

exhaustive! { schedule_kind: ScheduleKind = samples::schedule_kinds();
    ScheduleKind::Activity { name } => "Activity",
    ScheduleKind::Timer => "Timer",
    ScheduleKind::ExternalWait { event_name } => "ExternalWait",
    ScheduleKind::QueueDequeue { event_name } => "QueueDequeue",
    ScheduleKind::SubOrchestration { token } => "SubOrchestration",
}

exhaustive! { backoff: BackoffStrategy = samples::backoffs();
    BackoffStrategy::None => "None",
    BackoffStrategy::Fixed { delay } => "Fixed",
    BackoffStrategy::Linear { base, max } => "Linear",
    BackoffStrategy::Exponential { base, multiplier, max } => "Exponential",
}

exhaustive! { tag_filter: TagFilter = samples::tag_filters();
    TagFilter::DefaultOnly => "DefaultOnly",
    TagFilter::Tags(tags) => "Tags",
    TagFilter::DefaultAnd(tags) => "DefaultAnd",
    TagFilter::Any => "Any",
    TagFilter::None => "None",
}

exhaustive! { completion_result: CompletionResult = samples::completion_results();
    CompletionResult::ActivityOk(result) => "ActivityOk",
    CompletionResult::ActivityErr(error) => "ActivityErr",
    CompletionResult::TimerFired => "TimerFired",
    CompletionResult::SubOrchOk(result) => "SubOrchOk",
    CompletionResult::SubOrchErr(error) => "SubOrchErr",
    CompletionResult::ExternalData(data) => "ExternalData",
}

// R12.11
exhaustive! { turn_result: TurnResult = samples::turn_results();
    TurnResult::Continue => "Continue",
    TurnResult::Completed(output) => "Completed",
    TurnResult::Failed(details) => "Failed",
    TurnResult::ContinueAsNew { input, version, unconsumed_queue_arrivals } => "ContinueAsNew",
    TurnResult::Cancelled(reason) => "Cancelled",
}

exhaustive! { log_format: LogFormat = samples::log_formats();
    LogFormat::Json => "Json",
    LogFormat::Pretty => "Pretty",
    LogFormat::Compact => "Compact",
}

exhaustive! { log_level: LogLevel = samples::log_levels();
    LogLevel::Info => "Info",
    LogLevel::Warn => "Warn",
    LogLevel::Error => "Error",
}

exhaustive! { version_policy: VersionPolicy = samples::version_policies();
    VersionPolicy::Latest => "Latest",
    VersionPolicy::Exact(version) => "Exact",
}

exhaustive! { either2: Either2<u8, &str> = [Either2::First(1), Either2::Second("b")];
    Either2::First(a) => "First",
    Either2::Second(b) => "Second",
}

exhaustive! { either3: Either3<u8, &str, ()> =
    [Either3::First(1), Either3::Second("b"), Either3::Third(())];
    Either3::First(a) => "First",
    Either3::Second(b) => "Second",
    Either3::Third(c) => "Third",
}

/// Takes every struct apart, field by field.
#[allow(unused_variables)]
fn destructure_what_is_recorded(event: Event, stats: SystemStats, policy: RetryPolicy) {
    let Event {
        event_id,
        source_event_id,
        instance_id,
        execution_id,
        timestamp_ms,
        duroxide_version,
        kind,
    } = event;
    let SystemStats {
        history_event_count,
        history_size_bytes,
        queue_pending_count,
        kv_user_key_count,
        kv_total_value_bytes,
    } = stats;
    let RetryPolicy { max_attempts, backoff, timeout } = policy;
    let OrchestrationDescriptor { name, version, parent_instance, parent_id } =
        samples::descriptor();
}

#[allow(unused_variables)]
fn destructure_settings(options: RuntimeOptions) {
    let RuntimeOptions {
        dispatcher_min_poll_interval,
        dispatcher_long_poll_timeout,
        orchestration_concurrency,
        worker_concurrency,
        orchestrator_lock_timeout,
        orchestrator_lock_renewal_buffer,
        worker_lock_timeout,
        worker_lock_renewal_buffer,
        observability:
            ObservabilityConfig {
                log_format,
                log_level,
                service_name,
                service_version,
                gauge_poll_interval,
            },
        unregistered_backoff: UnregisteredBackoffConfig { base_delay, max_delay },
        max_attempts,
        activity_cancellation_grace_period,
        supported_replay_versions,
        session_lock_timeout,
        session_lock_renewal_buffer,
        session_idle_timeout,
        session_cleanup_interval,
        max_sessions_per_runtime,
        worker_node_id,
        worker_tag_filter,
    } = options;
}

#[allow(unused_variables)]
fn destructure_metrics(snapshot: MetricsSnapshot) {
    let MetricsSnapshot {
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
    } = snapshot;
}

#[allow(unused_variables)]
fn destructure_engine(reader: WorkItemReader, manager: HistoryManager) {
    let WorkItemReader {
        start_item,
        completion_messages,
        orchestration_name,
        input,
        version,
        parent_instance,
        parent_id,
        parent_execution_id,
        is_continue_as_new,
    } = reader;
    // The history itself is private.
    let HistoryManager {
        orchestration_name,
        orchestration_version,
        orchestration_input,
        parent_instance,
        parent_id,
        parent_execution_id,
        is_completed,
        is_failed,
        is_continued_as_new,
        current_execution_id,
        ..
    } = manager;
}

// R8.1
#[allow(unused_variables)]
fn destructure_store(item: OrchestrationItem, metadata: ExecutionMetadata) {
    let OrchestrationItem {
        instance,
        orchestration_name,
        execution_id,
        version,
        history,
        messages,
        history_error,
        kv_snapshot,
    } = item;
    for KvEntry { value, last_updated_at_ms } in kv_snapshot.into_values() {}
    let ExecutionMetadata {
        status,
        output,
        orchestration_name,
        orchestration_version,
        parent_instance_id,
        pinned_duroxide_version,
    } = metadata;
    let DispatcherCapabilityFilter { supported_duroxide_versions } = samples::filter();
    for SemverRange { min, max } in supported_duroxide_versions {}
    let SessionFetchConfig { owner_id, lock_timeout } = samples::session();
    let ScheduledActivityIdentifier { instance, execution_id, activity_id } =
        samples::activity_id();
}

#[allow(unused_variables)]
fn destructure_management(all: samples::Management) {
    let InstanceInfo {
        instance_id,
        orchestration_name,
        orchestration_version,
        current_execution_id,
        status,
        output,
        created_at,
        updated_at,
        parent_instance_id,
    } = all.instance;
    let ExecutionInfo { execution_id, status, output, started_at, completed_at, event_count } =
        all.execution;
    let SystemMetrics {
        total_instances,
        total_executions,
        running_instances,
        completed_instances,
        failed_instances,
        total_events,
    } = all.metrics;
    let QueueDepths { orchestrator_queue, worker_queue, timer_queue } = all.depths;
    let InstanceFilter { instance_ids, completed_before, limit } = all.filter;
    let PruneOptions { keep_last, completed_before } = all.prune;
    let DeleteInstanceResult {
        instances_deleted,
        executions_deleted,
        events_deleted,
        queue_messages_deleted,
    } = all.deleted;
    let PruneResult { instances_processed, executions_deleted, events_deleted } = all.pruned;
    let InstanceTree { root_id, all_ids } = all.tree;
}

#[test]
fn structs_come_apart_as_they_were_built() {
    let kind = EventKind::KeyValuesCleared;
    destructure_what_is_recorded(samples::event(kind), samples::stats(), samples::retry_policy());
    destructure_settings(samples::options());
    destructure_metrics(samples::metrics_snapshot());
    destructure_engine(samples::reader(), HistoryManager::from_history(&[]));
    destructure_store(samples::item(), samples::metadata());
    destructure_management(samples::management());
}
