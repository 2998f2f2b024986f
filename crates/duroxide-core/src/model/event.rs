//! The events of a history (R2.1 – R2.60). A change here means `docs/formats.md` and a golden test.

use serde::{Deserialize, Serialize};

use super::ErrorDetails;
use super::version::BUILD_VERSION;
use crate::clock;

/// One recorded fact of an execution.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    /// Position in the execution's history, from 1; 0 means "not assigned yet".
    pub event_id: u64,
    /// The schedule event this one answers or cancels.
    pub source_event_id: Option<u64>,
    /// Owner instance.
    pub instance_id: String,
    /// Owner execution.
    pub execution_id: u64,
    /// When the event was made, in milliseconds since the epoch. Informative only (R2.8).
    pub timestamp_ms: u64,
    /// Version of the library that made the event.
    pub duroxide_version: String,
    /// What happened.
    #[serde(flatten)]
    pub kind: EventKind,
}

impl Event {
    /// An event with a known id, stamped with the wall clock and this library's version.
    pub fn with_event_id(
        event_id: u64,
        instance_id: impl Into<String>,
        execution_id: u64,
        source_event_id: Option<u64>,
        kind: EventKind,
    ) -> Self {
        Self {
            event_id,
            source_event_id,
            instance_id: instance_id.into(),
            execution_id,
            timestamp_ms: clock::wall_clock_ms(),
            duroxide_version: BUILD_VERSION.to_owned(),
            kind,
        }
    }

    /// An event whose id is assigned later.
    pub fn new(
        instance_id: impl Into<String>,
        execution_id: u64,
        source_event_id: Option<u64>,
        kind: EventKind,
    ) -> Self {
        Self::with_event_id(0, instance_id, execution_id, source_event_id, kind)
    }

    /// Position in the execution's history.
    pub fn event_id(&self) -> u64 {
        self.event_id
    }

    /// The schedule event this one answers or cancels.
    pub fn source_event_id(&self) -> Option<u64> {
        self.source_event_id
    }

    /// Whether this event ends its execution (R2.27).
    pub fn is_terminal(&self) -> bool {
        matches!(
            self.kind,
            EventKind::OrchestrationCompleted { .. }
                | EventKind::OrchestrationFailed { .. }
                | EventKind::OrchestrationContinuedAsNew { .. }
        )
    }
}

/// What an event says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type")]
pub enum EventKind {
    /// The execution began; always its first event.
    #[serde(rename = "OrchestrationStarted")]
    OrchestrationStarted {
        /// Registered name of the orchestration.
        name: String,
        /// Resolved handler version, never a range.
        version: String,
        /// Input of this execution.
        input: String,
        /// Instance that scheduled this one as its child.
        parent_instance: Option<String>,
        /// The parent's schedule event.
        parent_id: Option<u64>,
        /// The parent's execution that scheduled this child.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        parent_execution_id: Option<u64>,
        /// Queue messages carried over by continue-as-new: (queue, payload).
        #[serde(default, skip_serializing_if = "Option::is_none")]
        carry_forward_events: Option<Vec<(String, String)>>,
        /// Custom status carried over by continue-as-new.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        initial_custom_status: Option<String>,
    },
    /// The orchestration returned `Ok`.
    #[serde(rename = "OrchestrationCompleted")]
    OrchestrationCompleted {
        /// What it returned.
        output: String,
    },
    /// The orchestration ended in an error of any kind.
    #[serde(rename = "OrchestrationFailed")]
    OrchestrationFailed {
        /// Which one.
        details: ErrorDetails,
    },
    /// An activity was asked for.
    #[serde(rename = "ActivityScheduled")]
    ActivityScheduled {
        /// Registered name.
        name: String,
        /// Its input.
        input: String,
        /// Session that all activities of this id share a worker through.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        session_id: Option<String>,
        /// Tag that routes it to workers accepting the tag.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tag: Option<String>,
    },
    /// An activity returned `Ok`.
    #[serde(rename = "ActivityCompleted")]
    ActivityCompleted {
        /// What it returned.
        result: String,
    },
    /// An activity failed.
    #[serde(rename = "ActivityFailed")]
    ActivityFailed {
        /// How.
        details: ErrorDetails,
    },
    /// An activity's cancellation was decided.
    #[serde(rename = "ActivityCancelRequested")]
    ActivityCancelRequested {
        /// Why (R2.42).
        reason: String,
    },
    /// A timer was set.
    #[serde(rename = "TimerCreated")]
    TimerCreated {
        /// Due time, milliseconds since the epoch.
        fire_at_ms: u64,
    },
    /// A timer came due.
    #[serde(rename = "TimerFired")]
    TimerFired {
        /// Its due time.
        fire_at_ms: u64,
    },
    /// A positional wait for an external event was opened.
    #[serde(rename = "ExternalSubscribed")]
    ExternalSubscribed {
        /// Name of the event waited for.
        name: String,
    },
    /// An external event arrived.
    #[serde(rename = "ExternalEvent")]
    ExternalEvent {
        /// Its name.
        name: String,
        /// Its payload.
        data: String,
    },
    /// A detached orchestration was started.
    #[serde(rename = "OrchestrationChained")]
    OrchestrationChained {
        /// Registered name.
        name: String,
        /// Full id of the new root instance.
        instance: String,
        /// Its input.
        input: String,
    },
    /// A child orchestration was asked for.
    #[serde(rename = "SubOrchestrationScheduled")]
    SubOrchestrationScheduled {
        /// Registered name.
        name: String,
        /// Suffix (`sub::…`) of an automatic id, or the whole chosen id.
        instance: String,
        /// Its input.
        input: String,
    },
    /// A child returned `Ok`.
    #[serde(rename = "SubOrchestrationCompleted")]
    SubOrchestrationCompleted {
        /// What it returned.
        result: String,
    },
    /// A child failed.
    #[serde(rename = "SubOrchestrationFailed")]
    SubOrchestrationFailed {
        /// How.
        details: ErrorDetails,
    },
    /// A child's cancellation was decided.
    #[serde(rename = "SubOrchestrationCancelRequested")]
    SubOrchestrationCancelRequested {
        /// Why (R2.42).
        reason: String,
    },
    /// The execution ended and a successor follows.
    #[serde(rename = "OrchestrationContinuedAsNew")]
    OrchestrationContinuedAsNew {
        /// Input of the successor.
        input: String,
    },
    /// The instance's cancellation was asked for.
    #[serde(rename = "OrchestrationCancelRequested")]
    OrchestrationCancelRequested {
        /// Why.
        reason: String,
    },
    /// A positional wait was given up.
    #[serde(rename = "ExternalSubscribedCancelled")]
    ExternalSubscribedCancelled {
        /// Why (R2.42).
        reason: String,
    },
    /// A dequeue was opened.
    #[serde(rename = "ExternalSubscribedPersistent")]
    QueueSubscribed {
        /// Name of the queue.
        name: String,
    },
    /// A queue message arrived.
    #[serde(rename = "ExternalEventPersistent")]
    QueueEventDelivered {
        /// Name of the queue.
        name: String,
        /// Its payload.
        data: String,
    },
    /// A dequeue was given up.
    #[serde(rename = "ExternalSubscribedPersistentCancelled")]
    QueueSubscriptionCancelled {
        /// Why (R2.42).
        reason: String,
    },
    /// The custom status was set or reset.
    #[serde(rename = "CustomStatusUpdated")]
    CustomStatusUpdated {
        /// New status; `None` resets.
        status: Option<String>,
    },
    /// Second-generation positional wait (R2.60).
    #[cfg(feature = "replay-version-test")]
    #[serde(rename = "ExternalSubscribed2")]
    ExternalSubscribed2 {
        /// Name of the event waited for.
        name: String,
        /// Topic of the event waited for.
        topic: String,
    },
    /// Second-generation external event (R2.60).
    #[cfg(feature = "replay-version-test")]
    #[serde(rename = "ExternalEvent2")]
    ExternalEvent2 {
        /// Its name.
        name: String,
        /// Its topic.
        topic: String,
        /// Its payload.
        data: String,
    },
    /// A key was set.
    #[serde(rename = "KeyValueSet")]
    KeyValueSet {
        /// Which key.
        key: String,
        /// Its new value.
        value: String,
        /// When the code set it, milliseconds since the epoch.
        #[serde(default)]
        last_updated_at_ms: u64,
    },
    /// A key was removed.
    #[serde(rename = "KeyValueCleared")]
    KeyValueCleared {
        /// Which key.
        key: String,
    },
    /// All keys were removed.
    #[serde(rename = "KeyValuesCleared")]
    KeyValuesCleared,
}

/// The text that users fill, where there is one and it may be long.
macro_rules! payload {
    ($kind:expr) => {
        match $kind {
            Self::OrchestrationStarted { input: text, .. }
            | Self::OrchestrationCompleted { output: text }
            | Self::ActivityScheduled { input: text, .. }
            | Self::ActivityCompleted { result: text }
            | Self::ExternalEvent { data: text, .. }
            | Self::OrchestrationChained { input: text, .. }
            | Self::SubOrchestrationScheduled { input: text, .. }
            | Self::SubOrchestrationCompleted { result: text }
            | Self::OrchestrationContinuedAsNew { input: text }
            | Self::QueueEventDelivered { data: text, .. } => Some(text),
            #[cfg(feature = "replay-version-test")]
            Self::ExternalEvent2 { data: text, .. } => Some(text),
            _ => None,
        }
    };
}

impl EventKind {
    /// The input, result or data in it, for stores that keep long texts apart. Key-value data, which
    /// stores hold elsewhere too, and error details are none.
    #[doc(hidden)]
    pub fn payload(&self) -> Option<&String> {
        payload!(self)
    }

    /// The same, to be taken out or put back.
    #[doc(hidden)]
    pub fn payload_mut(&mut self) -> Option<&mut String> {
        payload!(self)
    }
}
