//! Where an instance stands: look now, or wait for the end or for news.

use std::time::Duration;

use duroxide_core::model::{OrchestrationStatus, decode};
use serde::de::DeserializeOwned;

use super::wait::Deadline;
use super::{Client, ClientError};

impl Client {
    /// The status now. An instance that no runtime has picked up yet is not found (R6.24).
    ///
    /// ```
    /// # use std::{sync::Arc, time::Duration};
    /// # use duroxide::{*, providers::memory::MemoryProvider};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), ClientError> {
    /// # let client = Client::new(Arc::new(MemoryProvider::new()));
    /// let status = client.get_orchestration_status("order-7").await?;
    /// assert_eq!(status, OrchestrationStatus::NotFound);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn get_orchestration_status(
        &self,
        instance: &str,
    ) -> Result<OrchestrationStatus, ClientError> {
        Ok(self.store.read_status(instance).await?)
    }

    /// Waits until the instance has completed or failed. It need not exist yet.
    ///
    /// ```
    /// # use std::{sync::Arc, time::Duration};
    /// # use duroxide::{*, providers::memory::MemoryProvider};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), ClientError> {
    /// # let client = Client::new(Arc::new(MemoryProvider::new()));
    /// let nobody_runs_it = client.wait_for_orchestration("order-7", Duration::from_millis(10)).await;
    /// assert!(matches!(nobody_runs_it, Err(ClientError::Timeout)));
    /// # Ok(())
    /// # }
    /// ```
    pub async fn wait_for_orchestration(
        &self,
        instance: &str,
        timeout: Duration,
    ) -> Result<OrchestrationStatus, ClientError> {
        self.wait_until(instance, Deadline::after(timeout), || async {
            let status = self.store.read_status(instance).await?;
            Ok(status.is_terminal().then_some(status))
        })
        .await
    }

    /// Waits until the instance has ended: its decoded output, or the text of its error.
    ///
    /// ```
    /// # use std::{sync::Arc, time::Duration};
    /// # use duroxide::{*, providers::memory::MemoryProvider};
    /// # use duroxide::runtime::{Runtime, registry::ActivityRegistry};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let store = Arc::new(MemoryProvider::new());
    /// # let orchestrations = OrchestrationRegistry::builder()
    /// #     .register_typed("Half", |_ctx: OrchestrationContext, n: u32| async move {
    /// #         if n % 2 == 0 { Ok(n / 2) } else { Err(format!("{n} is odd")) }
    /// #     })
    /// #     .build();
    /// # let activities = ActivityRegistry::builder().build();
    /// # let runtime = Runtime::start_with_store(store.clone(), activities, orchestrations).await;
    /// # let client = Client::new(store);
    /// let patience = Duration::from_secs(5);
    /// client.start_orchestration_typed("half-8", "Half", 8).await?;
    /// client.start_orchestration_typed("half-9", "Half", 9).await?;
    /// assert_eq!(client.wait_for_orchestration_typed("half-8", patience).await?, Ok(4));
    /// assert_eq!(
    ///     client.wait_for_orchestration_typed::<u32>("half-9", patience).await?,
    ///     Err("9 is odd".into())
    /// );
    /// # runtime.shutdown(None).await;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn wait_for_orchestration_typed<Out: DeserializeOwned>(
        &self,
        instance: &str,
        timeout: Duration,
    ) -> Result<Result<Out, String>, ClientError> {
        match self.wait_for_orchestration(instance, timeout).await? {
            OrchestrationStatus::Completed { output, .. } => {
                decode(&output).map(Ok).map_err(|error| {
                    ClientError::undecoded::<Out>("decode failed: output", instance, &error)
                })
            }
            OrchestrationStatus::Failed { details, .. } => Ok(Err(details.display_message())),
            // The wait returns nothing else.
            OrchestrationStatus::NotFound | OrchestrationStatus::Running { .. } => {
                Err(ClientError::Timeout)
            }
        }
    }

    /// Waits until the custom status is newer than `last_seen_version`, or the instance has ended.
    /// Looks at least every `poll_interval`; with a zero timeout, not at all (R6.32).
    ///
    /// ```
    /// # use std::{sync::Arc, time::Duration};
    /// # use duroxide::{*, providers::memory::MemoryProvider};
    /// # use duroxide::runtime::{Runtime, registry::ActivityRegistry};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let store = Arc::new(MemoryProvider::new());
    /// # let orchestrations = OrchestrationRegistry::builder()
    /// #     .register("Work", |ctx: OrchestrationContext, _input: String| async move {
    /// #         for done in ["a third", "two thirds"] {
    /// #             ctx.set_custom_status(done);
    /// #             ctx.schedule_timer(Duration::from_millis(10)).await;
    /// #         }
    /// #         Ok("done".to_owned())
    /// #     })
    /// #     .build();
    /// # let activities = ActivityRegistry::builder().build();
    /// # let runtime = Runtime::start_with_store(store.clone(), activities, orchestrations).await;
    /// # let client = Client::new(store);
    /// client.start_orchestration("work-1", "Work", "").await?;
    /// let (interval, patience) = (Duration::from_secs(1), Duration::from_secs(5));
    /// let mut seen = 0;
    /// loop {
    ///     match client.wait_for_status_change("work-1", seen, interval, patience).await? {
    ///         OrchestrationStatus::Running { custom_status, custom_status_version } => {
    ///             println!("{}", custom_status.unwrap_or_default());
    ///             seen = custom_status_version;
    ///         }
    ///         ended => {
    ///             assert!(matches!(ended, OrchestrationStatus::Completed { .. }));
    ///             break;
    ///         }
    ///     }
    /// }
    /// # runtime.shutdown(None).await;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn wait_for_status_change(
        &self,
        instance: &str,
        last_seen_version: u64,
        poll_interval: Duration,
        timeout: Duration,
    ) -> Result<OrchestrationStatus, ClientError> {
        if timeout.is_zero() {
            return Err(ClientError::Timeout);
        }
        let deadline = Deadline::after(timeout).looking_every(poll_interval);
        self.wait_until(instance, deadline, || async {
            let status = self.store.read_status(instance).await?;
            let is_news = status.is_terminal() || custom_version(&status) > last_seen_version;
            Ok(is_news.then_some(status))
        })
        .await
    }
}

fn custom_version(status: &OrchestrationStatus) -> u64 {
    match status {
        OrchestrationStatus::NotFound => 0,
        OrchestrationStatus::Running { custom_status_version, .. }
        | OrchestrationStatus::Completed { custom_status_version, .. }
        | OrchestrationStatus::Failed { custom_status_version, .. } => *custom_status_version,
    }
}
