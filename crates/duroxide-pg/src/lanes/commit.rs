//! Turns about to be committed, serialised by whoever commits them.

use duroxide_core::model::WorkItem;
use duroxide_core::provider::{DirectTurn, Refusal, TimerTurn, TurnCommit};
use uuid::Uuid;

use crate::drafts::{MessageDraft, WorkDraft};
use crate::events::{Delta, EventDraft};
use crate::numbers::{id_in, ms_in};
use crate::text::{pack, packed};
use crate::token;

/// What one commit asks for, as it is stored.
#[derive(Debug)]
pub(crate) struct CommitDraft {
    pub(super) right: Right,
    /// The secret of its lock; one that a direct turn makes up, by which it can be told that it was
    /// committed.
    pub(super) secret: Uuid,
    /// The turn, and those that follow it (R8.140).
    pub(super) turns: Vec<TurnDraft>,
}

/// What entitles to a commit.
#[derive(Debug)]
pub(super) enum Right {
    /// The lock on the instance with this key.
    Lock(i64),
    /// The lock on an activity (R8.142).
    Activity(ActivityDone),
    /// Timers that are held back (R8.150).
    Timers(TimersDue),
}

/// An activity whose outcome a turn has read.
#[derive(Debug)]
pub(super) struct ActivityDone {
    pub(super) seq: i64,
    pub(super) secret: Uuid,
    /// Whose it is, and the last event it has, by id and time.
    pub(super) instance: String,
    pub(super) last_event: (i64, i64),
}

/// Timers that a turn has read before they were shown.
#[derive(Debug)]
pub(super) struct TimersDue {
    /// Whose they are, and the last event it has, by id and time.
    pub(super) key: i64,
    pub(super) instance: String,
    pub(super) last_event: (i64, i64),
    /// When they are due, and their messages.
    pub(super) timers: Vec<(i64, String)>,
}

/// One turn, as it is stored.
#[derive(Debug)]
pub(super) struct TurnDraft {
    pub(super) execution_id: u64,
    pub(super) started: Option<i64>,
    pub(super) outcome: Option<i64>,
    pub(super) status: Option<String>,
    pub(super) output: Option<String>,
    pub(super) name: Option<String>,
    pub(super) version: Option<String>,
    pub(super) parent: Option<String>,
    pub(super) pin: Option<String>,
    /// The new custom status, if it is set or taken away.
    pub(super) custom: Option<Option<String>>,
    pub(super) cleared: bool,
    pub(super) events: Vec<EventDraft>,
    /// Keys with value and time, or nothing.
    pub(super) kv: Vec<(String, Option<String>, i64)>,
    pub(super) work: Vec<WorkDraft>,
    pub(super) cancelled: Vec<CancelDraft>,
    pub(super) messages: Vec<TimedMessage>,
    /// Timers that nothing waits for any more (R8.151).
    pub(super) dropped_timers: Vec<DroppedTimer>,
}

/// A message, and when it is due.
#[derive(Debug)]
pub(super) struct TimedMessage {
    pub(super) draft: MessageDraft,
    pub(super) due: Option<i64>,
}

/// A timer that nothing waits for any more: whose it is, its time and its message.
#[derive(Debug)]
pub(super) struct DroppedTimer {
    pub(super) instance: String,
    pub(super) due: i64,
    pub(super) payload: String,
}

/// An activity that nobody wants any more.
#[derive(Debug)]
pub(super) struct CancelDraft {
    pub(super) instance: String,
    pub(super) execution: i64,
    pub(super) activity: i64,
}

impl CommitDraft {
    /// Serialises a commit; whatever can be refused without looking at the store is refused.
    pub(crate) fn of(lock_token: &str, commit: &TurnCommit) -> Result<Self, Refusal> {
        let (key, secret) = token::read_turn(lock_token)?;
        Ok(Self { right: Right::Lock(key), secret, turns: drafts_of(commit)? })
    }

    /// The same for a turn that comes with its activity.
    pub(crate) fn of_direct(turn: &DirectTurn) -> Result<Self, Refusal> {
        let (seq, secret) = token::read_work(&turn.work_token)?;
        let done = ActivityDone {
            seq,
            secret,
            instance: pack(&turn.instance).into_owned(),
            last_event: (id_in(turn.last_event_id), ms_in(turn.last_event_at_ms)),
        };
        let (right, secret) = (Right::Activity(done), token::fresh_secret());
        Ok(Self { right, secret, turns: drafts_of(&turn.commit)? })
    }

    /// The same for a turn that comes with its timers.
    pub(crate) fn of_timers(turn: &TimerTurn, key: i64) -> Result<Self, Refusal> {
        let timer = |timer: &WorkItem| {
            let due = due_time(timer).ok_or(Refusal::NotHeldBack)?;
            Ok((due, MessageDraft::of(timer)?.payload))
        };
        let timers = turn.timers.iter().map(timer).collect::<Result<Vec<_>, Refusal>>()?;
        if timers.is_empty() {
            return Err(Refusal::NotHeldBack);
        }
        let due = TimersDue {
            key,
            instance: pack(&turn.instance).into_owned(),
            last_event: (id_in(turn.last_event_id), ms_in(turn.last_event_at_ms)),
            timers,
        };
        let (right, secret) = (Right::Timers(due), token::fresh_secret());
        Ok(Self { right, secret, turns: drafts_of(&turn.commit)? })
    }

    /// Whether a client can wait for what it changes (R8.134).
    pub(crate) fn can_be_waited_for(&self) -> bool {
        self.turns.iter().any(TurnDraft::can_be_waited_for)
    }

    /// The instance, if the turn ran without a lock.
    pub(super) fn seen_at_rest(&self) -> Option<&str> {
        match &self.right {
            Right::Lock(_) => None,
            Right::Activity(done) => Some(&done.instance),
            Right::Timers(due) => Some(&due.instance),
        }
    }

    /// The activity that comes with it.
    pub(super) fn activity(&self) -> Option<&ActivityDone> {
        match &self.right {
            Right::Activity(done) => Some(done),
            Right::Lock(_) | Right::Timers(_) => None,
        }
    }

    /// The timers that come with it.
    pub(super) fn timers(&self) -> Option<&TimersDue> {
        match &self.right {
            Right::Timers(due) => Some(due),
            Right::Lock(_) | Right::Activity(_) => None,
        }
    }

    /// The key of the instance, if that is known: else the activity tells.
    pub(super) fn key(&self) -> Option<i64> {
        match self.right {
            Right::Lock(key) | Right::Timers(TimersDue { key, .. }) => Some(key),
            Right::Activity(_) => None,
        }
    }
}

fn drafts_of(commit: &TurnCommit) -> Result<Vec<TurnDraft>, Refusal> {
    commit.turns()?.into_iter().map(TurnDraft::of).collect()
}

impl TurnDraft {
    fn of(commit: &TurnCommit) -> Result<Self, Refusal> {
        let work = commit.worker_items.iter().map(WorkDraft::of).collect::<Result<_, _>>()?;
        let message = |item| {
            Ok(TimedMessage { draft: MessageDraft::of(item)?, due: commit.due_at(item).map(ms_in) })
        };
        let messages = commit.orchestrator_items.iter().map(message).collect::<Result<_, _>>()?;
        let delta = Delta::of(commit.execution_id, &commit.history_delta)?;
        let change = |(key, set): (&&str, &Option<(&str, u64)>)| {
            let (value, at) = set.map_or((None, 0), |(value, at)| (Some(value), ms_in(at)));
            (pack(key).into_owned(), packed(value), at)
        };
        let metadata = &commit.metadata;
        Ok(Self {
            execution_id: commit.execution_id,
            started: delta.started.map(id_in),
            outcome: delta.outcome.map(id_in),
            status: packed(metadata.status.as_deref()),
            output: packed(metadata.output.as_deref()),
            name: packed(metadata.orchestration_name.as_deref()),
            version: packed(metadata.orchestration_version.as_deref()),
            parent: packed(metadata.parent_instance_id.as_deref()),
            pin: metadata.pinned_duroxide_version.as_ref().map(ToString::to_string),
            custom: delta.custom_status.map(packed),
            cleared: delta.cleared,
            kv: delta.kv.iter().map(change).collect(),
            events: delta.events,
            work,
            cancelled: commit.cancelled_activities.iter().map(CancelDraft::of).collect(),
            messages,
            dropped_timers: commit.dropped_timers.iter().filter_map(DroppedTimer::of).collect(),
        })
    }

    /// The ids of the instances it writes to.
    pub(super) fn ids_written(&self) -> impl Iterator<Item = &str> {
        let messages = self.messages.iter().map(|message| message.draft.instance.as_str());
        self.work.iter().map(|work| work.instance.as_str()).chain(messages)
    }

    /// About how many bytes it sends.
    pub(super) fn weight(&self) -> usize {
        let events: usize = self.events.iter().map(|event| event.weight()).sum();
        let work: usize = self.work.iter().map(|work| work.payload.len()).sum();
        let messages = self.messages.iter().map(|message| message.draft.payload.len());
        events + work + messages.sum::<usize>()
    }

    fn can_be_waited_for(&self) -> bool {
        self.status.is_some() || self.custom.is_some() || self.cleared || !self.kv.is_empty()
    }
}

impl DroppedTimer {
    /// Nothing for what is no timer: it is a remark, which no commit is refused for.
    fn of(item: &WorkItem) -> Option<Self> {
        let due = due_time(item)?;
        let MessageDraft { instance, payload, .. } = MessageDraft::of(item).ok()?;
        Some(Self { instance, due, payload })
    }
}

impl CancelDraft {
    fn of(activity: &duroxide_core::provider::ScheduledActivityIdentifier) -> Self {
        Self {
            instance: pack(&activity.instance).into_owned(),
            execution: id_in(activity.execution_id),
            activity: id_in(activity.activity_id),
        }
    }
}

fn due_time(item: &WorkItem) -> Option<i64> {
    match item {
        WorkItem::TimerFired { fire_at_ms, .. } => Some(ms_in(*fire_at_ms)),
        _ => None,
    }
}
