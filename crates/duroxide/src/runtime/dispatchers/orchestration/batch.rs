//! Turns on their way through the dispatcher: whose they are, and by which right they run.

use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use tokio::sync::OwnedSemaphorePermit;
use tokio::time::timeout;

use super::Dispatcher;
use crate::providers::OrchestrationItem;
use crate::runtime::dispatchers::lease::Lease;
use crate::runtime::warm::OwnTimers;

/// Whose turn it is, locked or not.
pub(super) struct Subject {
    pub(super) item: OrchestrationItem,
    /// How often it has been tried, from 1; not counting what the store is to blame for.
    pub(super) attempt: u32,
    pub(super) worker_id: String,
    /// Which of those that had its name the instance is (R8.143).
    pub(super) incarnation: u64,
}

impl Subject {
    pub(super) fn instance(&self) -> &str {
        &self.item.instance
    }
}

/// A locked turn on its way through the dispatcher.
pub(super) struct Batch {
    pub(super) subject: Subject,
    pub(super) lock_token: String,
    /// Id and time of the last event of the current execution; zeros if it has none.
    pub(super) last_event: (u64, u64),
    pub(super) history_included: bool,
    /// Whether it was fetched by itself, as suspects are (R7.28).
    pub(super) came_alone: bool,
    pub(super) lease: Lease,
    /// The right to run, until there is only the commit to wait for.
    pub(super) running: Option<Running>,
    /// Timers that were ours to fire before this turn, and still are.
    pub(super) timers: OwnTimers,
}

impl Deref for Batch {
    type Target = Subject;

    fn deref(&self) -> &Subject {
        &self.subject
    }
}

impl DerefMut for Batch {
    fn deref_mut(&mut self) -> &mut Subject {
        &mut self.subject
    }
}

/// The right to run, and since when.
pub(super) struct Running {
    pub(super) _permit: OwnedSemaphorePermit,
    pub(super) since: Instant,
}

impl Dispatcher {
    /// One of the turns that may run at a time; `None` if that takes too long.
    pub(super) async fn permission_to_run(&self, patience: Duration) -> Option<Running> {
        if let Ok(permit) = Arc::clone(&self.running).try_acquire_owned() {
            return Some(Running { _permit: permit, since: Instant::now() });
        }
        let waiting = Waiting::new(&self.waiting);
        let permission = Arc::clone(&self.running).acquire_owned();
        let permission = timeout(patience, permission).await;
        drop(waiting);
        let permit = permission.ok()?.ok()?; // Nobody closes the semaphore.
        Some(Running { _permit: permit, since: Instant::now() })
    }

    /// A turn has run.
    pub(super) fn has_run(&self, running: Option<Running>) {
        if let Some(running) = running {
            self.usual().learn(running.since.elapsed());
        }
    }
}

/// One of the turns that do not run yet, until dropped.
struct Waiting<'a>(&'a AtomicUsize);

impl<'a> Waiting<'a> {
    fn new(waiting: &'a AtomicUsize) -> Self {
        waiting.fetch_add(1, Ordering::Relaxed);
        Self(waiting)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
