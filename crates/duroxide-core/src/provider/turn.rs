//! Turns as bundles: fetched with or without history, committed as one value.

use crate::model::{Event, WorkItem};

use super::{
    ExecutionMetadata, OrchestrationItem, ProviderError, Refusal, ScheduledActivityIdentifier,
};

/// A locked turn.
#[derive(Debug, Clone)]
pub struct FetchedTurn {
    /// The instance and its messages. Its history is empty unless `history_included`.
    pub item: OrchestrationItem,
    /// Proof of the lock.
    pub lock_token: String,
    /// How often its messages have been fetched, from 1.
    pub attempt_count: u32,
    /// Id of the last event of the current execution; 0 if it has none.
    pub last_event_id: u64,
    /// Its time; 0 if there is none. With the id it tells whether another worker has gone on with the
    /// instance.
    pub last_event_at_ms: u64,
    /// Number of the instance's life: another if it was deleted and its name used again, the same for
    /// all turns between (R8.143). 0 if the store cannot tell.
    pub incarnation: u64,
    /// Whether `item.history` holds the history.
    pub history_included: bool,
}

impl FetchedTurn {
    /// A turn that brings its history.
    pub fn with_history(item: OrchestrationItem, lock_token: String, attempt_count: u32) -> Self {
        let last = item.history.last();
        Self {
            last_event_id: last.map_or(0, |event| event.event_id),
            last_event_at_ms: last.map_or(0, |event| event.timestamp_ms),
            item,
            lock_token,
            attempt_count,
            incarnation: 0,
            history_included: true,
        }
    }
}

/// Everything one turn asks the store to make true, in one atomic commit.
#[derive(Debug, Clone, Default)]
pub struct TurnCommit {
    /// Execution the events belong to.
    pub execution_id: u64,
    /// Events to append.
    pub history_delta: Vec<Event>,
    /// Activities to queue.
    pub worker_items: Vec<WorkItem>,
    /// Messages to queue.
    pub orchestrator_items: Vec<WorkItem>,
    /// What the events mean for the instance.
    pub metadata: ExecutionMetadata,
    /// Activities to take out of the worker queue.
    pub cancelled_activities: Vec<ScheduledActivityIdentifier>,
    /// How much later than at their time the timers among the messages become visible: the node that
    /// commits this means to fire them itself, by
    /// [`commit_timer_turn`](super::Provider::commit_timer_turn) (R8.150). 0 where the store does not
    /// take such turns.
    pub timer_grace_ms: u64,
    /// Timers of this execution that nothing waits for any more since this turn: their messages, as
    /// they were queued, or are by this commit. They are delivered like any other; a store may mark
    /// them for tools that show what an instance waits for, and need not (R8.151).
    pub dropped_timers: Vec<WorkItem>,
    /// The first turn of the next execution, if that has run already. It is stored right after this
    /// one, in the same transaction, and no message has to begin it (R8.140).
    pub successor: Option<Box<TurnCommit>>,
}

impl TurnCommit {
    /// When a message of this turn becomes visible, if that is not at once (R8.53, R8.150).
    pub fn due_at(&self, message: &WorkItem) -> Option<u64> {
        match message {
            WorkItem::TimerFired { fire_at_ms, .. } => {
                Some(fire_at_ms.saturating_add(self.timer_grace_ms))
            }
            _ => None,
        }
    }

    /// This turn and those after it, for stores that commit them together. Their executions follow
    /// one another (R8.140).
    pub fn turns(&self) -> Result<Vec<&Self>, Refusal> {
        let mut turns = vec![self];
        while let Some(next) = turns.last().and_then(|last| last.successor.as_deref()) {
            let execution_id = turns.last().map_or(0, |last| last.execution_id);
            if execution_id.checked_add(1) != Some(next.execution_id) {
                return Err(Refusal::NotASuccessor { execution_id, next: next.execution_id });
            }
            turns.push(next);
        }
        Ok(turns)
    }
}

/// A turn that has read an activity's outcome before it was stored, to be stored with it (R8.142).
#[derive(Debug, Clone)]
pub struct DirectTurn {
    /// Proof of the lock on the activity.
    pub work_token: String,
    /// The instance that asked for the activity, and whose turn this is.
    pub instance: String,
    /// Id of the last event of its current execution, as the turn has seen it.
    pub last_event_id: u64,
    /// The time of that event.
    pub last_event_at_ms: u64,
    /// The turn.
    pub commit: TurnCommit,
}

/// A turn that has read timers as they became due, before the store has shown their messages, to be
/// stored as these are taken out (R8.150).
#[derive(Debug, Clone)]
pub struct TimerTurn {
    /// The instance whose turn this is.
    pub instance: String,
    /// Which of those that had its name it is, as a fetch has told (R8.143); 0 if that is not known.
    pub incarnation: u64,
    /// Id of the last event of its current execution, as the turn has seen it.
    pub last_event_id: u64,
    /// The time of that event.
    pub last_event_at_ms: u64,
    /// The messages it has read, all of them `TimerFired`, as they were queued.
    pub timers: Vec<WorkItem>,
    /// The turn.
    pub commit: TurnCommit,
}

/// A commit that did not happen, with its contents.
#[derive(Debug)]
pub struct RejectedCommit {
    /// Why not.
    pub error: ProviderError,
    /// What was to be committed.
    pub commit: Box<TurnCommit>,
}
