//! A store for tests of what surrounds stores: notes every call, answers or fails as told.

use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;

use super::*;
use duroxide_core::model::{Event, OrchestrationStatus, SystemStats};

/// Notes its calls. Each answer differs from the default body's, so that a lost override shows.
#[derive(Default)]
pub(crate) struct ScriptedProvider {
    calls: Mutex<Vec<&'static str>>,
    /// Message of every further error; `None` succeeds.
    fail_with: Mutex<Option<&'static str>>,
    /// How long each call takes.
    delay: Mutex<Duration>,
    without_admin: AtomicBool,
}

impl ScriptedProvider {
    pub(crate) fn fail_with(&self, message: impl Into<Option<&'static str>>) {
        *self.fail_with.lock().unwrap() = message.into();
    }

    pub(crate) fn take(&self, delay: Duration) {
        *self.delay.lock().unwrap() = delay;
    }

    pub(crate) fn lose_admin(&self) {
        self.without_admin.store(true, Ordering::Relaxed);
    }

    /// The calls since last asked.
    pub(crate) fn calls(&self) -> Vec<&'static str> {
        std::mem::take(&mut self.calls.lock().unwrap())
    }

    async fn answer<T>(&self, call: &'static str, value: T) -> Result<T, ProviderError> {
        self.calls.lock().unwrap().push(call);
        let delay = *self.delay.lock().unwrap();
        tokio::time::sleep(delay).await;
        match *self.fail_with.lock().unwrap() {
            Some(message) => Err(ProviderError::retryable(call, message)),
            None => Ok(value),
        }
    }
}

#[async_trait]
impl Provider for ScriptedProvider {
    fn name(&self) -> &str {
        "scripted"
    }

    fn version(&self) -> &str {
        "9.8.7"
    }

    async fn fetch_orchestration_item(
        &self,
        _lock_timeout: Duration,
        _poll_timeout: Duration,
        _filter: Option<&DispatcherCapabilityFilter>,
    ) -> Result<Option<(OrchestrationItem, String, u32)>, ProviderError> {
        self.answer("fetch_orchestration_item", None).await
    }

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
        self.answer("ack_orchestration_item", ()).await
    }

    async fn abandon_orchestration_item(
        &self,
        _lock_token: &str,
        _delay: Option<Duration>,
        _ignore_attempt: bool,
    ) -> Result<(), ProviderError> {
        self.answer("abandon_orchestration_item", ()).await
    }

    async fn read(&self, _instance: &str) -> Result<Vec<Event>, ProviderError> {
        self.answer("read", Vec::new()).await
    }

    async fn read_with_execution(
        &self,
        _instance: &str,
        _execution_id: u64,
    ) -> Result<Vec<Event>, ProviderError> {
        self.answer("read_with_execution", Vec::new()).await
    }

    async fn append_with_execution(
        &self,
        _instance: &str,
        _execution_id: u64,
        _new_events: Vec<Event>,
    ) -> Result<(), ProviderError> {
        self.answer("append_with_execution", ()).await
    }

    async fn enqueue_for_worker(&self, _item: WorkItem) -> Result<(), ProviderError> {
        self.answer("enqueue_for_worker", ()).await
    }

    async fn fetch_work_item(
        &self,
        _lock_timeout: Duration,
        _poll_timeout: Duration,
        _session: Option<&SessionFetchConfig>,
        _tag_filter: &TagFilter,
    ) -> Result<Option<(WorkItem, String, u32)>, ProviderError> {
        self.answer("fetch_work_item", None).await
    }

    async fn ack_work_item(
        &self,
        _token: &str,
        _completion: Option<WorkItem>,
    ) -> Result<(), ProviderError> {
        self.answer("ack_work_item", ()).await
    }

    async fn renew_work_item_lock(
        &self,
        _token: &str,
        _extend_for: Duration,
    ) -> Result<(), ProviderError> {
        self.answer("renew_work_item_lock", ()).await
    }

    async fn renew_session_lock(
        &self,
        owner_ids: &[&str],
        _extend_for: Duration,
        _idle_timeout: Duration,
    ) -> Result<usize, ProviderError> {
        self.answer("renew_session_lock", owner_ids.len()).await
    }

    async fn cleanup_orphaned_sessions(
        &self,
        _idle_timeout: Duration,
    ) -> Result<usize, ProviderError> {
        self.answer("cleanup_orphaned_sessions", 4).await
    }

    async fn abandon_work_item(
        &self,
        _token: &str,
        _delay: Option<Duration>,
        _ignore_attempt: bool,
    ) -> Result<(), ProviderError> {
        self.answer("abandon_work_item", ()).await
    }

    async fn renew_orchestration_item_lock(
        &self,
        _token: &str,
        _extend_for: Duration,
    ) -> Result<(), ProviderError> {
        self.answer("renew_orchestration_item_lock", ()).await
    }

    async fn enqueue_for_orchestrator(
        &self,
        _item: WorkItem,
        _delay: Option<Duration>,
    ) -> Result<(), ProviderError> {
        self.answer("enqueue_for_orchestrator", ()).await
    }

    fn as_management_capability(&self) -> Option<&dyn ProviderAdmin> {
        (!self.without_admin.load(Ordering::Relaxed)).then_some(self)
    }

    async fn get_custom_status(
        &self,
        _instance: &str,
        _last_seen_version: u64,
    ) -> Result<Option<(Option<String>, u64)>, ProviderError> {
        self.answer("get_custom_status", None).await
    }

    async fn get_kv_value(
        &self,
        _instance: &str,
        key: &str,
    ) -> Result<Option<String>, ProviderError> {
        self.answer("get_kv_value", Some(key.to_owned())).await
    }

    async fn get_kv_all_values(
        &self,
        _instance: &str,
    ) -> Result<HashMap<String, String>, ProviderError> {
        self.answer("get_kv_all_values", HashMap::new()).await
    }

    async fn get_instance_stats(
        &self,
        _instance: &str,
    ) -> Result<Option<SystemStats>, ProviderError> {
        self.answer("get_instance_stats", None).await
    }

    async fn fetch_turn(
        &self,
        _lock_timeout: Duration,
        _poll_timeout: Duration,
        _filter: Option<&DispatcherCapabilityFilter>,
    ) -> Result<Option<FetchedTurn>, ProviderError> {
        self.answer("fetch_turn", None).await
    }

    async fn fetch_turns(
        &self,
        _lock_timeout: Duration,
        _poll_timeout: Duration,
        _filter: Option<&DispatcherCapabilityFilter>,
        _max: usize,
    ) -> Result<Vec<FetchedTurn>, ProviderError> {
        self.answer("fetch_turns", Vec::new()).await
    }

    async fn fetch_work_items(
        &self,
        _lock_timeout: Duration,
        _poll_timeout: Duration,
        _session: Option<&SessionFetchConfig>,
        _tag_filter: &TagFilter,
        _max: usize,
    ) -> Result<Vec<(WorkItem, String, u32)>, ProviderError> {
        self.answer("fetch_work_items", Vec::new()).await
    }

    async fn read_history_from(
        &self,
        _instance: &str,
        _execution_id: u64,
        _from_event_id: u64,
        _limit: Option<usize>,
    ) -> Result<Vec<Event>, ProviderError> {
        self.answer("read_history_from", Vec::new()).await
    }

    async fn commit_turn(
        &self,
        _lock_token: &str,
        commit: TurnCommit,
    ) -> Result<(), RejectedCommit> {
        let answer = self.answer("commit_turn", ()).await;
        answer.map_err(|error| RejectedCommit { error, commit: Box::new(commit) })
    }

    fn commits_successors(&self) -> bool {
        true
    }

    async fn start_instance(
        &self,
        _start: WorkItem,
        _replace_ended: bool,
    ) -> Result<StartOutcome, ProviderError> {
        self.answer("start_instance", StartOutcome::Started).await
    }

    async fn read_status(&self, _instance: &str) -> Result<OrchestrationStatus, ProviderError> {
        self.answer("read_status", OrchestrationStatus::NotFound).await
    }

    async fn wait_for_commit(&self, _instance: &str, seen: u64, _timeout: Duration) -> Option<u64> {
        self.calls.lock().unwrap().push("wait_for_commit");
        Some(seen + 1)
    }

    async fn lost_work_items(&self, _tokens: &[&str]) -> Result<Vec<String>, ProviderError> {
        self.answer("lost_work_items", Vec::new()).await
    }

    fn store_time_ms(&self) -> Option<u64> {
        Some(42)
    }
}

#[async_trait]
impl ProviderAdmin for ScriptedProvider {
    async fn list_instances(&self) -> Result<Vec<String>, ProviderError> {
        self.answer("list_instances", vec!["i1".to_owned()]).await
    }

    async fn list_instances_by_status(&self, _status: &str) -> Result<Vec<String>, ProviderError> {
        self.answer("list_instances_by_status", Vec::new()).await
    }

    async fn list_executions(&self, _instance: &str) -> Result<Vec<u64>, ProviderError> {
        self.answer("list_executions", Vec::new()).await
    }

    async fn read_history_with_execution_id(
        &self,
        _instance: &str,
        _execution_id: u64,
    ) -> Result<Vec<Event>, ProviderError> {
        self.answer("read_history_with_execution_id", Vec::new()).await
    }

    async fn read_history(&self, _instance: &str) -> Result<Vec<Event>, ProviderError> {
        self.answer("read_history", Vec::new()).await
    }

    async fn latest_execution_id(&self, _instance: &str) -> Result<u64, ProviderError> {
        self.answer("latest_execution_id", 1).await
    }

    async fn get_instance_info(&self, instance: &str) -> Result<InstanceInfo, ProviderError> {
        Err(DeleteRefused::NotFound.into_error(instance))
    }

    async fn get_execution_info(
        &self,
        instance: &str,
        _execution_id: u64,
    ) -> Result<ExecutionInfo, ProviderError> {
        Err(DeleteRefused::NotFound.into_error(instance))
    }

    async fn get_system_metrics(&self) -> Result<SystemMetrics, ProviderError> {
        let metrics = SystemMetrics { running_instances: 7, ..Default::default() };
        self.answer("get_system_metrics", metrics).await
    }

    async fn get_queue_depths(&self) -> Result<QueueDepths, ProviderError> {
        let depths = QueueDepths { orchestrator_queue: 3, worker_queue: 2, timer_queue: 0 };
        self.answer("get_queue_depths", depths).await
    }

    async fn list_children(&self, _instance_id: &str) -> Result<Vec<String>, ProviderError> {
        self.answer("list_children", Vec::new()).await
    }

    async fn get_parent_id(&self, _instance_id: &str) -> Result<Option<String>, ProviderError> {
        self.answer("get_parent_id", None).await
    }

    async fn delete_instances_atomic(
        &self,
        _ids: &[String],
        _force: bool,
    ) -> Result<DeleteInstanceResult, ProviderError> {
        self.answer("delete_instances_atomic", DeleteInstanceResult::default()).await
    }

    async fn delete_instance_bulk(
        &self,
        _filter: InstanceFilter,
    ) -> Result<DeleteInstanceResult, ProviderError> {
        self.answer("delete_instance_bulk", DeleteInstanceResult::default()).await
    }

    async fn prune_executions(
        &self,
        _instance_id: &str,
        _options: PruneOptions,
    ) -> Result<PruneResult, ProviderError> {
        self.answer("prune_executions", PruneResult::default()).await
    }

    async fn prune_executions_bulk(
        &self,
        _filter: InstanceFilter,
        _options: PruneOptions,
    ) -> Result<PruneResult, ProviderError> {
        self.answer("prune_executions_bulk", PruneResult::default()).await
    }
}
