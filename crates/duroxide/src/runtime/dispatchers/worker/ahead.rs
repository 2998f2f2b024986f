//! Activities fetched ahead of the slots that will run them: how many, and for how long.
//!
//! A fetch costs as much as some short activities take. So the slot that fetches brings more of them
//! than it can run itself, if activities have been short lately; the rest waits here for the next
//! free slot. What waits here could run on another node, so it does not wait for long.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use duroxide_core::model::WorkItem;
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::Dispatcher;
use crate::runtime::company::InHand;
use crate::runtime::dispatchers::lease::Lease;
use crate::runtime::dispatchers::usual::Usual;
use crate::runtime::node::log_storage_error;
use crate::runtime::observability::targets;

/// Activities fetched in one call: more than turns, so that what turns ask for does not pile up, and
/// instances are still in memory when they are answered.
const FETCHED_MAX: usize = 256;
/// How long an activity waits here before it is given back, or a tenth of its lock if that is less.
const AHEAD_MAX: Duration = Duration::from_millis(100);
/// Under shorter locks nothing is fetched ahead.
const SHORTEST_LOCK: Duration = Duration::from_secs(1);

/// A locked activity that does not run yet.
pub(super) struct Fetched {
    pub(super) item: WorkItem,
    pub(super) lock_token: String,
    pub(super) attempt: u32,
    /// Whether it was fetched by itself, as suspects are (R7.28).
    pub(super) came_alone: bool,
    pub(super) lease: Lease,
    /// Dropped when it begins.
    pub(super) in_hand: InHand,
    at: Instant,
}

impl Fetched {
    pub(super) fn new(
        (item, lock_token, attempt): (WorkItem, String, u32),
        lease: Lease,
        in_hand: InHand,
        came_alone: bool,
    ) -> Self {
        Self { item, lock_token, attempt, came_alone, lease, in_hand, at: Instant::now() }
    }

    /// Whether it belongs to a session.
    pub(super) fn is_bound(&self) -> bool {
        matches!(&self.item, WorkItem::ActivityExecute { session_id: Some(_), .. })
    }
}

/// The activities that wait for a slot.
pub(super) struct Ahead {
    slots: usize,
    /// Whether any may wait.
    is_on: bool,
    /// How long each may wait.
    patience: Duration,
    state: Mutex<State>,
    changed: Notify,
}

#[derive(Default)]
struct State {
    waiting: VecDeque<Fetched>,
    /// How long activities keep a slot lately.
    usual: Usual,
    is_closed: bool,
}

impl Ahead {
    pub(super) fn new(slots: usize, lock_timeout: Duration) -> Self {
        let (is_on, patience) = (SHORTEST_LOCK <= lock_timeout, AHEAD_MAX.min(lock_timeout / 10));
        Self { slots, is_on, patience, state: Mutex::default(), changed: Notify::new() }
    }

    /// How many activities to fetch: as many as the slots will have begun within the horizon. Long
    /// ones are never fetched ahead, nor are unknown ones.
    pub(super) fn room(&self) -> usize {
        let room = self.state().usual.begun_soon(self.slots, FETCHED_MAX);
        room.filter(|_| self.is_on).unwrap_or(1)
    }

    /// Learns how long an activity kept its slot.
    pub(super) fn learn(&self, took: Duration) {
        self.state().usual.learn(took);
    }

    /// Lets activities wait for a slot. They come back if this is over.
    pub(super) fn put(&self, fetched: VecDeque<Fetched>) -> VecDeque<Fetched> {
        let mut state = self.state();
        if state.is_closed {
            return fetched;
        }
        let was_empty = state.waiting.is_empty();
        state.waiting.extend(fetched);
        if was_empty && !state.waiting.is_empty() {
            self.changed.notify_one();
        }
        VecDeque::new()
    }

    /// The next one to run. Those that have waited too long are left to be given back.
    pub(super) fn take(&self) -> Option<Fetched> {
        let mut state = self.state();
        let next = state.waiting.iter().position(|fetched| !self.is_overdue(fetched))?;
        state.waiting.remove(next)
    }

    /// Those that have waited too long.
    fn take_overdue(&self) -> Vec<Fetched> {
        let mut state = self.state();
        let fresh = state.waiting.iter().position(|fetched| !self.is_overdue(fetched));
        let fresh = fresh.unwrap_or(state.waiting.len());
        state.waiting.drain(..fresh).collect()
    }

    /// When the next one has waited too long.
    fn next_overdue(&self) -> Option<Instant> {
        self.state().waiting.front().map(|fetched| fetched.at + self.patience)
    }

    /// All that wait.
    fn take_all(&self) -> VecDeque<Fetched> {
        std::mem::take(&mut self.state().waiting)
    }

    /// Those that wait; no more will.
    fn close(&self) -> VecDeque<Fetched> {
        let mut state = self.state();
        state.is_closed = true;
        std::mem::take(&mut state.waiting)
    }

    fn is_overdue(&self, fetched: &Fetched) -> bool {
        self.patience <= fetched.at.elapsed()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Dispatcher {
    /// Gives an activity back that did not run here: others may have a slot for it.
    pub(super) async fn pass_on(&self, fetched: Fetched, after: Option<Duration>) {
        let instance = match &fetched.item {
            WorkItem::ActivityExecute { instance, .. } => instance,
            _ => "-",
        };
        match self.node.store.abandon_work_item(&fetched.lock_token, after, true).await {
            Err(error) if !error.is_retryable() => {
                tracing::debug!(target: targets::WORKER, instance_id = %instance, %error,
                    "activity cancelled before it had a slot");
            }
            given_back => drop(log_storage_error(instance, given_back)),
        }
    }
}

/// Gives back what has waited too long, however busy the slots are; all of it, when told to stop.
pub(crate) async fn pass_on_in_time(
    dispatcher: Arc<Dispatcher>,
    tracker: TaskTracker,
    stop: CancellationToken,
) {
    let ahead = &dispatcher.ahead;
    let mut on_their_way = JoinSet::new();
    let mut pass_on = |fetched: Fetched| {
        let dispatcher = Arc::clone(&dispatcher);
        on_their_way
            .spawn(tracker.track_future(async move { dispatcher.pass_on(fetched, None).await }));
    };
    loop {
        let next = ahead.next_overdue();
        let overdue = async {
            match next {
                Some(at) => sleep_until(at).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            () = stop.cancelled() => break,
            () = overdue => ahead.take_overdue().into_iter().for_each(&mut pass_on),
            () = dispatcher.node.company.hushed(), if next.is_some() => {
                ahead.take_all().into_iter().for_each(&mut pass_on);
            }
            () = ahead.changed.notified() => {}
        }
    }
    ahead.close().into_iter().for_each(pass_on);
    while on_their_way.join_next().await.is_some() {}
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtime::company::Company;
    use crate::runtime::dispatchers::lease::{LeaseKeeper, LockKind};

    const LOCK: Duration = Duration::from_secs(30);

    fn fetched(name: &str) -> Fetched {
        let leases = LeaseKeeper::new(LockKind::Activity, LOCK, Duration::ZERO);
        let item = WorkItem::CancelInstance { instance: name.to_owned(), reason: String::new() };
        Fetched::new((item, name.to_owned(), 1), leases.hold(name), Company::new().join(), true)
    }

    fn names<'a>(fetched: impl IntoIterator<Item = &'a Fetched>) -> Vec<&'a str> {
        fetched.into_iter().map(|fetched| fetched.lock_token.as_str()).collect()
    }

    #[test]
    fn r7_26_room_is_for_what_begins_soon() {
        let micros = Duration::from_micros;
        for (slots, usual, room) in [
            (2, micros(0), 256),
            (2, micros(100), 100),
            (2, micros(1_000), 10),
            (1, micros(1_000), 5),
            (2, micros(5_000), 2),
            (2, micros(10_000), 1),
            (2, Duration::from_secs(3600), 1),
            (1_000, micros(100_000), 50),
            (usize::MAX, Duration::MAX, 1),
        ] {
            let ahead = Ahead::new(slots, LOCK);
            assert_eq!(ahead.room(), 1, "nothing is known");
            ahead.learn(usual);
            assert_eq!(ahead.room(), room, "{slots} slots, {usual:?}");
        }
        let under_short_locks = Ahead::new(2, Duration::from_millis(999));
        under_short_locks.learn(micros(1));
        assert_eq!(under_short_locks.room(), 1);
    }

    #[test]
    fn r7_26_one_long_activity_counts_for_many_short_ones() {
        let ahead = Ahead::new(2, LOCK);
        let short = || ahead.learn(Duration::from_micros(50));
        (0..100).for_each(|_| short());
        assert_eq!(ahead.room(), 200);
        ahead.learn(Duration::from_secs(10));
        (0..40).for_each(|_| short());
        assert_eq!(ahead.room(), 1);
        (0..60).for_each(|_| short());
        assert!(100 < ahead.room());
    }

    #[tokio::test(start_paused = true)]
    async fn r7_27_what_has_waited_too_long_does_not_run() {
        for (lock, patience_ms) in [(LOCK, 100), (Duration::from_millis(500), 50)] {
            let ahead = Ahead::new(2, lock);
            let patience = Duration::from_millis(patience_ms);
            assert!(ahead.put([fetched("a"), fetched("b")].into()).is_empty());
            assert_eq!(names(&ahead.take()), ["a"]);
            tokio::time::advance(patience / 2).await;
            assert!(ahead.put([fetched("c")].into()).is_empty());
            assert!(ahead.take_overdue().is_empty());
            tokio::time::advance(patience / 2).await;
            assert_eq!(ahead.next_overdue(), Some(Instant::now()));
            assert_eq!(names(&ahead.take()), ["c"]);
            assert_eq!(names(&ahead.take()), [""; 0]);
            assert_eq!(names(&ahead.take_overdue()), ["b"]);
            assert_eq!(ahead.next_overdue(), None);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn r7_27_nothing_waits_after_the_end() {
        let ahead = Ahead::new(2, LOCK);
        assert!(ahead.put([fetched("a"), fetched("b")].into()).is_empty());
        assert_eq!(names(&ahead.close()), ["a", "b"]);
        assert_eq!(names(&ahead.put([fetched("c")].into())), ["c"]);
        assert!(ahead.take().is_none());
    }
}
