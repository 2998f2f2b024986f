//! What orchestrations and activities tell the measuring side, within the process.
//!
//! Nobody has to ask the store whether something happened: asking would cost both sides time, and
//! the one that polls more than the one that does not.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use tokio::sync::{Notify, Semaphore};

/// Counters and stamps written by the handlers.
pub(crate) struct Signals {
    began: AtomicU64,
    activities: AtomicU64,
    done: AtomicU64,
    /// One permit for each instance that may be in flight; a finished one gives its permit back.
    pub(crate) window: Semaphore,
    changed: Notify,
    last_done: Mutex<Option<Instant>>,
    span: Mutex<Span>,
    stamps: Mutex<HashMap<String, Stamp>>,
}

/// When code was resumed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stamp {
    pub(crate) at: Instant,
    /// The same moment by the wall clock, in milliseconds.
    pub(crate) wall_ms: f64,
}

/// The activities that ran since the last look.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Span {
    pub(crate) count: u64,
    first: Option<Instant>,
    last: Option<Instant>,
}

impl Span {
    /// Mean time from one activity to the next.
    pub(crate) fn ms_per_step(&self) -> Option<f64> {
        let span = self.last?.duration_since(self.first?);
        (self.count > 1).then(|| span.as_secs_f64() * 1e3 / (self.count - 1) as f64)
    }
}

impl Signals {
    pub(crate) fn new() -> Self {
        Self {
            began: AtomicU64::new(0),
            activities: AtomicU64::new(0),
            done: AtomicU64::new(0),
            window: Semaphore::new(0),
            changed: Notify::new(),
            last_done: Mutex::default(),
            span: Mutex::default(),
            stamps: Mutex::default(),
        }
    }

    /// An instance runs for the first time.
    pub(crate) fn begin(&self) {
        self.began.fetch_add(1, Ordering::Relaxed);
    }

    /// An activity runs.
    pub(crate) fn activity(&self) {
        self.activities.fetch_add(1, Ordering::Relaxed);
        let now = Instant::now();
        let mut span = lock(&self.span);
        span.count += 1;
        span.first.get_or_insert(now);
        span.last = Some(now);
    }

    /// An instance did what it was started for.
    pub(crate) fn done(&self) {
        *lock(&self.last_done) = Some(Instant::now());
        self.done.fetch_add(1, Ordering::Relaxed);
        self.window.add_permits(1);
        self.changed.notify_waiters();
    }

    /// The code of an instance goes on now; only the first time counts.
    pub(crate) fn resumed(&self, instance: String) {
        let at = Instant::now();
        let wall_ms =
            SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64() * 1e3;
        lock(&self.stamps).entry(instance).or_insert(Stamp { at, wall_ms });
        self.changed.notify_waiters();
    }

    /// How many instances are done.
    pub(crate) fn done_count(&self) -> u64 {
        self.done.load(Ordering::Relaxed)
    }

    /// When the last one was done.
    pub(crate) fn last_done(&self) -> Option<Instant> {
        *lock(&self.last_done)
    }

    /// How many steps of a one-activity orchestration were made: begin, activity, end.
    pub(crate) fn steps(&self) -> u64 {
        let [a, b, c] = [&self.began, &self.activities, &self.done];
        [a, b, c].map(|count| count.load(Ordering::Relaxed)).iter().sum()
    }

    /// Takes the span of activities and begins a new one.
    pub(crate) fn take_span(&self) -> Span {
        std::mem::take(&mut lock(&self.span))
    }

    /// When the code of an instance went on.
    pub(crate) fn stamp(&self, instance: &str) -> Option<Stamp> {
        lock(&self.stamps).get(instance).copied()
    }

    /// Waits until `look` finds something, or until `deadline`.
    pub(crate) async fn until<T>(
        &self,
        deadline: Instant,
        look: impl Fn(&Self) -> Option<T>,
    ) -> Option<T> {
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            if let Some(found) = look(self) {
                return Some(found);
            }
            if tokio::time::timeout_at(deadline.into(), changed).await.is_err() {
                return None;
            }
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
