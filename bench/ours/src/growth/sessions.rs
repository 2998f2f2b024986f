//! G4: so many activities are queued for sessions that another worker owns. A hello has to pass by
//! all of them.

use std::sync::Arc;

use duroxide::providers::WorkItem;
use duroxide::{SessionFetchConfig, TagFilter};
use tokio::task::JoinSet;

use super::hellos::Hellos;
use super::{LONG_LEASE, NOW};
use crate::workloads::Failure;
use crate::workloads::args::Args;
use crate::workloads::lab::Lab;
use crate::workloads::outcome::{Outcome, Stopwatch};

/// Sessions of the other worker.
const SESSIONS: u64 = 10;
/// Tasks that queue activities.
const SENDERS: u64 = 32;

pub(super) async fn run(args: Args, activities: u64) -> Result<Outcome, Failure> {
    let lab = Arc::new(Lab::open(args).await?);
    queue(&lab, 0..SESSIONS).await?;
    own_sessions(&lab).await?;
    queue(&lab, SESSIONS..activities).await?;

    let mut lab = Arc::into_inner(lab).ok_or("a sender is left over")?;
    lab.warm_up().await?;
    let lab = Arc::new(lab);
    let watch = Stopwatch::start(&lab.args)?;
    let hellos = Hellos::alone(&lab, "h", lab.args.budget()).await?;
    let measured = watch.stop()?;
    let outcome = Outcome::new(&lab, &measured, hellos.count()).await?;
    Ok(outcome.figure("p50_ms", hellos.p50_ms()).figure("max_ms", hellos.max_ms()))
}

/// The other worker takes one activity of each session, and never ends it.
async fn own_sessions(lab: &Lab) -> Result<(), Failure> {
    let owner = SessionFetchConfig { owner_id: "other".to_owned(), lock_timeout: LONG_LEASE };
    for _ in 0..SESSIONS {
        let tags = TagFilter::default();
        let work = lab.store.provider.fetch_work_item(LONG_LEASE, NOW, Some(&owner), &tags).await?;
        work.ok_or("a session has no activity")?;
    }
    Ok(())
}

async fn queue(lab: &Arc<Lab>, numbers: std::ops::Range<u64>) -> Result<(), Failure> {
    let mut senders = JoinSet::new();
    for sender in 0..SENDERS {
        let (lab, numbers) = (lab.clone(), numbers.clone());
        senders.spawn(async move {
            for number in numbers.skip(sender as usize).step_by(SENDERS as usize) {
                lab.store.provider.enqueue_for_worker(activity(number)).await?;
            }
            Ok::<_, Failure>(())
        });
    }
    while let Some(ended) = senders.join_next().await {
        ended??;
    }
    Ok(())
}

fn activity(number: u64) -> WorkItem {
    WorkItem::ActivityExecute {
        instance: format!("owner-{}", number % SESSIONS),
        execution_id: 1,
        id: 2 + number,
        name: "Echo".to_owned(),
        input: "hello".to_owned(),
        session_id: Some(format!("session-{}", number % SESSIONS)),
        tag: None,
    }
}
