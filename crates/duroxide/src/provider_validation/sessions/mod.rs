//! The activities of a session go to one worker at a time, for as long as its lease holds.

mod affinity;
mod expiry;
mod upkeep;

use std::time::Duration;

use super::lab::{AT_ONCE, Job, LONG, Lab};
use crate::providers::{SessionFetchConfig, TagFilter};

pub use affinity::*;
pub use expiry::*;
pub use upkeep::*;

const SECTION: &str = "sessions";

/// A worker that takes sessions.
struct Worker<'a> {
    lab: &'a Lab,
    lock: Duration,
    session: SessionFetchConfig,
}

/// A worker whose locks and leases outlast the check.
fn worker<'a>(lab: &'a Lab, owner: &str) -> Worker<'a> {
    let session = SessionFetchConfig { owner_id: owner.into(), lock_timeout: LONG };
    Worker { lab, lock: LONG, session }
}

impl Worker<'_> {
    /// Its activity locks last so long.
    fn locking(self, lock: Duration) -> Self {
        Self { lock, ..self }
    }

    /// Its session leases last so long.
    fn leasing(mut self, lease: Duration) -> Self {
        self.session.lock_timeout = lease;
        self
    }

    async fn ask(&self) -> Option<Job> {
        let tags = TagFilter::DefaultOnly;
        let fetched =
            self.lab.fetch_work_item(self.lock, AT_ONCE, Some(&self.session), &tags).await;
        let fetched = self.lab.ok("fetch_work_item", fetched);
        fetched.map(|(item, token, attempt)| Job { item, token, attempt })
    }

    /// It must get this activity now.
    async fn gets(&self, id: u64) -> Job {
        let job = self.ask().await;
        let got = job.as_ref().map(Job::id);
        let what = format!("the activity for {}", self.session.owner_id);
        self.lab.same(&what, got, Some(id));
        match job {
            Some(job) => job,
            None => self.lab.broken(&what, "nothing"),
        }
    }

    /// It must get this activity once some lock or lease has run out.
    async fn soon_gets(&self, id: u64) -> Job {
        let what = format!("an activity for {} when time is up", self.session.owner_id);
        let job = self.lab.soon(&what, || self.ask()).await;
        self.lab.same(&format!("the activity for {}", self.session.owner_id), job.id(), id);
        job
    }

    async fn gets_nothing(&self) {
        if let Some(job) = self.ask().await {
            self.lab.broken(&format!("nothing for {}", self.session.owner_id), job);
        }
    }
}

/// Extends the leases of these owners for long; how many there were.
async fn renewed(lab: &Lab, owners: &[&str], idle: Duration) -> usize {
    lab.ok("renew_session_lock", lab.renew_session_lock(owners, LONG, idle).await)
}

/// Forgets sessions that nobody needs; how many there were.
async fn cleaned_up(lab: &Lab) -> usize {
    lab.ok("cleanup_orphaned_sessions", lab.cleanup_orphaned_sessions(lab.lock).await)
}
