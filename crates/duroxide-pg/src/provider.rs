//! The store as the runtime sees it. Each method is a call of the store, by its name in errors.

use std::collections::HashMap;
use std::time::Duration;

use async_trait::async_trait;

use duroxide_core::clock::millis_rounded_up as millis;
use duroxide_core::model::{Event, OrchestrationStatus, SystemStats, WorkItem};
use duroxide_core::provider::{
    DirectTurn, DispatcherCapabilityFilter, ExecutionMetadata, FetchedTurn, OrchestrationItem,
    Provider, ProviderAdmin, ProviderError, RejectedCommit, ScheduledActivityIdentifier,
    SessionFetchConfig, StartOutcome, TagFilter, TimerTurn, TurnCommit,
};

use crate::error::Failure;
use crate::fetch::{turns_wanted, work_wanted};
use crate::store::PostgresProvider;

#[async_trait]
impl Provider for PostgresProvider {
    fn name(&self) -> &str {
        "postgres"
    }

    fn version(&self) -> &str {
        env!("CARGO_PKG_VERSION")
    }

    async fn fetch_orchestration_item(
        &self,
        lock_timeout: Duration,
        poll_timeout: Duration,
        filter: Option<&DispatcherCapabilityFilter>,
    ) -> Result<Option<(OrchestrationItem, String, u32)>, ProviderError> {
        let fetch = turns_wanted(lock_timeout, filter);
        let turns = self.store.poll_turns(fetch, 1, poll_timeout, true).await;
        let turn = turns.map_err(during("fetch_orchestration_item"))?.pop();
        Ok(turn.map(|turn| (turn.item, turn.lock_token, turn.attempt_count)))
    }

    async fn ack_orchestration_item(
        &self,
        lock_token: &str,
        execution_id: u64,
        history_delta: Vec<Event>,
        worker_items: Vec<WorkItem>,
        orchestrator_items: Vec<WorkItem>,
        metadata: ExecutionMetadata,
        cancelled_activities: Vec<ScheduledActivityIdentifier>,
    ) -> Result<(), ProviderError> {
        let commit = TurnCommit {
            execution_id,
            history_delta,
            worker_items,
            orchestrator_items,
            metadata,
            cancelled_activities,
            ..TurnCommit::default()
        };
        self.store.commit(lock_token, &commit).await.map_err(during("ack_orchestration_item"))
    }

    async fn abandon_orchestration_item(
        &self,
        lock_token: &str,
        delay: Option<Duration>,
        ignore_attempt: bool,
    ) -> Result<(), ProviderError> {
        self.store
            .abandon_turn(lock_token, delay.map_or(0, millis), ignore_attempt)
            .await
            .map_err(during("abandon_orchestration_item"))
    }

    async fn renew_orchestration_item_lock(
        &self,
        token: &str,
        extend_for: Duration,
    ) -> Result<(), ProviderError> {
        self.store
            .renew_turn(token, millis(extend_for))
            .await
            .map_err(during("renew_orchestration_item_lock"))
    }

    async fn enqueue_for_orchestrator(
        &self,
        item: WorkItem,
        delay: Option<Duration>,
    ) -> Result<(), ProviderError> {
        self.store
            .enqueue_message(&item, delay.map_or(0, millis))
            .await
            .map_err(during("enqueue_for_orchestrator"))
    }

    async fn read(&self, instance: &str) -> Result<Vec<Event>, ProviderError> {
        self.store.newest_history(instance).await.map_err(during("read"))
    }

    async fn read_with_execution(
        &self,
        instance: &str,
        execution_id: u64,
    ) -> Result<Vec<Event>, ProviderError> {
        self.store
            .history(instance, execution_id, 0, usize::MAX)
            .await
            .map_err(during("read_with_execution"))
    }

    async fn append_with_execution(
        &self,
        instance: &str,
        execution_id: u64,
        new_events: Vec<Event>,
    ) -> Result<(), ProviderError> {
        self.store
            .append(instance, execution_id, &new_events)
            .await
            .map_err(during("append_with_execution"))
    }

    async fn enqueue_for_worker(&self, item: WorkItem) -> Result<(), ProviderError> {
        self.store.enqueue_work(&item).await.map_err(during("enqueue_for_worker"))
    }

    async fn fetch_work_item(
        &self,
        lock_timeout: Duration,
        poll_timeout: Duration,
        session: Option<&SessionFetchConfig>,
        tag_filter: &TagFilter,
    ) -> Result<Option<(WorkItem, String, u32)>, ProviderError> {
        let fetch = work_wanted(lock_timeout, session, tag_filter);
        let jobs = self.store.poll_work(fetch, 1, poll_timeout).await;
        Ok(jobs.map_err(during("fetch_work_item"))?.pop())
    }

    async fn ack_work_item(
        &self,
        token: &str,
        completion: Option<WorkItem>,
    ) -> Result<(), ProviderError> {
        self.store.ack_work(token, completion.as_ref()).await.map_err(during("ack_work_item"))
    }

    async fn renew_work_item_lock(
        &self,
        token: &str,
        extend_for: Duration,
    ) -> Result<(), ProviderError> {
        self.store
            .renew_work(token, millis(extend_for))
            .await
            .map_err(during("renew_work_item_lock"))
    }

    async fn abandon_work_item(
        &self,
        token: &str,
        delay: Option<Duration>,
        ignore_attempt: bool,
    ) -> Result<(), ProviderError> {
        self.store
            .abandon_work(token, delay.map_or(0, millis), ignore_attempt)
            .await
            .map_err(during("abandon_work_item"))
    }

    async fn renew_session_lock(
        &self,
        owner_ids: &[&str],
        extend_for: Duration,
        idle_timeout: Duration,
    ) -> Result<usize, ProviderError> {
        if owner_ids.is_empty() {
            return Ok(0);
        }
        self.store
            .renew_sessions(owner_ids, millis(extend_for), millis(idle_timeout))
            .await
            .map_err(during("renew_session_lock"))
    }

    async fn cleanup_orphaned_sessions(
        &self,
        _idle_timeout: Duration,
    ) -> Result<usize, ProviderError> {
        self.store.clean_sessions().await.map_err(during("cleanup_orphaned_sessions"))
    }

    fn as_management_capability(&self) -> Option<&dyn ProviderAdmin> {
        Some(self)
    }

    async fn get_custom_status(
        &self,
        instance: &str,
        last_seen_version: u64,
    ) -> Result<Option<(Option<String>, u64)>, ProviderError> {
        self.store
            .custom_status(instance, last_seen_version)
            .await
            .map_err(during("get_custom_status"))
    }

    async fn get_kv_value(
        &self,
        instance: &str,
        key: &str,
    ) -> Result<Option<String>, ProviderError> {
        self.store.kv_value(instance, key).await.map_err(during("get_kv_value"))
    }

    async fn get_kv_all_values(
        &self,
        instance: &str,
    ) -> Result<HashMap<String, String>, ProviderError> {
        self.store.kv_values(instance).await.map_err(during("get_kv_all_values"))
    }

    async fn get_instance_stats(
        &self,
        instance: &str,
    ) -> Result<Option<SystemStats>, ProviderError> {
        self.store.stats(instance).await.map_err(during("get_instance_stats"))
    }

    async fn fetch_turn(
        &self,
        lock_timeout: Duration,
        poll_timeout: Duration,
        filter: Option<&DispatcherCapabilityFilter>,
    ) -> Result<Option<FetchedTurn>, ProviderError> {
        let fetch = turns_wanted(lock_timeout, filter);
        let turns = self.store.poll_turns(fetch, 1, poll_timeout, false).await;
        Ok(turns.map_err(during("fetch_turn"))?.pop())
    }

    async fn fetch_turns(
        &self,
        lock_timeout: Duration,
        poll_timeout: Duration,
        filter: Option<&DispatcherCapabilityFilter>,
        max: usize,
    ) -> Result<Vec<FetchedTurn>, ProviderError> {
        if max == 0 {
            return Ok(Vec::new());
        }
        let fetch = turns_wanted(lock_timeout, filter);
        self.store.poll_turns(fetch, max, poll_timeout, false).await.map_err(during("fetch_turns"))
    }

    async fn fetch_work_items(
        &self,
        lock_timeout: Duration,
        poll_timeout: Duration,
        session: Option<&SessionFetchConfig>,
        tag_filter: &TagFilter,
        max: usize,
    ) -> Result<Vec<(WorkItem, String, u32)>, ProviderError> {
        if max == 0 {
            return Ok(Vec::new());
        }
        let fetch = work_wanted(lock_timeout, session, tag_filter);
        self.store.poll_work(fetch, max, poll_timeout).await.map_err(during("fetch_work_items"))
    }

    async fn read_history_from(
        &self,
        instance: &str,
        execution_id: u64,
        from_event_id: u64,
        limit: Option<usize>,
    ) -> Result<Vec<Event>, ProviderError> {
        self.store
            .history(instance, execution_id, from_event_id, limit.unwrap_or(usize::MAX))
            .await
            .map_err(during("read_history_from"))
    }

    async fn commit_turn(
        &self,
        lock_token: &str,
        commit: TurnCommit,
    ) -> Result<(), RejectedCommit> {
        self.store.commit(lock_token, &commit).await.map_err(|failure| RejectedCommit {
            error: failure.during("commit_turn"),
            commit: Box::new(commit),
        })
    }

    fn commits_successors(&self) -> bool {
        true
    }

    fn decides_starts(&self) -> bool {
        true
    }

    async fn start_instance(
        &self,
        start: WorkItem,
        replace_ended: bool,
    ) -> Result<StartOutcome, ProviderError> {
        let started = self.store.start_instance(&start, replace_ended).await;
        started.map_err(during("start_instance"))
    }

    fn commits_direct_turns(&self) -> bool {
        true
    }

    async fn commit_direct_turn(&self, turn: DirectTurn) -> Result<(), ProviderError> {
        self.store.commit_direct(&turn).await.map_err(during("commit_direct_turn"))
    }

    fn commits_timer_turns(&self) -> bool {
        true
    }

    async fn commit_timer_turn(&self, turn: TimerTurn) -> Result<(), ProviderError> {
        self.store.commit_timers(&turn).await.map_err(during("commit_timer_turn"))
    }

    async fn read_status(&self, instance: &str) -> Result<OrchestrationStatus, ProviderError> {
        self.store.status(instance).await.map_err(during("read_status"))
    }

    async fn wait_for_commit(&self, instance: &str, seen: u64, timeout: Duration) -> Option<u64> {
        self.store.start_if_needed();
        Some(self.store.board.wait(instance, seen, timeout).await)
    }

    async fn lost_work_items(&self, tokens: &[&str]) -> Result<Vec<String>, ProviderError> {
        self.store.lost_work(tokens).await.map_err(during("lost_work_items"))
    }

    fn store_time_ms(&self) -> Option<u64> {
        Some(self.store.now_ms())
    }
}

/// Attaches the name of the method to a failure.
pub(crate) fn during(operation: &str) -> impl FnOnce(Failure) -> ProviderError {
    move |failure| failure.during(operation)
}
