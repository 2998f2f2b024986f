//! Keeps locks alive while their work is done: one keeper per dispatcher, any number of locks.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until, timeout_at};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::FAR_AHEAD;
use crate::providers::{Provider, ProviderError};
use crate::runtime::catch_panic::catch_panic;
use crate::runtime::observability::targets;

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
}

#[derive(Default)]
struct Held {
    next_id: u64,
    /// Ordered by the time of the next renewal.
    by_due: BTreeMap<(Instant, u64), Entry>,
    /// When each lease is due, to find it again.
    due: BTreeMap<u64, Instant>,
}

#[derive(Clone)]
struct Entry {
    token: Arc<str>,
    /// When the store will consider the lock gone.
    expires_at: Instant,
    lost: CancellationToken,
}

/// A renewal that has ended.
struct Renewed {
    id: u64,
    entry: Entry,
    began: Instant,
    result: Result<(), ProviderError>,
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
        let (held, changed) = (Mutex::default(), Notify::new());
        Arc::new(Self { kind, timeout, interval, held, changed })
    }

    /// Begins to renew a lock taken just now.
    pub(crate) fn hold(self: &Arc<Self>, token: &str) -> Lease {
        let now = Instant::now();
        let lost = CancellationToken::new();
        let (token, expires_at) = (Arc::from(token), now + self.timeout);
        let mut held = self.held();
        let id = held.next_id;
        held.next_id += 1;
        held.insert(id, now + self.interval, Entry { token, expires_at, lost: lost.clone() });
        let is_first = held.by_due.keys().next().is_some_and(|(_, first)| *first == id);
        drop(held);
        if is_first {
            self.changed.notify_one();
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
        let mut renewals = JoinSet::new();
        loop {
            let next = self.held().by_due.keys().next().map(|(due, _)| *due);
            let due = async {
                match next {
                    Some(due) => sleep_until(due).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = stop.cancelled() => return,
                () = self.changed.notified() => {}
                () = due => self.renew_due(&store, &tracker, &mut renewals),
                Some(renewed) = renewals.join_next() => {
                    if let Ok(Renewed { id, entry, began, result }) = renewed {
                        self.note(id, entry, began, result);
                    }
                }
            }
        }
    }

    /// Starts the renewals that are due; a slow one holds up no other.
    fn renew_due(
        &self,
        store: &Arc<dyn Provider>,
        tracker: &TaskTracker,
        renewals: &mut JoinSet<Renewed>,
    ) {
        for (id, entry) in self.held().due_before(Instant::now() + TOGETHER) {
            let (store, kind, timeout) = (Arc::clone(store), self.kind, self.timeout);
            renewals.spawn(tracker.track_future(async move {
                let began = Instant::now();
                let result = renew(store.as_ref(), kind, &entry, timeout).await;
                Renewed { id, entry, began, result }
            }));
        }
    }

    fn note(&self, id: u64, entry: Entry, began: Instant, result: Result<(), ProviderError>) {
        let mut held = self.held();
        if !held.due.contains_key(&id) {
            return; // Let go meanwhile; a refusal only means that the work is done.
        }
        match result {
            Ok(()) => {
                let expires_at = began + self.timeout;
                held.insert(id, began + self.interval, Entry { expires_at, ..entry });
            }
            // A passing error costs the lock only if it lasts as long as the lock (L18).
            Err(error) if error.is_retryable() && Instant::now() < entry.expires_at => {
                tracing::warn!(target: targets::RUNTIME, %error, kind = ?self.kind,
                    "lock renewal failed, trying again");
                let pause = RETRY_PAUSE.min(self.timeout / 20);
                let again = (Instant::now() + pause).min(entry.expires_at);
                held.insert(id, again, entry);
            }
            Err(error) => {
                tracing::debug!(target: targets::RUNTIME, %error, kind = ?self.kind, "lock lost");
                held.remove(id);
                drop(held);
                entry.lost.cancel();
            }
        }
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Held {
    fn insert(&mut self, id: u64, due: Instant, entry: Entry) {
        self.remove(id);
        self.due.insert(id, due);
        self.by_due.insert((due, id), entry);
    }

    fn remove(&mut self, id: u64) {
        if let Some(due) = self.due.remove(&id) {
            self.by_due.remove(&(due, id));
        }
    }

    /// Leases to renew now. They stay known, due again only once their renewal has ended.
    fn due_before(&mut self, time: Instant) -> Vec<(u64, Entry)> {
        let later = self.by_due.split_off(&(time, u64::MAX));
        let due = std::mem::replace(&mut self.by_due, later);
        due.into_iter().map(|((_, id), entry)| (id, entry)).collect()
    }
}

impl Lease {
    /// Signalled when the lock is gone.
    pub(crate) fn lost(&self) -> &CancellationToken {
        &self.lost
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.keeper.held().remove(self.id);
    }
}

/// One renewal. If it panics or never answers it has failed, and the lock will be gone.
async fn renew(
    store: &dyn Provider,
    kind: LockKind,
    entry: &Entry,
    timeout: Duration,
) -> Result<(), ProviderError> {
    let call = async {
        match kind {
            LockKind::Turn => store.renew_orchestration_item_lock(&entry.token, timeout).await,
            LockKind::Activity => store.renew_work_item_lock(&entry.token, timeout).await,
        }
    };
    match timeout_at(entry.expires_at, catch_panic(call)).await {
        Ok(Ok(result)) => result,
        Ok(Err(panic)) => Err(ProviderError::retryable("renew", format!("panicked: {panic}"))),
        Err(_) => Err(ProviderError::retryable("renew", "no answer until the lock ran out")),
    }
}

/// How long to wait between renewals (R7.61). Never so long that less than a second is left of the
/// lock, or of a short lock less than half: the renewal would come too late.
pub(crate) fn renewal_interval(timeout: Duration, buffer: Duration) -> Duration {
    const SECOND: Duration = Duration::from_secs(1);
    let interval = if timeout >= Duration::from_secs(15) {
        timeout.saturating_sub(buffer)
    } else {
        Duration::from_secs((timeout / 2).as_secs_f64().ceil() as u64)
    };
    let latest = timeout.saturating_sub(SECOND).max(timeout / 2);
    interval.max(SECOND).min(latest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn r7_61_intervals() {
        let s = Duration::from_secs;
        for (timeout, buffer, expected) in [
            (s(30), s(5), s(25)),
            (s(5), s(2), s(3)),
            (s(2), s(2), s(1)),
            (s(15), s(20), s(1)),
            (s(30), s(0), s(29)),
            (Duration::from_millis(1500), s(0), Duration::from_millis(750)),
            (s(14), s(1), s(7)),
            (s(1), s(0), Duration::from_millis(500)),
            (Duration::from_millis(400), s(0), Duration::from_millis(200)),
        ] {
            assert_eq!(renewal_interval(timeout, buffer), expected, "{timeout:?} {buffer:?}");
        }
    }
}
