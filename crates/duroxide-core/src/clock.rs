//! The one place of this crate that may read the time.
//!
//! The engine never calls it: a turn is given its time. It serves callers that build events or
//! contexts by hand.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Milliseconds since the epoch, by this machine's wall clock.
#[allow(clippy::disallowed_methods)] // The exception that the ban in clippy.toml points at.
pub fn wall_clock_ms() -> u64 {
    let elapsed = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX)
}

/// Where "now" comes from. The runtime and the stores of one process share one clock, so that tests
/// and simulations can set it.
pub trait Clock: Send + Sync {
    /// Milliseconds since the epoch.
    fn now_ms(&self) -> u64;
}

/// A duration in whole milliseconds, rounded up: a lock or a delay is never shorter than asked for.
pub fn millis_rounded_up(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX)
}
