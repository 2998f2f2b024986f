//! The one loop behind all waits: look, wait for a commit, look again (R6.30, R6.34).

use std::time::Duration;

use duroxide_core::provider::ProviderError;
use tokio::time::{Instant, sleep_until};

use super::{Client, ClientError};

/// First pause between two looks; it doubles from there.
const FIRST_PAUSE: Duration = Duration::from_millis(5);
/// Longest pause where looking is the only way to learn anything.
const PAUSE_MAX: Duration = Duration::from_millis(100);
/// Longest pause where commits of this process end it: looking then only serves to see the commits
/// of other processes.
const PAUSE_MAX_WHEN_WOKEN: Duration = Duration::from_secs(1);
/// Shortest pause a caller can ask for, so that an interval of zero does not spin.
const PAUSE_MIN: Duration = Duration::from_millis(1);
/// What "for ever" means when the clock cannot count that far.
const FAR_AHEAD: Duration = Duration::from_secs(30 * 365 * 24 * 3600);

/// How long to wait and how often to look meanwhile.
pub(super) struct Deadline {
    at: Instant,
    interval: Option<Duration>,
}

impl Deadline {
    pub(super) fn after(timeout: Duration) -> Self {
        let now = Instant::now();
        let at = now.checked_add(timeout).unwrap_or_else(|| now + FAR_AHEAD);
        Self { at, interval: None }
    }

    /// Looks at this interval instead of at growing pauses.
    pub(super) fn looking_every(mut self, interval: Duration) -> Self {
        self.interval = Some(interval.max(PAUSE_MIN));
        self
    }
}

impl Client {
    /// Looks until `look` finds something or the deadline passes; looks at least once.
    ///
    /// A retryable error does not end the wait, since an outage of the store says nothing about the
    /// instance; it is the answer only if the last look before the deadline met it.
    pub(super) async fn wait_until<T, F>(
        &self,
        instance: &str,
        deadline: Deadline,
        look: impl Fn() -> F,
    ) -> Result<T, ClientError>
    where
        F: Future<Output = Result<Option<T>, ProviderError>>,
    {
        // Commits are counted before each look: one that lands between a look and the wait after it
        // is then still news to that wait.
        let mut commits_seen = self.store.wait_for_commit(instance, 0, Duration::ZERO).await;
        let mut pause = FIRST_PAUSE;
        loop {
            let outcome = match look().await {
                Ok(Some(found)) => return Ok(found),
                Ok(None) => ClientError::Timeout,
                Err(error) if error.is_retryable() => ClientError::Provider(error),
                Err(error) => return Err(ClientError::Provider(error)),
            };
            let remaining = deadline.at.saturating_duration_since(Instant::now());
            if remaining.is_zero() {
                return Err(outcome);
            }
            let until = Instant::now() + remaining.min(deadline.interval.unwrap_or(pause));
            commits_seen = self.pause_until(until, instance, commits_seen).await;
            let pause_max = if commits_seen.is_some() { PAUSE_MAX_WHEN_WOKEN } else { PAUSE_MAX };
            pause = pause_max.min(pause * 2);
        }
    }

    /// Sleeps until this process commits something for the instance, at most until `until`. Takes
    /// and returns the number of commits seen, if the store can tell.
    async fn pause_until(&self, until: Instant, instance: &str, seen: Option<u64>) -> Option<u64> {
        let mut commits = None;
        if let Some(seen) = seen {
            let timeout = until.saturating_duration_since(Instant::now());
            commits = self.store.wait_for_commit(instance, seen, timeout).await;
            if commits.is_some_and(|commits| commits != seen) {
                return commits;
            }
        }
        // No news: either the time is up, or the store cannot tell, or it answered too early.
        sleep_until(until).await;
        commits
    }
}
