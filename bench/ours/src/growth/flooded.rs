//! G1: messages of so many MiB are queued for one instance that nobody finishes, because no runtime
//! knows its orchestration. Others must not notice.

use std::sync::Arc;
use std::time::Instant;

use duroxide::providers::WorkItem;
use tokio::task::JoinSet;

use super::hellos::Hellos;
use super::{LONG_LEASE, NOW, ms_since};
use crate::workloads::Failure;
use crate::workloads::args::Args;
use crate::workloads::lab::Lab;
use crate::workloads::outcome::{Outcome, Stopwatch};
use crate::workloads::percentiles::percentile;

const FLOODED: &str = "flooded";
/// Bytes of one message; sixteen of them are a MiB.
const MESSAGE_BYTES: usize = 64 * 1024;
const MESSAGES_PER_MIB: u64 = 16;
/// Tasks that send messages.
const SENDERS: u64 = 16;
/// How often a fetch is measured.
const FETCHES: usize = 10;

pub(super) async fn run(args: Args, mib: u64) -> Result<Outcome, Failure> {
    let lab = Arc::new(Lab::open(args).await?);
    flood(&lab, mib * MESSAGES_PER_MIB).await?;
    let own = fetch_flooded(&lab).await?;
    let others = fetch_others(&lab).await?;

    let mut lab = Arc::into_inner(lab).ok_or("a sender is left over")?;
    lab.warm_up().await?;
    let lab = Arc::new(lab);
    let watch = Stopwatch::start(&lab.args)?;
    let hellos = Hellos::alone(&lab, "h", lab.args.budget()).await?;
    let measured = watch.stop()?;

    let outcome = Outcome::new(&lab, &measured, hellos.count()).await?;
    Ok(outcome
        .figure("p50_ms", hellos.p50_ms())
        .figure("max_ms", hellos.max_ms())
        .figure("fetch_other_ms", percentile(&others, 50.0))
        .figure("fetch_flooded_ms", percentile(&own, 50.0)))
}

async fn flood(lab: &Arc<Lab>, messages: u64) -> Result<(), Failure> {
    lab.start(FLOODED, "NobodyKnowsMe", "").await?;
    let data = "x".repeat(MESSAGE_BYTES);
    let mut senders = JoinSet::new();
    for sender in 0..SENDERS {
        let (lab, data) = (lab.clone(), data.clone());
        senders.spawn(async move {
            for number in (sender..messages).step_by(SENDERS as usize) {
                let event = WorkItem::ExternalRaised {
                    instance: FLOODED.to_owned(),
                    name: format!("event-{number}"),
                    data: data.clone(),
                };
                lab.store.provider.enqueue_for_orchestrator(event, None).await?;
            }
            Ok::<_, Failure>(())
        });
    }
    while let Some(ended) = senders.join_next().await {
        ended??;
    }
    Ok(())
}

/// Fetches the flooded instance and gives it back.
async fn fetch_flooded(lab: &Lab) -> Result<Vec<f64>, Failure> {
    let mut times = Vec::new();
    for _ in 0..FETCHES {
        let (ms, token) = fetch(lab).await?;
        times.push(ms);
        lab.store.provider.abandon_orchestration_item(&token, None, true).await?;
    }
    Ok(times)
}

/// Fetches others while somebody holds the flooded instance; gives all of them back.
async fn fetch_others(lab: &Lab) -> Result<Vec<f64>, Failure> {
    let mut tokens = vec![fetch(lab).await?.1];
    let mut times = Vec::new();
    for number in 0..FETCHES {
        lab.start(&format!("other-{number}"), "Child", "hello").await?;
        let (ms, token) = fetch(lab).await?;
        times.push(ms);
        tokens.push(token);
    }
    for token in tokens {
        lab.store.provider.abandon_orchestration_item(&token, None, true).await?;
    }
    Ok(times)
}

async fn fetch(lab: &Lab) -> Result<(f64, String), Failure> {
    let began_at = Instant::now();
    let fetched = lab.store.provider.fetch_orchestration_item(LONG_LEASE, NOW, None).await?;
    let ms = ms_since(began_at);
    let (_, token, _) = fetched.ok_or("nothing to fetch")?;
    Ok((ms, token))
}
