//! Small runs on the memory store, on paused time.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use duroxide_core::model::{AppErrorKind, ErrorDetails};

use super::core::*;
use super::large_payload::*;
use super::load::Blame;
use super::parallel_orchestrations::*;
use super::table::table;
use crate::providers::Provider;
use crate::providers::memory::MemoryProvider;
use crate::providers::scripted::ScriptedProvider;
use crate::runtime::registry::ActivityRegistry;
use crate::{OrchestrationContext, OrchestrationRegistry};

struct Memory(StressTestConfig);

#[async_trait]
impl ProviderStressFactory for Memory {
    async fn create_provider(&self) -> Arc<dyn Provider> {
        Arc::new(MemoryProvider::new())
    }

    fn stress_test_config(&self) -> StressTestConfig {
        self.0.clone()
    }
}

fn tiny() -> StressTestConfig {
    StressTestConfig {
        max_concurrent: 3,
        duration_secs: 0,
        tasks_per_instance: 2,
        activity_delay_ms: 10,
        wait_timeout_secs: 1,
        ..StressTestConfig::default()
    }
}

/// A tiny run of other code under the usual name.
async fn run_code<F, Fut>(code: F) -> StressTestResult
where
    F: Fn(OrchestrationContext, String) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<String, String>> + Send + 'static,
{
    let code = OrchestrationRegistry::builder().register("FanoutOrchestration", code).build();
    let (store, activities) = (Arc::new(MemoryProvider::new()), create_default_activities(0));
    run_stress_test(tiny(), store, activities, code).await.unwrap()
}

/// Completed, and failed by infrastructure, configuration and application.
fn counts(result: &StressTestResult) -> [usize; 4] {
    let StressTestResult { failed_infrastructure, failed_configuration, .. } = *result;
    let counts =
        [result.completed, failed_infrastructure, failed_configuration, result.failed_application];
    assert_eq!(result.launched, counts.iter().sum::<usize>());
    assert_eq!(result.failed, result.launched - result.completed);
    counts
}

#[test]
fn r8_124_configurations_and_their_defaults() {
    let text = r#"{"max_concurrent":20,"duration_secs":10,"tasks_per_instance":5,"activity_delay_ms":10,"orch_concurrency":2,"worker_concurrency":2,"wait_timeout_secs":60}"#;
    assert_eq!(serde_json::to_string(&StressTestConfig::default()).unwrap(), text);
    let without = text.replace(r#","wait_timeout_secs":60"#, "");
    let read: StressTestConfig = serde_json::from_str(&without).unwrap();
    assert_eq!(read.wait_timeout_secs, 60);
    assert_eq!(
        format!("{:?}", LargePayloadConfig::default()),
        "LargePayloadConfig { base: StressTestConfig { max_concurrent: 5, duration_secs: 10, \
         tasks_per_instance: 1, activity_delay_ms: 5, orch_concurrency: 1, worker_concurrency: 1, \
         wait_timeout_secs: 120 }, small_payload_kb: 10, medium_payload_kb: 50, \
         large_payload_kb: 100, activity_count: 20, sub_orch_count: 5 }"
    );
}

#[tokio::test(start_paused = true)]
async fn r8_124_each_place_runs_at_least_one_instance() {
    let result = run_parallel_orchestrations_test(&Memory(tiny())).await.unwrap();
    assert_eq!(counts(&result), [3, 0, 0, 0]);
    assert!((result.success_rate() - 100.0).abs() < 1e-9);
    // Six activities of 10 ms, two at a time.
    assert!(result.total_time >= Duration::from_millis(30), "{result:?}");
    assert!(result.avg_latency_ms >= 10.0, "{result:?}");
    let per_second = 3.0 / result.total_time.as_secs_f64();
    assert!((result.orch_throughput - per_second).abs() < 1e-9, "{result:?}");
    assert!((result.activity_throughput - 2.0 * per_second).abs() < 1e-9, "{result:?}");
}

#[tokio::test(start_paused = true)]
async fn r8_124_instances_are_started_for_as_long_as_asked() {
    let config = StressTestConfig { duration_secs: 1, ..tiny() };
    let factory = Memory(tiny());
    let result = run_parallel_orchestrations_test_with_config(&factory, config).await.unwrap();
    assert!(result.total_time >= Duration::from_secs(1), "{result:?}");
    assert!(result.completed > 3 && result.failed == 0, "{result:?}");
}

#[tokio::test(start_paused = true)]
async fn r8_124_runs_on_one_store_do_not_meet() {
    let store = Arc::new(MemoryProvider::new());
    for _ in 0..2 {
        let (activities, code) = (create_default_activities(0), create_default_orchestrations());
        let result = run_stress_test(tiny(), store.clone(), activities, code).await.unwrap();
        assert_eq!(counts(&result), [3, 0, 0, 0]);
    }
    assert_eq!(store.snapshot().instances.len(), 6);
}

#[tokio::test(start_paused = true)]
async fn r8_124_large_payloads_come_back_unchanged() {
    let config = LargePayloadConfig {
        base: StressTestConfig { tasks_per_instance: 2, ..tiny() },
        small_payload_kb: 1,
        medium_payload_kb: 2,
        large_payload_kb: 3,
        activity_count: 4,
        sub_orch_count: 2,
    };
    let result = run_large_payload_test_with_config(&Memory(tiny()), config).await.unwrap();
    assert_eq!(counts(&result), [3, 0, 0, 0]);
    // Two rounds of four activities and two children with one each.
    let activities_per_instance = result.activity_throughput / result.orch_throughput;
    assert!((activities_per_instance - 12.0).abs() < 1e-9, "{result:?}");
}

#[tokio::test(start_paused = true)]
async fn r8_124_failures_are_counted_by_whose_fault_they_are() {
    let failing = |_ctx, _input| async { Err("no".to_owned()) };
    assert_eq!(counts(&run_code(failing).await), [0, 0, 0, 3]);
    let endless =
        |ctx: OrchestrationContext, _input| async move { Ok(ctx.schedule_wait("never").await) };
    assert_eq!(counts(&run_code(endless).await), [0, 3, 0, 0]);
    let wrong = ActivityRegistry::builder()
        .register("ProcessTask", |_ctx, _input| async { Ok("something else".to_owned()) })
        .build();
    let (store, code) = (Arc::new(MemoryProvider::new()), create_default_orchestrations());
    let result = run_stress_test(tiny(), store, wrong, code).await.unwrap();
    assert_eq!(counts(&result), [0, 0, 0, 3]);
    assert!(result.success_rate().abs() < 1e-9 && result.orch_throughput.abs() < 1e-9);

    let application = ErrorDetails::application(AppErrorKind::Panicked, "x");
    for (details, blame) in [
        (ErrorDetails::nondeterminism("x"), Blame::Configuration),
        (application, Blame::Application),
    ] {
        assert_eq!(Blame::of(&details), blame);
    }
}

#[tokio::test(start_paused = true)]
async fn r8_124_a_store_that_is_down_is_counted_not_hidden() {
    let store = Arc::new(ScriptedProvider::default());
    store.fail_with("connection refused");
    let (activities, code) = (create_default_activities(0), create_default_orchestrations());
    let result = run_stress_test(tiny(), store, activities, code).await.unwrap();
    assert_eq!(counts(&result), [0, 3, 0, 0]);
}

#[tokio::test(start_paused = true)]
async fn r8_124_what_cannot_run_is_an_error_that_says_why() {
    let run = async |config, code| {
        let store = Arc::new(MemoryProvider::new());
        let result = run_stress_test(config, store, create_default_activities(0), code).await;
        result.unwrap_err().to_string()
    };
    let none = StressTestConfig { worker_concurrency: 0, ..tiny() };
    let error = run(none, create_default_orchestrations()).await;
    assert_eq!(error, "worker_concurrency must be at least 1");
    let other = OrchestrationRegistry::builder()
        .register("Other", |_ctx, input| async move { Ok(input) })
        .build();
    let error = run(tiny(), other).await;
    assert!(error.contains("FanoutOrchestration") && error.ends_with(": Other"), "{error}");
}

#[test]
fn r8_124_a_run_can_be_spawned() {
    fn can_be_spawned(_: impl Send) {}
    let factory = Memory(tiny());
    can_be_spawned(run_parallel_orchestrations_test(&factory));
    can_be_spawned(run_large_payload_test(&factory));
}

#[test]
fn r8_124_results_are_printed_side_by_side() {
    let good = StressTestResult {
        launched: 200,
        completed: 200,
        failed: 0,
        failed_infrastructure: 0,
        failed_configuration: 0,
        failed_application: 0,
        total_time: Duration::from_millis(10_050),
        orch_throughput: 19.9,
        activity_throughput: 99.5,
        avg_latency_ms: 12.34,
    };
    let bad = StressTestResult {
        completed: 197,
        failed: 3,
        failed_infrastructure: 2,
        failed_application: 1,
        ..good.clone()
    };
    let results =
        [("memory".into(), "parallel".into(), good), ("mine".into(), "large payload".into(), bad)];
    let expected = "\
store   test           completed  failed   success  orch/s  activity/s  latency     time
------  -------------  ---------  ------  --------  ------  ----------  -------  -------
memory  parallel         200/200       0  100.00 %    19.9        99.5  12.3 ms  10.05 s
mine    large payload    197/200       3   98.50 %    19.9        99.5  12.3 ms  10.05 s
failed in mine, large payload: 2 infrastructure, 0 configuration, 1 application";
    assert_eq!(table(&results), expected);
    print_comparison_table(&results);
}
