//! Code kept between two turns, so that the next one need not begin again.
//!
//! A suspended execution is what a replay of its history would lead to, and nothing else: the same
//! future in the same place, the same state behind it. A node that keeps one has to make sure that
//! the history has not grown meanwhile; in any doubt it is dropped and the history replayed.

use super::emit::SystemCalls;
use super::engine::{ReplayEngine, TurnResult};
use super::execution::Execution;
use super::index::Class;
use super::outcome::{TurnOutcome, TurnStatus};
use super::terminal::Ending;
use super::turn::within_limits;
use crate::model::{Event, EventKind, WorkItem};

/// An execution between two turns.
pub struct Suspended {
    /// Boxed: it is moved about, and large.
    ran: Box<Ran>,
    bytes: usize,
}

/// What the next turn of a suspended execution needs.
pub struct Resumption {
    /// The messages to take in; none of them starts anything.
    pub messages: Vec<WorkItem>,
    /// The time, milliseconds since the epoch.
    pub now_ms: u64,
    /// What answers system calls within the turn.
    pub system_calls: Option<Box<dyn SystemCalls>>,
}

impl Suspended {
    /// Runs the next turn, and keeps the code again if it waits for more.
    pub fn resume(self, next: Resumption) -> (TurnOutcome, Option<Self>) {
        let Self { mut ran, bytes } = self;
        ran.engine.recorder.now_ms = next.now_ms;
        ran.engine.system_calls = next.system_calls;
        ran.engine.prep_completions(next.messages);
        let result = match &mut ran.execution {
            Some(execution) => ran.engine.resume(execution),
            None => TurnResult::Continue,
        };
        ran.conclude(result, bytes)
    }

    /// Whether it waits for this activity, and for no other activity or child: the result is then
    /// unlikely to be fetched together with another. Those with dropped futures count as well.
    pub fn waits_only_for_activity(&self, activity_id: u64) -> bool {
        self.ran.execution.as_ref().is_some_and(|execution| {
            let class = execution.open.get(activity_id);
            class == Some(&Class::Activity) && execution.open_work == 1
        })
    }

    /// Whether it waits for any activity or child.
    pub fn waits_for_work(&self) -> bool {
        self.ran.execution.as_ref().is_some_and(|execution| 0 < execution.open_work)
    }

    /// Id of the last event it has seen.
    pub fn last_event_id(&self) -> u64 {
        self.ran.engine.baseline.last().map_or(0, |event| event.event_id)
    }

    /// The time of that event.
    pub fn last_event_at_ms(&self) -> u64 {
        self.ran.engine.baseline.last().map_or(0, |event| event.timestamp_ms)
    }

    /// The execution that is suspended.
    pub fn execution_id(&self) -> u64 {
        self.ran.engine.recorder.execution_id
    }

    /// Its events so far.
    pub fn history(&self) -> &[Event] {
        &self.ran.engine.baseline
    }

    /// Drops of futures that the next turn would look at again.
    #[cfg(test)]
    pub(super) fn drops_in_memory(&self) -> usize {
        let in_context = |execution: &Execution| execution.ctx.state().tokens.dropped().count();
        self.ran.engine.dropped.len() + self.ran.execution.as_ref().map_or(0, in_context)
    }

    /// About how much memory it takes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }
}

/// A turn whose code has run.
pub(super) struct Ran {
    pub(super) engine: ReplayEngine,
    /// `None` if the code was not run.
    pub(super) execution: Option<Execution>,
    pub(super) name: String,
    /// Instance, execution if known, and schedule event.
    pub(super) parent: Option<(String, Option<u64>, u64)>,
    pub(super) parent_execution_fallback: u64,
}

impl Ran {
    /// The outcome, and the code if it waits for more. It took `bytes` before this turn.
    pub(super) fn conclude(
        mut self: Box<Self>,
        result: TurnResult,
        bytes: usize,
    ) -> (TurnOutcome, Option<Suspended>) {
        let result = within_limits(&self.engine, result);
        let ran = &mut *self;
        let ending = Ending {
            engine: &mut ran.engine,
            name: ran.name.clone(),
            parent: ran.parent.clone(),
            parent_execution_fallback: ran.parent_execution_fallback,
        };
        let outcome = ending.into_outcome(result);
        let waits = outcome.status == TurnStatus::Running && !outcome.waits_for_foreign;
        match &self.execution {
            // Executions of older libraries run by older rules, which only replay has to know.
            Some(execution) if waits && execution.rules.strict && execution.output.is_none() => {
                let size_of = |events: &[Event]| events.iter().map(size_of_event).sum::<usize>();
                // Kept for the first time: what was replayed stays in memory like what is new.
                let replayed = || execution.size() + size_of(&self.engine.baseline);
                let before = if bytes == 0 { replayed() } else { bytes };
                let bytes = before + size_of(&outcome.events);
                self.engine.begin_next_turn(&outcome.events);
                (outcome, Some(Suspended { ran: self, bytes }))
            }
            _ => (outcome, None),
        }
    }
}

/// About what the context and the index remember of an event beside its texts.
const SIZE_OF_STATE_PER_EVENT: usize = 128;

/// About how much memory an event takes.
fn size_of_event(event: &Event) -> usize {
    let text = match &event.kind {
        EventKind::OrchestrationStarted { name, version, input, carry_forward_events, .. } => {
            let carried = carry_forward_events.iter().flatten();
            let carried: usize = carried.map(|(name, data)| name.len() + data.len()).sum();
            name.len() + version.len() + input.len() + carried
        }
        EventKind::ActivityScheduled { name, input, .. } => name.len() + input.len(),
        EventKind::SubOrchestrationScheduled { name, instance, input }
        | EventKind::OrchestrationChained { name, instance, input } => {
            name.len() + instance.len() + input.len()
        }
        EventKind::ActivityCompleted { result }
        | EventKind::SubOrchestrationCompleted { result } => result.len(),
        EventKind::ActivityFailed { details } | EventKind::SubOrchestrationFailed { details } => {
            details.display_message().len()
        }
        // Twice: the data lives in the context, too.
        EventKind::ExternalEvent { name, data } | EventKind::QueueEventDelivered { name, data } => {
            2 * (name.len() + data.len())
        }
        EventKind::KeyValueSet { key, value, .. } => 2 * (key.len() + value.len()),
        EventKind::CustomStatusUpdated { status } => status.as_ref().map_or(0, String::len),
        _ => 0,
    };
    let fixed = size_of::<Event>() + SIZE_OF_STATE_PER_EVENT;
    fixed + event.instance_id.len() + event.duroxide_version.len() + text
}
