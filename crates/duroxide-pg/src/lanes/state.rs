//! What waits, and which part of it leaves next.

use std::collections::{HashSet, VecDeque};
use std::time::Duration;

use tokio::time::Instant;

use super::blocked::Blocked;
use super::bounds::Bounds;
use super::desk::{Desk, Fetch, Look};
use super::ends::Ends;
use super::held::{Carrier, Held, HeldAnswers};
use super::lost::Lost;
use super::op::{Feed, Queue, Waiting};
use crate::error::PgError;

/// Most ops of one transaction, and most bytes they send: locks are held until the last of them is
/// done.
const OPS_MAX: usize = 256;
const WEIGHT_MAX: usize = 4 << 20;
/// When lanes are told again of what is due.
const REMINDER: Duration = Duration::from_millis(5);
/// Desks that nobody waits at are kept for a while: they know when they looked last.
const DESKS_MAX: usize = 64;

/// What waits.
#[derive(Default)]
pub(super) struct State {
    pub(super) ops: VecDeque<Waiting>,
    /// Renewals of locks, which leave by a way of their own.
    pub(super) renewals: VecDeque<Waiting>,
    /// What could not have its rows in time.
    pub(super) blocked: Blocked,
    pub(super) desks: Vec<Desk>,
    pub(super) held: HeldAnswers,
    /// Where looks begin.
    pub(super) bounds: Bounds,
    /// When locks may end.
    pub(super) ends: Ends,
    /// Looks that may have taken something nobody got to hear of.
    pub(super) lost: Vec<Lost>,
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

    /// Several ops, none of them with a look.
    pub(super) fn of_several(ops: Vec<Waiting>) -> Self {
        let mut batch = Self { ops, ..Self::default() };
        batch.note_feed();
        batch
    }

    /// Ops whose answers were lost.
    pub(super) fn again(mut ops: Vec<Waiting>, until: Instant) -> Self {
        ops.iter_mut().for_each(|waiting| waiting.is_repeated = true);
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
        self.pass_time(now);
        let mut batch = self.take_timely(now).unwrap_or_else(|| self.take_all(now));
        batch.going_back = batch.ops.iter().filter(|waiting| waiting.reply.is_none()).count();
        self.going_back += batch.going_back;
        let is_lasting = batch.ops.iter().any(|waiting| !waiting.op.is_brief());
        batch.held = self.held.take_for(carrier, is_lasting, now);
        (batch.has_something_to_do() || !batch.held.is_empty()).then_some(batch)
    }

    /// What time has brought does not wait for the disk, as it would together with ops.
    fn take_timely(&mut self, now: Instant) -> Option<Batch> {
        if self.ops.is_empty() {
            return None;
        }
        let looks = self.begin_looks(|desk| desk.is_due(now), now);
        (!looks.is_empty()).then(|| Batch { looks, ..Batch::default() })
    }

    /// Everything that waits.
    fn take_all(&mut self, now: Instant) -> Batch {
        let mut batch = Batch { ops: self.take_ops(), is_common: true, ..Batch::default() };
        batch.note_feed();
        // A look sees what goes back with it.
        let given_back = batch.ops.iter().filter_map(|waiting| waiting.op.gives_back());
        given_back.for_each(|(queue, place)| self.lower(queue, place));
        let feed = &batch.feed;
        let is_meant = |desk: &Desk| desk.wants_look(now) || feed.has(desk.fetch.queue());
        batch.looks = self.begin_looks(is_meant, now);
        batch
    }

    /// Begins looks at desks that are meant, as far as they may be looked at now.
    fn begin_looks(&mut self, is_meant: impl Fn(&Desk) -> bool, now: Instant) -> Vec<Look> {
        let mut looks = Vec::new();
        // What goes back in another transaction is not to be missed by a look that is asked for
        // after it, nor what a look holds whose fetchers are all gone.
        if self.going_back != 0 {
            return looks;
        }
        let held = |queue| {
            let is_held = |desk: &Desk| desk.is_looking && desk.waiting.is_empty();
            self.desks.iter().any(|desk| desk.fetch.queue() == queue && is_held(desk))
        };
        let (turns_held, work_held) = (held(Queue::Turns), held(Queue::Work));
        let mut has_session = false;
        let due_from = self.bounds.due_from();
        for desk in self.desks.iter_mut().filter(|desk| desk.is_open()) {
            let is_held = if desk.fetch.queue() == Queue::Turns { turns_held } else { work_held };
            // One claim of a session waits for another only as the last thing it does.
            let is_second = has_session && desk.fetch.is_of_sessions();
            if !is_held && !is_second && is_meant(desk) {
                has_session |= desk.fetch.is_of_sessions();
                looks.push(desk.begin_look(due_from, now));
            }
        }
        looks.sort_by_key(|look| look.fetch.is_of_sessions());
        looks
    }

    /// The ops that leave next: about each lock one, and not more than is good.
    pub(super) fn take_ops(&mut self) -> Vec<Waiting> {
        let mut ops = std::mem::take(&mut self.ops);
        let taken = self.take_from(&mut ops);
        self.ops = ops;
        taken
    }

    /// The same of renewals.
    pub(super) fn take_renewals(&mut self) -> Vec<Waiting> {
        let mut renewals = std::mem::take(&mut self.renewals);
        let taken = self.take_from(&mut renewals);
        self.renewals = renewals;
        taken
    }

    fn take_from(&mut self, ops: &mut VecDeque<Waiting>) -> Vec<Waiting> {
        let (mut taken, mut left) = (Vec::new(), VecDeque::new());
        let (mut locks, mut weight) = (HashSet::new(), 0);
        while let Some(waiting) = ops.pop_front() {
            let Some(waiting) = self.blocked.catch_up(waiting) else { continue };
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
        left.append(ops);
        *ops = left;
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
            let from = self.bounds.begin_for(&fetch);
            self.desks.push(Desk::new(self.next_id, fetch, from));
            self.desks.len() - 1
        });
        &mut self.desks[place]
    }

    /// Whether something is due.
    pub(super) fn is_due(&self, now: Instant) -> bool {
        self.next_due().is_some_and(|due| due <= now)
    }

    /// When lanes have to be told next. Of what is due they have been: it waits for one that is free, and
    /// telling them again and again would only keep them from their work.
    pub(super) fn next_alarm(&self, now: Instant) -> Option<Instant> {
        self.next_dues().map(|due| if now < due { due } else { now + REMINDER }).min()
    }

    fn next_due(&self) -> Option<Instant> {
        self.next_dues().min()
    }

    fn next_dues(&self) -> impl Iterator<Item = Instant> {
        let open = self.desks.iter().filter(|desk| desk.is_open());
        let looks = open.filter_map(Desk::next_due);
        looks.chain(self.held.due()).chain(self.ends.first())
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::oneshot;
    use uuid::Uuid;

    use super::super::desk::{Fetcher, What};
    use super::super::op::{Lock, Op};
    use super::*;

    const CARRIER: Carrier = Carrier { lane: 0, connection: None };

    /// Somebody who waits for turns, and an op.
    fn busy(now: Instant) -> State {
        let mut state = State::default();
        let fetch = Fetch { lock_ms: 1, what: What::Turns { pins: None } };
        let desk = state.desk_for(fetch);
        let (id, deadline) = (1, now + Duration::from_secs(9));
        let reply = oneshot::channel().0;
        desk.waiting.push_back(Fetcher { id, max: 1, deadline, has_looked: true, reply });
        desk.is_dirty = false;
        let lock = Lock { queue: Queue::Work, place: 1, secret: Uuid::nil() };
        let op = Op::Abandon { lock, delay: 0, uncount: true };
        state.ops.push_back(Waiting::new(op, Some(oneshot::channel().0), None));
        state
    }

    fn next(state: &mut State, now: Instant) -> Option<(usize, usize)> {
        state.take_batch(CARRIER, now).map(|batch| (batch.ops.len(), batch.looks.len()))
    }

    #[test]
    fn what_time_has_brought_does_not_wait_for_ops() {
        let now = Instant::now();
        let mut state = busy(now);
        state.desks[0].due = Some(now);
        assert_eq!(next(&mut state, now), Some((0, 1)));
        assert_eq!(next(&mut state, now), Some((1, 0)));
        assert_eq!(next(&mut state, now), None);
    }

    #[test]
    fn lanes_are_told_once_of_what_is_due() {
        let now = Instant::now();
        let mut state = busy(now);
        state.desks[0].due = Some(now + Duration::from_millis(1));
        assert_eq!(state.next_alarm(now), Some(now + Duration::from_millis(1)));
        let late = now + Duration::from_secs(1);
        assert!(state.is_due(late));
        assert_eq!(state.next_alarm(late), Some(late + REMINDER));
    }

    #[test]
    fn what_ops_may_have_brought_is_looked_for_with_them() {
        let now = Instant::now();
        let mut state = busy(now);
        state.desks[0].due = Some(now + Duration::from_millis(1));
        state.desks[0].is_dirty = true;
        assert_eq!(next(&mut state, now), Some((1, 1)));
        assert_eq!(next(&mut state, now), None);
    }

    #[test]
    fn a_look_that_may_not_be_taken_keeps_no_op_waiting() {
        let now = Instant::now();
        let mut state = busy(now);
        (state.desks[0].due, state.going_back) = (Some(now), 1);
        assert_eq!(next(&mut state, now), Some((1, 0)));
    }
}
