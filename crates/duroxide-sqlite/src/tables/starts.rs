//! Starts among the messages that can be read: found however many messages are before them.
//!
//! A start that came with its instance is the oldest message there. All others have entries in indexes,
//! which most instances never need.

use rusqlite::Row;

use super::messages::Kind;
use super::{Sql, all, first, run};
use crate::database::Db;

/// Position of the message without which a turn can do nothing: the one that begins the next
/// execution, or, for an instance that does not exist, its start.
pub(super) fn beginning(c: Db<'_>, instance: i64, is_known: bool) -> Sql<Option<i64>> {
    let oldest = oldest_start(c, instance)?;
    if let Some((seq, true)) = oldest {
        return Ok(Some(seq));
    }
    let next = first(
        c,
        "SELECT seq FROM messages INDEXED BY messages_start WHERE instance = ?1
         AND kind = 3 AND payload GLOB '{\"ContinueAsNew\"*' ORDER BY seq LIMIT 1",
        [instance],
        |row| row.get(0),
    )?;
    if next.is_some() || is_known {
        return Ok(next);
    }
    let oldest = oldest.map(|(seq, _)| seq);
    if oldest.is_some() {
        return Ok(oldest);
    }
    first(
        c,
        "SELECT seq FROM messages INDEXED BY messages_start WHERE instance = ?1 AND kind = 3
         ORDER BY seq LIMIT 1",
        [instance],
        |row| row.get(0),
    )
}

/// The oldest message, if it is the start that the instance came with; whether it begins the next
/// execution.
fn oldest_start(c: Db<'_>, instance: i64) -> Sql<Option<(i64, bool)>> {
    let found = first(
        c,
        "SELECT seq, kind, payload GLOB '{\"ContinueAsNew\"*' FROM messages WHERE instance = ?1
         ORDER BY seq LIMIT 1",
        [instance],
        |row| Ok((row.get(0)?, row.get::<_, i64>(1)?, row.get(2)?)),
    )?;
    Ok(found
        .and_then(|(seq, kind, is_next)| (kind == Kind::Start as i64).then_some((seq, is_next))))
}

/// Whether a start is among the messages.
pub(crate) fn has_start(c: Db<'_>, instance: i64) -> Sql<bool> {
    if oldest_start(c, instance)?.is_some() {
        return Ok(true);
    }
    let found = first(
        c,
        "SELECT 1 FROM messages INDEXED BY messages_start WHERE instance = ?1 AND kind = 3 LIMIT 1",
        [instance],
        |_| Ok(()),
    )?;
    Ok(found.is_some())
}

/// Removes the starts of an instance's children; for each, the instance it was for and whether it was
/// part of the latest lock there.
pub(crate) fn delete_starts_of(c: Db<'_>, parent: &str) -> Sql<Vec<(i64, bool)>> {
    let read = |row: &Row<'_>| Ok((row.get(0)?, row.get(1)?, row.get(2)?));
    let mut starts: Vec<(i64, i64, bool)> = all(
        c,
        "SELECT q.instance, q.seq,
         NOT q.late AND (m.upto IS NULL OR q.seq <= m.upto OR q.seq IS m.extra)
         FROM messages q LEFT JOIN mailboxes m ON m.instance = q.instance
         WHERE q.kind = 3 AND q.parent = ?1",
        [parent],
        read,
    )?;
    starts.extend(all(
        c,
        "SELECT q.instance, q.seq,
         NOT q.late AND (m.upto IS NULL OR q.seq <= m.upto OR q.seq IS m.extra)
         FROM instances i CROSS JOIN messages q ON q.instance = i.key
         AND q.seq = (SELECT min(seq) FROM messages o WHERE o.instance = i.key)
         LEFT JOIN mailboxes m ON m.instance = q.instance
         WHERE i.parent = ?1 AND q.kind = 1 AND q.parent = ?1",
        [parent],
        read,
    )?);
    for (instance, seq, _) in &starts {
        run(c, "DELETE FROM messages WHERE instance = ?1 AND seq = ?2", [instance, seq])?;
    }
    Ok(starts.into_iter().map(|(instance, _, is_taken)| (instance, is_taken)).collect())
}
