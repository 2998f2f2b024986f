//! Sessions: which worker the rows of a session belong to, and for how long (R8.80 – R8.88).

use std::collections::HashMap;

use super::shelf::{Place, Shelf};
use crate::providers::{SessionFetchConfig, TagFilter};

/// One owner's claim on a session.
#[derive(Debug)]
pub(super) struct Lease {
    pub(super) owner: String,
    pub(super) until: u64,
    pub(super) last_activity: u64,
    /// Whether it has run out; anybody may take the session then (R8.83).
    pub(super) lapsed: bool,
}

/// One session: its lease, if there ever was one, and its rows.
#[derive(Debug, Default)]
pub(super) struct Session {
    pub(super) lease: Option<Lease>,
    /// Queued rows, fetchable or not.
    pub(super) rows: usize,
    /// Rows that could be fetched as far as they themselves are concerned.
    ready: Shelf,
}

impl Session {
    /// Who may fetch its rows now; `None` means anybody.
    fn owner(&self) -> Option<&str> {
        self.lease.as_ref().filter(|lease| !lease.lapsed).map(|lease| lease.owner.as_str())
    }

    fn is_forgettable(&self) -> bool {
        self.rows == 0 && self.lease.is_none()
    }
}

/// All sessions. The oldest ready row of each session and tag lies on the shelf of those who may
/// fetch it; a session that changes hands moves these rows only.
#[derive(Debug, Default)]
pub(super) struct Sessions {
    by_id: HashMap<String, Session>,
    /// Heads of sessions without a valid lease.
    free: Shelf,
    /// Heads of leased sessions, by owner.
    owned: HashMap<String, Shelf>,
}

impl Sessions {
    /// The oldest row that this owner may fetch (R8.81).
    pub(super) fn oldest(&self, tags: &TagFilter, owner: &str) -> Option<Place> {
        let owned = self.owned.get(owner).and_then(|shelf| shelf.oldest(tags));
        owned.into_iter().chain(self.free.oldest(tags)).min()
    }

    /// Whether this owner may fetch rows of the session.
    pub(super) fn admits(&self, session_id: &str, owner: &str) -> bool {
        let session = self.by_id.get(session_id);
        session.and_then(Session::owner).is_none_or(|holder| holder == owner)
    }

    /// A row of the session was queued.
    pub(super) fn add_row(&mut self, session_id: &str) {
        self.by_id.entry(session_id.to_owned()).or_default().rows += 1;
    }

    /// A row of the session is gone.
    pub(super) fn remove_row(&mut self, session_id: &str) {
        let Some(session) = self.by_id.get_mut(session_id) else { return };
        session.rows -= 1;
        if session.is_forgettable() {
            self.by_id.remove(session_id);
        }
    }

    /// A row of the session can be fetched from now on.
    pub(super) fn insert_ready(&mut self, session_id: &str, tag: Option<&str>, place: Place) {
        self.change(session_id, |session| session.ready.insert(tag, place));
    }

    /// A row of the session cannot be fetched any more.
    pub(super) fn remove_ready(&mut self, session_id: &str, tag: Option<&str>, place: Place) {
        self.change(session_id, |session| session.ready.remove(tag, place));
    }

    /// Claims or refreshes the lease (R8.82).
    pub(super) fn claim(&mut self, session_id: &str, config: &SessionFetchConfig, lease: Claim) {
        self.change(session_id, |session| {
            session.lease = Some(Lease {
                owner: config.owner_id.clone(),
                until: lease.until,
                last_activity: lease.now,
                lapsed: false,
            });
        });
    }

    /// The lease ran out.
    pub(super) fn lapse(&mut self, session_id: &str) {
        self.change(session_id, |session| {
            if let Some(lease) = &mut session.lease {
                lease.lapsed = true;
            }
        });
    }

    /// The session was used, if it is leased (R8.85).
    pub(super) fn touch(&mut self, session_id: &str, now: u64) {
        if let Some(lease) = self.lease_mut(session_id).filter(|lease| !lease.lapsed) {
            lease.last_activity = now;
        }
    }

    /// Moves the end of a lease.
    pub(super) fn extend(&mut self, session_id: &str, until: u64) {
        if let Some(lease) = self.lease_mut(session_id) {
            lease.until = until;
        }
    }

    /// Sessions whose lease ran out and that no queued row needs (R8.87).
    pub(super) fn orphaned(&self) -> Vec<String> {
        let orphaned = self.by_id.iter().filter(|(_, session)| {
            session.rows == 0 && session.lease.as_ref().is_none_or(|lease| lease.lapsed)
        });
        orphaned.map(|(id, _)| id.clone()).collect()
    }

    /// Forgets a session without rows.
    pub(super) fn forget(&mut self, session_id: &str) {
        self.by_id.remove(session_id);
    }

    pub(super) fn get(&self, session_id: &str) -> Option<&Session> {
        self.by_id.get(session_id)
    }

    /// The oldest ready row of each tag in a session.
    pub(super) fn heads(&self, session_id: &str) -> Vec<u64> {
        let session = self.by_id.get(session_id);
        session.map_or_else(Vec::new, |session| {
            session.ready.heads().map(|(_, place)| place.1).collect()
        })
    }

    /// Sessions with a valid lease, and when it ends.
    pub(super) fn leases(&self) -> Vec<(String, u64)> {
        let valid = self.by_id.iter().filter_map(|(id, session)| {
            let lease = session.lease.as_ref().filter(|lease| !lease.lapsed)?;
            Some((id.clone(), lease.until))
        });
        valid.collect()
    }

    /// All sessions, in no order.
    pub(super) fn all(&self) -> impl Iterator<Item = (&String, &Session)> {
        self.by_id.iter()
    }

    /// Changes a session with its heads off the shelves, and puts them where they belong then.
    fn change(&mut self, session_id: &str, change: impl FnOnce(&mut Session)) {
        let Some(session) = self.by_id.get_mut(session_id) else { return };
        let owner = session.owner().map(str::to_owned);
        let shelf = match &owner {
            Some(owner) => self.owned.entry(owner.clone()).or_default(),
            None => &mut self.free,
        };
        session.ready.heads().for_each(|(tag, place)| shelf.remove(tag, place));
        if let Some(owner) = owner
            && shelf.is_empty()
        {
            self.owned.remove(&owner);
        }

        change(session);

        let shelf = match session.owner() {
            Some(owner) => self.owned.entry(owner.to_owned()).or_default(),
            None => &mut self.free,
        };
        session.ready.heads().for_each(|(tag, place)| shelf.insert(tag, place));
    }

    fn lease_mut(&mut self, session_id: &str) -> Option<&mut Lease> {
        self.by_id.get_mut(session_id)?.lease.as_mut()
    }
}

/// When a claim is made and how long it holds.
#[derive(Debug, Clone, Copy)]
pub(super) struct Claim {
    pub(super) now: u64,
    pub(super) until: u64,
}
