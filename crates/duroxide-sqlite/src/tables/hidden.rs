//! Messages that are not due yet, in the order in which they will be.

use rusqlite::params;

use super::long_texts::{TextReference, reference};
use super::messages::{Kind, Message};
use super::{Sql, all, first, ms_in, optional_text, run, text};
use crate::database::Db;

/// A message that has become due.
#[derive(Debug, Clone)]
pub(crate) struct Due {
    pub(crate) visible_at: i64,
    pub(crate) seq: i64,
    pub(crate) instance: i64,
    pub(crate) kind: Kind,
    pub(crate) attempts: u32,
    pub(crate) payload: String,
    pub(crate) text_reference: Option<TextReference>,
    pub(crate) parent: Option<String>,
}

pub(crate) fn insert(
    c: Db<'_>,
    instance: i64,
    seq: i64,
    visible_at: u64,
    message: Message<'_>,
) -> Sql<()> {
    run(
        c,
        "INSERT INTO hidden (visible_at, seq, instance, kind, attempts, payload, long_text, parent)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
        params![
            ms_in(visible_at),
            seq,
            instance,
            message.kind as i64,
            message.attempts,
            message.payload,
            message.long_text,
            message.parent
        ],
    )?;
    Ok(())
}

/// The first messages that are due.
pub(crate) fn due(c: Db<'_>, now: u64, limit: i64) -> Sql<Vec<Due>> {
    all(
        c,
        "SELECT visible_at, seq, instance, kind, attempts, payload, long_text, parent FROM hidden
         WHERE visible_at <= ?1 ORDER BY visible_at, seq LIMIT ?2",
        params![ms_in(now), limit],
        |row| {
            Ok(Due {
                visible_at: row.get(0)?,
                seq: row.get(1)?,
                instance: row.get(2)?,
                kind: match row.get(3)? {
                    1 => Kind::Start,
                    2 => Kind::Queue,
                    _ => Kind::Any,
                },
                attempts: row.get(4)?,
                payload: text(row, 5)?,
                text_reference: reference(row, 6)?,
                parent: optional_text(row, 7)?,
            })
        },
    )
}

pub(crate) fn delete(c: Db<'_>, visible_at: i64, seq: i64) -> Sql<()> {
    run(c, "DELETE FROM hidden WHERE visible_at = ?1 AND seq = ?2", [visible_at, seq])?;
    Ok(())
}

/// Whether any message is due.
pub(crate) fn is_any_due(c: Db<'_>, now: u64) -> Sql<bool> {
    let sql = "SELECT 1 FROM hidden WHERE visible_at <= ?1 LIMIT 1";
    Ok(first(c, sql, [ms_in(now)], |_| Ok(()))?.is_some())
}

/// Where a message of this instance is that becomes visible then or later and was never fetched.
pub(crate) fn untried(
    c: Db<'_>,
    instance: i64,
    from: (i64, i64),
    payload: &str,
) -> Sql<Option<(i64, i64)>> {
    first(
        c,
        "SELECT visible_at, seq FROM hidden INDEXED BY hidden_instance
         WHERE instance = ?1 AND (visible_at, seq) > (?2, ?3) AND attempts = 0 AND payload = ?4
         ORDER BY visible_at, seq LIMIT 1",
        params![instance, from.0, from.1, payload],
        |row| Ok((row.get(0)?, row.get(1)?)),
    )
}

/// Whether a message of this instance is due.
pub(crate) fn is_due(c: Db<'_>, instance: i64, now: u64) -> Sql<bool> {
    let found = first(
        c,
        "SELECT 1 FROM hidden WHERE instance = ?1 AND visible_at <= ?2 LIMIT 1",
        params![instance, ms_in(now)],
        |_| Ok(()),
    )?;
    Ok(found.is_some())
}

/// Whether a message waits for its time.
pub(crate) fn any(c: Db<'_>, instance: i64) -> Sql<bool> {
    let found =
        first(c, "SELECT 1 FROM hidden WHERE instance = ?1 LIMIT 1", [instance], |_| Ok(()))?;
    Ok(found.is_some())
}

/// Whether a start waits for its time.
pub(crate) fn has_start(c: Db<'_>, instance: i64) -> Sql<bool> {
    let found = first(
        c,
        "SELECT 1 FROM hidden WHERE instance = ?1 AND kind = 1 LIMIT 1",
        [instance],
        |_| Ok(()),
    )?;
    Ok(found.is_some())
}

/// Removes the starts of an instance's children; the instances they were for.
pub(crate) fn delete_starts_of(c: Db<'_>, parent: &str) -> Sql<Vec<i64>> {
    let sql = "SELECT instance FROM hidden WHERE parent = ?1 ORDER BY instance, seq";
    let starts = all(c, sql, [parent], |row| row.get(0))?;
    if !starts.is_empty() {
        run(c, "DELETE FROM hidden WHERE parent = ?1", [parent])?;
    }
    Ok(starts)
}

pub(crate) fn delete_all(c: Db<'_>, instance: i64) -> Sql<usize> {
    run(c, "DELETE FROM hidden WHERE instance = ?1", [instance])
}

pub(crate) fn count_waiting(c: Db<'_>, now: u64) -> Sql<u64> {
    let sql = "SELECT count(*) FROM hidden WHERE visible_at <= ?1 OR attempts > 0";
    let count = first(c, sql, [ms_in(now)], |row| row.get(0))?;
    Ok(count.map_or(0, super::ms_out))
}
