//! Messages become events; stale, duplicate and unmatched ones are named as such (R3.20 – R3.30).

use super::engine::ReplayEngine;
use super::index::Class;
use crate::model::{ErrorDetails, EventKind, WorkItem, kind_of};

/// A completion before it is checked.
struct Completion {
    class: Class,
    execution_id: u64,
    source: u64,
    kind: EventKind,
}

impl ReplayEngine {
    /// Takes the messages of this turn, in order.
    pub fn prep_completions(&mut self, messages: Vec<WorkItem>) {
        for message in messages {
            self.accept(message);
        }
    }

    fn accept(&mut self, message: WorkItem) {
        let label = kind_of(&message);
        match message {
            WorkItem::ExternalRaised { name, data, .. } => {
                self.record(None, EventKind::ExternalEvent { name, data });
            }
            WorkItem::QueueMessage { name, data, .. } => {
                self.record(None, EventKind::QueueEventDelivered { name, data });
            }
            WorkItem::CancelInstance { reason, .. } => self.accept_cancel(reason),
            #[cfg(feature = "replay-version-test")]
            WorkItem::ExternalRaised2 { name, topic, data, .. } => {
                self.accept_topic_event(name, topic, data);
            }
            other => {
                if let Some(completion) = completion_of(other) {
                    self.accept_completion(completion, label);
                }
            }
        }
    }

    /// The first request stays; an ended instance takes none (R3.29).
    fn accept_cancel(&mut self, reason: String) {
        if !self.index.is_ended && self.index.cancel_reason.is_none() {
            self.record(None, EventKind::OrchestrationCancelRequested { reason });
        }
    }

    fn accept_completion(&mut self, completion: Completion, label: &'static str) {
        let Completion { class, execution_id, source, kind } = completion;
        if execution_id != self.recorder.execution_id {
            self.warn_dropped(label, source, "belongs to another execution");
            return;
        }
        match self.index.get(source) {
            Some(schedule) if schedule.completed => {
                // Also a failure after a success and the reverse: the first result stands (L8).
                self.warn_dropped(label, source, "is a duplicate of a recorded completion");
            }
            Some(schedule) if schedule.class == class => {
                self.abort_on_system_error(&kind);
                self.record(Some(source), kind);
            }
            schedule => {
                let found = schedule.map(|schedule| schedule.class);
                self.abort = Some(ErrorDetails::nondeterminism(mismatch(class, found, source)));
            }
        }
    }

    /// System errors of an activity or child end the orchestration without running its code (R3.28).
    fn abort_on_system_error(&mut self, kind: &EventKind) {
        let (EventKind::ActivityFailed { details } | EventKind::SubOrchestrationFailed { details }) =
            kind
        else {
            return;
        };
        if self.abort.is_none() && !matches!(details, ErrorDetails::Application { .. }) {
            self.abort = Some(details.clone());
        }
    }

    #[cfg(feature = "replay-version-test")]
    fn accept_topic_event(&mut self, name: String, topic: String, data: String) {
        let subscribed = self.baseline.iter().any(|event| {
            matches!(&event.kind, EventKind::ExternalSubscribed2 { name: n, topic: t }
                if *n == name && *t == topic)
        });
        if subscribed {
            self.record(None, EventKind::ExternalEvent2 { name, topic, data });
        } else {
            let instance = &self.recorder.instance;
            tracing::warn!(target: "duroxide::runtime", %instance, %name, %topic,
                "event without a subscription dropped");
        }
    }

    fn warn_dropped(&self, label: &str, source: u64, why: &str) {
        tracing::warn!(
            target: "duroxide::runtime",
            instance = %self.recorder.instance,
            execution_id = %self.recorder.execution_id,
            id = %source,
            "{label} dropped: it {why}"
        );
    }
}

fn completion_of(message: WorkItem) -> Option<Completion> {
    let (class, execution_id, source, kind) = match message {
        WorkItem::ActivityCompleted { execution_id, id, result, .. } => {
            (Class::Activity, execution_id, id, EventKind::ActivityCompleted { result })
        }
        WorkItem::ActivityFailed { execution_id, id, details, .. } => {
            (Class::Activity, execution_id, id, EventKind::ActivityFailed { details })
        }
        WorkItem::TimerFired { execution_id, id, fire_at_ms, .. } => {
            (Class::Timer, execution_id, id, EventKind::TimerFired { fire_at_ms })
        }
        WorkItem::SubOrchCompleted { parent_execution_id, parent_id, result, .. } => {
            let kind = EventKind::SubOrchestrationCompleted { result };
            (Class::Child, parent_execution_id, parent_id, kind)
        }
        WorkItem::SubOrchFailed { parent_execution_id, parent_id, details, .. } => {
            let kind = EventKind::SubOrchestrationFailed { details };
            (Class::Child, parent_execution_id, parent_id, kind)
        }
        _ => return None,
    };
    Some(Completion { class, execution_id, source, kind })
}

/// Exact texts of R3.25. Waits and dequeues are not completed by id, so they count as no schedule.
fn mismatch(got: Class, found: Option<Class>, id: u64) -> String {
    match (found, got) {
        (Some(expected @ (Class::Activity | Class::Timer | Class::Child)), _) => format!(
            "completion kind mismatch for id={id}, expected '{}', got '{}'",
            expected.word(),
            got.word()
        ),
        (_, Class::Timer) => format!("no matching schedule for timer id={id}"),
        (_, Class::Child) => format!("no matching schedule for sub-orchestration id={id}"),
        _ => format!("no matching schedule for completion id={id}"),
    }
}
