//! Where commits are announced (R8.134).
//!
//! A fixed number of signals; a commit notifies the one its instance's name hashes to. Two instances
//! may share a signal: a client that waits for one of them then looks once too often, which is harmless.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::Notify;

/// Enough that two instances that clients wait for seldom share one.
const SIGNALS: usize = 4096;

/// Where commits are announced.
pub(crate) struct CommitBoard {
    signals: Box<[CommitSignal]>,
    watchers: AtomicUsize,
}

#[derive(Default)]
struct CommitSignal {
    /// How often it was notified.
    count: AtomicU64,
    notify: Notify,
}

impl CommitSignal {
    fn notify(&self) {
        self.count.fetch_add(1, Ordering::Release);
        self.notify.notify_waiters();
    }
}

impl CommitBoard {
    pub(crate) fn new() -> Self {
        let signals = (0..SIGNALS).map(|_| CommitSignal::default()).collect();
        Self { signals, watchers: AtomicUsize::new(0) }
    }

    /// Something was committed to this instance.
    pub(crate) fn notify(&self, instance: &str) {
        self.signal(instance).notify();
    }

    /// Something was committed, to which instances is not known.
    pub(crate) fn notify_all(&self) {
        self.signals.iter().for_each(CommitSignal::notify);
    }

    /// Whether any client waits.
    pub(crate) fn is_watched(&self) -> bool {
        self.watchers.load(Ordering::Acquire) != 0
    }

    /// Waits until the signal of this instance was notified more often than `seen`, at most `timeout`;
    /// how often it was, plus one, so that 0 is "never looked". `begin` is called when waiting begins.
    pub(crate) async fn wait(
        &self,
        instance: &str,
        seen: u64,
        timeout: Duration,
        begin: impl FnOnce(),
    ) -> u64 {
        let signal = self.signal(instance);
        let count = || signal.count.load(Ordering::Acquire) + 1;
        // Made before the look: a commit after the look finds it waiting.
        let notified = signal.notify.notified();
        if count() == seen && !timeout.is_zero() {
            let _watcher = Watcher::new(&self.watchers);
            begin();
            tokio::select! {
                () = notified => {}
                () = tokio::time::sleep(timeout) => {}
            }
        }
        count()
    }

    fn signal(&self, instance: &str) -> &CommitSignal {
        let mut hasher = DefaultHasher::new();
        instance.hash(&mut hasher);
        &self.signals[hasher.finish() as usize % SIGNALS]
    }
}

/// Counts as one waiting client until dropped.
struct Watcher<'a>(&'a AtomicUsize);

impl<'a> Watcher<'a> {
    fn new(watchers: &'a AtomicUsize) -> Self {
        watchers.fetch_add(1, Ordering::AcqRel);
        Self(watchers)
    }
}

impl Drop for Watcher<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}
