//! Every call on the client and the runtime, with the result types callers name. Compiled, not run;
//! that it can be spawned proves that all of it is `Send`.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use duroxide::providers::{KvEntry, Provider, WorkItem};
use duroxide::runtime::observability::{MetricsProvider, ObservabilityHandle};
use duroxide::runtime::registry::ActivityRegistry;
use duroxide::runtime::{HistoryManager, Runtime, WorkItemReader};
use duroxide::*;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
struct Order {
    id: u32,
}

const SECOND: Duration = Duration::from_secs(1);

async fn messages(client: Client) -> Result<(), ClientError> {
    let order = Order { id: 1 };
    let () = client.start_orchestration("i", String::from("O"), &String::from("in")).await?;
    let () = client.start_orchestration_versioned("i", "O", "1.0.0", "in").await?;
    let () = client.start_orchestration_typed("i", "O", Order { id: 1 }).await?;
    let () = client.start_orchestration_typed("i", "O", &order).await?;
    let () = client.start_orchestration_versioned_typed("i", "O", "1.0.0", &order).await?;
    let () = client.raise_event("i", "Go", "data").await?;
    let () = client.raise_event_typed("i", "Go", &order).await?;
    let () = client.enqueue_event("i", "q", "data").await?;
    let () = client.enqueue_event_typed("i", "q", &order).await?;
    #[allow(deprecated)]
    let () = client.raise_event_persistent("i", "q", "data").await?;
    #[cfg(feature = "replay-version-test")]
    let () = client.raise_event2("i", "n", "t", "data").await?;
    client.cancel_instance("i", "user asked").await
}

async fn looks(client: Client) -> Result<(), ClientError> {
    let _: OrchestrationStatus = client.get_orchestration_status("i").await?;
    let _: OrchestrationStatus = client.wait_for_orchestration("i", SECOND).await?;
    let _: Result<Order, String> = client.wait_for_orchestration_typed("i", SECOND).await?;
    let _ = client.wait_for_orchestration_typed::<Order>("i", SECOND).await?;
    let _: OrchestrationStatus = client.wait_for_status_change("i", 0_u64, SECOND, SECOND).await?;
    let _: Option<String> = client.get_kv_value("i", "k").await?;
    let _: Option<Order> = client.get_kv_value_typed("i", "k").await?;
    let _: HashMap<String, String> = client.get_kv_all_values("i").await?;
    let _: String = client.wait_for_kv_value("i", "k", SECOND).await?;
    let _: Order = client.wait_for_kv_value_typed("i", "k", SECOND).await?;
    let _: Option<SystemStats> = client.get_orchestration_stats("i").await?;
    Ok(())
}

async fn management(client: Client) -> Result<(), ClientError> {
    let _: bool = client.has_management_capability();
    let _: Vec<String> = client.list_all_instances().await?;
    let _: Vec<String> = client.list_instances_by_status("Running").await?;
    let _: InstanceInfo = client.get_instance_info("i").await?;
    let _: ExecutionInfo = client.get_execution_info("i", 1).await?;
    let _: Vec<u64> = client.list_executions("i").await?;
    let _: Vec<Event> = client.read_execution_history("i", 1).await?;
    let _: SystemMetrics = client.get_system_metrics().await?;
    let _: QueueDepths = client.get_queue_depths().await?;
    let _: InstanceTree = client.get_instance_tree("i").await?;
    let _: DeleteInstanceResult = client.delete_instance("i", true).await?;
    let filter = InstanceFilter { limit: Some(5), ..Default::default() };
    let _: DeleteInstanceResult = client.delete_instance_bulk(filter.clone()).await?;
    let options = PruneOptions { keep_last: Some(2), ..Default::default() };
    let _: PruneResult = client.prune_executions("i", options.clone()).await?;
    let _: PruneResult = client.prune_executions_bulk(filter, options).await?;
    Ok(())
}

async fn runtime(store: Arc<dyn Provider>) {
    let activities = ActivityRegistry::builder().build();
    let orchestrations = OrchestrationRegistry::default();
    let runtime: Arc<Runtime> =
        Runtime::start_with_store(store.clone(), activities.clone(), orchestrations.clone()).await;
    let options = RuntimeOptions { max_attempts: 3, ..RuntimeOptions::default() };
    let other: Arc<Runtime> =
        Runtime::start_with_options(store, activities, orchestrations, options).await;
    let _: Option<OrchestrationDescriptor> = runtime.get_orchestration_descriptor("i").await;
    let () = runtime.clone().shutdown(Some(100)).await;
    let () = other.shutdown(None).await;
}

/// What one turn without a dispatcher answers.
type TurnParts = (
    Vec<Event>,
    Vec<WorkItem>,
    Vec<WorkItem>,
    Vec<ScheduledActivityIdentifier>,
    Result<String, String>,
);

async fn single_turn(
    runtime: Arc<Runtime>,
    mut history: HistoryManager,
    reader: WorkItemReader,
    handler: Arc<dyn OrchestrationHandler>,
) -> TurnParts {
    let kv: HashMap<String, KvEntry> = HashMap::new();
    let version = String::from("1.0.0");
    runtime
        .run_single_execution_atomic("i", &mut history, &reader, 1, "w", handler, version, kv)
        .await
}

async fn observability(metrics: MetricsProvider, handle: ObservabilityHandle) {
    let _: Result<(), String> = metrics.shutdown().await;
    let _: Result<(), String> = handle.shutdown().await;
}

/// Callers spawn these.
#[allow(dead_code)]
fn all_are_send(client: Client, store: ProviderRef, rt: Arc<Runtime>, h: OrchestrationHandlerRef) {
    tokio::spawn(messages(client.clone()));
    tokio::spawn(looks(client.clone()));
    tokio::spawn(management(client));
    tokio::spawn(runtime(store));
    let history = HistoryManager::from_history(&[]);
    let reader = WorkItemReader::from_messages(&[], &history, "i");
    tokio::spawn(single_turn(rt, history, reader, h));
    let config = runtime::ObservabilityConfig::default();
    if let (Ok(metrics), Ok(handle)) =
        (MetricsProvider::new(&config), ObservabilityHandle::init(&config))
    {
        tokio::spawn(observability(metrics, handle));
    }
}
