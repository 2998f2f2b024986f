//! What clients read about an instance.

use serde::{Deserialize, Serialize};

use super::{ErrorDetails, Event, EventKind};

/// Where an instance stands (R6.21).
///
/// ```
/// # use duroxide_core::model::OrchestrationStatus;
/// fn line(status: &OrchestrationStatus) -> String {
///     match status {
///         OrchestrationStatus::NotFound => "unknown, or not picked up yet".into(),
///         OrchestrationStatus::Running { custom_status, .. } => {
///             format!("running: {}", custom_status.as_deref().unwrap_or("no news"))
///         }
///         OrchestrationStatus::Completed { output, .. } => format!("done: {output}"),
///         OrchestrationStatus::Failed { details, .. } => details.display_message(),
///     }
/// }
/// let status =
///     OrchestrationStatus::Running { custom_status: Some("3 of 7".into()), custom_status_version: 3 };
/// assert_eq!(line(&status), "running: 3 of 7");
/// assert!(!status.is_terminal());
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OrchestrationStatus {
    /// Unknown, or started and not yet picked up.
    NotFound,
    /// Begun and not ended.
    Running {
        /// Last status set by the code.
        custom_status: Option<String>,
        /// Number of commits that changed the custom status.
        custom_status_version: u64,
    },
    /// Returned `Ok`.
    Completed {
        /// What it returned.
        output: String,
        /// Last status set by the code.
        custom_status: Option<String>,
        /// Number of commits that changed the custom status.
        custom_status_version: u64,
    },
    /// Ended in an error, cancellation included.
    Failed {
        /// Which one.
        details: ErrorDetails,
        /// Last status set by the code.
        custom_status: Option<String>,
        /// Number of commits that changed the custom status.
        custom_status_version: u64,
    },
}

impl OrchestrationStatus {
    /// Reads the status off the current execution's history: the last Completed or Failed event
    /// decides, else a start event means Running (R6.20). A history that ends in continue-as-new is
    /// Running (R6.22).
    pub fn from_history(history: &[Event], custom: (Option<String>, u64)) -> Self {
        let (custom_status, custom_status_version) = custom;
        for event in history.iter().rev() {
            match &event.kind {
                EventKind::OrchestrationCompleted { output } => {
                    let output = output.clone();
                    return Self::Completed { output, custom_status, custom_status_version };
                }
                EventKind::OrchestrationFailed { details } => {
                    let details = details.clone();
                    return Self::Failed { details, custom_status, custom_status_version };
                }
                _ => {}
            }
        }
        let started =
            history.iter().any(|e| matches!(e.kind, EventKind::OrchestrationStarted { .. }));
        if started {
            Self::Running { custom_status, custom_status_version }
        } else {
            Self::NotFound
        }
    }

    /// Whether the instance has ended.
    pub fn is_terminal(&self) -> bool {
        matches!(self, Self::Completed { .. } | Self::Failed { .. })
    }
}

/// Name, version and parent of an instance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OrchestrationDescriptor {
    /// Registered name.
    pub name: String,
    /// Handler version.
    pub version: String,
    /// Parent, for a child.
    pub parent_instance: Option<String>,
    /// The parent's schedule event, for a child.
    pub parent_id: Option<u64>,
}

/// Sizes of one instance (R6.41).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SystemStats {
    /// Events of the current execution.
    pub history_event_count: u64,
    /// Bytes of their stored JSON.
    pub history_size_bytes: u64,
    /// Messages carried into the current execution by continue-as-new.
    pub queue_pending_count: u64,
    /// Keys in the key-value store.
    pub kv_user_key_count: u64,
    /// Bytes of their values.
    pub kv_total_value_bytes: u64,
}

/// A value of the key-value store with its age.
#[derive(Debug, Clone, PartialEq)]
pub struct KvEntry {
    /// The value.
    pub value: String,
    /// When the code set it, milliseconds since the epoch.
    pub last_updated_at_ms: u64,
}

/// Log levels of orchestration traces.
#[derive(Debug, Clone)]
pub enum LogLevel {
    /// Information.
    Info,
    /// Warning.
    Warn,
    /// Error.
    Error,
}
