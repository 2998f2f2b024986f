//! The custom status of instances that have one.

use rusqlite::params;

use super::{Sql, first, ms_out, number, optional_text, run};
use crate::database::Db;

/// Sets or clears the status; its version grows by one (R8.50).
pub(crate) fn set(c: Db<'_>, instance: i64, status: Option<&str>) -> Sql<()> {
    run(
        c,
        "INSERT INTO custom_status (instance, status, version) VALUES (?1, ?2, 1)
         ON CONFLICT (instance) DO UPDATE SET status = excluded.status, version = version + 1",
        params![instance, status],
    )?;
    Ok(())
}

/// Status and version; nothing and 0 if it was never set.
pub(crate) fn get(c: Db<'_>, instance: i64) -> Sql<(Option<String>, u64)> {
    let found = first(
        c,
        "SELECT status, version FROM custom_status WHERE instance = ?1",
        [instance],
        |row| Ok((optional_text(row, 0)?, number(row, 1)?.map_or(1, ms_out))),
    )?;
    Ok(found.unwrap_or((None, 0)))
}

pub(crate) fn delete(c: Db<'_>, instance: i64) -> Sql<()> {
    run(c, "DELETE FROM custom_status WHERE instance = ?1", [instance])?;
    Ok(())
}
