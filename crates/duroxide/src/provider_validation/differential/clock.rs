//! A clock that stands still until it is told to move, shared by both stores.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::clock::Clock;

/// When every sequence begins, in milliseconds since the epoch.
const BEGINNING_MS: u64 = 1_700_000_000_000;

/// Time as an operation.
#[derive(Debug)]
pub(super) struct ManualClock {
    now_ms: AtomicU64,
}

impl ManualClock {
    /// A clock at the beginning.
    pub(super) fn new() -> Self {
        Self { now_ms: AtomicU64::new(BEGINNING_MS) }
    }

    /// Lets time pass.
    pub(super) fn advance(&self, ms: u64) {
        self.now_ms.fetch_add(ms, Ordering::SeqCst);
    }
}

impl Clock for ManualClock {
    fn now_ms(&self) -> u64 {
        self.now_ms.load(Ordering::SeqCst)
    }
}
