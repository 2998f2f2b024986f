//! How an instance ends that has been tried too often (R7.74 – R7.78).

use duroxide_core::model::{
    ErrorDetails, Event, EventKind, PoisonMessageType, UNREADABLE_HISTORY_EVENT_ID, WorkItem,
    poison_message,
};
use duroxide_core::replay::{
    FailedTurn, HistoryManager, TurnOutcome, TurnStatus, WorkItemReader, fail_turn,
};

use super::report::Summary;
use super::{Batch, Dispatcher};
use crate::runtime::facts::ExecutionFact;
use crate::runtime::observability::{labels, targets};
use crate::runtime::reasons::Reason;

impl Dispatcher {
    pub(super) async fn poison(&self, mut batch: Batch, history: HistoryManager) {
        let notices = self.collision_notices(&batch, &history).await;
        let messages = std::mem::take(&mut batch.item.messages);
        // A history that ends in continue-as-new stays as it is: the successor is what failed.
        let is_successor = history.is_continued_as_new;
        let execution_id = batch.item.execution_id + u64::from(is_successor);
        let fact = self.fact_of_poisoned(&batch, &history, execution_id);
        let cause = self.cause_of_poison(&batch, &messages);
        let details = self.poison_details(&batch, execution_id, &messages, cause.as_ref());
        self.warn_poisoned(&batch, &details);
        let outcome = if batch.item.history_error.is_some() {
            Some(self.unreadable(&batch, details))
        } else {
            self.failed(&batch, history, messages, (execution_id, details)).await
        };
        let Some(outcome) = outcome else { return self.drop_startless(batch, notices).await };
        let summary = Summary::of(&outcome);
        let name = batch.item.orchestration_name.clone();
        let mut commit = self.to_commit(&batch, outcome, notices, execution_id).await;
        // The instance comes into being, if it was not there, under the name it was fetched with.
        let metadata = &mut commit.metadata;
        metadata.orchestration_name.get_or_insert(name);
        metadata.orchestration_version.get_or_insert_with(|| batch.item.version.clone());
        match self.commit_while_leased(&batch, commit).await {
            Ok(()) => {
                let cause = cause.map_or(labels::CAUSE_OTHER, |cause| cause.label);
                self.report_poisoned(&batch, summary, (execution_id, cause), fact);
            }
            // An unreadable history that has got its end keeps being unreadable.
            Err(rejected)
                if batch.item.history_error.is_some()
                    && !self.is_passing(&batch, &rejected.error) =>
            {
                self.consume(&batch, rejected.commit.orchestrator_items).await;
            }
            Err(rejected) => self.give_back(&batch, rejected.error).await,
        }
    }

    /// What is known of the execution that ends.
    fn fact_of_poisoned(
        &self,
        batch: &Batch,
        history: &HistoryManager,
        execution_id: u64,
    ) -> ExecutionFact {
        let recorded = || match history.is_continued_as_new {
            true => None,
            false => ExecutionFact::from_history(history.history()),
        };
        let remembered = self.node.facts.get(batch.instance(), execution_id);
        remembered.or_else(recorded).unwrap_or_else(|| ExecutionFact {
            name: batch.item.orchestration_name.clone(),
            version: batch.item.version.clone(),
            started_at_ms: self.node.now_ms(),
            turns: 0,
            events: 0,
        })
    }

    /// Why the attempts came to nothing, as far as this process can tell. `None` if there was none.
    fn cause_of_poison(&self, batch: &Batch, messages: &[WorkItem]) -> Option<Reason> {
        if let Some(error) = &batch.item.history_error {
            return Some(Reason { label: labels::CAUSE_UNREADABLE, text: error.clone() });
        }
        if let Some(text) = self.unregistered(&batch.item, messages) {
            return Some(Reason { label: labels::CAUSE_UNREGISTERED, text });
        }
        let remembered = self.reasons.get(batch.instance());
        remembered.or_else(|| (1 < batch.attempt).then(Reason::process_ended))
    }

    fn poison_details(
        &self,
        batch: &Batch,
        execution_id: u64,
        messages: &[WorkItem],
        cause: Option<&Reason>,
    ) -> ErrorDetails {
        let instance = batch.item.instance.clone();
        let (message_type, message) = match &batch.item.history_error {
            Some(error) => {
                let error = error.clone();
                let message = error.clone();
                (
                    PoisonMessageType::FailedDeserialization { instance, execution_id, error },
                    message,
                )
            }
            None => {
                let cause = cause.map(|cause| cause.text.as_str());
                let message = poison_message(&messages, cause);
                (PoisonMessageType::Orchestration { instance, execution_id }, message)
            }
        };
        let max_attempts = self.node.options.max_attempts;
        ErrorDetails::Poison { attempt_count: batch.attempt, max_attempts, message_type, message }
    }

    /// The failure after what can be read; `None` if there is neither a history nor a start.
    async fn failed(
        &self,
        batch: &Batch,
        history: HistoryManager,
        messages: Vec<WorkItem>,
        (execution_id, details): (u64, ErrorDetails),
    ) -> Option<TurnOutcome> {
        let reader = WorkItemReader::from_owned(messages, &history, batch.instance());
        let is_successor = history.is_continued_as_new;
        let reader = if is_successor && !reader.is_continue_as_new {
            successor_without_start(batch, reader)
        } else {
            reader
        };
        if history.is_empty() && reader.start_item.is_none() {
            return None;
        }
        let asked_for = reader.version.clone();
        Some(fail_turn(FailedTurn {
            instance: batch.item.instance.clone(),
            execution_id,
            history: if is_successor { Vec::new() } else { history.into_history() },
            parent_execution_fallback: self.parent_execution_fallback(&reader).await,
            messages: reader,
            version: asked_for.unwrap_or_else(|| batch.item.version.clone()),
            now_ms: self.node.now_ms(),
            details,
        }))
    }

    /// R7.78: the next id cannot be known, so the failure takes one no history reaches. Nobody can
    /// be told: the parent's name cannot be read either.
    fn unreadable(&self, batch: &Batch, details: ErrorDetails) -> TurnOutcome {
        let kind = EventKind::OrchestrationFailed { details: details.clone() };
        let item = &batch.item;
        let event = Event {
            timestamp_ms: self.node.now_ms(),
            ..Event::with_event_id(
                UNREADABLE_HISTORY_EVENT_ID,
                item.instance.clone(),
                item.execution_id,
                None,
                kind,
            )
        };
        TurnOutcome {
            events: vec![event],
            activities: Vec::new(),
            messages: Vec::new(),
            cancelled: Vec::new(),
            dropped_timers: Vec::new(),
            status: TurnStatus::Failed(details),
            finished_children: Vec::new(),
            divergence: None,
            waits_for_foreign: false,
            kv_changes: Vec::new(),
        }
    }

    /// Messages of an instance that never began and that no start belongs to: there is nothing to
    /// end, so they go, with a word in the log.
    async fn drop_startless(&self, batch: Batch, notices: Vec<WorkItem>) {
        tracing::error!(target: targets::ORCHESTRATION_DISPATCHER, instance = %batch.instance(),
            "messages for an instance that does not exist were dropped");
        self.consume(&batch, notices).await;
    }

    fn warn_poisoned(&self, batch: &Batch, details: &ErrorDetails) {
        tracing::error!(
            target: targets::ORCHESTRATION_DISPATCHER,
            instance = %batch.instance(),
            attempt_count = batch.attempt,
            max_attempts = self.node.options.max_attempts,
            error = %details.display_message(),
            "orchestration given up as poison"
        );
    }
}

/// A successor whose start message is missing begins under the fetched name, without input, with
/// the parent of its predecessor (R7.75).
fn successor_without_start(batch: &Batch, reader: WorkItemReader) -> WorkItemReader {
    let start = WorkItem::ContinueAsNew {
        instance: batch.item.instance.clone(),
        orchestration: batch.item.orchestration_name.clone(),
        input: String::new(),
        version: None,
        parent_instance: reader.parent_instance.clone(),
        parent_id: reader.parent_id,
        parent_execution_id: reader.parent_execution_id,
        carry_forward_events: Vec::new(),
        initial_custom_status: None,
    };
    WorkItemReader {
        start_item: Some(start),
        orchestration_name: batch.item.orchestration_name.clone(),
        input: String::new(),
        is_continue_as_new: true,
        ..reader
    }
}
