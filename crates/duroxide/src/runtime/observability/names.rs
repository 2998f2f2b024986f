//! The names of all metrics, with what they mean.

use ::metrics::{describe_counter, describe_gauge, describe_histogram};

use Kind::{Counter, Gauge, Histogram};

/// What kind of number a metric is.
enum Kind {
    Counter,
    Gauge,
    Histogram,
}

/// Declares a constant per metric and the list that describes them all.
macro_rules! metrics {
    ($($constant:ident = $kind:ident $name:literal, $text:literal;)*) => {
        $(#[doc = $text] pub(super) const $constant: &str = $name;)*

        const ALL: &[(Kind, &str, &str)] = &[$(($kind, $name, $text),)*];
    };
}

metrics! {
    ORCHESTRATION_STARTS = Counter "duroxide_orchestration_starts_total",
        "Executions that started.";
    ORCHESTRATION_COMPLETIONS = Counter "duroxide_orchestration_completions_total",
        "Executions that ended, in whatever way.";
    ORCHESTRATION_FAILURES = Counter "duroxide_orchestration_failures_total",
        "Executions that failed.";
    ORCHESTRATION_INFRASTRUCTURE_ERRORS =
        Counter "duroxide_orchestration_infrastructure_errors_total",
        "Executions that failed because the machinery did.";
    ORCHESTRATION_CONFIGURATION_ERRORS =
        Counter "duroxide_orchestration_configuration_errors_total",
        "Executions that failed because of their deployment.";
    ORCHESTRATION_CONTINUE_AS_NEW = Counter "duroxide_orchestration_continue_as_new_total",
        "Executions that were succeeded by another.";
    ORCHESTRATION_FOREIGN_WAITS = Counter "duroxide_orchestration_foreign_waits_total",
        "Orchestrations found waiting for something that can never wake them.";
    ORCHESTRATION_POISON = Counter "duroxide_orchestration_poison_total",
        "Turns given up after too many attempts.";
    WARM_LOOKUPS = Counter "duroxide_warm_lookups_total",
        "Turns that looked for their instance in memory, by result.";
    WARM_EVICTIONS = Counter "duroxide_warm_evictions_total",
        "Instances that left memory for want of room.";
    WARM_BYTES = Gauge "duroxide_warm_bytes",
        "Memory that instances kept between turns take.";
    ORCHESTRATION_DURATION = Histogram "duroxide_orchestration_duration_seconds",
        "Time from the start of an execution to its end.";
    ORCHESTRATION_TURNS = Histogram "duroxide_orchestration_turns",
        "Turns of an execution.";
    ORCHESTRATION_HISTORY_SIZE = Histogram "duroxide_orchestration_history_size",
        "Events of an execution.";
    ACTIVITY_EXECUTIONS = Counter "duroxide_activity_executions_total",
        "Activities that ran.";
    ACTIVITY_DURATION = Histogram "duroxide_activity_duration_seconds",
        "Time an activity ran.";
    ACTIVITY_INFRASTRUCTURE_ERRORS = Counter "duroxide_activity_infrastructure_errors_total",
        "Activities whose result could not be stored.";
    ACTIVITY_CONFIGURATION_ERRORS = Counter "duroxide_activity_configuration_errors_total",
        "Activities that could not be run here.";
    ACTIVITY_POISON = Counter "duroxide_activity_poison_total",
        "Activities given up after too many attempts.";
    SUBORCHESTRATION_CALLS = Counter "duroxide_suborchestration_calls_total",
        "Children that ended.";
    SUBORCHESTRATION_DURATION = Histogram "duroxide_suborchestration_duration_seconds",
        "Time a parent waited for a child.";
    PROVIDER_OPERATION_DURATION = Histogram "duroxide_provider_operation_duration_seconds",
        "Time of a store operation; fetches include their waiting.";
    PROVIDER_ERRORS = Counter "duroxide_provider_errors_total",
        "Store operations that failed.";
    ORCHESTRATION_DISPATCHER_ITEMS = Counter "duroxide_orchestration_dispatcher_items_fetched",
        "Turns fetched.";
    ORCHESTRATION_DISPATCHER_DURATION =
        Histogram "duroxide_orchestration_dispatcher_processing_duration_ms",
        "Time of a turn, from fetch to commit.";
    WORKER_DISPATCHER_ITEMS = Counter "duroxide_worker_dispatcher_items_fetched",
        "Activities fetched.";
    WORKER_DISPATCHER_DURATION = Histogram "duroxide_worker_dispatcher_execution_duration_ms",
        "Time of an activity, from fetch to acknowledgement.";
    ORCHESTRATOR_QUEUE_DEPTH = Gauge "duroxide_orchestrator_queue_depth",
        "Messages waiting for a turn.";
    WORKER_QUEUE_DEPTH = Gauge "duroxide_worker_queue_depth",
        "Activities waiting for a worker.";
    ACTIVE_ORCHESTRATIONS = Gauge "duroxide_active_orchestrations",
        "Instances that run.";
}

/// Tells the recorder what the metrics mean. No units: exporters may append them to the names.
pub(super) fn describe_all() {
    for (kind, name, text) in ALL {
        match kind {
            Counter => describe_counter!(*name, *text),
            Gauge => describe_gauge!(*name, *text),
            Histogram => describe_histogram!(*name, *text),
        }
    }
}
