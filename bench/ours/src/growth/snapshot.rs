//! G3: somebody keeps a snapshot for long, as a backup does, while so many hellos are done. What was
//! removed meanwhile cannot be cleared away, and must not be in anybody's way.

use std::sync::Arc;
use std::time::Instant;

use duroxide::TagFilter;

use super::elsewhere::Elsewhere;
use super::hellos::Hellos;
use super::readers::log_bytes;
use super::{FILLING, LONG_LEASE, NOW, ms_since};
use crate::workloads::Failure;
use crate::workloads::args::Args;
use crate::workloads::lab::Lab;
use crate::workloads::outcome::{Outcome, Stopwatch};
use crate::workloads::percentiles::percentile;
use crate::workloads::starters::{Herd, Limits};

const WINDOW: usize = 256;
/// How often a poll and a fetch are measured.
const LOOKS: usize = 20;

pub(super) async fn run(args: Args, count: u64) -> Result<Outcome, Failure> {
    let mut lab = Lab::open(args).await?;
    lab.warm_up().await?;
    let lab = Arc::new(lab);
    let half = lab.args.budget() / 2;
    let before = Hellos::alone(&lab, "before", half).await?;
    let _snapshot = Elsewhere::hold_snapshot(&lab.args)?;
    let deadline = Instant::now() + FILLING;
    let herd = Herd { prefix: "i", orchestration: "Hello", input: "hello" };
    let done = herd.start(&lab, Limits { count, window: Some(WINDOW), deadline }).await?;
    let all = |finished: u64| (finished >= done).then_some(());
    lab.signals.until(deadline, |signals| all(signals.done_count())).await;

    let watch = Stopwatch::start(&lab.args)?;
    let after = Hellos::alone(&lab, "after", half).await?;
    let measured = watch.stop()?;
    let bytes = log_bytes(&lab.args);
    lab.stop().await;
    let polls = polls(&lab).await?;
    let fetches = fetches(&lab).await?;

    let outcome = Outcome::new(&lab, &measured, after.count()).await?;
    let outcome = outcome
        .stored(done + before.count() + after.count())
        .figure("p50_ms", after.p50_ms())
        .figure("max_ms", after.max_ms())
        .figure("poll_ms", percentile(&polls, 50.0))
        .figure("fetch_ms", percentile(&fetches, 50.0))
        .fact("p50_before_ms", before.p50_ms())
        .fact("hellos", done)
        .fact("cut", done < count);
    Ok(match bytes {
        Some(bytes) => outcome.figure("log_mib", bytes as f64 / f64::from(1 << 20)),
        None => outcome,
    })
}

/// Looks at both queues when they are empty.
async fn polls(lab: &Lab) -> Result<Vec<f64>, Failure> {
    let mut times = Vec::new();
    for _ in 0..LOOKS {
        let began_at = Instant::now();
        let provider = &lab.store.provider;
        let turn = provider.fetch_orchestration_item(LONG_LEASE, NOW, None).await?;
        let work = provider.fetch_work_item(LONG_LEASE, NOW, None, &TagFilter::Any).await?;
        times.push(ms_since(began_at));
        if turn.is_some() || work.is_some() {
            return Err("the queues are not empty".into());
        }
    }
    Ok(times)
}

/// Fetches instances that were just started.
async fn fetches(lab: &Lab) -> Result<Vec<f64>, Failure> {
    let mut times = Vec::new();
    for number in 0..LOOKS {
        lab.start(&format!("fetched-{number}"), "Child", "hello").await?;
        let began_at = Instant::now();
        let turn = lab.store.provider.fetch_orchestration_item(LONG_LEASE, NOW, None).await?;
        times.push(ms_since(began_at));
        turn.ok_or("nothing to fetch")?;
    }
    Ok(times)
}
