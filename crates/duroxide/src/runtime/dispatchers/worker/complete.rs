//! A result becomes a completion message, in the same transaction that removes the activity.

use std::time::Duration;

use duroxide_core::model::{ErrorDetails, WorkItem};
use tokio::time::sleep;

use super::Dispatcher;
use super::execute::{Ended, Finished, Work};
use crate::providers::ProviderError;
use crate::runtime::dispatchers::orchestration::Answer;
use crate::runtime::node::log_storage_error;
use crate::runtime::observability::labels::{self, ErrorLabels};
use crate::runtime::observability::targets;

const FIRST_PAUSE: Duration = Duration::from_millis(10);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);
/// Delay of an activity whose result could not be stored (R5.15).
const GIVE_BACK_DELAY: Duration = Duration::from_millis(100);

/// One log record about an activity (R9.53).
macro_rules! record {
    ($level:ident, $work:expr, $($rest:tt)*) => {
        tracing::$level!(target: targets::WORKER, instance_id = %$work.instance,
            execution_id = %$work.execution_id, activity_name = %$work.name,
            activity_id = %$work.id, worker_id = %$work.worker_id, $($rest)*)
    };
}

impl Dispatcher {
    /// Stores the result, if there is one that counts, and counts the outcome once (R9.21).
    pub(super) async fn complete(&self, finished: Finished) {
        let Finished { work, ended, took } = finished;
        let outcome = match ended {
            Ended::Returned(result) => {
                let outcome = outcome_of(&result);
                self.store_result(&work, result).await.map_or_else(|lost| lost, |()| outcome)
            }
            Ended::Cancelled => {
                log_cancelled(&work);
                labels::OUTCOME_CANCELLED
            }
        };
        self.count(&work, outcome, took);
    }

    /// Makes a result a message for its orchestration; if that fails, what to count instead.
    pub(super) async fn store_result(
        &self,
        work: &Work,
        result: Result<String, ErrorDetails>,
    ) -> Result<(), &'static str> {
        report(work, &result);
        let completion = completion_of(work, result);
        if self.answer_directly(work, &completion).await {
            self.forget_reason(work);
            return Ok(());
        }
        match self.ack_while_leased(work, completion).await {
            Ok(()) => {
                self.forget_reason(work);
                Ok(())
            }
            Err(error) => Err(self.give_back(work, error).await),
        }
    }

    /// Stores a result together with the turn that reads it, if that can run here and now. A result
    /// that cost more than one attempt is not put at risk by somebody else's code; nor is one of a
    /// session, whose next activity waits for it.
    async fn answer_directly(&self, work: &Work, outcome: &WorkItem) -> bool {
        let Some(turns) = &self.turns else { return false };
        if work.attempt > 1 || work.session_id.is_some() {
            return false;
        }
        let answer = Answer {
            instance: &work.instance,
            execution_id: work.execution_id,
            activity_id: work.id,
            outcome,
            work_token: &work.lock_token,
            worker_id: &work.worker_id,
        };
        Box::pin(turns.answer(answer)).await
    }

    pub(super) fn count(&self, work: &Work, outcome: &'static str, took: Duration) {
        let retries = work.attempt.saturating_sub(1);
        let (seconds, tag) = (took.as_secs_f64(), work.tag.as_deref());
        self.node.metrics.record_activity_execution(&work.name, outcome, seconds, retries, tag);
    }

    /// Tries until the result is stored, refused for good, or the lock is gone.
    async fn ack_while_leased(
        &self,
        work: &Work,
        completion: WorkItem,
    ) -> Result<(), ProviderError> {
        let mut pause = FIRST_PAUSE;
        loop {
            let acked =
                self.node.store.ack_work_item(&work.lock_token, Some(completion.clone())).await;
            let Err(error) = acked else { return Ok(()) };
            if !error.is_retryable() || work.lease.lost().is_cancelled() {
                return Err(error);
            }
            record!(debug, work, %error, ?pause, "result not stored, trying again");
            tokio::select! {
                () = sleep(pause) => {}
                () = work.lease.lost().cancelled() => {}
            }
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    /// Only what cost more than one attempt has reasons.
    fn forget_reason(&self, work: &Work) {
        if 1 < work.attempt {
            self.reasons.forget(&work.key());
        }
    }

    /// Gives back an activity whose result was not stored; it will run again (R5.15). If there is
    /// nothing to give back it was cancelled meanwhile (R5.25). Returns what to count.
    async fn give_back(&self, work: &Work, error: ProviderError) -> &'static str {
        let store = &self.node.store;
        let given_back =
            store.abandon_work_item(&work.lock_token, Some(GIVE_BACK_DELAY), false).await;
        let is_gone = given_back.as_ref().is_err_and(|refused| !refused.is_retryable());
        // A store that could not be asked until the lock ran out has not cancelled anything (R9.63).
        if is_gone && !error.is_retryable() {
            log_cancelled(work);
            return labels::OUTCOME_CANCELLED;
        }
        if !is_gone {
            log_storage_error(&work.instance, given_back);
        }
        let why = format!("its result could not be stored: {error}");
        self.reasons.note(work.key(), labels::CAUSE_NOT_STORED, why);
        record!(warn, work, %error, "result not stored: the activity will run again");
        labels::OUTCOME_INFRA_ERROR
    }
}

fn completion_of(work: &Work, result: Result<String, ErrorDetails>) -> WorkItem {
    let (instance, execution_id, id) = (work.instance.clone(), work.execution_id, work.id);
    match result {
        Ok(result) => WorkItem::ActivityCompleted { instance, execution_id, id, result },
        Err(details) => WorkItem::ActivityFailed { instance, execution_id, id, details },
    }
}

fn outcome_of(result: &Result<String, ErrorDetails>) -> &'static str {
    match result {
        Ok(_) => labels::OUTCOME_SUCCESS,
        Err(ErrorDetails::Application { .. }) => labels::OUTCOME_APP_ERROR,
        Err(ErrorDetails::Configuration { .. }) => labels::OUTCOME_CONFIG_ERROR,
        Err(_) => labels::OUTCOME_INFRA_ERROR,
    }
}

fn report(work: &Work, result: &Result<String, ErrorDetails>) {
    let Err(details) = result else { return record!(debug, work, "Activity completed") };
    let (error_type, error) = (ErrorLabels::from(details).error_type, details.display_message());
    if matches!(details, ErrorDetails::Application { .. }) {
        record!(warn, work, error_type, %error, "Activity failed");
    } else {
        record!(error, work, error_type, %error, "Activity failed");
    }
}

fn log_cancelled(work: &Work) {
    record!(debug, work, "Activity cancelled");
}
