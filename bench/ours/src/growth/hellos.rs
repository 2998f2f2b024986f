//! Hellos that have nothing to do with what is large, each client one at a time, and how long each
//! hello and each commit of a start took.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use tokio::task::JoinSet;

use super::ms_since;
use crate::workloads::Failure;
use crate::workloads::lab::{Lab, Seen};
use crate::workloads::percentiles::percentile;

/// How long a hello may take before the run is given up.
const PATIENCE: Duration = Duration::from_secs(300);

/// Clients at work.
pub(super) struct Hellos {
    stop: Arc<AtomicBool>,
    clients: JoinSet<Result<Vec<Sample>, Failure>>,
}

/// One hello.
#[derive(Clone, Copy)]
struct Sample {
    began_at: Instant,
    ended_at: Instant,
    commit_ms: f64,
}

/// What the clients saw.
pub(super) struct Samples(Vec<Sample>);

impl Hellos {
    /// Clients side by side; each starts a hello and waits for its result, over and over.
    pub(super) fn start(lab: &Arc<Lab>, prefix: &'static str, clients: usize) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let mut tasks = JoinSet::new();
        for client in 0..clients {
            let (lab, stop) = (lab.clone(), stop.clone());
            tasks.spawn(async move {
                let mut samples = Vec::new();
                while !stop.load(Ordering::Relaxed) {
                    let id = format!("{prefix}-{client}-{}", samples.len());
                    samples.push(hello(&lab, &id).await?);
                }
                Ok(samples)
            });
        }
        Self { stop, clients: tasks }
    }

    /// One client for so long.
    pub(super) async fn alone(
        lab: &Arc<Lab>,
        prefix: &'static str,
        time: Duration,
    ) -> Result<Samples, Failure> {
        let hellos = Self::start(lab, prefix, 1);
        tokio::time::sleep(time).await;
        hellos.stop().await
    }

    /// Waits for those that are in flight.
    pub(super) async fn stop(mut self) -> Result<Samples, Failure> {
        self.stop.store(true, Ordering::Relaxed);
        let mut all = Vec::new();
        while let Some(ended) = self.clients.join_next().await {
            all.extend(ended??);
        }
        Ok(Samples(all))
    }
}

async fn hello(lab: &Lab, id: &str) -> Result<Sample, Failure> {
    let began_at = Instant::now();
    lab.start(id, "Child", "hello").await?;
    let commit_ms = ms_since(began_at);
    match lab.wait(id, PATIENCE).await? {
        Seen::Completed => Ok(Sample { began_at, ended_at: Instant::now(), commit_ms }),
        Seen::Failed(why) => Err(format!("{id} failed: {why}").into()),
        Seen::TimedOut => Err(format!("{id} did not finish").into()),
    }
}

impl Samples {
    /// Those that were in flight at some time of the span.
    pub(super) fn during(&self, from: Instant, to: Instant) -> Self {
        let overlaps = |sample: &&Sample| sample.began_at <= to && from <= sample.ended_at;
        Self(self.0.iter().filter(overlaps).copied().collect())
    }

    /// Hellos that ended in the span, by the second.
    pub(super) fn per_second(&self, from: Instant, to: Instant) -> f64 {
        let ended = self.0.iter().filter(|sample| from <= sample.ended_at && sample.ended_at <= to);
        ended.count() as f64 / to.duration_since(from).as_secs_f64().max(1e-9)
    }

    pub(super) fn count(&self) -> u64 {
        self.0.len() as u64
    }

    pub(super) fn p50_ms(&self) -> f64 {
        percentile(&self.hellos(), 50.0)
    }

    pub(super) fn max_ms(&self) -> f64 {
        percentile(&self.hellos(), 100.0)
    }

    /// The longest commit of a start.
    pub(super) fn commit_max_ms(&self) -> f64 {
        self.0.iter().map(|sample| sample.commit_ms).fold(0.0, f64::max)
    }

    fn hellos(&self) -> Vec<f64> {
        let ms = |sample: &Sample| (sample.ended_at - sample.began_at).as_secs_f64() * 1e3;
        self.0.iter().map(ms).collect()
    }
}
