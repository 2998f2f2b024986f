//! Starting an instance. `Ok` means that the start is queued, nothing more: name, version and
//! whether the id is taken are the runtime's business (R6.1, R6.4). `start` is the one that answers.

use duroxide_core::model::{INITIAL_EXECUTION_ID, WorkItem, is_reserved_root_id};
use serde::Serialize;

use super::{Client, ClientError, payload};

impl Client {
    /// Queues the start of an instance; the registry's policy picks the version. Whether the id is taken
    /// is not looked at: [`start`](Self::start) tells.
    ///
    /// ```
    /// # use std::{sync::Arc, time::Duration};
    /// # use duroxide::{*, providers::memory::MemoryProvider};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), ClientError> {
    /// # let client = Client::new(Arc::new(MemoryProvider::new()));
    /// client.start_orchestration("order-7", "Order", "book").await?;
    /// client.start_orchestration("order-7", "Order", "vase").await?; // Taken: ignored, not an error.
    ///
    /// let refused = client.start_orchestration("sub::1", "Order", "book").await;
    /// assert!(matches!(refused, Err(ClientError::InvalidInput { .. })));
    /// # Ok(())
    /// # }
    /// ```
    pub async fn start_orchestration(
        &self,
        instance: impl Into<String>,
        orchestration: impl Into<String>,
        input: impl Into<String>,
    ) -> Result<(), ClientError> {
        self.send_start(instance.into(), orchestration.into(), None, input.into()).await
    }

    /// Starts an instance with exactly this version.
    pub async fn start_orchestration_versioned(
        &self,
        instance: impl Into<String>,
        orchestration: impl Into<String>,
        version: impl Into<String>,
        input: impl Into<String>,
    ) -> Result<(), ClientError> {
        self.send_start(instance.into(), orchestration.into(), Some(version.into()), input.into())
            .await
    }

    /// Starts an instance with a typed input.
    ///
    /// ```
    /// # use std::{sync::Arc, time::Duration};
    /// # use duroxide::{*, providers::memory::MemoryProvider};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), ClientError> {
    /// # let client = Client::new(Arc::new(MemoryProvider::new()));
    /// #[derive(serde::Serialize)]
    /// struct Order { item: String, count: u32 }
    ///
    /// let order = Order { item: "book".into(), count: 3 };
    /// client.start_orchestration_typed("order-7", "Order", order).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn start_orchestration_typed<In: Serialize>(
        &self,
        instance: impl Into<String>,
        orchestration: impl Into<String>,
        input: In,
    ) -> Result<(), ClientError> {
        self.send_start(instance.into(), orchestration.into(), None, payload(&input)?).await
    }

    /// Starts an instance with exactly this version and a typed input.
    pub async fn start_orchestration_versioned_typed<In: Serialize>(
        &self,
        instance: impl Into<String>,
        orchestration: impl Into<String>,
        version: impl Into<String>,
        input: In,
    ) -> Result<(), ClientError> {
        let version = Some(version.into());
        self.send_start(instance.into(), orchestration.into(), version, payload(&input)?).await
    }

    async fn send_start(
        &self,
        instance: String,
        orchestration: String,
        version: Option<String>,
        input: String,
    ) -> Result<(), ClientError> {
        self.send(root_start(instance, orchestration, version, input)?).await
    }
}

/// The message that begins an instance without a parent.
pub(super) fn root_start(
    instance: String,
    orchestration: String,
    version: Option<String>,
    input: String,
) -> Result<WorkItem, ClientError> {
    if is_reserved_root_id(&instance) {
        return Err(ClientError::invalid(format!(
            "instance id '{instance}' uses the reserved sub-orchestration marker 'sub::'"
        )));
    }
    Ok(WorkItem::StartOrchestration {
        instance,
        orchestration,
        input,
        version,
        parent_instance: None,
        parent_id: None,
        parent_execution_id: None,
        execution_id: INITIAL_EXECUTION_ID,
    })
}
