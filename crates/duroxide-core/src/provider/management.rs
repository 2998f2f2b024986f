//! What management calls return and take, and the older trait that is no longer used (R8.2).

use async_trait::async_trait;

use super::ProviderError;
use crate::model::{Event, INITIAL_EXECUTION_ID};

/// An instance as a whole. Times are milliseconds since the epoch.
#[derive(Debug, Clone)]
pub struct InstanceInfo {
    /// The instance.
    pub instance_id: String,
    /// Registered name.
    pub orchestration_name: String,
    /// Handler version.
    pub orchestration_version: String,
    /// Newest execution.
    pub current_execution_id: u64,
    /// Status of the newest execution.
    pub status: String,
    /// Result, error text or next input of the newest execution.
    pub output: Option<String>,
    /// When the instance came into being.
    pub created_at: u64,
    /// When it last changed.
    pub updated_at: u64,
    /// Parent, for a child.
    pub parent_instance_id: Option<String>,
}

/// One execution. Times are milliseconds since the epoch.
#[derive(Debug, Clone)]
pub struct ExecutionInfo {
    /// Its number.
    pub execution_id: u64,
    /// Its status.
    pub status: String,
    /// Result, error text or next input.
    pub output: Option<String>,
    /// When it began.
    pub started_at: u64,
    /// When it ended.
    pub completed_at: Option<u64>,
    /// Length of its history.
    pub event_count: usize,
}

/// Totals over a store.
#[derive(Debug, Clone, Default)]
pub struct SystemMetrics {
    /// All instances.
    pub total_instances: u64,
    /// All executions.
    pub total_executions: u64,
    /// Instances whose current execution runs.
    pub running_instances: u64,
    /// Instances whose current execution completed.
    pub completed_instances: u64,
    /// Instances whose current execution failed.
    pub failed_instances: u64,
    /// All events.
    pub total_events: u64,
}

/// What waits in the queues and is not locked.
#[derive(Debug, Clone, Default)]
pub struct QueueDepths {
    /// Messages for orchestrations, from when they are due; those that were given back count at once.
    pub orchestrator_queue: usize,
    /// Activities.
    pub worker_queue: usize,
    /// Always 0: timers are messages of the orchestrator queue once they are due.
    pub timer_queue: usize,
}

/// Which instances a bulk operation is about; all given conditions must hold.
#[derive(Debug, Clone, Default)]
pub struct InstanceFilter {
    /// Only these.
    pub instance_ids: Option<Vec<String>>,
    /// Only instances whose current execution ended before this time.
    pub completed_before: Option<u64>,
    /// At most this many; 1000 if absent.
    pub limit: Option<u32>,
}

/// Which executions of an instance may go; all given conditions must allow it.
#[derive(Debug, Clone, Default)]
pub struct PruneOptions {
    /// Keep the newest so many, the current one included.
    pub keep_last: Option<u32>,
    /// Only executions that ended before this time.
    pub completed_before: Option<u64>,
}

/// What a deletion removed.
#[derive(Debug, Clone, Default)]
pub struct DeleteInstanceResult {
    /// Instances.
    pub instances_deleted: u64,
    /// Executions.
    pub executions_deleted: u64,
    /// Events.
    pub events_deleted: u64,
    /// Messages of both queues.
    pub queue_messages_deleted: u64,
}

/// What pruning removed.
#[derive(Debug, Clone, Default)]
pub struct PruneResult {
    /// Instances looked at.
    pub instances_processed: u64,
    /// Executions.
    pub executions_deleted: u64,
    /// Events.
    pub events_deleted: u64,
}

/// An instance with all its descendants.
#[derive(Debug, Clone)]
pub struct InstanceTree {
    /// The instance asked for.
    pub root_id: String,
    /// It and its descendants, the root first.
    pub all_ids: Vec<String>,
}

impl InstanceTree {
    /// Whether there are no descendants.
    pub fn is_root_only(&self) -> bool {
        self.all_ids.len() == 1
    }

    /// Number of instances.
    pub fn size(&self) -> usize {
        self.all_ids.len()
    }
}

/// The management trait of early versions. Kept so that old providers compile; the one that counts
/// is [`ProviderAdmin`](super::ProviderAdmin).
#[async_trait]
pub trait ManagementProvider: Send + Sync {
    /// All instances.
    async fn list_instances(&self) -> Result<Vec<String>, ProviderError> {
        Ok(Vec::new())
    }

    /// Instances in a status.
    async fn list_instances_by_status(&self, _status: &str) -> Result<Vec<String>, ProviderError> {
        Ok(Vec::new())
    }

    /// Executions of an instance.
    async fn list_executions(&self, _instance: &str) -> Result<Vec<u64>, ProviderError> {
        Ok(vec![INITIAL_EXECUTION_ID])
    }

    /// Events of an execution.
    async fn read_execution(
        &self,
        instance: &str,
        _execution_id: u64,
    ) -> Result<Vec<Event>, ProviderError> {
        Err(not_supported("read_execution", instance))
    }

    /// Newest execution of an instance.
    async fn latest_execution_id(&self, _instance: &str) -> Result<u64, ProviderError> {
        Ok(INITIAL_EXECUTION_ID)
    }

    /// An instance as a whole.
    async fn get_instance_info(&self, instance: &str) -> Result<InstanceInfo, ProviderError> {
        Err(not_supported("get_instance_info", instance))
    }

    /// One execution.
    async fn get_execution_info(
        &self,
        instance: &str,
        _execution_id: u64,
    ) -> Result<ExecutionInfo, ProviderError> {
        Err(not_supported("get_execution_info", instance))
    }

    /// Totals.
    async fn get_system_metrics(&self) -> Result<SystemMetrics, ProviderError> {
        Ok(SystemMetrics::default())
    }

    /// Queue depths.
    async fn get_queue_depths(&self) -> Result<QueueDepths, ProviderError> {
        Ok(QueueDepths::default())
    }
}

fn not_supported(operation: &str, instance: &str) -> ProviderError {
    ProviderError::permanent(operation, format!("not supported for instance: {instance}"))
}
