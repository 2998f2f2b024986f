//! Every call reaches the inner store, the important ones are measured, and metrics are optional.

use metrics_util::debugging::{DebugValue, DebuggingRecorder};

use super::*;
use crate::providers::scripted::ScriptedProvider;
use crate::runtime::observability::{MetricsSnapshot, ObservabilityConfig};

const SECOND: Duration = Duration::from_secs(1);

/// What R9.30 measures, in the order of [`call_everything`]: (method, operation).
const MEASURED: [(&str, &str); 13] = [
    ("fetch_orchestration_item", "fetch_orchestration_item"),
    ("ack_orchestration_item", "ack_orchestration_item"),
    ("read", "read"),
    ("fetch_work_item", "fetch_work_item"),
    ("ack_work_item", "ack_work_item"),
    ("renew_session_lock", "renew_session_lock"),
    ("cleanup_orphaned_sessions", "cleanup_orphaned_sessions"),
    ("enqueue_for_orchestrator", "enqueue_orchestrator"),
    ("fetch_turn", "fetch_orchestration_item"),
    ("fetch_turns", "fetch_orchestration_item"),
    ("fetch_work_items", "fetch_work_item"),
    ("commit_turn", "ack_orchestration_item"),
    ("start_instance", "enqueue_orchestrator"),
];

const FORWARDED: [&str; 15] = [
    "abandon_orchestration_item",
    "read_with_execution",
    "append_with_execution",
    "enqueue_for_worker",
    "renew_work_item_lock",
    "abandon_work_item",
    "renew_orchestration_item_lock",
    "get_custom_status",
    "get_kv_value",
    "get_kv_all_values",
    "get_instance_stats",
    "read_history_from",
    "read_status",
    "wait_for_commit",
    "lost_work_items",
];

fn message() -> WorkItem {
    WorkItem::CancelInstance { instance: "i1".to_owned(), reason: "test".to_owned() }
}

/// Calls every measured method; whether each succeeded.
async fn call_measured(store: &dyn Provider) -> Vec<bool> {
    let metadata = ExecutionMetadata::default;
    vec![
        store.fetch_orchestration_item(SECOND, SECOND, None).await.is_ok(),
        store
            .ack_orchestration_item("t", 1, vec![], vec![], vec![], metadata(), vec![])
            .await
            .is_ok(),
        store.read("i1").await.is_ok(),
        store.fetch_work_item(SECOND, SECOND, None, &TagFilter::DefaultOnly).await.is_ok(),
        store.ack_work_item("t", None).await.is_ok(),
        store.renew_session_lock(&["a", "b"], SECOND, SECOND).await.is_ok(),
        store.cleanup_orphaned_sessions(SECOND).await.is_ok(),
        store.enqueue_for_orchestrator(message(), None).await.is_ok(),
        store.fetch_turn(SECOND, SECOND, None).await.is_ok(),
        store.fetch_turns(SECOND, SECOND, None, 2).await.is_ok(),
        store.fetch_work_items(SECOND, SECOND, None, &TagFilter::Any, 2).await.is_ok(),
        store.commit_turn("t", TurnCommit::default()).await.is_ok(),
        store.start_instance(message(), false).await.is_ok(),
    ]
}

/// Calls every other method; whether each succeeded.
async fn call_forwarded(store: &dyn Provider) -> Vec<bool> {
    vec![
        store.abandon_orchestration_item("t", None, false).await.is_ok(),
        store.read_with_execution("i1", 1).await.is_ok(),
        store.append_with_execution("i1", 1, vec![]).await.is_ok(),
        store.enqueue_for_worker(message()).await.is_ok(),
        store.renew_work_item_lock("t", SECOND).await.is_ok(),
        store.abandon_work_item("t", None, false).await.is_ok(),
        store.renew_orchestration_item_lock("t", SECOND).await.is_ok(),
        store.get_custom_status("i1", 0).await.is_ok(),
        store.get_kv_value("i1", "k").await.is_ok(),
        store.get_kv_all_values("i1").await.is_ok(),
        store.get_instance_stats("i1").await.is_ok(),
        store.read_history_from("i1", 1, 1, None).await.is_ok(),
        store.read_status("i1").await.is_ok(),
        store.wait_for_commit("i1", 0, SECOND).await.is_some(),
        store.lost_work_items(&["t"]).await.is_ok(),
    ]
}

fn metrics() -> Arc<MetricsProvider> {
    Arc::new(MetricsProvider::new(&ObservabilityConfig::default()).unwrap())
}

#[tokio::test]
async fn r9_30_forwards_everything_with_and_without_metrics() {
    for metrics in [None, Some(metrics())] {
        let inner = Arc::new(ScriptedProvider::default());
        let store = InstrumentedProvider::new(inner.clone(), metrics);

        assert_eq!(call_measured(&store).await, [true; MEASURED.len()]);
        assert_eq!(inner.calls(), MEASURED.map(|(method, _)| method));
        assert_eq!(call_forwarded(&store).await, [true; FORWARDED.len()]);
        assert_eq!(inner.calls(), FORWARDED);

        assert_eq!((store.name(), store.version()), ("scripted", "9.8.7"));
        assert_eq!(store.store_time_ms(), Some(42));
        assert_eq!(store.wait_for_commit("i1", 5, SECOND).await, Some(6));
        assert_eq!(store.renew_session_lock(&["a", "b"], SECOND, SECOND).await, Ok(2));
        assert_eq!(store.get_kv_value("i1", "k").await, Ok(Some("k".to_owned())));
        let admin = store.as_management_capability().unwrap();
        assert_eq!(admin.list_instances().await, Ok(vec!["i1".to_owned()]));
        inner.lose_admin();
        assert!(store.as_management_capability().is_none());
    }
}

#[tokio::test]
async fn r9_30_errors_pass_through_and_are_counted_where_measured() {
    let metrics = metrics();
    let inner = Arc::new(ScriptedProvider::default());
    inner.fail_with("busy");
    let store = InstrumentedProvider::new(inner.clone(), Some(metrics.clone()));

    assert_eq!(call_measured(&store).await, [false; MEASURED.len()]);
    let expected = MetricsSnapshot { provider_errors: MEASURED.len() as u64, ..Default::default() };
    assert_eq!(metrics.snapshot(), expected);
    call_forwarded(&store).await;
    assert_eq!(metrics.snapshot(), expected);
    assert_eq!(store.read("i1").await, Err(ProviderError::retryable("read", "busy")));
}

#[tokio::test]
async fn r9_30_a_rejected_commit_comes_back_whole() {
    let inner = Arc::new(ScriptedProvider::default());
    inner.fail_with("deadlock");
    let store = InstrumentedProvider::new(inner, Some(metrics()));
    let commit = TurnCommit { execution_id: 7, ..Default::default() };
    let rejected = store.commit_turn("t", commit).await.unwrap_err();
    assert_eq!(rejected.error, ProviderError::retryable("commit_turn", "deadlock"));
    assert_eq!(rejected.commit.execution_id, 7);
}

#[test]
fn r9_30_times_and_labels() {
    let recorder = DebuggingRecorder::new();
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    ::metrics::with_local_recorder(&recorder, || {
        runtime.unwrap().block_on(async {
            let inner = Arc::new(ScriptedProvider::default());
            inner.take(Duration::from_millis(250));
            let store = InstrumentedProvider::new(inner.clone(), Some(metrics()));
            call_measured(&store).await;
            inner.fail_with("connection reset");
            call_measured(&store).await;
        });
    });

    let mut seen: Vec<(String, DebugValue)> = Vec::new();
    for (key, _, _, value) in recorder.snapshotter().snapshot().into_vec() {
        let labels: Vec<&str> = key.key().labels().map(|label| label.value()).collect();
        seen.push((format!("{} {}", key.key().name(), labels.join(" ")), value));
    }
    let mut operations: Vec<&str> = MEASURED.iter().map(|(_, operation)| *operation).collect();
    operations.sort();
    operations.dedup();
    for operation in &operations {
        let times = MEASURED.iter().filter(|(_, of)| of == operation).count();
        let took = || DebugValue::Histogram(vec![0.25.into(); times]);
        for expected in [
            (format!("duroxide_provider_operation_duration_seconds {operation} success"), took()),
            (format!("duroxide_provider_operation_duration_seconds {operation} error"), took()),
            (
                format!("duroxide_provider_errors_total {operation} connection"),
                DebugValue::Counter(times as u64),
            ),
        ] {
            assert!(seen.contains(&expected), "{expected:?} not in {seen:?}");
        }
    }
    assert_eq!(seen.len(), 3 * operations.len());
}

#[tokio::test(start_paused = true)]
async fn r9_30_a_dropped_fetch_counts_for_nothing() {
    let metrics = metrics();
    let inner = Arc::new(ScriptedProvider::default());
    inner.take(SECOND);
    inner.fail_with("too late");
    let store = InstrumentedProvider::new(inner, Some(metrics.clone()));
    let fetch = store.fetch_turn(SECOND, SECOND, None);
    assert!(tokio::time::timeout(SECOND / 2, fetch).await.is_err());
    assert_eq!(metrics.snapshot(), MetricsSnapshot::default());
}
