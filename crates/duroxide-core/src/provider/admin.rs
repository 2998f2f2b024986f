//! The management side of a store: look, list, delete, prune.

use std::any::Any;
use std::collections::VecDeque;

use async_trait::async_trait;

use super::{
    DeleteInstanceResult, ExecutionInfo, InstanceFilter, InstanceInfo, InstanceTree, ProviderError,
    PruneOptions, PruneResult, QueueDepths, SystemMetrics,
};
use crate::model::Event;

/// Management calls.
#[async_trait]
pub trait ProviderAdmin: Any + Send + Sync {
    /// All instances, newest first.
    async fn list_instances(&self) -> Result<Vec<String>, ProviderError>;

    /// Instances whose current execution has this status, exactly as spelled.
    async fn list_instances_by_status(&self, status: &str) -> Result<Vec<String>, ProviderError>;

    /// Execution numbers, ascending; empty for an unknown instance.
    async fn list_executions(&self, instance: &str) -> Result<Vec<u64>, ProviderError>;

    /// Events of one execution.
    async fn read_history_with_execution_id(
        &self,
        instance: &str,
        execution_id: u64,
    ) -> Result<Vec<Event>, ProviderError>;

    /// Events of the newest execution.
    async fn read_history(&self, instance: &str) -> Result<Vec<Event>, ProviderError>;

    /// Newest execution; 1 for an unknown instance.
    async fn latest_execution_id(&self, instance: &str) -> Result<u64, ProviderError>;

    /// An instance as a whole.
    async fn get_instance_info(&self, instance: &str) -> Result<InstanceInfo, ProviderError>;

    /// One execution.
    async fn get_execution_info(
        &self,
        instance: &str,
        execution_id: u64,
    ) -> Result<ExecutionInfo, ProviderError>;

    /// Totals.
    async fn get_system_metrics(&self) -> Result<SystemMetrics, ProviderError>;

    /// Queue depths.
    async fn get_queue_depths(&self) -> Result<QueueDepths, ProviderError>;

    /// Direct children.
    async fn list_children(&self, instance_id: &str) -> Result<Vec<String>, ProviderError>;

    /// Parent, for a child.
    async fn get_parent_id(&self, instance_id: &str) -> Result<Option<String>, ProviderError>;

    /// Deletes exactly these instances, in one transaction, and the queued starts of their children
    /// with them (R6.68).
    async fn delete_instances_atomic(
        &self,
        ids: &[String],
        force: bool,
    ) -> Result<DeleteInstanceResult, ProviderError>;

    /// An instance with all its descendants, the root first.
    async fn get_instance_tree(&self, instance_id: &str) -> Result<InstanceTree, ProviderError> {
        let mut all_ids = vec![instance_id.to_owned()];
        let mut to_visit = VecDeque::from([instance_id.to_owned()]);
        while let Some(id) = to_visit.pop_front() {
            let children = self.list_children(&id).await?;
            to_visit.extend(children.iter().cloned());
            all_ids.extend(children);
        }
        Ok(InstanceTree { root_id: instance_id.to_owned(), all_ids })
    }

    /// Deletes a root instance with its descendants, those included that have not begun (R6.68). A
    /// child whose parent does not exist is a root (R6.69).
    async fn delete_instance(
        &self,
        instance_id: &str,
        force: bool,
    ) -> Result<DeleteInstanceResult, ProviderError> {
        if let Some(parent) = self.get_parent_id(instance_id).await? {
            match self.get_parent_id(&parent).await {
                // Without its parent it is the root of what is left (R6.69).
                Err(error) if !error.is_retryable() => {}
                Err(error) => return Err(error),
                Ok(_) => return Err(DeleteRefused::SubOrchestration.into_error(instance_id)),
            }
        }
        let tree = self.get_instance_tree(instance_id).await?;
        self.delete_instances_atomic(&tree.all_ids, force).await
    }

    /// Deletes ended roots with their descendants.
    async fn delete_instance_bulk(
        &self,
        filter: InstanceFilter,
    ) -> Result<DeleteInstanceResult, ProviderError>;

    /// Removes old executions of an instance.
    async fn prune_executions(
        &self,
        instance_id: &str,
        options: PruneOptions,
    ) -> Result<PruneResult, ProviderError>;

    /// Removes old executions of many instances.
    async fn prune_executions_bulk(
        &self,
        filter: InstanceFilter,
        options: PruneOptions,
    ) -> Result<PruneResult, ProviderError>;

    // ---- Additive methods -----------------------------------------------------------------------

    /// Like [`delete_instance`](Self::delete_instance), with refusals as values (R8.136). The
    /// default has only the error's text to go by, which an instance's own name can confuse:
    /// providers that know better override it.
    async fn try_delete_instance(
        &self,
        instance_id: &str,
        force: bool,
    ) -> Result<Result<DeleteInstanceResult, DeleteRefused>, ProviderError> {
        match self.delete_instance(instance_id, force).await {
            Ok(result) => Ok(Ok(result)),
            Err(error) => DeleteRefused::from_text(&error.message).map(Err).ok_or(error),
        }
    }

    /// Messages that could not be delivered, with the reason (R8.137).
    async fn list_dead_letters(&self) -> Result<Vec<DeadLetter>, ProviderError> {
        Ok(Vec::new())
    }

    /// Instances whose current execution runs (R8.141). Every runtime asks for its gauges, again and
    /// again: to answer should not need a look at all that ever ran.
    async fn count_running_instances(&self) -> Result<u64, ProviderError> {
        Ok(self.get_system_metrics().await?.running_instances)
    }
}

/// Why a deletion was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeleteRefused {
    /// No such instance.
    NotFound,
    /// It or a descendant runs, and the deletion was not forced.
    StillRunning,
    /// It is a child; only roots can be deleted.
    SubOrchestration,
}

impl DeleteRefused {
    /// The same refusal as a provider error.
    pub fn into_error(self, instance_id: &str) -> ProviderError {
        let message = match self {
            Self::NotFound => format!("Instance {instance_id} not found"),
            Self::StillRunning => {
                format!("Instance {instance_id} is still running. Use force=true or cancel first.")
            }
            Self::SubOrchestration => format!(
                "Cannot delete sub-orchestration {instance_id} directly. Delete the root orchestration instead."
            ),
        };
        ProviderError::permanent("delete_instance", message)
    }

    /// Reads a refusal off an error text, in the order of R6.63.
    fn from_text(message: &str) -> Option<Self> {
        let message = message.to_lowercase();
        if message.contains("not found") {
            Some(Self::NotFound)
        } else if message.contains("still running") {
            Some(Self::StillRunning)
        } else if message.contains("sub-orchestration") || message.contains("delete the root") {
            Some(Self::SubOrchestration)
        } else {
            None
        }
    }
}

/// A message that could not be delivered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeadLetter {
    /// Instance it was for, if that much could be read.
    pub instance: Option<String>,
    /// The message as stored.
    pub payload: String,
    /// Why it was given up.
    pub reason: String,
    /// When, milliseconds since the epoch.
    pub at_ms: u64,
}
