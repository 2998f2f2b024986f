//! The processes that have the store open, and the counters they share.

use rusqlite::params;

use super::{Sql, all, first, ms_in, run};
use crate::database::Db;

pub(crate) fn insert(c: Db<'_>, id: i64, now: u64) -> Sql<()> {
    run(
        c,
        "INSERT INTO nodes (id, process, opened_at) VALUES (?1, ?2, ?3) ON CONFLICT DO NOTHING",
        params![id, std::process::id(), ms_in(now)],
    )?;
    Ok(())
}

pub(crate) fn delete(c: Db<'_>, id: i64) -> Sql<()> {
    run(c, "DELETE FROM nodes WHERE id = ?1", [id])?;
    Ok(())
}

/// All but this one.
pub(crate) fn others(c: Db<'_>, id: i64) -> Sql<Vec<i64>> {
    all(c, "SELECT id FROM nodes WHERE id <> ?1", [id], |row| row.get(0))
}

/// Marks a transaction as this node's, so that it can be seen later whether it was committed.
pub(crate) fn mark(c: Db<'_>, id: i64, batch: i64) -> Sql<()> {
    run(c, "UPDATE nodes SET last_batch = ?2 WHERE id = ?1", [id, batch])?;
    Ok(())
}

/// The last transaction of this node that was committed.
pub(crate) fn last_batch(c: Db<'_>, id: i64) -> Sql<Option<i64>> {
    first(c, "SELECT last_batch FROM nodes WHERE id = ?1", [id], |row| row.get(0))
}

/// The next free queue position.
pub(crate) fn next_seq(c: Db<'_>) -> Sql<i64> {
    Ok(first(c, "SELECT next_seq FROM counters WHERE id = 1", [], |row| row.get(0))?.unwrap_or(1))
}

pub(crate) fn set_next_seq(c: Db<'_>, next: i64) -> Sql<()> {
    run(c, "UPDATE counters SET next_seq = ?1 WHERE id = 1", [next])?;
    Ok(())
}
