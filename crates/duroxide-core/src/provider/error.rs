//! Store errors: for the runtime, which needs to know whether to try again (R8.5, R8.6).

use std::fmt;

use crate::model::ErrorDetails;

/// A failed storage operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProviderError {
    /// What was being done.
    pub operation: String,
    /// What went wrong.
    pub message: String,
    /// Whether trying again may help.
    pub retryable: bool,
}

impl ProviderError {
    /// An error that may go away: contention, timeout, lost connection.
    pub fn retryable(operation: impl Into<String>, message: impl Into<String>) -> Self {
        Self { operation: operation.into(), message: message.into(), retryable: true }
    }

    /// An error that stays: lost lock, duplicate event, bad input, corrupt data.
    pub fn permanent(operation: impl Into<String>, message: impl Into<String>) -> Self {
        Self { operation: operation.into(), message: message.into(), retryable: false }
    }

    /// Whether trying again may help.
    pub fn is_retryable(&self) -> bool {
        self.retryable
    }

    /// The same error as history remembers it.
    pub fn to_infrastructure_error(&self) -> ErrorDetails {
        ErrorDetails::Infrastructure {
            operation: self.operation.clone(),
            message: self.message.clone(),
            retryable: self.retryable,
        }
    }
}

impl fmt::Display for ProviderError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.operation, self.message)
    }
}

impl std::error::Error for ProviderError {}

impl From<String> for ProviderError {
    fn from(message: String) -> Self {
        Self::retryable("unknown", message)
    }
}

impl From<&str> for ProviderError {
    fn from(message: &str) -> Self {
        Self::from(message.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn r8_5_constructors_display_and_conversion() {
        let error = ProviderError::permanent("ack", "lock lost");
        assert_eq!((error.to_string().as_str(), error.is_retryable()), ("ack: lock lost", false));
        assert!(ProviderError::retryable("ack", "busy").is_retryable());
        let plain = ProviderError::from("db down");
        assert_eq!((plain.operation.as_str(), plain.retryable), ("unknown", true));
        assert_eq!(
            plain.to_infrastructure_error().display_message(),
            "infrastructure:unknown: db down"
        );
    }
}
