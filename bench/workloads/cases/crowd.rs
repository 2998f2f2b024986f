//! Scale: as many hellos as can be, in a store that holds many other instances. Those that have
//! ended and those that sleep must not be in the way of those that live.

use std::time::{Duration, Instant};

use crate::workloads::Failure;
use crate::workloads::args::Args;
use crate::workloads::lab::{Lab, Seen};
use crate::workloads::outcome::Outcome;

const PATIENCE: Duration = Duration::from_secs(30);

/// Fills the store with `finished` copies of an instance that has ended and a tenth as many of one
/// that sleeps, then measures as usual.
pub(super) async fn run(args: Args, finished: u64, window: usize) -> Result<Outcome, Failure> {
    if 0 < finished {
        make_models(&args).await?;
        crate::store::copy(&args, "model-finished", finished)?;
        crate::store::copy(&args, "model-sleeping", finished / 10)?;
    }
    super::throughput::run(args, "Hello", "hello", window).await
}

async fn make_models(args: &Args) -> Result<(), Failure> {
    let mut lab = Lab::open(args.clone()).await?;
    lab.start_runtime().await;
    lab.start("model-sleeping", "Nap", "").await?;
    let asleep = |done: u64| (done == 1).then_some(());
    let until = Instant::now() + PATIENCE;
    lab.signals.until(until, |signals| asleep(signals.done_count())).await;
    lab.start("model-finished", "Child", "hello").await?;
    let seen = lab.wait("model-finished", PATIENCE).await?;
    lab.stop().await;
    match seen {
        Seen::Completed => Ok(()),
        Seen::Failed(why) => Err(why.into()),
        Seen::TimedOut => Err("the model did not finish".into()),
    }
}
