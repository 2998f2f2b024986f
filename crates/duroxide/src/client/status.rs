//! Where an instance stands: look now, or wait for the end or for news.

use std::time::Duration;

use duroxide_core::model::{OrchestrationStatus, decode};
use serde::de::DeserializeOwned;

use super::wait::Deadline;
use super::{Client, ClientError};

impl Client {
    /// The status now. An instance that no runtime has picked up yet is not found (R6.24).
    pub async fn get_orchestration_status(
        &self,
        instance: &str,
    ) -> Result<OrchestrationStatus, ClientError> {
        Ok(self.store.read_status(instance).await?)
    }

    /// Waits until the instance has completed or failed. It need not exist yet.
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
    pub async fn wait_for_orchestration_typed<Out: DeserializeOwned>(
        &self,
        instance: &str,
        timeout: Duration,
    ) -> Result<Result<Out, String>, ClientError> {
        match self.wait_for_orchestration(instance, timeout).await? {
            OrchestrationStatus::Completed { output, .. } => decode(&output)
                .map(Ok)
                .map_err(|error| ClientError::invalid(format!("decode failed: {error}"))),
            OrchestrationStatus::Failed { details, .. } => Ok(Err(details.display_message())),
            // The wait returns nothing else.
            OrchestrationStatus::NotFound | OrchestrationStatus::Running { .. } => {
                Err(ClientError::Timeout)
            }
        }
    }

    /// Waits until the custom status is newer than `last_seen_version`, or the instance has ended.
    /// Looks at least every `poll_interval`; with a zero timeout, not at all (R6.32).
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
