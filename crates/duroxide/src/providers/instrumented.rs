//! Measures any store: how long its operations take, and how they fail (R9.30).

mod watch;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tokio::time::Instant;

use self::watch::Watch;
use super::{
    DirectTurn, DispatcherCapabilityFilter, ExecutionMetadata, FetchedTurn, OrchestrationItem,
    Provider, ProviderAdmin, ProviderError, RejectedCommit, ScheduledActivityIdentifier,
    SessionFetchConfig, StartOutcome, TagFilter, TimerTurn, TurnCommit, WorkItem,
};
use crate::runtime::observability::MetricsProvider;
use crate::runtime::observability::health::StoreHealth;
use duroxide_core::model::{Event, OrchestrationStatus, SystemStats};

/// A store that forwards every call and measures the important ones.
pub struct InstrumentedProvider {
    inner: Arc<dyn Provider>,
    metrics: Option<Arc<MetricsProvider>>,
    health: Arc<StoreHealth>,
}

impl InstrumentedProvider {
    /// Wraps `inner`; without metrics it only forwards.
    pub fn new(inner: Arc<dyn Provider>, metrics: Option<Arc<MetricsProvider>>) -> Self {
        Self { inner, metrics, health: Arc::default() }
    }

    /// What knows whether the store fails. Whoever fetches tells it so; the other calls do here.
    pub(crate) fn health(&self) -> &Arc<StoreHealth> {
        &self.health
    }

    /// Takes note of how a call ended that is not measured.
    async fn notice<T>(
        &self,
        operation: &'static str,
        call: impl Future<Output = Result<T, ProviderError>>,
    ) -> Result<T, ProviderError> {
        let result = call.await;
        self.note(operation, result.as_ref().err());
        result
    }

    fn note(&self, operation: &'static str, error: Option<&ProviderError>) {
        match error {
            None => self.health.worked(),
            Some(error) if error.is_retryable() => self.health.failed(operation, error),
            Some(_) => {} // It was there, and had its reasons.
        }
    }

    /// A fetch that brings something. One that brings nothing may not have asked anybody.
    async fn measure_fetch<T>(
        &self,
        operation: &'static str,
        call: impl Future<Output = Result<T, ProviderError>>,
        is_empty: impl FnOnce(&T) -> bool,
    ) -> Result<T, ProviderError> {
        let watch = self.start(operation);
        let result = call.await;
        watch.stop(result.as_ref().err());
        if result.as_ref().is_ok_and(|fetched| !is_empty(fetched)) {
            self.health.worked();
        }
        result
    }

    async fn measure<T>(
        &self,
        operation: &'static str,
        call: impl Future<Output = Result<T, ProviderError>>,
    ) -> Result<T, ProviderError> {
        let watch = self.start(operation);
        let result = call.await;
        watch.stop(result.as_ref().err());
        self.note(operation, result.as_ref().err());
        result
    }

    fn start(&self, operation: &'static str) -> Watch<'_> {
        Watch {
            operation,
            running: self.metrics.as_deref().map(|metrics| (metrics, Instant::now())),
        }
    }
}

#[async_trait]
impl Provider for InstrumentedProvider {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn version(&self) -> &str {
        self.inner.version()
    }

    async fn fetch_orchestration_item(
        &self,
        lock_timeout: Duration,
        poll_timeout: Duration,
        filter: Option<&DispatcherCapabilityFilter>,
    ) -> Result<Option<(OrchestrationItem, String, u32)>, ProviderError> {
        let call = self.inner.fetch_orchestration_item(lock_timeout, poll_timeout, filter);
        self.measure_fetch("fetch_orchestration_item", call, Option::is_none).await
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
        let call = self.inner.ack_orchestration_item(
            lock_token,
            execution_id,
            history_delta,
            worker_items,
            orchestrator_items,
            metadata,
            cancelled_activities,
        );
        self.measure("ack_orchestration_item", call).await
    }

    async fn abandon_orchestration_item(
        &self,
        lock_token: &str,
        delay: Option<Duration>,
        ignore_attempt: bool,
    ) -> Result<(), ProviderError> {
        let call = self.inner.abandon_orchestration_item(lock_token, delay, ignore_attempt);
        self.notice("abandon_orchestration_item", call).await
    }

    async fn read(&self, instance: &str) -> Result<Vec<Event>, ProviderError> {
        self.measure("read", self.inner.read(instance)).await
    }

    async fn read_with_execution(
        &self,
        instance: &str,
        execution_id: u64,
    ) -> Result<Vec<Event>, ProviderError> {
        let call = self.inner.read_with_execution(instance, execution_id);
        self.notice("read_with_execution", call).await
    }

    async fn append_with_execution(
        &self,
        instance: &str,
        execution_id: u64,
        new_events: Vec<Event>,
    ) -> Result<(), ProviderError> {
        self.inner.append_with_execution(instance, execution_id, new_events).await
    }

    async fn enqueue_for_worker(&self, item: WorkItem) -> Result<(), ProviderError> {
        self.inner.enqueue_for_worker(item).await
    }

    async fn fetch_work_item(
        &self,
        lock_timeout: Duration,
        poll_timeout: Duration,
        session: Option<&SessionFetchConfig>,
        tag_filter: &TagFilter,
    ) -> Result<Option<(WorkItem, String, u32)>, ProviderError> {
        let call = self.inner.fetch_work_item(lock_timeout, poll_timeout, session, tag_filter);
        self.measure_fetch("fetch_work_item", call, Option::is_none).await
    }

    async fn ack_work_item(
        &self,
        token: &str,
        completion: Option<WorkItem>,
    ) -> Result<(), ProviderError> {
        self.measure("ack_work_item", self.inner.ack_work_item(token, completion)).await
    }

    async fn renew_work_item_lock(
        &self,
        token: &str,
        extend_for: Duration,
    ) -> Result<(), ProviderError> {
        let call = self.inner.renew_work_item_lock(token, extend_for);
        self.notice("renew_work_item_lock", call).await
    }

    async fn renew_session_lock(
        &self,
        owner_ids: &[&str],
        extend_for: Duration,
        idle_timeout: Duration,
    ) -> Result<usize, ProviderError> {
        let call = self.inner.renew_session_lock(owner_ids, extend_for, idle_timeout);
        self.measure("renew_session_lock", call).await
    }

    async fn cleanup_orphaned_sessions(
        &self,
        idle_timeout: Duration,
    ) -> Result<usize, ProviderError> {
        let call = self.inner.cleanup_orphaned_sessions(idle_timeout);
        self.measure("cleanup_orphaned_sessions", call).await
    }

    async fn abandon_work_item(
        &self,
        token: &str,
        delay: Option<Duration>,
        ignore_attempt: bool,
    ) -> Result<(), ProviderError> {
        let call = self.inner.abandon_work_item(token, delay, ignore_attempt);
        self.notice("abandon_work_item", call).await
    }

    async fn renew_orchestration_item_lock(
        &self,
        token: &str,
        extend_for: Duration,
    ) -> Result<(), ProviderError> {
        let call = self.inner.renew_orchestration_item_lock(token, extend_for);
        self.notice("renew_orchestration_item_lock", call).await
    }

    async fn enqueue_for_orchestrator(
        &self,
        item: WorkItem,
        delay: Option<Duration>,
    ) -> Result<(), ProviderError> {
        let call = self.inner.enqueue_for_orchestrator(item, delay);
        self.measure("enqueue_orchestrator", call).await
    }

    fn as_management_capability(&self) -> Option<&dyn ProviderAdmin> {
        self.inner.as_management_capability()
    }

    async fn get_custom_status(
        &self,
        instance: &str,
        last_seen_version: u64,
    ) -> Result<Option<(Option<String>, u64)>, ProviderError> {
        self.inner.get_custom_status(instance, last_seen_version).await
    }

    async fn get_kv_value(
        &self,
        instance: &str,
        key: &str,
    ) -> Result<Option<String>, ProviderError> {
        self.inner.get_kv_value(instance, key).await
    }

    async fn get_kv_all_values(
        &self,
        instance: &str,
    ) -> Result<HashMap<String, String>, ProviderError> {
        self.inner.get_kv_all_values(instance).await
    }

    async fn get_instance_stats(
        &self,
        instance: &str,
    ) -> Result<Option<SystemStats>, ProviderError> {
        self.inner.get_instance_stats(instance).await
    }

    // The additive methods must reach the inner store too: their defaults would hide what it can do.

    async fn fetch_turn(
        &self,
        lock_timeout: Duration,
        poll_timeout: Duration,
        filter: Option<&DispatcherCapabilityFilter>,
    ) -> Result<Option<FetchedTurn>, ProviderError> {
        let call = self.inner.fetch_turn(lock_timeout, poll_timeout, filter);
        self.measure_fetch("fetch_orchestration_item", call, Option::is_none).await
    }

    async fn fetch_turns(
        &self,
        lock_timeout: Duration,
        poll_timeout: Duration,
        filter: Option<&DispatcherCapabilityFilter>,
        max: usize,
    ) -> Result<Vec<FetchedTurn>, ProviderError> {
        let call = self.inner.fetch_turns(lock_timeout, poll_timeout, filter, max);
        self.measure_fetch("fetch_orchestration_item", call, Vec::is_empty).await
    }

    async fn fetch_work_items(
        &self,
        lock_timeout: Duration,
        poll_timeout: Duration,
        session: Option<&SessionFetchConfig>,
        tag_filter: &TagFilter,
        max: usize,
    ) -> Result<Vec<(WorkItem, String, u32)>, ProviderError> {
        let call =
            self.inner.fetch_work_items(lock_timeout, poll_timeout, session, tag_filter, max);
        self.measure_fetch("fetch_work_item", call, Vec::is_empty).await
    }

    async fn read_history_from(
        &self,
        instance: &str,
        execution_id: u64,
        from_event_id: u64,
        limit: Option<usize>,
    ) -> Result<Vec<Event>, ProviderError> {
        let call = self.inner.read_history_from(instance, execution_id, from_event_id, limit);
        self.notice("read_history_from", call).await
    }

    async fn commit_turn(
        &self,
        lock_token: &str,
        commit: TurnCommit,
    ) -> Result<(), RejectedCommit> {
        let watch = self.start("ack_orchestration_item");
        let result = self.inner.commit_turn(lock_token, commit).await;
        let error = result.as_ref().err().map(|rejected| &rejected.error);
        watch.stop(error);
        self.note("ack_orchestration_item", error);
        result
    }

    fn commits_successors(&self) -> bool {
        self.inner.commits_successors()
    }

    fn commits_direct_turns(&self) -> bool {
        self.inner.commits_direct_turns()
    }

    async fn commit_direct_turn(&self, turn: DirectTurn) -> Result<(), ProviderError> {
        self.measure("ack_orchestration_item", self.inner.commit_direct_turn(turn)).await
    }

    fn commits_timer_turns(&self) -> bool {
        self.inner.commits_timer_turns()
    }

    async fn commit_timer_turn(&self, turn: TimerTurn) -> Result<(), ProviderError> {
        let watch = self.start("ack_orchestration_item");
        let result = self.inner.commit_timer_turn(turn).await;
        // A refusal is no error: the timer goes its usual way.
        watch.stop(result.as_ref().err().filter(|error| error.is_retryable()));
        self.note("ack_orchestration_item", result.as_ref().err());
        result
    }

    fn decides_starts(&self) -> bool {
        self.inner.decides_starts()
    }

    async fn start_instance(
        &self,
        start: WorkItem,
        replace_ended: bool,
    ) -> Result<StartOutcome, ProviderError> {
        let call = self.inner.start_instance(start, replace_ended);
        self.measure("enqueue_orchestrator", call).await
    }

    async fn read_status(&self, instance: &str) -> Result<OrchestrationStatus, ProviderError> {
        self.inner.read_status(instance).await
    }

    async fn wait_for_commit(&self, instance: &str, seen: u64, timeout: Duration) -> Option<u64> {
        self.inner.wait_for_commit(instance, seen, timeout).await
    }

    async fn lost_work_items(&self, tokens: &[&str]) -> Result<Vec<String>, ProviderError> {
        self.inner.lost_work_items(tokens).await
    }

    fn store_time_ms(&self) -> Option<u64> {
        self.inner.store_time_ms()
    }
}

#[cfg(test)]
mod tests;
