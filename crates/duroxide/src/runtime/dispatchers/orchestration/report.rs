//! What a turn tells people: logs and metrics. Nothing here decides anything.

use std::time::Duration;

use duroxide_core::model::{ErrorDetails, Event, EventKind, INITIAL_EXECUTION_ID, WorkItem};
use duroxide_core::replay::{FinishedChild, TurnOutcome, TurnStatus};

use super::commit::Aside;
use super::{Dispatcher, Subject};
use crate::runtime::facts::ExecutionFact;
use crate::runtime::node::Kind;
use crate::runtime::observability::labels::{self, ErrorLabels};
use crate::runtime::observability::targets;

/// One log record about an execution (R9.53).
macro_rules! record {
    ($level:ident, $subject:expr, $fact:expr, $execution_id:expr, $($rest:tt)*) => {
        tracing::$level!(target: targets::ORCHESTRATION_DISPATCHER,
            instance_id = %$subject.instance(), execution_id = %$execution_id,
            orchestration_name = %$fact.name, orchestration_version = %$fact.version,
            worker_id = %$subject.worker_id, $($rest)*)
    };
}

/// What is left to tell once an outcome has become a commit.
pub(super) struct Summary {
    status: TurnStatus,
    /// Set if the execution began with this turn.
    begun: Option<ExecutionFact>,
    /// Whether that has a parent.
    is_child: bool,
    events: u64,
    finished_children: Vec<FinishedChild>,
    /// Whether a payload that could not be decoded led the code astray.
    undecoded: bool,
}

impl Summary {
    pub(super) fn of(outcome: &TurnOutcome) -> Self {
        let first = outcome.events.first();
        Self {
            status: outcome.status.clone(),
            begun: first.and_then(ExecutionFact::from_start),
            is_child: first.is_some_and(has_parent),
            events: outcome.events.len() as u64,
            finished_children: outcome.finished_children.clone(),
            undecoded: outcome.divergence.as_ref().is_some_and(|report| report.undecoded.is_some()),
        }
    }
}

impl Dispatcher {
    /// Says what the code did wrong, before anything else can go wrong.
    pub(super) fn report_before_commit(
        &self,
        subject: &Subject,
        outcome: &TurnOutcome,
        aside: &Aside,
    ) {
        let name = &aside.orchestration_name;
        if let Some(report) = &outcome.divergence {
            tracing::error!(target: targets::ORCHESTRATION_DISPATCHER,
                instance_id = %subject.instance(), execution_id = %aside.execution_id,
                orchestration_name = %name, orchestration_version = %aside.version,
                worker_id = %subject.worker_id, "nondeterminism\n{report}");
        }
        if outcome.waits_for_foreign {
            self.node.metrics.record_foreign_wait(name);
            tracing::error!(target: targets::ORCHESTRATION_DISPATCHER,
                instance_id = %subject.instance(), execution_id = %aside.execution_id,
                orchestration_name = %name, orchestration_version = %aside.version,
                "orchestration {name} {} (instance {}) waits for something that is not durable and \
                 that replay can never reproduce. Await only what the context returns: \
                 ctx.schedule_timer instead of sleep, an activity instead of I/O, ctx.schedule_wait \
                 or ctx.dequeue_event instead of a channel to another task",
                aside.version, subject.instance());
        }
        self.announce_unknown_names(outcome, name);
    }

    fn announce_unknown_names(&self, outcome: &TurnOutcome, used_by: &str) {
        for item in outcome.activities.iter().chain(&outcome.messages) {
            match item {
                WorkItem::ActivityExecute { name, .. }
                    if !crate::runtime::builtin::is_builtin(name) =>
                {
                    self.node.announce_unknown(Kind::Activity, name, used_by);
                }
                WorkItem::StartOrchestration { orchestration, .. } => {
                    self.node.announce_unknown(Kind::Orchestration, orchestration, used_by);
                }
                _ => {}
            }
        }
    }

    /// Counts a turn that has been committed, and remembers its execution.
    pub(super) fn report_committed(
        &self,
        subject: &Subject,
        mut summary: Summary,
        execution_id: u64,
        known: Option<ExecutionFact>,
    ) {
        if let Some(begun) = &summary.begun {
            self.report_start(subject, (begun, summary.is_child), execution_id);
        }
        let Some(mut fact) = summary.begun.take().or(known) else { return };
        fact.turns += 1;
        fact.events += summary.events;
        let metrics = &self.node.metrics;
        for child in &summary.finished_children {
            let outcome = if child.succeeded { "success" } else { "failed" };
            let seconds = Duration::from_millis(child.took_ms).as_secs_f64();
            metrics.record_suborchestration_call(&fact.name, &child.name, outcome);
            metrics.record_suborchestration_duration(&fact.name, &child.name, seconds, outcome);
        }
        self.report_ending(subject, &summary, &fact, execution_id);
        match summary.status {
            TurnStatus::Running => self.node.facts.put(subject.instance(), execution_id, fact),
            _ => self.node.facts.forget(subject.instance(), execution_id),
        }
    }

    /// Counts an execution given up, whose last turn was never run.
    pub(super) fn report_poisoned(
        &self,
        subject: &Subject,
        summary: Summary,
        (execution_id, cause): (u64, &'static str),
        fact: ExecutionFact,
    ) {
        self.node.metrics.record_orchestration_poison_by(cause);
        self.report_committed(subject, summary, execution_id, Some(fact));
    }

    fn report_start(
        &self,
        subject: &Subject,
        (begun, is_child): (&ExecutionFact, bool),
        execution_id: u64,
    ) {
        let metrics = &self.node.metrics;
        let initiated_by = if execution_id > INITIAL_EXECUTION_ID {
            labels::INITIATED_BY_CONTINUE_AS_NEW
        } else {
            metrics.increment_active_orchestrations();
            match is_child {
                true => labels::INITIATED_BY_PARENT,
                false => labels::INITIATED_BY_CLIENT,
            }
        };
        metrics.record_orchestration_start(&begun.name, &begun.version, initiated_by);
        record!(debug, subject, begun, execution_id, "Orchestration started");
    }

    fn report_ending(
        &self,
        subject: &Subject,
        summary: &Summary,
        fact: &ExecutionFact,
        execution_id: u64,
    ) {
        let metrics = &self.node.metrics;
        let label = match &summary.status {
            TurnStatus::Running => return,
            TurnStatus::Completed(_) => {
                record!(debug, subject, fact, execution_id, "Orchestration completed");
                labels::STATUS_SUCCESS
            }
            TurnStatus::Failed(details) => {
                let mut labels = ErrorLabels::from(details);
                if summary.undecoded {
                    labels.error_type = labels::DECODE_ERROR;
                }
                self.report_failure(subject, (details, labels), fact, execution_id);
                labels::STATUS_FAILED
            }
            TurnStatus::ContinuedAsNew(_) => {
                metrics.record_continue_as_new(&fact.name, execution_id);
                record!(debug, subject, fact, execution_id, "Orchestration continued as new");
                labels::STATUS_CONTINUED_AS_NEW
            }
        };
        if !matches!(summary.status, TurnStatus::ContinuedAsNew(_)) {
            metrics.decrement_active_orchestrations();
        }
        let lived_ms = self.node.now_ms().saturating_sub(fact.started_at_ms);
        let seconds = Duration::from_millis(lived_ms).as_secs_f64();
        metrics.record_orchestration_completion(
            &fact.name,
            &fact.version,
            label,
            seconds,
            fact.turns,
            fact.events,
        );
    }

    /// R9.53: application failures are the user's affair, others need an operator.
    fn report_failure(
        &self,
        subject: &Subject,
        (details, labels): (&ErrorDetails, ErrorLabels),
        fact: &ExecutionFact,
        execution_id: u64,
    ) {
        let ErrorLabels { error_type, category } = labels;
        let metrics = &self.node.metrics;
        metrics.record_orchestration_failure(&fact.name, &fact.version, error_type, category);
        let error = details.display_message();
        if matches!(details, ErrorDetails::Application { .. }) {
            record!(warn, subject, fact, execution_id, error_type, %error, "Orchestration failed");
        } else {
            record!(error, subject, fact, execution_id, error_type, %error, "Orchestration failed");
        }
    }
}

fn has_parent(event: &Event) -> bool {
    matches!(event.kind, EventKind::OrchestrationStarted { parent_instance: Some(_), .. })
}
