//! Messages that can be read, clustered by instance, in queue order.

use rusqlite::params;

use super::long_texts::{self, Apart, reference};
use super::{Sql, all, first, ms_in, run, text};
use crate::database::Db;

/// What decides whether a message can be served to somebody unknown (R8.28, R8.29).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(i64)]
pub(crate) enum Kind {
    /// Anything not named below.
    Any = 0,
    /// Brings an instance into being.
    Start = 1,
    /// A message for a queue of the instance.
    Queue = 2,
}

/// A message about to be stored.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Message<'a> {
    pub(crate) kind: Kind,
    pub(crate) attempts: u32,
    pub(crate) payload: &'a str,
    /// Key of the text that belongs into it.
    pub(crate) long_text: Option<i64>,
    /// The instance whose child it begins.
    pub(crate) parent: Option<&'a str>,
}

/// How a message came to be readable.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Arrival {
    /// Place in the queue.
    pub(crate) seq: i64,
    pub(crate) since: u64,
    /// Whether the instance is or was locked without it.
    pub(crate) late: bool,
}

/// A message of a locked batch.
#[derive(Debug, Clone)]
pub(crate) struct Taken {
    pub(crate) seq: i64,
    pub(crate) attempts: u32,
    pub(crate) payload: String,
    pub(crate) apart: Option<Apart>,
    /// Whether it came after the latest lock was taken.
    late: bool,
}

pub(crate) fn insert(c: Db<'_>, instance: i64, arrival: Arrival, message: Message<'_>) -> Sql<()> {
    run(
        c,
        "INSERT INTO messages
         (instance, seq, kind, attempts, late, since, payload, long_text, parent)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
        params![
            instance,
            arrival.seq,
            message.kind as i64,
            message.attempts,
            arrival.late,
            ms_in(arrival.since),
            message.payload,
            message.long_text,
            message.parent
        ],
    )?;
    Ok(())
}

/// Position of the oldest message.
pub(crate) fn oldest(c: Db<'_>, instance: i64) -> Sql<Option<i64>> {
    first(
        c,
        "SELECT seq FROM messages WHERE instance = ?1 ORDER BY seq LIMIT 1",
        [instance],
        |row| row.get(0),
    )
}

/// Positions of all messages.
pub(crate) fn positions(c: Db<'_>, instance: i64) -> Sql<Vec<i64>> {
    let sql = "SELECT seq FROM messages WHERE instance = ?1 ORDER BY seq";
    all(c, sql, [instance], |row| row.get(0))
}

/// All messages, in order (R8.21). The attempt that begins is part of what is returned, and written
/// down if the lock ends without a commit: otherwise nobody will ask.
pub(crate) fn read(c: Db<'_>, instance: i64) -> Sql<Vec<Taken>> {
    let mut messages = all(
        c,
        "SELECT seq, attempts, payload, late, long_text FROM messages
         WHERE instance = ?1 ORDER BY seq",
        [instance],
        |row| {
            Ok(Taken {
                seq: row.get(0)?,
                attempts: row.get::<_, u32>(1)?.saturating_add(1),
                payload: text(row, 2)?,
                apart: reference(row, 4)?,
                late: row.get(3)?,
            })
        },
    )?;
    messages
        .iter_mut()
        .try_for_each(|message| long_texts::fetch(c, instance, &mut message.apart))?;
    Ok(messages)
}

/// Makes these messages the locked batch.
pub(crate) fn take(c: Db<'_>, instance: i64, messages: &[Taken]) -> Sql<()> {
    if messages.iter().any(|message| message.late) {
        run(c, "UPDATE messages SET late = 0 WHERE instance = ?1 AND late", [instance])?;
    }
    Ok(())
}

/// Removes the locked batch (R8.42).
pub(crate) fn delete_taken(c: Db<'_>, instance: i64) -> Sql<()> {
    run(c, "DELETE FROM messages WHERE instance = ?1 AND NOT late", [instance])?;
    Ok(())
}

/// Writes down attempts of the locked batch, or takes them back.
pub(crate) fn count_taken(c: Db<'_>, instance: i64, more: i64) -> Sql<()> {
    run(
        c,
        "UPDATE messages SET attempts = max(min(attempts + ?2, 4294967295), 0)
         WHERE instance = ?1 AND NOT late",
        [instance, more],
    )?;
    Ok(())
}

/// Hides the locked batch until then (R8.65).
pub(crate) fn hide_taken(c: Db<'_>, instance: i64, until: u64) -> Sql<()> {
    run(
        c,
        "INSERT INTO hidden (visible_at, seq, instance, kind, attempts, payload, long_text, parent)
         SELECT ?2, seq, instance, kind, attempts, payload, long_text, parent
         FROM messages WHERE instance = ?1 AND NOT late",
        params![instance, ms_in(until)],
    )?;
    delete_taken(c, instance)
}

/// Whether a start is among the messages.
pub(crate) fn has_start(c: Db<'_>, instance: i64) -> Sql<bool> {
    let found = first(
        c,
        "SELECT 1 FROM messages WHERE instance = ?1 AND kind = 1 LIMIT 1",
        [instance],
        |_| Ok(()),
    )?;
    Ok(found.is_some())
}

/// Whether all messages are queue messages.
pub(crate) fn only_queue_messages(c: Db<'_>, instance: i64) -> Sql<bool> {
    let other = first(
        c,
        "SELECT 1 FROM messages WHERE instance = ?1 AND kind <> 2 LIMIT 1",
        [instance],
        |_| Ok(()),
    )?;
    Ok(other.is_none())
}

/// Since when the oldest message can be read.
pub(crate) fn oldest_since(c: Db<'_>, instance: i64) -> Sql<Option<i64>> {
    first(
        c,
        "SELECT since FROM messages WHERE instance = ?1 ORDER BY seq LIMIT 1",
        [instance],
        |row| row.get(0),
    )
}

/// Removes a message; its payload and its long text.
pub(crate) fn delete(c: Db<'_>, instance: i64, seq: i64) -> Sql<Option<(String, Option<Apart>)>> {
    let mut message = first(
        c,
        "SELECT payload, long_text FROM messages WHERE instance = ?1 AND seq = ?2",
        [instance, seq],
        |row| Ok((text(row, 0)?, reference(row, 1)?)),
    )?;
    if let Some((_, apart)) = &mut message {
        long_texts::fetch(c, instance, apart)?;
    }
    run(c, "DELETE FROM messages WHERE instance = ?1 AND seq = ?2", [instance, seq])?;
    Ok(message)
}

/// Removes the starts of an instance's children; for each, who it was for and whether it was part of
/// the latest lock there.
pub(crate) fn delete_starts_of(c: Db<'_>, parent: &str) -> Sql<Vec<(i64, bool)>> {
    let starts = all(
        c,
        "SELECT instance, NOT late FROM messages WHERE parent = ?1 ORDER BY instance, seq",
        [parent],
        |row| Ok((row.get(0)?, row.get(1)?)),
    )?;
    if !starts.is_empty() {
        run(c, "DELETE FROM messages WHERE parent = ?1", [parent])?;
    }
    Ok(starts)
}

pub(crate) fn delete_all(c: Db<'_>, instance: i64) -> Sql<usize> {
    run(c, "DELETE FROM messages WHERE instance = ?1", [instance])
}

/// Messages that no valid lock covers.
pub(crate) fn count_unlocked(c: Db<'_>, now: u64) -> Sql<u64> {
    let count = first(
        c,
        "SELECT count(*) FROM messages q LEFT JOIN mailboxes m ON m.instance = q.instance
         WHERE q.late OR NOT ifnull(m.state = 2 AND m.wake_at > ?1, 0)",
        [ms_in(now)],
        |row| row.get(0),
    )?;
    Ok(count.map_or(0, super::ms_out))
}
