//! Verbs for locks, time and contention that hold on slow machines, too.

use std::future::Future;
use std::panic::resume_unwind;
use std::sync::{Arc, Barrier};
use std::time::Duration;

use duroxide_core::model::WorkItem;
use tokio::runtime::Handle;
use tokio::task::spawn_blocking;
use tokio::time::Instant;

use super::lab::{Job, Lab};
use crate::providers::ProviderError;

/// A lock or delay that outlasts every check.
pub(crate) const OUTLASTING: Duration = Duration::from_secs(600);
/// How often something is tried that a slow machine can spoil.
const TRIES: usize = 5;

impl Lab {
    /// The same store, with locks that outlast the check: for all that does not wait for one to run
    /// out, so that no slow machine makes it.
    pub(crate) fn patient(&self) -> Lab {
        Lab { lock: OUTLASTING, ..self.clone() }
    }

    // ---- Activities -----------------------------------------------------------------------------

    /// Ends an activity.
    pub(crate) async fn answered(&self, job: &Job, outcome: Option<WorkItem>) {
        let result = self.ack_work_item(&job.token, outcome).await;
        self.ok("ack_work_item", result);
    }

    /// Gives an activity back.
    pub(crate) async fn give_back(&self, job: &Job, delay: Option<Duration>) {
        let result = self.abandon_work_item(&job.token, delay, false).await;
        self.ok("abandon_work_item", result);
    }

    // ---- Time -----------------------------------------------------------------------------------

    /// Now, by the clock of the store.
    pub(crate) fn now_ms(&self) -> u64 {
        self.store_time_ms().unwrap_or_else(|| {
            let since_1970 = std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default();
            u64::try_from(since_1970.as_millis()).unwrap_or(u64::MAX)
        })
    }

    /// Something must not have come before so much time had passed. Clocks may differ a little.
    #[track_caller]
    pub(crate) fn not_before(&self, span: Duration, began: Instant, what: &str) {
        let took = began.elapsed();
        self.expect(span * 9 / 10 <= took, &format!("{what} to take {span:?}"), took);
    }

    /// Something that must succeed while a lock of ordinary length holds. If the machine was too
    /// slow for that it is done again.
    pub(crate) async fn in_time<T, Fut>(&self, call: &str, scene: impl Fn() -> Fut) -> T
    where
        Fut: Future<Output = Result<T, ProviderError>>,
    {
        for _ in 1..TRIES {
            let began = Instant::now();
            let result = scene().await;
            if result.is_ok() || began.elapsed() < self.lock {
                return self.ok(call, result);
            }
        }
        self.ok(call, scene().await)
    }

    // ---- Contention -----------------------------------------------------------------------------

    /// A call among many at a time, which may be asked to try again (R8.6).
    pub(crate) async fn through<T, Fut>(&self, call: &str, attempt: impl Fn() -> Fut) -> T
    where
        Fut: Future<Output = Result<T, ProviderError>>,
    {
        let get_through = || async {
            match attempt().await {
                Err(error) if error.is_retryable() => None,
                other => Some(other),
            }
        };
        let result = self.soon(&format!("{call} to get through"), get_through).await;
        self.ok(call, result)
    }

    /// The same done by several threads at the same moment.
    pub(crate) async fn crowd<T, Fut>(
        &self,
        people: usize,
        each: impl Fn(Lab) -> Fut + Clone + Send + 'static,
    ) -> Vec<T>
    where
        T: Send + 'static,
        Fut: Future<Output = T>,
    {
        let (moment, runtime) = (Arc::new(Barrier::new(people)), Handle::current());
        let join = |_| {
            let (lab, each) = (self.clone(), each.clone());
            let (moment, runtime) = (Arc::clone(&moment), runtime.clone());
            spawn_blocking(move || {
                moment.wait();
                runtime.block_on(each(lab))
            })
        };
        let threads: Vec<_> = (0..people).map(join).collect();
        let mut results = Vec::new();
        for thread in threads {
            match thread.await {
                Ok(result) => results.push(result),
                Err(error) => resume_unwind(error.into_panic()),
            }
        }
        results
    }
}
