//! As many instances as can be, a fixed number of them in flight.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::workloads::Failure;
use crate::workloads::args::Args;
use crate::workloads::lab::{Lab, Seen};
use crate::workloads::outcome::{Outcome, Stopwatch};

const STARTERS: usize = 32;
/// How long nothing may happen before those in flight are asked for.
const STALL: Duration = Duration::from_secs(5);
/// How long the last ones in flight may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// Starts instances for as long as the budget lasts and waits for all of them.
pub(super) async fn run(
    args: Args,
    name: &'static str,
    input: &str,
    window: usize,
) -> Result<Outcome, Failure> {
    let mut lab = Lab::open(args).await?;
    lab.warm_up().await?;
    let lab = Arc::new(lab);
    lab.signals.window.add_permits(window);

    let watch = Stopwatch::start()?;
    let started = start_all(&lab, name, input, window).await?;
    let failed = drain(&lab, started).await?;
    // What the code has returned is not yet stored: wait for the youngest as a client does.
    for number in started.saturating_sub(window as u64)..started {
        lab.wait(&id(number), PATIENCE).await?;
    }
    let measured = watch.stop()?;

    let completed = completed(&lab).await?;
    let per_second = completed as f64 / measured.elapsed.as_secs_f64();
    let outcome = Outcome::new(&lab, &measured, completed).await?;
    Ok(outcome
        .figure("per_second", per_second)
        .fact("failed", failed)
        .fact("unfinished", started.saturating_sub(completed + failed)))
}

fn id(number: u64) -> String {
    format!("i-{number}")
}

async fn start_all(
    lab: &Arc<Lab>,
    name: &'static str,
    input: &str,
    window: usize,
) -> Result<u64, Failure> {
    let deadline = Instant::now() + lab.args.budget();
    let next = Arc::new(AtomicU64::new(0));
    let input: Arc<str> = input.into();
    let mut starters = tokio::task::JoinSet::new();
    for _ in 0..STARTERS.min(window) {
        let (lab, next, input) = (lab.clone(), next.clone(), input.clone());
        starters.spawn(async move {
            loop {
                let permit =
                    tokio::time::timeout_at(deadline.into(), lab.signals.window.acquire()).await;
                let Ok(permit) = permit else { break };
                permit?.forget();
                let number = next.fetch_add(1, Ordering::Relaxed);
                lab.start(&id(number), name, &input).await?;
            }
            Ok::<(), Failure>(())
        });
    }
    while let Some(ended) = starters.join_next().await {
        ended??;
    }
    Ok(next.load(Ordering::Relaxed))
}

/// Waits until all have ended; tells how many of them failed.
async fn drain(lab: &Lab, started: u64) -> Result<u64, Failure> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let before = lab.signals.done_count();
        let stalled = Instant::now() + STALL;
        let all = lab
            .signals
            .until(stalled, |signals| (signals.done_count() >= started).then_some(()))
            .await;
        if all.is_some() {
            return Ok(0);
        }
        if lab.signals.done_count() == before || Instant::now() > deadline {
            return count_failed(lab, started).await;
        }
    }
}

async fn count_failed(lab: &Lab, started: u64) -> Result<u64, Failure> {
    let mut failed = 0;
    for number in 0..started {
        if let Seen::Failed(why) = lab.wait(&id(number), Duration::from_millis(1)).await? {
            failed += 1;
            if failed == 1 {
                eprintln!("first failure: {why}");
            }
        }
    }
    Ok(failed)
}

async fn completed(lab: &Lab) -> Result<u64, Failure> {
    let all = lab.client.list_instances_by_status("Completed").await?;
    Ok(all.iter().filter(|id| id.starts_with("i-") && !id.contains("::")).count() as u64)
}
