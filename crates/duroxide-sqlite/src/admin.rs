//! The store as its administrators see it.

use async_trait::async_trait;

use duroxide_core::model::Event;
use duroxide_core::provider::{
    DeadLetter, DeleteInstanceResult, DeleteRefused, ExecutionInfo, InstanceFilter, InstanceInfo,
    InstanceTree, ProviderAdmin, ProviderError, PruneOptions, PruneResult, QueueDepths, Refusal,
    SystemMetrics,
};

use crate::database::Db;
use crate::error::Failure;
use crate::ops::{DeleteExactly, DeleteTree, Prune};
use crate::provider::during;
use crate::store::SqliteProvider;
use crate::{queries, tables};

#[async_trait]
impl ProviderAdmin for SqliteProvider {
    async fn list_instances(&self) -> Result<Vec<String>, ProviderError> {
        let list = |c: Db<'_>| Ok(tables::instances::list(c)?);
        self.readers.read(list).await.map_err(during("list_instances"))
    }

    async fn list_instances_by_status(&self, status: &str) -> Result<Vec<String>, ProviderError> {
        let status = status.to_owned();
        let list = move |c: Db<'_>| Ok(tables::instances::list_by_status(c, &status)?);
        self.readers.read(list).await.map_err(during("list_instances_by_status"))
    }

    async fn list_executions(&self, instance: &str) -> Result<Vec<u64>, ProviderError> {
        let id = instance.to_owned();
        let list = move |c: Db<'_>| queries::instances::execution_numbers(c, &id);
        self.readers.read(list).await.map_err(during("list_executions"))
    }

    async fn read_history_with_execution_id(
        &self,
        instance: &str,
        execution_id: u64,
    ) -> Result<Vec<Event>, ProviderError> {
        let id = instance.to_owned();
        let read =
            move |c: Db<'_>| queries::history::from_event(c, &id, execution_id, 0, usize::MAX);
        self.readers.read(read).await.map_err(during("read_history_with_execution_id"))
    }

    async fn read_history(&self, instance: &str) -> Result<Vec<Event>, ProviderError> {
        let id = instance.to_owned();
        let read = move |c: Db<'_>| queries::history::newest(c, &id);
        self.readers.read(read).await.map_err(during("read_history"))
    }

    async fn latest_execution_id(&self, instance: &str) -> Result<u64, ProviderError> {
        let id = instance.to_owned();
        let read = move |c: Db<'_>| queries::instances::newest_execution(c, &id);
        self.readers.read(read).await.map_err(during("latest_execution_id"))
    }

    async fn get_instance_info(&self, instance: &str) -> Result<InstanceInfo, ProviderError> {
        let id = instance.to_owned();
        let read = move |c: Db<'_>| queries::instances::info(c, &id);
        self.readers.read(read).await.map_err(during("get_instance_info"))
    }

    async fn get_execution_info(
        &self,
        instance: &str,
        execution_id: u64,
    ) -> Result<ExecutionInfo, ProviderError> {
        let id = instance.to_owned();
        let read = move |c: Db<'_>| queries::instances::execution(c, &id, execution_id);
        self.readers.read(read).await.map_err(during("get_execution_info"))
    }

    async fn get_system_metrics(&self) -> Result<SystemMetrics, ProviderError> {
        self.readers.read(queries::metrics::totals).await.map_err(during("get_system_metrics"))
    }

    async fn get_queue_depths(&self) -> Result<QueueDepths, ProviderError> {
        let now = self.clock.now_ms();
        let read = move |c: Db<'_>| queries::metrics::queue_depths(c, now);
        self.readers.read(read).await.map_err(during("get_queue_depths"))
    }

    async fn list_children(&self, instance_id: &str) -> Result<Vec<String>, ProviderError> {
        let id = instance_id.to_owned();
        let read = move |c: Db<'_>| Ok(tables::instances::children(c, &id)?);
        self.readers.read(read).await.map_err(during("list_children"))
    }

    async fn get_parent_id(&self, instance_id: &str) -> Result<Option<String>, ProviderError> {
        let id = instance_id.to_owned();
        let read = move |c: Db<'_>| queries::instances::parent(c, &id);
        self.readers.read(read).await.map_err(during("get_parent_id"))
    }

    async fn get_instance_tree(&self, instance_id: &str) -> Result<InstanceTree, ProviderError> {
        let id = instance_id.to_owned();
        let read = move |c: Db<'_>| queries::instances::tree(c, &id);
        self.readers.read(read).await.map_err(during("get_instance_tree"))
    }

    async fn delete_instances_atomic(
        &self,
        ids: &[String],
        force: bool,
    ) -> Result<DeleteInstanceResult, ProviderError> {
        let op = DeleteExactly { ids: ids.to_vec(), force };
        self.writer.run(op).await.map_err(during("delete_instances_atomic"))
    }

    async fn delete_instance(
        &self,
        instance_id: &str,
        force: bool,
    ) -> Result<DeleteInstanceResult, ProviderError> {
        let op = DeleteTree { root: instance_id.to_owned(), force };
        self.writer.run(op).await.map_err(during("delete_instance"))
    }

    async fn delete_instance_bulk(
        &self,
        filter: InstanceFilter,
    ) -> Result<DeleteInstanceResult, ProviderError> {
        self.delete_in_steps(filter).await.map_err(during("delete_instance_bulk"))
    }

    async fn prune_executions(
        &self,
        instance_id: &str,
        options: PruneOptions,
    ) -> Result<PruneResult, ProviderError> {
        let op = Prune { instance: instance_id.to_owned(), options };
        self.writer.run(op).await.map_err(during("prune_executions"))
    }

    async fn prune_executions_bulk(
        &self,
        filter: InstanceFilter,
        options: PruneOptions,
    ) -> Result<PruneResult, ProviderError> {
        self.prune_in_steps(filter, options).await.map_err(during("prune_executions_bulk"))
    }

    async fn try_delete_instance(
        &self,
        instance_id: &str,
        force: bool,
    ) -> Result<Result<DeleteInstanceResult, DeleteRefused>, ProviderError> {
        let op = DeleteTree { root: instance_id.to_owned(), force };
        match self.writer.run(op).await {
            Ok(result) => Ok(Ok(result)),
            Err(Failure::Refused(Refusal::Undeletable(refused, _))) => Ok(Err(refused)),
            Err(other) => Err(other.during("try_delete_instance")),
        }
    }

    async fn count_running_instances(&self) -> Result<u64, ProviderError> {
        let running = queries::metrics::running;
        self.readers.read(running).await.map_err(during("count_running_instances"))
    }

    async fn list_dead_letters(&self) -> Result<Vec<DeadLetter>, ProviderError> {
        let list = |c: Db<'_>| Ok(tables::dead_letters::list(c)?);
        self.readers.read(list).await.map_err(during("list_dead_letters"))
    }
}
