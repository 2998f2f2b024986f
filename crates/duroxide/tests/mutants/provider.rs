//! The wrapper as the runtime sees it: what goes wrong where is in the modules it leads to.

use std::collections::HashMap;
use std::time::Duration;

use async_trait::async_trait;
use duroxide::providers::{
    DirectTurn, DispatcherCapabilityFilter, ExecutionMetadata, FetchedTurn, OrchestrationItem,
    Provider, ProviderAdmin, ProviderError, RejectedCommit, ScheduledActivityIdentifier,
    SessionFetchConfig, TagFilter, TimerTurn, TurnCommit, WorkItem,
};
use duroxide::{Event, SystemStats};

use super::list::Mutant;
use super::wrapper::MutantProvider;

#[async_trait]
impl Provider for MutantProvider {
    fn name(&self) -> &str {
        "mutant"
    }

    fn store_time_ms(&self) -> Option<u64> {
        self.inner.store_time_ms()
    }

    async fn lost_work_items(&self, tokens: &[&str]) -> Result<Vec<String>, ProviderError> {
        self.wrong_lost_work_items(tokens).await
    }

    fn as_management_capability(&self) -> Option<&dyn ProviderAdmin> {
        Some(self)
    }

    async fn fetch_orchestration_item(
        &self,
        lock_timeout: Duration,
        poll_timeout: Duration,
        filter: Option<&DispatcherCapabilityFilter>,
    ) -> Result<Option<(OrchestrationItem, String, u32)>, ProviderError> {
        self.wrong_fetch(lock_timeout, poll_timeout, filter).await
    }

    async fn fetch_turn(
        &self,
        lock_timeout: Duration,
        poll_timeout: Duration,
        filter: Option<&DispatcherCapabilityFilter>,
    ) -> Result<Option<FetchedTurn>, ProviderError> {
        let fetched = self.fetch_orchestration_item(lock_timeout, poll_timeout, filter).await?;
        Ok(fetched.map(|(item, token, attempt)| FetchedTurn {
            incarnation: u64::from(
                self.is(Mutant::HasOneIncarnation) || self.is(Mutant::ConfusesLivesOfTimers),
            ),
            ..FetchedTurn::with_history(item, token, attempt)
        }))
    }

    async fn fetch_turns(
        &self,
        lock_timeout: Duration,
        poll_timeout: Duration,
        filter: Option<&DispatcherCapabilityFilter>,
        max: usize,
    ) -> Result<Vec<FetchedTurn>, ProviderError> {
        self.several_wrong_turns((lock_timeout, poll_timeout), filter, max).await
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
        self.wrong_commit(&self.real_token(lock_token), commit).await
    }

    /// Others are wrong in what they do with each turn, which is seen best one at a time.
    fn commits_successors(&self) -> bool {
        let of_successors =
            [Mutant::LosesSuccessor, Mutant::SplitsSuccession, Mutant::NamesOldExecution];
        self.mutant.is_none_or(|mutant| of_successors.contains(&mutant))
    }

    fn commits_direct_turns(&self) -> bool {
        let of_direct_turns = [Mutant::LosesDirectTurn, Mutant::TakesBlindTurns];
        self.mutant.is_none_or(|mutant| of_direct_turns.contains(&mutant))
    }

    async fn commit_direct_turn(&self, turn: DirectTurn) -> Result<(), ProviderError> {
        self.wrong_direct_turn(turn).await
    }

    fn commits_timer_turns(&self) -> bool {
        let of_timer_turns = [
            Mutant::LosesTimerTurn,
            Mutant::TakesBlindTimerTurns,
            Mutant::ConfusesLivesOfTimers,
            Mutant::FiresTimersTwice,
            Mutant::OverlooksEarlyTimers,
            Mutant::HoldsNoTimersBack,
        ];
        self.mutant.is_none_or(|mutant| of_timer_turns.contains(&mutant))
    }

    async fn commit_timer_turn(&self, turn: TimerTurn) -> Result<(), ProviderError> {
        self.wrong_timer_turn(turn).await
    }

    async fn commit_turn(
        &self,
        lock_token: &str,
        commit: TurnCommit,
    ) -> Result<(), RejectedCommit> {
        let token = self.real_token(lock_token);
        let result = self.wrong_commit(&token, commit.clone()).await;
        if let (true, Some(turn)) = (result.is_ok(), self.held(&token)) {
            self.notes()
                .turns
                .retain(|other, held| held.instance != turn.instance || *other == token);
            self.note_answered(&token);
        }
        result.map_err(|error| RejectedCommit { error, commit: Box::new(commit) })
    }

    async fn abandon_orchestration_item(
        &self,
        lock_token: &str,
        delay: Option<Duration>,
        ignore_attempt: bool,
    ) -> Result<(), ProviderError> {
        self.note_answered(&self.real_token(lock_token));
        self.wrong_abandon(&self.real_token(lock_token), delay, ignore_attempt).await
    }

    async fn renew_orchestration_item_lock(
        &self,
        token: &str,
        extend_for: Duration,
    ) -> Result<(), ProviderError> {
        self.wrong_renewal(&self.real_token(token), extend_for).await
    }

    async fn enqueue_for_orchestrator(
        &self,
        item: WorkItem,
        delay: Option<Duration>,
    ) -> Result<(), ProviderError> {
        self.wrong_send(item, delay).await
    }

    async fn read(&self, instance: &str) -> Result<Vec<Event>, ProviderError> {
        self.wrong_read(instance).await
    }

    async fn read_with_execution(
        &self,
        instance: &str,
        execution_id: u64,
    ) -> Result<Vec<Event>, ProviderError> {
        self.wrong_read_of(instance, execution_id).await
    }

    async fn append_with_execution(
        &self,
        instance: &str,
        execution_id: u64,
        new_events: Vec<Event>,
    ) -> Result<(), ProviderError> {
        self.wrong_append(instance, execution_id, new_events).await
    }

    async fn enqueue_for_worker(&self, item: WorkItem) -> Result<(), ProviderError> {
        if self.is(Mutant::SwallowsMisplacedWork) && item.orchestration_key().is_some() {
            return Ok(());
        }
        self.inner.enqueue_for_worker(item).await
    }

    async fn fetch_work_item(
        &self,
        lock_timeout: Duration,
        poll_timeout: Duration,
        session: Option<&SessionFetchConfig>,
        tag_filter: &TagFilter,
    ) -> Result<Option<(WorkItem, String, u32)>, ProviderError> {
        self.wrong_work_fetch(lock_timeout, poll_timeout, session, tag_filter).await
    }

    async fn fetch_work_items(
        &self,
        lock_timeout: Duration,
        poll_timeout: Duration,
        session: Option<&SessionFetchConfig>,
        tag_filter: &TagFilter,
        max: usize,
    ) -> Result<Vec<(WorkItem, String, u32)>, ProviderError> {
        self.several_wrong_fetches((lock_timeout, poll_timeout), session, tag_filter, max).await
    }

    async fn ack_work_item(
        &self,
        token: &str,
        completion: Option<WorkItem>,
    ) -> Result<(), ProviderError> {
        self.wrong_answer(token, completion).await
    }

    async fn renew_work_item_lock(
        &self,
        token: &str,
        extend_for: Duration,
    ) -> Result<(), ProviderError> {
        self.wrong_work_renewal(token, extend_for).await
    }

    async fn abandon_work_item(
        &self,
        token: &str,
        delay: Option<Duration>,
        ignore_attempt: bool,
    ) -> Result<(), ProviderError> {
        self.note_answered(token);
        self.wrong_work_abandon(token, delay, ignore_attempt).await
    }

    async fn renew_session_lock(
        &self,
        owner_ids: &[&str],
        extend_for: Duration,
        idle_timeout: Duration,
    ) -> Result<usize, ProviderError> {
        self.wrong_session_renewal(owner_ids, extend_for, idle_timeout).await
    }

    async fn cleanup_orphaned_sessions(
        &self,
        idle_timeout: Duration,
    ) -> Result<usize, ProviderError> {
        self.wrong_cleanup(idle_timeout).await
    }

    async fn get_custom_status(
        &self,
        instance: &str,
        last_seen_version: u64,
    ) -> Result<Option<(Option<String>, u64)>, ProviderError> {
        self.wrong_custom_status(instance, last_seen_version).await
    }

    async fn get_kv_value(
        &self,
        instance: &str,
        key: &str,
    ) -> Result<Option<String>, ProviderError> {
        Ok(self.wrong_values(instance).await?.remove(key))
    }

    async fn get_kv_all_values(
        &self,
        instance: &str,
    ) -> Result<HashMap<String, String>, ProviderError> {
        self.wrong_values(instance).await
    }

    async fn get_instance_stats(
        &self,
        instance: &str,
    ) -> Result<Option<SystemStats>, ProviderError> {
        self.wrong_stats(instance).await
    }
}
