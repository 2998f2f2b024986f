//! A child start that hits an existing instance starts nothing, and its parent is told (§1.4).

use duroxide_core::model::{AppErrorKind, ErrorDetails, EventKind, WorkItem};
use duroxide_core::replay::HistoryManager;

use super::Dispatcher;

/// A child start that came to an id in use.
struct Collision<'a> {
    parent_instance: &'a str,
    parent_id: u64,
    parent_execution_id: Option<u64>,
}

impl Dispatcher {
    /// Notices for the parents of all starts in the batch that collide (R1.40 – R1.43).
    pub(super) async fn collision_notices(
        &self,
        messages: &[WorkItem],
        history: &HistoryManager,
    ) -> Vec<WorkItem> {
        if history.is_empty() || !messages.iter().any(|message| collision_of(message).is_some()) {
            return Vec::new();
        }
        let has_ended = has_ended(history);
        let mut notices = Vec::new();
        for message in messages {
            let Some(collision) = collision_of(message) else { continue };
            if !has_ended && is_own_start(&collision, history) {
                continue;
            }
            let parent_execution_id = match collision.parent_execution_id {
                Some(known) => known,
                None => self.current_execution_of(collision.parent_instance).await,
            };
            notices.push(WorkItem::SubOrchFailed {
                parent_instance: collision.parent_instance.to_owned(),
                parent_execution_id,
                parent_id: collision.parent_id,
                details: already_exists(message.orchestration_key().unwrap_or_default(), has_ended),
            });
        }
        notices
    }
}

fn collision_of(message: &WorkItem) -> Option<Collision<'_>> {
    match message {
        WorkItem::StartOrchestration {
            parent_instance: Some(parent_instance),
            parent_id: Some(parent_id),
            parent_execution_id,
            ..
        } => Some(Collision {
            parent_instance,
            parent_id: *parent_id,
            parent_execution_id: *parent_execution_id,
        }),
        _ => None,
    }
}

/// The redelivered start of this very child: same parent, same call (R1.41).
fn is_own_start(collision: &Collision<'_>, history: &HistoryManager) -> bool {
    history.parent_instance.as_deref() == Some(collision.parent_instance)
        && history.parent_id == Some(collision.parent_id)
        && collision.parent_execution_id.is_some()
        && history.parent_execution_id == collision.parent_execution_id
}

fn has_ended(history: &HistoryManager) -> bool {
    let failed = |kind: &EventKind| matches!(kind, EventKind::OrchestrationFailed { .. });
    history.is_completed
        || history.is_failed
        || history.history().iter().any(|event| failed(&event.kind))
}

fn already_exists(instance: &str, has_ended: bool) -> ErrorDetails {
    let ending = if has_ended { " and is terminal" } else { "" };
    ErrorDetails::application(
        AppErrorKind::OrchestrationFailed,
        format!("sub-orchestration instance id '{instance}' already exists{ending}"),
    )
}
