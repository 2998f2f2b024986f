//! The store as its administrators see it.

use async_trait::async_trait;

use duroxide_core::model::Event;
use duroxide_core::provider::{
    DeadLetter, DeleteInstanceResult, DeleteRefused, ExecutionInfo, InstanceFilter, InstanceInfo,
    InstanceTree, ProviderAdmin, ProviderError, PruneOptions, PruneResult, QueueDepths, Refusal,
    SystemMetrics,
};

use crate::error::Failure;
use crate::provider::during;
use crate::store::PostgresProvider;
use crate::text::pack;

const LIST: &str = "SELECT id FROM duroxide.instance WHERE name IS NOT NULL
     ORDER BY created_at DESC, key DESC";
const LIST_BY_STATUS: &str = "SELECT i.id FROM duroxide.instance i
     JOIN duroxide.execution e ON e.instance = i.key AND e.number = i.execution
     WHERE i.name IS NOT NULL AND e.status = $1 ORDER BY i.created_at DESC, i.key DESC";
const CHILDREN: &str =
    "SELECT id FROM duroxide.instance WHERE parent = $1 ORDER BY created_at, key";

#[async_trait]
impl ProviderAdmin for PostgresProvider {
    async fn list_instances(&self) -> Result<Vec<String>, ProviderError> {
        self.store.ids(LIST, &[]).await.map_err(during("list_instances"))
    }

    async fn list_instances_by_status(&self, status: &str) -> Result<Vec<String>, ProviderError> {
        self.store
            .ids(LIST_BY_STATUS, &[&pack(status)])
            .await
            .map_err(during("list_instances_by_status"))
    }

    async fn list_executions(&self, instance: &str) -> Result<Vec<u64>, ProviderError> {
        self.store.executions(instance).await.map_err(during("list_executions"))
    }

    async fn read_history_with_execution_id(
        &self,
        instance: &str,
        execution_id: u64,
    ) -> Result<Vec<Event>, ProviderError> {
        self.store
            .history(instance, execution_id, 0, usize::MAX)
            .await
            .map_err(during("read_history_with_execution_id"))
    }

    async fn read_history(&self, instance: &str) -> Result<Vec<Event>, ProviderError> {
        self.store.newest_history(instance).await.map_err(during("read_history"))
    }

    async fn latest_execution_id(&self, instance: &str) -> Result<u64, ProviderError> {
        self.store.newest_execution(instance).await.map_err(during("latest_execution_id"))
    }

    async fn get_instance_info(&self, instance: &str) -> Result<InstanceInfo, ProviderError> {
        self.store.info(instance).await.map_err(during("get_instance_info"))
    }

    async fn get_execution_info(
        &self,
        instance: &str,
        execution_id: u64,
    ) -> Result<ExecutionInfo, ProviderError> {
        self.store.execution(instance, execution_id).await.map_err(during("get_execution_info"))
    }

    async fn get_system_metrics(&self) -> Result<SystemMetrics, ProviderError> {
        self.store.totals().await.map_err(during("get_system_metrics"))
    }

    async fn get_queue_depths(&self) -> Result<QueueDepths, ProviderError> {
        self.store.queue_depths().await.map_err(during("get_queue_depths"))
    }

    async fn list_children(&self, instance_id: &str) -> Result<Vec<String>, ProviderError> {
        self.store.ids(CHILDREN, &[&pack(instance_id)]).await.map_err(during("list_children"))
    }

    async fn get_parent_id(&self, instance_id: &str) -> Result<Option<String>, ProviderError> {
        self.store.parent(instance_id).await.map_err(during("get_parent_id"))
    }

    async fn get_instance_tree(&self, instance_id: &str) -> Result<InstanceTree, ProviderError> {
        self.store.tree(instance_id).await.map_err(during("get_instance_tree"))
    }

    async fn delete_instances_atomic(
        &self,
        ids: &[String],
        force: bool,
    ) -> Result<DeleteInstanceResult, ProviderError> {
        self.store.delete(ids, force, false).await.map_err(during("delete_instances_atomic"))
    }

    async fn delete_instance(
        &self,
        instance_id: &str,
        force: bool,
    ) -> Result<DeleteInstanceResult, ProviderError> {
        self.store.delete_tree(instance_id, force).await.map_err(during("delete_instance"))
    }

    async fn delete_instance_bulk(
        &self,
        filter: InstanceFilter,
    ) -> Result<DeleteInstanceResult, ProviderError> {
        self.store.delete_bulk(&filter).await.map_err(during("delete_instance_bulk"))
    }

    async fn prune_executions(
        &self,
        instance_id: &str,
        options: PruneOptions,
    ) -> Result<PruneResult, ProviderError> {
        self.store.prune(instance_id, &options).await.map_err(during("prune_executions"))
    }

    async fn prune_executions_bulk(
        &self,
        filter: InstanceFilter,
        options: PruneOptions,
    ) -> Result<PruneResult, ProviderError> {
        self.store.prune_bulk(&filter, &options).await.map_err(during("prune_executions_bulk"))
    }

    async fn try_delete_instance(
        &self,
        instance_id: &str,
        force: bool,
    ) -> Result<Result<DeleteInstanceResult, DeleteRefused>, ProviderError> {
        match self.store.delete_tree(instance_id, force).await {
            Ok(result) => Ok(Ok(result)),
            Err(Failure::Refused(Refusal::Undeletable(refused, _))) => Ok(Err(refused)),
            Err(other) => Err(other.during("try_delete_instance")),
        }
    }

    async fn count_running_instances(&self) -> Result<u64, ProviderError> {
        self.store.running().await.map_err(during("count_running_instances"))
    }

    async fn list_dead_letters(&self) -> Result<Vec<DeadLetter>, ProviderError> {
        self.store.dead_letters().await.map_err(during("list_dead_letters"))
    }
}
