//! Activities with retries: orchestration code like any other, built from activities and timers, so
//! every attempt and every pause is in history (R4.23 – R4.29).

use std::future::Future;
use std::panic::Location;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::combinators::select2;
use super::schedule::encoded;
use super::typed::ACTIVITY_RESULT;
use super::{DurableFuture, Either2, OrchestrationContext};
use crate::model::{ActivityTimeout, RetryPolicy};

impl OrchestrationContext {
    /// Runs an activity until it succeeds or the policy is exhausted; the last error then. Nothing is
    /// scheduled before the future is first polled: to run several side by side, join them.
    ///
    /// ```
    /// # use duroxide_core::context::OrchestrationContext;
    /// # use std::time::Duration;
    /// # use duroxide_core::model::{BackoffStrategy, RetryPolicy};
    /// async fn pay(ctx: OrchestrationContext, cents: String) -> Result<String, String> {
    ///     let policy = RetryPolicy::new(5)
    ///         .with_backoff(BackoffStrategy::Fixed { delay: Duration::from_secs(10) });
    ///     ctx.schedule_activity_with_retry("Charge", cents, policy)
    ///         .with_schedule_to_close(Duration::from_secs(3600)) // All attempts.
    ///         .await
    /// }
    /// ```
    #[track_caller]
    pub fn schedule_activity_with_retry(
        &self,
        name: impl Into<String>,
        input: impl Into<String>,
        policy: RetryPolicy,
    ) -> RetryingActivity<String> {
        let call = Call::new(name.into(), input.into(), None);
        RetryingActivity::new(self, call, policy, |_, _, text| Ok(text))
    }

    /// [`schedule_activity_with_retry`](Self::schedule_activity_with_retry), typed.
    #[track_caller]
    pub fn schedule_activity_with_retry_typed<In: Serialize, Out: DeserializeOwned>(
        &self,
        name: impl Into<String>,
        input: &In,
        policy: RetryPolicy,
    ) -> RetryingActivity<Out> {
        let call = Call::new(name.into(), encoded(input), None);
        RetryingActivity::new(self, call, policy, typed_result)
    }

    /// [`schedule_activity_with_retry`](Self::schedule_activity_with_retry) on a session.
    #[track_caller]
    pub fn schedule_activity_with_retry_on_session(
        &self,
        name: impl Into<String>,
        input: impl Into<String>,
        policy: RetryPolicy,
        session_id: impl Into<String>,
    ) -> RetryingActivity<String> {
        let call = Call::new(name.into(), input.into(), Some(session_id.into()));
        RetryingActivity::new(self, call, policy, |_, _, text| Ok(text))
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
    ) -> RetryingActivity<Out> {
        let call = Call::new(name.into(), encoded(input), Some(session_id.into()));
        RetryingActivity::new(self, call, policy, typed_result)
    }

    /// The loop over the attempts, within the limit of the whole call if there is one (R4.103).
    async fn retry(self, call: Call, policy: RetryPolicy) -> Result<String, String> {
        let limit = call.schedule_to_close;
        let mut deadline = limit.map(|limit| self.timer_at(limit, call.location));
        let mut last_error = None;
        let mut attempt = 1;
        loop {
            let Some(ended) = in_time(self.attempt(&call, &policy), &mut deadline).await else {
                return Err(self.too_late(&call, attempt, last_error.as_deref()));
            };
            let error = match ended {
                Attempt::Ended(Ok(result)) => return Ok(result),
                Attempt::TimedOut(limit) => return Err(self.timed_out(&call, attempt, limit)),
                Attempt::Ended(Err(error)) => error,
            };
            if attempt >= policy.max_attempts {
                return Err(error);
            }
            self.trace_warn(format!(
                "activity {} failed (attempt {attempt} of {}): {error}",
                call.name, policy.max_attempts
            ));
            last_error = Some(error);
            let pause = policy.delay_for_attempt(attempt);
            attempt += 1;
            if !pause.is_zero() {
                let pause = self.timer_at(pause, call.location);
                if in_time(pause, &mut deadline).await.is_none() {
                    return Err(self.too_late(&call, attempt, last_error.as_deref()));
                }
            }
        }
    }

    async fn attempt(&self, call: &Call, policy: &RetryPolicy) -> Attempt {
        let (name, input) = (call.name.clone(), call.input.clone());
        let mut activity = self.activity_at(name, input, call.session_id.clone(), call.location);
        if let Some(tag) = &call.tag {
            activity = activity.with_tag(tag.as_str());
        }
        let Some(timeout) = policy.timeout else { return Attempt::Ended(activity.await) };
        match select2(activity, self.timer_at(timeout, call.location)).await {
            Either2::First(result) => Attempt::Ended(result),
            Either2::Second(()) => Attempt::TimedOut(timeout),
        }
    }

    /// The error has no name in it, and must not have one (R4.24), so that the log says which it was.
    fn timed_out(&self, call: &Call, attempt: u32, limit: Duration) -> String {
        self.trace_warn(format!(
            "activity {} timed out: attempt {attempt} did not end within {limit:?} of being scheduled \
             (the wait for a worker counts); it is cancelled and not tried again",
            call.name
        ));
        ActivityTimeout::attempt_error()
    }

    fn too_late(&self, call: &Call, attempt: u32, last_error: Option<&str>) -> String {
        let limit = call.schedule_to_close.unwrap_or_default();
        let error =
            ActivityTimeout::schedule_to_close_error(&call.name, limit, attempt, last_error);
        self.trace_warn(error.as_str());
        error
    }
}

/// The outcome of a future, unless the deadline comes first.
async fn in_time<F: Future>(
    future: F,
    deadline: &mut Option<DurableFuture<()>>,
) -> Option<F::Output> {
    let Some(deadline) = deadline else { return Some(future.await) };
    match select2(future, deadline).await {
        Either2::First(output) => Some(output),
        Either2::Second(()) => None,
    }
}

enum Attempt {
    Ended(Result<String, String>),
    TimedOut(Duration),
}

/// The activity to run, and where the code asked for it.
struct Call {
    name: String,
    input: String,
    session_id: Option<String>,
    tag: Option<String>,
    schedule_to_close: Option<Duration>,
    location: &'static Location<'static>,
}

impl Call {
    #[track_caller]
    fn new(name: String, input: String, session_id: Option<String>) -> Self {
        let location = Location::caller();
        Self { name, input, session_id, tag: None, schedule_to_close: None, location }
    }
}

/// An activity that is tried until it succeeds or its policy is exhausted. Nothing is scheduled
/// before it is first polled (R4.29); dropped, it cancels the attempt that is under way.
#[must_use = "an activity with retries is scheduled when it is first polled"]
pub struct RetryingActivity<T> {
    state: State,
    ctx: OrchestrationContext,
    name: String,
    decode: Decode<T>,
}

/// The result of the activity with this name, from its text.
type Decode<T> = fn(&OrchestrationContext, &str, String) -> Result<T, String>;

fn typed_result<T: DeserializeOwned>(
    ctx: &OrchestrationContext,
    name: &str,
    text: String,
) -> Result<T, String> {
    ctx.decode((ACTIVITY_RESULT, name), None, &text)
}

enum State {
    New(Box<(OrchestrationContext, Call, RetryPolicy)>),
    Begun(Pin<Box<dyn Future<Output = Result<String, String>> + Send>>),
    Done,
}

impl<T> RetryingActivity<T> {
    fn new(ctx: &OrchestrationContext, call: Call, policy: RetryPolicy, decode: Decode<T>) -> Self {
        let (ctx, name) = (ctx.clone(), call.name.clone());
        Self { state: State::New(Box::new((ctx.clone(), call, policy))), ctx, name, decode }
    }

    /// Routes every attempt to workers that accept `tag`.
    ///
    /// ```
    /// # use duroxide_core::context::OrchestrationContext;
    /// # use duroxide_core::model::RetryPolicy;
    /// async fn film(ctx: OrchestrationContext, scene: String) -> Result<String, String> {
    ///     ctx.schedule_activity_with_retry("Render", scene, RetryPolicy::new(3)).with_tag("gpu").await
    /// }
    /// ```
    ///
    /// # Panics
    /// If it has been polled: the first attempt is on its way then.
    pub fn with_tag(mut self, tag: impl Into<String>) -> Self {
        self.call("with_tag()").tag = Some(tag.into());
        self
    }

    /// Limits the time from the first poll to the result, over all attempts and pauses. It is a durable
    /// timer: it goes on while no worker is free and while everything is down, which is its point.
    /// When it fires the attempt under way is cancelled, and the error is that of
    /// [`ActivityTimeout::ScheduleToClose`].
    ///
    /// ```
    /// # use duroxide_core::context::OrchestrationContext;
    /// # use duroxide_core::model::RetryPolicy;
    /// # use std::time::Duration;
    /// async fn quote(ctx: OrchestrationContext, item: String) -> Result<String, String> {
    ///     let quote = ctx
    ///         .schedule_activity_with_retry("Quote", item, RetryPolicy::new(10))
    ///         .with_schedule_to_close(Duration::from_secs(24 * 3600));
    ///     quote.await.or(Ok("by telephone".into()))
    /// }
    /// ```
    ///
    /// # Panics
    /// If it has been polled: the timer would come too late.
    pub fn with_schedule_to_close(mut self, limit: Duration) -> Self {
        self.call("with_schedule_to_close()").schedule_to_close = Some(limit);
        self
    }

    #[expect(clippy::panic, reason = "documented: the misuse is a bug in the orchestration")]
    fn call(&mut self, method: &str) -> &mut Call {
        match &mut self.state {
            State::New(start) => &mut start.1,
            State::Begun(_) | State::Done => {
                panic!("{method} can only be called before the activity is first polled")
            }
        }
    }
}

impl<T> Future for RetryingActivity<T> {
    type Output = Result<T, String>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        this.state = match std::mem::replace(&mut this.state, State::Done) {
            State::New(start) => {
                let (ctx, call, policy) = *start;
                State::Begun(Box::pin(ctx.retry(call, policy)))
            }
            begun => begun,
        };
        let State::Begun(attempts) = &mut this.state else { return Poll::Pending };
        let ended = std::task::ready!(attempts.as_mut().poll(cx));
        this.state = State::Done;
        Poll::Ready(ended.and_then(|text| (this.decode)(&this.ctx, &this.name, text)))
    }
}
