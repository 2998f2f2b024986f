//! Waiting for work: the lead among slots, pauses after fruitless fetches, patience with errors.

use std::future::Future;
use std::time::Duration;

use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use crate::providers::ProviderError;
use crate::runtime::catch_panic::catch_panic;

/// The right to wait for work, held by one free slot at a time.
pub(crate) struct Lead(Semaphore);

impl Lead {
    pub(crate) fn new() -> Self {
        Self(Semaphore::new(1))
    }

    /// Waits for the lead; `None` only if it was closed, which nobody does.
    pub(crate) async fn take(&self) -> Option<SemaphorePermit<'_>> {
        self.0.acquire().await.ok()
    }
}

/// How fetching went so far.
#[derive(Debug, Default)]
pub(crate) struct Pace {
    errors_in_a_row: u32,
}

impl Pace {
    /// Runs a fetch, then waits as its result demands: not at all with work in hand, the rest of
    /// the minimum interval after nothing (R7.21), growing pauses after errors (R7.22, R7.23).
    /// `None` means: stop. Errors go to `log`.
    pub(crate) async fn fetch<T>(
        &mut self,
        stop: &CancellationToken,
        min_interval: Duration,
        log: impl FnOnce(&ProviderError),
        fetch: impl Future<Output = Result<Option<T>, ProviderError>>,
    ) -> Option<Option<T>> {
        let began = Instant::now();
        // A store that panics is a broken store, not the end of a slot.
        let fetched = or_stop(stop, catch_panic(fetch)).await?.unwrap_or_else(|panic| {
            Err(ProviderError::permanent("fetch", format!("the store panicked: {panic}")))
        });
        let pause = match fetched {
            Ok(Some(item)) => {
                self.errors_in_a_row = 0;
                return Some(Some(item));
            }
            Ok(None) => {
                self.errors_in_a_row = 0;
                min_interval.saturating_sub(began.elapsed())
            }
            Err(error) => {
                log(&error);
                self.pause_after(&error)
            }
        };
        if pause.is_zero() {
            or_stop(stop, tokio::task::yield_now()).await?;
        } else {
            or_stop(stop, sleep(pause)).await?;
        }
        Some(None)
    }

    fn pause_after(&mut self, error: &ProviderError) -> Duration {
        const FIRST: Duration = Duration::from_millis(100);
        const LONGEST: Duration = Duration::from_secs(3);
        if !error.is_retryable() {
            self.errors_in_a_row = 0;
            return FIRST;
        }
        self.errors_in_a_row = self.errors_in_a_row.saturating_add(1);
        // Five doublings pass the limit; more must not overflow (L25).
        FIRST.saturating_mul(1 << self.errors_in_a_row.min(5)).min(LONGEST)
    }
}

/// Runs a future unless told to stop; then it is dropped (R7.20, R7.24).
pub(crate) async fn or_stop<F: Future>(stop: &CancellationToken, future: F) -> Option<F::Output> {
    tokio::select! {
        biased;
        () = stop.cancelled() => None,
        output = future => Some(output),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn r7_22_l25_pauses_grow_and_never_overflow() {
        let mut pace = Pace::default();
        let busy = ProviderError::retryable("fetch", "busy");
        let pauses: Vec<u128> = (0..6).map(|_| pace.pause_after(&busy).as_millis()).collect();
        assert_eq!(pauses, [200, 400, 800, 1600, 3000, 3000]);
        for _ in 0..200 {
            assert_eq!(pace.pause_after(&busy), Duration::from_secs(3));
        }
        let broken = ProviderError::permanent("fetch", "broken");
        assert_eq!(pace.pause_after(&broken).as_millis(), 100); // R7.23
        assert_eq!(pace.pause_after(&busy).as_millis(), 200);
    }

    #[tokio::test(start_paused = true)]
    async fn r7_21_fruitless_fetches_are_spaced() {
        let (stop, mut pace) = (CancellationToken::new(), Pace::default());
        let began = Instant::now();
        let interval = Duration::from_millis(100);
        let nothing = async || Ok(None::<()>);
        assert_eq!(pace.fetch(&stop, interval, |_| {}, nothing()).await, Some(None));
        assert_eq!(began.elapsed(), interval);
        let slow = async {
            sleep(interval * 2).await;
            Ok(None::<()>)
        };
        assert_eq!(pace.fetch(&stop, interval, |_| {}, slow).await, Some(None));
        assert_eq!(began.elapsed(), interval * 3);
        stop.cancel();
        assert_eq!(pace.fetch(&stop, interval, |_| {}, nothing()).await, None); // R7.20
    }

    #[tokio::test(start_paused = true)]
    async fn r7_23_a_store_that_panics_costs_a_pause() {
        let (stop, mut pace) = (CancellationToken::new(), Pace::default());
        let began = Instant::now();
        let broken = async { panic!("out of memory") };
        let fetched: Option<Option<()>> = pace.fetch(&stop, Duration::ZERO, |_| {}, broken).await;
        assert_eq!((fetched, began.elapsed()), (Some(None), Duration::from_millis(100)));
    }
}
