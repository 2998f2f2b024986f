//! Activities and timers.

use std::panic::Location;
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::typed::ACTIVITY_RESULT;
use super::{CompletionResult, DurableFuture, Operation, OrchestrationContext, ScheduleKind};
use crate::clock::millis_rounded_up;
use crate::model::{self, Action};

impl OrchestrationContext {
    /// Runs an activity. The future resolves to its result or its error text.
    ///
    /// ```
    /// # use duroxide_core::context::OrchestrationContext;
    /// async fn order(ctx: OrchestrationContext, item: String) -> Result<String, String> {
    ///     let price = ctx.schedule_activity("Price", item.as_str()).await?;
    ///     match ctx.schedule_activity("Charge", price).await {
    ///         Ok(receipt) => Ok(receipt),
    ///         Err(error) => Err(format!("{item} was not paid: {error}")),
    ///     }
    /// }
    /// ```
    #[track_caller]
    pub fn schedule_activity(
        &self,
        name: impl Into<String>,
        input: impl Into<String>,
    ) -> DurableFuture<Result<String, String>> {
        self.activity_at(name.into(), input.into(), None, Location::caller())
    }

    /// [`schedule_activity`](Self::schedule_activity) with typed input and result.
    ///
    /// ```
    /// # use duroxide_core::context::OrchestrationContext;
    /// # #[derive(serde::Serialize)]
    /// # struct Order { item: String, count: u32 }
    /// async fn total(ctx: OrchestrationContext, item: String) -> Result<u64, String> {
    ///     ctx.schedule_activity_typed("Price", &Order { item, count: 3 }).await
    /// }
    /// ```
    #[track_caller]
    pub fn schedule_activity_typed<In: Serialize, Out: DeserializeOwned + Send + 'static>(
        &self,
        name: impl Into<String>,
        input: &In,
    ) -> DurableFuture<Result<Out, String>> {
        let name = name.into();
        let future = self.activity_at(name.clone(), encoded(input), None, Location::caller());
        future.typed(ACTIVITY_RESULT, name)
    }

    /// Runs an activity on the worker that holds `session_id`.
    ///
    /// ```
    /// # use duroxide_core::context::OrchestrationContext;
    /// async fn chat(ctx: OrchestrationContext, question: String) -> Result<String, String> {
    ///     let session = ctx.instance_id();
    ///     ctx.schedule_activity_on_session("LoadModel", "small", session.as_str()).await?;
    ///     ctx.schedule_activity_on_session("Ask", question, session).await // Finds the model loaded.
    /// }
    /// ```
    #[track_caller]
    pub fn schedule_activity_on_session(
        &self,
        name: impl Into<String>,
        input: impl Into<String>,
        session_id: impl Into<String>,
    ) -> DurableFuture<Result<String, String>> {
        self.activity_at(name.into(), input.into(), Some(session_id.into()), Location::caller())
    }

    /// [`schedule_activity_on_session`](Self::schedule_activity_on_session), typed.
    #[track_caller]
    pub fn schedule_activity_on_session_typed<
        In: Serialize,
        Out: DeserializeOwned + Send + 'static,
    >(
        &self,
        name: impl Into<String>,
        input: &In,
        session_id: impl Into<String>,
    ) -> DurableFuture<Result<Out, String>> {
        let (name, session) = (name.into(), Some(session_id.into()));
        let future = self.activity_at(name.clone(), encoded(input), session, Location::caller());
        future.typed(ACTIVITY_RESULT, name)
    }

    /// Waits. The timer's due time is absolute and survives restarts.
    ///
    /// ```
    /// # use duroxide_core::context::OrchestrationContext;
    /// # use std::time::Duration;
    /// async fn trial(ctx: OrchestrationContext, customer: String) -> Result<String, String> {
    ///     ctx.schedule_timer(Duration::from_secs(30 * 24 * 3600)).await;
    ///     ctx.schedule_activity("SendInvoice", customer).await
    /// }
    /// ```
    #[track_caller]
    pub fn schedule_timer(&self, delay: Duration) -> DurableFuture<()> {
        self.timer_at(delay, Location::caller())
    }

    pub(super) fn activity_at(
        &self,
        name: String,
        input: String,
        session_id: Option<String>,
        location: &'static Location<'static>,
    ) -> DurableFuture<Result<String, String>> {
        let kind = ScheduleKind::Activity { name: name.clone() };
        let action =
            Action::CallActivity { scheduling_event_id: 0, name, input, session_id, tag: None };
        let token = self.emit(Operation::Activity, action, location);
        DurableFuture::waiting(self, token, kind, text_result)
    }

    pub(super) fn timer_at(
        &self,
        delay: Duration,
        location: &'static Location<'static>,
    ) -> DurableFuture<()> {
        let delay_ms = millis_rounded_up(delay);
        let mut state = self.state();
        let fire_at_ms = state.now_ms().saturating_add(delay_ms);
        let action = Action::CreateTimer { scheduling_event_id: 0, fire_at_ms };
        let token = state.emit(Operation::Timer, action, location);
        drop(state);
        DurableFuture::waiting(self, token, ScheduleKind::Timer, |_| ())
    }
}

/// The result of an activity or a child as its code sees it.
pub(super) fn text_result(result: CompletionResult) -> Result<String, String> {
    match result {
        CompletionResult::ActivityOk(text) | CompletionResult::SubOrchOk(text) => Ok(text),
        CompletionResult::ActivityErr(text) | CompletionResult::SubOrchErr(text) => Err(text),
        CompletionResult::TimerFired => Ok(String::new()),
        CompletionResult::ExternalData(data) => Ok(data),
    }
}

/// Encodes a typed payload. A value that cannot be encoded is a bug in the orchestration.
#[track_caller]
#[expect(clippy::panic, reason = "documented: typed payloads must serialise")]
pub(super) fn encoded<T: Serialize>(value: &T) -> String {
    match model::encode(value) {
        Ok(text) => text,
        Err(error) => panic!("payload cannot be encoded: {error}"),
    }
}
