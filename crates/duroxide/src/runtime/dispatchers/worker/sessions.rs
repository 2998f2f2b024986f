//! Sessions of this runtime: how many are in use, and keeping their leases (R7.67 – R7.72).

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use super::Dispatcher;
use crate::providers::Provider;
use crate::runtime::dispatchers::FAR_AHEAD;
use crate::runtime::dispatchers::renewal_interval::renewal_interval;
use crate::runtime::node::log_storage_error;
use crate::runtime::upkeep::{Deed, Upkeep};

/// Shortest interval of renewals and sweeps, whatever the options say: each is work for the store.
const INTERVAL_MIN: Duration = Duration::from_millis(10);

#[derive(Default)]
pub(crate) struct Sessions {
    used: Mutex<Used>,
}

#[derive(Default)]
struct Used {
    /// Activities in flight per session.
    in_flight: HashMap<String, usize>,
    /// When a session was last in use; `None` if never.
    last_use: Option<Instant>,
}

/// A session in use by one activity.
pub(super) struct SessionUse<'a> {
    sessions: &'a Sessions,
    session_id: String,
}

impl Sessions {
    /// Distinct sessions with work in flight.
    pub(super) fn in_flight(&self) -> usize {
        self.used().in_flight.len()
    }

    /// Counts an activity of a session; `None` if that makes one session too many (R7.69).
    pub(super) fn enter(&self, session_id: &str, max: usize) -> Option<SessionUse<'_>> {
        let mut used = self.used();
        if !used.in_flight.contains_key(session_id) && used.in_flight.len() >= max {
            return None;
        }
        *used.in_flight.entry(session_id.to_owned()).or_default() += 1;
        used.last_use = Some(Instant::now());
        Some(SessionUse { sessions: self, session_id: session_id.to_owned() })
    }

    /// Whether this runtime can own a live lease at all.
    pub(super) fn may_own_leases(&self, idle_timeout: Duration) -> bool {
        let used = self.used();
        !used.in_flight.is_empty()
            || used.last_use.is_some_and(|last| last.elapsed() <= idle_timeout)
    }

    fn used(&self) -> MutexGuard<'_, Used> {
        self.used.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for SessionUse<'_> {
    fn drop(&mut self) {
        let mut used = self.sessions.used();
        used.last_use = Some(Instant::now());
        if let Some(count) = used.in_flight.get_mut(&self.session_id) {
            *count -= 1;
            if *count == 0 {
                used.in_flight.remove(&self.session_id);
            }
        }
    }
}

/// The leases of this runtime's sessions, which are renewed all at once (R7.71).
pub(crate) struct SessionLeases {
    sessions: Arc<Sessions>,
    owners: Vec<String>,
    lease: Duration,
    idle: Duration,
    every: Duration,
    next: Mutex<Instant>,
}

impl SessionLeases {
    pub(crate) fn new(dispatcher: &Dispatcher, owners: Vec<String>) -> Arc<Self> {
        let options = &dispatcher.node.options;
        let (lease, idle) = (options.session_lock_timeout, options.session_idle_timeout);
        let every = renewal_interval(lease, options.session_lock_renewal_buffer);
        let every = every.clamp(INTERVAL_MIN, FAR_AHEAD);
        let next = Mutex::new(Instant::now() + every);
        let sessions = Arc::clone(&dispatcher.sessions);
        Arc::new(Self { sessions, owners, lease, idle, every, next })
    }

    /// Renews the leases and sweeps dead ones, until told to stop. A runtime that has no sessions asks
    /// nothing of the store but the sweep.
    pub(crate) async fn keep(
        self: Arc<Self>,
        store: Arc<dyn Provider>,
        sweep_every: Duration,
        stop: CancellationToken,
    ) {
        let sweep_every = sweep_every.clamp(INTERVAL_MIN, FAR_AHEAD);
        let mut next_sweep = Instant::now() + sweep_every;
        loop {
            let next_renewal = *self.next();
            tokio::select! {
                biased;
                () = stop.cancelled() => return,
                () = sleep_until(next_renewal) => {
                    if self.is_due(Instant::now()) {
                        self.renew(store.as_ref()).await;
                    }
                }
                () = sleep_until(next_sweep) => {
                    next_sweep = Instant::now() + sweep_every;
                    log_storage_error("-", store.cleanup_orphaned_sessions(self.idle).await);
                }
            }
        }
    }

    /// Whether the leases are to be renewed now; whoever asks does it.
    fn is_due(&self, now: Instant) -> bool {
        let mut next = self.next();
        let is_due = *next <= now;
        if is_due {
            *next = now + self.every;
        }
        is_due
    }

    async fn renew(&self, store: &dyn Provider) {
        if self.sessions.may_own_leases(self.idle) {
            let owners: Vec<&str> = self.owners.iter().map(String::as_str).collect();
            let renewed = store.renew_session_lock(&owners, self.lease, self.idle).await;
            log_storage_error("-", renewed);
        }
    }

    fn next(&self) -> MutexGuard<'_, Instant> {
        self.next.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Upkeep for SessionLeases {
    fn slack(&self) -> Duration {
        self.lease.saturating_sub(self.every)
    }

    fn overdue(&self, now: Instant) -> Option<Instant> {
        Some(*self.next()).filter(|next| *next <= now)
    }

    fn take_over(self: Arc<Self>, store: Arc<dyn Provider>, now: Instant) -> Vec<Deed> {
        let is_due = self.is_due(now);
        let renew: Deed = Box::pin(async move { self.renew(store.as_ref()).await });
        Some(renew).filter(|_| is_due).into_iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn r7_69_distinct_sessions_are_limited_not_activities() {
        let sessions = Sessions::default();
        let a1 = sessions.enter("a", 2).unwrap();
        let a2 = sessions.enter("a", 2).unwrap();
        let b = sessions.enter("b", 2).unwrap();
        assert_eq!(sessions.in_flight(), 2);
        assert!(sessions.enter("c", 2).is_none());
        drop(a1);
        assert!(sessions.enter("c", 2).is_none());
        drop(a2);
        assert!(sessions.enter("c", 2).is_some());
        drop(b);
        assert_eq!(sessions.in_flight(), 0);
    }
}
