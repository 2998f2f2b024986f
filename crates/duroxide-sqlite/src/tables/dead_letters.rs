//! What could not be delivered.

use rusqlite::params;

use duroxide_core::provider::DeadLetter;

use super::{Sql, all, ms_in, ms_out, number, optional_text, run, text};
use crate::database::Db;

/// How many are kept; the oldest make room. Each was logged when it came.
const KEPT: i64 = 10_000;

pub(crate) fn insert(c: Db<'_>, letter: &DeadLetter) -> Sql<()> {
    run(
        c,
        "INSERT INTO dead_letters (instance, payload, reason, at) VALUES (?1, ?2, ?3, ?4)",
        params![letter.instance, letter.payload, letter.reason, ms_in(letter.at_ms)],
    )?;
    let newest = c.last_insert_rowid();
    run(c, "DELETE FROM dead_letters WHERE id <= ?1", [newest - KEPT])?;
    Ok(())
}

/// All of them, oldest first.
pub(crate) fn list(c: Db<'_>) -> Sql<Vec<DeadLetter>> {
    all(c, "SELECT instance, payload, reason, at FROM dead_letters ORDER BY id", [], |row| {
        Ok(DeadLetter {
            instance: optional_text(row, 0)?,
            payload: text(row, 1)?,
            reason: text(row, 2)?,
            at_ms: number(row, 3)?.map_or(0, ms_out),
        })
    })
}
