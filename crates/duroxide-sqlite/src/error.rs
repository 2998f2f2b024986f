//! What can go wrong with a file: SQLite's result codes, sorted in one table.

use std::fmt;
use std::path::{Path, PathBuf};

use duroxide_core::provider::{ProviderError, Refusal};
use rusqlite::ErrorCode;

/// Why a store cannot be opened or used. Each says which file and what to do.
#[derive(Clone, PartialEq, Eq)]
pub enum SqliteError {
    /// The URL makes no sense.
    InvalidUrl {
        /// The URL.
        url: String,
        /// What is wrong with it.
        reason: String,
    },
    /// There is no such file, and the URL does not ask for one to be made.
    NotFound {
        /// The file.
        path: PathBuf,
    },
    /// The file cannot be made, because its folder is not there.
    NoFolder {
        /// The file.
        path: PathBuf,
        /// The folder.
        folder: PathBuf,
    },
    /// The file is not a SQLite database.
    NotADatabase {
        /// The file.
        path: PathBuf,
    },
    /// The file is a SQLite database of something else.
    Foreign {
        /// The file.
        path: PathBuf,
        /// What it looks like.
        found: String,
    },
    /// The file has further names (hard links). SQLite would keep a log for each of them.
    HardLinked {
        /// The file.
        path: PathBuf,
        /// How many names it has.
        names: u64,
    },
    /// The file was written by a newer version of this library.
    NewerSchema {
        /// The file.
        path: PathBuf,
        /// Version of its schema.
        found: u32,
        /// Newest version this library knows.
        known: u32,
    },
    /// The file is damaged.
    Corrupt {
        /// The file.
        path: PathBuf,
        /// What SQLite said.
        reason: String,
    },
    /// The file or its folder cannot be written.
    ReadOnly {
        /// The file.
        path: PathBuf,
        /// What the system said.
        reason: String,
    },
    /// The disk is full. Nothing was changed; work goes on when there is room.
    Full {
        /// The file.
        path: PathBuf,
    },
    /// Another process holds the file. Nothing was changed.
    Busy {
        /// The file.
        path: PathBuf,
        /// What SQLite said.
        reason: String,
    },
    /// Reading or writing failed.
    Io {
        /// The file.
        path: PathBuf,
        /// What SQLite said.
        reason: String,
    },
    /// The file, or one of those beside it, was deleted or replaced while the store was in use.
    /// Nothing more is written.
    Lost {
        /// The file: the database, its log (`-wal`) or the index of that (`-shm`).
        path: PathBuf,
    },
    /// A row makes no sense.
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// Anything else.
    Other {
        /// The file.
        path: PathBuf,
        /// What SQLite said.
        reason: String,
    },
    /// The store was closed.
    Closed,
}

impl SqliteError {
    /// Sorts an error of SQLite by its result code.
    pub(crate) fn sort(path: &Path, error: &rusqlite::Error) -> Self {
        let (path, reason) = (path.to_owned(), error.to_string());
        let rusqlite::Error::SqliteFailure(failure, _) = error else {
            return Self::Unreadable { path, reason };
        };
        match failure.code {
            ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked => Self::Busy { path, reason },
            ErrorCode::DiskFull => Self::Full { path },
            ErrorCode::ReadOnly | ErrorCode::PermissionDenied => Self::ReadOnly { path, reason },
            ErrorCode::NotADatabase => Self::NotADatabase { path },
            ErrorCode::DatabaseCorrupt => Self::Corrupt { path, reason },
            ErrorCode::SystemIoFailure | ErrorCode::CannotOpen => Self::Io { path, reason },
            ErrorCode::ConstraintViolation | ErrorCode::TypeMismatch => {
                Self::Unreadable { path, reason }
            }
            _ => Self::Other { path, reason },
        }
    }

    /// Whether trying again may help (R8.6). What is wrong with the file itself stays wrong.
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::Full { .. } | Self::Busy { .. } | Self::Io { .. } | Self::Other { .. } => true,
            Self::InvalidUrl { .. }
            | Self::NotFound { .. }
            | Self::NoFolder { .. }
            | Self::NotADatabase { .. }
            | Self::Foreign { .. }
            | Self::HardLinked { .. }
            | Self::NewerSchema { .. }
            | Self::Corrupt { .. }
            | Self::ReadOnly { .. }
            | Self::Lost { .. }
            | Self::Unreadable { .. }
            | Self::Closed => false,
        }
    }
}

impl fmt::Display for SqliteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::InvalidUrl { url, reason } => {
                write!(f, "`{url}` is not the URL of a store: {reason}")
            }
            Self::NotFound { path } => write!(
                f,
                "{} does not exist; add `?mode=rwc` to the URL to create it",
                path.display()
            ),
            Self::NoFolder { path, folder } => write!(
                f,
                "{} cannot be made: the folder {} does not exist; make it first",
                path.display(),
                folder.display()
            ),
            Self::NotADatabase { path } => {
                write!(f, "{} is not a SQLite database; it was left as it is", path.display())
            }
            Self::Foreign { path, found } => write!(
                f,
                "{} is a database of something else ({found}); it was left as it is",
                path.display()
            ),
            Self::HardLinked { path, names } => write!(
                f,
                "{} has {names} names (hard links), and by each of them SQLite would keep a log of its \
                 own; leave it one name, or use symbolic links",
                path.display()
            ),
            Self::NewerSchema { path, found, known } => write!(
                f,
                "{} has schema version {found}, but this library knows versions up to {known}; \
                 use a newer library",
                path.display()
            ),
            Self::Corrupt { path, reason } => {
                write!(f, "{} is damaged: {reason}; restore it from a backup", path.display())
            }
            Self::ReadOnly { path, reason } => {
                let path = path.display();
                write!(f, "{path} or its folder cannot be written: {reason}; allow it to be")
            }
            Self::Full { path } => {
                write!(f, "no room left on the disk of {}; nothing was changed", path.display())
            }
            Self::Busy { path, reason } => write!(
                f,
                "another process holds {}: {reason}; if this goes on, look for a process that is \
                 stopped (SIGSTOP, a debugger, a frozen container) or in a long transaction",
                path.display()
            ),
            Self::Io { path, reason } => {
                write!(f, "reading or writing {} failed: {reason}", path.display())
            }
            Self::Lost { path } => write!(
                f,
                "{} was deleted or replaced while in use; nothing more is written, since it would not \
                 be found; end the process and open the store again",
                path.display()
            ),
            Self::Unreadable { path, reason } => {
                write!(f, "a row of {} makes no sense: {reason}", path.display())
            }
            Self::Other { path, reason } => write!(f, "{}: {reason}", path.display()),
            Self::Closed => f.write_str("the store is closed"),
        }
    }
}

impl std::error::Error for SqliteError {}

/// What people read: `main` prints the error it returns with `{:?}` (R6.90).
impl fmt::Debug for SqliteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Whether an error is about a value that makes no sense, not about the file.
pub(crate) fn is_unreadable(error: &rusqlite::Error) -> bool {
    !matches!(error, rusqlite::Error::SqliteFailure(..))
}

/// Why an operation did not happen.
#[derive(Debug)]
pub(crate) enum OpError {
    /// The contract forbids it; nothing was written.
    Refused(Refusal),
    /// SQLite failed; what was written has to be undone.
    Storage(rusqlite::Error),
}

impl From<Refusal> for OpError {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

impl From<rusqlite::Error> for OpError {
    fn from(error: rusqlite::Error) -> Self {
        Self::Storage(error)
    }
}

/// The same for the caller, once the file's name is known.
#[derive(Debug, Clone)]
pub(crate) enum Failure {
    Refused(Refusal),
    Storage(SqliteError),
}

impl Failure {
    /// As an error of the method that met it.
    pub(crate) fn during(self, operation: &str) -> ProviderError {
        match self {
            Self::Refused(refusal) => refusal.during(operation),
            Self::Storage(error) => ProviderError {
                operation: operation.to_owned(),
                message: error.to_string(),
                retryable: error.is_retryable(),
            },
        }
    }
}

impl From<Refusal> for Failure {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}
