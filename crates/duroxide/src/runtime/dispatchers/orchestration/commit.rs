//! An outcome becomes a commit, and the commit is made, however long the store takes.
//!
//! A storage outage never fails an orchestration: passing errors are retried while the lock can be
//! kept, and a turn whose lock is gone is dropped, since it can be replayed. Only an error that
//! stays ends the execution.

use std::time::Duration;

use duroxide_core::clock::millis_rounded_up as millis;
use duroxide_core::model::{Event, EventKind, ScheduledActivityIdentifier, WorkItem};
use duroxide_core::replay::{
    FailedTurn, HistoryManager, TurnOutcome, TurnStatus, WorkItemReader, fail_turn,
};
use semver::Version;
use tokio::time::sleep;

use super::report::Summary;
use super::{Batch, Dispatcher, Subject};
use crate::providers::{ExecutionMetadata, ProviderError, RejectedCommit, TurnCommit};
use crate::runtime::facts::ExecutionFact;
use crate::runtime::node::log_storage_error;
use crate::runtime::observability::{labels, targets};

/// Pauses between tries of one commit: from the first to the longest, doubling.
const FIRST_PAUSE: Duration = Duration::from_millis(10);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);
/// Time before a turn that could not be committed can be fetched again (R1.38), doubling with every
/// attempt that counts: a store that refuses for good is not asked for ever at full speed.
const GIVE_BACK_DELAY: Duration = Duration::from_millis(50);
const GIVE_BACK_DOUBLINGS_MAX: u32 = 10;

/// What the commit, its substitute and the reports need, put aside before the turn takes the rest.
pub(super) struct Aside {
    pub(super) execution_id: u64,
    pub(super) orchestration_name: String,
    pub(super) version: String,
    /// Messages that begin the execution, if it begins with this turn.
    start: Vec<WorkItem>,
    /// For the parents of colliding starts; they go out whatever becomes of the turn (R1.44).
    pub(super) notices: Vec<WorkItem>,
    /// What is known of the execution before this turn.
    pub(super) fact: Option<ExecutionFact>,
}

impl Aside {
    pub(super) fn of(
        reader: &WorkItemReader,
        history: &[Event],
        execution_id: u64,
        version: &str,
    ) -> Self {
        let start = reader.start_item.iter().filter(|_| history.is_empty()).cloned().collect();
        Self {
            execution_id,
            orchestration_name: reader.orchestration_name.clone(),
            version: version.to_owned(),
            start,
            notices: Vec::new(),
            fact: ExecutionFact::from_history(history),
        }
    }

    /// Of an execution that goes on where it was.
    pub(super) fn of_warm(execution_id: u64, fact: Option<ExecutionFact>) -> Self {
        let (orchestration_name, version) =
            fact.as_ref().map(|fact| (fact.name.clone(), fact.version.clone())).unwrap_or_default();
        let (start, notices) = (Vec::new(), Vec::new());
        Self { execution_id, orchestration_name, version, start, notices, fact }
    }

    pub(super) fn with_notices(self, notices: Vec<WorkItem>) -> Self {
        Self { notices, ..self }
    }

    /// What this process remembers is better than what history tells, if it saw as many turns.
    pub(super) fn with_remembered(self, remembered: Option<ExecutionFact>) -> Self {
        let told = self.fact.as_ref().map_or(0, |fact| fact.turns);
        let fact = remembered.filter(|fact| fact.turns >= told).or(self.fact);
        Self { fact, ..self }
    }
}

impl Dispatcher {
    /// Commits a turn, or ends its execution if that is impossible for good (R1.36 – R1.38).
    /// Whether the turn was committed as it is.
    pub(super) async fn commit(
        &self,
        batch: &Batch,
        outcome: TurnOutcome,
        aside: Aside,
        timer_grace: Duration,
    ) -> bool {
        let summary = Summary::of(&outcome);
        let notices = aside.notices.clone();
        let mut commit = self.to_commit(batch, outcome, notices, aside.execution_id).await;
        commit.timer_grace_ms = millis(timer_grace);
        self.commit_prepared(batch, commit, summary, aside).await
    }

    /// The same for a commit that is made up already.
    pub(super) async fn commit_prepared(
        &self,
        batch: &Batch,
        commit: TurnCommit,
        summary: Summary,
        aside: Aside,
    ) -> bool {
        match self.commit_while_leased(batch, commit).await {
            Ok(()) => {
                self.report_committed(batch, summary, aside.execution_id, aside.fact);
                return true;
            }
            Err(rejected) if self.is_passing(batch, &rejected.error) => {
                Box::pin(self.give_back(batch, rejected.error)).await;
            }
            Err(rejected) => {
                Box::pin(self.substitute_failure(batch, rejected.error, aside)).await;
            }
        }
        false
    }

    /// What the store is asked to make true.
    pub(super) async fn to_commit(
        &self,
        subject: &Subject,
        mut outcome: TurnOutcome,
        notices: Vec<WorkItem>,
        execution_id: u64,
    ) -> TurnCommit {
        self.spare_strangers(subject.instance(), &mut outcome.messages).await;
        into_commit(subject, outcome, notices, execution_id)
    }

    /// Tries a commit until it is made, refused for good, or the lock is gone (R7.50).
    pub(super) async fn commit_while_leased(
        &self,
        batch: &Batch,
        mut commit: TurnCommit,
    ) -> Result<(), RejectedCommit> {
        let mut pause = FIRST_PAUSE;
        let cancelled = cancelled_by(&commit);
        loop {
            let rejected = match self.node.store.commit_turn(&batch.lock_token, commit).await {
                Ok(()) => {
                    self.activity_leases.give_up(&cancelled);
                    self.pardons.forget(batch.instance());
                    self.reasons.forget(batch.instance());
                    return Ok(());
                }
                Err(rejected) => rejected,
            };
            if batch.lease.lost().is_cancelled() {
                return Err(rejected);
            }
            if !rejected.error.is_retryable() {
                self.ask_for_lock(batch).await;
                return Err(rejected);
            }
            tracing::debug!(target: targets::ORCHESTRATION_DISPATCHER, instance = %batch.instance(),
                error = %rejected.error, ?pause, "commit failed, trying again");
            commit = *rejected.commit;
            tokio::select! {
                () = sleep(pause) => {}
                () = batch.lease.lost().cancelled() => {}
            }
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    /// Finds out whether the lock is the reason of a refusal: it may be gone without our knowing, and
    /// then nothing is wrong with the turn. The error does not say so in words that every store uses.
    async fn ask_for_lock(&self, batch: &Batch) {
        let timeout = self.node.options.orchestrator_lock_timeout;
        let renewed = self.node.store.renew_orchestration_item_lock(&batch.lock_token, timeout);
        if renewed.await.is_err() {
            batch.lease.lost().cancel();
        }
    }

    /// Gives back a turn that could not be committed; it will be replayed. If the store is to blame,
    /// or the lock is somebody else's, the attempt does not count: no outage makes poison.
    pub(super) async fn give_back(&self, batch: &Batch, error: ProviderError) {
        let is_lost = batch.lease.lost().is_cancelled();
        if is_lost {
            tracing::info!(target: targets::ORCHESTRATION_DISPATCHER,
                instance = %batch.instance(), %error,
                "the lock was lost before the commit; whoever has it repeats the turn");
        } else if error.is_retryable() {
            tracing::debug!(target: targets::ORCHESTRATION_DISPATCHER,
                instance = %batch.instance(), %error, "turn not committed; it will be repeated");
        } else {
            tracing::warn!(target: targets::ORCHESTRATION_DISPATCHER,
                instance = %batch.instance(), %error, "turn not committed; it will be repeated");
        }
        let (store, uncount) = (&self.node.store, is_lost || error.is_retryable());
        let delay = if uncount {
            // The pause is made here, under the lock: messages that the store hides for a while are
            // overtaken by those that come meanwhile.
            tokio::select! {
                () = sleep(GIVE_BACK_DELAY) => {}
                () = batch.lease.lost().cancelled() => {}
            }
            None
        } else {
            let why = format!("the store would not take the turn: {error}");
            self.reasons.note(batch.item.instance.clone(), labels::CAUSE_NOT_STORED, why);
            let doublings = batch.attempt.saturating_sub(1).min(GIVE_BACK_DOUBLINGS_MAX);
            Some(GIVE_BACK_DELAY * (1 << doublings))
        };
        let given_back = store.abandon_orchestration_item(&batch.lock_token, delay, uncount).await;
        let given_back = match given_back {
            // As was to be expected: there was nothing to give back.
            Err(error) if is_lost && !error.is_retryable() => None,
            other => log_storage_error(batch.instance(), other),
        };
        if given_back.is_none() && uncount {
            self.pardons.add(batch.instance());
        }
    }

    /// Whether the turn may succeed another time: the error passes, or our lock is gone and with it
    /// our say in the matter.
    pub(super) fn is_passing(&self, batch: &Batch, error: &ProviderError) -> bool {
        error.is_retryable() || batch.lease.lost().is_cancelled()
    }

    /// Ends an execution whose turn the store refuses for good. Its own start event comes first if
    /// it had none, and its parent is told in the same commit (R1.37, L12).
    async fn substitute_failure(&self, batch: &Batch, error: ProviderError, aside: Aside) {
        tracing::error!(target: targets::ORCHESTRATION_DISPATCHER, instance = %batch.instance(),
            %error, "the store refuses the turn for good; failing the orchestration");
        let Some(outcome) = self.failure_of(batch, &error, &aside).await else {
            return self.give_back(batch, error).await;
        };
        let summary = Summary::of(&outcome);
        let notices = aside.notices.clone();
        let commit = self.to_commit(batch, outcome, notices, aside.execution_id).await;
        match self.commit_while_leased(batch, commit).await {
            Ok(()) => self.report_committed(batch, summary, aside.execution_id, aside.fact),
            Err(rejected) => self.give_back(batch, rejected.error).await,
        }
    }

    async fn failure_of(
        &self,
        batch: &Batch,
        error: &ProviderError,
        aside: &Aside,
    ) -> Option<TurnOutcome> {
        // The turn has consumed the history it was given; read it again, this is no hot path.
        let history = if aside.start.is_empty() {
            let read =
                self.node.store.read_with_execution(batch.instance(), aside.execution_id).await;
            log_storage_error(batch.instance(), read)?
        } else {
            Vec::new()
        };
        let history = HistoryManager::from_owned(history);
        let messages = WorkItemReader::from_messages(&aside.start, &history, batch.instance());
        if history.is_empty() && !messages.has_start_item() {
            return None; // Gone, and what is gone cannot fail.
        }
        Some(fail_turn(FailedTurn {
            instance: batch.item.instance.clone(),
            execution_id: aside.execution_id,
            history: history.into_history(),
            parent_execution_fallback: self.parent_execution_fallback(&messages).await,
            messages,
            version: aside.version.clone(),
            now_ms: self.node.now_ms(),
            details: error.to_infrastructure_error(),
        }))
    }
}

/// The activities that a commit cancels.
pub(super) fn cancelled_by(commit: &TurnCommit) -> Vec<ScheduledActivityIdentifier> {
    let successor = commit.successor.iter().flat_map(|commit| &commit.cancelled_activities);
    commit.cancelled_activities.iter().chain(successor).cloned().collect()
}

/// The outcome as the store takes it.
fn into_commit(
    subject: &Subject,
    outcome: TurnOutcome,
    notices: Vec<WorkItem>,
    execution_id: u64,
) -> TurnCommit {
    let metadata = metadata_of(&outcome);
    let cancelled = outcome.cancelled.into_iter();
    let mut orchestrator_items = outcome.messages;
    orchestrator_items.extend(notices);
    TurnCommit {
        execution_id,
        history_delta: outcome.events,
        worker_items: outcome.activities,
        orchestrator_items,
        metadata,
        cancelled_activities: cancelled
            .map(|activity_id| ScheduledActivityIdentifier {
                instance: subject.item.instance.clone(),
                execution_id,
                activity_id,
            })
            .collect(),
        dropped_timers: outcome.dropped_timers,
        ..TurnCommit::default()
    }
}

/// R1.33: what the new events mean for the instance and the execution.
fn metadata_of(outcome: &TurnOutcome) -> ExecutionMetadata {
    let mut metadata = ExecutionMetadata::default();
    if let Some(first) = outcome.events.first()
        && let EventKind::OrchestrationStarted { name, version, parent_instance, .. } = &first.kind
    {
        metadata.orchestration_name = Some(name.clone());
        metadata.orchestration_version = Some(version.clone());
        metadata.parent_instance_id.clone_from(parent_instance);
        metadata.pinned_duroxide_version = Version::parse(&first.duroxide_version).ok();
    }
    let (status, output) = match &outcome.status {
        TurnStatus::Running => return metadata,
        TurnStatus::Completed(output) => ("Completed", output.clone()),
        TurnStatus::Failed(details) => ("Failed", details.display_message()),
        TurnStatus::ContinuedAsNew(input) => ("ContinuedAsNew", input.clone()),
    };
    metadata.status = Some(status.to_owned());
    metadata.output = Some(output);
    metadata
}
