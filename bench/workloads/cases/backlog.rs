//! W11: throughput when many instances have been queued before the runtime starts.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::workloads::Failure;
use crate::workloads::args::Args;
use crate::workloads::lab::Lab;
use crate::workloads::outcome::{Outcome, Stopwatch};
use crate::workloads::starters::{Herd, Limits};

/// Steps of a hello: first turn, activity, last turn.
const STEPS: f64 = 3.0;
/// How long filling the queue may take.
const FILLING: Duration = Duration::from_secs(600);

pub(super) async fn run(args: Args, count: u64) -> Result<Outcome, Failure> {
    let lab = Arc::new(Lab::open(args).await?);
    let filling_since = Instant::now();
    let deadline = filling_since + FILLING;
    let herd = Herd { prefix: "i", orchestration: "Hello", input: "hello" };
    let queued = herd.start(&lab, Limits { count, window: None, deadline }).await?;
    let filled_in = filling_since.elapsed().as_secs_f64();
    let mut lab = Arc::into_inner(lab).ok_or("a starter is left over")?;

    let watch = Stopwatch::start(&lab.args)?;
    let end = watch.began_at + lab.args.budget();
    lab.start_runtime().await;
    let all = |done: u64| (done >= queued).then_some(());
    let drained = lab.signals.until(end, |signals| all(signals.done_count())).await.is_some();
    let steps = lab.signals.steps() as f64;
    let measured = watch.stop()?;

    let per_second = steps / STEPS / measured.elapsed.as_secs_f64();
    let outcome = Outcome::new(&lab, &measured, (steps / STEPS) as u64).await?;
    Ok(outcome
        .stored(queued)
        .figure("per_second", per_second)
        .fact("queued", queued)
        .fact("queued_per_second", queued as f64 / filled_in)
        // Until the queue is empty the stages run at different speeds, so this flatters.
        .fact("cut", !drained))
}
