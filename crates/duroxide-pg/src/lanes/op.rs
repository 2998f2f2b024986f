//! What a lane can be asked to do, and what that means for others.

use std::time::Duration;

use duroxide_core::model::{WorkItem, kind_of};
use duroxide_core::provider::Refusal;
use tokio::sync::oneshot;
use tokio::time::Instant;
use uuid::Uuid;

use super::bounds::BEGINNING;
use super::call::Call;
use super::commit::{CommitDraft, Right};
use super::floor::FOR_EVER;
use crate::commit_board;
use crate::drafts::{self, MessageDraft, WorkDraft};
use crate::error::Failure;
use crate::token;

/// Something to be done.
#[derive(Debug)]
pub(crate) enum Op {
    /// A message is queued, visible after so many milliseconds (R8.10).
    Enqueue { message: MessageDraft, delay: i64 },
    /// An activity is queued.
    QueueWork(WorkDraft),
    /// A turn is committed (R8.40), or an activity is done and the turn that has read its outcome is
    /// committed (R8.142).
    Commit(Box<CommitDraft>),
    /// An activity is done (R8.74).
    Ack { seq: i64, secret: Uuid, outcome: Option<MessageDraft> },
    /// A lock is held for longer (R8.68, R8.75).
    Renew { lock: Lock, extend: i64 },
    /// A lock is given back (R8.65, R8.76).
    Abandon { lock: Lock, delay: i64, uncount: bool },
}

/// A lock that somebody holds, or believes to hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Lock {
    pub(crate) queue: Queue,
    /// Key of the instance, or position of the activity.
    pub(crate) place: i64,
    pub(crate) secret: Uuid,
}

/// What can be fetched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Queue {
    Turns,
    Work,
}

/// Ops of one kind are done by one call, in this order. Commits are the last: a look at activities is
/// part of them, which finds what others give back, and whose claim of a session holds up nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    Enqueue,
    QueueWork,
    Ack,
    AbandonTurn,
    AbandonWork,
    RenewTurn,
    RenewWork,
    Commit,
}

impl Op {
    /// The end of an activity. An outcome has to be one.
    pub(crate) fn ack(token: &str, outcome: Option<&WorkItem>) -> Result<Self, Refusal> {
        let (seq, secret) = token::read_work(token)?;
        let is_outcome = |item: &WorkItem| {
            matches!(item, WorkItem::ActivityCompleted { .. } | WorkItem::ActivityFailed { .. })
        };
        if let Some(item) = outcome.filter(|item| !is_outcome(item)) {
            return Err(Refusal::NotAnOutcome(kind_of(item)));
        }
        Ok(Self::Ack { seq, secret, outcome: outcome.map(MessageDraft::of).transpose()? })
    }

    pub(super) fn kind(&self) -> Kind {
        match self {
            Self::Enqueue { .. } => Kind::Enqueue,
            Self::QueueWork(_) => Kind::QueueWork,
            Self::Commit(_) => Kind::Commit,
            Self::Ack { .. } => Kind::Ack,
            Self::Renew { lock, .. } if lock.queue == Queue::Turns => Kind::RenewTurn,
            Self::Renew { .. } => Kind::RenewWork,
            Self::Abandon { lock, .. } if lock.queue == Queue::Turns => Kind::AbandonTurn,
            Self::Abandon { .. } => Kind::AbandonWork,
        }
    }

    /// The lock it is about. Of those about one lock there is one in a transaction.
    pub(super) fn lock(&self) -> Option<(Queue, i64)> {
        match self {
            Self::Commit(draft) => Some(match &draft.right {
                Right::Lock(key) => (Queue::Turns, *key),
                Right::Activity(done) => (Queue::Work, done.seq),
                Right::Timers(due) => (Queue::Turns, due.key),
            }),
            Self::Ack { seq, .. } => Some((Queue::Work, *seq)),
            Self::Renew { lock, .. } | Self::Abandon { lock, .. } => Some((lock.queue, lock.place)),
            Self::Enqueue { .. } | Self::QueueWork(_) => None,
        }
    }

    /// Whether it only takes, extends or gives back locks, and so need not be on the disk.
    pub(super) fn is_brief(&self) -> bool {
        matches!(self, Self::Renew { .. } | Self::Abandon { .. })
    }

    /// Whether it can be done again if nobody knows whether it has been done: it is about a lock, which
    /// is gone once it has.
    pub(super) fn is_repeatable(&self) -> bool {
        self.lock().is_some()
    }

    /// Asks whether it was done; `None` if nothing tells.
    pub(super) fn was_done(&self) -> Option<Call<'_>> {
        const TURN: &str = "SELECT duroxide.was_committed($1, $2)";
        const DIRECT: &str = "SELECT duroxide.was_committed_directly($1, $2)";
        const WORK: &str = "SELECT duroxide.is_gone($1)";
        match self {
            Self::Commit(draft) => Some(match &draft.right {
                Right::Lock(key) => Call::new(TURN).with(*key).with(draft.secret),
                Right::Activity(done) => {
                    Call::new(DIRECT).with(done.instance.as_str()).with(draft.secret)
                }
                Right::Timers(due) => {
                    Call::new(DIRECT).with(due.instance.as_str()).with(draft.secret)
                }
            }),
            Self::Ack { seq, .. } => Some(Call::new(WORK).with(*seq)),
            Self::Abandon { .. } | Self::Renew { .. } => None,
            Self::Enqueue { .. } | Self::QueueWork(_) => None,
        }
    }

    /// The queue, and the place from which on, it may make something ready that was queued long ago.
    pub(super) fn gives_back(&self) -> Option<(Queue, i64)> {
        match self {
            Self::Abandon { lock, .. } if lock.queue == Queue::Turns => {
                Some((Queue::Turns, BEGINNING))
            }
            Self::Abandon { lock, delay: 0, .. } => Some((Queue::Work, lock.place)),
            _ => None,
        }
    }

    /// In how many milliseconds what it is about can be fetched again, unless something happens before.
    pub(super) fn ends_in(&self) -> Option<(Queue, i64)> {
        match self {
            Self::Renew { lock, extend } => Some((lock.queue, *extend)),
            Self::Abandon { lock, delay, .. } if *delay != 0 => Some((lock.queue, *delay)),
            _ => None,
        }
    }

    /// Whether it may bring a message that is for nobody, which the next look is to find (R8.28).
    pub(super) fn may_be_for_nobody(&self) -> bool {
        matches!(self, Self::Enqueue { message, .. } if message.kind == drafts::Kind::Queue)
    }

    /// About how many bytes it sends.
    pub(super) fn weight(&self) -> usize {
        match self {
            Self::Enqueue { message, .. } => message.payload.len(),
            Self::QueueWork(draft) => draft.payload.len(),
            Self::Commit(draft) => draft.turns.iter().map(|turn| turn.weight()).sum(),
            Self::Ack { outcome, .. } => outcome.as_ref().map_or(0, |m| m.payload.len()),
            Self::Renew { .. } | Self::Abandon { .. } => 0,
        }
    }

    /// What it may bring to those who fetch.
    pub(super) fn feeds(&self, feed: &mut Feed) {
        match self {
            Self::Enqueue { delay: 0, .. } => feed.turns = true,
            Self::Enqueue { delay, .. } => feed.note_delay(*delay),
            Self::QueueWork(draft) => feed.add_work(draft),
            Self::Commit(draft) => {
                // Whether messages came during the turn, its answer tells.
                let messages = || draft.turns.iter().flat_map(|turn| &turn.messages);
                feed.turns |= messages().any(|message| message.due.is_none());
                let work = draft.turns.iter().flat_map(|turn| &turn.work);
                work.for_each(|work| feed.add_work(work));
                messages().filter_map(|message| message.due).for_each(|due| feed.note_due(due));
            }
            Self::Ack { outcome, .. } => {
                feed.turns |= outcome.is_some();
            }
            Self::Abandon { lock, delay: 0, .. } if lock.queue == Queue::Turns => feed.turns = true,
            Self::Abandon { lock, delay, .. } if lock.queue == Queue::Turns => {
                feed.note_delay(*delay)
            }
            Self::Abandon { .. } => {
                feed.work = true;
                feed.is_odd_work = true;
            }
            Self::Renew { .. } => {}
        }
    }
}

/// What a transaction may bring to those who fetch.
#[derive(Debug, Default)]
pub(crate) struct Feed {
    pub(crate) turns: bool,
    pub(crate) work: bool,
    /// The work is more than plain activities without tag or session.
    pub(crate) is_odd_work: bool,
    /// Milliseconds until messages become visible.
    pub(crate) turns_in: Option<i64>,
    /// Time at which messages become visible.
    pub(crate) turns_at: Option<i64>,
}

impl Feed {
    pub(crate) fn has(&self, queue: Queue) -> bool {
        match queue {
            Queue::Turns => self.turns,
            Queue::Work => self.work,
        }
    }

    /// How long until messages that are not visible yet become so, by the time it is.
    pub(crate) fn due_in(&self, now_ms: u64) -> Option<Duration> {
        let until = |due: i64| u64::try_from(due).unwrap_or(0).saturating_sub(now_ms);
        let delay = self.turns_in.and_then(|delay| u64::try_from(delay).ok());
        let first = [delay, self.turns_at.map(until)].into_iter().flatten().min()?;
        Some(Duration::from_millis(first).min(FOR_EVER))
    }

    fn add_work(&mut self, work: &WorkDraft) {
        self.work = true;
        self.is_odd_work |= work.tag.is_some() || work.session.is_some();
    }

    fn note_delay(&mut self, delay: i64) {
        self.turns_in = Some(self.turns_in.map_or(delay, |before| before.min(delay)));
    }

    fn note_due(&mut self, due: i64) {
        self.turns_at = Some(self.turns_at.map_or(due, |before| before.min(due)));
    }
}

/// An op, and who waits for it.
#[derive(Debug)]
pub(super) struct Waiting {
    pub(super) op: Op,
    /// `None`: what nobody claimed goes back.
    pub(super) reply: Option<oneshot::Sender<Result<(), Failure>>>,
    /// What to ring when it is done: clients wait for it (R8.134).
    pub(super) bell: Option<commit_board::Place>,
    /// It may have been done before, the answer was lost.
    pub(super) is_repeated: bool,
    /// If it was set apart: which it was, and when.
    pub(super) blocked: Option<(u64, Instant)>,
}

impl Waiting {
    pub(super) fn new(
        op: Op,
        reply: Option<oneshot::Sender<Result<(), Failure>>>,
        bell: Option<commit_board::Place>,
    ) -> Self {
        Self { op, reply, bell, is_repeated: false, blocked: None }
    }

    pub(super) fn answer(self, result: Result<(), Failure>) {
        match self.reply {
            // Whoever is gone does not want to know.
            Some(reply) => drop(reply.send(result)),
            None => {
                if let Err(failure) = result {
                    // Its lock will run out.
                    let error = failure.during("give_back");
                    tracing::debug!(target: "duroxide::providers::postgres", %error, "not given back");
                }
            }
        }
    }
}
