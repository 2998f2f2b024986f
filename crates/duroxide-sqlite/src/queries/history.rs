//! Histories (R8.95, R8.131).

use duroxide_core::model::Event;
use duroxide_core::provider::Refusal;

use crate::database::Db;
use crate::error::{OpError, is_unreadable};
use crate::tables::history::EventRow;
use crate::tables::{Sql, executions, history, instances};

/// Events of the newest execution; none for an unknown instance.
pub(crate) fn newest(c: Db<'_>, instance: &str) -> Result<Vec<Event>, OpError> {
    let Some(known) = instances::by_id(c, instance)? else { return Ok(Vec::new()) };
    let Some(execution) = executions::newest(c, known.key)? else { return Ok(Vec::new()) };
    let rows = history::read_from(c, known.key, execution.number, 0, usize::MAX);
    decode(rows, instance, execution.number)
}

/// Events of one execution from an id on.
pub(crate) fn from_event(
    c: Db<'_>,
    instance: &str,
    execution: u64,
    from: u64,
    limit: usize,
) -> Result<Vec<Event>, OpError> {
    let Some(known) = instances::by_id(c, instance)? else { return Ok(Vec::new()) };
    decode(history::read_from(c, known.key, execution, from, limit), instance, execution)
}

fn decode(rows: Sql<Vec<EventRow>>, instance: &str, execution: u64) -> Result<Vec<Event>, OpError> {
    let rows = rows.map_err(|error| unreadable(error, instance, execution))?;
    let events = rows.into_iter().map(|row| row.into_event(instance, execution));
    let events: Result<Vec<Event>, String> = events.collect();
    events.map_err(|why| Refusal::UnreadableHistory(why).into())
}

/// What is wrong with an event's columns is wrong with the history, not with the store.
pub(super) fn unreadable(error: rusqlite::Error, instance: &str, execution: u64) -> OpError {
    if is_unreadable(&error) {
        let why = format!("execution {execution} of {instance}: {error}");
        return Refusal::UnreadableHistory(why).into();
    }
    error.into()
}
