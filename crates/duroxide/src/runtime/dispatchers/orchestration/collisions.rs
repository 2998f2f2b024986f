//! A child start that hits an existing instance starts nothing, and its parent is told (§1.4).

use duroxide_core::model::{AppErrorKind, ErrorDetails, SUB_ORCH_AUTO_PREFIX, WorkItem};
use duroxide_core::replay::HistoryManager;

use super::admit::has_ended;
use super::{Batch, Dispatcher};
use crate::runtime::observability::targets;

/// The call that started, or wants to start, a child.
#[derive(PartialEq)]
struct Call<'a> {
    parent_instance: &'a str,
    parent_id: u64,
    parent_execution_id: Option<u64>,
}

/// Whom a start finds under its id.
struct Occupant<'a> {
    /// The call that started it, if it is known to be a child.
    call: Option<Call<'a>>,
    has_ended: bool,
}

impl Dispatcher {
    /// Notices for the parents of all starts in the batch that collide (R1.40 – R1.43).
    pub(super) async fn collision_notices(
        &self,
        batch: &Batch,
        history: &HistoryManager,
    ) -> Vec<WorkItem> {
        let messages = &batch.item.messages;
        if !messages.iter().any(|message| Call::of(message).is_some()) {
            return Vec::new(); // As nearly always: no look at the history.
        }
        let (occupant, messages) = if batch.item.history_error.is_some() {
            // Whoever it was ends with this batch.
            (Occupant { call: None, has_ended: true }, &messages[..])
        } else if !history.is_empty() {
            (Occupant::recorded(history), &messages[..])
        } else if let Some(first) = messages.iter().position(WorkItem::is_start) {
            // The first start of the batch takes the id; the others come too late.
            let call = Call::of(&messages[first]);
            (Occupant { call, has_ended: false }, &messages[first + 1..])
        } else {
            return Vec::new();
        };
        let mut notices = Vec::new();
        for message in messages {
            let Some(call) = Call::of(message) else { continue };
            if occupant.was_started_by(&call) {
                continue;
            }
            let parent_execution_id = match call.parent_execution_id {
                Some(known) => known,
                None => self.current_execution_of(call.parent_instance).await,
            };
            notices.push(WorkItem::SubOrchFailed {
                parent_instance: call.parent_instance.to_owned(),
                parent_execution_id,
                parent_id: call.parent_id,
                details: already_exists(batch.instance(), occupant.has_ended),
            });
        }
        notices
    }

    /// Takes out cancellations of children whose id is somebody else's: those children never began,
    /// and whoever has the id must not pay for it. Ids made here are nobody else's.
    pub(super) async fn spare_strangers(&self, instance: &str, messages: &mut Vec<WorkItem>) {
        if !messages.iter().any(|message| matches!(message, WorkItem::CancelInstance { .. })) {
            return;
        }
        let own = format!("{instance}::{SUB_ORCH_AUTO_PREFIX}");
        let mut at = 0;
        while at < messages.len() {
            match &messages[at] {
                WorkItem::CancelInstance { instance: child, .. }
                    if !child.starts_with(&own) && self.is_strangers(child, instance).await =>
                {
                    tracing::warn!(target: targets::ORCHESTRATION_DISPATCHER, %instance, %child,
                        "child not cancelled: its id belongs to another instance");
                    messages.remove(at);
                }
                _ => at += 1,
            }
        }
    }

    /// Whether an instance exists and is not the child of this one. If the store cannot tell, no.
    async fn is_strangers(&self, child: &str, parent: &str) -> bool {
        let Some(admin) = self.node.store.as_management_capability() else { return false };
        match admin.get_parent_id(child).await {
            Ok(found) => found.as_deref() != Some(parent),
            Err(_) => false, // Not begun yet, most likely; then its start comes before the cancel.
        }
    }
}

impl<'a> Call<'a> {
    fn of(message: &'a WorkItem) -> Option<Self> {
        match message {
            WorkItem::StartOrchestration {
                parent_instance: Some(parent_instance),
                parent_id: Some(parent_id),
                parent_execution_id,
                ..
            } => Some(Self {
                parent_instance,
                parent_id: *parent_id,
                parent_execution_id: *parent_execution_id,
            }),
            _ => None,
        }
    }
}

impl<'a> Occupant<'a> {
    fn recorded(history: &'a HistoryManager) -> Self {
        let call = history.parent_instance.as_deref().zip(history.parent_id).map(
            |(parent_instance, parent_id)| Call {
                parent_instance,
                parent_id,
                parent_execution_id: history.parent_execution_id,
            },
        );
        Self { call, has_ended: has_ended(history) }
    }

    /// Whether this is the redelivered start of this very child, which lives (R1.41).
    fn was_started_by(&self, call: &Call<'_>) -> bool {
        !self.has_ended && call.parent_execution_id.is_some() && self.call.as_ref() == Some(call)
    }
}

fn already_exists(instance: &str, has_ended: bool) -> ErrorDetails {
    let ending = if has_ended { " and is terminal" } else { "" };
    ErrorDetails::application(
        AppErrorKind::OrchestrationFailed,
        format!("sub-orchestration instance id '{instance}' already exists{ending}"),
    )
}
