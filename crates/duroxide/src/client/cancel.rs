//! Asking an instance to stop.

use duroxide_core::model::WorkItem;

use super::{Client, ClientError};

impl Client {
    /// Asks for a cancellation. Asking again, or for an instance that does not exist or has ended,
    /// is fine and changes nothing (R6.12).
    ///
    /// ```
    /// # use std::{sync::Arc, time::Duration};
    /// # use duroxide::{*, providers::memory::MemoryProvider};
    /// # use duroxide::runtime::{Runtime, registry::ActivityRegistry};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let store = Arc::new(MemoryProvider::new());
    /// # let orchestrations = OrchestrationRegistry::builder()
    /// #     .register("Sleep", |ctx: OrchestrationContext, _input: String| async move {
    /// #         ctx.schedule_timer(Duration::from_secs(3600)).await;
    /// #         Ok(String::new())
    /// #     })
    /// #     .build();
    /// # let activities = ActivityRegistry::builder().build();
    /// # let runtime = Runtime::start_with_store(store.clone(), activities, orchestrations).await;
    /// # let client = Client::new(store);
    /// client.start_orchestration("sleep-1", "Sleep", "").await?;
    /// client.cancel_instance("sleep-1", "time to get up").await?;
    /// let outcome: Result<String, String> =
    ///     client.wait_for_orchestration_typed("sleep-1", Duration::from_secs(5)).await?;
    /// assert_eq!(outcome, Err("canceled: time to get up".into()));
    /// # runtime.shutdown(None).await;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn cancel_instance(
        &self,
        instance: impl Into<String>,
        reason: impl Into<String>,
    ) -> Result<(), ClientError> {
        self.send(WorkItem::CancelInstance { instance: instance.into(), reason: reason.into() })
            .await
    }
}
