//! The management side: lists, infos, totals, trees.

use std::cmp::Reverse;

use async_trait::async_trait;
use duroxide::Event;
use duroxide::providers::{
    DeadLetter, DeleteInstanceResult, ExecutionInfo, InstanceFilter, InstanceInfo, ProviderAdmin,
    ProviderError, PruneOptions, PruneResult, QueueDepths, SystemMetrics,
};

use super::store::{TableStore, Tables};
use super::turns::Message;

#[async_trait]
impl ProviderAdmin for TableStore {
    async fn list_instances(&self) -> Result<Vec<String>, ProviderError> {
        Ok(self.transaction(|tables, _| tables.newest_first()))
    }

    async fn list_instances_by_status(&self, status: &str) -> Result<Vec<String>, ProviderError> {
        let mut ids = self.list_instances().await?;
        self.transaction(|tables, _| ids.retain(|id| tables.status(id) == Some(status)));
        Ok(ids)
    }

    async fn list_executions(&self, instance: &str) -> Result<Vec<u64>, ProviderError> {
        Ok(self
            .transaction(|tables, _| {
                tables.executions.get(instance).map(|all| all.keys().copied().collect())
            })
            .unwrap_or_default())
    }

    async fn read_history_with_execution_id(
        &self,
        instance: &str,
        execution_id: u64,
    ) -> Result<Vec<Event>, ProviderError> {
        self.transaction(|tables, _| tables.history(instance, execution_id))
    }

    async fn read_history(&self, instance: &str) -> Result<Vec<Event>, ProviderError> {
        self.transaction(|tables, _| tables.history(instance, tables.latest_execution(instance)))
    }

    async fn latest_execution_id(&self, instance: &str) -> Result<u64, ProviderError> {
        Ok(self.transaction(|tables, _| tables.latest_execution(instance)))
    }

    async fn get_instance_info(&self, instance: &str) -> Result<InstanceInfo, ProviderError> {
        self.transaction(|tables, _| tables.instance_info(instance))
            .ok_or_else(|| not_found("get_instance_info", instance))
    }

    async fn get_execution_info(
        &self,
        instance: &str,
        execution_id: u64,
    ) -> Result<ExecutionInfo, ProviderError> {
        self.transaction(|tables, _| tables.execution_info(instance, execution_id))
            .ok_or_else(|| not_found("get_execution_info", instance))
    }

    async fn get_system_metrics(&self) -> Result<SystemMetrics, ProviderError> {
        Ok(self.transaction(|tables, _| tables.system_metrics()))
    }

    async fn get_queue_depths(&self) -> Result<QueueDepths, ProviderError> {
        Ok(self.transaction(|tables, now| tables.queue_depths(now)))
    }

    async fn list_children(&self, instance_id: &str) -> Result<Vec<String>, ProviderError> {
        Ok(self.transaction(|tables, _| tables.children(instance_id)))
    }

    async fn get_parent_id(&self, instance_id: &str) -> Result<Option<String>, ProviderError> {
        self.transaction(|tables, _| {
            tables.instances.get(instance_id).map(|row| row.parent.clone())
        })
        .ok_or_else(|| not_found("get_parent_id", instance_id))
    }

    async fn delete_instances_atomic(
        &self,
        ids: &[String],
        force: bool,
    ) -> Result<DeleteInstanceResult, ProviderError> {
        self.transaction(|tables, now| tables.delete_all(ids, force, now))
    }

    async fn delete_instance_bulk(
        &self,
        filter: InstanceFilter,
    ) -> Result<DeleteInstanceResult, ProviderError> {
        self.transaction(|tables, now| tables.delete_bulk(&filter, now))
    }

    async fn prune_executions(
        &self,
        instance_id: &str,
        options: PruneOptions,
    ) -> Result<PruneResult, ProviderError> {
        self.transaction(|tables, _| tables.prune(instance_id, &options))
    }

    async fn prune_executions_bulk(
        &self,
        filter: InstanceFilter,
        options: PruneOptions,
    ) -> Result<PruneResult, ProviderError> {
        self.transaction(|tables, _| tables.prune_bulk(&filter, &options))
    }

    async fn list_dead_letters(&self) -> Result<Vec<DeadLetter>, ProviderError> {
        Ok(self.transaction(|tables, _| tables.dead_letters.clone()))
    }
}

impl Tables {
    /// All instances.
    pub(crate) fn newest_first(&self) -> Vec<String> {
        let mut rows: Vec<_> = self.instances.iter().collect();
        rows.sort_by_key(|(_, row)| Reverse(row.number));
        rows.into_iter().map(|(id, _)| id.clone()).collect()
    }

    /// The instances that name this one as their parent.
    pub(crate) fn children(&self, parent: &str) -> Vec<String> {
        let rows = self.instances.iter();
        let mut ids: Vec<String> = rows
            .filter(|(_, row)| row.parent.as_deref() == Some(parent))
            .map(|(id, _)| id.clone())
            .collect();
        ids.sort();
        ids
    }

    /// Whether the current execution of an instance has not ended.
    pub(crate) fn is_running(&self, instance: &str) -> bool {
        self.status(instance) == Some("Running")
    }

    fn status(&self, instance: &str) -> Option<&str> {
        let current = self.execution(instance, self.latest_execution(instance))?;
        Some(&current.status)
    }

    fn instance_info(&self, instance: &str) -> Option<InstanceInfo> {
        let row = self.instances.get(instance)?;
        let current_execution_id = self.latest_execution(instance);
        let current = self.execution(instance, current_execution_id)?;
        Some(InstanceInfo {
            instance_id: instance.to_owned(),
            orchestration_name: row.name.clone(),
            orchestration_version: row.version.clone(),
            current_execution_id,
            status: current.status.clone(),
            output: current.output.clone(),
            created_at: row.created_at_ms,
            updated_at: row.updated_at_ms,
            parent_instance_id: row.parent.clone(),
        })
    }

    fn execution_info(&self, instance: &str, execution_id: u64) -> Option<ExecutionInfo> {
        let row = self.execution(instance, execution_id)?;
        Some(ExecutionInfo {
            execution_id,
            status: row.status.clone(),
            output: row.output.clone(),
            started_at: row.started_at_ms,
            completed_at: row.completed_at_ms,
            event_count: row.events.len(),
        })
    }

    fn system_metrics(&self) -> SystemMetrics {
        let with = |status: &str| {
            self.instances.keys().filter(|id| self.status(id) == Some(status)).count() as u64
        };
        let executions = || self.executions.values().flat_map(|all| all.values());
        SystemMetrics {
            total_instances: self.instances.len() as u64,
            total_executions: executions().count() as u64,
            running_instances: with("Running"),
            completed_instances: with("Completed"),
            failed_instances: with("Failed"),
            total_events: executions().map(|row| row.events.len() as u64).sum(),
        }
    }

    /// Rows that are not locked; timers are messages once they are due, and have no queue of their own.
    fn queue_depths(&self, now: u64) -> QueueDepths {
        let is_free = |batch: &Option<String>| {
            let mut held = self.turn_locks.values().filter(|lock| lock.is_valid(now));
            !held.any(|lock| batch.as_ref() == Some(&lock.token))
        };
        let waits =
            |row: &Message| is_free(&row.batch) && (row.is_visible(now) || 0 < row.attempts);
        QueueDepths {
            orchestrator_queue: self.messages.iter().filter(|row| waits(row)).count(),
            worker_queue: self.jobs.iter().filter(|row| !row.is_locked(now)).count(),
            timer_queue: 0,
        }
    }
}

fn not_found(operation: &str, instance: &str) -> ProviderError {
    ProviderError::permanent(operation, format!("Instance {instance} not found"))
}
