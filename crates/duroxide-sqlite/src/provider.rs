//! The store as the runtime sees it. Each method builds an operation or asks a query.

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
use crate::long_text::LongTexts;
use crate::ops::{
    AbandonTurn, AbandonWork, AckWork, AppendEvents, CleanSessions, CommitDirect, CommitTimers,
    CommitTurn, Delta, EnqueueMessage, EnqueueWork, FetchWork, MessageDraft, RenewSessions,
    RenewTurn, RenewWork, StartInstance, WorkDraft,
};
use crate::store::SqliteProvider;
use crate::{queries, token};

#[async_trait]
impl Provider for SqliteProvider {
    fn name(&self) -> &str {
        "sqlite"
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
        let turns = self.poll_turns(millis(lock_timeout), poll_timeout, filter, 1).await;
        let Some(mut turn) = turns.map_err(during("fetch_orchestration_item"))?.pop() else {
            return Ok(None);
        };
        let undelivered = self.undelivered(&turn.lock_token);
        self.add_history(&mut turn).await.map_err(during("fetch_orchestration_item"))?;
        undelivered.mark_delivered();
        Ok(Some((turn.item, turn.lock_token, turn.attempt_count)))
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
        self.commit(lock_token, &commit).await.map_err(during("ack_orchestration_item"))
    }

    async fn abandon_orchestration_item(
        &self,
        lock_token: &str,
        delay: Option<Duration>,
        ignore_attempt: bool,
    ) -> Result<(), ProviderError> {
        let abandon = async {
            let (key, secret) = token::read_turn(lock_token)?;
            let (delay_ms, uncount) = (delay.map(millis), ignore_attempt);
            self.writer.run(AbandonTurn { key, secret, delay_ms, uncount }).await
        };
        abandon.await.map_err(during("abandon_orchestration_item"))
    }

    async fn renew_orchestration_item_lock(
        &self,
        token: &str,
        extend_for: Duration,
    ) -> Result<(), ProviderError> {
        let renew = async {
            let (key, secret) = token::read_turn(token)?;
            self.writer.run(RenewTurn { key, secret, extend_ms: millis(extend_for) }).await
        };
        renew.await.map_err(during("renew_orchestration_item_lock"))
    }

    async fn enqueue_for_orchestrator(
        &self,
        item: WorkItem,
        delay: Option<Duration>,
    ) -> Result<(), ProviderError> {
        let enqueue = async {
            let draft = MessageDraft::of(&item, &mut LongTexts::default())?;
            self.writer.run(EnqueueMessage { draft, delay_ms: delay.map_or(0, millis) }).await
        };
        enqueue.await.map_err(during("enqueue_for_orchestrator"))
    }

    async fn read(&self, instance: &str) -> Result<Vec<Event>, ProviderError> {
        let id = instance.to_owned();
        self.readers.read(move |c| queries::history::newest(c, &id)).await.map_err(during("read"))
    }

    async fn read_with_execution(
        &self,
        instance: &str,
        execution_id: u64,
    ) -> Result<Vec<Event>, ProviderError> {
        self.events(instance, execution_id, 0, usize::MAX)
            .await
            .map_err(during("read_with_execution"))
    }

    async fn append_with_execution(
        &self,
        instance: &str,
        execution_id: u64,
        new_events: Vec<Event>,
    ) -> Result<(), ProviderError> {
        let append = async {
            let events = Delta::of(execution_id, &new_events, &mut LongTexts::default())?;
            let instance = instance.to_owned();
            self.writer.run(AppendEvents { instance, execution: execution_id, events }).await
        };
        append.await.map_err(during("append_with_execution"))
    }

    async fn enqueue_for_worker(&self, item: WorkItem) -> Result<(), ProviderError> {
        let enqueue = async {
            let draft = WorkDraft::of(&item, &mut LongTexts::default())?;
            self.writer.run(EnqueueWork(draft)).await
        };
        enqueue.await.map_err(during("enqueue_for_worker"))
    }

    async fn fetch_work_item(
        &self,
        lock_timeout: Duration,
        poll_timeout: Duration,
        session: Option<&SessionFetchConfig>,
        tag_filter: &TagFilter,
    ) -> Result<Option<(WorkItem, String, u32)>, ProviderError> {
        let fetch = FetchWork::of(lock_timeout, session, tag_filter, 1);
        let mut work =
            self.poll_work(fetch, poll_timeout).await.map_err(during("fetch_work_item"))?;
        Ok(work.pop())
    }

    async fn ack_work_item(
        &self,
        token: &str,
        completion: Option<WorkItem>,
    ) -> Result<(), ProviderError> {
        let ack = async { self.writer.run(AckWork::of(token, completion.as_ref())?).await };
        ack.await.map_err(during("ack_work_item"))
    }

    async fn renew_work_item_lock(
        &self,
        token: &str,
        extend_for: Duration,
    ) -> Result<(), ProviderError> {
        let renew = async {
            let (seq, secret) = token::read_work(token)?;
            self.writer.run(RenewWork { seq, secret, extend_ms: millis(extend_for) }).await
        };
        renew.await.map_err(during("renew_work_item_lock"))
    }

    async fn abandon_work_item(
        &self,
        token: &str,
        delay: Option<Duration>,
        ignore_attempt: bool,
    ) -> Result<(), ProviderError> {
        let abandon = async {
            let (seq, secret) = token::read_work(token)?;
            let (delay_ms, uncount) = (delay.map_or(0, millis), ignore_attempt);
            self.writer.run(AbandonWork { seq, secret, delay_ms, uncount }).await
        };
        abandon.await.map_err(during("abandon_work_item"))
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
        let owners = owner_ids.iter().map(|owner| (*owner).to_owned()).collect();
        let (extend_ms, idle_ms) = (millis(extend_for), millis(idle_timeout));
        self.writer
            .run(RenewSessions { owners, extend_ms, idle_ms })
            .await
            .map_err(during("renew_session_lock"))
    }

    async fn cleanup_orphaned_sessions(
        &self,
        _idle_timeout: Duration,
    ) -> Result<usize, ProviderError> {
        self.writer.run(CleanSessions).await.map_err(during("cleanup_orphaned_sessions"))
    }

    fn as_management_capability(&self) -> Option<&dyn ProviderAdmin> {
        Some(self)
    }

    async fn get_custom_status(
        &self,
        instance: &str,
        last_seen_version: u64,
    ) -> Result<Option<(Option<String>, u64)>, ProviderError> {
        let id = instance.to_owned();
        self.readers
            .read(move |c| queries::status::custom(c, &id, last_seen_version))
            .await
            .map_err(during("get_custom_status"))
    }

    async fn get_kv_value(
        &self,
        instance: &str,
        key: &str,
    ) -> Result<Option<String>, ProviderError> {
        let (id, key) = (instance.to_owned(), key.to_owned());
        self.readers
            .read(move |c| queries::kv::value(c, &id, &key))
            .await
            .map_err(during("get_kv_value"))
    }

    async fn get_kv_all_values(
        &self,
        instance: &str,
    ) -> Result<HashMap<String, String>, ProviderError> {
        let id = instance.to_owned();
        self.readers
            .read(move |c| queries::kv::all(c, &id))
            .await
            .map_err(during("get_kv_all_values"))
    }

    async fn get_instance_stats(
        &self,
        instance: &str,
    ) -> Result<Option<SystemStats>, ProviderError> {
        let id = instance.to_owned();
        self.readers
            .read(move |c| queries::kv::stats(c, &id))
            .await
            .map_err(during("get_instance_stats"))
    }

    async fn fetch_turn(
        &self,
        lock_timeout: Duration,
        poll_timeout: Duration,
        filter: Option<&DispatcherCapabilityFilter>,
    ) -> Result<Option<FetchedTurn>, ProviderError> {
        let turns = self.poll_turns(millis(lock_timeout), poll_timeout, filter, 1).await;
        Ok(turns.map_err(during("fetch_turn"))?.pop())
    }

    async fn fetch_turns(
        &self,
        lock_timeout: Duration,
        poll_timeout: Duration,
        filter: Option<&DispatcherCapabilityFilter>,
        max: usize,
    ) -> Result<Vec<FetchedTurn>, ProviderError> {
        self.poll_turns(millis(lock_timeout), poll_timeout, filter, max)
            .await
            .map_err(during("fetch_turns"))
    }

    async fn fetch_work_items(
        &self,
        lock_timeout: Duration,
        poll_timeout: Duration,
        session: Option<&SessionFetchConfig>,
        tag_filter: &TagFilter,
        max: usize,
    ) -> Result<Vec<(WorkItem, String, u32)>, ProviderError> {
        let fetch = FetchWork::of(lock_timeout, session, tag_filter, max);
        self.poll_work(fetch, poll_timeout).await.map_err(during("fetch_work_items"))
    }

    async fn read_history_from(
        &self,
        instance: &str,
        execution_id: u64,
        from_event_id: u64,
        limit: Option<usize>,
    ) -> Result<Vec<Event>, ProviderError> {
        self.events(instance, execution_id, from_event_id, limit.unwrap_or(usize::MAX))
            .await
            .map_err(during("read_history_from"))
    }

    async fn commit_turn(
        &self,
        lock_token: &str,
        commit: TurnCommit,
    ) -> Result<(), RejectedCommit> {
        self.commit(lock_token, &commit).await.map_err(|failure| RejectedCommit {
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
        let op = async { self.writer.run(StartInstance::of(&start, replace_ended)?).await };
        op.await.map_err(during("start_instance"))
    }

    fn commits_direct_turns(&self) -> bool {
        true
    }

    async fn commit_direct_turn(&self, turn: DirectTurn) -> Result<(), ProviderError> {
        let op = CommitDirect::of(turn).map_err(|refusal| refusal.during("commit_direct_turn"))?;
        self.writer.run(op).await.map_err(during("commit_direct_turn"))
    }

    fn commits_timer_turns(&self) -> bool {
        true
    }

    async fn commit_timer_turn(&self, turn: TimerTurn) -> Result<(), ProviderError> {
        let op = CommitTimers::of(turn).map_err(|refusal| refusal.during("commit_timer_turn"))?;
        self.writer.run(op).await.map_err(during("commit_timer_turn"))
    }

    async fn read_status(&self, instance: &str) -> Result<OrchestrationStatus, ProviderError> {
        let id = instance.to_owned();
        self.readers
            .read(move |c| queries::status::status(c, &id))
            .await
            .map_err(during("read_status"))
    }

    async fn wait_for_commit(&self, instance: &str, seen: u64, timeout: Duration) -> Option<u64> {
        Some(self.board.wait(instance, seen, timeout, || self.writer.watch()).await)
    }

    async fn lost_work_items(&self, tokens: &[&str]) -> Result<Vec<String>, ProviderError> {
        let tokens: Vec<String> = tokens.iter().map(|token| (*token).to_owned()).collect();
        let lost = self.readers.read(move |c| queries::locks::lost_work(c, &tokens)).await;
        lost.map_err(during("lost_work_items"))
    }

    fn store_time_ms(&self) -> Option<u64> {
        Some(self.clock.now_ms())
    }
}

impl SqliteProvider {
    async fn commit(&self, lock_token: &str, commit: &TurnCommit) -> Result<(), Failure> {
        self.writer.run(CommitTurn::of(lock_token, commit)?).await
    }
}

/// Attaches the name of the method to a failure.
pub(crate) fn during(operation: &str) -> impl Fn(Failure) -> ProviderError + Copy {
    move |failure| failure.during(operation)
}
