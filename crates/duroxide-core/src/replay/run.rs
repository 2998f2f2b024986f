//! One run of the code: over what happened before, over what is new, until it has nothing to say.

use std::sync::Arc;

use super::divergence::{Divergence, DivergenceReport, agreed_rows};
use super::engine::{ReplayEngine, TurnResult};
use super::execution::Execution;
use crate::model::{Action, AppErrorKind, ErrorDetails, Event, EventKind};

impl ReplayEngine {
    /// Runs the code from where it is.
    pub(super) fn run(&mut self, execution: &mut Execution) -> TurnResult {
        let wakeup = Arc::clone(execution.ctx.wakeup());
        let _listening = wakeup.listen();
        if self.applied_len == 0 {
            wakeup.wake(); // The code begins.
        }
        let ran = match self.replay(execution) {
            Ok(()) => self.advance(execution),
            Err(Stop::Failed(error, position)) => {
                self.note_failed_replay(execution, &error, position);
                Err(error)
            }
            Err(Stop::Diverged(divergence)) => Err(self.diverged(execution, divergence)),
        };
        self.applied_len = self.baseline.len() + self.recorder.events().len();
        self.waits_for_foreign = execution.waits_for_foreign || wakeup.was_woken_by_others();
        if let Err(error) = ran {
            return TurnResult::Failed(error);
        }
        let is_cancelled = self.index.cancel_reason.is_some();
        if self.fail_on_foreign_wait && self.waits_for_foreign && !is_cancelled {
            return TurnResult::Failed(ErrorDetails::nondeterminism(FOREIGN_WAIT));
        }
        self.decide(execution)
    }

    /// The loop of R3.40 – R3.43 over everything known before this turn's own actions.
    fn replay(&mut self, execution: &mut Execution) -> Result<(), Stop> {
        let seen = self.applied_len;
        if execution.rules.strict && !self.is_resumed {
            remember_stamps(&self.baseline, execution);
        }
        execution.ctx.set_is_replaying(self.persisted_len > seen);
        execution.ctx.state().reads_stored = self.persisted_len > seen;
        let history = self.baseline.iter().chain(self.recorder.events()).enumerate();
        for (position, event) in history.skip(seen) {
            // What stored events still owe the code was done in an earlier turn: still replaying.
            execution.poll_if_due().map_err(|error| Stop::Failed(error, position))?;
            if position >= self.persisted_len {
                execution.ctx.set_is_replaying(false);
                execution.ctx.state().reads_stored = false;
            }
            if execution.output.is_some() {
                self.check_early_return(execution, position)?;
                self.deliver_unread(execution, position);
                return Ok(());
            }
            execution.apply(event).map_err(Stop::Diverged)?;
        }
        execution.ctx.set_is_replaying(false);
        let end = self.baseline.len() + self.recorder.events().len();
        execution.poll_if_due().map_err(|error| Stop::Failed(error, end))?;
        let mut state = execution.ctx.state();
        state.reads_stored = false;
        state.cancel_dropped_dequeues();
        Ok(())
    }

    /// The code returned with `position` next to be applied. A stored history that goes on was made
    /// by code that did not return there; work it scheduled afterwards would be forgotten (L22).
    fn check_early_return(&self, execution: &Execution, position: usize) -> Result<(), Stop> {
        execution.ctx.set_is_replaying(false);
        let stored = self.baseline.iter().take(self.persisted_len).skip(position);
        let forgotten = stored.filter(|_| execution.rules.strict).find(|event| {
            super::index::Class::of(&event.kind).is_some()
                || matches!(event.kind, EventKind::OrchestrationChained { .. })
        });
        match forgotten {
            None => Ok(()),
            Some(event) => Err(Stop::Diverged(
                Divergence::new(format!(
                    "code returned before history was consumed: next event={:?}",
                    event.kind
                ))
                .at(event),
            )),
        }
    }

    /// Messages from `position` on reach no code any more, but its successor, if there is one.
    fn deliver_unread(&self, execution: &Execution, position: usize) {
        let mut state = execution.ctx.state();
        for event in self.history().skip(position) {
            if let EventKind::QueueEventDelivered { name, data } = &event.kind {
                // No task is left to be woken.
                let _ = state.queues.deliver(name, data);
            }
        }
    }

    /// R3.70 – R3.73, in that order.
    fn decide(&mut self, execution: &mut Execution) -> TurnResult {
        if let Some(reason) = &self.index.cancel_reason {
            return TurnResult::Cancelled(reason.clone());
        }
        let continued = self.pending_actions.iter().find_map(|action| match action {
            Action::ContinueAsNew { input, version } => Some((input.clone(), version.clone())),
            _ => None,
        });
        if let Some((input, version)) = continued {
            let by_reading = execution.rules.drops_count_at_once;
            let unconsumed_queue_arrivals =
                by_reading.then(|| execution.ctx.state().queues.unread());
            return TurnResult::ContinueAsNew { input, version, unconsumed_queue_arrivals };
        }
        if let Err(divergence) = self.collect_drops(execution) {
            return TurnResult::Failed(self.diverged(execution, divergence));
        }
        match execution.output.take() {
            None => TurnResult::Continue,
            Some(Ok(output)) => TurnResult::Completed(output),
            Some(Err(text)) => {
                self.code_failed = true;
                if execution.ctx.state().undecoded.as_ref().is_some_and(|it| it.on_replay) {
                    // It could read it once, and would have gone on (R9.60).
                    let divergence = Divergence::new(format!("the code failed: {text}"));
                    self.report(execution, divergence.ending_with("failed"));
                }
                let kind = AppErrorKind::OrchestrationFailed;
                TurnResult::Failed(ErrorDetails::application(kind, text))
            }
        }
    }

    /// Code that fails over events that were stored before this turn: the code of then did not.
    fn note_failed_replay(&mut self, execution: &Execution, error: &ErrorDetails, position: usize) {
        let is_stored = 0 < self.persisted_len && position <= self.persisted_len;
        if self.is_resumed || !is_stored {
            return;
        }
        let last = self.baseline.get(position.max(1) - 1).map_or(0, |event| event.event_id);
        let text = error.display_message();
        let divergence = Divergence::new(format!("{text} (after event {last})")).ending_with(text);
        let divergence = match self.baseline.get(position.max(1)) {
            Some(next) if position < self.persisted_len => divergence.at(next),
            _ => divergence,
        };
        self.report(execution, divergence);
    }

    pub(super) fn diverged(
        &mut self,
        execution: &Execution,
        divergence: Box<Divergence>,
    ) -> ErrorDetails {
        ErrorDetails::nondeterminism(self.report(execution, divergence))
    }

    /// Makes the report; its message.
    fn report(&mut self, execution: &Execution, divergence: Box<Divergence>) -> String {
        // Code that is handed an error where there was none takes another way.
        let undecoded = execution.ctx.state().undecoded.clone().map(|undecoded| undecoded.text);
        let message = match &undecoded {
            Some(undecoded) => format!("{undecoded}; so {}", divergence.message),
            None => divergence.message.clone(),
        };
        let mut rows = agreed_rows(&execution.matched, self.history());
        rows.push(divergence.row());
        let identity = execution.ctx.identity();
        self.report = Some(Box::new(DivergenceReport {
            instance: identity.instance_id.clone(),
            execution_id: identity.execution_id,
            orchestration: identity.orchestration_name.clone(),
            version: identity.orchestration_version.clone(),
            message: message.clone(),
            undecoded,
            rows,
        }));
        message
    }

    /// Ends the turn: what the function still holds was alive until then (R3.103).
    pub(super) fn close(&mut self, execution: &Execution) {
        self.take_drops(execution);
        let state = execution.ctx.state();
        self.live_keys = state.kv.len();
        self.custom_status.clone_from(&state.custom_status);
        drop(state);
        self.cancelled_child_suffixes =
            self.cancelled_children.iter().map(|(_, suffix)| suffix.clone()).collect();
    }
}

/// What `ForeignWait::Fail` says.
const FOREIGN_WAIT: &str = "orchestration waits for something that is not durable; only await what the context returns (schedule_timer instead of sleep, activities instead of I/O, schedule_wait or dequeue_event instead of channels)";

enum Stop {
    /// With this event next to be applied.
    Failed(ErrorDetails, usize),
    Diverged(Box<Divergence>),
}

/// Replay takes the recorded age of every value again (L9).
fn remember_stamps(baseline: &[Event], execution: &Execution) {
    let mut state = execution.ctx.state();
    for event in baseline {
        if let EventKind::KeyValueSet { key, last_updated_at_ms, .. } = &event.kind {
            state.kv.remember_stamp(key, *last_updated_at_ms);
        }
    }
}
