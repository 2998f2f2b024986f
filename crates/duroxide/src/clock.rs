//! The clocks of this process. All waiting goes through tokio, so paused time works.

use std::time::Duration;

use tokio::time::Instant;

pub use duroxide_core::clock::{Clock, millis_rounded_up, wall_clock_ms};

/// The machine's wall clock.
#[derive(Debug, Clone, Copy, Default)]
pub struct WallClock;

impl Clock for WallClock {
    fn now_ms(&self) -> u64 {
        wall_clock_ms()
    }
}

/// Starts at the wall clock's time and then runs with tokio's: never backwards, and paused or
/// advanced together with tokio's timers. What a store inside this process wants.
#[derive(Debug, Clone, Copy)]
pub struct TokioClock {
    began_at: Instant,
    began_at_ms: u64,
}

impl TokioClock {
    /// A clock that begins now.
    pub fn new() -> Self {
        Self { began_at: Instant::now(), began_at_ms: wall_clock_ms() }
    }

    /// A clock that is ahead of the wall clock by `skew`.
    pub fn ahead_by(skew: Duration) -> Self {
        let skew_ms = u64::try_from(skew.as_millis()).unwrap_or(u64::MAX);
        Self { began_at: Instant::now(), began_at_ms: wall_clock_ms().saturating_add(skew_ms) }
    }
}

impl Default for TokioClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for TokioClock {
    fn now_ms(&self) -> u64 {
        let elapsed_ms = u64::try_from(self.began_at.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.began_at_ms.saturating_add(elapsed_ms)
    }
}
