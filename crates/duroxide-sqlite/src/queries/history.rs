//! Histories (R8.95, R8.131).

use rusqlite::Connection;

use duroxide_core::model::Event;
use duroxide_core::provider::Refusal;

use crate::error::OpError;
use crate::tables::history::EventRow;
use crate::tables::{executions, history, instances};

/// Events of the newest execution; none for an unknown instance.
pub(crate) fn newest(c: &Connection, instance: &str) -> Result<Vec<Event>, OpError> {
    let Some(known) = instances::by_id(c, instance)? else { return Ok(Vec::new()) };
    let Some(execution) = executions::newest(c, known.key)? else { return Ok(Vec::new()) };
    let rows = history::read_from(c, known.key, execution.number, 0, usize::MAX)?;
    decode(rows, instance, execution.number)
}

/// Events of one execution from an id on.
pub(crate) fn from_event(
    c: &Connection,
    instance: &str,
    execution: u64,
    from: u64,
    limit: usize,
) -> Result<Vec<Event>, OpError> {
    let Some(known) = instances::by_id(c, instance)? else { return Ok(Vec::new()) };
    decode(history::read_from(c, known.key, execution, from, limit)?, instance, execution)
}

fn decode(rows: Vec<EventRow>, instance: &str, execution: u64) -> Result<Vec<Event>, OpError> {
    let events = rows.into_iter().map(|row| row.into_event(instance, execution));
    let events: Result<Vec<Event>, String> = events.collect();
    events.map_err(|why| Refusal::UnreadableHistory(why).into())
}
