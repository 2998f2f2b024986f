//! What a runtime can be told.

use std::sync::Arc;
use std::time::Duration;

pub use duroxide_core::replay::ForeignWait;

use super::observability::ObservabilityConfig;
use crate::clock::{Clock, WallClock};
use crate::providers::{DispatcherCapabilityFilter, SemverRange, TagFilter};
use crate::random::Random;

/// Options of a runtime (R7.10).
///
/// ```
/// use duroxide::{RuntimeOptions, TagFilter};
/// use std::time::Duration;
///
/// let options = RuntimeOptions {
///     worker_concurrency: 16,                             // Activities at a time.
///     worker_lock_timeout: Duration::from_secs(10),       // Cancellation is noticed sooner.
///     worker_lock_renewal_buffer: Duration::from_secs(5),
///     worker_tag_filter: TagFilter::default_and(["gpu"]), // What this machine can do.
///     worker_node_id: Some("node-a".into()),              // Sessions come back after a restart.
///     ..RuntimeOptions::default()
/// };
/// assert_eq!(options.max_attempts, 10);
/// ```
#[derive(Debug, Clone)]
pub struct RuntimeOptions {
    /// Shortest time from one fruitless fetch to the next; matters for stores without long polls.
    pub dispatcher_min_poll_interval: Duration,
    /// How long a fetch may wait for work.
    pub dispatcher_long_poll_timeout: Duration,
    /// Turns at a time; 0 runs none.
    pub orchestration_concurrency: usize,
    /// Activities whose code runs at a time; 0 runs none.
    pub worker_concurrency: usize,
    /// Lock length of a turn.
    pub orchestrator_lock_timeout: Duration,
    /// How long before its end a turn's lock is renewed.
    pub orchestrator_lock_renewal_buffer: Duration,
    /// Lock length of an activity.
    pub worker_lock_timeout: Duration,
    /// How long before its end an activity's lock is renewed.
    pub worker_lock_renewal_buffer: Duration,
    /// Logs and metrics.
    pub observability: ObservabilityConfig,
    /// Patience with handlers that are not registered here.
    pub unregistered_backoff: UnregisteredBackoffConfig,
    /// Fetches of a turn or an activity before it is given up as poison.
    pub max_attempts: u32,
    /// Time a cancelled activity has to end by itself.
    pub activity_cancellation_grace_period: Duration,
    /// Library versions whose executions this runtime takes; `None` means all up to its own.
    pub supported_replay_versions: Option<SemverRange>,
    /// Lease length of a session.
    pub session_lock_timeout: Duration,
    /// How long before its end a session's lease is renewed.
    pub session_lock_renewal_buffer: Duration,
    /// A session without work for so long is let go.
    pub session_idle_timeout: Duration,
    /// How often dead sessions are swept.
    pub session_cleanup_interval: Duration,
    /// Distinct sessions with work in flight at a time.
    pub max_sessions_per_runtime: usize,
    /// Stable owner of this runtime's sessions; `None` makes each slot an owner of its own.
    pub worker_node_id: Option<String>,
    /// Activities this runtime takes.
    pub worker_tag_filter: TagFilter,
}

impl Default for RuntimeOptions {
    fn default() -> Self {
        Self {
            dispatcher_min_poll_interval: Duration::from_millis(100),
            dispatcher_long_poll_timeout: Duration::from_secs(30),
            orchestration_concurrency: 2,
            worker_concurrency: 2,
            orchestrator_lock_timeout: Duration::from_secs(5),
            orchestrator_lock_renewal_buffer: Duration::from_secs(2),
            worker_lock_timeout: Duration::from_secs(30),
            worker_lock_renewal_buffer: Duration::from_secs(5),
            observability: ObservabilityConfig::default(),
            unregistered_backoff: UnregisteredBackoffConfig::default(),
            max_attempts: 10,
            activity_cancellation_grace_period: Duration::from_secs(10),
            supported_replay_versions: None,
            session_lock_timeout: Duration::from_secs(30),
            session_lock_renewal_buffer: Duration::from_secs(5),
            session_idle_timeout: Duration::from_secs(300),
            session_cleanup_interval: Duration::from_secs(300),
            max_sessions_per_runtime: 10,
            worker_node_id: None,
            worker_tag_filter: TagFilter::default(),
        }
    }
}

impl RuntimeOptions {
    /// R7.2: a session must outlive the silence between two renewals of a running activity, else a
    /// long activity would lose its session while it works.
    pub(super) fn check(&self) {
        let renewal = self
            .worker_lock_timeout
            .checked_sub(self.worker_lock_renewal_buffer)
            .unwrap_or(Duration::from_secs(1));
        assert!(
            self.session_idle_timeout > renewal,
            "session_idle_timeout ({:?}) must be greater than the worker lock renewal interval \
             ({renewal:?} = worker_lock_timeout - worker_lock_renewal_buffer)",
            self.session_idle_timeout
        );
    }

    /// The versions this runtime can replay.
    pub(super) fn supported_range(&self) -> SemverRange {
        self.supported_replay_versions
            .clone()
            .unwrap_or_else(SemverRange::default_for_current_build)
    }

    pub(super) fn capability_filter(&self) -> DispatcherCapabilityFilter {
        DispatcherCapabilityFilter { supported_duroxide_versions: vec![self.supported_range()] }
    }
}

/// Waits between attempts at a handler that is not registered here (R7.31).
#[derive(Debug, Clone)]
pub struct UnregisteredBackoffConfig {
    /// First wait.
    pub base_delay: Duration,
    /// Longest wait.
    pub max_delay: Duration,
}

impl UnregisteredBackoffConfig {
    /// The wait after attempt `attempt_count`, counted from 1: doubling, at most six times.
    pub fn delay(&self, attempt_count: u32) -> Duration {
        let doublings = attempt_count.saturating_sub(1).min(6);
        self.base_delay.saturating_mul(1 << doublings).min(self.max_delay)
    }
}

impl Default for UnregisteredBackoffConfig {
    fn default() -> Self {
        Self { base_delay: Duration::from_secs(1), max_delay: Duration::from_secs(60) }
    }
}

/// Settings beyond [`RuntimeOptions`], whose fields are fixed by source compatibility.
///
/// ```
/// use duroxide::runtime::{ForeignWait, RuntimeTuning};
///
/// // For tests: an orchestration that awaits a `sleep` fails instead of hanging.
/// let tuning = RuntimeTuning { foreign_wait: ForeignWait::Fail, ..RuntimeTuning::default() };
/// assert!(matches!(tuning.foreign_wait, ForeignWait::Fail));
/// ```
#[derive(Clone)]
pub struct RuntimeTuning {
    /// What to do with orchestrations that wait for something that is not durable.
    pub foreign_wait: ForeignWait,
    /// Where the time comes from, unless the store has a clock of its own.
    pub clock: Arc<dyn Clock>,
    /// Where ids come from.
    pub random: Random,
    /// Which instances stay in memory between their turns.
    pub warm: WarmOptions,
}

impl Default for RuntimeTuning {
    fn default() -> Self {
        Self {
            foreign_wait: ForeignWait::default(),
            clock: Arc::new(WallClock),
            random: Random::from_os(),
            warm: WarmOptions::default(),
        }
    }
}

/// Which instances stay in memory between their turns. The next turn of one that did costs what the
/// turn does; any other begins with a replay of its history.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WarmOptions {
    /// Whether any do.
    pub mode: WarmMode,
    /// Instances kept at most; those that have waited longest go first.
    pub max_instances: usize,
    /// Memory they may take, in bytes, as far as it can be told.
    pub max_bytes: usize,
}

impl Default for WarmOptions {
    fn default() -> Self {
        Self { mode: WarmMode::default(), max_instances: 10_000, max_bytes: 64 << 20 }
    }
}

/// Whether instances stay in memory between their turns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WarmMode {
    /// None do: every turn replays.
    Off,
    /// Some do.
    On,
    /// For tests: some do, each of their turns is also replayed, and the process is ended if the two
    /// differ.
    Compare,
}

#[cfg_attr(not(feature = "test-hooks"), allow(clippy::derivable_impls))]
impl Default for WarmMode {
    fn default() -> Self {
        // For running a whole test suite in one mode.
        #[cfg(feature = "test-hooks")]
        match std::env::var("DUROXIDE_WARM").as_deref() {
            Ok("off") => return Self::Off,
            Ok("compare") => return Self::Compare,
            _ => {}
        }
        Self::On
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn r7_31_unregistered_delays() {
        let backoff = UnregisteredBackoffConfig::default();
        let seconds: Vec<u64> =
            [1, 2, 3, 4, 5, 6, 7, 8, u32::MAX].map(|n| backoff.delay(n).as_secs()).to_vec();
        assert_eq!(seconds, [1, 2, 4, 8, 16, 32, 60, 60, 60]);
        assert_eq!(backoff.delay(0), Duration::from_secs(1));
    }

    #[test]
    #[should_panic(expected = "session_idle_timeout")]
    fn r7_2_sessions_must_outlive_a_renewal() {
        let options = RuntimeOptions {
            session_idle_timeout: Duration::from_secs(25),
            ..RuntimeOptions::default()
        };
        options.check();
    }

    #[test]
    fn r7_2_a_negative_renewal_interval_counts_as_a_second() {
        let options = RuntimeOptions {
            worker_lock_timeout: Duration::from_secs(2),
            session_idle_timeout: Duration::from_millis(1001),
            ..RuntimeOptions::default()
        };
        options.check();
    }

    #[test]
    fn r7_82_one_range_up_to_this_build() {
        let filter = RuntimeOptions::default().capability_filter();
        assert_eq!(filter.supported_duroxide_versions, [SemverRange::default_for_current_build()]);
    }
}
