//! The schema: numbered migrations, applied under the write lock, the only place that makes tables.

use std::path::Path;

use rusqlite::{Connection, OptionalExtension, TransactionBehavior};

use crate::error::SqliteError;

/// Marks Duroxide's files among SQLite databases: "dxrd".
const APPLICATION_ID: i32 = 0x6478_7264;

/// What leads from each version to the next.
const MIGRATIONS: [&str; 8] = [
    include_str!("../migrations/0001_initial.sql"),
    include_str!("../migrations/0002_long_texts.sql"),
    include_str!("../migrations/0003_incarnations.sql"),
    include_str!("../migrations/0004_tried.sql"),
    include_str!("../migrations/0005_batches.sql"),
    include_str!("../migrations/0006_sessions.sql"),
    include_str!("../migrations/0007_waiting.sql"),
    include_str!("../migrations/0008_starts.sql"),
];

/// Newest schema this library knows.
pub(crate) const NEWEST: u32 = MIGRATIONS.len() as u32;

/// What tells one store from another, wherever its file goes.
pub(crate) type StoreId = [u8; 16];

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
    transaction.commit().map_err(sort)?;
    // From here on the file itself says what it is, even if its log gets lost.
    connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(())).map_err(sort)
}

/// Version of a database's schema, 0 if it is empty. Refuses files that are not Duroxide's.
pub(crate) fn version_of(path: &Path, connection: &Connection) -> Result<u32, SqliteError> {
    // All of one state: others may be migrating at this moment.
    let snapshot = connection.is_autocommit().then(|| connection.unchecked_transaction());
    let _snapshot = snapshot.transpose().map_err(|error| SqliteError::sort(path, &error))?;
    let number = |pragma: &str| -> Result<i32, SqliteError> {
        connection
            .pragma_query_value(None, pragma, |row| row.get(0))
            .map_err(|error| SqliteError::sort(path, &error))
    };
    let (owner, version) = (number("application_id")?, number("user_version")?);
    check_owner(path, owner, version)?;
    if owner == APPLICATION_ID {
        return Ok(u32::try_from(version).unwrap_or(0));
    }
    let tables = tables_of(connection).map_err(|error| SqliteError::sort(path, &error))?;
    if tables.is_empty() {
        return Ok(0);
    }
    let found = format!("tables: {}", tables.join(", "));
    Err(SqliteError::Foreign { path: path.to_owned(), found })
}

/// Whether the marks in a file's header are Duroxide's, of a version this library knows, or not set.
pub(crate) fn check_owner(path: &Path, owner: i32, version: i32) -> Result<(), SqliteError> {
    let path = || path.to_owned();
    let known = NEWEST;
    match (owner, u32::try_from(version)) {
        (0, _) => Ok(()),
        (APPLICATION_ID, Ok(found)) if known < found => {
            Err(SqliteError::NewerSchema { path: path(), found, known })
        }
        (APPLICATION_ID, Ok(1..)) => Ok(()),
        (APPLICATION_ID, _) => {
            let reason = format!("{version} is no version of a schema");
            Err(SqliteError::Corrupt { path: path(), reason })
        }
        _ => {
            let found = format!("application id {owner}");
            Err(SqliteError::Foreign { path: path(), found })
        }
    }
}

/// Whether a file of the newest version has all the tables and indexes, as the migrations make them.
pub(crate) fn check_tables(path: &Path, connection: &Connection) -> Result<(), SqliteError> {
    let sort = |error: rusqlite::Error| SqliteError::sort(path, &error);
    let model = Connection::open_in_memory().map_err(sort)?;
    for migration in MIGRATIONS {
        model.execute_batch(migration).map_err(sort)?;
    }
    let found = definitions(connection).map_err(sort)?;
    for (name, definition) in definitions(&model).map_err(sort)? {
        if !found.contains(&(name.clone(), definition)) {
            let reason = format!("`{name}` is not there or not as it was made");
            return Err(SqliteError::Corrupt { path: path.to_owned(), reason });
        }
    }
    Ok(())
}

/// The store's id, if both places that hold it agree. One is on a page that every enqueue writes, the
/// other on one that is never written again: pages of two stores, mixed by a stray log, do not agree.
pub(crate) fn store_id(connection: &Connection) -> Result<Option<StoreId>, rusqlite::Error> {
    let sql = "SELECT i.store FROM identity i JOIN counters c ON c.store = i.store";
    connection.query_row(sql, [], |row| row.get(0)).optional()
}

fn definitions(connection: &Connection) -> Result<Vec<(String, String)>, rusqlite::Error> {
    let sql = "SELECT name, sql FROM sqlite_schema WHERE sql IS NOT NULL";
    let mut statement = connection.prepare(sql)?;
    let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
    rows.collect()
}

/// Names of the first few tables.
fn tables_of(connection: &Connection) -> Result<Vec<String>, rusqlite::Error> {
    let mut statement = connection
        .prepare("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name LIMIT 5")?;
    let names = statement.query_map([], |row| row.get(0))?;
    names.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::connection::open_writer;
    use crate::options::Durability;
    use crate::url::Location;

    #[test]
    fn r10_7_a_migration_that_ends_half_way_is_done_by_the_next() {
        let folder = std::env::temp_dir();
        let path = folder.join(format!("duroxide-schema-{:x}.db", crate::owners::fresh_id()));
        let location = Location::File { path: path.clone(), create: true };
        let mut interrupted = 0;
        for steps in 1_u32.. {
            let mut connection = open_writer(&location, Durability::Process).unwrap();
            // As if the process had ended there: what was done is not committed.
            let mut left = steps;
            let is_over = move || {
                left = left.saturating_sub(1);
                left == 0
            };
            connection.progress_handler(20, Some(is_over)).unwrap();
            if migrate(&path, &mut connection).is_ok() {
                break;
            }
            interrupted += 1;
            drop(connection);
            let connection = open_writer(&location, Durability::Process).unwrap();
            assert_eq!(version_of(&path, &connection), Ok(0), "nothing of it is left");
        }
        assert!(5 < interrupted, "only {interrupted} interruptions");
        let mut connection = open_writer(&location, Durability::Process).unwrap();
        migrate(&path, &mut connection).unwrap();
        assert_eq!(version_of(&path, &connection), Ok(NEWEST));
        check_tables(&path, &connection).unwrap();
        drop(connection);
        std::fs::remove_file(&path).unwrap();
    }
}
