//! Dropped futures become cancellations, and recorded drops must be repeated (R3.100 – R3.104).

use std::collections::BTreeSet;

use super::divergence::Divergence;
use super::engine::ReplayEngine;
use super::execution::Execution;
use crate::context::Operation;
use crate::model::{Event, EventKind, WorkItem};

/// Reason of a breadcrumb written for a dropped future (R2.42).
pub(super) const DROPPED_FUTURE: &str = "dropped_future";

/// The cancellable operations, in the order in which their breadcrumbs are written.
const DROPPABLE: [(Operation, &str); 4] = [
    (Operation::Activity, "activities"),
    (Operation::Child, "sub-orchestrations"),
    (Operation::Wait, "external waits"),
    (Operation::Dequeue, "persistent waits"),
];

impl ReplayEngine {
    /// Ends the turn for the code's futures and takes note of those it has dropped.
    pub(super) fn take_drops(&mut self, execution: &Execution) {
        let mut state = execution.ctx.state();
        state.freeze();
        self.dropped.extend(state.tokens.take_dropped());
        self.dropped_timers.extend(state.take_dropped_timers());
    }

    /// The messages of timers that nothing waits for any more since this turn and that have not
    /// fired, by schedule event (R3.104e).
    pub(super) fn timers_without_listener(&self) -> Vec<WorkItem> {
        let mut ids = self.dropped_timers.clone();
        ids.sort_unstable();
        let message = |id: u64| {
            let schedule = self.index.get(id).filter(|schedule| !schedule.completed)?;
            match self.event_at(schedule.position)?.kind {
                EventKind::TimerCreated { fire_at_ms } => Some(self.timer_message(id, fire_at_ms)),
                _ => None,
            }
        };
        ids.into_iter().filter_map(message).collect()
    }

    /// What fires a timer.
    pub(super) fn timer_message(&self, id: u64, fire_at_ms: u64) -> WorkItem {
        let instance = self.recorder.instance.clone();
        WorkItem::TimerFired { instance, execution_id: self.recorder.execution_id, id, fire_at_ms }
    }

    /// Checks recorded drops against this run's, then records the new ones.
    pub(super) fn collect_drops(&mut self, execution: &Execution) -> Result<(), Box<Divergence>> {
        self.take_drops(execution);
        let dropped: Vec<(Operation, &str, Vec<u64>)> = DROPPABLE
            .into_iter()
            .map(|(operation, label)| (operation, label, self.dropped_of(operation).collect()))
            .collect();
        if !self.is_resumed {
            for (operation, label, ids) in &dropped {
                self.check_recorded_drops(*operation, label, ids)?;
            }
        }
        for (operation, _, ids) in dropped {
            for id in ids {
                self.record_drop(operation, id);
            }
        }
        Ok(())
    }

    /// The schedules of a kind that were dropped in this turn, ascending.
    pub(super) fn dropped_of(&self, operation: Operation) -> impl Iterator<Item = u64> {
        self.dropped.iter().filter(move |(of, _)| *of == operation).map(|(_, id)| *id)
    }

    fn check_recorded_drops(
        &self,
        operation: Operation,
        label: &str,
        dropped: &[u64],
    ) -> Result<(), Box<Divergence>> {
        let persisted = &self.baseline[..self.persisted_len.min(self.baseline.len())];
        let Some(last_persisted) = persisted.last() else { return Ok(()) };
        let breadcrumbs =
            || persisted.iter().filter(|event| dropped_by_breadcrumb(event) == Some(operation));
        let repeated: BTreeSet<u64> =
            dropped.iter().copied().filter(|id| *id <= last_persisted.event_id).collect();
        let is_missing = |event: &&Event| {
            event.source_event_id.is_some_and(|source| !repeated.contains(&source))
        };
        let Some(first_missing) = breadcrumbs().find(is_missing) else { return Ok(()) };
        let recorded: BTreeSet<u64> =
            breadcrumbs().filter_map(|event| event.source_event_id).collect();
        Err(Divergence::new(format!(
            "cancellation mismatch ({label}): baseline_dropped_future_cancel_requests={recorded:?} ctx_cancelled_in_replayed_segment={repeated:?}"
        ))
        .at(first_missing))
    }

    /// Side effects only for drops recorded now; a replayed drop has none (R3.104).
    fn record_drop(&mut self, operation: Operation, id: u64) {
        let Some(schedule) = self.index.get(id).copied() else { return };
        if schedule.cancel_requested {
            return;
        }
        let reason = DROPPED_FUTURE.to_owned();
        let kind = match operation {
            Operation::Activity => {
                self.cancelled_activity_ids.push(id);
                EventKind::ActivityCancelRequested { reason }
            }
            Operation::Child => {
                let scheduled = self.event_at(schedule.position).map(|event| &event.kind);
                if let Some(EventKind::SubOrchestrationScheduled { instance, .. }) = scheduled {
                    self.cancelled_children.push((id, instance.clone()));
                }
                EventKind::SubOrchestrationCancelRequested { reason }
            }
            Operation::Wait => EventKind::ExternalSubscribedCancelled { reason },
            Operation::Dequeue => EventKind::QueueSubscriptionCancelled { reason },
            _ => return,
        };
        self.record(Some(id), kind);
    }
}

/// The operation whose dropped future a breadcrumb records.
fn dropped_by_breadcrumb(event: &Event) -> Option<Operation> {
    let (operation, reason) = match &event.kind {
        EventKind::ActivityCancelRequested { reason } => (Operation::Activity, reason),
        EventKind::SubOrchestrationCancelRequested { reason } => (Operation::Child, reason),
        EventKind::ExternalSubscribedCancelled { reason } => (Operation::Wait, reason),
        EventKind::QueueSubscriptionCancelled { reason } => (Operation::Dequeue, reason),
        _ => return None,
    };
    (reason == DROPPED_FUTURE).then_some(operation)
}
