//! A store that fails, in few lines: one when it begins, some while it lasts, one when it is over.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use super::targets;
use crate::providers::ProviderError;

/// Time from the first line of an outage to the second; each further one takes twice as long.
const FIRST_PAUSE: Duration = Duration::from_secs(5);
const LONGEST_PAUSE: Duration = Duration::from_secs(300);
/// How long nothing must have failed for it to be over: some calls may fail while others do not, and
/// fetches pause for up to three seconds after an error.
const QUIET: Duration = Duration::from_secs(5);

/// Whether the store of a runtime fails.
#[derive(Debug, Default)]
pub(crate) struct StoreHealth {
    /// Whether there is an outage; nobody waits for the lock while there is none.
    is_out: AtomicBool,
    outage: Mutex<Option<Outage>>,
}

#[derive(Debug)]
struct Outage {
    began: Instant,
    last_failure: Instant,
    failures: u64,
    next_line: Instant,
    pause: Duration,
}

impl StoreHealth {
    /// A call failed because of the store, not because of what was asked.
    pub(crate) fn failed(&self, operation: &str, error: &ProviderError) {
        let now = Instant::now();
        let mut outage = self.outage();
        let Some(known) = outage.as_mut() else {
            *outage = Some(Outage {
                began: now,
                last_failure: now,
                failures: 1,
                next_line: now + FIRST_PAUSE,
                pause: FIRST_PAUSE,
            });
            self.is_out.store(true, Ordering::Relaxed);
            drop(outage);
            tracing::warn!(target: targets::RUNTIME, operation, %error, retryable = error.retryable,
                "the store fails; trying again");
            return;
        };
        known.failures += 1;
        known.last_failure = now;
        if now < known.next_line {
            return;
        }
        known.pause = (known.pause * 2).min(LONGEST_PAUSE);
        known.next_line = now + known.pause;
        let (failures, lasting_secs) = (known.failures, (now - known.began).as_secs());
        drop(outage);
        tracing::warn!(target: targets::RUNTIME, operation, %error, retryable = error.retryable,
            failures, lasting_secs, "the store still fails; trying again");
    }

    /// A call reached the store and came back.
    pub(crate) fn worked(&self) {
        if !self.is_out.load(Ordering::Relaxed) {
            return;
        }
        let mut outage = self.outage();
        let Some(over) = outage.take_if(|outage| QUIET <= outage.last_failure.elapsed()) else {
            return;
        };
        self.is_out.store(false, Ordering::Relaxed);
        drop(outage);
        let lasted_secs = (over.last_failure - over.began).as_secs();
        tracing::warn!(target: targets::RUNTIME, failures = over.failures, lasted_secs,
            "the store works again");
    }

    fn outage(&self) -> MutexGuard<'_, Option<Outage>> {
        self.outage.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
