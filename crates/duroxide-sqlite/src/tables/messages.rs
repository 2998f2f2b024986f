//! Messages that can be read, clustered by instance, in queue order.

use rusqlite::params;

use duroxide_core::model::limits::{MAX_TURN_BYTES, MAX_TURN_MESSAGES};

use super::long_texts::{self, TextReference, reference};
use super::mailboxes::Batch;
use super::{Sql, all, first, ms_in, run, starts, text};
use crate::database::Db;
use crate::faults;

/// What decides whether a message for an unknown instance can be served (R8.28, R8.29).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(i64)]
pub(crate) enum Kind {
    /// Anything not named below.
    Any = 0,
    /// Brings an instance into being. Of those that can be read: the message that a new instance came
    /// with, and so the oldest one there; the instance's row has the same parent.
    Start = 1,
    /// A message for a queue of the instance.
    Queue = 2,
    /// Any other start that can be read. It is found by indexes.
    LaterStart = 3,
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

impl Message<'_> {
    /// The same, where others may be before it.
    pub(crate) fn behind_others(self) -> Self {
        match self.kind {
            Kind::Start => Self { kind: Kind::LaterStart, ..self },
            _ => self,
        }
    }
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
    pub(crate) text_reference: Option<TextReference>,
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

/// Positions of the oldest messages.
pub(crate) fn positions(c: Db<'_>, instance: i64, limit: i64) -> Sql<Vec<i64>> {
    let sql = "SELECT seq FROM messages WHERE instance = ?1 ORDER BY seq LIMIT ?2";
    all(c, sql, [instance, limit], |row| row.get(0))
}

/// The messages of the next turn, in order: the oldest ones, as many as it may have, and in any case
/// the one that begins its execution (R8.21, R8.147). The attempt that begins is part of what is
/// returned, and written down if the lock ends without a commit: otherwise it is not needed.
pub(crate) fn next_batch(
    c: Db<'_>,
    instance: i64,
    is_known: impl FnOnce() -> Sql<bool>,
) -> Sql<NextBatch> {
    let mut next = NextBatch::default();
    let mut rows = rows_from(c, instance, i64::MIN, 1 + MAX_TURN_MESSAGES)?;
    let is_whole = rows.len() <= MAX_TURN_MESSAGES && next.fits_all(c, instance, &mut rows)?;
    if is_whole {
        next.messages = rows;
        return Ok(next);
    }
    let beginning = starts::beginning(c, instance, is_known()?)?;
    let extra = match beginning {
        Some(first) => rows_from(c, instance, first, 1)?.pop(),
        None => None,
    };
    let mut extra = extra.into_iter().collect::<Vec<_>>();
    next = NextBatch::default();
    next.fits_all(c, instance, &mut extra)?;
    let mut extra = extra.pop();
    for mut row in rows {
        if extra.as_ref().is_some_and(|extra| extra.seq == row.seq) {
            next.messages.extend(extra.take());
            continue;
        }
        let count = next.messages.len() + usize::from(extra.is_some());
        let is_full = count == MAX_TURN_MESSAGES || !next.fits(c, instance, &mut row)?;
        if is_full && 0 < count {
            break;
        }
        next.messages.push(row);
    }
    next.extra = extra.as_ref().map(|extra| extra.seq);
    next.messages.extend(extra);
    next.leaves_some = any_behind(c, instance, next.last_in_a_row(), next.extra)?;
    Ok(next)
}

/// Whether there is a message behind this position, other than that one.
fn any_behind(c: Db<'_>, instance: i64, position: i64, other: Option<i64>) -> Sql<bool> {
    let found = first(
        c,
        "SELECT 1 FROM messages WHERE instance = ?1 AND seq > ?2 AND seq IS NOT ?3 LIMIT 1",
        params![instance, position, other],
        |_| Ok(()),
    )?;
    Ok(found.is_some())
}

/// Messages for one turn.
#[derive(Debug, Default)]
pub(crate) struct NextBatch {
    pub(crate) messages: Vec<Taken>,
    pub(crate) bytes: usize,
    /// The last of them, if it does not follow the others.
    extra: Option<i64>,
    /// Whether there are others that can be read.
    leaves_some: bool,
}

impl NextBatch {
    /// Whether one of them was fetched before (R8.146).
    pub(crate) fn is_tried(&self) -> bool {
        self.messages.iter().any(|message| 1 < message.attempts)
    }

    /// Position of the last that follows the others; nothing is before it if there is only the one that
    /// begins the execution.
    fn last_in_a_row(&self) -> i64 {
        let mut in_a_row = self.messages.iter().filter(|message| self.extra != Some(message.seq));
        in_a_row.next_back().map_or(i64::MIN, |last| last.seq)
    }

    fn fits_all(&mut self, c: Db<'_>, instance: i64, rows: &mut [Taken]) -> Sql<bool> {
        for row in rows {
            if !self.fits(c, instance, row)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Completes a message and counts its bytes; whether there is room for it.
    fn fits(&mut self, c: Db<'_>, instance: i64, row: &mut Taken) -> Sql<bool> {
        long_texts::fetch(c, instance, &mut row.text_reference)?;
        self.bytes += row.payload.len() + row.text_reference.as_ref().map_or(0, TextReference::len);
        Ok(self.bytes <= MAX_TURN_BYTES)
    }
}

/// So many messages from a position on, or fewer if they are large; without their long texts.
fn rows_from(c: Db<'_>, instance: i64, from: i64, max: usize) -> Sql<Vec<Taken>> {
    let sql = "SELECT seq, attempts, payload, late, long_text FROM messages
               WHERE instance = ?1 AND seq >= ?2 ORDER BY seq";
    faults::statement(sql)?;
    c.with(sql, |statement| {
        let mut found = Vec::new();
        let mut bytes = 0;
        let mut rows = statement.query([instance, from])?;
        while bytes <= MAX_TURN_BYTES
            && found.len() < max
            && let Some(row) = rows.next()?
        {
            let taken = Taken {
                seq: row.get(0)?,
                attempts: row.get::<_, u32>(1)?.saturating_add(1),
                payload: text(row, 2)?,
                text_reference: reference(row, 4)?,
                late: row.get(3)?,
            };
            bytes += taken.payload.len();
            found.push(taken);
        }
        drop(rows);
        faults::done(sql, statement);
        Ok(found)
    })
}

/// Makes these messages the locked batch.
pub(crate) fn take(c: Db<'_>, instance: i64, next: &NextBatch) -> Sql<Batch> {
    let upto = next.last_in_a_row();
    let batch = Batch { upto: Some(upto), extra: next.extra, leaves_some: next.leaves_some };
    if next.messages.iter().any(|message| message.late) {
        run(
            c,
            "UPDATE messages SET late = 0 WHERE instance = ?1 AND seq <= ?2 AND late",
            [instance, upto],
        )?;
        // By itself: with OR, SQLite looks at all that is between.
        if let Some(extra) = next.extra {
            run(
                c,
                "UPDATE messages SET late = 0 WHERE instance = ?1 AND seq = ?2 AND late",
                [instance, extra],
            )?;
        }
    }
    Ok(batch)
}

/// Removes the locked batch (R8.42).
pub(crate) fn delete_taken(c: Db<'_>, instance: i64, batch: Batch) -> Sql<()> {
    let Batch { upto, extra, .. } = batch;
    run(
        c,
        "DELETE FROM messages WHERE instance = ?1 AND seq <= ?2 AND NOT late",
        params![instance, upto.unwrap_or(i64::MAX)],
    )?;
    if let Some(extra) = extra {
        run(c, "DELETE FROM messages WHERE instance = ?1 AND seq = ?2", [instance, extra])?;
    }
    Ok(())
}

/// Writes down attempts of the locked batch, or takes them back.
pub(crate) fn count_taken(c: Db<'_>, instance: i64, batch: Batch, more: i64) -> Sql<()> {
    run(
        c,
        "UPDATE messages SET attempts = max(min(attempts + ?3, 4294967295), 0)
         WHERE instance = ?1 AND seq <= ?2 AND NOT late",
        params![instance, batch.upto.unwrap_or(i64::MAX), more],
    )?;
    if let Some(extra) = batch.extra {
        run(
            c,
            "UPDATE messages SET attempts = max(min(attempts + ?3, 4294967295), 0)
             WHERE instance = ?1 AND seq = ?2",
            [instance, extra, more],
        )?;
    }
    Ok(())
}

/// Hides the locked batch until then (R8.65).
pub(crate) fn hide_taken(c: Db<'_>, instance: i64, batch: Batch, until: u64) -> Sql<()> {
    run(
        c,
        "INSERT INTO hidden (visible_at, seq, instance, kind, attempts, payload, long_text, parent)
         SELECT ?2, seq, instance, iif(kind = 3, 1, kind), attempts, payload, long_text, parent
         FROM messages WHERE instance = ?1 AND seq <= ?3 AND NOT late",
        params![instance, ms_in(until), batch.upto.unwrap_or(i64::MAX)],
    )?;
    if let Some(extra) = batch.extra {
        run(
            c,
            "INSERT INTO hidden
             (visible_at, seq, instance, kind, attempts, payload, long_text, parent)
             SELECT ?2, seq, instance, iif(kind = 3, 1, kind), attempts, payload, long_text, parent
             FROM messages WHERE instance = ?1 AND seq = ?3",
            params![instance, ms_in(until), extra],
        )?;
    }
    delete_taken(c, instance, batch)
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
pub(crate) fn delete(
    c: Db<'_>,
    instance: i64,
    seq: i64,
) -> Sql<Option<(String, Option<TextReference>)>> {
    let mut message = first(
        c,
        "SELECT payload, long_text FROM messages WHERE instance = ?1 AND seq = ?2",
        [instance, seq],
        |row| Ok((text(row, 0)?, reference(row, 1)?)),
    )?;
    if let Some((_, text_reference)) = &mut message {
        long_texts::fetch(c, instance, text_reference)?;
    }
    run(c, "DELETE FROM messages WHERE instance = ?1 AND seq = ?2", [instance, seq])?;
    Ok(message)
}

pub(crate) fn delete_all(c: Db<'_>, instance: i64) -> Sql<usize> {
    run(c, "DELETE FROM messages WHERE instance = ?1", [instance])
}

/// Messages that no valid lock covers.
pub(crate) fn count_unlocked(c: Db<'_>, now: u64) -> Sql<u64> {
    let count = first(
        c,
        "SELECT count(*) FROM messages q LEFT JOIN mailboxes m ON m.instance = q.instance
         WHERE q.late OR NOT ifnull(m.state = 2 AND m.wake_at > ?1, 0)
         OR NOT (m.upto IS NULL OR q.seq <= m.upto OR q.seq IS m.extra)",
        [ms_in(now)],
        |row| row.get(0),
    )?;
    Ok(count.map_or(0, super::ms_out))
}
