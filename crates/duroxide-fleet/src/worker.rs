//! A process that runs a full runtime until it is told to end, or killed.

use std::time::Duration;

use duroxide::RuntimeOptions;
use duroxide::providers::TagFilter;
use duroxide::runtime::Runtime;

use crate::handlers::{HOLD, activities, orchestrations};
use crate::roles::{Stage, told_to_end};

/// If set, leases last longer than any test.
pub const LONG_LEASES: &str = "FLEET_LONG_LEASES";
/// If set, leases run out soon: for tests that stop a process, or cut it off, until they do.
pub const SHORT_LEASES: &str = "FLEET_SHORT_LEASES";

/// Runs a runtime. Journals `UP` when it has started and `DOWN` when it has ended in good order.
pub(crate) async fn run(stage: &Stage) {
    let has = |name| stage.setting(name).is_some();
    let mut options = match (has(LONG_LEASES), has(SHORT_LEASES)) {
        (true, _) => long_leases(),
        (false, true) => short_leases(),
        (false, false) => calm_leases(),
    };
    if stage.setting(HOLD).as_deref() == Some("turns") {
        (options.orchestration_concurrency, options.worker_concurrency) = (1, 0);
    }
    let store = stage.store().await;
    let runtime =
        Runtime::start_with_options(store, activities(stage), orchestrations(stage), options).await;
    stage.journal.note("UP");
    told_to_end().await;
    runtime.shutdown(Some(2_000)).await;
    stage.journal.note("DOWN");
}

/// Leases that run out while a process is stopped.
pub fn short_leases() -> RuntimeOptions {
    RuntimeOptions {
        orchestration_concurrency: 4,
        worker_concurrency: 8,
        orchestrator_lock_timeout: Duration::from_secs(1),
        orchestrator_lock_renewal_buffer: Duration::from_millis(500),
        worker_lock_timeout: Duration::from_secs(2),
        worker_lock_renewal_buffer: Duration::from_secs(1),
        session_lock_timeout: Duration::from_secs(2),
        session_lock_renewal_buffer: Duration::from_secs(1),
        activity_cancellation_grace_period: Duration::from_secs(1),
        worker_tag_filter: TagFilter::Any,
        ..RuntimeOptions::default()
    }
}

/// Leases that a machine with much else to do can keep, and that an outage can outlast.
pub fn calm_leases() -> RuntimeOptions {
    let lease = Duration::from_secs(8);
    RuntimeOptions {
        orchestrator_lock_timeout: lease,
        orchestrator_lock_renewal_buffer: lease / 2,
        worker_lock_timeout: lease,
        worker_lock_renewal_buffer: lease / 2,
        session_lock_timeout: lease,
        session_lock_renewal_buffer: lease / 2,
        ..short_leases()
    }
}

/// Leases longer than any test. What goes on within [`SOON`](crate::SOON) was taken over.
pub fn long_leases() -> RuntimeOptions {
    let lease = Duration::from_secs(3600);
    RuntimeOptions {
        orchestrator_lock_timeout: lease,
        worker_lock_timeout: lease,
        session_lock_timeout: lease,
        session_idle_timeout: 2 * lease,
        ..RuntimeOptions::default()
    }
}
