//! All that can lie in a queue (R2.70 – R2.73). Data at rest, like events.

use serde::{Deserialize, Serialize};

use super::ErrorDetails;

/// A queue message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum WorkItem {
    /// Begin an instance.
    StartOrchestration {
        /// Id of the new instance.
        instance: String,
        /// Registered name.
        orchestration: String,
        /// Its input.
        input: String,
        /// Exact version, or the registry's policy.
        version: Option<String>,
        /// Parent, for a child.
        parent_instance: Option<String>,
        /// The parent's schedule event, for a child.
        parent_id: Option<u64>,
        /// The parent's execution, for a child.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        parent_execution_id: Option<u64>,
        /// Always 1 as written by this library.
        execution_id: u64,
    },
    /// Run an activity; the only item of the worker queue.
    ActivityExecute {
        /// Owner instance.
        instance: String,
        /// Owner execution.
        execution_id: u64,
        /// Schedule event.
        id: u64,
        /// Registered name.
        name: String,
        /// Its input.
        input: String,
        /// Session to run it in.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        session_id: Option<String>,
        /// Tag that routes it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tag: Option<String>,
    },
    /// An activity returned `Ok`.
    ActivityCompleted {
        /// Owner instance.
        instance: String,
        /// Owner execution.
        execution_id: u64,
        /// Schedule event.
        id: u64,
        /// What it returned.
        result: String,
    },
    /// An activity failed.
    ActivityFailed {
        /// Owner instance.
        instance: String,
        /// Owner execution.
        execution_id: u64,
        /// Schedule event.
        id: u64,
        /// How.
        details: ErrorDetails,
    },
    /// A timer came due; hidden until then.
    TimerFired {
        /// Owner instance.
        instance: String,
        /// Owner execution.
        execution_id: u64,
        /// Schedule event.
        id: u64,
        /// Due time, milliseconds since the epoch.
        fire_at_ms: u64,
    },
    /// An external event was raised.
    ExternalRaised {
        /// Target instance.
        instance: String,
        /// Name of the event.
        name: String,
        /// Its payload.
        data: String,
    },
    /// A child returned `Ok`.
    SubOrchCompleted {
        /// The parent.
        parent_instance: String,
        /// The parent's execution.
        parent_execution_id: u64,
        /// The parent's schedule event.
        parent_id: u64,
        /// What it returned.
        result: String,
    },
    /// A child failed.
    SubOrchFailed {
        /// The parent.
        parent_instance: String,
        /// The parent's execution.
        parent_execution_id: u64,
        /// The parent's schedule event.
        parent_id: u64,
        /// How.
        details: ErrorDetails,
    },
    /// A cancellation was asked for.
    CancelInstance {
        /// Target instance.
        instance: String,
        /// Why.
        reason: String,
    },
    /// Begin the next execution of an instance.
    ContinueAsNew {
        /// The instance.
        instance: String,
        /// Registered name.
        orchestration: String,
        /// Input of the next execution.
        input: String,
        /// Exact version, or the registry's policy.
        version: Option<String>,
        /// Parent, for a child.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        parent_instance: Option<String>,
        /// The parent's schedule event, for a child.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        parent_id: Option<u64>,
        /// The parent's execution, for a child.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        parent_execution_id: Option<u64>,
        /// Unread queue messages: (queue, payload).
        #[serde(default)]
        carry_forward_events: Vec<(String, String)>,
        /// Custom status to begin with.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        initial_custom_status: Option<String>,
    },
    /// A message for a queue of the instance.
    QueueMessage {
        /// Target instance.
        instance: String,
        /// Name of the queue.
        name: String,
        /// Its payload.
        data: String,
    },
    /// Second-generation external event (R2.60).
    #[cfg(feature = "replay-version-test")]
    ExternalRaised2 {
        /// Target instance.
        instance: String,
        /// Name of the event.
        name: String,
        /// Topic of the event.
        topic: String,
        /// Its payload.
        data: String,
    },
}

/// The text that users fill, where there is one and it may be long.
macro_rules! payload {
    ($item:expr) => {
        match $item {
            Self::StartOrchestration { input: text, .. }
            | Self::ActivityExecute { input: text, .. }
            | Self::ActivityCompleted { result: text, .. }
            | Self::ExternalRaised { data: text, .. }
            | Self::SubOrchCompleted { result: text, .. }
            | Self::ContinueAsNew { input: text, .. }
            | Self::QueueMessage { data: text, .. } => Some(text),
            #[cfg(feature = "replay-version-test")]
            Self::ExternalRaised2 { data: text, .. } => Some(text),
            Self::ActivityFailed { .. }
            | Self::TimerFired { .. }
            | Self::SubOrchFailed { .. }
            | Self::CancelInstance { .. } => None,
        }
    };
}

impl WorkItem {
    /// The input, result or data in it, for stores that keep long texts apart. Error details are none.
    #[doc(hidden)]
    pub fn payload(&self) -> Option<&String> {
        payload!(self)
    }

    /// The same, to be taken out or put back.
    #[doc(hidden)]
    pub fn payload_mut(&mut self) -> Option<&mut String> {
        payload!(self)
    }

    /// Bytes of the texts in it that may be long, for stores that do not keep it as text (R8.147).
    #[doc(hidden)]
    pub fn payload_bytes(&self) -> usize {
        let carried = match self {
            Self::ContinueAsNew { carry_forward_events, .. } => {
                carry_forward_events.iter().map(|(queue, data)| queue.len() + data.len()).sum()
            }
            Self::ActivityFailed { details, .. } | Self::SubOrchFailed { details, .. } => {
                details.display_message().len()
            }
            Self::CancelInstance { reason, .. } => reason.len(),
            _ => 0,
        };
        carried + self.payload().map_or(0, String::len)
    }

    /// The instance whose orchestrator queue this item belongs to; `None` for worker items.
    pub fn orchestration_key(&self) -> Option<&str> {
        match self {
            Self::ActivityExecute { .. } => None,
            Self::SubOrchCompleted { parent_instance, .. }
            | Self::SubOrchFailed { parent_instance, .. } => Some(parent_instance),
            Self::StartOrchestration { instance, .. }
            | Self::ActivityCompleted { instance, .. }
            | Self::ActivityFailed { instance, .. }
            | Self::TimerFired { instance, .. }
            | Self::ExternalRaised { instance, .. }
            | Self::CancelInstance { instance, .. }
            | Self::ContinueAsNew { instance, .. }
            | Self::QueueMessage { instance, .. } => Some(instance),
            #[cfg(feature = "replay-version-test")]
            Self::ExternalRaised2 { instance, .. } => Some(instance),
        }
    }

    /// Whether this item can bring an execution into being.
    pub fn is_start(&self) -> bool {
        matches!(self, Self::StartOrchestration { .. } | Self::ContinueAsNew { .. })
    }

    /// The instance whose child this item begins. Stores find queued starts by it when the parent is
    /// deleted (R6.68).
    pub fn parent_of_start(&self) -> Option<&str> {
        match self {
            Self::StartOrchestration { parent_instance, .. } => parent_instance.as_deref(),
            _ => None,
        }
    }
}

/// Names a message for logs. Queue messages keep their older label (R2.71).
pub fn kind_of(msg: &WorkItem) -> &'static str {
    match msg {
        WorkItem::StartOrchestration { .. } => "StartOrchestration",
        WorkItem::ActivityExecute { .. } => "ActivityExecute",
        WorkItem::ActivityCompleted { .. } => "ActivityCompleted",
        WorkItem::ActivityFailed { .. } => "ActivityFailed",
        WorkItem::TimerFired { .. } => "TimerFired",
        WorkItem::ExternalRaised { .. } => "ExternalRaised",
        WorkItem::SubOrchCompleted { .. } => "SubOrchCompleted",
        WorkItem::SubOrchFailed { .. } => "SubOrchFailed",
        WorkItem::CancelInstance { .. } => "CancelInstance",
        WorkItem::ContinueAsNew { .. } => "ContinueAsNew",
        WorkItem::QueueMessage { .. } => "ExternalRaisedPersistent",
        #[cfg(feature = "replay-version-test")]
        WorkItem::ExternalRaised2 { .. } => "ExternalRaised2",
    }
}
