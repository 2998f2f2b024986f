//! Starting an instance. `Ok` means that the start is queued, nothing more: name, version and
//! whether the id is taken are the runtime's business (R6.1, R6.4).

use duroxide_core::model::{INITIAL_EXECUTION_ID, WorkItem, is_reserved_root_id};
use serde::Serialize;

use super::{Client, ClientError, payload};

impl Client {
    /// Starts an instance; the registry's policy picks the version.
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
