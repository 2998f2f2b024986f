//! The store as its administrators see it.

use async_trait::async_trait;

use duroxide_core::model::Event;

use super::MemoryProvider;
use super::instances::Id;
use crate::providers::Refusal;
use crate::providers::{
    DeadLetter, DeleteInstanceResult, DeleteRefused, ExecutionInfo, InstanceFilter, InstanceInfo,
    InstanceTree, ProviderAdmin, ProviderError, PruneOptions, PruneResult, QueueDepths,
    SystemMetrics,
};

#[async_trait]
impl ProviderAdmin for MemoryProvider {
    async fn list_instances(&self) -> Result<Vec<String>, ProviderError> {
        Ok(self.with(|inner, _| {
            inner.state.instances.rows().rev().map(|(id, _)| id.to_string()).collect()
        }))
    }

    async fn list_instances_by_status(&self, status: &str) -> Result<Vec<String>, ProviderError> {
        Ok(self.with(|inner, _| {
            let rows = inner.state.instances.rows().rev();
            let matching = rows.filter(|(_, instance)| {
                instance.current().is_some_and(|(_, execution)| execution.status == status)
            });
            matching.map(|(id, _)| id.to_string()).collect()
        }))
    }

    async fn list_executions(&self, instance: &str) -> Result<Vec<u64>, ProviderError> {
        Ok(self.with(|inner, _| {
            let instance = inner.state.instances.get(instance);
            instance.map(|i| i.executions.keys().copied().collect()).unwrap_or_default()
        }))
    }

    async fn read_history_with_execution_id(
        &self,
        instance: &str,
        execution_id: u64,
    ) -> Result<Vec<Event>, ProviderError> {
        self.with(|inner, _| inner.state.read_from(instance, execution_id, 0, usize::MAX))
            .map_err(|refusal| refusal.during("read_history_with_execution_id"))
    }

    async fn read_history(&self, instance: &str) -> Result<Vec<Event>, ProviderError> {
        self.with(|inner, _| inner.state.read(instance))
            .map_err(|refusal| refusal.during("read_history"))
    }

    async fn latest_execution_id(&self, instance: &str) -> Result<u64, ProviderError> {
        Ok(self.with(|inner, _| inner.state.latest_execution_id(instance)))
    }

    async fn get_instance_info(&self, instance: &str) -> Result<InstanceInfo, ProviderError> {
        self.with(|inner, _| inner.state.instance_info(instance))
            .map_err(|refusal| refusal.during("get_instance_info"))
    }

    async fn get_execution_info(
        &self,
        instance: &str,
        execution_id: u64,
    ) -> Result<ExecutionInfo, ProviderError> {
        self.with(|inner, _| inner.state.execution_info(instance, execution_id))
            .map_err(|refusal| refusal.during("get_execution_info"))
    }

    async fn get_system_metrics(&self) -> Result<SystemMetrics, ProviderError> {
        Ok(self.with(|inner, _| inner.state.metrics()))
    }

    async fn get_queue_depths(&self) -> Result<QueueDepths, ProviderError> {
        Ok(self.with(|inner, now| inner.state.queue_depths(now)))
    }

    async fn list_children(&self, instance_id: &str) -> Result<Vec<String>, ProviderError> {
        Ok(self.with(|inner, _| {
            inner.state.instances.children(instance_id).map(|id| id.to_string()).collect()
        }))
    }

    async fn get_parent_id(&self, instance_id: &str) -> Result<Option<String>, ProviderError> {
        self.with(|inner, _| inner.state.parent(instance_id))
            .map(|parent| parent.map(|id| id.to_string()))
            .map_err(|refusal| refusal.during("get_parent_id"))
    }

    async fn get_instance_tree(&self, instance_id: &str) -> Result<InstanceTree, ProviderError> {
        let tree = self.with(|inner, _| inner.state.instances.tree(instance_id));
        let all_ids = tree.iter().map(|id| id.to_string()).collect();
        Ok(InstanceTree { root_id: instance_id.to_owned(), all_ids })
    }

    async fn delete_instances_atomic(
        &self,
        ids: &[String],
        force: bool,
    ) -> Result<DeleteInstanceResult, ProviderError> {
        self.with(|inner, now| {
            let ids: Vec<Id> = ids.iter().map(|id| inner.state.shared_id(id)).collect();
            inner.state.delete_exactly(&ids, force, now)
        })
        .map_err(|refusal| refusal.during("delete_instances_atomic"))
    }

    async fn delete_instance(
        &self,
        instance_id: &str,
        force: bool,
    ) -> Result<DeleteInstanceResult, ProviderError> {
        self.with(|inner, now| inner.state.delete_tree(instance_id, force, now))
            .map_err(|refusal| refusal.during("delete_instance"))
    }

    async fn delete_instance_bulk(
        &self,
        filter: InstanceFilter,
    ) -> Result<DeleteInstanceResult, ProviderError> {
        self.with(|inner, now| inner.state.delete_bulk(&filter, now))
            .map_err(|refusal| refusal.during("delete_instance_bulk"))
    }

    async fn prune_executions(
        &self,
        instance_id: &str,
        options: PruneOptions,
    ) -> Result<PruneResult, ProviderError> {
        self.with(|inner, _| inner.state.prune(instance_id, &options))
            .map_err(|refusal| refusal.during("prune_executions"))
    }

    async fn prune_executions_bulk(
        &self,
        filter: InstanceFilter,
        options: PruneOptions,
    ) -> Result<PruneResult, ProviderError> {
        self.with(|inner, _| inner.state.prune_bulk(&filter, &options))
            .map_err(|refusal| refusal.during("prune_executions_bulk"))
    }

    async fn try_delete_instance(
        &self,
        instance_id: &str,
        force: bool,
    ) -> Result<Result<DeleteInstanceResult, DeleteRefused>, ProviderError> {
        match self.with(|inner, now| inner.state.delete_tree(instance_id, force, now)) {
            Ok(result) => Ok(Ok(result)),
            Err(Refusal::Undeletable(refused, _)) => Ok(Err(refused)),
            Err(other) => Err(other.during("try_delete_instance")),
        }
    }

    async fn list_dead_letters(&self) -> Result<Vec<DeadLetter>, ProviderError> {
        Ok(self.with(|inner, _| inner.state.dead_letters.iter().cloned().collect()))
    }
}
