//! Every call on a store, through trait objects, with the result types callers name. Compiled, not
//! run; that it can be spawned proves that all of it is `Send`.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use duroxide::providers::*;
use duroxide::{Event, SystemStats};

use crate::samples;

const SECOND: Duration = Duration::from_secs(1);

async fn turns(store: Arc<dyn Provider>) -> Result<(), ProviderError> {
    let filter = samples::filter();
    let _: (&str, &str) = (store.name(), store.version());
    let fetched: Option<(OrchestrationItem, String, u32)> =
        store.fetch_orchestration_item(SECOND, SECOND, Some(&filter)).await?;
    let Some((item, token, _attempt)) = fetched else { return Ok(()) };
    let () = store
        .ack_orchestration_item(
            &token,
            item.execution_id,
            Vec::<Event>::new(),
            Vec::<WorkItem>::new(),
            Vec::<WorkItem>::new(),
            ExecutionMetadata::default(),
            vec![samples::activity_id()],
        )
        .await?;
    let () = store.renew_orchestration_item_lock(&token, SECOND).await?;
    let () = store.abandon_orchestration_item(&token, Some(SECOND), true).await?;
    store.enqueue_for_orchestrator(samples::work_items().remove(0), None).await
}

async fn work(store: Arc<dyn Provider>) -> Result<(), ProviderError> {
    let session = samples::session();
    let _: [TagFilter; 2] = [TagFilter::tags(vec!["a".to_owned()]), TagFilter::tags(["a", "b"])];
    let () = store.enqueue_for_worker(samples::work_items().remove(1)).await?;
    let fetched: Option<(WorkItem, String, u32)> = store
        .fetch_work_item(SECOND, SECOND, Some(&session), &TagFilter::default_and(["gpu"]))
        .await?;
    let Some((_, token, _)) = fetched else { return Ok(()) };
    let () = store.renew_work_item_lock(&token, SECOND).await?;
    let () = store.abandon_work_item(&token, None, false).await?;
    let () = store.ack_work_item(&token, None).await?;
    let owner = String::from("w");
    let _: usize = store.renew_session_lock(&[&owner, "x"], SECOND, SECOND).await?;
    let _: usize = store.cleanup_orphaned_sessions(SECOND).await?;
    Ok(())
}

async fn reads(store: Arc<dyn Provider>) -> Result<(), ProviderError> {
    let _: Vec<Event> = store.read("i").await?;
    let _: Vec<Event> = store.read_with_execution("i", 1).await?;
    let () = store.append_with_execution("i", 1, Vec::new()).await?;
    let _: Option<(Option<String>, u64)> = store.get_custom_status("i", 0).await?;
    let _: Option<String> = store.get_kv_value("i", "k").await?;
    let _: HashMap<String, String> = store.get_kv_all_values("i").await?;
    let _: Option<SystemStats> = store.get_instance_stats("i").await?;
    Ok(())
}

async fn admin(store: Arc<dyn Provider>) -> Result<(), ProviderError> {
    let Some(admin): Option<&dyn ProviderAdmin> = store.as_management_capability() else {
        return Ok(());
    };
    let _: Vec<String> = admin.list_instances().await?;
    let _: Vec<String> = admin.list_instances_by_status("Running").await?;
    let _: Vec<u64> = admin.list_executions("i").await?;
    let _: Vec<Event> = admin.read_history_with_execution_id("i", 1).await?;
    let _: Vec<Event> = admin.read_history("i").await?;
    let _: u64 = admin.latest_execution_id("i").await?;
    let _: InstanceInfo = admin.get_instance_info("i").await?;
    let _: ExecutionInfo = admin.get_execution_info("i", 1).await?;
    let _: SystemMetrics = admin.get_system_metrics().await?;
    let _: QueueDepths = admin.get_queue_depths().await?;
    let _: Vec<String> = admin.list_children("i").await?;
    let _: Option<String> = admin.get_parent_id("i").await?;
    let ids = [String::from("i")];
    let _: DeleteInstanceResult = admin.delete_instances_atomic(&ids, false).await?;
    let _: InstanceTree = admin.get_instance_tree("i").await?;
    let _: DeleteInstanceResult = admin.delete_instance("i", false).await?;
    let (filter, options) = (InstanceFilter::default(), PruneOptions::default());
    let _: DeleteInstanceResult = admin.delete_instance_bulk(filter.clone()).await?;
    let _: PruneResult = admin.prune_executions("i", options.clone()).await?;
    let _: PruneResult = admin.prune_executions_bulk(filter, options).await?;
    Ok(())
}

async fn old_management(store: Arc<dyn ManagementProvider>) -> Result<(), ProviderError> {
    let _: Vec<String> = store.list_instances().await?;
    let _: Vec<String> = store.list_instances_by_status("Running").await?;
    let _: Vec<u64> = store.list_executions("i").await?;
    let _: u64 = store.latest_execution_id("i").await?;
    let _: SystemMetrics = store.get_system_metrics().await?;
    let _: QueueDepths = store.get_queue_depths().await?;
    let _: Vec<Event> = store.read_execution("i", 1).await?;
    let _: InstanceInfo = store.get_instance_info("i").await?;
    let _: ExecutionInfo = store.get_execution_info("i", 1).await?;
    Ok(())
}

/// Callers spawn these.
#[allow(dead_code)]
fn all_are_send(store: Arc<dyn Provider>, old: Arc<dyn ManagementProvider>) {
    tokio::spawn(turns(store.clone()));
    tokio::spawn(work(store.clone()));
    tokio::spawn(reads(store.clone()));
    tokio::spawn(admin(store));
    tokio::spawn(old_management(old));
}

struct Nothing;

impl ManagementProvider for Nothing {}

// R8.2
#[tokio::test]
async fn the_old_management_trait_answers_by_default() {
    let store = Nothing;
    assert_eq!(store.list_instances().await, Ok(vec![]));
    assert_eq!(store.list_instances_by_status("Running").await, Ok(vec![]));
    assert_eq!(store.list_executions("i").await, Ok(vec![1]));
    assert_eq!(store.latest_execution_id("i").await, Ok(1));
    assert_eq!(store.get_system_metrics().await.unwrap().total_events, 0);
    assert_eq!(store.get_queue_depths().await.unwrap().worker_queue, 0);
    for error in [
        store.read_execution("i", 1).await.err(),
        store.get_instance_info("i").await.err(),
        store.get_execution_info("i", 1).await.err(),
    ] {
        let error = error.unwrap();
        assert!(!error.is_retryable());
        assert_eq!(error.message, "not supported for instance: i");
    }
}
