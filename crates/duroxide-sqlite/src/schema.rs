//! The schema: numbered migrations, applied under the write lock, the only place that makes tables.

use std::path::Path;

use rusqlite::{Connection, TransactionBehavior};

use crate::connection::open_reader;
use crate::error::SqliteError;
use crate::url::Location;

/// Marks our files among SQLite databases: "dxrd".
const APPLICATION_ID: i32 = 0x6478_7264;

/// What leads from each version to the next.
const MIGRATIONS: [&str; 1] = [include_str!("../migrations/0001_initial.sql")];

/// Newest schema this library knows.
pub(crate) const NEWEST: u32 = MIGRATIONS.len() as u32;

/// Brings a database to the newest schema, or says why it will not touch it. Many processes may do
/// this at once: the write lock lets one of them work, the others find it done.
pub(crate) fn migrate(path: &Path, connection: &mut Connection) -> Result<(), SqliteError> {
    let sort = |error: rusqlite::Error| SqliteError::sort(path, &error);
    if version_of(path, connection)? == NEWEST {
        return Ok(());
    }
    let transaction =
        connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(sort)?;
    let from = version_of(path, &transaction)?;
    for migration in MIGRATIONS.iter().skip(from as usize) {
        transaction.execute_batch(migration).map_err(sort)?;
    }
    transaction.pragma_update(None, "application_id", APPLICATION_ID).map_err(sort)?;
    transaction.pragma_update(None, "user_version", NEWEST).map_err(sort)?;
    transaction.commit().map_err(sort)
}

/// Looks at a file that exists, without changing anything: what is not ours must not even get a
/// write-ahead log.
pub(crate) fn check_before_touching(location: &Location) -> Result<(), SqliteError> {
    let Location::File { path, .. } = location else { return Ok(()) };
    let is_empty = std::fs::metadata(path).map_or(true, |file| file.len() == 0);
    if is_empty {
        return Ok(());
    }
    let connection = open_reader(path)?;
    version_of(path, &connection).map(drop)
}

/// Version of a database's schema, 0 if it is empty. Refuses what is not ours.
pub(crate) fn version_of(path: &Path, connection: &Connection) -> Result<u32, SqliteError> {
    let number = |pragma: &str| -> Result<i32, SqliteError> {
        connection
            .pragma_query_value(None, pragma, |row| row.get(0))
            .map_err(|error| SqliteError::sort(path, &error))
    };
    let (owner, version) = (number("application_id")?, number("user_version")?);
    if owner == APPLICATION_ID {
        let found = u32::try_from(version).unwrap_or(0);
        return if found <= NEWEST {
            Ok(found)
        } else {
            Err(SqliteError::NewerSchema { path: path.to_owned(), found, known: NEWEST })
        };
    }
    let tables = tables_of(connection).map_err(|error| SqliteError::sort(path, &error))?;
    if owner == 0 && tables.is_empty() {
        return Ok(0);
    }
    let found = format!("application id {owner}, tables: {}", tables.join(", "));
    Err(SqliteError::Foreign { path: path.to_owned(), found })
}

/// Names of the first few tables.
fn tables_of(connection: &Connection) -> Result<Vec<String>, rusqlite::Error> {
    let mut statement = connection
        .prepare("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name LIMIT 5")?;
    let names = statement.query_map([], |row| row.get(0))?;
    names.collect()
}
