//! A result becomes a completion message, in the same transaction that removes the activity.

use std::time::Duration;

use duroxide_core::model::{ErrorDetails, WorkItem};
use tokio::time::sleep;

use super::Dispatcher;
use super::execute::{Ended, Work};
use crate::providers::ProviderError;
use crate::runtime::node::log_storage_error;
use crate::runtime::observability::labels;
use crate::runtime::observability::targets;

const FIRST_PAUSE: Duration = Duration::from_millis(10);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);
/// Delay of an activity whose result could not be stored (R5.15).
const GIVE_BACK_DELAY: Duration = Duration::from_millis(100);

impl Dispatcher {
    pub(super) async fn complete(&self, work: Work, ended: Ended, took: Duration) {
        let outcome = outcome_label(&ended);
        let retries = work.attempt.saturating_sub(1);
        let metrics = &self.node.metrics;
        let seconds = took.as_secs_f64();
        let Ended::Returned(result) = ended else {
            // Its row is gone, or somebody else's: there is nothing to give back.
            metrics.record_activity_execution(
                &work.name,
                outcome,
                seconds,
                retries,
                work.tag.as_deref(),
            );
            tracing::debug!(target: targets::WORKER, instance_id = %work.instance,
                activity_name = %work.name, activity_id = %work.id, "Activity cancelled");
            return;
        };
        report(&work, &result);
        let completion = completion_of(&work, result);
        match self.ack_while_leased(&work, completion).await {
            Ok(()) => metrics.record_activity_execution(
                &work.name,
                outcome,
                seconds,
                retries,
                work.tag.as_deref(),
            ),
            Err(error) => self.give_back(&work, error).await,
        }
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
            tracing::warn!(target: targets::WORKER, instance_id = %work.instance,
                activity_name = %work.name, %error, ?pause, "completion not stored, trying again");
            tokio::select! {
                () = sleep(pause) => {}
                () = work.lease.lost().cancelled() => {}
            }
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    /// The activity was cancelled meanwhile (its row is gone, R5.25), or will run again.
    async fn give_back(&self, work: &Work, error: ProviderError) {
        tracing::warn!(target: targets::WORKER, instance_id = %work.instance,
            activity_name = %work.name, activity_id = %work.id, %error,
            "result not stored: the activity was cancelled or will run again");
        let store = &self.node.store;
        let result = store.abandon_work_item(&work.lock_token, Some(GIVE_BACK_DELAY), false).await;
        log_storage_error(&work.instance, result);
    }
}

fn completion_of(work: &Work, result: Result<String, ErrorDetails>) -> WorkItem {
    let (instance, execution_id, id) = (work.instance.clone(), work.execution_id, work.id);
    match result {
        Ok(result) => WorkItem::ActivityCompleted { instance, execution_id, id, result },
        Err(details) => WorkItem::ActivityFailed { instance, execution_id, id, details },
    }
}

fn outcome_label(ended: &Ended) -> &'static str {
    match ended {
        Ended::Cancelled => labels::OUTCOME_CANCELLED,
        Ended::Returned(Ok(_)) => labels::OUTCOME_SUCCESS,
        Ended::Returned(Err(ErrorDetails::Application { .. })) => labels::OUTCOME_APP_ERROR,
        Ended::Returned(Err(ErrorDetails::Configuration { .. })) => labels::OUTCOME_CONFIG_ERROR,
        Ended::Returned(Err(_)) => labels::OUTCOME_INFRA_ERROR,
    }
}

fn report(work: &Work, result: &Result<String, ErrorDetails>) {
    match result {
        Ok(_) => tracing::debug!(target: targets::WORKER, instance_id = %work.instance,
            activity_name = %work.name, activity_id = %work.id, "Activity completed"),
        Err(details) => tracing::warn!(target: targets::WORKER, instance_id = %work.instance,
            activity_name = %work.name, activity_id = %work.id,
            error = %details.display_message(), "Activity failed"),
    }
}
