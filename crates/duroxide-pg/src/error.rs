//! What can go wrong with a database: SQLSTATEs, sorted in one table.

use std::fmt;

use duroxide_core::provider::{ProviderError, Refusal};
use tokio_postgres::error::SqlState;

/// Why a store cannot be opened or used.
#[derive(Debug, Clone, PartialEq, Eq)]
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
        match self {
            Self::Database { code, .. } => !is_final(code),
            _ => true,
        }
    }

    /// Whether the transaction was undone because of others or of an outdated plan, and is worth another
    /// try at once.
    pub(crate) fn is_undone_for_others(&self) -> bool {
        let passing = ["40001", "40P01", "0A000", "26000"];
        matches!(self, Self::Database { code, .. } if passing.contains(&code.as_str()))
    }

    /// Whether a key was violated, of which general functions tell more than those for common cases.
    pub(crate) fn is_violated_key(&self) -> bool {
        matches!(self, Self::Database { code, .. } if code == "23505")
    }

    /// Whether the connection is of no use any more.
    pub(crate) fn spoils_connection(&self) -> bool {
        match self {
            Self::Connection { .. } | Self::Timeout | Self::Refused { .. } => true,
            // Statements prepared for an older schema, or on another server behind a pooler.
            Self::Database { code, .. } => code == "0A000" || code == "26000" || code == "25006",
            _ => false,
        }
    }

    /// Whether what was asked for may have happened.
    pub(crate) fn is_ambiguous(&self) -> bool {
        matches!(self, Self::Connection { .. } | Self::Timeout)
    }

    /// Whether the server is away or not itself, whatever it is asked.
    pub(crate) fn is_outage(&self) -> bool {
        match self {
            Self::Database { code, .. } => code.starts_with("53") || code.starts_with("57P"),
            Self::Connection { .. } | Self::Timeout => true,
            _ => false,
        }
    }

    /// Whether, of many things done together, one may be to blame.
    pub(crate) fn may_be_about_one(&self) -> bool {
        matches!(self, Self::Database { code, .. } if !self.is_outage() && code != "25006")
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
            Self::Encoding { found } => {
                write!(f, "the database stores {found}; a store needs one with encoding UTF8")
            }
            Self::Timeout => write!(f, "PostgreSQL took too long to answer"),
            Self::Database { code, message } => write!(f, "{message} (SQLSTATE {code})"),
        }
    }
}

impl std::error::Error for PgError {}

impl From<tokio_postgres::Error> for PgError {
    fn from(error: tokio_postgres::Error) -> Self {
        let Some(database) = error.as_db_error() else { return Self::of_client(&error) };
        let (code, message) = (database.code().code().to_owned(), database.message().to_owned());
        // The server ends the connection, or has none to give.
        let ends = [
            SqlState::ADMIN_SHUTDOWN,
            SqlState::CRASH_SHUTDOWN,
            SqlState::CANNOT_CONNECT_NOW,
            SqlState::TOO_MANY_CONNECTIONS,
        ];
        if code.starts_with("08") || ends.contains(database.code()) {
            return Self::Connection { reason: format!("{message} (SQLSTATE {code})") };
        }
        if code.starts_with("28") || code == "3D000" {
            return Self::Refused { code, reason: message };
        }
        Self::Database { code, message }
    }
}

impl PgError {
    /// An error that the server knows nothing of.
    fn of_client(error: &tokio_postgres::Error) -> Self {
        let reason = error.to_string();
        if reason.contains("TLS") { Self::Tls { reason } } else { Self::Connection { reason } }
    }
}

/// Classes of SQLSTATEs for which the same call always ends the same way: data that cannot be stored
/// (22), and what is too large for the database (54). Everything else passes, be it by itself or
/// because somebody mends it: contention (40, 55P03), lack of connections, memory or disk (53), an
/// operator at work (57), a server that is read-only for now (25006), a schema that is being changed
/// (0A000, 42), trouble of the system (58, XX).
fn is_final(code: &str) -> bool {
    code.starts_with("22") || code.starts_with("54")
}

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
        for code in ["22021", "22P05", "22003", "54000"] {
            assert!(!retryable(code), "{code}");
        }
        let passing = "40001 40P01 55P03 57014 57P01 57P02 57P03 53100 53200 53300 0A000 25006 \
                       08000 08006 23505 42P01 42501 3F000 58030 XX000 ZZ999";
        for code in passing.split_whitespace() {
            assert!(retryable(code), "{code}");
        }
        assert!(PgError::Timeout.is_retryable());
    }
}
