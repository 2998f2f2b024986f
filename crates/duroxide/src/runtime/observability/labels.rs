//! Label values. Each label has few values, whatever the users do: exporters keep a series of each.

use crate::providers::ProviderError;
use duroxide_core::model::ErrorDetails;

/// How an orchestration came to start: somebody asked for it.
pub(crate) const INITIATED_BY_CLIENT: &str = "client";
/// How an orchestration came to start: as somebody's child.
pub(crate) const INITIATED_BY_PARENT: &str = "suborchestration";
/// How an orchestration came to start: its previous execution asked for it.
pub(crate) const INITIATED_BY_CONTINUE_AS_NEW: &str = "continueAsNew";

/// How an execution ended: with a result.
pub(crate) const STATUS_SUCCESS: &str = "success";
/// How an execution ended: with an error.
pub(crate) const STATUS_FAILED: &str = "failed";
/// How an execution ended: with a successor.
pub(crate) const STATUS_CONTINUED_AS_NEW: &str = "continuedAsNew";

/// How an activity ended: with a result.
pub(crate) const OUTCOME_SUCCESS: &str = "success";
/// How an activity ended: with an error of its own, or a panic.
pub(crate) const OUTCOME_APP_ERROR: &str = "app_error";
/// How an activity ended: its result could not be stored.
pub(crate) const OUTCOME_INFRA_ERROR: &str = "infra_error";
/// How an activity ended: it could not be run here.
pub(crate) const OUTCOME_CONFIG_ERROR: &str = "config_error";
/// How an activity ended: nobody wanted its result any more.
pub(crate) const OUTCOME_CANCELLED: &str = "cancelled";

/// Error types of failed orchestrations.
pub(crate) const APP_ERROR: &str = "app_error";
/// The machinery failed.
pub(crate) const INFRASTRUCTURE_ERROR: &str = "infrastructure_error";
/// The deployment is wrong.
pub(crate) const CONFIG_ERROR: &str = "config_error";
/// The deployment is wrong: its code cannot read a payload that an earlier one stored (R9.60).
pub(crate) const DECODE_ERROR: &str = "decode_error";
/// Given up after too many attempts.
pub(crate) const POISON_ERROR: &str = "poison";

/// Why something was given up: nobody who took it knows the name.
pub(crate) const CAUSE_UNREGISTERED: &str = "unregistered";
/// Why something was given up: its history cannot be read.
pub(crate) const CAUSE_UNREADABLE: &str = "unreadable_history";
/// Why something was given up: its execution belongs to another version of the library.
pub(crate) const CAUSE_INCOMPATIBLE: &str = "incompatible_version";
/// Why something was given up: the store would not take what came of it.
pub(crate) const CAUSE_NOT_STORED: &str = "not_stored";
/// Why something was given up: some other error.
pub(crate) const CAUSE_OTHER: &str = "other";
/// Why something was given up: no attempt came to an end.
pub(crate) const CAUSE_PROCESS_ENDED: &str = "process_ended";

/// Tag label of untagged activities.
pub(crate) const NO_TAG: &str = "default";

/// An error as labels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ErrorLabels {
    /// Value of `error_type`.
    pub(crate) error_type: &'static str,
    /// Value of `error_category`.
    pub(crate) category: &'static str,
}

impl From<&ErrorDetails> for ErrorLabels {
    fn from(details: &ErrorDetails) -> Self {
        let error_type = match details {
            ErrorDetails::Application { .. } => APP_ERROR,
            ErrorDetails::Infrastructure { .. } => INFRASTRUCTURE_ERROR,
            ErrorDetails::Configuration { .. } => CONFIG_ERROR,
            ErrorDetails::Poison { .. } => POISON_ERROR,
        };
        Self { error_type, category: details.category() }
    }
}

/// Value of `final_turn_count`.
pub(crate) fn turn_count_bucket(turns: u64) -> &'static str {
    match turns {
        0..=5 => "1-5",
        6..=10 => "6-10",
        11..=50 => "11-50",
        _ => "50+",
    }
}

/// Value of `retry_attempt`: 0 is the first try.
pub(crate) fn retry_attempt_bucket(retry_attempt: u32) -> &'static str {
    match retry_attempt {
        0 => "0",
        1 => "1",
        2 => "2",
        _ => "3+",
    }
}

/// Value of `error_type` of a store error. Stores name their errors in words, so this is a guess;
/// only a label depends on it.
pub(crate) fn provider_error_type(error: &ProviderError) -> &'static str {
    let message = error.message.to_lowercase();
    let says = |word: &str| message.contains(word);
    if says("deadlock") {
        "deadlock"
    } else if says("timeout") || says("timed out") {
        "timeout"
    } else if says("connection") || says("connect ") || says("disconnected") {
        "connection"
    } else {
        "other"
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use duroxide_core::model::{AppErrorKind, PoisonMessageType};

    #[test]
    fn r9_10_error_types() {
        let infrastructure = ProviderError::retryable("ack", "busy").to_infrastructure_error();
        let poison = ErrorDetails::Poison {
            attempt_count: 11,
            max_attempts: 10,
            message_type: PoisonMessageType::Orchestration {
                instance: "i".to_owned(),
                execution_id: 1,
            },
            message: String::new(),
        };
        for (details, error_type, category) in [
            (ErrorDetails::application(AppErrorKind::Panicked, "p"), "app_error", "application"),
            (ErrorDetails::cancelled("why"), "app_error", "application"),
            (infrastructure, "infrastructure_error", "infrastructure"),
            (ErrorDetails::nondeterminism("m"), "config_error", "configuration"),
            (poison, "poison", "poison"),
        ] {
            assert_eq!(ErrorLabels::from(&details), ErrorLabels { error_type, category });
        }
    }

    #[test]
    fn r9_12_buckets() {
        let turns = [0, 1, 5, 6, 10, 11, 50, 51, u64::MAX].map(turn_count_bucket);
        assert_eq!(turns, ["1-5", "1-5", "1-5", "6-10", "6-10", "11-50", "11-50", "50+", "50+"]);
        assert_eq!([0, 1, 2, 3, u32::MAX].map(retry_attempt_bucket), ["0", "1", "2", "3+", "3+"]);
    }

    #[test]
    fn r9_30_store_errors_by_their_words() {
        for (message, error_type) in [
            ("Deadlock detected", "deadlock"),
            ("pool timed out", "timeout"),
            ("statement TIMEOUT", "timeout"),
            ("Connection refused", "connection"),
            ("could not connect to server", "connection"),
            ("Invalid lock token", "other"),
            ("", "other"),
        ] {
            let error = ProviderError::permanent("op", message);
            assert_eq!(provider_error_type(&error), error_type, "{message}");
        }
    }
}
