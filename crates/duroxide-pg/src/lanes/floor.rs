//! Where everything waits for a lane: ops, and fetches at their desks.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{Notify, oneshot};
use tokio::time::Instant;

use super::catch::Catch;
use super::desk::{Desk, Fetcher, Look, Seen, Wish, take_where};
use super::held::{Carrier, Held};
use super::op::{Op, Queue, Waiting};
use super::state::{Batch, State};
use crate::commit_board::Place;
use crate::error::{Failure, PgError};

/// Where everything waits for a lane.
pub(crate) struct Floor {
    state: Mutex<State>,
    /// Wakes a lane.
    pub(super) lanes: Notify,
    /// Wakes whoever keeps the time.
    clock: Notify,
    /// Wakes whoever renews locks.
    renewals: Notify,
    /// Wakes whoever sees to what was set apart.
    pub(super) care: Notify,
    /// Wakes whoever gives back what was lost.
    pub(super) losses: Notify,
}

impl Floor {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self {
            state: Mutex::default(),
            lanes: Notify::new(),
            clock: Notify::new(),
            renewals: Notify::new(),
            care: Notify::new(),
            losses: Notify::new(),
        })
    }

    /// Has something done.
    pub(crate) async fn run(&self, op: Op, bell: Option<Place>) -> Result<(), Failure> {
        let (reply, done) = oneshot::channel();
        self.add(Waiting::new(op, Some(reply), bell));
        done.await.unwrap_or_else(|_| Err(closed().into()))
    }

    /// Waits for something to fetch, at most until the deadline; looks at least once.
    pub(crate) async fn fetch(self: &Arc<Self>, wish: Wish) -> Result<Catch, Failure> {
        let (reply, mut served) = oneshot::channel();
        let deadline = wish.deadline;
        let guest = self.sit_down(wish, reply);
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

    /// Whether anything was done here since the last time this was asked.
    pub(crate) fn was_busy(&self) -> bool {
        std::mem::take(&mut self.lock().was_busy)
    }

    /// Everybody is sent away, and nobody served any more.
    pub(crate) fn close(&self) {
        let mut state = self.lock();
        state.is_closed = true;
        let (ops, desks) = (std::mem::take(&mut state.ops), std::mem::take(&mut state.desks));
        let held = std::mem::take(&mut state.held);
        let others = (std::mem::take(&mut state.renewals), std::mem::take(&mut state.blocked));
        drop(state);
        drop((ops, desks, held, others)); // Which those who wait notice.
        self.renewals.notify_one();
        self.care.notify_one();
        self.losses.notify_one();
        self.lanes.notify_waiters();
        self.lanes.notify_one();
        self.clock.notify_one();
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.lock().is_closed
    }

    /// What leaves next; `None` when the floor is closed.
    pub(super) async fn next_batch(&self, carrier: Carrier) -> Option<Batch> {
        loop {
            {
                let mut state = self.lock();
                if state.is_closed {
                    drop(state);
                    self.lanes.notify_one(); // The next lane, too.
                    return None;
                }
                if let Some(batch) = state.take_batch(carrier, Instant::now()) {
                    let has_left_ops = batch.ops.is_empty() && !state.ops.is_empty();
                    drop(state);
                    if has_left_ops {
                        self.lanes.notify_one();
                    }
                    return Some(batch);
                }
            }
            self.lanes.notified().await;
            // Who brought it about may be about to fetch, and others to ask for something, too.
            tokio::task::yield_now().await;
        }
    }

    /// The renewals that wait, as one batch; `None` when the floor is closed.
    pub(super) async fn next_renewals(&self) -> Option<Batch> {
        loop {
            {
                let mut state = self.lock();
                if state.is_closed {
                    return None;
                }
                let ops = state.take_renewals();
                if !ops.is_empty() {
                    return Some(Batch::of_several(ops));
                }
            }
            self.renewals.notified().await;
        }
    }

    /// Sees to it that lanes look when time brings something.
    pub(super) async fn keep_time(&self) {
        loop {
            let (alarm, is_due) = {
                let mut state = self.lock();
                if state.is_closed {
                    return;
                }
                let now = Instant::now();
                state.pass_time(now);
                state.alarm = state.next_alarm(now);
                (state.alarm, state.is_due(now))
            };
            if is_due {
                // What is held back may be for one of them only.
                self.lanes.notify_waiters();
                self.lanes.notify_one();
            }
            let end = async {
                match alarm {
                    Some(alarm) => tokio::time::sleep_until(alarm).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = end => {}
                () = self.clock.notified() => {}
            }
        }
    }

    /// Lanes begin, or begin anew: those before them have ended with their runtime, and so have the looks
    /// that were under way.
    pub(super) fn begin_anew(&self) {
        let mut state = self.lock();
        state.going_back = 0;
        let lost = state.desks.iter_mut().filter_map(Desk::interrupt).collect();
        drop(state);
        self.lose(lost, None);
        self.lanes.notify_one();
    }

    /// A batch is over.
    pub(super) fn conclude(&self, batch: &Batch) {
        self.lock().going_back -= batch.going_back;
        if 0 < batch.going_back {
            self.lanes.notify_one();
        }
    }

    /// Holds an answer back until what it is about is on the disk.
    pub(super) fn hold(&self, held: Held) {
        let mut state = self.lock();
        if state.is_closed {
            return; // Dropped, which whoever waits notices.
        }
        state.held.add(held, Instant::now());
        self.set_alarm(&mut state);
    }

    /// A look was not taken, or came to nothing that counts: it is to be taken again.
    pub(super) fn look_again(&self, desk: u64) {
        let mut state = self.lock();
        if let Some(desk) = state.desk(desk) {
            desk.look_again();
        }
        drop(state);
        self.lanes.notify_one();
    }

    /// A look failed. If one item may be to blame, the next look finds that out. Otherwise those whose
    /// time is up hear of it, or all.
    pub(super) fn fail_look(&self, look: &Look, error: &PgError, all: bool) {
        let mut state = self.lock();
        let Some(desk) = state.desk(look.desk) else { return };
        desk.look_again();
        if error.may_be_about_one() && !look.is_careful {
            desk.is_careful = true;
            drop(state);
            tracing::warn!(target: "duroxide::providers::postgres", %error, "fetching one by one");
            return self.lanes.notify_one();
        }
        desk.is_careful = false;
        let now = Instant::now();
        let gone = take_where(&mut desk.waiting, |fetcher| all || fetcher.deadline <= now);
        drop(state);
        for fetcher in gone {
            drop(fetcher.reply.send(Err(Failure::Database(error.clone()))));
        }
    }

    /// A look was taken: rows go to those who wait, in their order.
    pub(super) fn serve(self: &Arc<Self>, look: &Look, seen: Seen) {
        let mut state = self.lock();
        if !seen.rows.is_empty() {
            look.ends_in().for_each(|ms| state.expect_end(look.fetch.queue(), ms));
        }
        let is_bounded = state.bounds.is_on();
        let Some(desk) = state.desk(look.desk) else { return };
        let now = Instant::now();
        desk.note(&seen, is_bounded, now);
        let (mut rows, mut served) = (seen.rows, Vec::new());
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
        let mut ops = std::mem::take(&mut state.ops);
        ops.append(&mut state.renewals);
        ops.extend(state.blocked.take_all());
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
        let is_renewal = matches!(waiting.op, Op::Renew { .. });
        if is_renewal {
            state.renewals.push_back(waiting);
        } else {
            state.ops.push_back(waiting);
        }
        state.was_busy = true;
        drop(state);
        if is_renewal {
            self.renewals.notify_one();
        } else {
            self.lanes.notify_one();
        }
    }

    fn sit_down(
        self: &Arc<Self>,
        wish: Wish,
        reply: oneshot::Sender<Result<Catch, Failure>>,
    ) -> Guest {
        let mut state = self.lock();
        state.next_id += 1;
        let id = state.next_id;
        if state.is_closed {
            return Guest { floor: Arc::clone(self), desk: 0, id };
        }
        let Wish { fetch, max, deadline, is_content } = wish;
        state.pass_time(Instant::now());
        let desk = state.desk_for(fetch);
        desk.is_dirty |= !is_content;
        desk.seeks_ended |= !is_content;
        desk.waiting.push_back(Fetcher { id, max, deadline, has_looked: is_content, reply });
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

    pub(super) fn set_alarm(&self, state: &mut State) {
        let due = state.next_alarm(Instant::now());
        if due.is_some_and(|due| state.alarm.is_none_or(|alarm| due < alarm)) {
            state.alarm = due;
            self.clock.notify_one();
        }
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
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

fn closed() -> PgError {
    PgError::Connection { reason: "the store is closed".to_owned() }
}

/// Longer than anybody waits, and safe to add to an instant.
pub(crate) const FOR_EVER: Duration = Duration::from_secs(10 * 365 * 24 * 3600);
