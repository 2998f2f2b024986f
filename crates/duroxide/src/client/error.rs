//! What a client call can answer instead of a result (chapter 6.1).

use std::fmt;

use duroxide_core::provider::{DeleteRefused, ProviderError};

/// Why a client call failed.
///
/// ```
/// use duroxide::ClientError;
///
/// fn advise(error: &ClientError) -> String {
///     match error {
///         ClientError::Timeout => "it is still running, ask again".into(),
///         ClientError::InstanceNotFound { instance_id } => format!("there is no {instance_id}"),
///         error if error.is_retryable() => format!("try again: {error}"),
///         error => format!("give up: {error}"),
///     }
/// }
/// assert_eq!(advise(&ClientError::Timeout), "it is still running, ask again");
/// ```
#[derive(Clone)]
pub enum ClientError {
    /// The store failed.
    Provider(ProviderError),
    /// The store has no management side.
    ManagementNotAvailable,
    /// An argument cannot be used, or a payload is not of the wanted type.
    InvalidInput {
        /// In which way.
        message: String,
    },
    /// The deadline passed first.
    Timeout,
    /// Not deleted: it or a descendant runs.
    InstanceStillRunning {
        /// The instance.
        instance_id: String,
    },
    /// Not deleted: it is a child.
    CannotDeleteSubOrchestration {
        /// The instance.
        instance_id: String,
    },
    /// No such instance.
    InstanceNotFound {
        /// The instance.
        instance_id: String,
    },
}

impl ClientError {
    /// Whether trying again may help.
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::Provider(error) => error.is_retryable(),
            Self::Timeout => true,
            Self::ManagementNotAvailable
            | Self::InvalidInput { .. }
            | Self::InstanceStillRunning { .. }
            | Self::CannotDeleteSubOrchestration { .. }
            | Self::InstanceNotFound { .. } => false,
        }
    }

    pub(super) fn invalid(message: impl Into<String>) -> Self {
        Self::InvalidInput { message: message.into() }
    }

    /// A payload of an instance is not of the wanted type.
    pub(super) fn undecoded<T>(what: &str, instance: &str, error: &dyn fmt::Display) -> Self {
        let expected = std::any::type_name::<T>();
        Self::invalid(format!("{what} of instance '{instance}' is not {expected}: {error}"))
    }

    pub(super) fn refused(refusal: DeleteRefused, instance_id: &str) -> Self {
        let instance_id = instance_id.to_owned();
        match refusal {
            DeleteRefused::NotFound => Self::InstanceNotFound { instance_id },
            DeleteRefused::StillRunning => Self::InstanceStillRunning { instance_id },
            DeleteRefused::SubOrchestration => Self::CannotDeleteSubOrchestration { instance_id },
        }
    }
}

/// `main` prints the errors it returns with `{:?}`, and so does `unwrap`: kind and text, for people.
/// The fields are in `{:#?}` (R6.90).
impl fmt::Debug for ClientError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, field) = match self {
            Self::Provider(error) if f.alternate() => {
                return f.debug_tuple("Provider").field(error).finish();
            }
            Self::Provider(_) => ("Provider", None),
            Self::ManagementNotAvailable => ("ManagementNotAvailable", None),
            Self::InvalidInput { message } => ("InvalidInput", Some(("message", message))),
            Self::Timeout => ("Timeout", None),
            Self::InstanceStillRunning { instance_id } => {
                ("InstanceStillRunning", Some(("instance_id", instance_id)))
            }
            Self::CannotDeleteSubOrchestration { instance_id } => {
                ("CannotDeleteSubOrchestration", Some(("instance_id", instance_id)))
            }
            Self::InstanceNotFound { instance_id } => {
                ("InstanceNotFound", Some(("instance_id", instance_id)))
            }
        };
        match field {
            Some((field, value)) if f.alternate() => {
                f.debug_struct(name).field(field, value).finish()
            }
            None if f.alternate() => f.write_str(name),
            _ => write!(f, "{name} ({self})"),
        }
    }
}

impl fmt::Display for ClientError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let refusal = |refusal: DeleteRefused, id: &str| refusal.into_error(id).message;
        match self {
            Self::Provider(error) => error.fmt(f),
            Self::ManagementNotAvailable => f.write_str(
                "Management features not available - provider doesn't implement ProviderAdmin",
            ),
            Self::InvalidInput { message } => write!(f, "Invalid input: {message}"),
            Self::Timeout => f.write_str("Operation timed out"),
            Self::InstanceStillRunning { instance_id } => {
                f.write_str(&refusal(DeleteRefused::StillRunning, instance_id))
            }
            Self::CannotDeleteSubOrchestration { instance_id } => {
                f.write_str(&refusal(DeleteRefused::SubOrchestration, instance_id))
            }
            Self::InstanceNotFound { instance_id } => {
                f.write_str(&refusal(DeleteRefused::NotFound, instance_id))
            }
        }
    }
}

impl std::error::Error for ClientError {}

impl From<ProviderError> for ClientError {
    fn from(error: ProviderError) -> Self {
        Self::Provider(error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn r6_90_debug_is_for_people_and_its_long_form_for_programmers() {
        let instance_id = "order-7".to_owned();
        let missing = ClientError::InstanceNotFound { instance_id };
        assert_eq!(format!("{missing:?}"), "InstanceNotFound (Instance order-7 not found)");
        let expected = "InstanceNotFound {\n    instance_id: \"order-7\",\n}";
        assert_eq!(format!("{missing:#?}"), expected);
        let full = ClientError::Provider(ProviderError::retryable("read", "disk full"));
        assert_eq!(format!("{full:?}"), "Provider (read: disk full)");
        let long = format!("{full:#?}");
        assert!(long.starts_with("Provider(\n    ProviderError {"), "{long}");
        assert_eq!(format!("{:?}", ClientError::Timeout), "Timeout (Operation timed out)");
        assert_eq!(format!("{:#?}", ClientError::Timeout), "Timeout");
        let invalid = ClientError::invalid("encode: no");
        assert_eq!(format!("{invalid:?}"), "InvalidInput (Invalid input: encode: no)");
    }
}
