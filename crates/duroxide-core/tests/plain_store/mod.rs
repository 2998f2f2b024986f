//! A provider as others write them: the required methods and nothing else.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use duroxide_core::model::{Event, SystemStats, WorkItem};
use duroxide_core::provider::{
    DeleteInstanceResult, DispatcherCapabilityFilter, ExecutionInfo, ExecutionMetadata,
    InstanceFilter, InstanceInfo, OrchestrationItem, Provider, ProviderAdmin, ProviderError,
    PruneOptions, PruneResult, QueueDepths, ScheduledActivityIdentifier, SessionFetchConfig,
    SystemMetrics, TagFilter,
};

/// Answers reads from its fields and writes down the executions it commits.
pub(crate) struct PlainStore {
    pub(crate) history: Result<Vec<Event>, ProviderError>,
    pub(crate) custom_status: Result<Option<(Option<String>, u64)>, ProviderError>,
    pub(crate) ack: Result<(), ProviderError>,
    pub(crate) acked: Mutex<Vec<u64>>,
}

impl Default for PlainStore {
    fn default() -> Self {
        let history = Ok(Vec::new());
        Self { history, custom_status: Ok(None), ack: Ok(()), acked: Mutex::default() }
    }
}

/// A management side with one tree: a → (a1 → a11), a2.
pub(crate) struct PlainAdmin {
    pub(crate) deletion: Result<DeleteInstanceResult, ProviderError>,
    pub(crate) deleted: Mutex<Vec<String>>,
}

impl Default for PlainAdmin {
    fn default() -> Self {
        let deletion = DeleteInstanceResult { instances_deleted: 3, ..Default::default() };
        Self { deletion: Ok(deletion), deleted: Mutex::default() }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[async_trait]
impl Provider for PlainStore {
    async fn read(&self, _: &str) -> Result<Vec<Event>, ProviderError> {
        self.history.clone()
    }

    async fn read_with_execution(&self, _: &str, _: u64) -> Result<Vec<Event>, ProviderError> {
        self.history.clone()
    }

    async fn get_custom_status(
        &self,
        _: &str,
        _: u64,
    ) -> Result<Option<(Option<String>, u64)>, ProviderError> {
        self.custom_status.clone()
    }

    async fn fetch_orchestration_item(
        &self,
        _: Duration,
        _: Duration,
        _: Option<&DispatcherCapabilityFilter>,
    ) -> Result<Option<(OrchestrationItem, String, u32)>, ProviderError> {
        let item = OrchestrationItem {
            instance: "a".to_owned(),
            orchestration_name: "Order".to_owned(),
            execution_id: 1,
            version: "1.0.0".to_owned(),
            history: self.history.clone()?,
            messages: Vec::new(),
            history_error: None,
            kv_snapshot: HashMap::new(),
        };
        Ok(Some((item, "token".to_owned(), 1)))
    }

    async fn ack_orchestration_item(
        &self,
        _: &str,
        execution_id: u64,
        _: Vec<Event>,
        _: Vec<WorkItem>,
        _: Vec<WorkItem>,
        _: ExecutionMetadata,
        _: Vec<ScheduledActivityIdentifier>,
    ) -> Result<(), ProviderError> {
        lock(&self.acked).push(execution_id);
        self.ack.clone()
    }

    async fn append_with_execution(
        &self,
        _: &str,
        _: u64,
        _: Vec<Event>,
    ) -> Result<(), ProviderError> {
        Ok(())
    }

    async fn abandon_orchestration_item(
        &self,
        _: &str,
        _: Option<Duration>,
        _: bool,
    ) -> Result<(), ProviderError> {
        Ok(())
    }

    async fn renew_orchestration_item_lock(
        &self,
        _: &str,
        _: Duration,
    ) -> Result<(), ProviderError> {
        Ok(())
    }

    async fn enqueue_for_orchestrator(
        &self,
        _: WorkItem,
        _: Option<Duration>,
    ) -> Result<(), ProviderError> {
        Ok(())
    }

    async fn enqueue_for_worker(&self, _: WorkItem) -> Result<(), ProviderError> {
        Ok(())
    }

    async fn fetch_work_item(
        &self,
        _: Duration,
        _: Duration,
        _: Option<&SessionFetchConfig>,
        _: &TagFilter,
    ) -> Result<Option<(WorkItem, String, u32)>, ProviderError> {
        let item = WorkItem::ActivityExecute {
            instance: "a".to_owned(),
            execution_id: 1,
            id: 2,
            name: "Charge".to_owned(),
            input: String::new(),
            session_id: None,
            tag: None,
        };
        Ok(Some((item, "token".to_owned(), 1)))
    }

    async fn ack_work_item(&self, _: &str, _: Option<WorkItem>) -> Result<(), ProviderError> {
        Ok(())
    }

    async fn abandon_work_item(
        &self,
        _: &str,
        _: Option<Duration>,
        _: bool,
    ) -> Result<(), ProviderError> {
        Ok(())
    }

    async fn renew_work_item_lock(&self, _: &str, _: Duration) -> Result<(), ProviderError> {
        Ok(())
    }

    async fn renew_session_lock(
        &self,
        _: &[&str],
        _: Duration,
        _: Duration,
    ) -> Result<usize, ProviderError> {
        Ok(0)
    }

    async fn cleanup_orphaned_sessions(&self, _: Duration) -> Result<usize, ProviderError> {
        Ok(0)
    }

    async fn get_kv_value(&self, _: &str, _: &str) -> Result<Option<String>, ProviderError> {
        Ok(None)
    }

    async fn get_kv_all_values(&self, _: &str) -> Result<HashMap<String, String>, ProviderError> {
        Ok(HashMap::new())
    }

    async fn get_instance_stats(&self, _: &str) -> Result<Option<SystemStats>, ProviderError> {
        Ok(None)
    }
}

fn not_asked<T>() -> Result<T, ProviderError> {
    Err(ProviderError::permanent("plain store", "not asked in these tests"))
}

#[async_trait]
impl ProviderAdmin for PlainAdmin {
    async fn list_children(&self, instance: &str) -> Result<Vec<String>, ProviderError> {
        let children: &[&str] = match instance {
            "a" => &["a1", "a2"],
            "a1" => &["a11"],
            _ => &[],
        };
        Ok(children.iter().map(|child| (*child).to_owned()).collect())
    }

    async fn get_parent_id(&self, instance: &str) -> Result<Option<String>, ProviderError> {
        Ok((instance != "a").then(|| "a".to_owned()))
    }

    async fn delete_instances_atomic(
        &self,
        ids: &[String],
        _: bool,
    ) -> Result<DeleteInstanceResult, ProviderError> {
        *lock(&self.deleted) = ids.to_vec();
        self.deletion.clone()
    }

    async fn list_instances(&self) -> Result<Vec<String>, ProviderError> {
        not_asked()
    }

    async fn list_instances_by_status(&self, _: &str) -> Result<Vec<String>, ProviderError> {
        not_asked()
    }

    async fn list_executions(&self, _: &str) -> Result<Vec<u64>, ProviderError> {
        not_asked()
    }

    async fn read_history_with_execution_id(
        &self,
        _: &str,
        _: u64,
    ) -> Result<Vec<Event>, ProviderError> {
        not_asked()
    }

    async fn read_history(&self, _: &str) -> Result<Vec<Event>, ProviderError> {
        not_asked()
    }

    async fn latest_execution_id(&self, _: &str) -> Result<u64, ProviderError> {
        not_asked()
    }

    async fn get_instance_info(&self, _: &str) -> Result<InstanceInfo, ProviderError> {
        not_asked()
    }

    async fn get_execution_info(&self, _: &str, _: u64) -> Result<ExecutionInfo, ProviderError> {
        not_asked()
    }

    async fn get_system_metrics(&self) -> Result<SystemMetrics, ProviderError> {
        Ok(SystemMetrics { running_instances: 3, ..SystemMetrics::default() })
    }

    async fn get_queue_depths(&self) -> Result<QueueDepths, ProviderError> {
        not_asked()
    }

    async fn delete_instance_bulk(
        &self,
        _: InstanceFilter,
    ) -> Result<DeleteInstanceResult, ProviderError> {
        not_asked()
    }

    async fn prune_executions(
        &self,
        _: &str,
        _: PruneOptions,
    ) -> Result<PruneResult, ProviderError> {
        not_asked()
    }

    async fn prune_executions_bulk(
        &self,
        _: InstanceFilter,
        _: PruneOptions,
    ) -> Result<PruneResult, ProviderError> {
        not_asked()
    }
}
