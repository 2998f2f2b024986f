//! What waits, and which part of it leaves next.

use std::collections::{HashSet, VecDeque};

use tokio::time::Instant;

use super::desk::{Desk, Fetch, Look};
use super::held::{Carrier, Held, HeldAnswers};
use super::op::{Feed, Queue, Waiting};
use crate::error::PgError;

/// Most ops of one transaction, and most bytes they send: locks are held until the last of them is
/// done.
const OPS_MAX: usize = 256;
const WEIGHT_MAX: usize = 4 << 20;
/// Desks that nobody waits at are kept for a while: they know when they looked last.
const DESKS_MAX: usize = 64;

/// What waits.
#[derive(Default)]
pub(super) struct State {
    pub(super) ops: VecDeque<Waiting>,
    pub(super) desks: Vec<Desk>,
    pub(super) held: HeldAnswers,
    pub(super) next_id: u64,
    /// Locks on their way back in transactions under way.
    pub(super) going_back: usize,
    /// Until when whoever keeps the time sleeps.
    pub(super) alarm: Option<Instant>,
    /// There have been ops since somebody asked.
    pub(super) was_busy: bool,
    pub(super) is_closed: bool,
}

/// What leaves together, as one transaction.
#[derive(Default)]
pub(super) struct Batch {
    pub(super) ops: Vec<Waiting>,
    pub(super) looks: Vec<Look>,
    /// Answers that wait for the disk.
    pub(super) held: Vec<Held>,
    pub(super) feed: Feed,
    /// Its ops may have been done before, the answer was lost; until when it is tried again.
    pub(super) repeat_until: Option<Instant>,
    /// What is alone may be one of the common cases.
    pub(super) is_common: bool,
    pub(super) going_back: usize,
}

impl Batch {
    /// An op alone, not one of the common cases.
    pub(super) fn uncommon(waiting: Waiting) -> Self {
        let mut batch = Self { ops: vec![waiting], ..Self::default() };
        batch.note_feed();
        batch
    }

    /// Ops whose answers were lost.
    pub(super) fn again(ops: Vec<Waiting>, until: Instant) -> Self {
        let mut batch = Self { ops, repeat_until: Some(until), ..Self::default() };
        batch.note_feed();
        batch
    }

    /// Whether what is wrong with the whole may be wrong with a part only.
    pub(super) fn can_be_parted(&self, error: &PgError) -> bool {
        let is_many = 1 < self.ops.len() + self.looks.len() && !self.ops.is_empty();
        is_many && error.may_be_about_one() || self.is_common && error.is_violated_key()
    }

    pub(super) fn has_something_to_do(&self) -> bool {
        !self.ops.is_empty() || !self.looks.is_empty()
    }

    fn note_feed(&mut self) {
        self.ops.iter().for_each(|waiting| waiting.op.feeds(&mut self.feed));
    }
}

impl State {
    pub(super) fn take_batch(&mut self, carrier: Carrier, now: Instant) -> Option<Batch> {
        let mut batch = Batch { ops: self.take_ops(), is_common: true, ..Batch::default() };
        batch.note_feed();
        // What goes back in another transaction is not to be missed by a look that is asked for
        // after it, nor what a look holds whose fetchers are all gone.
        if self.going_back == 0 {
            let held = |queue| {
                let is_held = |desk: &Desk| desk.is_looking && desk.waiting.is_empty();
                self.desks.iter().any(|desk| desk.fetch.queue() == queue && is_held(desk))
            };
            let (turns_held, work_held) = (held(Queue::Turns), held(Queue::Work));
            let mut has_session = false;
            for desk in self.desks.iter_mut().filter(|desk| desk.is_open()) {
                let queue = desk.fetch.queue();
                let is_held = if queue == Queue::Turns { turns_held } else { work_held };
                // One claim of a session waits for another only as the last thing it does.
                let is_second = has_session && desk.fetch.is_of_sessions();
                if !is_held && !is_second && (desk.wants_look(now) || batch.feed.has(queue)) {
                    has_session |= desk.fetch.is_of_sessions();
                    batch.looks.push(desk.begin_look());
                }
            }
            batch.looks.sort_by_key(|look| look.fetch.is_of_sessions());
        }
        batch.going_back = batch.ops.iter().filter(|waiting| waiting.reply.is_none()).count();
        self.going_back += batch.going_back;
        let is_lasting = batch.ops.iter().any(|waiting| !waiting.op.is_brief());
        batch.held = self.held.take_for(carrier, is_lasting, now);
        (batch.has_something_to_do() || !batch.held.is_empty()).then_some(batch)
    }

    /// The ops that leave next: about each lock one, and not more than is good.
    fn take_ops(&mut self) -> Vec<Waiting> {
        let (mut taken, mut left) = (Vec::new(), VecDeque::new());
        let (mut locks, mut weight) = (HashSet::new(), 0);
        while let Some(waiting) = self.ops.pop_front() {
            weight += waiting.op.weight();
            let is_full = taken.len() == OPS_MAX || WEIGHT_MAX < weight && !taken.is_empty();
            if is_full {
                left.push_back(waiting);
                break;
            }
            match waiting.op.lock() {
                Some(lock) if !locks.insert(lock) => left.push_back(waiting),
                _ => taken.push(waiting),
            }
        }
        left.append(&mut self.ops);
        self.ops = left;
        taken
    }

    pub(super) fn desk(&mut self, id: u64) -> Option<&mut Desk> {
        self.desks.iter_mut().find(|desk| desk.id == id)
    }

    pub(super) fn desk_for(&mut self, fetch: Fetch) -> &mut Desk {
        if DESKS_MAX <= self.desks.len() {
            self.desks.retain(|desk| desk.is_looking || !desk.waiting.is_empty());
        }
        let place = self.desks.iter().position(|desk| desk.serves(&fetch)).unwrap_or_else(|| {
            self.next_id += 1;
            self.desks.push(Desk::new(self.next_id, fetch));
            self.desks.len() - 1
        });
        &mut self.desks[place]
    }

    pub(super) fn next_due(&self) -> Option<Instant> {
        let looks = self.desks.iter().filter(|desk| desk.is_open()).filter_map(|desk| desk.due);
        looks.chain(self.held.due()).min()
    }
}
