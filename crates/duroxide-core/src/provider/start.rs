//! Starting an instance with an answer: did it begin, or was its id taken (R6.86)?

use super::{DeleteRefused, Provider, ProviderAdmin, ProviderError, Refusal};
use crate::model::{OrchestrationStatus, WorkItem};

/// What became of a start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[must_use = "an id that is taken is not started again"]
pub enum StartOutcome {
    /// The start is stored; the instance will begin.
    Started,
    /// The id is taken by an instance that runs, or whose start is stored already. Nothing was done.
    Running,
    /// The id is taken by an instance that has completed or failed. Nothing was done.
    Ended,
}

/// [`Provider::start_instance`] of a store that has nothing better: a look, then a message. A start
/// that comes between the two is not noticed.
pub(super) async fn look_and_send<P: Provider + ?Sized>(
    store: &P,
    start: WorkItem,
    replace_ended: bool,
) -> Result<StartOutcome, ProviderError> {
    let instance = start.orchestration_key().unwrap_or_default().to_owned();
    match store.read_status(&instance).await? {
        OrchestrationStatus::NotFound => {}
        OrchestrationStatus::Running { .. } => return Ok(StartOutcome::Running),
        _ if !replace_ended => return Ok(StartOutcome::Ended),
        _ => {
            let admin = store.as_management_capability().ok_or_else(|| {
                let why = "this store cannot delete the ended instance: it has no management side";
                ProviderError::permanent("start_instance", why)
            })?;
            if let Err(refused) = admin.try_delete_instance(&instance, false).await? {
                return Err(no_room(store, admin, &instance, refused).await?);
            }
        }
    }
    store.enqueue_for_orchestrator(start, None).await?;
    Ok(StartOutcome::Started)
}

/// Why an ended instance does not make room: if a descendant runs, says which.
async fn no_room<P: Provider + ?Sized>(
    store: &P,
    admin: &dyn ProviderAdmin,
    root: &str,
    refused: DeleteRefused,
) -> Result<ProviderError, ProviderError> {
    if refused == DeleteRefused::StillRunning {
        for descendant in admin.get_instance_tree(root).await?.all_ids {
            if matches!(store.read_status(&descendant).await?, OrchestrationStatus::Running { .. })
            {
                let refusal = Refusal::DescendantRuns { root: root.to_owned(), descendant };
                return Ok(refusal.during("start_instance"));
            }
        }
    }
    Ok(Refusal::Undeletable(refused, root.to_owned()).during("start_instance"))
}
