//! A store written against the listed contract only: every required method, nothing more. A method
//! added without a default body would not compile here (R8.130).

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use duroxide::providers::{
    DispatcherCapabilityFilter, ExecutionMetadata, OrchestrationItem, Provider, ProviderError,
    SessionFetchConfig, TagFilter, WorkItem,
};
use duroxide::{
    Client, ClientError, DeleteInstanceResult, Event, EventKind, ExecutionInfo, InstanceFilter,
    InstanceInfo, OrchestrationStatus, ProviderAdmin, PruneOptions, PruneResult, QueueDepths,
    ScheduledActivityIdentifier, SystemMetrics, SystemStats,
};

use crate::samples;

/// Holds one ended instance `done` with a child, and takes nothing in.
struct Archive;

fn history() -> Vec<Event> {
    let started = EventKind::OrchestrationStarted {
        name: "Hello".into(),
        version: "1.0.0".into(),
        input: String::new(),
        parent_instance: None,
        parent_id: None,
        parent_execution_id: None,
        carry_forward_events: None,
        initial_custom_status: None,
    };
    let completed = EventKind::OrchestrationCompleted { output: "out".into() };
    vec![samples::event(started), samples::event(completed)]
}

fn closed<T>(operation: &str) -> Result<T, ProviderError> {
    Err(ProviderError::permanent(operation, "the archive is closed"))
}

#[async_trait]
impl Provider for Archive {
    async fn fetch_orchestration_item(
        &self,
        _lock_timeout: Duration,
        _poll_timeout: Duration,
        _filter: Option<&DispatcherCapabilityFilter>,
    ) -> Result<Option<(OrchestrationItem, String, u32)>, ProviderError> {
        Ok(None)
    }

    #[allow(clippy::too_many_arguments)]
    async fn ack_orchestration_item(
        &self,
        _lock_token: &str,
        _execution_id: u64,
        _history_delta: Vec<Event>,
        _worker_items: Vec<WorkItem>,
        _orchestrator_items: Vec<WorkItem>,
        _metadata: ExecutionMetadata,
        _cancelled_activities: Vec<ScheduledActivityIdentifier>,
    ) -> Result<(), ProviderError> {
        closed("ack_orchestration_item")
    }

    async fn abandon_orchestration_item(
        &self,
        _lock_token: &str,
        _delay: Option<Duration>,
        _ignore_attempt: bool,
    ) -> Result<(), ProviderError> {
        closed("abandon_orchestration_item")
    }

    async fn read(&self, instance: &str) -> Result<Vec<Event>, ProviderError> {
        Ok(if instance == "done" { history() } else { Vec::new() })
    }

    async fn read_with_execution(
        &self,
        instance: &str,
        _execution_id: u64,
    ) -> Result<Vec<Event>, ProviderError> {
        self.read(instance).await
    }

    async fn append_with_execution(
        &self,
        _instance: &str,
        _execution_id: u64,
        _new_events: Vec<Event>,
    ) -> Result<(), ProviderError> {
        closed("append_with_execution")
    }

    async fn enqueue_for_worker(&self, _item: WorkItem) -> Result<(), ProviderError> {
        closed("enqueue_for_worker")
    }

    async fn fetch_work_item(
        &self,
        _lock_timeout: Duration,
        _poll_timeout: Duration,
        _session: Option<&SessionFetchConfig>,
        _tag_filter: &TagFilter,
    ) -> Result<Option<(WorkItem, String, u32)>, ProviderError> {
        Ok(None)
    }

    async fn ack_work_item(
        &self,
        _token: &str,
        _completion: Option<WorkItem>,
    ) -> Result<(), ProviderError> {
        closed("ack_work_item")
    }

    async fn renew_work_item_lock(
        &self,
        _token: &str,
        _extend_for: Duration,
    ) -> Result<(), ProviderError> {
        closed("renew_work_item_lock")
    }

    async fn renew_session_lock(
        &self,
        _owner_ids: &[&str],
        _extend_for: Duration,
        _idle_timeout: Duration,
    ) -> Result<usize, ProviderError> {
        Ok(0)
    }

    async fn cleanup_orphaned_sessions(
        &self,
        _idle_timeout: Duration,
    ) -> Result<usize, ProviderError> {
        Ok(0)
    }

    async fn abandon_work_item(
        &self,
        _token: &str,
        _delay: Option<Duration>,
        _ignore_attempt: bool,
    ) -> Result<(), ProviderError> {
        closed("abandon_work_item")
    }

    async fn renew_orchestration_item_lock(
        &self,
        _token: &str,
        _extend_for: Duration,
    ) -> Result<(), ProviderError> {
        closed("renew_orchestration_item_lock")
    }

    async fn enqueue_for_orchestrator(
        &self,
        _item: WorkItem,
        _delay: Option<Duration>,
    ) -> Result<(), ProviderError> {
        closed("enqueue_for_orchestrator")
    }

    fn as_management_capability(&self) -> Option<&dyn ProviderAdmin> {
        Some(self)
    }

    async fn get_custom_status(
        &self,
        _instance: &str,
        _last_seen_version: u64,
    ) -> Result<Option<(Option<String>, u64)>, ProviderError> {
        Ok(Some((Some("ended".into()), 2)))
    }

    async fn get_kv_value(
        &self,
        _instance: &str,
        key: &str,
    ) -> Result<Option<String>, ProviderError> {
        Ok((key == "k").then(|| "7".into()))
    }

    async fn get_kv_all_values(
        &self,
        _instance: &str,
    ) -> Result<HashMap<String, String>, ProviderError> {
        Ok(HashMap::new())
    }

    async fn get_instance_stats(
        &self,
        _instance: &str,
    ) -> Result<Option<SystemStats>, ProviderError> {
        Ok(None)
    }
}

#[async_trait]
impl ProviderAdmin for Archive {
    async fn list_instances(&self) -> Result<Vec<String>, ProviderError> {
        Ok(vec!["done".into(), "done::sub::2".into()])
    }

    async fn list_instances_by_status(&self, _status: &str) -> Result<Vec<String>, ProviderError> {
        Ok(Vec::new())
    }

    async fn list_executions(&self, _instance: &str) -> Result<Vec<u64>, ProviderError> {
        Ok(vec![1])
    }

    async fn read_history_with_execution_id(
        &self,
        instance: &str,
        _execution_id: u64,
    ) -> Result<Vec<Event>, ProviderError> {
        self.read(instance).await
    }

    async fn read_history(&self, instance: &str) -> Result<Vec<Event>, ProviderError> {
        self.read(instance).await
    }

    async fn latest_execution_id(&self, _instance: &str) -> Result<u64, ProviderError> {
        Ok(1)
    }

    async fn get_instance_info(&self, _instance: &str) -> Result<InstanceInfo, ProviderError> {
        Ok(samples::management().instance)
    }

    async fn get_execution_info(
        &self,
        _instance: &str,
        _execution_id: u64,
    ) -> Result<ExecutionInfo, ProviderError> {
        Ok(samples::management().execution)
    }

    async fn get_system_metrics(&self) -> Result<SystemMetrics, ProviderError> {
        Ok(SystemMetrics::default())
    }

    async fn get_queue_depths(&self) -> Result<QueueDepths, ProviderError> {
        Ok(QueueDepths::default())
    }

    async fn list_children(&self, instance_id: &str) -> Result<Vec<String>, ProviderError> {
        Ok(if instance_id == "done" { vec!["done::sub::2".into()] } else { Vec::new() })
    }

    async fn get_parent_id(&self, instance_id: &str) -> Result<Option<String>, ProviderError> {
        match instance_id {
            "done" => Ok(None),
            "done::sub::2" => Ok(Some("done".into())),
            other => Err(ProviderError::permanent("get_parent_id", format!("{other} not found"))),
        }
    }

    async fn delete_instances_atomic(
        &self,
        ids: &[String],
        _force: bool,
    ) -> Result<DeleteInstanceResult, ProviderError> {
        Ok(DeleteInstanceResult { instances_deleted: ids.len() as u64, ..Default::default() })
    }

    async fn delete_instance_bulk(
        &self,
        _filter: InstanceFilter,
    ) -> Result<DeleteInstanceResult, ProviderError> {
        closed("delete_instance_bulk")
    }

    async fn prune_executions(
        &self,
        _instance_id: &str,
        _options: PruneOptions,
    ) -> Result<PruneResult, ProviderError> {
        closed("prune_executions")
    }

    async fn prune_executions_bulk(
        &self,
        _filter: InstanceFilter,
        _options: PruneOptions,
    ) -> Result<PruneResult, ProviderError> {
        closed("prune_executions_bulk")
    }
}

#[tokio::test]
async fn a_client_works_on_it() {
    let store = Arc::new(Archive);
    assert_eq!((store.name(), store.version()), ("unknown", "0.0.0"));
    let client = Client::new(store);
    let expected = OrchestrationStatus::Completed {
        output: "out".into(),
        custom_status: Some("ended".into()),
        custom_status_version: 2,
    };
    let patience = Duration::from_secs(5);
    assert_eq!(client.get_orchestration_status("done").await.unwrap(), expected);
    assert_eq!(client.wait_for_orchestration("done", patience).await.unwrap(), expected);
    assert_eq!(client.wait_for_kv_value_typed::<u8>("done", "k", patience).await.unwrap(), 7);
    let refused = client.start_orchestration("new", "Hello", "").await;
    assert!(matches!(refused, Err(ClientError::Provider(error)) if !error.retryable));
}

#[tokio::test]
async fn its_management_has_the_listed_default_bodies() {
    let client = Client::new(Arc::new(Archive));
    assert!(client.has_management_capability());
    let tree = client.get_instance_tree("done").await.unwrap();
    assert_eq!(tree.all_ids, ["done", "done::sub::2"]);
    assert_eq!(client.delete_instance("done", false).await.unwrap().instances_deleted, 2);
    let child = client.delete_instance("done::sub::2", false).await;
    assert!(matches!(child, Err(ClientError::CannotDeleteSubOrchestration { .. })));
    let unknown = client.delete_instance("nope", false).await;
    assert!(matches!(unknown, Err(ClientError::InstanceNotFound { .. })));
}
