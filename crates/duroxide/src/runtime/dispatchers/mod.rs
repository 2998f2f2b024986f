//! The two loops that move work: turns of orchestrations, and activities.
//!
//! Turns: one task fetches, as many at once as there is room for, and each runs in a task of its own.
//! Only so many run at a time; those that have run and wait for their commit make room for others,
//! so that one sync of the disk serves many.
//!
//! Activities: there are as many slots as may run at a time. One free slot leads: it waits for work,
//! and as soon as it has some it passes the lead to the next free slot and does the work itself. So
//! one fetch waits for all. Of short activities it brings several, for the next free slots. A slot is
//! free when its code has ended; the result waits for the store on its own.

pub(crate) mod lease;
mod renewal_interval;
mod id_hash;
mod lost_work;
pub(crate) mod fetch;
mod usual;
mod alarm;
pub(crate) mod orchestration;
pub(crate) mod worker;

use std::time::Duration;

/// Longer than any runtime lives, and safe to add to an instant: what `Duration::MAX` comes to.
const FAR_AHEAD: Duration = Duration::from_secs(10 * 365 * 24 * 3600);
