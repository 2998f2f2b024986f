//! G2 and G6: many finished executions or instances are removed while hellos run. Nobody who has
//! nothing to do with them should wait for long.

use std::sync::Arc;
use std::time::{Duration, Instant};

use duroxide::clock::wall_clock_ms;
use duroxide::{Client, InstanceFilter, PruneOptions};

use super::hellos::Hellos;
use super::{FILLING, ms_since};
use crate::workloads::Failure;
use crate::workloads::args::Args;
use crate::workloads::lab::Lab;
use crate::workloads::outcome::{Outcome, Stopwatch};
use crate::workloads::starters::{Herd, Limits};

/// Clients that say hello meanwhile.
const CLIENTS: usize = 16;
/// Instances that share the executions to be pruned.
const PRUNED: u64 = 20;
const WINDOW: usize = 256;
/// What the clock may be off by before the first hello could be taken for one of those to be removed.
const CLOCK_STEP: Duration = Duration::from_millis(20);

/// What is removed.
#[derive(Clone, Copy)]
enum What {
    Executions,
    Instances,
}

/// G2: so many executions of twenty instances, all but the last of each.
pub(super) async fn prune(args: Args, executions: u64) -> Result<Outcome, Failure> {
    let each = (executions / PRUNED + 1).to_string();
    let herd = Herd { prefix: "old", orchestration: "Rounds", input: &each };
    run(args, herd, PRUNED, What::Executions).await
}

/// G6: so many instances.
pub(super) async fn delete(args: Args, instances: u64) -> Result<Outcome, Failure> {
    let herd = Herd { prefix: "old", orchestration: "Once", input: "" };
    run(args, herd, instances, What::Instances).await
}

async fn run(args: Args, herd: Herd<'_>, count: u64, what: What) -> Result<Outcome, Failure> {
    let mut lab = Lab::open(args).await?;
    lab.warm_up().await?;
    let lab = Arc::new(lab);
    let filled = fill(&lab, herd, count).await?;
    let until = wall_clock_ms() + 1;
    tokio::time::sleep(CLOCK_STEP).await;

    let watch = Stopwatch::start(&lab.args)?;
    let began_at = Instant::now();
    let hellos = Hellos::start(&lab, "h", CLIENTS);
    tokio::time::sleep(lab.args.budget()).await;
    let from = Instant::now();
    let removed = match what {
        What::Executions => prune_all(&lab.client, &herd).await?,
        What::Instances => delete_all(&lab.client, until, count).await?,
    };
    let (to, total_ms) = (Instant::now(), ms_since(from));
    let hellos = hellos.stop().await?;
    let measured = watch.stop()?;

    let (before, meanwhile) = (hellos.during(began_at, from), hellos.during(from, to));
    let share = hellos.per_second(from, to) / hellos.per_second(began_at, from);
    let outcome = Outcome::new(&lab, &measured, hellos.count()).await?;
    Ok(outcome
        .figure("max_ms", meanwhile.max_ms())
        .figure("commit_max_ms", meanwhile.commit_max_ms())
        .figure("total_ms", total_ms)
        .figure("share_percent", share * 100.0)
        .fact("max_before_ms", before.max_ms())
        .fact("commit_max_before_ms", before.commit_max_ms())
        .fact("removed", removed)
        .fact("cut", !filled))
}

/// Runs the instances that are to be removed; whether there was time for all of them.
async fn fill(lab: &Arc<Lab>, herd: Herd<'_>, count: u64) -> Result<bool, Failure> {
    let deadline = Instant::now() + FILLING;
    let started = herd.start(lab, Limits { count, window: Some(WINDOW), deadline }).await?;
    let all = |done: u64| (done >= started).then_some(());
    let done = lab.signals.until(deadline, |signals| all(signals.done_count())).await.is_some();
    // What the code has returned is not yet stored: wait for the youngest as a client does.
    for number in started.saturating_sub(WINDOW as u64)..started {
        lab.wait(&herd.id(number), FILLING).await?;
    }
    Ok(done && started == count)
}

async fn prune_all(client: &Client, herd: &Herd<'_>) -> Result<u64, Failure> {
    let ids = (0..PRUNED).map(|number| herd.id(number)).collect();
    let filter = InstanceFilter { instance_ids: Some(ids), ..InstanceFilter::default() };
    let options = PruneOptions { keep_last: Some(1), ..PruneOptions::default() };
    Ok(client.prune_executions_bulk(filter, options).await?.executions_deleted)
}

/// Deletes what ended before, in one call unless the store makes more of it.
async fn delete_all(client: &Client, until: u64, count: u64) -> Result<u64, Failure> {
    let limit = u32::try_from(count).ok();
    let filter = InstanceFilter { completed_before: Some(until), limit, ..Default::default() };
    let mut removed = 0;
    while removed < count {
        let deleted = client.delete_instance_bulk(filter.clone()).await?.instances_deleted;
        if deleted == 0 {
            break;
        }
        removed += deleted;
    }
    Ok(removed)
}
