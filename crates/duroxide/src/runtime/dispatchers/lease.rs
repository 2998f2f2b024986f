//! Keeps locks alive while their work is done: one keeper per dispatcher, any number of locks.

use std::collections::{BTreeSet, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use duroxide_core::model::{ScheduledActivityIdentifier, WorkItem};
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until, timeout_at};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::id_hash::ById;
use super::renewal_interval::renewal_interval;
use super::{FAR_AHEAD, lost_work};
use crate::clock::wall_clock_ms;
use crate::providers::{Provider, ProviderError};
use crate::runtime::catch_panic::catch_panic;
use crate::runtime::observability::targets;
use crate::runtime::upkeep::{Deed, Upkeep};

/// Locks due within so short a time are renewed together.
const TOGETHER: Duration = Duration::from_millis(50);
/// Pause before a renewal that failed for a passing reason is tried again; shorter for short locks.
const RETRY_PAUSE: Duration = Duration::from_millis(250);

/// Which locks a keeper keeps.
#[derive(Debug, Clone, Copy)]
pub(crate) enum LockKind {
    Turn,
    Activity,
}

pub(crate) struct LeaseKeeper {
    kind: LockKind,
    timeout: Duration,
    interval: Duration,
    held: Mutex<Held>,
    changed: Notify,
    /// Told when there is a lease again after there was none.
    occupied: Notify,
}

#[derive(Default)]
struct Held {
    next_id: u64,
    leases: ById<Kept>,
    /// By the time of the next renewal.
    by_due: BTreeSet<(Instant, u64)>,
    /// Those whose renewal has not been answered, by the time at which another one will be due.
    unanswered: BTreeSet<(Instant, u64)>,
}

/// Instance, execution and id of an activity.
type Activity = (Box<str>, u64, u64);

struct Kept {
    token: Arc<str>,
    activity: Option<Activity>,
    lost: CancellationToken,
    since: Instant,
    /// When the store will consider the lock gone, by both clocks: one of them stands still while the
    /// machine sleeps, the other one can be set.
    expires_at: Instant,
    expires_at_ms: u64,
    /// When it is due, and so where among the others.
    due: Instant,
    is_asked: bool,
}

/// A lock to be renewed.
struct Renewal {
    id: u64,
    token: Arc<str>,
    /// When it is too late.
    expires_at: Instant,
    began: Instant,
}

/// A lock that is renewed until this is dropped.
pub(crate) struct Lease {
    keeper: Arc<LeaseKeeper>,
    id: u64,
    lost: CancellationToken,
}

impl LeaseKeeper {
    pub(crate) fn new(kind: LockKind, timeout: Duration, buffer: Duration) -> Arc<Self> {
        let timeout = timeout.min(FAR_AHEAD);
        let interval = renewal_interval(timeout, buffer);
        let (changed, occupied) = (Notify::new(), Notify::new());
        Arc::new(Self { kind, timeout, interval, held: Mutex::default(), changed, occupied })
    }

    /// Begins to renew the lock of an activity, or whatever lies in its queue, taken just now.
    pub(crate) fn hold_work(self: &Arc<Self>, token: &str, work: &WorkItem) -> Lease {
        let activity = match work {
            WorkItem::ActivityExecute { instance, execution_id, id, .. } => {
                Some((Box::from(instance.as_str()), *execution_id, *id))
            }
            _ => None,
        };
        self.hold_for(token, activity)
    }

    /// Begins to renew a lock taken just now.
    pub(crate) fn hold(self: &Arc<Self>, token: &str) -> Lease {
        self.hold_for(token, None)
    }

    /// Gives up the locks of activities that have been cancelled, if they are held here: they need not
    /// wait for the next renewal to learn it.
    pub(crate) fn give_up(&self, cancelled: &[ScheduledActivityIdentifier]) {
        if cancelled.is_empty() {
            return;
        }
        let name = |activity: &'_ ScheduledActivityIdentifier| {
            (activity.execution_id, activity.activity_id)
        };
        let names: HashSet<_> = cancelled.iter().map(name).collect();
        self.give_up_if(|kept| match &kept.activity {
            // The numbers tell nearly all of them apart.
            Some((instance, execution, id)) if names.contains(&(*execution, *id)) => {
                cancelled.iter().any(|cancelled| {
                    name(cancelled) == (*execution, *id) && *cancelled.instance == **instance
                })
            }
            _ => false,
        });
    }

    /// Gives up the locks with these tokens: the store has told that they are gone.
    pub(super) fn give_up_tokens(&self, tokens: &[String]) {
        self.give_up_if(|kept| tokens.iter().any(|lost| **lost == *kept.token));
    }

    fn give_up_if(&self, is_lost: impl Fn(&Kept) -> bool) {
        let mut held = self.held();
        let lost = held.leases.iter().filter(|(_, kept)| is_lost(kept));
        let ids: Vec<u64> = lost.map(|(id, _)| *id).collect();
        let lost: Vec<_> = ids.into_iter().filter_map(|id| held.remove(id)).collect();
        drop(held);
        lost.iter().for_each(|kept| kept.lost.cancel());
    }

    /// The tokens of locks that have been held for so long.
    pub(super) fn held_for(&self, age: Duration) -> Vec<Arc<str>> {
        let (held, now) = (self.held(), Instant::now());
        let old = held.leases.values().filter(|kept| kept.since + age <= now);
        old.map(|kept| Arc::clone(&kept.token)).collect()
    }

    /// Waits until there is any lock to be kept.
    pub(super) async fn any_held(&self) {
        while self.held().leases.is_empty() {
            self.occupied.notified().await;
        }
    }

    fn hold_for(self: &Arc<Self>, token: &str, activity: Option<Activity>) -> Lease {
        let now = Instant::now();
        let lost = CancellationToken::new();
        let kept = Kept {
            token: Arc::from(token),
            activity,
            lost: lost.clone(),
            since: now,
            expires_at: now + self.timeout,
            expires_at_ms: self.wall_expiry(),
            due: now + self.interval,
            is_asked: false,
        };
        let mut held = self.held();
        let id = held.next_id;
        held.next_id += 1;
        held.by_due.insert((kept.due, id));
        let was_empty = held.leases.is_empty();
        held.leases.insert(id, kept);
        let is_first = held.by_due.first().is_some_and(|(_, first)| *first == id);
        drop(held);
        if is_first {
            self.changed.notify_one();
        }
        if was_empty {
            self.occupied.notify_one();
        }
        Lease { keeper: Arc::clone(self), id, lost }
    }

    /// Renews what is due until `stop`, which comes after the last slot has ended: work in progress
    /// keeps its lock through a shutdown (R7.60).
    pub(crate) async fn run(
        self: Arc<Self>,
        store: Arc<dyn Provider>,
        tracker: TaskTracker,
        stop: CancellationToken,
    ) {
        let renew = Arc::clone(&self).renew_until(Arc::clone(&store), tracker, stop.clone());
        match self.kind {
            LockKind::Turn => renew.await,
            LockKind::Activity => {
                tokio::join!(renew, lost_work::give_up_until(&self, store, &stop));
            }
        }
    }

    async fn renew_until(
        self: Arc<Self>,
        store: Arc<dyn Provider>,
        tracker: TaskTracker,
        stop: CancellationToken,
    ) {
        let mut renewals = JoinSet::new();
        loop {
            let next = self.held().by_due.first().map(|(due, _)| *due);
            let due = async {
                match next {
                    Some(due) => sleep_until(due).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = stop.cancelled() => return,
                () = self.changed.notified() => {}
                () = due => {
                    let now = Instant::now();
                    let due = self.held().take_due(now + TOGETHER, now, self.interval);
                    for renewal in due {
                        let renewal = Arc::clone(&self).renew(Arc::clone(&store), renewal);
                        renewals.spawn(tracker.track_future(renewal)); // A slow one holds up no other.
                    }
                }
                Some(_) = renewals.join_next() => {}
            }
        }
    }

    /// One renewal. If it panics or never answers it has failed, and the lock will be gone.
    async fn renew(self: Arc<Self>, store: Arc<dyn Provider>, renewal: Renewal) {
        let Renewal { id, token, expires_at, began } = renewal;
        let call = async {
            match self.kind {
                LockKind::Turn => store.renew_orchestration_item_lock(&token, self.timeout).await,
                LockKind::Activity => store.renew_work_item_lock(&token, self.timeout).await,
            }
        };
        let result = match timeout_at(expires_at, catch_panic(call)).await {
            Ok(Ok(result)) => result,
            Ok(Err(panic)) => Err(ProviderError::retryable("renew", format!("panicked: {panic}"))),
            Err(_) => Err(ProviderError::retryable("renew", "no answer until the lock ran out")),
        };
        self.note(id, began, result);
    }

    fn note(&self, id: u64, began: Instant, result: Result<(), ProviderError>) {
        let mut held = self.held();
        // Let go meanwhile; a refusal only means that the work is done.
        let Some(kept) = held.leases.get_mut(&id) else { return };
        // Answers can come late, when another renewal has been answered since.
        let (is_asked, now) = (kept.is_asked, Instant::now());
        match result {
            Ok(()) => {
                kept.expires_at = kept.expires_at.max(began + self.timeout);
                kept.expires_at_ms = self.wall_expiry();
                let due = began + self.interval;
                let due = if is_asked { due } else { due.max(kept.due) };
                held.place(id, due, false);
            }
            // A passing error costs the lock only if it lasts as long as the lock (L18).
            Err(error) if error.is_retryable() && now < kept.expires_at => {
                tracing::debug!(target: targets::RUNTIME, %error, kind = ?self.kind,
                    "lock renewal failed, trying again");
                let again = (now + RETRY_PAUSE.min(self.timeout / 20)).min(kept.expires_at);
                if is_asked {
                    held.place(id, again, false);
                }
            }
            Err(error) => {
                tracing::debug!(target: targets::RUNTIME, %error, kind = ?self.kind, "lock lost");
                let lost = kept.lost.clone();
                held.remove(id);
                drop(held);
                lost.cancel();
            }
        }
        // Somebody may be waiting for an earlier or a later time than the first one now.
        self.changed.notify_one();
    }

    fn wall_expiry(&self) -> u64 {
        let timeout_ms = u64::try_from(self.timeout.as_millis()).unwrap_or(u64::MAX);
        wall_clock_ms().saturating_add(timeout_ms)
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Upkeep for LeaseKeeper {
    fn slack(&self) -> Duration {
        self.timeout.saturating_sub(self.interval)
    }

    fn overdue(&self, now: Instant) -> Option<Instant> {
        let held = self.held();
        let first = |set: &BTreeSet<(Instant, u64)>| set.first().map(|(due, _)| *due);
        let first = first(&held.by_due).into_iter().chain(first(&held.unanswered)).min();
        first.filter(|due| *due <= now)
    }

    fn take_over(self: Arc<Self>, store: Arc<dyn Provider>, now: Instant) -> Vec<Deed> {
        let mut held = self.held();
        let mut late = held.take_unanswered(now, self.interval);
        late.extend(held.take_due(now, now, self.interval));
        drop(held);
        let renew =
            |renewal| -> Deed { Box::pin(Arc::clone(&self).renew(Arc::clone(&store), renewal)) };
        late.into_iter().map(renew).collect()
    }
}

impl Held {
    /// Leases to renew now. They stay known, due again only once their renewal has been answered.
    fn take_due(&mut self, until: Instant, now: Instant, interval: Duration) -> Vec<Renewal> {
        let later = self.by_due.split_off(&(until, u64::MAX));
        let due = std::mem::replace(&mut self.by_due, later);
        self.ask(due, now, interval)
    }

    /// Leases whose renewal should have been answered by now, to try again.
    fn take_unanswered(&mut self, now: Instant, interval: Duration) -> Vec<Renewal> {
        let later = self.unanswered.split_off(&(now, u64::MAX));
        let late = std::mem::replace(&mut self.unanswered, later);
        self.ask(late, now, interval)
    }

    fn ask(
        &mut self,
        leases: BTreeSet<(Instant, u64)>,
        now: Instant,
        interval: Duration,
    ) -> Vec<Renewal> {
        let renewals = leases.into_iter().filter_map(|(_, id)| {
            self.place(id, now + interval, true);
            let kept = self.leases.get(&id)?;
            let (token, expires_at) = (Arc::clone(&kept.token), kept.expires_at);
            Some(Renewal { id, token, expires_at, began: now })
        });
        renewals.collect()
    }

    /// Puts a lease where it belongs from now on.
    fn place(&mut self, id: u64, due: Instant, is_asked: bool) {
        let Some(kept) = self.leases.get_mut(&id) else { return };
        let (from, was_asked) = (kept.due, kept.is_asked);
        (kept.due, kept.is_asked) = (due, is_asked);
        if was_asked { &mut self.unanswered } else { &mut self.by_due }.remove(&(from, id));
        if is_asked { &mut self.unanswered } else { &mut self.by_due }.insert((due, id));
    }

    fn remove(&mut self, id: u64) -> Option<Kept> {
        let kept = self.leases.remove(&id)?;
        let set = if kept.is_asked { &mut self.unanswered } else { &mut self.by_due };
        set.remove(&(kept.due, id));
        Some(kept)
    }
}

impl Lease {
    /// Signalled when the lock is gone.
    pub(crate) fn lost(&self) -> &CancellationToken {
        &self.lost
    }

    /// Whether the lock has run out as far as we know, by any clock. Only the store knows for sure.
    pub(crate) fn is_doubtful(&self) -> bool {
        let held = self.keeper.held();
        held.leases.get(&self.id).is_none_or(|kept| {
            kept.expires_at <= Instant::now() || kept.expires_at_ms <= wall_clock_ms()
        })
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.keeper.held().remove(self.id);
    }
}
