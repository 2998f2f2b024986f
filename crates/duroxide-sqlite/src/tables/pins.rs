//! Library versions that executions are pinned to: few, so that each gets a number.

use super::{Sql, all, first, run, text};
use crate::database::Db;

/// The number of a version, given to it if it has none.
pub(crate) fn number_of(c: Db<'_>, version: &str) -> Sql<i64> {
    let known = first(c, "SELECT id FROM pins WHERE version = ?1", [version], |row| row.get(0))?;
    if let Some(id) = known {
        return Ok(id);
    }
    run(c, "INSERT INTO pins (version) VALUES (?1)", [version])?;
    Ok(c.last_insert_rowid())
}

/// All versions with their numbers.
pub(crate) fn list(c: Db<'_>) -> Sql<Vec<(i64, String)>> {
    all(c, "SELECT id, version FROM pins", [], |row| Ok((row.get(0)?, text(row, 1)?)))
}
