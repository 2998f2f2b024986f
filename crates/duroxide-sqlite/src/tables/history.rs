//! Events, clustered by instance, execution and id. What is in the key is not in the body.

use rusqlite::{Row, params};

use duroxide_core::model::{Event, EventKind};

use super::{Sql, all, first, id_in, id_out, ms_in, ms_out, run};
use crate::database::Db;

/// An event as it is stored.
#[derive(Debug, Clone)]
pub(crate) struct EventRow {
    pub(crate) event: u64,
    pub(crate) source: Option<u64>,
    pub(crate) at: u64,
    pub(crate) stamp: String,
    pub(crate) body: String,
}

impl EventRow {
    /// The stored form of an event.
    pub(crate) fn of(event: &Event) -> Result<Self, serde_json::Error> {
        Ok(Self {
            event: event.event_id,
            source: event.source_event_id,
            at: event.timestamp_ms,
            stamp: event.duroxide_version.clone(),
            body: serde_json::to_string(&event.kind)?,
        })
    }

    /// The event again; an error text that names it if it makes no sense.
    pub(crate) fn into_event(self, instance: &str, execution: u64) -> Result<Event, String> {
        let kind: EventKind = serde_json::from_str(&self.body).map_err(|error| {
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
    })
}

pub(crate) fn insert(c: Db<'_>, instance: i64, execution: u64, row: &EventRow) -> Sql<()> {
    run(
        c,
        "INSERT INTO history (instance, execution, event, source, at, stamp, body)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
        params![
            instance,
            id_in(execution),
            id_in(row.event),
            row.source.map(id_in),
            ms_in(row.at),
            row.stamp,
            row.body
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
    all(
        c,
        "SELECT event, source, at, stamp, body FROM history
         WHERE instance = ?1 AND execution = ?2 AND event >= ?3 ORDER BY event LIMIT ?4",
        params![instance, id_in(execution), id_in(from), i64::try_from(limit).unwrap_or(-1)],
        read,
    )
}

pub(crate) fn get(c: Db<'_>, instance: i64, execution: u64, event: u64) -> Sql<Option<EventRow>> {
    first(
        c,
        "SELECT event, source, at, stamp, body FROM history
         WHERE instance = ?1 AND execution = ?2 AND event = ?3",
        params![instance, id_in(execution), id_in(event)],
        read,
    )
}

/// Id of the last event; 0 if there is none.
pub(crate) fn last_event_id(c: Db<'_>, instance: i64, execution: u64) -> Sql<u64> {
    let last = first(
        c,
        // Whatever is no number is larger than any number.
        "SELECT event FROM history WHERE instance = ?1 AND execution = ?2
         AND event <= 9223372036854775807 AND typeof(event) = 'integer'
         ORDER BY event DESC LIMIT 1",
        params![instance, id_in(execution)],
        |row| row.get(0),
    )?;
    Ok(last.map_or(0, id_out))
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

pub(crate) fn delete_all(c: Db<'_>, instance: i64) -> Sql<usize> {
    run(c, "DELETE FROM history WHERE instance = ?1", [instance])
}
