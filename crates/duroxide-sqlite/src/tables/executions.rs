//! Executions: one run of an instance each.

use rusqlite::{Row, params};

use super::long_texts::{TextReference, reference};
use super::{Sql, all, first, id_in, id_out, ms_in, ms_out, number, optional_text, run, text};
use crate::database::Db;

/// Status of an execution that has not ended.
pub(crate) const RUNNING: &str = "Running";

/// An execution without its history.
#[derive(Debug, Clone)]
pub(crate) struct Execution {
    pub(crate) number: u64,
    pub(crate) status: String,
    /// Row of `pins`; 0 for none.
    pub(crate) pin: i64,
    pub(crate) started_at: u64,
    pub(crate) completed_at: Option<u64>,
    /// Id of its start event.
    pub(crate) started: Option<u64>,
    /// Id of its last Completed or Failed event, which decides the status (R6.20).
    pub(crate) outcome: Option<u64>,
    pub(crate) output: Option<String>,
    /// Where the output is, if it is long.
    pub(crate) long_output: Option<TextReference>,
}

impl Execution {
    /// An execution that begins now.
    pub(crate) fn new(number: u64, now: u64) -> Self {
        Self {
            number,
            status: RUNNING.to_owned(),
            pin: 0,
            started_at: now,
            completed_at: None,
            started: None,
            outcome: None,
            output: None,
            long_output: None,
        }
    }

    /// Whether it has not ended.
    pub(crate) fn is_running(&self) -> bool {
        self.status == RUNNING
    }
}

macro_rules! columns {
    () => {
        "number, status, coalesce(pin, 0), started_at, completed_at, started, outcome, output,
         long_text"
    };
}

fn read(row: &Row<'_>) -> Sql<Execution> {
    Ok(Execution {
        number: id_out(row.get(0)?),
        status: text(row, 1)?,
        pin: number(row, 2)?.unwrap_or(0),
        started_at: number(row, 3)?.map_or(0, ms_out),
        completed_at: number(row, 4)?.map(ms_out),
        started: number(row, 5)?.map(id_out),
        outcome: number(row, 6)?.map(id_out),
        output: optional_text(row, 7)?,
        long_output: reference(row, 8)?,
    })
}

pub(crate) fn get(c: Db<'_>, instance: i64, number: u64) -> Sql<Option<Execution>> {
    first(
        c,
        concat!("SELECT ", columns!(), " FROM executions WHERE instance = ?1 AND number = ?2"),
        params![instance, id_in(number)],
        read,
    )
}

/// The execution with the highest number (R8.95).
pub(crate) fn newest(c: Db<'_>, instance: i64) -> Sql<Option<Execution>> {
    first(
        c,
        concat!(
            "SELECT ",
            columns!(),
            " FROM executions WHERE instance = ?1 ORDER BY number DESC LIMIT 1"
        ),
        [instance],
        read,
    )
}

/// All executions, ascending.
pub(crate) fn list(c: Db<'_>, instance: i64) -> Sql<Vec<Execution>> {
    all(
        c,
        concat!("SELECT ", columns!(), " FROM executions WHERE instance = ?1 ORDER BY number"),
        [instance],
        read,
    )
}

/// Stores an execution that is new or changed.
pub(crate) fn put(c: Db<'_>, instance: i64, execution: &Execution) -> Sql<()> {
    run(
        c,
        "INSERT INTO executions
         (instance, number, status, pin, started_at, completed_at, started, outcome, output,
         long_text)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)
         ON CONFLICT (instance, number) DO UPDATE SET status = excluded.status, pin = excluded.pin,
         completed_at = excluded.completed_at, started = excluded.started,
         outcome = excluded.outcome, output = excluded.output,
         long_text = excluded.long_text",
        params![
            instance,
            id_in(execution.number),
            execution.status,
            execution.pin,
            ms_in(execution.started_at),
            execution.completed_at.map(ms_in),
            execution.started.map(id_in),
            execution.outcome.map(id_in),
            execution.output,
            execution.long_output.as_ref().map(|text_reference| text_reference.key)
        ],
    )?;
    Ok(())
}

pub(crate) fn delete(c: Db<'_>, instance: i64, number: u64) -> Sql<usize> {
    run(
        c,
        "DELETE FROM executions WHERE instance = ?1 AND number = ?2",
        params![instance, id_in(number)],
    )
}

pub(crate) fn delete_all(c: Db<'_>, instance: i64) -> Sql<usize> {
    run(c, "DELETE FROM executions WHERE instance = ?1", [instance])
}
