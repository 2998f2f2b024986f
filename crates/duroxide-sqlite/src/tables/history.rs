//! Events, clustered by instance, execution and id. What is in the key is not in the body.

use std::sync::Arc;

use rusqlite::{Row, params};

use duroxide_core::model::Event;

use super::long_texts::{self, TextReference, reference};
use super::{Sql, all, first, id_in, id_out, ms_in, ms_out, number, run};
use crate::database::Db;
use crate::long_text::{LongText, LongTexts, decode};

/// An event as it is stored.
#[derive(Debug)]
pub(crate) struct EventRow {
    pub(crate) event: u64,
    pub(crate) source: Option<u64>,
    pub(crate) at: u64,
    pub(crate) stamp: String,
    pub(crate) body: String,
    pub(crate) text_reference: Option<TextReference>,
}

impl EventRow {
    /// The stored form of an event, and the long text that it is to refer to.
    pub(crate) fn of(
        event: &Event,
        longs: &mut LongTexts,
    ) -> Result<(Self, Option<Arc<LongText>>), serde_json::Error> {
        let (body, long) = longs.encode(&event.kind)?;
        let row = Self {
            event: event.event_id,
            source: event.source_event_id,
            at: event.timestamp_ms,
            stamp: event.duroxide_version.clone(),
            body,
            text_reference: None,
        };
        Ok((row, long))
    }

    /// The event again; an error text that names it if it makes no sense.
    pub(crate) fn into_event(mut self, instance: &str, execution: u64) -> Result<Event, String> {
        let kind = decode(&self.body, &mut self.text_reference).map_err(|error| {
            format!("event {} of execution {execution} of {instance}: {error}", self.event)
        })?;
        Ok(Event {
            event_id: self.event,
            source_event_id: self.source,
            instance_id: instance.to_owned(),
            execution_id: execution,
            timestamp_ms: self.at,
            duroxide_version: self.stamp,
            kind,
        })
    }
}

fn read(row: &Row<'_>) -> Sql<EventRow> {
    Ok(EventRow {
        event: id_out(row.get(0)?),
        source: row.get::<_, Option<i64>>(1)?.map(id_out),
        at: ms_out(row.get(2)?),
        stamp: row.get(3)?,
        body: row.get(4)?,
        text_reference: reference(row, 5)?,
    })
}

/// Stores an event, with the key of its long text.
pub(crate) fn insert(
    c: Db<'_>,
    instance: i64,
    execution: u64,
    row: &EventRow,
    long_text: Option<i64>,
) -> Sql<()> {
    run(
        c,
        "INSERT INTO history (instance, execution, event, source, at, stamp, body, long_text)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
        params![
            instance,
            id_in(execution),
            id_in(row.event),
            row.source.map(id_in),
            ms_in(row.at),
            row.stamp,
            row.body,
            long_text
        ],
    )?;
    Ok(())
}

/// Events from an id on, at most `limit` (R8.131).
pub(crate) fn read_from(
    c: Db<'_>,
    instance: i64,
    execution: u64,
    from: u64,
    limit: usize,
) -> Sql<Vec<EventRow>> {
    let mut rows = all(
        c,
        "SELECT event, source, at, stamp, body, long_text FROM history
         WHERE instance = ?1 AND execution = ?2 AND event >= ?3 ORDER BY event LIMIT ?4",
        params![instance, id_in(execution), id_in(from), i64::try_from(limit).unwrap_or(-1)],
        read,
    )?;
    rows.iter_mut().try_for_each(|row| long_texts::fetch(c, instance, &mut row.text_reference))?;
    Ok(rows)
}

pub(crate) fn get(c: Db<'_>, instance: i64, execution: u64, event: u64) -> Sql<Option<EventRow>> {
    let mut row = first(
        c,
        "SELECT event, source, at, stamp, body, long_text FROM history
         WHERE instance = ?1 AND execution = ?2 AND event = ?3",
        params![instance, id_in(execution), id_in(event)],
        read,
    )?;
    if let Some(row) = &mut row {
        long_texts::fetch(c, instance, &mut row.text_reference)?;
    }
    Ok(row)
}

/// Id and time of the last event; zeros if there is none.
pub(crate) fn end(c: Db<'_>, instance: i64, execution: u64) -> Sql<(u64, u64)> {
    let last = first(
        c,
        // Whatever is no number is larger than any number.
        "SELECT event, at FROM history WHERE instance = ?1 AND execution = ?2
         AND event <= 9223372036854775807 AND typeof(event) = 'integer'
         ORDER BY event DESC LIMIT 1",
        params![instance, id_in(execution)],
        |row| Ok((id_out(row.get(0)?), number(row, 1)?.map_or(0, ms_out))),
    )?;
    Ok(last.unwrap_or_default())
}

/// Number of events of an execution.
pub(crate) fn count(c: Db<'_>, instance: i64, execution: u64) -> Sql<u64> {
    let count = first(
        c,
        "SELECT count(*) FROM history WHERE instance = ?1 AND execution = ?2",
        params![instance, id_in(execution)],
        |row| row.get(0),
    )?;
    Ok(count.map_or(0, ms_out))
}

pub(crate) fn delete(c: Db<'_>, instance: i64, execution: u64) -> Sql<usize> {
    run(
        c,
        "DELETE FROM history WHERE instance = ?1 AND execution = ?2",
        params![instance, id_in(execution)],
    )
}

/// Events of an instance, counted up to a limit.
pub(crate) fn count_upto(c: Db<'_>, instance: i64, limit: i64) -> Sql<u64> {
    let sql = "SELECT count(*) FROM (SELECT 1 FROM history WHERE instance = ?1 LIMIT ?2)";
    let count = first(c, sql, [instance, limit], |row| row.get(0))?;
    Ok(count.map_or(0, super::ms_out))
}

pub(crate) fn delete_all(c: Db<'_>, instance: i64) -> Sql<usize> {
    run(c, "DELETE FROM history WHERE instance = ?1", [instance])
}
