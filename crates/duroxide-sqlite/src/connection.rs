//! Connections: opened, set up, and checked to be what was asked for.

use std::path::Path;
use std::time::{Duration, Instant};

use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, OpenFlags};

use crate::error::SqliteError;
use crate::faults;
use crate::options::Durability;
use crate::url::Location;

/// Statements kept ready per connection: more than there are.
const CACHED_STATEMENTS: usize = 256;
/// Pages in the log at which a commit copies them into the database.
const CHECKPOINT_PAGES: u32 = 4000;
/// To what size the log is cut back after it has grown.
pub(crate) const LOG_BYTES_MAX: u32 = 64 << 20;
/// How long others may keep the file before that is an error.
pub(crate) const BUSY_LIMIT: Duration = Duration::from_secs(60);

/// The one connection that writes.
pub(crate) fn open_writer(
    location: &Location,
    durability: Durability,
) -> Result<Connection, SqliteError> {
    let path = path_of(location);
    let connection = open(location)?;
    let sort = |error: rusqlite::Error| SqliteError::sort(path, &error);
    prepare(&connection).map_err(sort)?;
    match location {
        Location::Memory => {
            connection.pragma_update(None, "synchronous", "OFF").map_err(sort)?;
            connection.pragma_update(None, "journal_mode", "MEMORY").map_err(sort)?;
        }
        Location::File { .. } => {
            switch_to_log(&connection).map_err(sort)?;
            set_durability(&connection, durability).map_err(sort)?;
            connection.pragma_update(None, "wal_autocheckpoint", CHECKPOINT_PAGES).map_err(sort)?;
            connection.pragma_update(None, "journal_size_limit", LOG_BYTES_MAX).map_err(sort)?;
            expect_pragma(path, &connection, "journal_mode", "wal")?;
            // Read back: an unknown word would silently mean NORMAL.
            let level = if durability == Durability::Full { "2" } else { "1" };
            expect_pragma(path, &connection, "synchronous", level)?;
        }
    }
    connection.pragma_update(None, "cache_size", -65_536).map_err(sort)?;
    connection.pragma_update(None, "temp_store", "MEMORY").map_err(sort)?;
    Ok(connection)
}

/// A connection that only reads.
pub(crate) fn open_reader(path: &Path) -> Result<Connection, SqliteError> {
    let sort = |error: rusqlite::Error| SqliteError::sort(path, &error);
    let connection = open_existing(path).map_err(sort)?;
    prepare(&connection).map_err(sort)?;
    connection.pragma_update(None, "query_only", true).map_err(sort)?;
    close_quietly(&connection).map_err(sort)?;
    Ok(connection)
}

/// A connection to a file that is there, not set up.
pub(crate) fn open_existing(path: &Path) -> Result<Connection, rusqlite::Error> {
    Connection::open_with_flags(path, file_flags())
}

/// Lets a connection, when it is closed, leave the log to others, even if there are none.
pub(crate) fn close_quietly(connection: &Connection) -> Result<(), rusqlite::Error> {
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true).map(drop)
}

/// A connection to a file that is taken not to change: no locks, and nothing is made beside it.
pub(crate) fn open_unchanging(path: &Path) -> Result<Connection, SqliteError> {
    let sort = |error: rusqlite::Error| SqliteError::sort(path, &error);
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY
        | OpenFlags::SQLITE_OPEN_NO_MUTEX
        | OpenFlags::SQLITE_OPEN_URI;
    // Only what has a meaning in a URI is encoded: the rest of a path may be anything.
    let mut uri = b"file:".to_vec();
    for byte in path.as_os_str().as_encoded_bytes() {
        match byte {
            b'%' | b'?' | b'#' => uri.extend(format!("%{byte:02x}").bytes()),
            byte => uri.push(*byte),
        }
    }
    uri.extend(b"?immutable=1");
    let uri =
        String::from_utf8(uri).map_err(|_| SqliteError::NotFound { path: path.to_owned() })?;
    Connection::open_with_flags(uri, flags).map_err(sort)
}

/// Does something that reads, but not for long: so many steps of SQLite's machine at most. `None` if
/// that was not enough. Steps, not time: a busy machine must not see less.
pub(crate) fn in_steps<T>(
    connection: &Connection,
    thousands: u32,
    read: impl FnOnce(&Connection) -> Result<T, rusqlite::Error>,
) -> Result<Option<T>, rusqlite::Error> {
    let mut left = thousands;
    let is_over = move || {
        left = left.saturating_sub(1);
        left == 0
    };
    connection.progress_handler(1000, Some(is_over))?;
    let result = read(connection);
    connection.progress_handler(0, None::<fn() -> bool>)?;
    match result {
        Err(error) if error.sqlite_error_code() == Some(ErrorCode::OperationInterrupted) => {
            Ok(None)
        }
        result => result.map(Some),
    }
}

/// Says whether commits wait for the disk, from the next transaction on.
pub(crate) fn set_durability(
    connection: &Connection,
    durability: Durability,
) -> Result<(), rusqlite::Error> {
    let level = match durability {
        Durability::Full => "FULL",
        Durability::Process => "NORMAL",
    };
    connection.pragma_update(None, "synchronous", level)
}

/// The file, for messages.
pub(crate) fn path_of(location: &Location) -> &Path {
    match location {
        Location::Memory => Path::new(":memory:"),
        Location::File { path, .. } => path,
    }
}

fn open(location: &Location) -> Result<Connection, SqliteError> {
    let path = path_of(location);
    let Location::File { create, .. } = location else {
        return Connection::open_in_memory().map_err(|error| SqliteError::sort(path, &error));
    };
    let mut flags = file_flags();
    flags.set(OpenFlags::SQLITE_OPEN_CREATE, *create);
    let sort = |error: rusqlite::Error| SqliteError::sort(path, &error);
    let connection = Connection::open_with_flags(path, flags).map_err(sort)?;
    // SQLite makes do with a file it can only read.
    if connection.is_readonly(rusqlite::MAIN_DB).map_err(sort)? {
        let reason = "it can only be read".to_owned();
        return Err(SqliteError::ReadOnly { path: path.to_owned(), reason });
    }
    Ok(connection)
}

/// Copies the log into the database and cuts it off; whether that was possible, since another process
/// may be reading it.
pub(crate) fn cut_log(connection: &Connection) -> Result<bool, rusqlite::Error> {
    const WAIT: Duration = Duration::from_millis(20);
    connection.busy_timeout(WAIT)?;
    let mut is_cut = false;
    let done = connection.pragma(None, "wal_checkpoint", "TRUNCATE", |row| {
        is_cut = row.get::<_, i64>(0)? == 0;
        Ok(())
    });
    connection.busy_handler(Some(wait_for_others))?;
    match done {
        Err(error) if error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy) => Ok(false),
        done => done.map(|()| is_cut),
    }
}

/// Copies what can be copied of the log into the database, without waiting for others; how many pages
/// of it have been copied. It is as many as before if a connection still reads what was there then.
pub(crate) fn copied_of_log(connection: &Connection) -> Result<i64, rusqlite::Error> {
    let mut copied = 0;
    connection.pragma(None, "wal_checkpoint", "PASSIVE", |row| {
        copied = row.get(2)?;
        Ok(())
    })?;
    Ok(copied)
}

/// What all connections have in common.
fn prepare(connection: &Connection) -> Result<(), rusqlite::Error> {
    connection.busy_handler(Some(wait_for_others))?;
    connection.set_prepared_statement_cache_capacity(CACHED_STATEMENTS);
    // Plans do not depend on values, so a prepared statement stays prepared.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    Ok(())
}

fn file_flags() -> OpenFlags {
    // Each connection stays with one thread, so SQLite need not guard it.
    OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX
}

/// Called by SQLite while another process has the file: how often it was asked, whether to go on.
fn wait_for_others(asked: i32) -> bool {
    // 100 us at first (a commit of another process), 5 ms at last.
    let pause = Duration::from_micros(100 << asked.clamp(0, 6)).min(Duration::from_millis(5));
    std::thread::sleep(pause);
    // The first seven pauses are shorter than the rest: the sum is close enough to the limit.
    u128::from(asked.unsigned_abs()) < faults::busy_limit(BUSY_LIMIT).as_millis() / 5
}

/// Turns the write-ahead log on. Of several processes that do so on a fresh file some are told
/// "busy" without SQLite waiting, so waiting is done here.
fn switch_to_log(connection: &Connection) -> Result<(), rusqlite::Error> {
    let began = Instant::now();
    loop {
        match connection.pragma_update(None, "journal_mode", "WAL") {
            Err(rusqlite::Error::SqliteFailure(failure, _))
                if failure.code == ErrorCode::DatabaseBusy
                    && began.elapsed() < faults::busy_limit(BUSY_LIMIT) =>
            {
                std::thread::sleep(Duration::from_millis(1));
            }
            other => return other,
        }
    }
}

fn expect_pragma(
    path: &Path,
    connection: &Connection,
    name: &str,
    expected: &str,
) -> Result<(), SqliteError> {
    let found = connection
        .pragma_query_value(None, name, |row| {
            let value = row.get_ref(0)?;
            Ok(value
                .as_i64()
                .map_or_else(|_| value.as_str().unwrap_or_default().to_owned(), |n| n.to_string()))
        })
        .map_err(|error| SqliteError::sort(path, &error))?;
    if found.eq_ignore_ascii_case(expected) {
        return Ok(());
    }
    let reason = format!("{name} is {found} and cannot be set to {expected} on this file system");
    Err(SqliteError::Other { path: path.to_owned(), reason })
}
