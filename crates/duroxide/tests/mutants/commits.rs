//! Commits that go wrong.

use std::collections::HashSet;

use duroxide::EventKind;
use duroxide::providers::memory::WorkSnapshot;
use duroxide::providers::{
    DirectTurn, Provider, ProviderError, ScheduledActivityIdentifier, TimerTurn, TurnCommit,
    WorkItem,
};

use super::list::Mutant;
use super::wrapper::MutantProvider;

impl MutantProvider {
    pub async fn wrong_commit(
        &self,
        token: &str,
        mut commit: TurnCommit,
    ) -> Result<(), ProviderError> {
        self.lose(&mut commit);
        let held = self.held(token);
        let instance = held.as_ref().map(|turn| turn.instance.clone()).unwrap_or_default();
        self.look_and_lose(&instance, &mut commit).await;
        self.do_first(&mut commit).await?;
        let mut token = token.to_owned();
        if self.is(Mutant::ConsumesLateMessages)
            && self.inner.abandon_orchestration_item(&token, None, true).await.is_ok()
        {
            token = self.retake(&instance).await.unwrap_or(token);
        }
        let timers = self.take_timers(&mut commit);
        self.remember_events(&instance, &commit);

        let result = self.plain_commit(&token, commit.clone()).await;
        match (self.mutant, result) {
            (Some(Mutant::SwallowsCommitErrors), Err(_)) => Ok(()),
            (Some(Mutant::CallsRefusalsRetryable), Err(error)) => {
                Err(ProviderError::retryable(error.operation, error.message))
            }
            (Some(Mutant::UnlocksOnFailedCommit), Err(error)) => {
                self.inner.abandon_orchestration_item(&token, None, true).await.ok();
                Err(error)
            }
            (Some(Mutant::CommitsWithExpiredLock), Err(error)) => {
                match self.retake(&instance).await {
                    Some(token) => self.plain_commit(&token, commit).await,
                    None => Err(error),
                }
            }
            (Some(Mutant::CommitsWithReplacedLock), Err(error)) => {
                match self.inner.snapshot().instance_locks.get(&instance) {
                    Some(lock) => self.plain_commit(&lock.token, commit).await,
                    None => Err(error),
                }
            }
            (Some(Mutant::KeepsLockAfterCommit), Ok(())) => {
                self.notes().blocked.extend(held.map(|turn| (turn.instance, turn.until)));
                Ok(())
            }
            (Some(Mutant::KeepsConsumedMessages), Ok(())) => {
                self.send_all(held.map(|turn| turn.messages).unwrap_or_default()).await
            }
            (_, Ok(())) => self.send_all(timers).await,
            (_, refused) => refused,
        }
    }

    async fn plain_commit(&self, token: &str, mut commit: TurnCommit) -> Result<(), ProviderError> {
        if self.is(Mutant::SplitsSuccession)
            && let Some(next) = commit.successor.take()
        {
            Box::pin(self.plain_commit(token, commit)).await?;
            let (execution_id, events) = (next.execution_id, next.history_delta);
            return self.inner.append_with_execution("a", execution_id, events).await;
        }
        self.inner.commit_turn(token, commit).await.map_err(|rejected| rejected.error)
    }

    pub(super) async fn wrong_direct_turn(
        &self,
        mut turn: DirectTurn,
    ) -> Result<(), ProviderError> {
        if self.is(Mutant::LosesDirectTurn) {
            return self.inner.ack_work_item(&turn.work_token, None).await;
        }
        if self.is(Mutant::TakesBlindTurns)
            && let Some(last) = self.inner.read(&turn.instance).await?.last()
        {
            (turn.last_event_id, turn.last_event_at_ms) = (last.event_id, last.timestamp_ms);
        }
        self.inner.commit_direct_turn(turn).await
    }

    pub(super) async fn wrong_timer_turn(&self, mut turn: TimerTurn) -> Result<(), ProviderError> {
        match self.mutant {
            Some(Mutant::LosesTimerTurn) => {
                let execution_id = turn.commit.execution_id;
                turn.commit = TurnCommit { execution_id, ..TurnCommit::default() };
            }
            Some(Mutant::TakesBlindTimerTurns) => {
                if let Some(last) = self.inner.read(&turn.instance).await?.last() {
                    turn.last_event_id = last.event_id;
                    turn.last_event_at_ms = last.timestamp_ms;
                }
            }
            Some(Mutant::ConfusesLivesOfTimers) => turn.incarnation = 0,
            Some(Mutant::OverlooksEarlyTimers) => {
                let now = self.inner.store_time_ms().unwrap_or_default();
                let is_due = |timer: &WorkItem| !matches!(timer, WorkItem::TimerFired { fire_at_ms, .. } if now < *fire_at_ms);
                turn.timers.retain(is_due);
            }
            _ => {}
        }
        let timers = turn.timers.clone();
        self.inner.commit_timer_turn(turn).await?;
        if self.is(Mutant::FiresTimersTwice) {
            let later = Some(std::time::Duration::from_secs(3600));
            for timer in timers {
                self.inner.enqueue_for_orchestrator(timer, later).await?;
            }
        }
        Ok(())
    }

    /// Loses parts of a commit.
    fn lose(&self, commit: &mut TurnCommit) {
        let metadata = &mut commit.metadata;
        match self.mutant {
            Some(Mutant::LosesLastEvent) => drop(commit.history_delta.pop()),
            Some(Mutant::LosesWork) => commit.worker_items.clear(),
            Some(Mutant::LosesSuccessor) => commit.successor = None,
            Some(Mutant::HoldsNoTimersBack) => commit.timer_grace_ms = 0,
            Some(Mutant::LosesMessages) => commit.orchestrator_items.clear(),
            Some(Mutant::LosesIdentity) => metadata.orchestration_name = None,
            Some(Mutant::LosesParent) => metadata.parent_instance_id = None,
            Some(Mutant::LosesPin) => metadata.pinned_duroxide_version = None,
            Some(Mutant::LosesStatus) => metadata.status = None,
            Some(Mutant::LosesOutput) => metadata.output = None,
            Some(Mutant::LosesCancellations) => commit.cancelled_activities.clear(),
            Some(Mutant::CancelsFirstOnly) => commit.cancelled_activities.truncate(1),
            Some(Mutant::ReversesWork) => commit.worker_items.reverse(),
            Some(Mutant::WritesToFirstExecution) => commit.execution_id = 1,
            Some(Mutant::SkipsEventZero) => commit.history_delta.retain(|e| e.event_id != 0),
            Some(Mutant::LosesTags) => {
                for item in &mut commit.worker_items {
                    if let WorkItem::ActivityExecute { tag, .. } = item {
                        *tag = None;
                    }
                }
            }
            Some(Mutant::CarriesAHundred) => {
                for message in &mut commit.orchestrator_items {
                    if let WorkItem::ContinueAsNew { carry_forward_events, .. } = message {
                        carry_forward_events.truncate(100);
                    }
                }
            }
            Some(Mutant::CancelsBeforeQueueing) => {
                let queued: Vec<_> = commit.worker_items.iter().filter_map(activity_of).collect();
                commit.cancelled_activities.retain(|cancelled| !queued.contains(cancelled));
            }
            _ => {}
        }
    }

    /// Loses parts of a commit, or does too much, because of what is stored.
    async fn look_and_lose(&self, instance: &str, commit: &mut TurnCommit) {
        let snapshot = self.inner.snapshot();
        match self.mutant {
            Some(Mutant::SparesLockedWork) => {
                let is_locked = |row: &&WorkSnapshot| {
                    row.lock.as_ref().is_some_and(|lock| lock.held_until.is_some())
                };
                let locked = snapshot.worker_queue.iter().filter(is_locked);
                let locked: Vec<_> = locked.filter_map(|row| activity_of(&row.item)).collect();
                commit.cancelled_activities.retain(|cancelled| !locked.contains(cancelled));
            }
            Some(mutant @ (Mutant::CancelsOtherExecutions | Mutant::CancelsOtherInstances)) => {
                let anywhere = mutant == Mutant::CancelsOtherInstances;
                let rows = snapshot.worker_queue.iter().filter_map(|row| activity_of(&row.item));
                let hit = rows.filter(|row| {
                    commit.cancelled_activities.iter().any(|cancelled| {
                        cancelled.activity_id == row.activity_id
                            && (anywhere || cancelled.instance == row.instance)
                    })
                });
                commit.cancelled_activities = hit.collect();
            }
            Some(Mutant::NamesOnce) if snapshot.instances.contains_key(instance) => {
                commit.metadata.orchestration_name = None;
            }
            Some(Mutant::ReopensExecution) if commit.metadata.status.is_none() => {
                commit.metadata.status = Some("Running".to_owned());
            }
            Some(Mutant::PinsOnce) => {
                let stored = snapshot.instances.get(instance);
                let execution = stored.and_then(|i| i.executions.get(&commit.execution_id));
                if execution.is_some_and(|e| e.pinned_duroxide_version.is_some()) {
                    commit.metadata.pinned_duroxide_version = None;
                }
            }
            Some(Mutant::SkipsDuplicateEvents) => {
                let stored = self.inner.read_with_execution(instance, commit.execution_id).await;
                let mut seen: HashSet<u64> =
                    stored.unwrap_or_default().iter().map(|event| event.event_id).collect();
                commit.history_delta.retain(|event| seen.insert(event.event_id));
            }
            _ => {}
        }
    }

    /// Does parts of a commit before the rest of it is looked at.
    async fn do_first(&self, commit: &mut TurnCommit) -> Result<(), ProviderError> {
        match self.mutant {
            Some(Mutant::QueuesWorkFirst) => {
                for item in commit.worker_items.drain(..) {
                    self.inner.enqueue_for_worker(item).await?;
                }
            }
            Some(Mutant::QueuesMessagesFirst) => {
                let messages = std::mem::take(&mut commit.orchestrator_items);
                self.send_all(messages).await?;
            }
            Some(Mutant::WritesEventsFirst) => {
                let events = std::mem::take(&mut commit.history_delta);
                if let Some(instance) = events.first().map(|event| event.instance_id.clone()) {
                    self.inner
                        .append_with_execution(&instance, commit.execution_id, events)
                        .await?;
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn take_timers(&self, commit: &mut TurnCommit) -> Vec<WorkItem> {
        let timers = commit.orchestrator_items.extract_if(.., |item| {
            self.is(Mutant::FiresTimersAtOnce) && matches!(item, WorkItem::TimerFired { .. })
        });
        timers.collect()
    }

    fn remember_events(&self, instance: &str, commit: &TurnCommit) {
        let mut notes = self.notes();
        for event in commit.history_delta.iter().rev() {
            match &event.kind {
                EventKind::KeyValueSet { key, value, .. } => {
                    notes.values.insert((instance.to_owned(), key.clone()), value.clone());
                }
                EventKind::CustomStatusUpdated { status } => {
                    notes.first_status.insert(instance.to_owned(), status.clone());
                }
                _ => {}
            }
        }
    }

    async fn send_all(&self, messages: Vec<WorkItem>) -> Result<(), ProviderError> {
        for message in messages {
            self.inner.enqueue_for_orchestrator(message, None).await?;
        }
        Ok(())
    }
}

/// What names an activity.
fn activity_of(item: &WorkItem) -> Option<ScheduledActivityIdentifier> {
    match item {
        WorkItem::ActivityExecute { instance, execution_id, id, .. } => {
            let (instance, execution_id, activity_id) = (instance.clone(), *execution_id, *id);
            Some(ScheduledActivityIdentifier { instance, execution_id, activity_id })
        }
        _ => None,
    }
}
