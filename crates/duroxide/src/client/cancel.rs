//! Asking an instance to stop.

use duroxide_core::model::WorkItem;

use super::{Client, ClientError};

impl Client {
    /// Asks for a cancellation. Asking again, or for an instance that does not exist or has ended,
    /// is fine and changes nothing (R6.12).
    pub async fn cancel_instance(
        &self,
        instance: impl Into<String>,
        reason: impl Into<String>,
    ) -> Result<(), ClientError> {
        self.send(WorkItem::CancelInstance { instance: instance.into(), reason: reason.into() })
            .await
    }
}
