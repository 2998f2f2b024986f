//! Counts what a runtime does: for its own snapshot, and through the `metrics` facade for whichever
//! recorder the host installs.
//!
//! Every method counts one occurrence once. Callers choose either a labelled method or its shortcut
//! without labels, never both for the same occurrence.

mod counters;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use ::metrics::{Label, counter, gauge, histogram};

use super::{ObservabilityConfig, labels, names};
use counters::Counters;

pub use counters::MetricsSnapshot;

/// The recorder of one runtime's metrics.
#[derive(Default)]
pub struct MetricsProvider {
    counters: Counters,
    orchestrator_queue_depth: AtomicU64,
    worker_queue_depth: AtomicU64,
    /// Held while the gauge is set, so that the last value set is the last value.
    active_orchestrations: Mutex<i64>,
}

impl MetricsProvider {
    /// A recorder with everything at zero. Nothing in the settings concerns it (R9.4).
    pub fn new(_config: &ObservabilityConfig) -> Result<Self, String> {
        names::describe_all();
        Ok(Self::default())
    }

    /// Ends recording. Exporters belong to the host, so there is nothing to flush here.
    pub async fn shutdown(self) -> Result<(), String> {
        Ok(())
    }

    /// The counters so far.
    pub fn snapshot(&self) -> MetricsSnapshot {
        self.counters.snapshot()
    }
}

/// Orchestrations.
impl MetricsProvider {
    /// An execution started.
    pub fn record_orchestration_start(
        &self,
        orchestration_name: &str,
        version: &str,
        initiated_by: &str,
    ) {
        add_one(&self.counters.orch_starts);
        count(
            names::ORCHESTRATION_STARTS,
            &[
                ("orchestration_name", orchestration_name),
                ("version", version),
                ("initiated_by", initiated_by),
            ],
        );
    }

    /// An execution ended; one that failed is also a failure (R9.13).
    #[expect(clippy::too_many_arguments, reason = "inherited signature")]
    pub fn record_orchestration_completion(
        &self,
        orchestration_name: &str,
        version: &str,
        status: &str,
        duration_seconds: f64,
        turn_count: u64,
        history_events: u64,
    ) {
        add_one(&self.counters.orch_completions);
        let name = ("orchestration_name", orchestration_name);
        let (version, status) = (("version", version), ("status", status));
        let final_turn_count = ("final_turn_count", labels::turn_count_bucket(turn_count));
        count(names::ORCHESTRATION_COMPLETIONS, &[name, version, status, final_turn_count]);
        observe(names::ORCHESTRATION_DURATION, &[name, version, status], duration_seconds);
        observe(names::ORCHESTRATION_TURNS, &[name], turn_count as f64);
        observe(names::ORCHESTRATION_HISTORY_SIZE, &[name], history_events as f64);
    }

    /// An execution failed.
    pub fn record_orchestration_failure(
        &self,
        orchestration_name: &str,
        version: &str,
        error_type: &str,
        error_category: &str,
    ) {
        let name = ("orchestration_name", orchestration_name);
        let category = ("error_category", error_category);
        add_one(&self.counters.orch_failures);
        count(
            names::ORCHESTRATION_FAILURES,
            &[name, ("version", version), ("error_type", error_type), category],
        );
        self.count_failure_class(error_type, &[name, category]);
    }

    /// An execution failed by user code; shortcut without labels.
    pub fn record_orchestration_application_error(&self) {
        self.record_unlabelled_failure(labels::APP_ERROR);
    }

    /// An execution failed because the machinery did; shortcut without labels.
    pub fn record_orchestration_infrastructure_error(&self) {
        self.record_unlabelled_failure(labels::INFRASTRUCTURE_ERROR);
    }

    /// An execution failed because of its deployment; shortcut without labels.
    pub fn record_orchestration_configuration_error(&self) {
        self.record_unlabelled_failure(labels::CONFIG_ERROR);
    }

    /// An execution was succeeded by another. Its number is no label: it knows no bound (R9.26).
    pub fn record_continue_as_new(&self, orchestration_name: &str, _execution_id: u64) {
        add_one(&self.counters.orch_continue_as_new);
        count(names::ORCHESTRATION_CONTINUE_AS_NEW, &[("orchestration_name", orchestration_name)]);
    }

    /// An orchestration waits for something that can never wake it (R3.170).
    pub fn record_foreign_wait(&self, orchestration_name: &str) {
        count(names::ORCHESTRATION_FOREIGN_WAITS, &[("orchestration_name", orchestration_name)]);
    }

    /// An instance was looked for in memory at the beginning of its turn.
    pub fn record_warm_lookup(&self, found: bool) {
        count(names::WARM_LOOKUPS, &[("result", if found { "hit" } else { "miss" })]);
    }

    /// Instances had to leave memory for want of room.
    pub fn record_warm_evictions(&self, evicted: u64) {
        if 0 < evicted {
            counter!(names::WARM_EVICTIONS).increment(evicted);
        }
    }

    /// How much memory the instances kept between turns take.
    pub fn set_warm_bytes(&self, bytes: u64) {
        gauge!(names::WARM_BYTES).set(bytes as f64);
    }

    /// A turn was given up after too many attempts.
    pub fn record_orchestration_poison(&self) {
        add_one(&self.counters.orch_poison);
        count(names::ORCHESTRATION_POISON, &[]);
    }

    /// The same, with the reason, one of few words.
    pub fn record_orchestration_poison_by(&self, cause: &str) {
        add_one(&self.counters.orch_poison);
        count(names::ORCHESTRATION_POISON, &[("cause", cause)]);
    }

    /// A child ended.
    pub fn record_suborchestration_call(
        &self,
        parent_orchestration: &str,
        child_orchestration: &str,
        outcome: &str,
    ) {
        add_one(&self.counters.suborchestration_calls);
        count(
            names::SUBORCHESTRATION_CALLS,
            &[
                ("parent_orchestration", parent_orchestration),
                ("child_orchestration", child_orchestration),
                ("outcome", outcome),
            ],
        );
    }

    /// How long a parent waited for a child.
    pub fn record_suborchestration_duration(
        &self,
        parent_orchestration: &str,
        child_orchestration: &str,
        duration_seconds: f64,
        outcome: &str,
    ) {
        observe(
            names::SUBORCHESTRATION_DURATION,
            &[
                ("parent_orchestration", parent_orchestration),
                ("child_orchestration", child_orchestration),
                ("outcome", outcome),
            ],
            duration_seconds,
        );
    }

    fn record_unlabelled_failure(&self, error_type: &'static str) {
        add_one(&self.counters.orch_failures);
        count(names::ORCHESTRATION_FAILURES, &[("error_type", error_type)]);
        self.count_failure_class(error_type, &[]);
    }

    fn count_failure_class(&self, error_type: &str, class_labels: &[(&'static str, &str)]) {
        match error_type {
            labels::APP_ERROR => add_one(&self.counters.orch_application_errors),
            labels::INFRASTRUCTURE_ERROR => {
                add_one(&self.counters.orch_infrastructure_errors);
                count(names::ORCHESTRATION_INFRASTRUCTURE_ERRORS, class_labels);
            }
            labels::CONFIG_ERROR | labels::DECODE_ERROR => {
                add_one(&self.counters.orch_configuration_errors);
                count(names::ORCHESTRATION_CONFIGURATION_ERRORS, class_labels);
            }
            _ => {}
        }
    }
}

/// Activities.
impl MetricsProvider {
    /// An activity ran; `retry_attempt` is 0 for its first try.
    #[expect(clippy::too_many_arguments, reason = "inherited signature")]
    pub fn record_activity_execution(
        &self,
        activity_name: &str,
        outcome: &str,
        duration_seconds: f64,
        retry_attempt: u32,
        tag: Option<&str>,
    ) {
        let (name, tag) =
            (("activity_name", activity_name), ("tag", tag.unwrap_or(labels::NO_TAG)));
        let retry = ("retry_attempt", labels::retry_attempt_bucket(retry_attempt));
        count(names::ACTIVITY_EXECUTIONS, &[name, ("outcome", outcome), retry, tag]);
        observe(names::ACTIVITY_DURATION, &[name, ("outcome", outcome), tag], duration_seconds);
        self.count_outcome_class(outcome, &[name]);
    }

    /// An activity returned a result; shortcut without labels.
    pub fn record_activity_success(&self) {
        self.record_unlabelled_outcome(labels::OUTCOME_SUCCESS);
    }

    /// An activity returned an error; shortcut without labels.
    pub fn record_activity_app_error(&self) {
        self.record_unlabelled_outcome(labels::OUTCOME_APP_ERROR);
    }

    /// An activity's result could not be stored; shortcut without labels.
    pub fn record_activity_infra_error(&self) {
        self.record_unlabelled_outcome(labels::OUTCOME_INFRA_ERROR);
    }

    /// An activity could not be run here; shortcut without labels.
    pub fn record_activity_config_error(&self) {
        self.record_unlabelled_outcome(labels::OUTCOME_CONFIG_ERROR);
    }

    /// An activity was given up after too many attempts.
    pub fn record_activity_poison(&self) {
        add_one(&self.counters.activity_poison);
        count(names::ACTIVITY_POISON, &[]);
    }

    /// The same, with the reason, one of few words.
    pub fn record_activity_poison_by(&self, cause: &str) {
        add_one(&self.counters.activity_poison);
        count(names::ACTIVITY_POISON, &[("cause", cause)]);
    }

    fn record_unlabelled_outcome(&self, outcome: &'static str) {
        count(names::ACTIVITY_EXECUTIONS, &[("outcome", outcome)]);
        self.count_outcome_class(outcome, &[]);
    }

    fn count_outcome_class(&self, outcome: &str, class_labels: &[(&'static str, &str)]) {
        match outcome {
            labels::OUTCOME_SUCCESS => add_one(&self.counters.activity_success),
            labels::OUTCOME_APP_ERROR => add_one(&self.counters.activity_app_errors),
            labels::OUTCOME_INFRA_ERROR => {
                add_one(&self.counters.activity_infra_errors);
                count(names::ACTIVITY_INFRASTRUCTURE_ERRORS, class_labels);
            }
            labels::OUTCOME_CONFIG_ERROR => {
                add_one(&self.counters.activity_config_errors);
                count(names::ACTIVITY_CONFIGURATION_ERRORS, class_labels);
            }
            _ => {}
        }
    }
}

/// The store and the dispatchers.
impl MetricsProvider {
    /// A store operation took so long.
    pub fn record_provider_operation(&self, operation: &str, duration_seconds: f64, status: &str) {
        observe(
            names::PROVIDER_OPERATION_DURATION,
            &[("operation", operation), ("status", status)],
            duration_seconds,
        );
    }

    /// A store operation failed.
    pub fn record_provider_error(&self, operation: &str, error_type: &str) {
        add_one(&self.counters.provider_errors);
        count(names::PROVIDER_ERRORS, &[("operation", operation), ("error_type", error_type)]);
    }

    /// So many turns were fetched.
    pub fn record_orch_dispatcher_items_fetched(&self, count: u64) {
        self.counters.orch_dispatcher_items_fetched.fetch_add(count, Ordering::Relaxed);
        counter!(names::ORCHESTRATION_DISPATCHER_ITEMS).increment(count);
    }

    /// A turn took so long, from fetch to commit.
    pub fn record_orch_dispatcher_processing_duration(&self, duration_ms: u64) {
        observe(names::ORCHESTRATION_DISPATCHER_DURATION, &[], duration_ms as f64);
    }

    /// So many activities were fetched.
    pub fn record_worker_dispatcher_items_fetched(&self, count: u64) {
        self.counters.worker_dispatcher_items_fetched.fetch_add(count, Ordering::Relaxed);
        counter!(names::WORKER_DISPATCHER_ITEMS).increment(count);
    }

    /// An activity took so long, from fetch to acknowledgement.
    pub fn record_worker_dispatcher_execution_duration(&self, duration_ms: u64) {
        observe(names::WORKER_DISPATCHER_DURATION, &[], duration_ms as f64);
    }
}

/// Gauges.
impl MetricsProvider {
    /// What waits in the queues now.
    pub fn update_queue_depths(&self, orch_depth: u64, worker_depth: u64) {
        self.orchestrator_queue_depth.store(orch_depth, Ordering::Relaxed);
        self.worker_queue_depth.store(worker_depth, Ordering::Relaxed);
        gauge!(names::ORCHESTRATOR_QUEUE_DEPTH).set(orch_depth as f64);
        gauge!(names::WORKER_QUEUE_DEPTH).set(worker_depth as f64);
    }

    /// The depths last told: (orchestrator queue, worker queue).
    pub fn get_queue_depths(&self) -> (u64, u64) {
        let depth_of = |queue: &AtomicU64| queue.load(Ordering::Relaxed);
        (depth_of(&self.orchestrator_queue_depth), depth_of(&self.worker_queue_depth))
    }

    /// An instance began to run.
    pub fn increment_active_orchestrations(&self) {
        self.change_active_orchestrations(|count| count.saturating_add(1));
    }

    /// An instance ended. May go below zero where another runtime counted its start: the sum over
    /// all runtimes is right.
    pub fn decrement_active_orchestrations(&self) {
        self.change_active_orchestrations(|count| count.saturating_sub(1));
    }

    /// So many instances run now.
    pub fn set_active_orchestrations(&self, count: i64) {
        self.change_active_orchestrations(|_| count);
    }

    /// How many instances run, as far as told.
    pub fn get_active_orchestrations(&self) -> i64 {
        *self.active_orchestrations.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change_active_orchestrations(&self, change: impl FnOnce(i64) -> i64) {
        let mut active = self.active_orchestrations.lock().unwrap_or_else(PoisonError::into_inner);
        *active = change(*active);
        gauge!(names::ACTIVE_ORCHESTRATIONS).set(*active as f64);
    }
}

fn add_one(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}

fn count(name: &'static str, labels: &[(&'static str, &str)]) {
    counter!(name, owned(labels)).increment(1);
}

fn observe(name: &'static str, labels: &[(&'static str, &str)], value: f64) {
    histogram!(name, owned(labels)).record(value);
}

fn owned(labels: &[(&'static str, &str)]) -> Vec<Label> {
    labels.iter().map(|(key, value)| Label::new(*key, (*value).to_owned())).collect()
}

#[cfg(test)]
mod tests;
