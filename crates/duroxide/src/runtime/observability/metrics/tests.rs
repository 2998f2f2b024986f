//! Each call against the snapshot and against what a recorder sees.

use metrics_util::debugging::{DebugValue, DebuggingRecorder};

use super::*;

/// Runs `calls` on a fresh recorder: the snapshot, and all emitted series as sorted text.
fn recorded(calls: impl FnOnce(&MetricsProvider)) -> (MetricsSnapshot, Vec<String>) {
    let recorder = DebuggingRecorder::new();
    let snapshot = ::metrics::with_local_recorder(&recorder, || {
        let metrics = MetricsProvider::new(&ObservabilityConfig::default()).unwrap();
        calls(&metrics);
        metrics.snapshot()
    });
    let mut series: Vec<String> = recorder
        .snapshotter()
        .snapshot()
        .into_vec()
        .into_iter()
        .map(|(key, _, description, value)| {
            assert!(description.is_some(), "{} is not described", key.key().name());
            let labels: Vec<String> = key
                .key()
                .labels()
                .map(|label| format!("{}={}", label.key(), label.value()))
                .collect();
            let value = match value {
                DebugValue::Counter(count) => format!("{count}"),
                DebugValue::Gauge(level) => format!("at {level}"),
                DebugValue::Histogram(values) => {
                    let values: Vec<f64> = values.into_iter().map(|value| value.0).collect();
                    format!("{values:?}")
                }
            };
            format!("{}{{{}}} {value}", key.key().name(), labels.join(","))
        })
        .collect();
    series.sort();
    (snapshot, series)
}

#[test]
fn r9_12_orchestration_start() {
    let (snapshot, series) = recorded(|m| m.record_orchestration_start("Order", "1.0.0", "client"));
    assert_eq!(snapshot, MetricsSnapshot { orch_starts: 1, ..Default::default() });
    assert_eq!(
        series,
        [
            "duroxide_orchestration_starts_total{orchestration_name=Order,version=1.0.0,initiated_by=client} 1"
        ]
    );
}

#[test]
fn r9_12_orchestration_completion() {
    let (snapshot, series) =
        recorded(|m| m.record_orchestration_completion("Order", "1.0.0", "success", 1.5, 7, 40));
    assert_eq!(snapshot, MetricsSnapshot { orch_completions: 1, ..Default::default() });
    assert_eq!(
        series,
        [
            "duroxide_orchestration_completions_total{orchestration_name=Order,version=1.0.0,status=success,final_turn_count=6-10} 1",
            "duroxide_orchestration_duration_seconds{orchestration_name=Order,version=1.0.0,status=success} [1.5]",
            "duroxide_orchestration_history_size{orchestration_name=Order} [40.0]",
            "duroxide_orchestration_turns{orchestration_name=Order} [7.0]",
        ]
    );
}

#[test]
fn r9_13_a_failed_orchestration_is_one_completion_and_one_failure() {
    let (snapshot, series) = recorded(|m| {
        m.record_orchestration_completion("Order", "1.0.0", "failed", 1.0, 1, 3);
        m.record_orchestration_failure("Order", "1.0.0", "app_error", "application");
    });
    let expected = MetricsSnapshot {
        orch_completions: 1,
        orch_failures: 1,
        orch_application_errors: 1,
        ..Default::default()
    };
    assert_eq!(snapshot, expected);
    assert!(series.contains(
        &"duroxide_orchestration_failures_total{orchestration_name=Order,version=1.0.0,error_type=app_error,error_category=application} 1".to_owned()
    ));
}

#[test]
fn r9_12_labelled_failures_count_their_class_once() {
    let (snapshot, series) = recorded(|m| {
        m.record_orchestration_failure("O", "1.0.0", "infrastructure_error", "infrastructure");
        m.record_orchestration_failure("O", "1.0.0", "config_error", "configuration");
        m.record_orchestration_failure("O", "1.0.0", "poison", "poison");
    });
    let expected = MetricsSnapshot {
        orch_failures: 3,
        orch_infrastructure_errors: 1,
        orch_configuration_errors: 1,
        ..Default::default()
    };
    assert_eq!(snapshot, expected);
    let classes: Vec<_> = series.iter().filter(|line| line.contains("errors_total")).collect();
    assert_eq!(
        classes,
        [
            "duroxide_orchestration_configuration_errors_total{orchestration_name=O,error_category=configuration} 1",
            "duroxide_orchestration_infrastructure_errors_total{orchestration_name=O,error_category=infrastructure} 1",
        ]
    );
}

#[test]
fn r9_12_failure_shortcuts() {
    let (snapshot, series) = recorded(|m| {
        m.record_orchestration_application_error();
        m.record_orchestration_infrastructure_error();
        m.record_orchestration_configuration_error();
    });
    let expected = MetricsSnapshot {
        orch_failures: 3,
        orch_application_errors: 1,
        orch_infrastructure_errors: 1,
        orch_configuration_errors: 1,
        ..Default::default()
    };
    assert_eq!(snapshot, expected);
    assert_eq!(
        series,
        [
            "duroxide_orchestration_configuration_errors_total{} 1",
            "duroxide_orchestration_failures_total{error_type=app_error} 1",
            "duroxide_orchestration_failures_total{error_type=config_error} 1",
            "duroxide_orchestration_failures_total{error_type=infrastructure_error} 1",
            "duroxide_orchestration_infrastructure_errors_total{} 1",
        ]
    );
}

#[test]
fn r9_26_continue_as_new_is_one_series_however_many_executions() {
    let (snapshot, series) = recorded(|m| {
        (1..=3).for_each(|execution| m.record_continue_as_new("Loop", execution));
    });
    assert_eq!(snapshot, MetricsSnapshot { orch_continue_as_new: 3, ..Default::default() });
    assert_eq!(series, ["duroxide_orchestration_continue_as_new_total{orchestration_name=Loop} 3"]);
}

#[test]
fn r9_12_activity_executions() {
    let (snapshot, series) = recorded(|m| {
        m.record_activity_execution("Charge", "success", 0.5, 0, None);
        m.record_activity_execution("Charge", "app_error", 0.5, 2, Some("gpu"));
        m.record_activity_execution("Charge", "infra_error", 0.5, 9, None);
        m.record_activity_execution("Charge", "config_error", 0.5, 1, None);
        m.record_activity_execution("Charge", "cancelled", 0.5, 0, None);
    });
    let expected = MetricsSnapshot {
        activity_success: 1,
        activity_app_errors: 1,
        activity_infra_errors: 1,
        activity_config_errors: 1,
        ..Default::default()
    };
    assert_eq!(snapshot, expected);
    let counters: Vec<_> = series.iter().filter(|line| line.contains("_total")).collect();
    assert_eq!(
        counters,
        [
            "duroxide_activity_configuration_errors_total{activity_name=Charge} 1",
            "duroxide_activity_executions_total{activity_name=Charge,outcome=app_error,retry_attempt=2,tag=gpu} 1",
            "duroxide_activity_executions_total{activity_name=Charge,outcome=cancelled,retry_attempt=0,tag=default} 1",
            "duroxide_activity_executions_total{activity_name=Charge,outcome=config_error,retry_attempt=1,tag=default} 1",
            "duroxide_activity_executions_total{activity_name=Charge,outcome=infra_error,retry_attempt=3+,tag=default} 1",
            "duroxide_activity_executions_total{activity_name=Charge,outcome=success,retry_attempt=0,tag=default} 1",
            "duroxide_activity_infrastructure_errors_total{activity_name=Charge} 1",
        ]
    );
    assert!(series.contains(
        &"duroxide_activity_duration_seconds{activity_name=Charge,outcome=app_error,tag=gpu} [0.5]"
            .to_owned()
    ));
}

#[test]
fn r9_12_activity_shortcuts() {
    let (snapshot, series) = recorded(|m| {
        m.record_activity_success();
        m.record_activity_app_error();
        m.record_activity_infra_error();
        m.record_activity_config_error();
    });
    let expected = MetricsSnapshot {
        activity_success: 1,
        activity_app_errors: 1,
        activity_infra_errors: 1,
        activity_config_errors: 1,
        ..Default::default()
    };
    assert_eq!(snapshot, expected);
    assert_eq!(
        series,
        [
            "duroxide_activity_configuration_errors_total{} 1",
            "duroxide_activity_executions_total{outcome=app_error} 1",
            "duroxide_activity_executions_total{outcome=config_error} 1",
            "duroxide_activity_executions_total{outcome=infra_error} 1",
            "duroxide_activity_executions_total{outcome=success} 1",
            "duroxide_activity_infrastructure_errors_total{} 1",
        ]
    );
}

#[test]
fn r9_12_poison_children_and_foreign_waits() {
    let (snapshot, series) = recorded(|m| {
        m.record_orchestration_poison();
        m.record_activity_poison();
        m.record_suborchestration_call("Order", "Pay", "success");
        m.record_suborchestration_duration("Order", "Pay", 2.0, "success");
        m.record_foreign_wait("Order");
    });
    let expected = MetricsSnapshot {
        orch_poison: 1,
        activity_poison: 1,
        suborchestration_calls: 1,
        ..Default::default()
    };
    assert_eq!(snapshot, expected);
    assert_eq!(
        series,
        [
            "duroxide_activity_poison_total{} 1",
            "duroxide_orchestration_foreign_waits_total{orchestration_name=Order} 1",
            "duroxide_orchestration_poison_total{} 1",
            "duroxide_suborchestration_calls_total{parent_orchestration=Order,child_orchestration=Pay,outcome=success} 1",
            "duroxide_suborchestration_duration_seconds{parent_orchestration=Order,child_orchestration=Pay,outcome=success} [2.0]",
        ]
    );
}

#[test]
fn r9_12_store_and_dispatchers() {
    let (snapshot, series) = recorded(|m| {
        m.record_provider_operation("read", 0.25, "error");
        m.record_provider_error("read", "timeout");
        m.record_orch_dispatcher_items_fetched(3);
        m.record_orch_dispatcher_processing_duration(5);
        m.record_worker_dispatcher_items_fetched(1);
        m.record_worker_dispatcher_execution_duration(6);
    });
    let expected = MetricsSnapshot {
        provider_errors: 1,
        orch_dispatcher_items_fetched: 3,
        worker_dispatcher_items_fetched: 1,
        ..Default::default()
    };
    assert_eq!(snapshot, expected);
    assert_eq!(
        series,
        [
            "duroxide_orchestration_dispatcher_items_fetched{} 3",
            "duroxide_orchestration_dispatcher_processing_duration_ms{} [5.0]",
            "duroxide_provider_errors_total{operation=read,error_type=timeout} 1",
            "duroxide_provider_operation_duration_seconds{operation=read,status=error} [0.25]",
            "duroxide_worker_dispatcher_execution_duration_ms{} [6.0]",
            "duroxide_worker_dispatcher_items_fetched{} 1",
        ]
    );
}

#[test]
fn r9_12_gauges() {
    let (snapshot, series) = recorded(|m| {
        m.update_queue_depths(4, 2);
        assert_eq!(m.get_queue_depths(), (4, 2));
        m.set_active_orchestrations(10);
        m.increment_active_orchestrations();
        m.decrement_active_orchestrations();
        m.decrement_active_orchestrations();
        assert_eq!(m.get_active_orchestrations(), 9);
    });
    assert_eq!(snapshot, MetricsSnapshot::default());
    assert_eq!(
        series,
        [
            "duroxide_active_orchestrations{} at 9",
            "duroxide_orchestrator_queue_depth{} at 4",
            "duroxide_worker_queue_depth{} at 2",
        ]
    );
}

#[test]
fn r9_4_without_a_recorder_the_snapshot_still_counts() {
    let metrics = MetricsProvider::new(&ObservabilityConfig::default()).unwrap();
    metrics.record_orchestration_start("Order", "1.0.0", "client");
    assert_eq!(metrics.snapshot().orch_starts, 1);
}

/// Whoever looks for a metric finds it in the documents, and the other way round.
#[test]
fn r9_4_the_documents_list_all_metrics() {
    let named = |text: &str| -> std::collections::BTreeSet<String> {
        let words = text.split(|c: char| !c.is_ascii_lowercase() && c != '_');
        words.filter(|word| word.starts_with("duroxide_")).map(str::to_owned).collect()
    };
    let ours = named(include_str!("../names.rs"));
    let behaviour = include_str!("../../../../../../docs/behaviour.md");
    let guide = include_str!("../../../../../../docs/guide/operations.md");
    assert_eq!(ours.difference(&named(behaviour)).collect::<Vec<_>>(), Vec::<&String>::new());
    let crates =
        ["duroxide_pg", "duroxide_sqlite", "duroxide_core", "duroxide_version", "duroxide_"];
    let unknown =
        named(guide).difference(&ours).filter(|name| !crates.contains(&name.as_str())).count();
    assert_eq!(unknown, 0, "{:?}", named(guide).difference(&ours).collect::<Vec<_>>());
}
