//! What a stress test is told and what it tells, and the usual load: one orchestration that fans
//! out.

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::load::{Load, run};
use super::table::table;
use crate::providers::Provider;
use crate::runtime::registry::ActivityRegistry;
use crate::{ActivityContext, OrchestrationContext, OrchestrationRegistry};

/// The orchestration that [`run_stress_test`] starts.
const ORCHESTRATION: &str = "FanoutOrchestration";
const ACTIVITY: &str = "ProcessTask";
/// Activities of an orchestration whose input names no number.
const TASKS_DEFAULT: u64 = 5;

/// How hard and how long to press.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct StressTestConfig {
    /// Instances in flight at a time.
    pub max_concurrent: usize,
    /// How long new instances are started; each of the concurrent ones is started at least once.
    pub duration_secs: u64,
    /// Activities of an instance.
    pub tasks_per_instance: usize,
    /// How long an activity takes.
    pub activity_delay_ms: u64,
    /// Turns the runtime processes at a time.
    pub orch_concurrency: usize,
    /// Activities the runtime executes at a time.
    pub worker_concurrency: usize,
    /// How long to wait for an instance before it counts as failed.
    #[serde(default = "default_wait_timeout_secs")]
    pub wait_timeout_secs: u64,
}

impl Default for StressTestConfig {
    fn default() -> Self {
        Self {
            max_concurrent: 20,
            duration_secs: 10,
            tasks_per_instance: 5,
            activity_delay_ms: 10,
            orch_concurrency: 2,
            worker_concurrency: 2,
            wait_timeout_secs: default_wait_timeout_secs(),
        }
    }
}

/// What came of it.
#[derive(Debug, Clone)]
pub struct StressTestResult {
    /// Instances started.
    pub launched: usize,
    /// Instances that completed.
    pub completed: usize,
    /// Instances that did not.
    pub failed: usize,
    /// Failed by the store or the machinery: errors, poison, or no end within the wait.
    pub failed_infrastructure: usize,
    /// Failed by nondeterminism or something that is not registered.
    pub failed_configuration: usize,
    /// Failed by the orchestration itself, for example because a result was not what was sent.
    pub failed_application: usize,
    /// From the first start to the last end.
    pub total_time: Duration,
    /// Instances completed a second.
    pub orch_throughput: f64,
    /// Activities of completed instances a second.
    pub activity_throughput: f64,
    /// Mean time from start to end of a completed instance.
    pub avg_latency_ms: f64,
}

impl StressTestResult {
    /// Completed instances in percent of those started; 0 if none was.
    pub fn success_rate(&self) -> f64 {
        if self.launched == 0 {
            return 0.0;
        }
        100.0 * self.completed as f64 / self.launched as f64
    }
}

/// Runs a runtime with these registries on a store and keeps `FanoutOrchestration` instances in
/// flight on it, each with the input `{"task_count": <tasks_per_instance>}`.
///
/// # Errors
/// If the configuration can run nothing, the orchestration is not registered, or the store refuses
/// a start for good. Anything that goes wrong later is counted in the result and logged.
pub async fn run_stress_test(
    config: StressTestConfig,
    provider: Arc<dyn Provider>,
    activities: ActivityRegistry,
    orchestrations: OrchestrationRegistry,
) -> Result<StressTestResult, Box<dyn Error>> {
    let load = Load {
        orchestration: ORCHESTRATION,
        input: serde_json::json!({ "task_count": config.tasks_per_instance }).to_string(),
        activities_per_instance: config.tasks_per_instance,
    };
    Ok(run(&config, provider, (activities, orchestrations), load).await?)
}

/// Prints results side by side, each under the name of its store and of its test.
pub fn print_comparison_table(results: &[(String, String, StressTestResult)]) {
    println!("{}", table(results));
}

/// An activity `ProcessTask` that takes `delay_ms` and answers `processed: <input>`.
pub fn create_default_activities(delay_ms: u64) -> ActivityRegistry {
    let delay = Duration::from_millis(delay_ms);
    ActivityRegistry::builder()
        .register(ACTIVITY, move |_ctx: ActivityContext, input: String| async move {
            tokio::time::sleep(delay).await;
            Ok(processed(&input))
        })
        .build()
}

/// An orchestration `FanoutOrchestration` that runs `task_count` activities `ProcessTask` at once
/// and fails if one of them does not answer as it should.
pub fn create_default_orchestrations() -> OrchestrationRegistry {
    OrchestrationRegistry::builder().register(ORCHESTRATION, fan_out).build()
}

async fn fan_out(ctx: OrchestrationContext, input: String) -> Result<String, String> {
    let count = task_count(&input);
    let tasks: Vec<String> = (0..count).map(|number| format!("task-{number}")).collect();
    let calls = tasks.iter().map(|task| ctx.schedule_activity(ACTIVITY, task.clone())).collect();
    for (task, answer) in tasks.iter().zip(ctx.join(calls).await) {
        let answer = answer?;
        if answer != processed(task) {
            return Err(format!("{task} was answered with {answer:?}"));
        }
    }
    Ok(format!("completed {count} tasks"))
}

fn task_count(input: &str) -> u64 {
    let input = serde_json::from_str::<serde_json::Value>(input).ok();
    input.and_then(|input| input.get("task_count")?.as_u64()).unwrap_or(TASKS_DEFAULT)
}

fn processed(input: &str) -> String {
    format!("processed: {input}")
}

fn default_wait_timeout_secs() -> u64 {
    60
}
