//! Keeps instances in flight and counts how they end.

use std::sync::Arc;
use std::time::Duration;

use duroxide_core::model::ErrorDetails;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

use super::core::{StressTestConfig, StressTestResult};
use crate::providers::Provider;
use crate::random::Random;
use crate::runtime::Runtime;
use crate::runtime::registry::ActivityRegistry;
use crate::{Client, OrchestrationRegistry, OrchestrationStatus, RuntimeOptions};

/// Wait before the next start after one that failed and may be tried again.
const AFTER_FAILED_START: Duration = Duration::from_millis(100);

/// What is started again and again.
pub(super) struct Load {
    pub(super) orchestration: &'static str,
    pub(super) input: String,
    /// Activities of one instance, those of its children included.
    pub(super) activities_per_instance: usize,
}

/// Presses a store with a load. The runtime and all else it started has ended when it returns.
pub(super) async fn run(
    config: &StressTestConfig,
    store: Arc<dyn Provider>,
    (activities, orchestrations): (ActivityRegistry, OrchestrationRegistry),
    load: Load,
) -> Result<StressTestResult, String> {
    check(config)?;
    if !orchestrations.has(load.orchestration) {
        return Err(format!(
            "the stress test starts {}, which is not among the registered orchestrations: {}",
            load.orchestration,
            orchestrations.list_names().join(", ")
        ));
    }
    let options = RuntimeOptions {
        orchestration_concurrency: config.orch_concurrency,
        worker_concurrency: config.worker_concurrency,
        ..RuntimeOptions::default()
    };
    let client = Client::new(Arc::clone(&store));
    let runtime = Runtime::start_with_options(store, activities, orchestrations, options).await;
    let began = Instant::now();
    let activities_per_instance = load.activities_per_instance;
    let tally = press(config, client, load).await;
    let total_time = began.elapsed();
    runtime.shutdown(None).await;
    Ok(tally?.into_result(total_time, activities_per_instance))
}

/// A configuration that runs nothing would only wait for its timeouts.
fn check(config: &StressTestConfig) -> Result<(), String> {
    for (name, value) in [
        ("max_concurrent", config.max_concurrent),
        ("orch_concurrency", config.orch_concurrency),
        ("worker_concurrency", config.worker_concurrency),
    ] {
        if value == 0 {
            return Err(format!("{name} must be at least 1"));
        }
    }
    Ok(())
}

/// Runs all lanes to their ends, or until one finds that there is no use.
async fn press(config: &StressTestConfig, client: Client, load: Load) -> Result<Tally, String> {
    let lane = Lane {
        client,
        load: Arc::new(load),
        prefix: format!("stress-{:016x}", Random::from_os().next_u64()),
        until: Instant::now().checked_add(Duration::from_secs(config.duration_secs)),
        patience: Duration::from_secs(config.wait_timeout_secs),
    };
    let mut lanes = JoinSet::new();
    for number in 0..config.max_concurrent {
        lanes.spawn(lane.clone().run(number));
    }
    let mut all = Tally::default();
    while let Some(ended) = lanes.join_next().await {
        match ended {
            Ok(Ok(tally)) => all.add(&tally),
            Ok(Err(refusal)) => return Err(refusal),
            Err(error) => return Err(format!("a lane of the stress test broke: {error}")),
        }
    }
    Ok(all)
}

/// One of the concurrent places: runs one instance after the other.
#[derive(Clone)]
struct Lane {
    client: Client,
    load: Arc<Load>,
    /// Keeps runs on one store apart.
    prefix: String,
    /// `None` is later than the clock can tell.
    until: Option<Instant>,
    patience: Duration,
}

impl Lane {
    async fn run(self, number: usize) -> Result<Tally, String> {
        let mut tally = Tally::default();
        loop {
            let instance = format!("{}-{number}-{}", self.prefix, tally.launched());
            let began = Instant::now();
            match self.run_instance(&instance).await? {
                Ok(()) => tally.completed(began.elapsed()),
                Err(blame) => tally.failed(blame),
            }
            if self.until.is_some_and(|until| until <= Instant::now()) {
                return Ok(tally);
            }
        }
    }

    /// How an instance ended; an error if the store will never take one.
    async fn run_instance(&self, instance: &str) -> Result<Result<(), Blame>, String> {
        let load = &self.load;
        let started =
            self.client.start_orchestration(instance, load.orchestration, load.input.as_str());
        if let Err(error) = started.await {
            if !error.is_retryable() {
                return Err(format!("the store refused to start {instance}: {error}"));
            }
            tracing::warn!(instance, %error, "stress test: not started");
            sleep(AFTER_FAILED_START).await;
            return Ok(Err(Blame::Infrastructure));
        }
        Ok(match self.client.wait_for_orchestration(instance, self.patience).await {
            Ok(OrchestrationStatus::Completed { .. }) => Ok(()),
            Ok(OrchestrationStatus::Failed { details, .. }) => {
                let error = details.display_message();
                tracing::warn!(instance, error, "stress test: failed");
                Err(Blame::of(&details))
            }
            other => {
                tracing::warn!(instance, ?other, "stress test: did not end");
                Err(Blame::Infrastructure)
            }
        })
    }
}

/// Whose fault a failure is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Blame {
    Infrastructure,
    Configuration,
    Application,
}

impl Blame {
    /// Poison is what could not be stored or run however often it was tried.
    pub(super) fn of(details: &ErrorDetails) -> Self {
        match details {
            ErrorDetails::Infrastructure { .. } | ErrorDetails::Poison { .. } => {
                Self::Infrastructure
            }
            ErrorDetails::Configuration { .. } => Self::Configuration,
            ErrorDetails::Application { .. } => Self::Application,
        }
    }
}

/// How instances ended.
#[derive(Debug, Clone, Default)]
struct Tally {
    completed: usize,
    infrastructure: usize,
    configuration: usize,
    application: usize,
    /// Of completed instances, all together.
    latency: Duration,
}

impl Tally {
    fn completed(&mut self, latency: Duration) {
        self.completed += 1;
        self.latency += latency;
    }

    fn failed(&mut self, blame: Blame) {
        match blame {
            Blame::Infrastructure => self.infrastructure += 1,
            Blame::Configuration => self.configuration += 1,
            Blame::Application => self.application += 1,
        }
    }

    fn add(&mut self, other: &Self) {
        self.completed += other.completed;
        self.infrastructure += other.infrastructure;
        self.configuration += other.configuration;
        self.application += other.application;
        self.latency += other.latency;
    }

    fn all_failed(&self) -> usize {
        self.infrastructure + self.configuration + self.application
    }

    fn launched(&self) -> usize {
        self.completed + self.all_failed()
    }

    fn into_result(self, total_time: Duration, activities: usize) -> StressTestResult {
        let latency_ms = self.latency.as_secs_f64() * 1000.0;
        StressTestResult {
            launched: self.launched(),
            completed: self.completed,
            failed: self.all_failed(),
            failed_infrastructure: self.infrastructure,
            failed_configuration: self.configuration,
            failed_application: self.application,
            total_time,
            orch_throughput: per(self.completed as f64, total_time.as_secs_f64()),
            activity_throughput: per(
                self.completed as f64 * activities as f64,
                total_time.as_secs_f64(),
            ),
            avg_latency_ms: per(latency_ms, self.completed as f64),
        }
    }
}

/// A quotient; 0 where there is nothing to divide by.
fn per(amount: f64, of: f64) -> f64 {
    if of > 0.0 { amount / of } else { 0.0 }
}
