//! Talking to an instance: external events for whoever waits now, queue messages for whoever reads
//! next. Whether the instance exists is not checked (R6.10, R6.14).

use duroxide_core::model::WorkItem;
use serde::Serialize;

use super::{Client, ClientError, payload};

impl Client {
    /// Raises an external event.
    ///
    /// ```
    /// # use std::{sync::Arc, time::Duration};
    /// # use duroxide::{*, providers::memory::MemoryProvider};
    /// # use duroxide::runtime::{Runtime, registry::ActivityRegistry};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let store = Arc::new(MemoryProvider::new());
    /// # let orchestrations = OrchestrationRegistry::builder()
    /// #     .register("Ask", |ctx: OrchestrationContext, question: String| async move {
    /// #         ctx.set_custom_status(question);
    /// #         Ok(ctx.schedule_wait("Answer").await)
    /// #     })
    /// #     .build();
    /// # let activities = ActivityRegistry::builder().build();
    /// # let runtime = Runtime::start_with_store(store.clone(), activities, orchestrations).await;
    /// # let client = Client::new(store);
    /// let patience = Duration::from_secs(5);
    /// client.start_orchestration("ask-1", "Ask", "tea or coffee?").await?;
    /// client.wait_for_status_change("ask-1", 0, patience, patience).await?; // Now it waits.
    /// client.raise_event("ask-1", "Answer", "tea").await?;
    /// let answer: String = client.wait_for_orchestration_typed("ask-1", patience).await??;
    /// assert_eq!(answer, "tea");
    /// # runtime.shutdown(None).await;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn raise_event(
        &self,
        instance: impl Into<String>,
        event_name: impl Into<String>,
        data: impl Into<String>,
    ) -> Result<(), ClientError> {
        self.send(WorkItem::ExternalRaised {
            instance: instance.into(),
            name: event_name.into(),
            data: data.into(),
        })
        .await
    }

    /// Raises an external event with a typed payload.
    pub async fn raise_event_typed<T: Serialize>(
        &self,
        instance: impl Into<String>,
        event_name: impl Into<String>,
        data: &T,
    ) -> Result<(), ClientError> {
        self.raise_event(instance, event_name, payload(data)?).await
    }

    /// Puts a message into one of the instance's queues, where it stays until it is read.
    ///
    /// ```
    /// # use std::{sync::Arc, time::Duration};
    /// # use duroxide::{*, providers::memory::MemoryProvider};
    /// # use duroxide::runtime::{Runtime, registry::ActivityRegistry};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let store = Arc::new(MemoryProvider::new());
    /// # let orchestrations = OrchestrationRegistry::builder()
    /// #     .register("Pair", |ctx: OrchestrationContext, _input: String| async move {
    /// #         let first = ctx.dequeue_event("words").await;
    /// #         Ok(format!("{first} {}", ctx.dequeue_event("words").await))
    /// #     })
    /// #     .build();
    /// # let activities = ActivityRegistry::builder().build();
    /// # let runtime = Runtime::start_with_store(store.clone(), activities, orchestrations).await;
    /// # let client = Client::new(store);
    /// client.start_orchestration("pair-1", "Pair", "").await?;
    /// client.enqueue_event("pair-1", "words", "hello").await?; // Whether or not it reads already.
    /// client.enqueue_event("pair-1", "words", "world").await?;
    /// let both: String =
    ///     client.wait_for_orchestration_typed("pair-1", Duration::from_secs(5)).await??;
    /// assert_eq!(both, "hello world");
    /// # runtime.shutdown(None).await;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn enqueue_event(
        &self,
        instance: impl Into<String>,
        queue: impl Into<String>,
        data: impl Into<String>,
    ) -> Result<(), ClientError> {
        self.send(WorkItem::QueueMessage {
            instance: instance.into(),
            name: queue.into(),
            data: data.into(),
        })
        .await
    }

    /// Puts a typed message into one of the instance's queues.
    pub async fn enqueue_event_typed<T: Serialize>(
        &self,
        instance: impl Into<String>,
        queue: impl Into<String>,
        data: &T,
    ) -> Result<(), ClientError> {
        self.enqueue_event(instance, queue, payload(data)?).await
    }

    /// The old name of [`enqueue_event`](Self::enqueue_event).
    #[deprecated(note = "use enqueue_event")]
    pub async fn raise_event_persistent(
        &self,
        instance: impl Into<String>,
        event_name: impl Into<String>,
        data: impl Into<String>,
    ) -> Result<(), ClientError> {
        self.enqueue_event(instance, event_name, data).await
    }

    /// Raises a second-generation external event (R2.60).
    #[cfg(feature = "replay-version-test")]
    pub async fn raise_event2(
        &self,
        instance: impl Into<String>,
        event_name: impl Into<String>,
        topic: impl Into<String>,
        data: impl Into<String>,
    ) -> Result<(), ClientError> {
        self.send(WorkItem::ExternalRaised2 {
            instance: instance.into(),
            name: event_name.into(),
            topic: topic.into(),
            data: data.into(),
        })
        .await
    }
}
