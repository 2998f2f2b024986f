//! W6: many timers of one second, and how late the code behind them goes on.

use std::sync::Arc;
use std::time::{Duration, Instant};

use duroxide::EventKind;

use crate::workloads::Failure;
use crate::workloads::args::Args;
use crate::workloads::handlers::TIMER;
use crate::workloads::lab::Lab;
use crate::workloads::outcome::{Outcome, Stopwatch};
use crate::workloads::percentiles::percentile;
use crate::workloads::starters::{Herd, Limits};

/// How long to wait for the last timer.
const PATIENCE: Duration = Duration::from_secs(60);

pub(super) async fn run(args: Args, count: u64) -> Result<Outcome, Failure> {
    let mut lab = Lab::open(args).await?;
    lab.warm_up().await?;
    let lab = Arc::new(lab);

    let watch = Stopwatch::start(&lab.args)?;
    let deadline = Instant::now() + TIMER + PATIENCE;
    let herd = Herd { prefix: "t", orchestration: "Timer", input: "" };
    let started = herd.start(&lab, Limits { count, window: None, deadline }).await?;
    let ids: Vec<String> = (0..started).map(|number| herd.id(number)).collect();
    for id in &ids {
        lab.signals.until(deadline, |signals| signals.stamp(id)).await;
    }
    let measured = watch.stop()?;

    let mut late = Vec::new();
    for id in &ids {
        let Some(stamp) = lab.signals.stamp(id) else { continue };
        let due = lab.history(id).await?.into_iter().find_map(|event| match event {
            EventKind::TimerCreated { fire_at_ms } => Some(fire_at_ms as f64),
            _ => None,
        });
        late.extend(due.map(|due| stamp.wall_ms - due));
    }
    let fired = late.len() as u64;
    let outcome = Outcome::new(&lab, &measured, fired).await?;
    Ok(outcome
        .figure("p50_late_ms", percentile(&late, 50.0))
        .figure("p99_late_ms", percentile(&late, 99.0))
        .figure("earliest_ms", percentile(&late, 0.0))
        .fact("unfinished", count - fired))
}
