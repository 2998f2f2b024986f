//! Memory: what an instance costs that sleeps. The second half is looked at by itself: by then a
//! cache of bounded size is full, and what comes on top comes with every instance.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::workloads::Failure;
use crate::workloads::args::Args;
use crate::workloads::lab::Lab;
use crate::workloads::outcome::{Outcome, Stopwatch};
use crate::workloads::starters::{Herd, Limits};
use crate::workloads::usage::resident_bytes;

/// Instances that are there before memory is looked at the first time.
const FIRST: u64 = 200;
/// Time for buffers to be given back.
const SETTLE: Duration = Duration::from_secs(2);
/// How many may be queued: those who wait for their first turn do not sleep yet.
const WINDOW: usize = 256;
const PATIENCE: Duration = Duration::from_secs(60);

pub(super) async fn run(args: Args, count: u64) -> Result<Outcome, Failure> {
    let mut lab = Lab::open(args).await?;
    lab.warm_up().await?;
    let lab = Arc::new(lab);
    sleep(&lab, "first", FIRST).await?;
    let before = resident_bytes();

    let watch = Stopwatch::start(&lab.args)?;
    let early = sleep(&lab, "early", count / 2).await?;
    tokio::time::sleep(SETTLE).await;
    let between = resident_bytes();
    let late = sleep(&lab, "late", count / 2).await?;
    tokio::time::sleep(SETTLE).await;
    let after = resident_bytes();
    let measured = watch.stop()?;

    let asleep = early + late;
    let each = |more: u64, less: u64, n: u64| more.saturating_sub(less) as f64 / n.max(1) as f64;
    let outcome = Outcome::new(&lab, &measured, asleep).await?;
    Ok(outcome
        .figure("rss_bytes_per_late_instance", each(after, between, late))
        .figure("rss_bytes_per_instance", each(after, before, asleep))
        .fact("rss_bytes", after))
}

/// Starts sleepers for as long as half the budget lasts; tells how many sleep.
async fn sleep(lab: &Arc<Lab>, prefix: &str, count: u64) -> Result<u64, Failure> {
    let before = lab.signals.done_count();
    let deadline = Instant::now() + lab.args.budget() / 2;
    let herd = Herd { prefix, orchestration: "Sleeper", input: "" };
    let limits = Limits { count, window: Some(WINDOW), deadline };
    let started = herd.start(lab, limits).await?;
    let all = |done: u64| (done >= before + started).then_some(());
    let patience = Instant::now() + PATIENCE;
    lab.signals.until(patience, |signals| all(signals.done_count())).await;
    Ok(lab.signals.done_count() - before)
}
