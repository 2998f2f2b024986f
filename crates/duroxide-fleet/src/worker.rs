//! A process that runs a full runtime until it is told to end, or killed.

use std::time::Duration;

use duroxide::RuntimeOptions;
use duroxide::providers::TagFilter;
use duroxide::runtime::Runtime;

use crate::handlers::{HOLD, activities, orchestrations};
use crate::roles::{Stage, told_to_end};

/// If set, leases last longer than any test; short otherwise.
pub const LONG_LEASES: &str = "FLEET_LONG_LEASES";

/// Runs a runtime. Journals `UP` when it has started and `DOWN` when it has ended in good order.
pub(crate) async fn run(stage: &Stage) {
    let long = stage.setting(LONG_LEASES).is_some();
    let mut options = if long { long_leases() } else { short_leases() };
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

/// Leases that nobody could wait for. What goes on within [`SOON`](crate::SOON) was taken over.
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
