//! The trait: each call is one transaction over the tables.

use std::collections::HashMap;
use std::time::Duration;

use async_trait::async_trait;
use duroxide::providers::{
    DispatcherCapabilityFilter, ExecutionMetadata, OrchestrationItem, Provider, ProviderAdmin,
    ProviderError, RejectedCommit, ScheduledActivityIdentifier, SessionFetchConfig, TagFilter,
    TurnCommit, WorkItem,
};
use duroxide::{Event, SystemStats};

use super::store::{TableStore, later};
use super::turns::Message;
use super::work::Job;

#[async_trait]
impl Provider for TableStore {
    fn name(&self) -> &str {
        "tables"
    }

    // ---- Turns ----------------------------------------------------------------------------------

    async fn enqueue_for_orchestrator(
        &self,
        item: WorkItem,
        delay: Option<Duration>,
    ) -> Result<(), ProviderError> {
        self.transaction(|tables, now| {
            let visible_at = later(now, delay.unwrap_or_default());
            let row = Message::new("enqueue_for_orchestrator", &item, now, visible_at)?;
            tables.post(row);
            Ok(())
        })
    }

    async fn fetch_orchestration_item(
        &self,
        lock_timeout: Duration,
        _poll_timeout: Duration, // no long polls: the runtime paces itself (R8.32)
        filter: Option<&DispatcherCapabilityFilter>,
    ) -> Result<Option<(OrchestrationItem, String, u32)>, ProviderError> {
        Ok(self.transaction(|tables, now| tables.fetch_turn(now, lock_timeout, filter)))
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
        self.commit_turn(lock_token, commit).await.map_err(|rejected| rejected.error)
    }

    async fn abandon_orchestration_item(
        &self,
        lock_token: &str,
        delay: Option<Duration>,
        ignore_attempt: bool,
    ) -> Result<(), ProviderError> {
        self.transaction(|tables, now| tables.abandon_turn(lock_token, now, delay, ignore_attempt))
    }

    async fn renew_orchestration_item_lock(
        &self,
        token: &str,
        extend_for: Duration,
    ) -> Result<(), ProviderError> {
        self.transaction(|tables, now| tables.renew_turn(token, now, extend_for))
    }

    // ---- Histories ------------------------------------------------------------------------------

    async fn read(&self, instance: &str) -> Result<Vec<Event>, ProviderError> {
        self.transaction(|tables, _| tables.history(instance, tables.latest_execution(instance)))
    }

    async fn read_with_execution(
        &self,
        instance: &str,
        execution_id: u64,
    ) -> Result<Vec<Event>, ProviderError> {
        self.transaction(|tables, _| tables.history(instance, execution_id))
    }

    async fn append_with_execution(
        &self,
        instance: &str,
        execution_id: u64,
        new_events: Vec<Event>,
    ) -> Result<(), ProviderError> {
        self.transaction(|tables, now| tables.append(instance, execution_id, &new_events, now))
    }

    // ---- Activities -----------------------------------------------------------------------------

    async fn enqueue_for_worker(&self, item: WorkItem) -> Result<(), ProviderError> {
        self.transaction(|tables, now| {
            tables.jobs.push(Job::new("enqueue_for_worker", &item, now)?);
            Ok(())
        })
    }

    async fn fetch_work_item(
        &self,
        lock_timeout: Duration,
        _poll_timeout: Duration,
        session: Option<&SessionFetchConfig>,
        tag_filter: &TagFilter,
    ) -> Result<Option<(WorkItem, String, u32)>, ProviderError> {
        if *tag_filter == TagFilter::None {
            return Ok(None); // without touching the store (R8.79)
        }
        Ok(self.transaction(|tables, now| tables.fetch_job(now, lock_timeout, session, tag_filter)))
    }

    async fn ack_work_item(
        &self,
        token: &str,
        completion: Option<WorkItem>,
    ) -> Result<(), ProviderError> {
        self.transaction(|tables, now| tables.ack_job(token, completion.as_ref(), now))
    }

    async fn renew_work_item_lock(
        &self,
        token: &str,
        extend_for: Duration,
    ) -> Result<(), ProviderError> {
        self.transaction(|tables, now| tables.renew_job(token, now, extend_for))
    }

    async fn abandon_work_item(
        &self,
        token: &str,
        delay: Option<Duration>,
        ignore_attempt: bool,
    ) -> Result<(), ProviderError> {
        self.transaction(|tables, now| tables.abandon_job(token, now, delay, ignore_attempt))
    }

    async fn renew_session_lock(
        &self,
        owner_ids: &[&str],
        extend_for: Duration,
        idle_timeout: Duration,
    ) -> Result<usize, ProviderError> {
        Ok(self.transaction(|tables, now| {
            tables.renew_sessions(owner_ids, now, extend_for, idle_timeout)
        }))
    }

    async fn cleanup_orphaned_sessions(
        &self,
        _idle_timeout: Duration,
    ) -> Result<usize, ProviderError> {
        Ok(self.transaction(|tables, now| tables.sweep_sessions(now)))
    }

    // ---- Status and values ----------------------------------------------------------------------

    async fn get_custom_status(
        &self,
        instance: &str,
        last_seen_version: u64,
    ) -> Result<Option<(Option<String>, u64)>, ProviderError> {
        Ok(self.transaction(|tables, _| tables.custom_status(instance, last_seen_version)))
    }

    async fn get_kv_value(
        &self,
        instance: &str,
        key: &str,
    ) -> Result<Option<String>, ProviderError> {
        Ok(self.transaction(|tables, _| tables.all_values(instance).remove(key)))
    }

    async fn get_kv_all_values(
        &self,
        instance: &str,
    ) -> Result<HashMap<String, String>, ProviderError> {
        Ok(self.transaction(|tables, _| tables.all_values(instance)))
    }

    async fn get_instance_stats(
        &self,
        instance: &str,
    ) -> Result<Option<SystemStats>, ProviderError> {
        self.transaction(|tables, _| tables.stats(instance))
    }

    // ---- Management -----------------------------------------------------------------------------

    fn as_management_capability(&self) -> Option<&dyn ProviderAdmin> {
        Some(self)
    }

    // ---- Calls with defaults that tables can do better ------------------------------------------

    async fn commit_turn(
        &self,
        lock_token: &str,
        commit: TurnCommit,
    ) -> Result<(), RejectedCommit> {
        self.transaction(|tables, now| tables.commit(lock_token, &commit, now))
            .map_err(|error| RejectedCommit { error, commit: Box::new(commit) })
    }

    fn commits_successors(&self) -> bool {
        true
    }

    async fn read_history_from(
        &self,
        instance: &str,
        execution_id: u64,
        from_event_id: u64,
        limit: Option<usize>,
    ) -> Result<Vec<Event>, ProviderError> {
        self.transaction(|tables, _| {
            tables.history_from(instance, execution_id, from_event_id, limit)
        })
    }
}
