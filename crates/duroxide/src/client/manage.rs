//! Looking over all instances, deleting and pruning them. Needs a store with a management side.

use duroxide_core::model::Event;
use duroxide_core::provider::{
    DeleteInstanceResult, ExecutionInfo, InstanceFilter, InstanceInfo, InstanceTree, ProviderAdmin,
    PruneOptions, PruneResult, QueueDepths, SystemMetrics,
};

use super::{Client, ClientError};

impl Client {
    /// Whether the calls below work with this store.
    pub fn has_management_capability(&self) -> bool {
        self.store.as_management_capability().is_some()
    }

    /// All instances, newest first.
    pub async fn list_all_instances(&self) -> Result<Vec<String>, ClientError> {
        Ok(self.admin()?.list_instances().await?)
    }

    /// Instances whose current execution has this status: `Running`, `Completed`, `Failed` or
    /// `ContinuedAsNew`, exactly as spelled here.
    pub async fn list_instances_by_status(&self, status: &str) -> Result<Vec<String>, ClientError> {
        Ok(self.admin()?.list_instances_by_status(status).await?)
    }

    /// An instance as a whole.
    pub async fn get_instance_info(&self, instance: &str) -> Result<InstanceInfo, ClientError> {
        Ok(self.admin()?.get_instance_info(instance).await?)
    }

    /// One execution of an instance.
    pub async fn get_execution_info(
        &self,
        instance: &str,
        execution_id: u64,
    ) -> Result<ExecutionInfo, ClientError> {
        Ok(self.admin()?.get_execution_info(instance, execution_id).await?)
    }

    /// Execution numbers of an instance, ascending.
    pub async fn list_executions(&self, instance: &str) -> Result<Vec<u64>, ClientError> {
        Ok(self.admin()?.list_executions(instance).await?)
    }

    /// Events of one execution.
    pub async fn read_execution_history(
        &self,
        instance: &str,
        execution_id: u64,
    ) -> Result<Vec<Event>, ClientError> {
        Ok(self.admin()?.read_history_with_execution_id(instance, execution_id).await?)
    }

    /// Totals over the store.
    pub async fn get_system_metrics(&self) -> Result<SystemMetrics, ClientError> {
        Ok(self.admin()?.get_system_metrics().await?)
    }

    /// How much waits in each queue.
    pub async fn get_queue_depths(&self) -> Result<QueueDepths, ClientError> {
        Ok(self.admin()?.get_queue_depths().await?)
    }

    /// An instance with all its descendants.
    pub async fn get_instance_tree(&self, instance_id: &str) -> Result<InstanceTree, ClientError> {
        Ok(self.admin()?.get_instance_tree(instance_id).await?)
    }

    /// Deletes a root instance with all its descendants; with `force` even while they run.
    pub async fn delete_instance(
        &self,
        instance_id: &str,
        force: bool,
    ) -> Result<DeleteInstanceResult, ClientError> {
        self.admin()?
            .try_delete_instance(instance_id, force)
            .await?
            .map_err(|refusal| ClientError::refused(refusal, instance_id))
    }

    /// Deletes ended roots with their descendants, as many as the filter admits.
    pub async fn delete_instance_bulk(
        &self,
        filter: InstanceFilter,
    ) -> Result<DeleteInstanceResult, ClientError> {
        Ok(self.admin()?.delete_instance_bulk(filter).await?)
    }

    /// Removes old executions of an instance; never the current one.
    pub async fn prune_executions(
        &self,
        instance_id: &str,
        options: PruneOptions,
    ) -> Result<PruneResult, ClientError> {
        Ok(self.admin()?.prune_executions(instance_id, options).await?)
    }

    /// Removes old executions of all instances the filter admits.
    pub async fn prune_executions_bulk(
        &self,
        filter: InstanceFilter,
        options: PruneOptions,
    ) -> Result<PruneResult, ClientError> {
        Ok(self.admin()?.prune_executions_bulk(filter, options).await?)
    }

    fn admin(&self) -> Result<&dyn ProviderAdmin, ClientError> {
        self.store.as_management_capability().ok_or(ClientError::ManagementNotAvailable)
    }
}
