//! The wrapper as administrators see it, and what goes wrong there.

use async_trait::async_trait;
use duroxide::Event;
use duroxide::providers::{
    DeadLetter, DeleteInstanceResult, ExecutionInfo, InstanceFilter, InstanceInfo, InstanceTree,
    Provider, ProviderAdmin, ProviderError, PruneOptions, PruneResult, QueueDepths, SystemMetrics,
    WorkItem,
};

use super::list::Mutant;
use super::wrapper::MutantProvider;

#[async_trait]
impl ProviderAdmin for MutantProvider {
    async fn list_instances(&self) -> Result<Vec<String>, ProviderError> {
        let mut ids = self.inner.list_instances().await?;
        match self.mutant {
            Some(Mutant::ListsOldestFirst) => ids.reverse(),
            Some(Mutant::CreatesOnEnqueue) => {
                let addressed = self.notes().addressed.clone();
                ids.extend(addressed);
                ids.sort();
                ids.dedup();
            }
            _ => {}
        }
        Ok(ids)
    }

    async fn list_instances_by_status(&self, status: &str) -> Result<Vec<String>, ProviderError> {
        let mut ids = Vec::new();
        match self.mutant {
            Some(Mutant::ListsAnyCase) => {
                for known in ["Running", "Completed", "Failed", "ContinuedAsNew"] {
                    if known.eq_ignore_ascii_case(status) {
                        ids.extend(self.inner.list_instances_by_status(known).await?);
                    }
                }
            }
            Some(Mutant::ListsByOldStatus) => {
                for (id, instance) in self.inner.snapshot().instances {
                    if instance.executions.values().any(|execution| execution.status == status) {
                        ids.push(id);
                    }
                }
            }
            _ => ids = self.inner.list_instances_by_status(status).await?,
        }
        Ok(ids)
    }

    async fn list_executions(&self, instance: &str) -> Result<Vec<u64>, ProviderError> {
        let mut executions = self.inner.list_executions(instance).await?;
        if self.is(Mutant::ListsExecutionsBackwards) {
            executions.reverse();
        }
        let pruned = self.notes().pruned.get(instance).copied();
        executions.retain(|execution| Some(*execution) != pruned);
        Ok(executions)
    }

    async fn read_history_with_execution_id(
        &self,
        instance: &str,
        execution_id: u64,
    ) -> Result<Vec<Event>, ProviderError> {
        if self.is(Mutant::AdminReadsNewest) {
            return self.inner.read_history(instance).await;
        }
        self.inner.read_history_with_execution_id(instance, execution_id).await
    }

    async fn read_history(&self, instance: &str) -> Result<Vec<Event>, ProviderError> {
        if self.is(Mutant::AdminReadsFirst) {
            return self.inner.read_with_execution(instance, 1).await;
        }
        self.inner.read_history(instance).await
    }

    async fn latest_execution_id(&self, instance: &str) -> Result<u64, ProviderError> {
        if self.is(Mutant::LatestIsFirst) {
            return Ok(1);
        }
        self.inner.latest_execution_id(instance).await
    }

    async fn get_instance_info(&self, instance: &str) -> Result<InstanceInfo, ProviderError> {
        let info = self.inner.get_instance_info(instance).await;
        if self.is(Mutant::InventsInstances) && info.is_err() {
            return Ok(invented(instance));
        }
        let mut info = info?;
        match self.mutant {
            Some(Mutant::ShowsNoOutput) => info.output = None,
            Some(Mutant::ShowsNoParent) => info.parent_instance_id = None,
            Some(Mutant::ShowsFirstExecution) => {
                let first = self.inner.get_execution_info(instance, 1).await?;
                info.current_execution_id = 1;
                (info.status, info.output) = (first.status, first.output);
            }
            Some(Mutant::LosesCreationTime) => info.created_at = 0,
            Some(Mutant::LosesUpdateTime) => info.updated_at = info.created_at,
            _ => {}
        }
        Ok(info)
    }

    async fn get_execution_info(
        &self,
        instance: &str,
        execution_id: u64,
    ) -> Result<ExecutionInfo, ProviderError> {
        let info = self.inner.get_execution_info(instance, execution_id).await;
        if self.is(Mutant::InventsExecutions) && info.is_err() {
            let (status, output, started_at) = ("Running".to_owned(), None, 0);
            let (completed_at, event_count) = (None, 0);
            let nothing = ExecutionInfo {
                execution_id,
                status,
                output,
                started_at,
                completed_at,
                event_count,
            };
            return Ok(nothing);
        }
        let mut info = info?;
        match self.mutant {
            Some(Mutant::LosesEndTime) => info.completed_at = None,
            Some(Mutant::MiscountsEvents) => info.event_count += 1,
            _ => {}
        }
        Ok(info)
    }

    async fn get_system_metrics(&self) -> Result<SystemMetrics, ProviderError> {
        let mut metrics = self.inner.get_system_metrics().await?;
        match self.mutant {
            Some(Mutant::CountsAllAsRunning) => metrics.running_instances = metrics.total_instances,
            Some(Mutant::CountsCurrentExecutionsOnly) => {
                metrics.total_executions = metrics.total_instances;
            }
            Some(Mutant::CountsFailedAsCompleted) => {
                metrics.completed_instances += std::mem::take(&mut metrics.failed_instances);
            }
            Some(Mutant::CountsNoEvents) => metrics.total_events = 0,
            _ => {}
        }
        Ok(metrics)
    }

    async fn get_queue_depths(&self) -> Result<QueueDepths, ProviderError> {
        let mut depths = self.inner.get_queue_depths().await?;
        if self.is(Mutant::CountsLockedRows) {
            let snapshot = self.inner.snapshot();
            depths.orchestrator_queue = snapshot.orchestrator_queue.len();
            depths.worker_queue = snapshot.worker_queue.len();
        }
        if self.is(Mutant::CountsVisibleRowsOnly) {
            let snapshot = self.inner.snapshot();
            let now = snapshot.taken_at_ms;
            let messages = snapshot.orchestrator_queue.iter();
            depths.orchestrator_queue -=
                messages.filter(|row| now < row.visible_at && 0 < row.attempts).count();
            let work = snapshot.worker_queue.iter();
            depths.worker_queue -= work.filter(|row| Some(now) < row.hidden_until).count();
        }
        if self.is(Mutant::CountsSleepingTimers) {
            let snapshot = self.inner.snapshot();
            let now = snapshot.taken_at_ms;
            let messages = snapshot.orchestrator_queue.iter();
            depths.orchestrator_queue +=
                messages.filter(|row| now < row.visible_at && row.attempts == 0).count();
        }
        Ok(depths)
    }

    async fn list_children(&self, instance_id: &str) -> Result<Vec<String>, ProviderError> {
        if self.is(Mutant::ListsGrandchildren) {
            let tree = self.inner.get_instance_tree(instance_id).await?;
            return Ok(tree.all_ids.into_iter().skip(1).collect());
        }
        let mut children = self.inner.list_children(instance_id).await?;
        if self.is(Mutant::ListsRunningChildrenOnly) {
            let running = self.inner.list_instances_by_status("Running").await?;
            children.retain(|child| running.contains(child));
        }
        Ok(children)
    }

    async fn get_parent_id(&self, instance_id: &str) -> Result<Option<String>, ProviderError> {
        let parent = self.inner.get_parent_id(instance_id).await;
        if self.is(Mutant::FindsParentOfUnknown) { Ok(parent.unwrap_or(None)) } else { parent }
    }

    async fn get_instance_tree(&self, instance_id: &str) -> Result<InstanceTree, ProviderError> {
        let mut tree = self.inner.get_instance_tree(instance_id).await?;
        if self.is(Mutant::CutsTree) {
            tree.all_ids.truncate(1);
        }
        Ok(tree)
    }

    async fn delete_instances_atomic(
        &self,
        ids: &[String],
        force: bool,
    ) -> Result<DeleteInstanceResult, ProviderError> {
        match self.mutant {
            Some(Mutant::DeletesOneByOne) => {
                let mut total = DeleteInstanceResult::default();
                for id in ids {
                    let one = self.inner.delete_instances_atomic(std::slice::from_ref(id), force);
                    add(&mut total, one.await?);
                }
                Ok(total)
            }
            Some(Mutant::DeletesOrphansToBe) => {
                let mut all = Vec::new();
                for id in ids {
                    all.extend(self.inner.get_instance_tree(id).await?.all_ids);
                }
                all.sort();
                all.dedup();
                self.inner.delete_instances_atomic(&all, force).await
            }
            _ => self.inner.delete_instances_atomic(ids, force).await,
        }
    }

    async fn delete_instance(
        &self,
        instance_id: &str,
        force: bool,
    ) -> Result<DeleteInstanceResult, ProviderError> {
        let before = self.inner.snapshot();
        self.refuse_orphan(instance_id).await?;
        let status = self.inner.get_custom_status(instance_id, 0).await?;
        let deleted = match self.mutant {
            Some(Mutant::DeletesRunning) => self.inner.delete_instance(instance_id, true).await,
            Some(Mutant::DeletesChildren) => {
                let tree = self.inner.get_instance_tree(instance_id).await?;
                self.inner.delete_instances_atomic(&tree.all_ids, force).await
            }
            _ => self.inner.delete_instance(instance_id, force).await,
        };
        match (self.mutant, deleted) {
            (Some(Mutant::DeletesUnknown), Err(_))
                if !before.instances.contains_key(instance_id) =>
            {
                Ok(DeleteInstanceResult::default())
            }
            (Some(Mutant::MiscountsDeleted), Ok(deleted)) => {
                Ok(DeleteInstanceResult { instances_deleted: 1, ..deleted })
            }
            (Some(Mutant::LeavesMessages), Ok(deleted)) => {
                for row in before.orchestrator_queue {
                    if row.instance == instance_id {
                        self.inner.enqueue_for_orchestrator(row.item, None).await?;
                    }
                }
                Ok(deleted)
            }
            (Some(Mutant::LeavesWork), Ok(deleted)) => {
                for row in before.worker_queue {
                    if matches!(&row.item, WorkItem::ActivityExecute { instance, .. }
                        if instance == instance_id)
                    {
                        self.inner.enqueue_for_worker(row.item).await?;
                    }
                }
                Ok(deleted)
            }
            (_, Ok(deleted)) if self.leaves_of_lives() => {
                self.leave_of(&before, &[instance_id.to_owned()]).await?;
                Ok(deleted)
            }
            (Some(Mutant::LeavesCustomStatus), Ok(deleted)) => {
                self.notes().left_status.extend(status.map(|s| (instance_id.to_owned(), s)));
                Ok(deleted)
            }
            (_, deleted) => deleted,
        }
    }

    async fn delete_instance_bulk(
        &self,
        filter: InstanceFilter,
    ) -> Result<DeleteInstanceResult, ProviderError> {
        let mut filter = filter;
        match self.mutant {
            Some(Mutant::BulkIgnoresIds) => filter.instance_ids = None,
            Some(Mutant::BulkIgnoresLimit) => filter.limit = None,
            Some(Mutant::BulkIgnoresTime) => filter.completed_before = None,
            Some(Mutant::BulkIncludesTime) => {
                filter.completed_before =
                    filter.completed_before.map(|time| time.saturating_add(1));
            }
            Some(Mutant::BulkTakesNoIdsForAll) => {
                filter.instance_ids = filter.instance_ids.filter(|ids| !ids.is_empty());
            }
            Some(Mutant::BulkDeletesChildren) => {
                for id in filter.instance_ids.iter().flatten() {
                    if let Ok(Some(_)) = self.inner.get_parent_id(id).await {
                        let tree = self.inner.get_instance_tree(id).await?;
                        return self.inner.delete_instances_atomic(&tree.all_ids, false).await;
                    }
                }
            }
            Some(Mutant::BulkDeletesRunning) => {
                let mut total = DeleteInstanceResult::default();
                for id in filter.instance_ids.iter().flatten() {
                    if let Ok(deleted) = self.inner.delete_instance(id, true).await {
                        add(&mut total, deleted);
                    }
                }
                add(&mut total, self.inner.delete_instance_bulk(filter).await?);
                return Ok(total);
            }
            Some(Mutant::BulkLeavesStarts) => {
                let (before, ids) = (self.inner.snapshot(), filter.instance_ids.clone());
                let deleted = self.inner.delete_instance_bulk(filter).await?;
                self.leave_of(&before, &ids.unwrap_or_default()).await?;
                return Ok(deleted);
            }
            _ => {}
        }
        self.inner.delete_instance_bulk(filter).await
    }

    async fn prune_executions(
        &self,
        instance_id: &str,
        options: PruneOptions,
    ) -> Result<PruneResult, ProviderError> {
        let pruned = self.inner.prune_executions(instance_id, self.wrong_options(options)).await;
        self.notes().valueless.insert(instance_id.to_owned());
        match (self.mutant, pruned) {
            (Some(Mutant::PrunesUnknown), Err(_)) => Ok(PruneResult::default()),
            (Some(Mutant::PrunesCurrent), Ok(mut pruned)) => {
                let current = self.inner.latest_execution_id(instance_id).await?;
                self.notes().pruned.insert(instance_id.to_owned(), current);
                pruned.executions_deleted += 1;
                Ok(pruned)
            }
            (_, pruned) => pruned,
        }
    }

    async fn prune_executions_bulk(
        &self,
        filter: InstanceFilter,
        options: PruneOptions,
    ) -> Result<PruneResult, ProviderError> {
        let mut filter = filter;
        match self.mutant {
            Some(Mutant::BulkPruneIgnoresIds) => filter.instance_ids = None,
            Some(Mutant::BulkPruneSkipsRunning) => {
                let running = self.inner.list_instances_by_status("Running").await?;
                let mut ids = filter.instance_ids.unwrap_or(self.inner.list_instances().await?);
                ids.retain(|id| !running.contains(id));
                filter.instance_ids = Some(ids);
            }
            _ => {}
        }
        let options = self.wrong_options(options);
        let mut pruned = self.inner.prune_executions_bulk(filter, options).await?;
        if self.is(Mutant::BulkPruneCountsChanged) {
            pruned.instances_processed = pruned.instances_processed.min(pruned.executions_deleted);
        }
        Ok(pruned)
    }

    async fn count_running_instances(&self) -> Result<u64, ProviderError> {
        self.inner.count_running_instances().await
    }

    async fn list_dead_letters(&self) -> Result<Vec<DeadLetter>, ProviderError> {
        self.inner.list_dead_letters().await
    }
}

impl MutantProvider {
    fn wrong_options(&self, mut options: PruneOptions) -> PruneOptions {
        match self.mutant {
            Some(Mutant::PruneIgnoresNumber) => options.keep_last = None,
            Some(Mutant::PruneIgnoresTime) => options.completed_before = None,
            Some(Mutant::PruneIncludesTime) => {
                options.completed_before =
                    options.completed_before.map(|time| time.saturating_add(1));
            }
            Some(Mutant::PruneKeepsOneMore) => {
                options.keep_last = options.keep_last.map(|keep| keep + 1);
            }
            _ => {}
        }
        options
    }
}

/// Information on an instance that does not exist.
fn invented(instance: &str) -> InstanceInfo {
    InstanceInfo {
        instance_id: instance.to_owned(),
        orchestration_name: String::new(),
        orchestration_version: String::new(),
        current_execution_id: 1,
        status: "Running".to_owned(),
        output: None,
        created_at: 0,
        updated_at: 0,
        parent_instance_id: None,
    }
}

fn add(total: &mut DeleteInstanceResult, one: DeleteInstanceResult) {
    total.instances_deleted += one.instances_deleted;
    total.executions_deleted += one.executions_deleted;
    total.events_deleted += one.events_deleted;
    total.queue_messages_deleted += one.queue_messages_deleted;
}
