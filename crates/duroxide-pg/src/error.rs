//! What can go wrong with a database. What SQLSTATEs mean is in `sqlstate.rs`.

use std::fmt;

use duroxide_core::provider::{ProviderError, Refusal};

use crate::sqlstate::{Meaning, meaning};

/// Why a store cannot be opened or used.
#[derive(Clone, PartialEq, Eq)]
pub enum PgError {
    /// The URL or another setting makes no sense.
    InvalidConfig {
        /// What is wrong.
        reason: String,
    },
    /// The server cannot be reached, or the connection broke. What was asked for may have happened.
    Connection {
        /// What was said.
        reason: String,
    },
    /// The server wants somebody else.
    Refused {
        /// SQLSTATE.
        code: String,
        /// What the server said.
        reason: String,
    },
    /// An encrypted connection cannot be had.
    Tls {
        /// What is wrong.
        reason: String,
    },
    /// The schema was made by a newer version of this library.
    NewerSchema {
        /// The schema.
        schema: String,
        /// Its version.
        found: i32,
        /// Newest version this library knows.
        known: i32,
    },
    /// The schema is missing or old, and is not to be changed.
    OldSchema {
        /// The schema.
        schema: String,
        /// Its version; 0 if it is missing.
        found: i32,
        /// The version this library needs.
        needed: i32,
    },
    /// The schema holds things that are not ours.
    ForeignSchema {
        /// The schema.
        schema: String,
        /// One of them.
        found: String,
    },
    /// The schema was made by another build of this library, whose migrations were not the same.
    OtherSchema {
        /// The schema.
        schema: String,
        /// Version of the first migration that differs.
        version: i32,
    },
    /// The database does not store UTF-8.
    Encoding {
        /// What it stores.
        found: String,
    },
    /// The call took too long. What was asked for may have happened.
    Timeout,
    /// The database said no.
    Database {
        /// SQLSTATE.
        code: String,
        /// What it said.
        message: String,
    },
}

impl PgError {
    /// Whether the same call may succeed later. Unknown errors may: only what lies in the data, and
    /// so will be the same next time, is final.
    pub fn is_retryable(&self) -> bool {
        self.meaning() != Some(Meaning::Final)
    }

    /// Whether the transaction was undone because of others or of an outdated plan, and is worth another
    /// try at once.
    pub(crate) fn is_undone_for_others(&self) -> bool {
        matches!(self.meaning(), Some(Meaning::Contention | Meaning::Outdated))
    }

    /// Whether somebody else had a row locked for too long. Nothing has happened.
    pub(crate) fn is_lock_timeout(&self) -> bool {
        self.meaning() == Some(Meaning::Locked)
    }

    /// Somebody else has had a row locked for too long.
    pub(crate) fn lock_timeout() -> Self {
        let message = "somebody else has a row of this instance locked".to_owned();
        Self::Database { code: "55P03".to_owned(), message }
    }

    /// Whether a key was violated, of which general functions tell more than those for common cases.
    pub(crate) fn is_violated_key(&self) -> bool {
        self.meaning() == Some(Meaning::KeyTaken)
    }

    /// Whether the connection is of no use any more.
    pub(crate) fn spoils_connection(&self) -> bool {
        match self {
            Self::Connection { .. } | Self::Timeout | Self::Refused { .. } => true,
            _ => matches!(self.meaning(), Some(Meaning::Outdated | Meaning::ReadOnly)),
        }
    }

    /// Whether what was asked for may have happened.
    pub(crate) fn is_ambiguous(&self) -> bool {
        matches!(self, Self::Connection { .. } | Self::Timeout)
    }

    /// Whether the server is away or not itself, whatever it is asked.
    pub(crate) fn is_outage(&self) -> bool {
        self.is_ambiguous() || self.meaning() == Some(Meaning::Shortage)
    }

    /// Whether, of many things done together, one may be to blame.
    pub(crate) fn may_be_about_one(&self) -> bool {
        matches!(self.meaning(), Some(Meaning::Final | Meaning::KeyTaken | Meaning::Passing))
    }

    /// What the server's error means, if it is one.
    fn meaning(&self) -> Option<Meaning> {
        match self {
            Self::Database { code, .. } => Some(meaning(code)),
            _ => None,
        }
    }
}

impl fmt::Display for PgError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::InvalidConfig { reason } => write!(f, "invalid configuration: {reason}"),
            Self::Connection { reason } => write!(f, "no connection to PostgreSQL: {reason}"),
            Self::Refused { code, reason } => {
                write!(f, "PostgreSQL refuses the connection: {reason} (SQLSTATE {code})")
            }
            Self::Tls { reason } => write!(f, "no encrypted connection: {reason}"),
            Self::NewerSchema { schema, found, known } => write!(
                f,
                "schema {schema:?} has version {found}, made by a newer version of this library, \
                 which knows versions up to {known}: upgrade this program"
            ),
            Self::OldSchema { schema, found: 0, .. } => write!(
                f,
                "schema {schema:?} is not there, and the migration policy is to make none"
            ),
            Self::OldSchema { schema, found, needed } => write!(
                f,
                "schema {schema:?} has version {found}, this library needs {needed}, and the \
                 migration policy is to change nothing"
            ),
            Self::ForeignSchema { schema, found } => {
                write!(f, "schema {schema:?} holds {found:?}, which is not part of a store")
            }
            Self::OtherSchema { schema, version } => write!(
                f,
                "schema {schema:?} was made by another build of this library: its migration \
                 {version} is not the one of this build. Use the build that made it, name another \
                 schema, or remove this one with everything in it (DROP SCHEMA ... CASCADE)"
            ),
            Self::Encoding { found } => {
                write!(f, "the database stores {found}; a store needs one with encoding UTF8")
            }
            Self::Timeout => write!(f, "PostgreSQL took too long to answer"),
            Self::Database { code, message } => write!(f, "{message} (SQLSTATE {code})"),
        }
    }
}

impl std::error::Error for PgError {}

/// What people read: `main` prints the error it returns with `{:?}` (R6.90).
impl fmt::Debug for PgError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl From<tokio_postgres::Error> for PgError {
    fn from(error: tokio_postgres::Error) -> Self {
        let Some(database) = error.as_db_error() else { return Self::of_client(&error) };
        let (code, message) = (database.code().code().to_owned(), database.message().to_owned());
        match meaning(&code) {
            Meaning::Away => Self::Connection { reason: format!("{message} (SQLSTATE {code})") },
            Meaning::Refused => Self::Refused { code, reason: message },
            _ => Self::Database { code, message },
        }
    }
}

impl PgError {
    /// An error that the server knows nothing of. What went wrong on the way is trouble with the way, also
    /// while encryption is agreed on; only what is wrong with the encryption itself is about that.
    fn of_client(error: &tokio_postgres::Error) -> Self {
        let reason = with_causes(error);
        match is_about_encryption(error) {
            true => Self::Tls { reason },
            false => Self::Connection { reason },
        }
    }

    /// The same, about a connection that could not be made: says where to.
    pub(crate) fn at(self, place: &str) -> Self {
        let placed = |reason: String| format!("{reason} ({place})");
        match self {
            Self::Connection { reason } => Self::Connection { reason: placed(reason) },
            Self::Refused { code, reason } => Self::Refused { code, reason: placed(reason) },
            Self::Tls { reason } => Self::Tls { reason: placed(reason) },
            Self::Timeout => Self::Connection { reason: placed("no answer in time".to_owned()) },
            other => other,
        }
    }
}

/// An error with what caused it.
fn with_causes(error: &(dyn std::error::Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let more = error.to_string();
        if !text.ends_with(&more) {
            text = format!("{text}: {more}");
        }
        cause = error.source();
    }
    text
}

/// Whether encryption cannot be had: certificates, versions, a server that has none.
fn is_about_encryption(error: &tokio_postgres::Error) -> bool {
    let Some(cause) = std::error::Error::source(error) else { return false };
    match cause.downcast_ref::<std::io::Error>() {
        Some(error) => error.get_ref().is_some_and(|inner| inner.is::<rustls::Error>()),
        // The driver says by this text alone that the server refused, or that it has no name to check.
        None => cause.is::<rustls::Error>() || error.to_string() == DRIVER_TLS,
    }
}

/// What the driver calls errors of encryption.
const DRIVER_TLS: &str = "error performing TLS handshake";

/// Why an operation did not happen.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The contract says no.
    Refused(Refusal),
    /// The database is in trouble.
    Database(PgError),
}

impl Failure {
    /// The failure as an error of the method that met it.
    pub(crate) fn during(self, operation: &str) -> ProviderError {
        match self {
            Self::Refused(refusal) => refusal.during(operation),
            Self::Database(error) if error.is_retryable() => {
                ProviderError::retryable(operation, error.to_string())
            }
            Self::Database(error) => ProviderError::permanent(operation, error.to_string()),
        }
    }
}

impl From<Refusal> for Failure {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

impl From<PgError> for Failure {
    fn from(error: PgError) -> Self {
        Self::Database(error)
    }
}

impl From<tokio_postgres::Error> for Failure {
    fn from(error: tokio_postgres::Error) -> Self {
        Self::Database(error.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn r8_6_only_data_that_cannot_be_stored_is_final() {
        let retryable = |code: &str| {
            PgError::Database { code: code.to_owned(), message: String::new() }.is_retryable()
        };
        assert!(!retryable("22021") && !retryable("54000"));
        for code in "40001 55P03 57014 53100 0A000 25006 23505 42P01 ZZ999".split_whitespace() {
            assert!(retryable(code), "{code}");
        }
        assert!(PgError::Timeout.is_retryable());
    }

    #[test]
    fn r6_90_main_prints_what_people_read() {
        let reason = "connection refused".to_owned();
        let error = PgError::Connection { reason };
        assert_eq!(format!("{error:?}"), "no connection to PostgreSQL: connection refused");
    }
}
