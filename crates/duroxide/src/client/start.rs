//! Starting an instance. `Ok` means that the start is queued, nothing more: name, version and
//! whether the id is taken are the runtime's business (R6.1, R6.4).

use duroxide_core::model::{INITIAL_EXECUTION_ID, WorkItem, is_reserved_root_id};
use serde::Serialize;

use super::{Client, ClientError, payload};

impl Client {
    /// Starts an instance; the registry's policy picks the version.
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
        self.start(instance.into(), orchestration.into(), None, input.into()).await
    }

    /// Starts an instance with exactly this version.
    pub async fn start_orchestration_versioned(
        &self,
        instance: impl Into<String>,
        orchestration: impl Into<String>,
        version: impl Into<String>,
        input: impl Into<String>,
    ) -> Result<(), ClientError> {
        self.start(instance.into(), orchestration.into(), Some(version.into()), input.into()).await
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
        self.start(instance.into(), orchestration.into(), None, payload(&input)?).await
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
        self.start(instance.into(), orchestration.into(), version, payload(&input)?).await
    }

    async fn start(
        &self,
        instance: String,
        orchestration: String,
        version: Option<String>,
        input: String,
    ) -> Result<(), ClientError> {
        if is_reserved_root_id(&instance) {
            return Err(ClientError::invalid(format!(
                "instance id '{instance}' uses the reserved sub-orchestration marker 'sub::'"
            )));
        }
        self.send(WorkItem::StartOrchestration {
            instance,
            orchestration,
            input,
            version,
            parent_instance: None,
            parent_id: None,
            parent_execution_id: None,
            execution_id: INITIAL_EXECUTION_ID,
        })
        .await
    }
}
