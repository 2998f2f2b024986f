//! A look at a file before anything touches it: one of another program, or damaged, stays as it is.
//!
//! A file without a log is read as if it could never change: no lock is taken, nothing is made beside
//! it. One with a log is first read without it, which tells foreign files and newer versions, then with
//! it, alone if possible, so that SQLite keeps its index of the log in memory.
//!
//! All looks go through SQLite, for the reason given in `store_files.rs`.

use std::fs::Metadata;
use std::io::{self, ErrorKind};
use std::path::Path;
use std::time::{Duration, SystemTime};

use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, OpenFlags};

use crate::connection::{in_steps, open_existing, open_reader, open_unchanging};
use crate::error::SqliteError;
use crate::file_identity::names_of;
use crate::schema::{self, StoreId};
use crate::store_files::{beside, check_folder};

/// How far damage is looked for: small files are read whole, large ones for about 0.1 s.
const STEPS_THOUSANDS: u32 = 1000;
/// How often a file that others are busy with is looked at, and how long they get between.
const LOOKS: u32 = 8;
const PAUSE: Duration = Duration::from_millis(10);
/// Bytes of a database's header, and of the words it begins with.
const HEADER: u64 = 100;
const MAGIC: u64 = 16;

/// Finds out whether a file can be opened as a store, without changing anything.
pub(crate) fn inspect(path: &Path, create: bool) -> Result<(), SqliteError> {
    let mut before = None;
    for _ in 0..LOOKS {
        let (verdict, state) = look(path, create);
        let Err(error) = verdict else { return Ok(()) };
        let seen = (error.clone(), state);
        // Seen twice, with nothing changed between: it is not another process at work.
        if before.as_ref() == Some(&seen) {
            return Err(error);
        }
        before = Some(seen);
        std::thread::sleep(PAUSE);
    }
    // Another process is at work all the time: then with all the locks that takes.
    match examine(path, create)? {
        Some(file) if 0 < file.len() => open_reader(path).and_then(|c| check(path, &c, None)),
        _ => Ok(()),
    }
}

/// Sorts an error of the file system.
pub(crate) fn sort(path: &Path, error: &io::Error) -> SqliteError {
    let (path, reason) = (path.to_owned(), error.to_string());
    match error.kind() {
        ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => {
            SqliteError::ReadOnly { path, reason }
        }
        ErrorKind::StorageFull => SqliteError::Full { path },
        _ => SqliteError::Io { path, reason },
    }
}

/// What others change when they write: lengths and times of the file and its log.
type State = [Option<(u64, Option<SystemTime>)>; 2];

/// One look, and the state of the files before it.
fn look(path: &Path, create: bool) -> (Result<(), SqliteError>, State) {
    // The log first: it appears when the database has a page already.
    let log = std::fs::metadata(beside(path, "-wal")).ok();
    let state_of = |file: &Metadata| (file.len(), file.modified().ok());
    let state = [log.as_ref().map(state_of), std::fs::metadata(path).ok().as_ref().map(state_of)];
    let has_log = log.is_some_and(|log| 0 < log.len());
    let verdict = examine(path, create).and_then(|file| match file {
        None => Ok(()),
        Some(file) if file.len() == 0 && has_log => {
            Err(corrupt(path, "it is empty, but the log beside it (-wal) is not"))
        }
        Some(file) if file.len() == 0 => Ok(()),
        Some(file) => {
            check_header(path, file.len())?;
            if has_log || beside(path, "-journal").exists() {
                inspect_with_log(path)
            } else {
                open_unchanging(path).and_then(|c| check(path, &c, None))
            }
        }
    });
    (verdict, state)
}

/// What the file system says; `None` for a file that is yet to be made.
fn examine(path: &Path, create: bool) -> Result<Option<Metadata>, SqliteError> {
    let file = match std::fs::metadata(path) {
        Ok(file) if file.is_file() => file,
        Ok(_) => return Err(SqliteError::NotADatabase { path: path.to_owned() }),
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            let folder = match path.parent() {
                Some(folder) if folder != Path::new("") => folder,
                _ => Path::new("."),
            };
            if !folder.is_dir() {
                let (path, folder) = (path.to_owned(), folder.to_owned());
                return Err(SqliteError::NoFolder { path, folder });
            }
            let missing = || SqliteError::NotFound { path: path.to_owned() };
            return if create { Ok(None) } else { Err(missing()) };
        }
        Err(error) => return Err(sort(path, &error)),
    };
    match names_of(&file) {
        names @ 2.. => Err(SqliteError::HardLinked { path: path.to_owned(), names }),
        _ => check_permission(path).map(|()| Some(file)),
    }
}

/// Whether the file can be written.
fn check_permission(path: &Path) -> Result<(), SqliteError> {
    match open_existing(path) {
        Err(error) if error.sqlite_error_code() == Some(ErrorCode::CannotOpen) => {
            check_folder(path).map_err(|error| sort(path, &error))?;
            let reason = error.to_string();
            Err(SqliteError::ReadOnly { path: path.to_owned(), reason })
        }
        opened => {
            let opened = opened.and_then(|c| c.is_readonly(rusqlite::MAIN_DB));
            if opened.map_err(|error| SqliteError::sort(path, &error))? {
                let reason = "it can only be read".to_owned();
                return Err(SqliteError::ReadOnly { path: path.to_owned(), reason });
            }
            Ok(())
        }
    }
}

/// What the first page says of itself, whatever may be in a log.
fn check_header(path: &Path, length: u64) -> Result<(), SqliteError> {
    let connection = open_unchanging(path)?;
    let number = |pragma: &str| -> Result<i32, SqliteError> {
        connection
            .pragma_query_value(None, pragma, |row| row.get(0))
            .map_err(|error| SqliteError::sort(path, &error))
    };
    match (number("application_id"), number("user_version")) {
        (Err(error @ SqliteError::NotADatabase { .. }), _) => Err(error),
        _ if length < MAGIC => Err(SqliteError::NotADatabase { path: path.to_owned() }),
        _ if length < HEADER => Err(corrupt(path, "it ends within its first page")),
        (Ok(owner), Ok(version)) => schema::check_owner(path, owner, version),
        // The rest of the look finds out what is wrong.
        _ => Ok(()),
    }
}

fn inspect_with_log(path: &Path) -> Result<(), SqliteError> {
    // Without the log the file may be incomplete; but which program made it can be told.
    let without = open_unchanging(path).and_then(|c| {
        schema::version_of(path, &c)?;
        Ok(schema::store_id(&c).ok().flatten())
    });
    let own_id = match without {
        Ok(id) => id,
        Err(error @ (SqliteError::Foreign { .. } | SqliteError::NewerSchema { .. })) => {
            return Err(error);
        }
        Err(_) => None,
    };
    let quiet = |c: &Connection| c.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true);
    let alone = || -> Result<Connection, rusqlite::Error> {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(path, flags)?;
        connection.busy_timeout(Duration::ZERO)?;
        quiet(&connection)?;
        connection.pragma_update(None, "locking_mode", "EXCLUSIVE")?;
        connection.pragma_update(None, "query_only", true)?;
        connection.query_row("SELECT count(*) FROM sqlite_schema", [], |_| Ok(()))?;
        Ok(connection)
    };
    match alone().map_err(|error| SqliteError::sort(path, &error)) {
        Ok(connection) => check(path, &connection, own_id),
        Err(SqliteError::Busy { .. }) => {
            let connection = open_reader(path)?;
            quiet(&connection).map_err(|error| SqliteError::sort(path, &error))?;
            check(path, &connection, own_id)
        }
        Err(error) => Err(error),
    }
}

/// Which program made it, whether it is whole, whether the log belongs to it.
fn check(path: &Path, c: &Connection, own_id: Option<StoreId>) -> Result<(), SqliteError> {
    let sort = |error: rusqlite::Error| SqliteError::sort(path, &error);
    if schema::version_of(path, c)? == schema::NEWEST {
        schema::check_tables(path, c)?;
        let id = schema::store_id(c).map_err(sort)?;
        if id.is_none() || own_id.is_some_and(|own_id| Some(own_id) != id) {
            let reason = "pages of another store are in it; the log beside it (-wal) may be its";
            return Err(corrupt(path, reason));
        }
    }
    let verdict = in_steps(c, STEPS_THOUSANDS, |c| {
        c.query_row("PRAGMA integrity_check(1)", [], |row| row.get::<_, String>(0))
    });
    match verdict.map_err(sort)? {
        Some(verdict) if verdict != "ok" => Err(corrupt(path, &verdict)),
        _ => Ok(()),
    }
}

fn corrupt(path: &Path, reason: &str) -> SqliteError {
    SqliteError::Corrupt { path: path.to_owned(), reason: reason.to_owned() }
}
