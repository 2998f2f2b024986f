//! The store as the runtime sees it. What each call means is in the modules it leads to.

use std::collections::HashMap;
use std::time::Duration;

use async_trait::async_trait;

use duroxide_core::model::limits::MAX_FETCH_BYTES;
use duroxide_core::model::{Event, OrchestrationStatus, SystemStats, WorkItem};

use super::long_poll::{Turns, Work, poll};
use super::turns::{TakenTurn, TurnWants};
use super::work::{TakenWork, WorkWants};
use super::{MemoryProvider, commit_watch, millis};
use crate::providers::{
    DirectTurn, DispatcherCapabilityFilter, ExecutionMetadata, FetchedTurn, OrchestrationItem,
    Provider, ProviderAdmin, ProviderError, RejectedCommit, ScheduledActivityIdentifier,
    SessionFetchConfig, StartOutcome, TagFilter, TimerTurn, TurnCommit,
};

#[async_trait]
impl Provider for MemoryProvider {
    fn name(&self) -> &str {
        "memory"
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
        let wants = TurnWants::of(lock_timeout, filter, true);
        let turn = self.poll_turn(wants.as_ref(), poll_timeout).await;
        Ok(turn.map(|TakenTurn { turn, .. }| (turn.item, turn.lock_token, turn.attempt_count)))
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
        let commit = Box::new(TurnCommit {
            execution_id,
            history_delta,
            worker_items,
            orchestrator_items,
            metadata,
            cancelled_activities,
            ..TurnCommit::default()
        });
        self.with(|inner, now| inner.state.commit(lock_token, commit, now))
            .map_err(|(refusal, _)| refusal.during("ack_orchestration_item"))
    }

    async fn abandon_orchestration_item(
        &self,
        lock_token: &str,
        delay: Option<Duration>,
        ignore_attempt: bool,
    ) -> Result<(), ProviderError> {
        let delay_ms = delay.map(millis);
        self.with(|inner, now| inner.state.abandon_turn(lock_token, delay_ms, ignore_attempt, now))
            .map_err(|refusal| refusal.during("abandon_orchestration_item"))
    }

    async fn renew_orchestration_item_lock(
        &self,
        token: &str,
        extend_for: Duration,
    ) -> Result<(), ProviderError> {
        self.with(|inner, now| inner.state.renew_turn(token, millis(extend_for), now))
            .map_err(|refusal| refusal.during("renew_orchestration_item_lock"))
    }

    async fn enqueue_for_orchestrator(
        &self,
        item: WorkItem,
        delay: Option<Duration>,
    ) -> Result<(), ProviderError> {
        let delay_ms = delay.map_or(0, millis);
        self.with(|inner, now| inner.state.enqueue_message(item, now.saturating_add(delay_ms), now))
            .map_err(|refusal| refusal.during("enqueue_for_orchestrator"))
    }

    async fn read(&self, instance: &str) -> Result<Vec<Event>, ProviderError> {
        self.with(|inner, _| inner.state.read(instance)).map_err(|refusal| refusal.during("read"))
    }

    async fn read_with_execution(
        &self,
        instance: &str,
        execution_id: u64,
    ) -> Result<Vec<Event>, ProviderError> {
        self.with(|inner, _| inner.state.read_from(instance, execution_id, 0, usize::MAX))
            .map_err(|refusal| refusal.during("read_with_execution"))
    }

    async fn append_with_execution(
        &self,
        instance: &str,
        execution_id: u64,
        new_events: Vec<Event>,
    ) -> Result<(), ProviderError> {
        self.with(|inner, now| inner.state.append(instance, execution_id, new_events, now))
            .map_err(|refusal| refusal.during("append_with_execution"))
    }

    async fn enqueue_for_worker(&self, item: WorkItem) -> Result<(), ProviderError> {
        self.with(|inner, _| inner.state.enqueue_work(item))
            .map_err(|refusal| refusal.during("enqueue_for_worker"))
    }

    async fn fetch_work_item(
        &self,
        lock_timeout: Duration,
        poll_timeout: Duration,
        session: Option<&SessionFetchConfig>,
        tag_filter: &TagFilter,
    ) -> Result<Option<(WorkItem, String, u32)>, ProviderError> {
        let wants = WorkWants::of(lock_timeout, session, tag_filter);
        Ok(self.poll_work(&wants, poll_timeout).await.map(TakenWork::into_parts))
    }

    async fn ack_work_item(
        &self,
        token: &str,
        completion: Option<WorkItem>,
    ) -> Result<(), ProviderError> {
        self.with(|inner, now| inner.state.ack_work(token, completion, now))
            .map_err(|refusal| refusal.during("ack_work_item"))
    }

    async fn renew_work_item_lock(
        &self,
        token: &str,
        extend_for: Duration,
    ) -> Result<(), ProviderError> {
        self.with(|inner, now| inner.state.renew_work(token, millis(extend_for), now))
            .map_err(|refusal| refusal.during("renew_work_item_lock"))
    }

    async fn abandon_work_item(
        &self,
        token: &str,
        delay: Option<Duration>,
        ignore_attempt: bool,
    ) -> Result<(), ProviderError> {
        let delay_ms = delay.map_or(0, millis);
        self.with(|inner, now| inner.state.abandon_work(token, delay_ms, ignore_attempt, now))
            .map_err(|refusal| refusal.during("abandon_work_item"))
    }

    async fn renew_session_lock(
        &self,
        owner_ids: &[&str],
        extend_for: Duration,
        idle_timeout: Duration,
    ) -> Result<usize, ProviderError> {
        Ok(self.with(|inner, now| {
            inner.state.work.renew_sessions(owner_ids, extend_for, idle_timeout, now)
        }))
    }

    async fn cleanup_orphaned_sessions(
        &self,
        _idle_timeout: Duration,
    ) -> Result<usize, ProviderError> {
        Ok(self.with(|inner, _| inner.state.work.forget_orphaned_sessions()))
    }

    fn as_management_capability(&self) -> Option<&dyn ProviderAdmin> {
        Some(self)
    }

    async fn get_custom_status(
        &self,
        instance: &str,
        last_seen_version: u64,
    ) -> Result<Option<(Option<String>, u64)>, ProviderError> {
        Ok(self.with(|inner, _| inner.state.custom_status(instance, last_seen_version)))
    }

    async fn get_kv_value(
        &self,
        instance: &str,
        key: &str,
    ) -> Result<Option<String>, ProviderError> {
        Ok(self.with(|inner, _| {
            let instance = inner.state.instances.get(instance)?;
            instance.kv.get(key).map(str::to_owned)
        }))
    }

    async fn get_kv_all_values(
        &self,
        instance: &str,
    ) -> Result<HashMap<String, String>, ProviderError> {
        let merged = |inner: &mut super::Inner, _| {
            inner.state.instances.get(instance).map(|instance| instance.kv.merged())
        };
        Ok(self.with(merged).unwrap_or_default())
    }

    async fn get_instance_stats(
        &self,
        instance: &str,
    ) -> Result<Option<SystemStats>, ProviderError> {
        Ok(self.with(|inner, _| inner.state.stats(instance)))
    }

    async fn fetch_turn(
        &self,
        lock_timeout: Duration,
        poll_timeout: Duration,
        filter: Option<&DispatcherCapabilityFilter>,
    ) -> Result<Option<FetchedTurn>, ProviderError> {
        let wants = TurnWants::of(lock_timeout, filter, false);
        Ok(self.poll_turn(wants.as_ref(), poll_timeout).await.map(|taken| taken.turn))
    }

    async fn fetch_turns(
        &self,
        lock_timeout: Duration,
        poll_timeout: Duration,
        filter: Option<&DispatcherCapabilityFilter>,
        max: usize,
    ) -> Result<Vec<FetchedTurn>, ProviderError> {
        let mut turns = Vec::new();
        let mut wants = TurnWants::of(lock_timeout, filter, false);
        let mut patience = poll_timeout;
        while turns.len() < max
            && let Some(taken) = self.poll_turn(wants.as_ref(), patience).await
        {
            let TakenTurn { turn, bytes, is_tried } = taken;
            turns.push(turn);
            if is_tried {
                break;
            }
            let left = |room: Option<usize>| room.map_or(MAX_FETCH_BYTES, |room| room - bytes);
            wants = wants.map(|wants| TurnWants { room: Some(left(wants.room)), ..wants });
            patience = Duration::ZERO;
        }
        Ok(turns)
    }

    async fn fetch_work_items(
        &self,
        lock_timeout: Duration,
        poll_timeout: Duration,
        session: Option<&SessionFetchConfig>,
        tag_filter: &TagFilter,
        max: usize,
    ) -> Result<Vec<(WorkItem, String, u32)>, ProviderError> {
        let mut all = Vec::new();
        let mut wants = WorkWants::of(lock_timeout, session, tag_filter);
        let mut patience = poll_timeout;
        while all.len() < max
            && let Some(work) = self.poll_work(&wants, patience).await
        {
            let is_last = is_bound(&work.item) || work.is_tried;
            let bytes = work.item.payload_bytes();
            all.push(work.into_parts());
            if is_last {
                break;
            }
            let room = wants.room.map_or(MAX_FETCH_BYTES, |room| room - bytes);
            (wants.room, patience) = (Some(room), Duration::ZERO);
        }
        Ok(all)
    }

    async fn read_history_from(
        &self,
        instance: &str,
        execution_id: u64,
        from_event_id: u64,
        limit: Option<usize>,
    ) -> Result<Vec<Event>, ProviderError> {
        let limit = limit.unwrap_or(usize::MAX);
        self.with(|inner, _| inner.state.read_from(instance, execution_id, from_event_id, limit))
            .map_err(|refusal| refusal.during("read_history_from"))
    }

    async fn commit_turn(
        &self,
        lock_token: &str,
        commit: TurnCommit,
    ) -> Result<(), RejectedCommit> {
        let commit = Box::new(commit);
        self.with(|inner, now| inner.state.commit(lock_token, commit, now)).map_err(
            |(refusal, commit)| RejectedCommit { error: refusal.during("commit_turn"), commit },
        )
    }

    fn commits_successors(&self) -> bool {
        true
    }

    fn commits_direct_turns(&self) -> bool {
        true
    }

    async fn commit_direct_turn(&self, turn: DirectTurn) -> Result<(), ProviderError> {
        self.with(|inner, now| inner.state.commit_direct(turn, now))
            .map_err(|refusal| refusal.during("commit_direct_turn"))
    }

    fn commits_timer_turns(&self) -> bool {
        true
    }

    async fn commit_timer_turn(&self, turn: TimerTurn) -> Result<(), ProviderError> {
        self.with(|inner, now| inner.state.commit_timers(turn, now))
            .map_err(|refusal| refusal.during("commit_timer_turn"))
    }

    fn decides_starts(&self) -> bool {
        true
    }

    async fn start_instance(
        &self,
        start: WorkItem,
        replace_ended: bool,
    ) -> Result<StartOutcome, ProviderError> {
        self.with(|inner, now| inner.state.start_instance(start, replace_ended, now))
            .map_err(|refusal| refusal.during("start_instance"))
    }

    async fn read_status(&self, instance: &str) -> Result<OrchestrationStatus, ProviderError> {
        self.with(|inner, _| inner.state.status(instance))
            .map_err(|refusal| refusal.during("read_status"))
    }

    async fn wait_for_commit(&self, instance: &str, seen: u64, timeout: Duration) -> Option<u64> {
        Some(commit_watch::wait_for_commit(self, instance, seen, timeout).await)
    }

    async fn lost_work_items(&self, tokens: &[&str]) -> Result<Vec<String>, ProviderError> {
        let lost = self.with(|inner, _| {
            let queue = &inner.state.work;
            let lost = tokens.iter().filter(|token| queue.owner(token).is_err());
            lost.map(|token| (*token).to_owned()).collect()
        });
        Ok(lost)
    }

    fn store_time_ms(&self) -> Option<u64> {
        Some(self.clock.now_ms())
    }
}

impl MemoryProvider {
    async fn poll_work(&self, wants: &WorkWants, poll_timeout: Duration) -> Option<TakenWork> {
        if wants.tags == TagFilter::None {
            // R8.79. Waiting keeps the caller from asking again and again.
            tokio::time::sleep(poll_timeout).await;
            return None;
        }
        poll::<Work>(self, wants, poll_timeout).await
    }

    async fn poll_turn(
        &self,
        wants: Option<&TurnWants>,
        poll_timeout: Duration,
    ) -> Option<TakenTurn> {
        let Some(wants) = wants else {
            tokio::time::sleep(poll_timeout).await;
            return None;
        };
        poll::<Turns>(self, wants, poll_timeout).await
    }
}

/// Whether an activity belongs to a session.
fn is_bound(item: &WorkItem) -> bool {
    matches!(item, WorkItem::ActivityExecute { session_id: Some(_), .. })
}
