//! Activities with retries: orchestration code like any other, built from activities and timers, so
//! every attempt and every pause is in history (R4.23 – R4.29).

use std::future::Future;
use std::panic::Location;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::combinators::select2;
use super::schedule::encoded;
use super::typed::ACTIVITY_RESULT;
use super::{Either2, OrchestrationContext};
use crate::model::RetryPolicy;

impl OrchestrationContext {
    /// Runs an activity until it succeeds or the policy is exhausted; the last error then. An
    /// attempt that runs into the policy's timeout ends the loop.
    ///
    /// ```
    /// # use duroxide_core::context::OrchestrationContext;
    /// # use std::time::Duration;
    /// # use duroxide_core::model::{BackoffStrategy, RetryPolicy};
    /// async fn pay(ctx: OrchestrationContext, cents: String) -> Result<String, String> {
    ///     let policy = RetryPolicy::new(5)
    ///         .with_backoff(BackoffStrategy::Fixed { delay: Duration::from_secs(10) })
    ///         .with_timeout(Duration::from_secs(60)); // Of each attempt.
    ///     ctx.schedule_activity_with_retry("Charge", cents, policy).await
    /// }
    /// ```
    #[track_caller]
    pub fn schedule_activity_with_retry(
        &self,
        name: impl Into<String>,
        input: impl Into<String>,
        policy: RetryPolicy,
    ) -> impl Future<Output = Result<String, String>> {
        self.clone().retry(Call::new(name.into(), input.into(), None), policy)
    }

    /// [`schedule_activity_with_retry`](Self::schedule_activity_with_retry), typed.
    #[track_caller]
    pub fn schedule_activity_with_retry_typed<In: Serialize, Out: DeserializeOwned>(
        &self,
        name: impl Into<String>,
        input: &In,
        policy: RetryPolicy,
    ) -> impl Future<Output = Result<Out, String>> {
        let (ctx, name) = (self.clone(), name.into());
        let text = self.clone().retry(Call::new(name.clone(), encoded(input), None), policy);
        async move { ctx.decode((ACTIVITY_RESULT, &name), None, &text.await?) }
    }

    /// [`schedule_activity_with_retry`](Self::schedule_activity_with_retry) on a session.
    #[track_caller]
    pub fn schedule_activity_with_retry_on_session(
        &self,
        name: impl Into<String>,
        input: impl Into<String>,
        policy: RetryPolicy,
        session_id: impl Into<String>,
    ) -> impl Future<Output = Result<String, String>> {
        let call = Call::new(name.into(), input.into(), Some(session_id.into()));
        self.clone().retry(call, policy)
    }

    /// [`schedule_activity_with_retry_on_session`](Self::schedule_activity_with_retry_on_session),
    /// typed.
    #[track_caller]
    pub fn schedule_activity_with_retry_on_session_typed<In: Serialize, Out: DeserializeOwned>(
        &self,
        name: impl Into<String>,
        input: &In,
        policy: RetryPolicy,
        session_id: impl Into<String>,
    ) -> impl Future<Output = Result<Out, String>> {
        let (ctx, name) = (self.clone(), name.into());
        let call = Call::new(name.clone(), encoded(input), Some(session_id.into()));
        let text = self.clone().retry(call, policy);
        async move { ctx.decode((ACTIVITY_RESULT, &name), None, &text.await?) }
    }

    async fn retry(self, call: Call, policy: RetryPolicy) -> Result<String, String> {
        let mut attempt = 1;
        loop {
            let error = match self.attempt(&call, &policy).await {
                Attempt::Ended(Ok(result)) => return Ok(result),
                Attempt::TimedOut => return Err("timeout: activity timed out".to_owned()),
                Attempt::Ended(Err(error)) => error,
            };
            if attempt >= policy.max_attempts {
                return Err(error);
            }
            self.trace_warn(format!(
                "activity {} failed (attempt {attempt} of {}): {error}",
                call.name, policy.max_attempts
            ));
            let pause = policy.delay_for_attempt(attempt);
            if !pause.is_zero() {
                self.timer_at(pause, call.location).await;
            }
            attempt += 1;
        }
    }

    async fn attempt(&self, call: &Call, policy: &RetryPolicy) -> Attempt {
        let activity = self.activity_at(
            call.name.clone(),
            call.input.clone(),
            call.session_id.clone(),
            call.location,
        );
        let Some(timeout) = policy.timeout else { return Attempt::Ended(activity.await) };
        match select2(activity, self.timer_at(timeout, call.location)).await {
            Either2::First(result) => Attempt::Ended(result),
            Either2::Second(()) => Attempt::TimedOut,
        }
    }
}

enum Attempt {
    Ended(Result<String, String>),
    TimedOut,
}

/// The activity to run, and where the code asked for it.
struct Call {
    name: String,
    input: String,
    session_id: Option<String>,
    location: &'static Location<'static>,
}

impl Call {
    #[track_caller]
    fn new(name: String, input: String, session_id: Option<String>) -> Self {
        Self { name, input, session_id, location: Location::caller() }
    }
}
