//! Sessions: all activities of one go to one owner at a time.

use std::time::Duration;

use duroxide::providers::SessionFetchConfig;

use super::store::{Tables, later};

/// A lease on a session.
pub(crate) struct Session {
    owner: String,
    until_ms: u64,
    used_at_ms: u64,
}

impl Session {
    fn is_leased(&self, now: u64) -> bool {
        now < self.until_ms
    }
}

impl Tables {
    /// Whether this worker may take an activity of this session (R8.80, R8.81, R8.83).
    pub(crate) fn session_admits(
        &self,
        session_id: Option<&str>,
        worker: Option<&SessionFetchConfig>,
        now: u64,
    ) -> bool {
        let Some(id) = session_id else { return true };
        let Some(worker) = worker else { return false };
        let lease = self.sessions.get(id).filter(|session| session.is_leased(now));
        lease.is_none_or(|session| session.owner == worker.owner_id)
    }

    /// The worker has fetched an activity of this session, so the session is its own (R8.82).
    pub(crate) fn claim_session(
        &mut self,
        session_id: Option<String>,
        worker: Option<&SessionFetchConfig>,
        now: u64,
    ) {
        if let (Some(id), Some(worker)) = (session_id, worker) {
            let owner = worker.owner_id.clone();
            let until_ms = later(now, worker.lock_timeout);
            self.sessions.insert(id, Session { owner, until_ms, used_at_ms: now });
        }
    }

    /// An activity of this session was renewed or ended (R8.85).
    pub(crate) fn touch_session(&mut self, session_id: Option<&str>, now: u64) {
        let session = session_id.and_then(|id| self.sessions.get_mut(id));
        if let Some(session) = session.filter(|session| session.is_leased(now)) {
            session.used_at_ms = now;
        }
    }

    /// Extends the leases of these owners that are valid and in use; how many (R8.86).
    pub(crate) fn renew_sessions(
        &mut self,
        owners: &[&str],
        now: u64,
        extend_for: Duration,
        idle_timeout: Duration,
    ) -> usize {
        let renewable = self.sessions.values_mut().filter(|session| {
            owners.contains(&session.owner.as_str())
                && session.is_leased(now)
                && now < later(session.used_at_ms, idle_timeout)
        });
        renewable.map(|session| session.until_ms = later(now, extend_for)).count()
    }

    /// Removes sessions that nobody leases and that have no activities; how many (R8.87).
    pub(crate) fn sweep_sessions(&mut self, now: u64) -> usize {
        let before = self.sessions.len();
        let jobs = &self.jobs;
        self.sessions.retain(|id, session| {
            session.is_leased(now) || jobs.iter().any(|job| job.session_id.as_ref() == Some(id))
        });
        before - self.sessions.len()
    }
}
