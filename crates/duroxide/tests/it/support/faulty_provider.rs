//! A store that fails as told, see [`Faults`].
//!
//! It forwards the contract's methods only, as a wrapper written by somebody else would, and turns
//! with successors or outcomes if told so.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use duroxide::providers::{
    DirectTurn, DispatcherCapabilityFilter, ExecutionMetadata, FetchedTurn, OrchestrationItem,
    Provider, ProviderAdmin, ProviderError, RejectedCommit, ScheduledActivityIdentifier,
    SessionFetchConfig, TagFilter, TimerTurn, TurnCommit, WorkItem,
};
use duroxide::{Event, SystemStats};

use super::faults::{Fault, Faults};

/// The store.
pub struct FaultyProvider {
    inner: Arc<dyn Provider>,
    faults: Faults,
}

impl FaultyProvider {
    pub fn wrap(inner: Arc<dyn Provider>, faults: &Faults) -> Arc<dyn Provider> {
        Arc::new(Self { inner, faults: faults.clone() })
    }
}

macro_rules! met {
    ($self:ident, $method:expr, $call:expr) => {
        match $self.faults.meet($method) {
            None => $call.await,
            Some(Fault::Before(error)) => Err(error),
            Some(Fault::After(error)) => $call.await.and(Err(error)),
            Some(Fault::Hang) => std::future::pending().await,
            Some(Fault::HangAfter) => {
                $call.await?;
                std::future::pending().await
            }
            Some(Fault::Panic) => panic!("the store panics"),
            Some(Fault::Slow(delay)) => {
                tokio::time::sleep(delay).await;
                $call.await
            }
            Some(Fault::Gate(gate)) => {
                gate.acquire().await.unwrap().forget();
                $call.await
            }
        }
    };
}

impl FaultyProvider {
    async fn commit_bundle(
        &self,
        method: &'static str,
        token: &str,
        commit: TurnCommit,
    ) -> Result<(), ProviderError> {
        let stored = async {
            self.inner.commit_turn(token, commit).await.map_err(|rejected| rejected.error)
        };
        met!(self, method, stored)
    }
}

#[async_trait]
impl Provider for FaultyProvider {
    fn name(&self) -> &str {
        "faulty"
    }

    fn store_time_ms(&self) -> Option<u64> {
        let hidden = self.faults.0.lock().unwrap().clock_hidden;
        self.inner.store_time_ms().filter(|_| !hidden)
    }

    async fn fetch_orchestration_item(
        &self,
        lock_timeout: Duration,
        poll_timeout: Duration,
        filter: Option<&DispatcherCapabilityFilter>,
    ) -> Result<Option<(OrchestrationItem, String, u32)>, ProviderError> {
        let (blind, twist) = {
            let plan = self.faults.0.lock().unwrap();
            (plan.blind, plan.twist.clone())
        };
        let filter = filter.filter(|_| !blind);
        let fetch = self.inner.fetch_orchestration_item(lock_timeout, poll_timeout, filter);
        let mut fetched = met!(self, "fetch_orchestration_item", fetch);
        if let (Some(twist), Ok(Some((item, _, _)))) = (twist, &mut fetched) {
            twist(item);
        }
        fetched
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
        met!(
            self,
            "ack_orchestration_item",
            self.inner.ack_orchestration_item(
                lock_token,
                execution_id,
                history_delta,
                worker_items,
                orchestrator_items,
                metadata,
                cancelled_activities,
            )
        )
    }

    async fn fetch_turn(
        &self,
        lock_timeout: Duration,
        poll_timeout: Duration,
        filter: Option<&DispatcherCapabilityFilter>,
    ) -> Result<Option<FetchedTurn>, ProviderError> {
        if self.faults.0.lock().unwrap().bare {
            let fetch = self.inner.fetch_turn(lock_timeout, poll_timeout, filter);
            return met!(self, "fetch_orchestration_item", fetch);
        }
        let fetched = self.fetch_orchestration_item(lock_timeout, poll_timeout, filter).await?;
        Ok(fetched.map(|(item, token, attempt)| FetchedTurn::with_history(item, token, attempt)))
    }

    async fn read_history_from(
        &self,
        instance: &str,
        execution_id: u64,
        from_event_id: u64,
        limit: Option<usize>,
    ) -> Result<Vec<Event>, ProviderError> {
        let read = self.inner.read_history_from(instance, execution_id, from_event_id, limit);
        met!(self, "read_history_from", read)
    }

    fn commits_successors(&self) -> bool {
        self.faults.0.lock().unwrap().successors && self.inner.commits_successors()
    }

    fn commits_direct_turns(&self) -> bool {
        self.faults.0.lock().unwrap().direct_turns && self.inner.commits_direct_turns()
    }

    async fn commit_direct_turn(&self, turn: DirectTurn) -> Result<(), ProviderError> {
        self.faults.note_dropped_timers(&turn.commit);
        met!(self, "commit_direct_turn", self.inner.commit_direct_turn(turn))
    }

    fn commits_timer_turns(&self) -> bool {
        self.faults.0.lock().unwrap().timer_turns && self.inner.commits_timer_turns()
    }

    async fn commit_timer_turn(&self, turn: TimerTurn) -> Result<(), ProviderError> {
        self.faults.note_dropped_timers(&turn.commit);
        met!(self, "commit_timer_turn", self.inner.commit_timer_turn(turn))
    }

    async fn commit_turn(&self, token: &str, commit: TurnCommit) -> Result<(), RejectedCommit> {
        let copy = commit.clone();
        self.faults.note_dropped_timers(&commit);
        let result = match commit.successor {
            Some(_) => self.commit_bundle("commit_turn", token, copy).await,
            None if 0 < copy.timer_grace_ms => {
                self.commit_bundle("ack_orchestration_item", token, copy).await
            }
            None => {
                let (delta, work, messages) =
                    (copy.history_delta, copy.worker_items, copy.orchestrator_items);
                let (metadata, cancelled) = (copy.metadata, copy.cancelled_activities);
                let id = copy.execution_id;
                self.ack_orchestration_item(token, id, delta, work, messages, metadata, cancelled)
                    .await
            }
        };
        result.map_err(|error| RejectedCommit { error, commit: Box::new(commit) })
    }

    async fn abandon_orchestration_item(
        &self,
        lock_token: &str,
        delay: Option<Duration>,
        ignore_attempt: bool,
    ) -> Result<(), ProviderError> {
        met!(
            self,
            "abandon_orchestration_item",
            self.inner.abandon_orchestration_item(lock_token, delay, ignore_attempt)
        )
    }

    async fn read(&self, instance: &str) -> Result<Vec<Event>, ProviderError> {
        met!(self, "read", self.inner.read(instance))
    }

    async fn read_with_execution(
        &self,
        instance: &str,
        execution_id: u64,
    ) -> Result<Vec<Event>, ProviderError> {
        met!(self, "read_with_execution", self.inner.read_with_execution(instance, execution_id))
    }

    async fn append_with_execution(
        &self,
        instance: &str,
        execution_id: u64,
        new_events: Vec<Event>,
    ) -> Result<(), ProviderError> {
        met!(
            self,
            "append_with_execution",
            self.inner.append_with_execution(instance, execution_id, new_events)
        )
    }

    async fn enqueue_for_worker(&self, item: WorkItem) -> Result<(), ProviderError> {
        met!(self, "enqueue_for_worker", self.inner.enqueue_for_worker(item))
    }

    async fn fetch_work_item(
        &self,
        lock_timeout: Duration,
        poll_timeout: Duration,
        session: Option<&SessionFetchConfig>,
        tag_filter: &TagFilter,
    ) -> Result<Option<(WorkItem, String, u32)>, ProviderError> {
        if let Some(planted) = self.faults.fetch_planted() {
            return Ok(Some(planted));
        }
        met!(
            self,
            "fetch_work_item",
            self.inner.fetch_work_item(lock_timeout, poll_timeout, session, tag_filter)
        )
    }

    async fn ack_work_item(
        &self,
        token: &str,
        completion: Option<WorkItem>,
    ) -> Result<(), ProviderError> {
        if self.faults.end_planted(token, None).is_some() {
            return Ok(());
        }
        met!(self, "ack_work_item", self.inner.ack_work_item(token, completion))
    }

    async fn renew_work_item_lock(
        &self,
        token: &str,
        extend_for: Duration,
    ) -> Result<(), ProviderError> {
        met!(self, "renew_work_item_lock", self.inner.renew_work_item_lock(token, extend_for))
    }

    async fn renew_session_lock(
        &self,
        owner_ids: &[&str],
        extend_for: Duration,
        idle_timeout: Duration,
    ) -> Result<usize, ProviderError> {
        met!(
            self,
            "renew_session_lock",
            self.inner.renew_session_lock(owner_ids, extend_for, idle_timeout)
        )
    }

    async fn cleanup_orphaned_sessions(
        &self,
        idle_timeout: Duration,
    ) -> Result<usize, ProviderError> {
        met!(self, "cleanup_orphaned_sessions", self.inner.cleanup_orphaned_sessions(idle_timeout))
    }

    async fn abandon_work_item(
        &self,
        token: &str,
        delay: Option<Duration>,
        ignore_attempt: bool,
    ) -> Result<(), ProviderError> {
        if self.faults.end_planted(token, Some(delay.unwrap_or_default())).is_some() {
            return Ok(());
        }
        met!(self, "abandon_work_item", self.inner.abandon_work_item(token, delay, ignore_attempt))
    }

    async fn renew_orchestration_item_lock(
        &self,
        token: &str,
        extend_for: Duration,
    ) -> Result<(), ProviderError> {
        met!(
            self,
            "renew_orchestration_item_lock",
            self.inner.renew_orchestration_item_lock(token, extend_for)
        )
    }

    async fn enqueue_for_orchestrator(
        &self,
        item: WorkItem,
        delay: Option<Duration>,
    ) -> Result<(), ProviderError> {
        met!(self, "enqueue_for_orchestrator", self.inner.enqueue_for_orchestrator(item, delay))
    }

    fn as_management_capability(&self) -> Option<&dyn ProviderAdmin> {
        self.inner.as_management_capability()
    }

    async fn get_custom_status(
        &self,
        instance: &str,
        last_seen_version: u64,
    ) -> Result<Option<(Option<String>, u64)>, ProviderError> {
        met!(self, "get_custom_status", self.inner.get_custom_status(instance, last_seen_version))
    }

    async fn get_kv_value(
        &self,
        instance: &str,
        key: &str,
    ) -> Result<Option<String>, ProviderError> {
        met!(self, "get_kv_value", self.inner.get_kv_value(instance, key))
    }

    async fn get_kv_all_values(
        &self,
        instance: &str,
    ) -> Result<HashMap<String, String>, ProviderError> {
        met!(self, "get_kv_all_values", self.inner.get_kv_all_values(instance))
    }

    async fn get_instance_stats(
        &self,
        instance: &str,
    ) -> Result<Option<SystemStats>, ProviderError> {
        met!(self, "get_instance_stats", self.inner.get_instance_stats(instance))
    }
}
