//! Running one activity: who it is for, its handler, its cancellation, its panics.

use std::time::Duration;

use duroxide_core::model::{
    ActivityTimeout, AppErrorKind, ErrorDetails, PoisonMessageType, WorkItem, kind_of,
    poison_message,
};
use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::Dispatcher;
use super::ahead::Fetched;
use crate::runtime::activity::{ActivityCall, ActivityContext};
use crate::runtime::builtin;
use crate::runtime::catch_panic::catch_panic;
use crate::runtime::company::{Alone, is_suspect};
use crate::runtime::dispatchers::lease::Lease;
use crate::runtime::node::{Kind, log_storage_error};
use crate::runtime::observability::{labels, targets};
use crate::runtime::reasons::Reason;

/// Delay of an activity whose session would be one too many (R7.69).
const SESSION_LIMIT_DELAY: Duration = Duration::from_millis(100);

/// How long no other suspect begins beside a suspect activity: the other may be what ends the process,
/// and an innocent one must have the time to come to its end. Not for ever, since this one may hang.
const APART: Duration = Duration::from_secs(600);

/// An activity on its way through the dispatcher.
pub(super) struct Work {
    pub(super) instance: String,
    pub(super) execution_id: u64,
    pub(super) id: u64,
    pub(super) name: String,
    pub(super) input: String,
    pub(super) session_id: Option<String>,
    pub(super) tag: Option<String>,
    pub(super) lock_token: String,
    pub(super) attempt: u32,
    pub(super) worker_id: String,
    pub(super) lease: Lease,
}

impl Work {
    /// Which activity it is.
    pub(super) fn key(&self) -> (String, u64, u64) {
        (self.instance.clone(), self.execution_id, self.id)
    }
}

/// An activity whose code has ended.
pub(super) struct Finished {
    pub(super) work: Work,
    pub(super) ended: Ended,
    pub(super) took: Duration,
}

/// How an activity ended.
pub(super) enum Ended {
    Returned(Result<String, ErrorDetails>),
    /// Nobody wants the result any more.
    Cancelled,
}

impl Dispatcher {
    /// One fetched activity, from admission until its code has ended. What is left to be stored is
    /// returned; an activity of a session is completed here, since the next one of its session must
    /// not begin before (R7.70).
    pub(super) async fn process(&self, fetched: Fetched, worker_id: &str) -> Option<Finished> {
        let began = Instant::now();
        let suspect = match self.begin(&fetched).await {
            Ok(suspect) => suspect,
            Err(after) => {
                self.pass_on(fetched, after).await;
                return None;
            }
        };
        let Fetched { item, lock_token, attempt, lease, in_hand, .. } = fetched;
        drop(in_hand);
        let WorkItem::ActivityExecute { instance, execution_id, id, name, input, session_id, tag } =
            item
        else {
            self.refuse(&item, &lock_token, attempt).await;
            return None;
        };
        let max_sessions = self.node.options.max_sessions_per_runtime;
        let session = session_id.as_deref().map(|id| self.sessions.enter(id, max_sessions));
        if let Some(None) = session {
            let store = &self.node.store;
            let result =
                store.abandon_work_item(&lock_token, Some(SESSION_LIMIT_DELAY), true).await;
            log_storage_error(&instance, result);
            return None;
        }
        let work = Work {
            instance,
            execution_id,
            id,
            name,
            input,
            session_id,
            tag,
            lock_token,
            attempt,
            worker_id: worker_id.to_owned(),
            lease,
        };
        if attempt > self.node.options.max_attempts {
            self.complete_poisoned(work).await;
            return None;
        }
        if !self.short.contains(&work.name) && has_other_threads() {
            // The slot that was woken to fetch next does so before this thread may be blocked (R7.29).
            tokio::task::yield_now().await;
        }
        let runs_since = Instant::now();
        let Some(ended) = self.execute_watched(&work, suspect).await else {
            self.back_off_unregistered(&work).await;
            return None;
        };
        let took = began.elapsed();
        self.ahead.learn(took);
        self.short.learn(&work.name, runs_since.elapsed());
        let finished = Finished { work, ended, took };
        if session.is_none() {
            return Some(finished);
        }
        self.complete(finished).await;
        None
    }

    /// Whether the lock is somebody else's before the activity has begun, which then is left to that
    /// one: a process that was stopped for a while goes on as if nothing had happened. The clocks only
    /// say when to ask the store.
    async fn is_lost_already(&self, work: &Work) -> bool {
        if !work.lease.is_doubtful() {
            return false;
        }
        let timeout = self.node.options.worker_lock_timeout;
        let renewed = self.node.store.renew_work_item_lock(&work.lock_token, timeout).await;
        if let Err(error) = &renewed {
            tracing::info!(target: targets::WORKER, instance_id = %work.instance,
                activity_name = %work.name, activity_id = %work.id, %error,
                "the lock was lost before the activity began; it is not run here");
        }
        renewed.is_err()
    }

    /// Whether an activity may begin: a suspect when nothing waits in hand that has not begun, the
    /// others unless a turn has to be alone. If not, after how long it may be fetched again.
    async fn begin(&self, fetched: &Fetched) -> Result<Option<Alone>, Option<Duration>> {
        let company = &self.node.company;
        // What has no code here can do no harm.
        let has_code = || match &fetched.item {
            WorkItem::ActivityExecute { name, .. } => self.node.activities.has(name),
            _ => false,
        };
        let is_suspect =
            fetched.came_alone && is_suspect(fetched.attempt, self.node.options.max_attempts);
        if !is_suspect || !has_code() {
            return if company.is_hushed() { Err(None) } else { Ok(None) };
        }
        let alone = company.alone().await.ok_or_else(|| Some(company.retry_after()))?;
        Ok(Some(alone.beside_others()))
    }

    /// Runs the activity. A suspect is kept apart from others for a while only: it may run for hours.
    async fn execute_watched(&self, work: &Work, suspect: Option<Alone>) -> Option<Ended> {
        let mut run = std::pin::pin!(self.execute(work));
        if suspect.is_some()
            && let Ok(ended) = timeout(APART, &mut run).await
        {
            return ended;
        }
        drop(suspect);
        run.await
    }

    /// Runs the activity; `None` if nothing here can.
    async fn execute(&self, work: &Work) -> Option<Ended> {
        let cancellation = CancellationToken::new();
        if builtin::is_builtin(&work.name) {
            log_started(work);
            let run = builtin::run(&self.node, &work.name, &work.input);
            return Some(self.until_ended_or_cancelled(work, run, None, cancellation).await);
        }
        let (_, handler) = self.node.activities.resolve_handler(&work.name)?;
        let ctx = self.context_of(work, cancellation.clone()).await;
        log_started(work);
        let limit = handler.options().start_to_close;
        let run = async move { handler.invoke(ctx, work.input.clone()).await };
        Some(self.until_ended_or_cancelled(work, run, limit, cancellation).await)
    }

    /// Waits for the activity. When its lock is gone, or its start-to-close timeout has passed, it is
    /// told so, has a grace period to end, and is dropped after that (R5.20 – R5.25, R5.40, R5.41).
    async fn until_ended_or_cancelled(
        &self,
        work: &Work,
        run: impl Future<Output = Result<String, String>>,
        limit: Option<Duration>,
        cancellation: CancellationToken,
    ) -> Ended {
        if self.is_lost_already(work).await {
            return Ended::Cancelled;
        }
        let mut run = std::pin::pin!(catch_panic(run));
        let timed_out = tokio::select! {
            biased;
            ended = &mut run => return Ended::Returned(flatten(ended)),
            () = work.lease.lost().cancelled() => None,
            limit = passed(limit) => Some(timed_out(&work.name, limit)),
        };
        cancellation.cancel();
        let grace = self.node.options.activity_cancellation_grace_period;
        if timeout(grace, run).await.is_err() {
            tracing::warn!(target: targets::WORKER, instance_id = %work.instance,
                activity_name = %work.name, activity_id = %work.id, ?grace,
                "cancelled activity did not end within its grace period; stopped");
        }
        match timed_out {
            // Whatever the code has returned since comes too late.
            Some(error) if !work.lease.lost().is_cancelled() => Ended::Returned(Err(error)),
            _ => Ended::Cancelled,
        }
    }

    async fn context_of(&self, work: &Work, cancellation: CancellationToken) -> ActivityContext {
        let store = &self.node.store;
        let fact =
            self.node.facts.of_activity(store.as_ref(), &work.instance, work.execution_id).await;
        let fact = log_storage_error(&work.instance, fact).flatten();
        let unknown = || "unknown".to_owned();
        let (orchestration_name, orchestration_version) =
            fact.map_or_else(|| (unknown(), unknown()), |fact| (fact.name, fact.version));
        ActivityContext::new(ActivityCall {
            instance_id: work.instance.clone(),
            execution_id: work.execution_id,
            orchestration_name,
            orchestration_version,
            activity_name: work.name.clone(),
            activity_id: work.id,
            attempt: work.attempt,
            worker_id: work.worker_id.clone(),
            session_id: work.session_id.clone(),
            tag: work.tag.clone(),
            store: store.clone(),
            cancellation,
        })
    }

    async fn back_off_unregistered(&self, work: &Work) {
        let options = &self.node.options;
        let backoff = options.unregistered_backoff.delay(work.attempt);
        self.node.announce_unknown(Kind::Activity, &work.name, "the store");
        tracing::warn!(
            target: targets::WORKER,
            instance = %work.instance,
            activity_name = %work.name,
            attempt_count = work.attempt,
            max_attempts = options.max_attempts,
            remaining_attempts = options.max_attempts.saturating_sub(work.attempt),
            backoff_secs = backoff.as_secs_f64(),
            "activity not registered here, backing off"
        );
        let store = &self.node.store;
        let result = store.abandon_work_item(&work.lock_token, Some(backoff), false).await;
        log_storage_error(&work.instance, result);
        self.count(work, labels::OUTCOME_CONFIG_ERROR, Duration::ZERO);
    }

    async fn complete_poisoned(&self, work: Work) {
        let item = WorkItem::ActivityExecute {
            instance: work.instance.clone(),
            execution_id: work.execution_id,
            id: work.id,
            name: work.name.clone(),
            input: work.input.clone(),
            session_id: work.session_id.clone(),
            tag: work.tag.clone(),
        };
        let cause = self.cause_of_poison(&work);
        let details = ErrorDetails::Poison {
            attempt_count: work.attempt,
            max_attempts: self.node.options.max_attempts,
            message_type: PoisonMessageType::Activity {
                instance: work.instance.clone(),
                execution_id: work.execution_id,
                activity_name: work.name.clone(),
                activity_id: work.id,
            },
            message: poison_message(&item, cause.as_ref().map(|cause| cause.text.as_str())),
        };
        tracing::error!(target: targets::WORKER, instance = %work.instance,
            attempt_count = work.attempt, max_attempts = self.node.options.max_attempts,
            error = %details.display_message(), "activity given up as poison");
        if self.store_result(&work, Err(details)).await.is_ok() {
            let cause = cause.map_or(labels::CAUSE_OTHER, |cause| cause.label);
            self.node.metrics.record_activity_poison_by(cause);
        }
    }

    /// Why the attempts came to nothing, as far as this process can tell. `None` if there was none.
    fn cause_of_poison(&self, work: &Work) -> Option<Reason> {
        if let Some(text) = self.node.unregistered_activity(&work.name) {
            return Some(Reason { label: labels::CAUSE_UNREGISTERED, text });
        }
        let remembered = self.reasons.get(&work.key());
        remembered.or_else(|| (1 < work.attempt).then(Reason::process_ended))
    }

    /// Something that is no activity lies in the worker queue (L26). It is kept for a while, in case
    /// a newer node knows what it is.
    async fn refuse(&self, item: &WorkItem, lock_token: &str, attempt: u32) {
        let (options, store) = (&self.node.options, &self.node.store);
        let instance = item.orchestration_key().unwrap_or("-");
        let is_last = attempt > options.max_attempts;
        tracing::error!(target: targets::WORKER, %instance, attempt_count = attempt,
            removed = is_last, "{} found in the worker queue", kind_of(item));
        let result = if is_last {
            store.ack_work_item(lock_token, None).await
        } else {
            let delay = options.unregistered_backoff.delay(attempt);
            store.abandon_work_item(lock_token, Some(delay), false).await
        };
        log_storage_error(instance, result);
    }
}

/// Whether others could run while this thread is blocked.
fn has_other_threads() -> bool {
    Handle::current().runtime_flavor() != RuntimeFlavor::CurrentThread
}

fn log_started(work: &Work) {
    tracing::debug!(target: targets::WORKER, instance_id = %work.instance,
        execution_id = %work.execution_id, activity_name = %work.name, activity_id = %work.id,
        worker_id = %work.worker_id, "Activity started");
}

/// Waits until the time is over; for ever without a limit.
async fn passed(limit: Option<Duration>) -> Duration {
    let Some(limit) = limit else { return std::future::pending().await };
    sleep(limit).await;
    limit
}

/// An attempt may be repeated, which tells it from an error of the activity's own (R5.42).
fn timed_out(name: &str, limit: Duration) -> ErrorDetails {
    ErrorDetails::Application {
        kind: AppErrorKind::ActivityFailed,
        message: ActivityTimeout::start_to_close_error(name, limit),
        retryable: true,
    }
}

/// The panic text is the code's own, so that history does not depend on a task number (L27).
fn flatten(ended: Result<Result<String, String>, String>) -> Result<String, ErrorDetails> {
    match ended {
        Ok(result) => result.map_err(application_error),
        Err(panic) => Err(application_error(format!("activity panicked: {panic}"))),
    }
}

fn application_error(message: String) -> ErrorDetails {
    ErrorDetails::application(AppErrorKind::ActivityFailed, message)
}
