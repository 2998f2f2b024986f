//! W7: from raising an event to the waiting code going on, with pauses in between: right after a
//! turn a dispatcher that polls looks again at once, so events raised back to back say nothing.

use std::sync::Arc;
use std::time::{Duration, Instant};

use duroxide::EventKind;

use crate::workloads::Failure;
use crate::workloads::args::Args;
use crate::workloads::lab::Lab;
use crate::workloads::outcome::{Outcome, Stopwatch};
use crate::workloads::percentiles::percentile;
use crate::workloads::starters::{Herd, Limits};

const WAITERS: u64 = 300;
const PATIENCE: Duration = Duration::from_secs(60);
/// Pauses differ, so that they do not keep step with anyone's polling.
const PAUSES_MS: [u64; 7] = [11, 53, 29, 83, 17, 71, 41];

pub(super) async fn run(args: Args) -> Result<Outcome, Failure> {
    let mut lab = Lab::open(args).await?;
    lab.warm_up().await?;
    let lab = Arc::new(lab);
    let deadline = Instant::now() + PATIENCE;
    let herd = Herd { prefix: "r", orchestration: "Waiter", input: "" };
    let started = herd.start(&lab, Limits { count: WAITERS, window: None, deadline }).await?;
    for number in 0..started {
        subscribed(&lab, &herd.id(number), deadline).await?;
    }

    let watch = Stopwatch::start(&lab.args)?;
    let end = watch.began_at + lab.args.budget();
    let mut latencies = Vec::new();
    for (number, pause) in (0..started).zip(PAUSES_MS.iter().cycle()) {
        tokio::time::sleep(Duration::from_millis(*pause)).await;
        let id = herd.id(number);
        let raised_at = Instant::now();
        lab.client.raise_event(id.as_str(), "Go", "now").await?;
        let resumed = lab.signals.until(raised_at + PATIENCE, |signals| signals.stamp(&id)).await;
        let resumed = resumed.ok_or_else(|| format!("{id} did not go on"))?;
        latencies.push(resumed.at.duration_since(raised_at).as_secs_f64() * 1e3);
        if Instant::now() > end {
            break;
        }
    }
    let measured = watch.stop()?;
    let outcome = Outcome::new(&lab, &measured, latencies.len() as u64).await?;
    Ok(outcome
        .stored(started)
        .figure("p50_ms", percentile(&latencies, 50.0))
        .figure("p99_ms", percentile(&latencies, 99.0)))
}

/// Waits until the instance is stored as waiting: an earlier event could find nobody.
async fn subscribed(lab: &Lab, id: &str, deadline: Instant) -> Result<(), Failure> {
    loop {
        let events = lab.history(id).await.unwrap_or_default();
        if events.iter().any(|event| matches!(event, EventKind::ExternalSubscribed { .. })) {
            return Ok(());
        }
        if Instant::now() > deadline {
            return Err(format!("{id} does not wait").into());
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
