//! Sessions of this runtime: how many are in use, and keeping their leases (R7.67 – R7.72).

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use super::Dispatcher;
use crate::runtime::dispatchers::FAR_AHEAD;
use crate::runtime::dispatchers::lease::renewal_interval;
use crate::runtime::node::log_storage_error;

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

/// Renews the leases of this runtime's sessions and sweeps dead ones, until told to stop (R7.71). A
/// runtime that has no sessions asks nothing of the store but the sweep.
pub(crate) async fn keep_sessions(
    dispatcher: Arc<Dispatcher>,
    owners: Vec<String>,
    stop: CancellationToken,
) {
    let options = &dispatcher.node.options;
    let (lease, idle) = (options.session_lock_timeout, options.session_idle_timeout);
    let renew_every = renewal_interval(lease, options.session_lock_renewal_buffer);
    let renew_every = renew_every.clamp(INTERVAL_MIN, FAR_AHEAD);
    let sweep_every = options.session_cleanup_interval.clamp(INTERVAL_MIN, FAR_AHEAD);
    let owners: Vec<&str> = owners.iter().map(String::as_str).collect();
    let store = &dispatcher.node.store;
    let mut next_renewal = Instant::now() + renew_every;
    let mut next_sweep = Instant::now() + sweep_every;
    loop {
        tokio::select! {
            biased;
            () = stop.cancelled() => return,
            () = sleep_until(next_renewal) => {
                next_renewal = Instant::now() + renew_every;
                if dispatcher.sessions.may_own_leases(idle) {
                    log_storage_error("-", store.renew_session_lock(&owners, lease, idle).await);
                }
            }
            () = sleep_until(next_sweep) => {
                next_sweep = Instant::now() + sweep_every;
                log_storage_error("-", store.cleanup_orphaned_sessions(idle).await);
            }
        }
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
