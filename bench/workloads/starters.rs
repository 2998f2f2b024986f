//! Starts many instances, several at a time.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use super::Failure;
use super::lab::Lab;

/// How many tasks start instances at the same time.
const STARTERS: usize = 32;

/// Instances of one kind, named `prefix-0`, `prefix-1`, …
#[derive(Clone, Copy)]
pub(crate) struct Herd<'a> {
    pub(crate) prefix: &'a str,
    pub(crate) orchestration: &'a str,
    pub(crate) input: &'a str,
}

/// When to stop.
#[derive(Clone, Copy)]
pub(crate) struct Limits {
    pub(crate) count: u64,
    /// How many may be started and not yet done.
    pub(crate) window: Option<usize>,
    pub(crate) deadline: Instant,
}

impl Herd<'_> {
    /// The name of one of them.
    pub(crate) fn id(&self, number: u64) -> String {
        format!("{}-{number}", self.prefix)
    }

    /// Starts them, until a limit is reached; tells how many there are.
    pub(crate) async fn start(&self, lab: &Arc<Lab>, limits: Limits) -> Result<u64, Failure> {
        if let Some(window) = limits.window {
            lab.signals.window.forget_permits(usize::MAX);
            lab.signals.window.add_permits(window);
        }
        let next = Arc::new(AtomicU64::new(0));
        let mut starters = tokio::task::JoinSet::new();
        for _ in 0..STARTERS {
            starters.spawn(starter(lab.clone(), next.clone(), self.owned(), limits));
        }
        let mut started = 0;
        while let Some(ended) = starters.join_next().await {
            started += ended??;
        }
        Ok(started)
    }

    fn owned(&self) -> [Arc<str>; 3] {
        [self.prefix, self.orchestration, self.input].map(Arc::from)
    }
}

async fn starter(
    lab: Arc<Lab>,
    next: Arc<AtomicU64>,
    herd: [Arc<str>; 3],
    limits: Limits,
) -> Result<u64, Failure> {
    let [prefix, orchestration, input] = &herd;
    let herd = Herd { prefix, orchestration, input };
    let mut started = 0;
    while Instant::now() < limits.deadline {
        if limits.window.is_some() {
            let permit = lab.signals.window.acquire();
            let permit = tokio::time::timeout_at(limits.deadline.into(), permit).await;
            let Ok(permit) = permit else { break };
            permit?.forget();
        }
        let number = next.fetch_add(1, Ordering::Relaxed);
        if number >= limits.count {
            break;
        }
        lab.start(&herd.id(number), orchestration, input).await?;
        started += 1;
    }
    Ok(started)
}
