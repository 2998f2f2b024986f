//! Errors that history remembers (R2.80 – R2.86). Their shape is a format, their texts are read by
//! orchestration code.

use serde::{Deserialize, Serialize};

use super::poison::poison_cause;

/// Why an activity, a child or an orchestration failed.
///
/// ```
/// # use duroxide_core::model::{AppErrorKind, ErrorDetails};
/// fn whose_fault(details: &ErrorDetails) -> &'static str {
///     match details {
///         ErrorDetails::Application { kind: AppErrorKind::Cancelled { .. }, .. } => "nobody's",
///         ErrorDetails::Application { .. } => "the code's",
///         ErrorDetails::Configuration { .. } => "the deployment's",
///         ErrorDetails::Poison { .. } => "see the log",
///         ErrorDetails::Infrastructure { .. } => "the store's",
///     }
/// }
/// let details = ErrorDetails::cancelled("out of stock");
/// assert_eq!(whose_fault(&details), "nobody's");
/// assert_eq!(details.display_message(), "canceled: out of stock");
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum ErrorDetails {
    /// The machinery failed: storage, mostly.
    Infrastructure {
        /// What was being done.
        operation: String,
        /// What went wrong.
        message: String,
        /// Whether trying again may help.
        retryable: bool,
    },
    /// The deployment is wrong.
    Configuration {
        /// In which way.
        kind: ConfigErrorKind,
        /// Which resource; empty for errors the engine makes.
        resource: String,
        /// What went wrong.
        message: Option<String>,
    },
    /// User code failed.
    Application {
        /// Where.
        kind: AppErrorKind,
        /// What it said.
        message: String,
        /// Whether trying again may help.
        retryable: bool,
    },
    /// A message was given up after too many attempts.
    Poison {
        /// How often it was fetched.
        attempt_count: u32,
        /// How often it may be fetched.
        max_attempts: u32,
        /// What it was.
        message_type: PoisonMessageType,
        /// The message itself and, if it is known, why it was given up; or the error it caused.
        message: String,
    },
}

impl ErrorDetails {
    /// Nondeterminism found by the engine: no resource, always a message (R2.85).
    pub fn nondeterminism(message: impl Into<String>) -> Self {
        Self::Configuration {
            kind: ConfigErrorKind::Nondeterminism,
            resource: String::new(),
            message: Some(message.into()),
        }
    }

    /// A final application error.
    pub fn application(kind: AppErrorKind, message: impl Into<String>) -> Self {
        Self::Application { kind, message: message.into(), retryable: false }
    }

    /// The error of a cancelled orchestration: the reason is in the kind, the message empty (R2.86).
    pub fn cancelled(reason: impl Into<String>) -> Self {
        Self::application(AppErrorKind::Cancelled { reason: reason.into() }, "")
    }

    /// One word for the family.
    pub fn category(&self) -> &'static str {
        match self {
            Self::Infrastructure { .. } => "infrastructure",
            Self::Configuration { .. } => "configuration",
            Self::Application { .. } => "application",
            Self::Poison { .. } => "poison",
        }
    }

    /// Whether trying again may help.
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::Infrastructure { retryable, .. } | Self::Application { retryable, .. } => {
                *retryable
            }
            Self::Configuration { .. } | Self::Poison { .. } => false,
        }
    }

    /// The text orchestration code and clients see (R2.83).
    pub fn display_message(&self) -> String {
        match self {
            Self::Infrastructure { operation, message, .. } => {
                format!("infrastructure:{operation}: {message}")
            }
            Self::Configuration { message: Some(message), .. } => {
                format!("nondeterministic: {message}")
            }
            Self::Configuration { resource, message: None, .. } => {
                format!("nondeterministic in {resource}")
            }
            Self::Application { kind: AppErrorKind::Cancelled { reason }, .. } => {
                format!("canceled: {reason}")
            }
            Self::Application { kind: AppErrorKind::Panicked, message, .. } => {
                format!("orchestration panicked: {message}")
            }
            Self::Application { message, .. } => message.clone(),
            Self::Poison { attempt_count, max_attempts, message_type, message } => {
                let text = message_type.display(*attempt_count, *max_attempts);
                match poison_cause(message) {
                    Some(cause) => format!("{text}: {cause}"),
                    None => text,
                }
            }
        }
    }
}

/// Kinds of configuration errors.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum ConfigErrorKind {
    /// The code did not do what history says it did.
    Nondeterminism,
}

/// Kinds of application errors.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum AppErrorKind {
    /// An activity returned an error or panicked.
    ActivityFailed,
    /// An orchestration returned an error or broke a limit.
    OrchestrationFailed,
    /// An orchestration panicked.
    Panicked,
    /// An orchestration was cancelled.
    Cancelled {
        /// Why.
        reason: String,
    },
}

/// What kind of message was given up.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum PoisonMessageType {
    /// The messages of a turn.
    Orchestration {
        /// The instance.
        instance: String,
        /// Its execution.
        execution_id: u64,
    },
    /// An activity.
    Activity {
        /// Owner instance.
        instance: String,
        /// Owner execution.
        execution_id: u64,
        /// Registered name.
        activity_name: String,
        /// Schedule event.
        activity_id: u64,
    },
    /// A turn whose history cannot be read.
    FailedDeserialization {
        /// The instance.
        instance: String,
        /// Its execution.
        execution_id: u64,
        /// What reading it said.
        error: String,
    },
}

impl PoisonMessageType {
    fn display(&self, attempts: u32, max: u32) -> String {
        match self {
            Self::Orchestration { instance, .. } => {
                format!("poison: orchestration {instance} exceeded {attempts} attempts (max {max})")
            }
            Self::Activity { activity_name, activity_id, .. } => format!(
                "poison: activity {activity_name}#{activity_id} exceeded {attempts} attempts (max {max})"
            ),
            Self::FailedDeserialization { instance, error, .. } => format!(
                "poison: orchestration {instance} history deserialization failed after {attempts} attempts (max {max}): {error}"
            ),
        }
    }
}
