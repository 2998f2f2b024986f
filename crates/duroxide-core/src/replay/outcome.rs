//! Everything one turn asks the store to make true, as plain data.

use super::divergence::DivergenceReport;
use crate::model::{ErrorDetails, Event, EventKind, WorkItem};

/// What a turn adds and asks for. One atomic commit carries it out.
#[derive(Debug)]
pub struct TurnOutcome {
    /// Events to append.
    pub events: Vec<Event>,
    /// Activities to queue.
    pub activities: Vec<WorkItem>,
    /// Messages to queue: timers, starts, notifications, cancellations.
    pub messages: Vec<WorkItem>,
    /// Activities to take out of the worker queue, by schedule event.
    pub cancelled: Vec<u64>,
    /// The messages of timers whose futures this turn has dropped, as they were queued or are about to
    /// be. They fire all the same; if the execution has ended, none is named (R3.104e).
    pub dropped_timers: Vec<WorkItem>,
    /// Where the execution stands now.
    pub status: TurnStatus,
    /// Children whose results the turn took in.
    pub finished_children: Vec<FinishedChild>,
    /// Where code and history parted, if they did.
    pub divergence: Option<Box<DivergenceReport>>,
    /// Whether the code waited for something that is not durable.
    pub waits_for_foreign: bool,
    /// If a successor follows: every change of the key-value store that this execution made, in
    /// order. The successor begins with the entries that come of them.
    pub kv_changes: Vec<EventKind>,
}

/// Where an execution stands after a turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TurnStatus {
    /// It waits.
    Running,
    /// It returned `Ok`.
    Completed(String),
    /// It ended in an error.
    Failed(ErrorDetails),
    /// A successor follows, with this input.
    ContinuedAsNew(String),
}

/// A child that ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FinishedChild {
    /// Registered name.
    pub name: String,
    /// Whether it returned `Ok`.
    pub succeeded: bool,
    /// Time from its scheduling to its result, in milliseconds.
    pub took_ms: u64,
}
