//! One value of every public data type, built as callers build them: literals with all fields, and
//! every variant of every enum.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use duroxide::providers::*;
use duroxide::runtime::observability::MetricsSnapshot;
use duroxide::runtime::registry::VersionPolicy;
use duroxide::runtime::replay_engine::TurnResult;
use duroxide::runtime::{
    LogFormat, ObservabilityConfig, OrchestrationDescriptor, UnregisteredBackoffConfig,
    WorkItemReader,
};
use duroxide::*;
use semver::Version;

pub(crate) fn s(text: &str) -> String {
    text.to_owned()
}

const SECOND: Duration = Duration::from_secs(1);

pub(crate) fn event(kind: EventKind) -> Event {
    Event {
        event_id: 7,
        source_event_id: None,
        instance_id: s("inst-1"),
        execution_id: 1,
        timestamp_ms: 1_700_000_000_000,
        duroxide_version: s("0.1.32"),
        kind,
    }
}

pub(crate) fn error() -> ErrorDetails {
    ErrorDetails::Application {
        kind: AppErrorKind::ActivityFailed,
        message: s("boom"),
        retryable: false,
    }
}

pub(crate) fn event_kinds() -> Vec<EventKind> {
    let details = error();
    let reason = s("dropped_future");
    let mut kinds = vec![
        EventKind::OrchestrationStarted {
            name: s("Hello"),
            version: s("1.0.0"),
            input: s("in"),
            parent_instance: Some(s("p")),
            parent_id: Some(5),
            parent_execution_id: Some(2),
            carry_forward_events: Some(vec![(s("q"), s("m1"))]),
            initial_custom_status: Some(s("50%")),
        },
        EventKind::OrchestrationCompleted { output: s("out") },
        EventKind::OrchestrationFailed { details: details.clone() },
        EventKind::ActivityScheduled {
            name: s("A"),
            input: s("in"),
            session_id: Some(s("sess-1")),
            tag: Some(s("gpu")),
        },
        EventKind::ActivityCompleted { result: s("r") },
        EventKind::ActivityFailed { details: details.clone() },
        EventKind::ActivityCancelRequested { reason: reason.clone() },
        EventKind::TimerCreated { fire_at_ms: 1_700_000_005_000 },
        EventKind::TimerFired { fire_at_ms: 1_700_000_005_000 },
        EventKind::ExternalSubscribed { name: s("Approve") },
        EventKind::ExternalEvent { name: s("Approve"), data: s("yes") },
    ];
    kinds.extend([
        EventKind::OrchestrationChained { name: s("O"), instance: s("o-1"), input: s("in") },
        EventKind::SubOrchestrationScheduled { name: s("C"), instance: s("sub::2"), input: s("") },
        EventKind::SubOrchestrationCompleted { result: s("r") },
        EventKind::SubOrchestrationFailed { details },
        EventKind::SubOrchestrationCancelRequested { reason: reason.clone() },
        EventKind::OrchestrationContinuedAsNew { input: s("next") },
        EventKind::OrchestrationCancelRequested { reason: s("user asked") },
        EventKind::ExternalSubscribedCancelled { reason: reason.clone() },
        EventKind::QueueSubscribed { name: s("q") },
        EventKind::QueueEventDelivered { name: s("q"), data: s("m") },
        EventKind::QueueSubscriptionCancelled { reason },
        EventKind::CustomStatusUpdated { status: Some(s("50%")) },
        EventKind::KeyValueSet { key: s("k"), value: s("v"), last_updated_at_ms: 1 },
        EventKind::KeyValueCleared { key: s("k") },
        EventKind::KeyValuesCleared,
    ]);
    #[cfg(feature = "replay-version-test")]
    kinds.extend([
        EventKind::ExternalSubscribed2 { name: s("n"), topic: s("t") },
        EventKind::ExternalEvent2 { name: s("n"), topic: s("t"), data: s("d") },
    ]);
    kinds
}

pub(crate) fn work_items() -> Vec<WorkItem> {
    let instance = s("i");
    #[allow(unused_mut)]
    let mut items = vec![
        WorkItem::StartOrchestration {
            instance: s("p::sub::2"),
            orchestration: s("Child"),
            input: s("in"),
            version: Some(s("1.0.0")),
            parent_instance: Some(s("p")),
            parent_id: Some(2),
            parent_execution_id: Some(1),
            execution_id: INITIAL_EXECUTION_ID,
        },
        WorkItem::ActivityExecute {
            instance: instance.clone(),
            execution_id: 1,
            id: 2,
            name: s("A"),
            input: s("in"),
            session_id: None,
            tag: None,
        },
        WorkItem::ActivityCompleted {
            instance: instance.clone(),
            execution_id: 1,
            id: 2,
            result: s("r"),
        },
        WorkItem::ActivityFailed {
            instance: instance.clone(),
            execution_id: 1,
            id: 2,
            details: error(),
        },
        WorkItem::TimerFired { instance: instance.clone(), execution_id: 1, id: 3, fire_at_ms: 5 },
        WorkItem::ExternalRaised { instance: instance.clone(), name: s("Go"), data: s("yes") },
        WorkItem::CancelInstance { instance: instance.clone(), reason: s("user asked") },
        WorkItem::QueueMessage { instance, name: s("q"), data: s("m") },
    ];
    items.extend(family_items());
    #[cfg(feature = "replay-version-test")]
    items.push(WorkItem::ExternalRaised2 {
        instance: s("i"),
        name: s("n"),
        topic: s("t"),
        data: s("d"),
    });
    items
}

fn family_items() -> [WorkItem; 3] {
    [
        WorkItem::SubOrchCompleted {
            parent_instance: s("p"),
            parent_execution_id: 1,
            parent_id: 2,
            result: s("r"),
        },
        WorkItem::SubOrchFailed {
            parent_instance: s("p"),
            parent_execution_id: 1,
            parent_id: 2,
            details: error(),
        },
        WorkItem::ContinueAsNew {
            instance: s("i"),
            orchestration: s("Hello"),
            input: s("next"),
            version: Some(s("2.0.0")),
            parent_instance: Some(s("p")),
            parent_id: Some(2),
            parent_execution_id: Some(1),
            carry_forward_events: vec![(s("q"), s("m1"))],
            initial_custom_status: Some(s("50%")),
        },
    ]
}

pub(crate) fn errors() -> Vec<ErrorDetails> {
    let poison = |message_type| ErrorDetails::Poison {
        attempt_count: 11,
        max_attempts: 10,
        message_type,
        message: s("{}"),
    };
    let app = |kind| ErrorDetails::Application { kind, message: s("boom"), retryable: false };
    let (instance, execution_id) = (s("inst-1"), 1);
    vec![
        ErrorDetails::Infrastructure {
            operation: s("ack_orchestration_item"),
            message: s("db down"),
            retryable: true,
        },
        ErrorDetails::Configuration {
            kind: ConfigErrorKind::Nondeterminism,
            resource: s("MyOrch"),
            message: Some(s("schedule mismatch")),
        },
        app(AppErrorKind::ActivityFailed),
        app(AppErrorKind::OrchestrationFailed),
        app(AppErrorKind::Panicked),
        app(AppErrorKind::Cancelled { reason: s("user asked") }),
        poison(PoisonMessageType::Orchestration { instance: instance.clone(), execution_id }),
        poison(PoisonMessageType::Activity {
            instance: instance.clone(),
            execution_id,
            activity_name: s("A"),
            activity_id: 2,
        }),
        poison(PoisonMessageType::FailedDeserialization {
            instance,
            execution_id,
            error: s("unknown variant"),
        }),
    ]
}

pub(crate) fn actions() -> Vec<Action> {
    let scheduling_event_id = 2;
    #[allow(unused_mut)]
    let mut actions = vec![
        Action::CallActivity {
            scheduling_event_id,
            name: s("A"),
            input: s("in"),
            session_id: None,
            tag: None,
        },
        Action::CreateTimer { scheduling_event_id, fire_at_ms: 5 },
        Action::WaitExternal { scheduling_event_id, name: s("Go") },
        Action::StartOrchestrationDetached {
            scheduling_event_id,
            name: s("O"),
            version: None,
            instance: s("o-1"),
            input: s("in"),
        },
        Action::StartSubOrchestration {
            scheduling_event_id,
            name: s("C"),
            version: None,
            instance: s("sub::2"),
            input: s("in"),
        },
        Action::ContinueAsNew { input: s("n"), version: None },
        Action::UpdateCustomStatus { status: None },
        Action::DequeueEvent { scheduling_event_id, name: s("q") },
        Action::SetKeyValue { key: s("k"), value: s("v"), last_updated_at_ms: 1 },
        Action::ClearKeyValue { key: s("k") },
        Action::ClearKeyValues,
    ];
    #[cfg(feature = "replay-version-test")]
    actions.push(Action::WaitExternal2 { scheduling_event_id, name: s("n"), topic: s("t") });
    actions
}

pub(crate) fn client_errors() -> [ClientError; 7] {
    let instance_id = s("x");
    [
        ClientError::Provider(ProviderError {
            operation: s("op"),
            message: s("msg"),
            retryable: true,
        }),
        ClientError::ManagementNotAvailable,
        ClientError::InvalidInput { message: s("m") },
        ClientError::Timeout,
        ClientError::InstanceStillRunning { instance_id: instance_id.clone() },
        ClientError::CannotDeleteSubOrchestration { instance_id: instance_id.clone() },
        ClientError::InstanceNotFound { instance_id },
    ]
}

pub(crate) fn statuses() -> [OrchestrationStatus; 4] {
    let (custom_status, custom_status_version) = (None, 0);
    [
        OrchestrationStatus::NotFound,
        OrchestrationStatus::Running { custom_status: Some(s("50%")), custom_status_version: 3 },
        OrchestrationStatus::Completed {
            output: s("out"),
            custom_status: custom_status.clone(),
            custom_status_version,
        },
        OrchestrationStatus::Failed { details: error(), custom_status, custom_status_version },
    ]
}

pub(crate) fn schedule_kinds() -> [ScheduleKind; 5] {
    [
        ScheduleKind::Activity { name: s("A") },
        ScheduleKind::Timer,
        ScheduleKind::ExternalWait { event_name: s("Go") },
        ScheduleKind::QueueDequeue { event_name: s("q") },
        ScheduleKind::SubOrchestration { token: 3 },
    ]
}

pub(crate) fn backoffs() -> [BackoffStrategy; 4] {
    [
        BackoffStrategy::None,
        BackoffStrategy::Fixed { delay: SECOND },
        BackoffStrategy::Linear { base: SECOND, max: 3 * SECOND },
        BackoffStrategy::Exponential { base: SECOND, multiplier: 2.0, max: 3 * SECOND },
    ]
}

pub(crate) fn tag_filters() -> [TagFilter; 5] {
    let tags = HashSet::from([s("gpu")]);
    [
        TagFilter::DefaultOnly,
        TagFilter::Tags(tags.clone()),
        TagFilter::DefaultAnd(tags),
        TagFilter::Any,
        TagFilter::None,
    ]
}

pub(crate) fn completion_results() -> [CompletionResult; 6] {
    [
        CompletionResult::ActivityOk(s("r")),
        CompletionResult::ActivityErr(s("e")),
        CompletionResult::TimerFired,
        CompletionResult::SubOrchOk(s("r")),
        CompletionResult::SubOrchErr(s("e")),
        CompletionResult::ExternalData(s("d")),
    ]
}

pub(crate) fn turn_results() -> [TurnResult; 5] {
    [
        TurnResult::Continue,
        TurnResult::Completed(s("out")),
        TurnResult::Failed(error()),
        TurnResult::ContinueAsNew {
            input: s("n"),
            version: None,
            unconsumed_queue_arrivals: Some(vec![(s("q"), s("m"))]),
        },
        TurnResult::Cancelled(s("user asked")),
    ]
}

pub(crate) fn log_formats() -> [LogFormat; 3] {
    [LogFormat::Json, LogFormat::Pretty, LogFormat::Compact]
}

pub(crate) fn log_levels() -> [LogLevel; 3] {
    [LogLevel::Info, LogLevel::Warn, LogLevel::Error]
}

pub(crate) fn version_policies() -> [VersionPolicy; 2] {
    [VersionPolicy::Latest, VersionPolicy::Exact(Version::new(1, 2, 0))]
}

pub(crate) fn retry_policy() -> RetryPolicy {
    RetryPolicy { max_attempts: 3, backoff: BackoffStrategy::None, timeout: Some(SECOND) }
}

pub(crate) fn stats() -> SystemStats {
    SystemStats {
        history_event_count: 1,
        history_size_bytes: 2,
        queue_pending_count: 3,
        kv_user_key_count: 4,
        kv_total_value_bytes: 5,
    }
}

pub(crate) fn descriptor() -> OrchestrationDescriptor {
    OrchestrationDescriptor {
        name: s("Hello"),
        version: s("1.0.0"),
        parent_instance: None,
        parent_id: None,
    }
}

pub(crate) fn observability() -> ObservabilityConfig {
    ObservabilityConfig {
        log_format: LogFormat::Pretty,
        log_level: s("info"),
        service_name: s("duroxide"),
        service_version: None,
        gauge_poll_interval: 60 * SECOND,
    }
}

pub(crate) fn options() -> RuntimeOptions {
    RuntimeOptions {
        dispatcher_min_poll_interval: SECOND / 10,
        dispatcher_long_poll_timeout: 30 * SECOND,
        orchestration_concurrency: 2,
        worker_concurrency: 2,
        orchestrator_lock_timeout: 5 * SECOND,
        orchestrator_lock_renewal_buffer: 2 * SECOND,
        worker_lock_timeout: 30 * SECOND,
        worker_lock_renewal_buffer: 5 * SECOND,
        observability: observability(),
        unregistered_backoff: UnregisteredBackoffConfig {
            base_delay: SECOND,
            max_delay: 60 * SECOND,
        },
        max_attempts: 10,
        activity_cancellation_grace_period: 10 * SECOND,
        supported_replay_versions: None,
        session_lock_timeout: 30 * SECOND,
        session_lock_renewal_buffer: 5 * SECOND,
        session_idle_timeout: 300 * SECOND,
        session_cleanup_interval: 300 * SECOND,
        max_sessions_per_runtime: 10,
        worker_node_id: None,
        worker_tag_filter: TagFilter::DefaultOnly,
    }
}

pub(crate) fn metrics_snapshot() -> MetricsSnapshot {
    MetricsSnapshot {
        orch_starts: 0,
        orch_completions: 0,
        orch_failures: 0,
        orch_application_errors: 0,
        orch_infrastructure_errors: 0,
        orch_configuration_errors: 0,
        orch_poison: 0,
        activity_success: 0,
        activity_app_errors: 0,
        activity_infra_errors: 0,
        activity_config_errors: 0,
        activity_poison: 0,
        orch_dispatcher_items_fetched: 0,
        worker_dispatcher_items_fetched: 0,
        orch_continue_as_new: 0,
        suborchestration_calls: 0,
        provider_errors: 0,
    }
}

pub(crate) fn reader() -> WorkItemReader {
    WorkItemReader {
        start_item: None,
        completion_messages: Vec::new(),
        orchestration_name: s("Hello"),
        input: s("in"),
        version: None,
        parent_instance: None,
        parent_id: None,
        parent_execution_id: None,
        is_continue_as_new: false,
    }
}

pub(crate) fn item() -> OrchestrationItem {
    let entry = KvEntry { value: s("v"), last_updated_at_ms: 1 };
    OrchestrationItem {
        instance: s("i"),
        orchestration_name: s("Hello"),
        execution_id: 1,
        version: s("1.0.0"),
        history: Vec::new(),
        messages: Vec::new(),
        history_error: None,
        kv_snapshot: HashMap::from([(s("k"), entry)]),
    }
}

pub(crate) fn metadata() -> ExecutionMetadata {
    ExecutionMetadata {
        status: Some(s("Completed")),
        output: Some(s("out")),
        orchestration_name: Some(s("Hello")),
        orchestration_version: Some(s("1.0.0")),
        parent_instance_id: None,
        pinned_duroxide_version: Some(Version::new(0, 1, 32)),
    }
}

pub(crate) fn filter() -> DispatcherCapabilityFilter {
    let range = SemverRange { min: Version::new(0, 0, 0), max: Version::new(0, 1, 32) };
    DispatcherCapabilityFilter { supported_duroxide_versions: vec![range] }
}

pub(crate) fn session() -> SessionFetchConfig {
    SessionFetchConfig { owner_id: s("w"), lock_timeout: SECOND }
}

pub(crate) fn activity_id() -> ScheduledActivityIdentifier {
    ScheduledActivityIdentifier { instance: s("i"), execution_id: 1, activity_id: 2 }
}

/// The management types, all of them.
pub(crate) struct Management {
    pub(crate) instance: InstanceInfo,
    pub(crate) execution: ExecutionInfo,
    pub(crate) metrics: SystemMetrics,
    pub(crate) depths: QueueDepths,
    pub(crate) filter: InstanceFilter,
    pub(crate) prune: PruneOptions,
    pub(crate) deleted: DeleteInstanceResult,
    pub(crate) pruned: PruneResult,
    pub(crate) tree: InstanceTree,
}

pub(crate) fn management() -> Management {
    Management {
        instance: InstanceInfo {
            instance_id: s("i"),
            orchestration_name: s("Hello"),
            orchestration_version: s("1.0.0"),
            current_execution_id: 1,
            status: s("Running"),
            output: None,
            created_at: 1,
            updated_at: 2,
            parent_instance_id: None,
        },
        execution: ExecutionInfo {
            execution_id: 1,
            status: s("Running"),
            output: None,
            started_at: 1,
            completed_at: None,
            event_count: 3_usize,
        },
        metrics: SystemMetrics {
            total_instances: 1,
            total_executions: 1,
            running_instances: 1,
            completed_instances: 0,
            failed_instances: 0,
            total_events: 3,
        },
        depths: QueueDepths { orchestrator_queue: 1_usize, worker_queue: 0, timer_queue: 0 },
        filter: InstanceFilter {
            instance_ids: Some(vec![s("i")]),
            completed_before: Some(1_u64),
            limit: Some(10_u32),
        },
        prune: PruneOptions { keep_last: Some(1_u32), completed_before: None },
        deleted: DeleteInstanceResult {
            instances_deleted: 1,
            executions_deleted: 1,
            events_deleted: 3,
            queue_messages_deleted: 0,
        },
        pruned: PruneResult { instances_processed: 1, executions_deleted: 0, events_deleted: 0 },
        tree: InstanceTree { root_id: s("i"), all_ids: vec![s("i"), s("i::sub::2")] },
    }
}
