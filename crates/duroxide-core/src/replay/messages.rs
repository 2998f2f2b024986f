//! Reading a batch: which message starts an execution, which ones it takes in (§1.5).

use super::history::HistoryManager;
use crate::model::{WorkItem, kind_of};

/// A batch of messages, read.
#[derive(Debug)]
pub struct WorkItemReader {
    /// The message that starts an execution, if one counts.
    pub start_item: Option<WorkItem>,
    /// Everything the turn takes in, in order.
    pub completion_messages: Vec<WorkItem>,
    /// Registered name; empty if nothing tells it.
    pub orchestration_name: String,
    /// Input.
    pub input: String,
    /// Version asked for or recorded.
    pub version: Option<String>,
    /// Parent, for a child.
    pub parent_instance: Option<String>,
    /// The parent's schedule event, for a child.
    pub parent_id: Option<u64>,
    /// The parent's execution, for a child.
    pub parent_execution_id: Option<u64>,
    /// Whether the start is a continue-as-new.
    pub is_continue_as_new: bool,
}

impl WorkItemReader {
    /// Reads a batch.
    pub fn from_messages(
        messages: &[WorkItem],
        history_mgr: &HistoryManager,
        instance: &str,
    ) -> Self {
        Self::from_owned(messages.to_vec(), history_mgr, instance)
    }

    /// Reads a batch without copying it.
    pub fn from_owned(
        messages: Vec<WorkItem>,
        history_mgr: &HistoryManager,
        instance: &str,
    ) -> Self {
        let mut start_item = None;
        let mut completion_messages = Vec::new();
        for message in messages {
            if !message.is_start() {
                if matches!(message, WorkItem::ActivityExecute { .. }) {
                    warn_ignored(instance, &message, "it belongs in the worker queue");
                } else {
                    completion_messages.push(message);
                }
            } else if is_duplicate_start(&message, history_mgr) {
                warn_ignored(instance, &message, "the instance exists already");
            } else if start_item.is_some() {
                warn_ignored(instance, &message, "another start came first");
            } else {
                start_item = Some(message);
            }
        }
        prepend_carried(&mut completion_messages, start_item.as_ref());
        Self::with_start(start_item, completion_messages, history_mgr)
    }

    /// Whether a start counts.
    pub fn has_start_item(&self) -> bool {
        self.start_item.is_some()
    }

    /// Whether the orchestration's name is known.
    pub fn has_orchestration_name(&self) -> bool {
        !self.orchestration_name.is_empty()
    }

    fn with_start(
        start_item: Option<WorkItem>,
        completion_messages: Vec<WorkItem>,
        history: &HistoryManager,
    ) -> Self {
        let mut reader = Self {
            start_item: None,
            completion_messages,
            orchestration_name: history.orchestration_name.clone().unwrap_or_default(),
            input: history.orchestration_input.clone().unwrap_or_default(),
            version: history.version(),
            parent_instance: history.parent_instance.clone(),
            parent_id: history.parent_id,
            parent_execution_id: history.parent_execution_id,
            is_continue_as_new: false,
        };
        if let Some(
            WorkItem::StartOrchestration {
                orchestration,
                input,
                version,
                parent_instance,
                parent_id,
                parent_execution_id,
                ..
            }
            | WorkItem::ContinueAsNew {
                orchestration,
                input,
                version,
                parent_instance,
                parent_id,
                parent_execution_id,
                ..
            },
        ) = &start_item
        {
            reader.orchestration_name.clone_from(orchestration);
            reader.input.clone_from(input);
            reader.version.clone_from(version);
            reader.parent_instance.clone_from(parent_instance);
            reader.parent_id = *parent_id;
            reader.parent_execution_id = *parent_execution_id;
            reader.is_continue_as_new = matches!(start_item, Some(WorkItem::ContinueAsNew { .. }));
        }
        reader.start_item = start_item;
        reader
    }
}

/// A client's start never replaces an existing instance, not even between executions (R1.51).
fn is_duplicate_start(message: &WorkItem, history: &HistoryManager) -> bool {
    matches!(message, WorkItem::StartOrchestration { .. }) && !history.is_full_history_empty()
}

/// Carried-over queue messages come before everything new (R1.54).
fn prepend_carried(completions: &mut Vec<WorkItem>, start: Option<&WorkItem>) {
    let Some(WorkItem::ContinueAsNew { instance, carry_forward_events, .. }) = start else {
        return;
    };
    let carried = carry_forward_events.iter().map(|(name, data)| WorkItem::QueueMessage {
        instance: instance.clone(),
        name: name.clone(),
        data: data.clone(),
    });
    completions.splice(0..0, carried);
}

fn warn_ignored(instance: &str, message: &WorkItem, why: &str) {
    tracing::warn!(target: "duroxide::runtime", %instance, "{} ignored: {why}", kind_of(message));
}
