//! A store in memory: the fastest one for tests, and the model that other stores are compared with.
//!
//! Plain data under one lock. Reading order: `state.rs` (all the data), `mailbox.rs` and
//! `orchestration_queue.rs` (messages), `worker_queue.rs`, `sessions.rs` and `shelf.rs`
//! (activities), `turns.rs`, `commit.rs` and `work.rs` (what happens to them), `inspect.rs` and
//! `delete.rs` (management), `waiters.rs` and `long_poll.rs` (who waits for what). `provider.rs` and
//! `admin.rs` are the doors.

mod history;
mod kv;
mod instances;
mod mailbox;
mod orchestration_queue;
mod shelf;
mod sessions;
mod worker_queue;
mod state;
mod turns;
mod commit;
mod work;
mod inspect;
mod delete;
mod waiters;
mod long_poll;
mod commit_watch;
mod snapshot;
mod provider;
mod admin;
#[cfg(test)]
mod tests;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use commit_watch::CommitWatch;
use long_poll::{Turns, Work};
use state::State;
use waiters::Waiters;

use crate::clock::{Clock, TokioClock, millis_rounded_up as millis};
use crate::random::Random;

pub use snapshot::{
    ExecutionSnapshot, InstanceSnapshot, LockSnapshot, MemorySnapshot, MessageSnapshot,
    SessionSnapshot, WorkSnapshot,
};

/// A store that lives as long as this value.
///
/// It keeps nothing, but behaves like any other store. Time runs with tokio's, so tests can pause and
/// move it.
///
/// ```
/// # use std::{sync::Arc, time::Duration};
/// # use duroxide::{*, providers::memory::MemoryProvider};
/// # use duroxide::runtime::{Runtime, registry::ActivityRegistry};
/// # async fn trial(ctx: OrchestrationContext, _: String) -> Result<String, String> {
/// #     ctx.set_custom_status("on trial");
/// #     ctx.schedule_timer(Duration::from_secs(30 * 24 * 3600)).await;
/// #     Ok("over".into())
/// # }
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let orchestrations = OrchestrationRegistry::builder().register("Trial", trial).build();
/// # let activities = ActivityRegistry::builder().build();
/// let store = Arc::new(MemoryProvider::new());
/// let runtime = Runtime::start_with_store(store.clone(), activities, orchestrations).await;
/// let client = Client::new(store);
/// let patience = Duration::from_secs(5);
///
/// client.start_orchestration("trial-1", "Trial", "").await?;
/// client.wait_for_status_change("trial-1", 0, patience, patience).await?;
/// tokio::time::advance(Duration::from_secs(30 * 24 * 3600)).await;
/// let output: String = client.wait_for_orchestration_typed("trial-1", patience).await??;
/// assert_eq!(output, "over");
/// # runtime.shutdown(None).await;
/// # Ok(())
/// # }
/// ```
pub struct MemoryProvider {
    inner: Mutex<Inner>,
    clock: Arc<dyn Clock>,
    random: Random,
}

/// What a memory store can be told.
#[derive(Clone)]
pub struct MemoryOptions {
    /// The time by which messages become visible and locks end. Waiting goes through tokio, so this
    /// should run at the pace of tokio's time.
    pub clock: Arc<dyn Clock>,
    /// Where lock tokens come from.
    pub random: Random,
    /// How long messages for an instance that does not exist wait for it before they become dead
    /// letters (R8.29).
    pub orphan_retention: Duration,
}

impl Default for MemoryOptions {
    fn default() -> Self {
        Self {
            clock: Arc::new(TokioClock::new()),
            random: Random::from_os(),
            orphan_retention: Duration::from_secs(3600),
        }
    }
}

impl MemoryProvider {
    /// An empty store.
    pub fn new() -> Self {
        Self::with_options(MemoryOptions::default())
    }

    /// An empty store with these options.
    pub fn with_options(options: MemoryOptions) -> Self {
        let inner = Inner {
            state: State::new(millis(options.orphan_retention)),
            turn_polls: Waiters::default(),
            work_polls: Waiters::default(),
            commit_watch: CommitWatch::default(),
        };
        Self { inner: Mutex::new(inner), clock: options.clock, random: options.random }
    }

    /// All data as it is now, for inspection.
    pub fn snapshot(&self) -> MemorySnapshot {
        self.with(|inner, now| MemorySnapshot::of(&inner.state, now))
    }

    /// Makes the history of an instance unreadable, as damage on a disk would (R8.31, R8.95). Does
    /// nothing to an instance without history.
    #[doc(hidden)]
    pub fn corrupt_history(&self, instance: &str, error_text: &str) {
        self.with(|inner, now| {
            let Some(damaged) = inner.state.instances.get_mut(instance) else { return };
            damaged.executions.values_mut().for_each(|e| e.history.break_it(error_text));
            let id = inner.state.shared_id(instance);
            inner.state.settle(&id, now);
        });
    }

    /// Ends all locks and leases at once, as a store does whose only process has ended.
    #[doc(hidden)]
    pub fn expire_locks(&self) {
        self.with(|inner, now| {
            for id in inner.state.messages.locked() {
                inner.state.messages.expire(&id, now);
                inner.state.settle(&id, now);
            }
            inner.state.work.expire_locks(now);
        });
    }

    /// The highest attempt count among an instance's queued messages.
    #[doc(hidden)]
    pub fn max_attempt_count(&self, instance: &str) -> u32 {
        self.with(|inner, _| inner.state.messages.mailbox(instance).map_or(0, |m| m.max_attempts()))
    }

    /// Works on the data as of now, then tells those whom it concerns.
    fn with<R>(&self, work: impl FnOnce(&mut Inner, u64) -> R) -> R {
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        let now = self.clock.now_ms();
        inner.state.advance(now);
        let result = work(&mut inner, now);
        inner.tell();
        let dead_letters = inner.state.take_unreported();
        drop(inner);
        for letter in dead_letters {
            tracing::warn!(
                target: "duroxide::providers",
                instance = letter.instance,
                "message became a dead letter: {}", letter.reason
            );
        }
        result
    }

    /// A fresh lock token.
    fn token(&self) -> String {
        format!("lock_{}", self.random.guid())
    }
}

impl Default for MemoryProvider {
    fn default() -> Self {
        Self::new()
    }
}

impl std::fmt::Debug for MemoryProvider {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MemoryProvider").finish_non_exhaustive()
    }
}

/// What the lock protects.
struct Inner {
    state: State,
    turn_polls: Waiters<Turns>,
    work_polls: Waiters<Work>,
    commit_watch: CommitWatch,
}

impl Inner {
    /// Wakes those who wait for what has just changed.
    fn tell(&mut self) {
        self.turn_polls.dispatch(&mut self.state);
        self.work_polls.dispatch(&mut self.state);
        for id in self.state.take_committed() {
            self.commit_watch.ring(&id);
        }
    }
}
