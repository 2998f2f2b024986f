//! Where everything waits for a lane: ops, and fetches at their desks.

use std::collections::{HashSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{Notify, oneshot};
use tokio::time::Instant;

use super::catch::Catch;
use super::desk::{Desk, Fetch, Fetcher, Look, Seen};
use super::op::{Feed, Op, Queue, Waiting};
use crate::commit_board::Place;
use crate::error::{Failure, PgError};

/// Most ops of one transaction, and most bytes they send: locks are held until the last of them is
/// done.
const OPS_MAX: usize = 256;
const WEIGHT_MAX: usize = 4 << 20;
/// Desks that nobody waits at are kept for a while: they know when they looked last.
const DESKS_MAX: usize = 64;

/// Where everything waits for a lane.
pub(crate) struct Floor {
    state: Mutex<State>,
    /// Wakes a lane.
    lanes: Notify,
    /// Wakes whoever keeps the time.
    clock: Notify,
}

#[derive(Default)]
struct State {
    ops: VecDeque<Waiting>,
    desks: Vec<Desk>,
    next_id: u64,
    /// Locks on their way back in transactions under way.
    going_back: usize,
    /// Until when whoever keeps the time sleeps.
    alarm: Option<Instant>,
    is_closed: bool,
}

/// What leaves together, as one transaction.
#[derive(Default)]
pub(super) struct Batch {
    pub(super) ops: Vec<Waiting>,
    pub(super) looks: Vec<Look>,
    pub(super) feed: Feed,
    /// What is alone may be one of the common cases.
    pub(super) is_common: bool,
    going_back: usize,
}

impl Batch {
    /// An op alone, not one of the common cases.
    pub(super) fn uncommon(waiting: Waiting) -> Self {
        let mut batch = Self { ops: vec![waiting], ..Self::default() };
        batch.note_feed();
        batch
    }

    /// Whether what is wrong with the whole may be wrong with a part only.
    pub(super) fn can_be_parted(&self, error: &PgError) -> bool {
        let is_many = 1 < self.ops.len() + self.looks.len() && !self.ops.is_empty();
        is_many && error.may_be_about_one() || self.is_common && error.is_violated_key()
    }

    fn note_feed(&mut self) {
        self.ops.iter().for_each(|waiting| waiting.op.feeds(&mut self.feed));
    }
}

impl Floor {
    pub(crate) fn new() -> Arc<Self> {
        let (lanes, clock) = (Notify::new(), Notify::new());
        Arc::new(Self { state: Mutex::default(), lanes, clock })
    }

    /// Has something done.
    pub(crate) async fn run(&self, op: Op, bell: Option<Place>) -> Result<(), Failure> {
        let (reply, done) = oneshot::channel();
        self.add(Waiting { op, reply: Some(reply), bell });
        done.await.unwrap_or_else(|_| Err(closed().into()))
    }

    /// Waits for something to fetch, at most until the deadline; looks at least once. Whoever is
    /// `content` with what a look before saw does not begin by looking.
    pub(crate) async fn fetch(
        self: &Arc<Self>,
        fetch: Fetch,
        max: usize,
        deadline: Instant,
        content: bool,
    ) -> Result<Catch, Failure> {
        let (reply, mut served) = oneshot::channel();
        let guest = self.sit_down(fetch, max, deadline, content, reply);
        if let Ok(served) = tokio::time::timeout_at(deadline, &mut served).await {
            return served.unwrap_or_else(|_| Err(closed().into()));
        }
        if guest.leave_if_looked() {
            return Ok(Catch::nothing(self));
        }
        // The look that it waits for tells.
        served.await.unwrap_or_else(|_| Err(closed().into()))
    }

    /// There may be something to fetch.
    pub(crate) fn ring(&self, queue: Queue) {
        self.ring_where(|desk| desk.fetch.queue() == queue);
    }

    /// There will be something to fetch.
    pub(crate) fn expect(&self, queue: Queue, due: Instant) {
        let mut state = self.lock();
        for desk in state.desks.iter_mut().filter(|desk| desk.fetch.queue() == queue) {
            if desk.due.is_none_or(|before| due < before) {
                desk.due = Some(due);
            }
        }
        self.set_alarm(&mut state);
    }

    /// Everybody is sent away, and nobody served any more.
    pub(crate) fn close(&self) {
        let mut state = self.lock();
        state.is_closed = true;
        let (ops, desks) = (std::mem::take(&mut state.ops), std::mem::take(&mut state.desks));
        drop(state);
        drop((ops, desks)); // Which those who wait notice.
        self.lanes.notify_waiters();
        self.lanes.notify_one();
        self.clock.notify_one();
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.lock().is_closed
    }

    /// What leaves next; `None` when the floor is closed.
    pub(super) async fn next_batch(&self) -> Option<Batch> {
        loop {
            {
                let mut state = self.lock();
                if state.is_closed {
                    drop(state);
                    self.lanes.notify_one(); // The next lane, too.
                    return None;
                }
                if let Some(batch) = state.take_batch(Instant::now()) {
                    return Some(batch);
                }
            }
            self.lanes.notified().await;
        }
    }

    /// Sees to it that lanes look when time brings something.
    pub(super) async fn keep_time(&self) {
        loop {
            let alarm = {
                let mut state = self.lock();
                if state.is_closed {
                    return;
                }
                state.alarm = state.next_due();
                state.alarm
            };
            let end = async {
                match alarm {
                    Some(alarm) => tokio::time::sleep_until(alarm).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = end => self.lanes.notify_one(),
                () = self.clock.notified() => {}
            }
        }
    }

    /// A batch is over, and this much of it may be news to those who did not ride along.
    pub(super) fn conclude(&self, batch: &Batch, rode: &[u64], is_done: bool) {
        self.lock().going_back -= batch.going_back;
        if is_done {
            let feed = &batch.feed;
            self.ring_where(|desk| feed.has(desk.fetch.queue()) && !rode.contains(&desk.id));
        }
        if 0 < batch.going_back {
            self.lanes.notify_one();
        }
    }

    /// A look was not taken, or came to nothing that counts: it is to be taken again.
    pub(super) fn look_again(&self, desk: u64) {
        let mut state = self.lock();
        if let Some(desk) = state.desk(desk) {
            desk.is_looking = false;
            desk.is_dirty = true;
        }
        drop(state);
        self.lanes.notify_one();
    }

    /// A look failed. Those whose time is up hear of it, or all.
    pub(super) fn fail_look(&self, desk: u64, error: &PgError, all: bool) {
        let mut state = self.lock();
        let Some(desk) = state.desk(desk) else { return };
        desk.is_looking = false;
        desk.is_dirty = true;
        let now = Instant::now();
        let gone = take_where(&mut desk.waiting, |fetcher| all || fetcher.deadline <= now);
        drop(state);
        for fetcher in gone {
            drop(fetcher.reply.send(Err(Failure::Database(error.clone()))));
        }
    }

    /// A look was taken: rows go to those who wait, in their order.
    pub(super) fn serve(self: &Arc<Self>, look: &Look, seen: Seen) {
        let mut rows = seen.rows;
        let mut state = self.lock();
        let Some(desk) = state.desk(look.desk) else { return };
        let now = Instant::now();
        desk.is_looking = false;
        desk.is_dirty |= seen.is_full;
        let due = now + seen.due_in;
        if desk.due.is_none_or(|before| due < before) {
            desk.due = Some(due);
        }
        let mut served = Vec::new();
        while !rows.is_empty() {
            let Some(fetcher) = desk.waiting.pop_front() else { break };
            if fetcher.reply.is_closed() {
                continue;
            }
            let rest = rows.split_off(fetcher.max.min(rows.len()));
            served.push((fetcher.reply, std::mem::replace(&mut rows, rest)));
        }
        // While there may be more, nobody goes away with nothing.
        let is_over = |f: &mut Fetcher| !seen.is_full && f.has_looked && f.deadline <= now;
        let over = take_where(&mut desk.waiting, is_over);
        let is_wanted = desk.is_open() && desk.wants_look(now);
        self.set_alarm(&mut state);
        drop(state);
        let queue = look.fetch.queue();
        for (reply, rows) in served {
            // Should nobody take them, they go back when dropped.
            drop(reply.send(Ok(Catch::new(rows, queue, self))));
        }
        for fetcher in over {
            drop(fetcher.reply.send(Ok(Catch::nothing(self))));
        }
        drop(Catch::new(rows, queue, self));
        if is_wanted {
            self.lanes.notify_one();
        }
    }

    /// Everybody who waits for a transaction, and every fetch whose time is up, hears of an error.
    pub(super) fn fail_all(&self, error: &PgError) {
        let mut state = self.lock();
        let ops = std::mem::take(&mut state.ops);
        let now = Instant::now();
        let is_over = |fetcher: &mut Fetcher| fetcher.deadline <= now;
        let gone: Vec<Fetcher> = state
            .desks
            .iter_mut()
            .filter(|desk| !desk.is_looking)
            .flat_map(|desk| take_where(&mut desk.waiting, is_over))
            .collect();
        drop(state);
        ops.into_iter().for_each(|op| op.answer(Err(Failure::Database(error.clone()))));
        for fetcher in gone {
            drop(fetcher.reply.send(Err(Failure::Database(error.clone()))));
        }
    }

    pub(super) fn add(&self, waiting: Waiting) {
        let mut state = self.lock();
        if state.is_closed {
            return; // Dropped, which whoever waits notices.
        }
        state.ops.push_back(waiting);
        drop(state);
        self.lanes.notify_one();
    }

    fn sit_down(
        self: &Arc<Self>,
        fetch: Fetch,
        max: usize,
        deadline: Instant,
        content: bool,
        reply: oneshot::Sender<Result<Catch, Failure>>,
    ) -> Guest {
        let mut state = self.lock();
        state.next_id += 1;
        let id = state.next_id;
        if state.is_closed {
            return Guest { floor: Arc::clone(self), desk: 0, id };
        }
        let desk = state.desk_for(fetch);
        desk.is_dirty |= !content;
        desk.waiting.push_back(Fetcher { id, max, deadline, has_looked: content, reply });
        let guest = Guest { floor: Arc::clone(self), desk: desk.id, id };
        let is_wanted = desk.wants_look(Instant::now());
        self.set_alarm(&mut state);
        drop(state);
        if is_wanted {
            self.lanes.notify_one();
        }
        guest
    }

    fn ring_where(&self, is_meant: impl Fn(&Desk) -> bool) {
        let mut state = self.lock();
        let mut is_wanted = false;
        for desk in state.desks.iter_mut().filter(|desk| is_meant(desk)) {
            desk.is_dirty = true;
            is_wanted |= desk.is_open();
        }
        drop(state);
        if is_wanted {
            self.lanes.notify_one();
        }
    }

    fn set_alarm(&self, state: &mut State) {
        let due = state.next_due();
        if due.is_some_and(|due| state.alarm.is_none_or(|alarm| due < alarm)) {
            state.alarm = due;
            self.clock.notify_one();
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn take_batch(&mut self, now: Instant) -> Option<Batch> {
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
        (!batch.ops.is_empty() || !batch.looks.is_empty()).then_some(batch)
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

    fn desk(&mut self, id: u64) -> Option<&mut Desk> {
        self.desks.iter_mut().find(|desk| desk.id == id)
    }

    fn desk_for(&mut self, fetch: Fetch) -> &mut Desk {
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

    fn next_due(&self) -> Option<Instant> {
        self.desks.iter().filter(|desk| desk.is_open()).filter_map(|desk| desk.due).min()
    }
}

/// Somebody at a desk, until dropped.
struct Guest {
    floor: Arc<Floor>,
    desk: u64,
    id: u64,
}

impl Guest {
    /// Leaves, unless a look is still to tell.
    fn leave_if_looked(&self) -> bool {
        let mut state = self.floor.lock();
        let Some(desk) = state.desk(self.desk) else { return true };
        if desk.is_looking {
            return false;
        }
        let is_me = |fetcher: &&Fetcher| fetcher.id == self.id;
        desk.waiting.iter().find(is_me).is_some_and(|fetcher| fetcher.has_looked)
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        if let Some(desk) = self.floor.lock().desk(self.desk) {
            desk.waiting.retain(|fetcher| fetcher.id != self.id);
        }
    }
}

fn take_where<T>(from: &mut VecDeque<T>, mut is_meant: impl FnMut(&mut T) -> bool) -> Vec<T> {
    let mut taken = Vec::new();
    let all = std::mem::take(from);
    for mut item in all {
        if is_meant(&mut item) { taken.push(item) } else { from.push_back(item) }
    }
    taken
}

fn closed() -> PgError {
    PgError::Connection { reason: "the store is closed".to_owned() }
}

/// Longer than anybody waits, and safe to add to an instant.
pub(crate) const FOR_EVER: Duration = Duration::from_secs(10 * 365 * 24 * 3600);
