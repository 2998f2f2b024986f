//! The two loops that move work: turns of orchestrations, and activities.
//!
//! Each dispatcher has as many slots as things it may do at a time. One free slot leads: it waits
//! for work, and as soon as it has some it passes the lead to the next free slot and does the work
//! itself. So one fetch waits per dispatcher, however many slots there are, and nothing is handed
//! from task to task.

pub(crate) mod lease;
pub(crate) mod fetch;
pub(crate) mod orchestration;
pub(crate) mod worker;

use std::time::Duration;

/// Longer than any runtime lives, and safe to add to an instant: what `Duration::MAX` comes to.
const FAR_AHEAD: Duration = Duration::from_secs(10 * 365 * 24 * 3600);
