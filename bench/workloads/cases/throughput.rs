//! As many instances as can be, a fixed number of them in flight.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::workloads::Failure;
use crate::workloads::args::Args;
use crate::workloads::lab::Lab;
use crate::workloads::outcome::{Outcome, Stopwatch};
use crate::workloads::starters::{Herd, Limits};

/// How long nothing may happen before the store is asked.
const STALL: Duration = Duration::from_secs(2);
/// How long the last ones in flight may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// Starts instances for as long as the budget lasts and waits for all of them.
pub(super) async fn run(
    args: Args,
    name: &str,
    input: &str,
    window: usize,
) -> Result<Outcome, Failure> {
    let mut lab = Lab::open(args).await?;
    lab.warm_up().await?;
    let lab = Arc::new(lab);
    let herd = Herd { prefix: "i", orchestration: name, input };

    let watch = Stopwatch::start(&lab.args)?;
    let began_at = watch.began_at;
    let deadline = began_at + lab.args.budget();
    let limits = Limits { count: u64::MAX, window: Some(window), deadline };
    let started = herd.start(&lab, limits).await?;
    let all_done = drain(&lab, started).await?;
    if all_done {
        // What the code has returned is not yet stored: wait for the youngest as a client does.
        for number in started.saturating_sub(window as u64)..started {
            lab.wait(&herd.id(number), PATIENCE).await?;
        }
    }
    let measured = watch.stop()?;
    // Where some never end, the time spent on waiting for them is not held against the others.
    let last = lab.signals.last_done().filter(|_| !all_done);
    let elapsed = last.map_or(measured.elapsed, |last| last.duration_since(began_at));

    let completed = count(&lab, "Completed").await?;
    let failed = count(&lab, "Failed").await?;
    let outcome = Outcome::new(&lab, &measured, completed).await?;
    Ok(outcome
        .figure("per_second", completed as f64 / elapsed.as_secs_f64())
        .fact("failed", failed)
        .fact("unfinished", started.saturating_sub(completed + failed)))
}

/// Waits until all are done; tells if they are, rather than failed or lost.
async fn drain(lab: &Lab, started: u64) -> Result<bool, Failure> {
    let deadline = Instant::now() + PATIENCE;
    while Instant::now() < deadline {
        let stalled = Instant::now() + STALL;
        let done = |done: u64| (done >= started).then_some(());
        if lab.signals.until(stalled, |signals| done(signals.done_count())).await.is_some() {
            return Ok(true);
        }
        if count(lab, "Completed").await? + count(lab, "Failed").await? >= started {
            break;
        }
    }
    Ok(false)
}

/// How many of the instances that were started are in this state.
async fn count(lab: &Lab, status: &str) -> Result<u64, Failure> {
    let all = lab.client.list_instances_by_status(status).await?;
    Ok(all.iter().filter(|id| id.starts_with("i-") && !id.contains("::")).count() as u64)
}
