//! Events from outside: positional waits and queues.

use std::future::Future;
use std::panic::Location;

use serde::de::DeserializeOwned;

use super::typed::decoded;
use super::{CompletionResult, DurableFuture, Operation, OrchestrationContext, ScheduleKind};
use crate::model::Action;

impl OrchestrationContext {
    /// Waits for the next external event of a name. One that came before the wait was recorded is
    /// not seen; use a queue where that matters.
    ///
    /// ```
    /// # use duroxide_core::context::OrchestrationContext;
    /// async fn ask(ctx: OrchestrationContext, question: String) -> Result<String, String> {
    ///     ctx.set_custom_status(question); // Stored together with the wait: a client may answer.
    ///     Ok(ctx.schedule_wait("Answer").await)
    /// }
    /// ```
    #[track_caller]
    pub fn schedule_wait(&self, name: impl Into<String>) -> DurableFuture<String> {
        let name = name.into();
        let kind = ScheduleKind::ExternalWait { event_name: name.clone() };
        let action = Action::WaitExternal { scheduling_event_id: 0, name };
        let token = self.emit(Operation::Wait, action, Location::caller());
        DurableFuture::waiting(self, token, kind, payload)
    }

    /// [`schedule_wait`](Self::schedule_wait) with a typed payload. One that does not decode panics
    /// where the future is awaited.
    #[track_caller]
    pub fn schedule_wait_typed<T: DeserializeOwned + Send + 'static>(
        &self,
        name: impl Into<String>,
    ) -> DurableFuture<T> {
        let name = name.into();
        let (wait, ctx) = (self.schedule_wait(name.clone()), self.clone());
        let token = wait.origin().map(|(_, token)| token);
        wait.map(move |data| decoded((&ctx, token), ("event payload", &name), &data))
    }

    /// Takes the next message of a queue of this instance. Messages wait until they are read, also
    /// over continue-as-new.
    ///
    /// ```
    /// # use duroxide_core::context::OrchestrationContext;
    /// async fn concat(ctx: OrchestrationContext, mut text: String) -> Result<String, String> {
    ///     loop {
    ///         match ctx.dequeue_event("words").await.as_str() {
    ///             "stop" => return Ok(text),
    ///             word => text.push_str(word),
    ///         }
    ///     }
    /// }
    /// ```
    #[track_caller]
    pub fn dequeue_event(&self, queue: impl Into<String>) -> DurableFuture<String> {
        let name = queue.into();
        let kind = ScheduleKind::QueueDequeue { event_name: name.clone() };
        let action = Action::DequeueEvent { scheduling_event_id: 0, name };
        let token = self.emit(Operation::Dequeue, action, Location::caller());
        DurableFuture::waiting(self, token, kind, payload)
    }

    /// [`dequeue_event`](Self::dequeue_event) with a typed payload. One that does not decode panics
    /// where the future is awaited.
    ///
    /// ```
    /// # use duroxide_core::context::OrchestrationContext;
    /// #[derive(serde::Deserialize)]
    /// enum Command { Add(i64), Close }
    ///
    /// async fn account(ctx: OrchestrationContext, mut balance: i64) -> Result<i64, String> {
    ///     while let Command::Add(amount) = ctx.dequeue_event_typed("commands").await {
    ///         balance += amount;
    ///     }
    ///     Ok(balance)
    /// }
    /// ```
    #[track_caller]
    pub fn dequeue_event_typed<T: DeserializeOwned>(
        &self,
        queue: impl Into<String>,
    ) -> impl Future<Output = T> {
        let queue = queue.into();
        let (message, ctx) = (self.dequeue_event(queue.clone()), self.clone());
        let token = message.origin().map(|(_, token)| token);
        async move { decoded((&ctx, token), ("queue message", &queue), &message.await) }
    }

    /// Older name of [`dequeue_event`](Self::dequeue_event).
    #[deprecated(note = "use dequeue_event")]
    #[track_caller]
    pub fn schedule_wait_persistent(&self, name: impl Into<String>) -> DurableFuture<String> {
        self.dequeue_event(name)
    }

    /// Older name of [`dequeue_event_typed`](Self::dequeue_event_typed).
    #[deprecated(note = "use dequeue_event_typed")]
    #[track_caller]
    pub fn schedule_wait_persistent_typed<T: DeserializeOwned>(
        &self,
        name: impl Into<String>,
    ) -> impl Future<Output = T> {
        self.dequeue_event_typed(name)
    }

    /// Second-generation wait by name and topic (R2.60).
    #[cfg(feature = "replay-version-test")]
    #[track_caller]
    pub fn schedule_wait2(
        &self,
        name: impl Into<String>,
        topic: impl Into<String>,
    ) -> DurableFuture<String> {
        let name = name.into();
        let kind = ScheduleKind::ExternalWait { event_name: name.clone() };
        let action = Action::WaitExternal2 { scheduling_event_id: 0, name, topic: topic.into() };
        let token = self.emit(Operation::TopicWait, action, Location::caller());
        DurableFuture::waiting(self, token, kind, payload)
    }
}

fn payload(result: CompletionResult) -> String {
    match result {
        CompletionResult::ExternalData(data) => data,
        _ => String::new(), // Results of another kind are not delivered to waits.
    }
}
