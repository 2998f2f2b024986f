//! Activities and children with large inputs and results: what long histories and big rows cost.

use std::error::Error;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::core::{StressTestConfig, StressTestResult};
use super::load::{Load, run};
use super::parallel_orchestrations::ProviderStressFactory;
use crate::runtime::registry::ActivityRegistry;
use crate::{ActivityContext, OrchestrationContext, OrchestrationRegistry};

const ORCHESTRATION: &str = "LargePayloadOrchestration";
const CHILD: &str = "LargePayloadChild";
const ACTIVITY: &str = "LargePayloadTask";

/// How much, how hard and how long.
#[derive(Debug, Clone)]
pub struct LargePayloadConfig {
    /// How hard and how long; an instance repeats its work `tasks_per_instance` times.
    pub base: StressTestConfig,
    /// Size of every third payload, beginning with the first.
    pub small_payload_kb: usize,
    /// Size of every third payload, beginning with the second.
    pub medium_payload_kb: usize,
    /// Size of every third payload, beginning with the third.
    pub large_payload_kb: usize,
    /// Activities that take and return a payload.
    pub activity_count: usize,
    /// Children that take and return a payload, by way of an activity each.
    pub sub_orch_count: usize,
}

impl Default for LargePayloadConfig {
    fn default() -> Self {
        let base = StressTestConfig {
            max_concurrent: 5,
            duration_secs: 10,
            tasks_per_instance: 1,
            activity_delay_ms: 5,
            orch_concurrency: 1,
            worker_concurrency: 1,
            wait_timeout_secs: 120,
        };
        Self {
            base,
            small_payload_kb: 10,
            medium_payload_kb: 50,
            large_payload_kb: 100,
            activity_count: 20,
            sub_orch_count: 5,
        }
    }
}

/// Runs the test with its default configuration.
///
/// # Errors
/// As [`run_stress_test`](super::core::run_stress_test).
pub async fn run_large_payload_test(
    factory: &dyn ProviderStressFactory,
) -> Result<StressTestResult, Box<dyn Error>> {
    run_large_payload_test_with_config(factory, LargePayloadConfig::default()).await
}

/// Runs the test. An instance fails if a payload comes back changed.
///
/// # Errors
/// As [`run_stress_test`](super::core::run_stress_test).
pub async fn run_large_payload_test_with_config(
    factory: &dyn ProviderStressFactory,
    config: LargePayloadConfig,
) -> Result<StressTestResult, Box<dyn Error>> {
    let rounds = config.base.tasks_per_instance;
    let plan = Plan {
        rounds,
        activities: config.activity_count,
        children: config.sub_orch_count,
        sizes_kb: [config.small_payload_kb, config.medium_payload_kb, config.large_payload_kb],
    };
    let load = Load {
        orchestration: ORCHESTRATION,
        input: serde_json::to_string(&plan)?,
        activities_per_instance: plan
            .activities
            .saturating_add(plan.children)
            .saturating_mul(rounds),
    };
    let registries = (activities(config.base.activity_delay_ms), orchestrations());
    let store = factory.create_provider().await;
    Ok(run(&config.base, store, registries, load).await?)
}

/// What an instance is told to do.
#[derive(Serialize, Deserialize)]
struct Plan {
    rounds: usize,
    activities: usize,
    children: usize,
    sizes_kb: [usize; 3],
}

impl Plan {
    /// Payload number `number`; neighbours differ, so that mixed-up ones are found.
    fn payload(&self, number: usize) -> String {
        let letter = char::from(b'a' + (number % 26) as u8);
        letter.to_string().repeat(self.sizes_kb[number % self.sizes_kb.len()] * 1024)
    }
}

fn activities(delay_ms: u64) -> ActivityRegistry {
    let delay = Duration::from_millis(delay_ms);
    ActivityRegistry::builder()
        .register(ACTIVITY, move |_ctx: ActivityContext, payload: String| async move {
            tokio::time::sleep(delay).await;
            Ok(payload)
        })
        .build()
}

fn orchestrations() -> OrchestrationRegistry {
    OrchestrationRegistry::builder()
        .register(ORCHESTRATION, move_payloads)
        .register(CHILD, |ctx: OrchestrationContext, payload: String| async move {
            ctx.schedule_activity(ACTIVITY, payload).await
        })
        .build()
}

async fn move_payloads(ctx: OrchestrationContext, input: String) -> Result<String, String> {
    let plan: Plan =
        serde_json::from_str(&input).map_err(|error| format!("input {input}: {error}"))?;
    let mut moved = 0;
    for _ in 0..plan.rounds {
        let sent: Vec<String> = (0..plan.activities).map(|number| plan.payload(number)).collect();
        let calls = sent.iter().map(|payload| ctx.schedule_activity(ACTIVITY, payload.clone()));
        let answers = ctx.join(calls.collect()).await;
        moved += compare("activity", &sent, answers)?;

        let sent: Vec<String> = (0..plan.children).map(|number| plan.payload(number)).collect();
        let calls =
            sent.iter().map(|payload| ctx.schedule_sub_orchestration(CHILD, payload.clone()));
        let answers = ctx.join(calls.collect()).await;
        moved += compare("child", &sent, answers)?;
    }
    Ok(format!("moved {moved} bytes and back"))
}

/// The bytes that came back, if they are the ones that were sent.
fn compare(
    who: &str,
    sent: &[String],
    answers: Vec<Result<String, String>>,
) -> Result<usize, String> {
    let mut bytes = 0;
    for (number, (sent, answer)) in sent.iter().zip(answers).enumerate() {
        let answer = answer?;
        if answer != *sent {
            let (sent, got) = (sent.len(), answer.len());
            return Err(format!("{who} {number} was sent {sent} bytes and gave {got} others"));
        }
        bytes += sent.len();
    }
    Ok(bytes)
}
