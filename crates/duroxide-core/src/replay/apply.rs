//! One recorded event into the context's state (R3.44 – R3.62).

use std::task::Waker;

use super::divergence::Divergence;
use super::execution::Execution;
use super::index::Class;
use crate::context::CompletionResult;
use crate::model::{Event, EventKind};

impl Execution {
    pub(super) fn apply(&mut self, event: &Event) -> Result<(), Box<Divergence>> {
        self.idle_polls = 0;
        self.is_binding = true; // Unless it is one of those further down.
        if let Some(class) = Class::of(&event.kind) {
            return self.bind_schedule(event, class);
        }
        match &event.kind {
            EventKind::OrchestrationChained { .. } => self.bind_chained(event),
            EventKind::CustomStatusUpdated { .. } => {
                self.bind_note(event, "custom status mismatch")
            }
            EventKind::KeyValueSet { .. } => self.bind_note(event, "kv set mismatch"),
            EventKind::KeyValuesCleared => self.bind_note(event, "kv clear_all mismatch"),
            EventKind::KeyValueCleared { key } => self.bind_cleared(event, key),
            #[cfg(feature = "replay-version-test")]
            EventKind::ExternalSubscribed2 { name, topic } => {
                self.bind_schedule(event, Class::Wait)?;
                self.subscribe_topic(event.event_id, name, topic);
                Ok(())
            }
            _ => {
                self.is_binding = false;
                match completion_of(&event.kind) {
                    Some(result) => self.complete(event, result),
                    None => {
                        self.arrive(event);
                        Ok(())
                    }
                }
            }
        }
    }

    /// Arrivals are matched by index: its own may be there.
    #[cfg(feature = "replay-version-test")]
    pub(super) fn subscribe_topic(&mut self, event_id: u64, name: &str, topic: &str) {
        let mut state = self.ctx.state();
        state.signals.subscribe_topic(event_id, name, topic);
        let waker = state.tokens.take_waker_of(event_id);
        drop(state);
        self.wake(waker);
    }

    /// A result for an open schedule (R3.53 – R3.56).
    fn complete(&mut self, event: &Event, result: CompletionResult) -> Result<(), Box<Divergence>> {
        let Some(source) = event.source_event_id else { return Ok(()) };
        let Some(class) = self.open.get(source) else {
            return Err(Divergence::new("completion without open schedule").at(event));
        };
        let is_activity = matches!(event.kind, EventKind::ActivityCompleted { .. });
        if is_activity && *class != Class::Activity {
            return Err(Divergence::new("completion kind mismatch: expected activity").at(event));
        }
        self.open_work = self.open_work.saturating_sub(usize::from(class.is_work()));
        self.open.remove(source);
        let waker = self.ctx.state().tokens.deliver(source, result);
        self.wake(waker);
        Ok(())
    }

    /// Arrivals and breadcrumbs; everything else says nothing to running code (R3.57 – R3.60).
    fn arrive(&mut self, event: &Event) {
        let mut state = self.ctx.state();
        match &event.kind {
            EventKind::ExternalEvent { name, data } => {
                let (delivered, waker) = state.deliver_signal(name, data);
                drop(state);
                match delivered {
                    true => self.wake(waker),
                    false => self.warn_early(name),
                }
            }
            EventKind::QueueEventDelivered { name, data } => {
                let waker = state.deliver_message(name, data);
                drop(state);
                self.wake(waker);
            }
            #[cfg(feature = "replay-version-test")]
            EventKind::ExternalEvent2 { name, topic, data } => {
                let wait = state.signals.deliver_topic(name, topic, data);
                let waker = wait.and_then(|wait| state.tokens.take_waker_of(wait));
                drop(state);
                self.wake(waker);
            }
            EventKind::ExternalSubscribedCancelled { .. } => {
                match event.source_event_id {
                    // No wait moves up to a signal, so no task has to be woken.
                    Some(source) if self.rules.strict => state.signals.give_up(source),
                    Some(source) => state.signals.cancel(source),
                    None => {}
                }
            }
            EventKind::QueueSubscriptionCancelled { .. } => {
                let waker = event.source_event_id.and_then(|source| state.cancel_dequeue(source));
                drop(state);
                waker.into_iter().for_each(Waker::wake);
            }
            _ => {}
        }
    }

    /// The code may go on: the task that waits is woken; in old executions, without wakes, all is polled.
    pub(super) fn wake(&mut self, waker: Option<Waker>) {
        self.must_poll = true;
        waker.into_iter().for_each(Waker::wake);
    }

    /// Once, when it happens: replay meets the same event again and again.
    fn warn_early(&self, name: &str) {
        if self.ctx.is_replaying() {
            return;
        }
        let identity = self.ctx.identity();
        tracing::warn!(
            target: "duroxide::runtime",
            instance = %identity.instance_id,
            execution_id = %identity.execution_id,
            %name,
            "external event dropped: no open wait for it"
        );
    }
}

fn completion_of(kind: &EventKind) -> Option<CompletionResult> {
    Some(match kind {
        EventKind::ActivityCompleted { result } => CompletionResult::ActivityOk(result.clone()),
        EventKind::ActivityFailed { details } => {
            CompletionResult::ActivityErr(details.display_message())
        }
        EventKind::TimerFired { .. } => CompletionResult::TimerFired,
        EventKind::SubOrchestrationCompleted { result } => {
            CompletionResult::SubOrchOk(result.clone())
        }
        EventKind::SubOrchestrationFailed { details } => {
            CompletionResult::SubOrchErr(details.display_message())
        }
        _ => return None,
    })
}
