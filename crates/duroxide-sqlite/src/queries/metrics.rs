//! Totals over a store.

use duroxide_core::provider::{QueueDepths, SystemMetrics};

use crate::database::Db;
use crate::error::OpError;
use crate::tables::{all, first, hidden, messages, ms_out, work};

/// Instances, executions and events.
pub(crate) fn totals(c: Db<'_>) -> Result<SystemMetrics, OpError> {
    let count = |sql| -> Result<u64, OpError> {
        Ok(first(c, sql, [], |row| row.get(0))?.map_or(0, ms_out))
    };
    let mut totals = SystemMetrics {
        total_instances: count("SELECT count(*) FROM instances WHERE name IS NOT NULL")?,
        total_executions: count("SELECT count(*) FROM executions")?,
        total_events: count("SELECT count(*) FROM history")?,
        ..SystemMetrics::default()
    };
    let by_status: Vec<(String, i64)> = all(
        c,
        "SELECT e.status, count(*) FROM instances i
         JOIN executions e ON e.instance = i.key AND e.number = i.execution
         WHERE i.name IS NOT NULL GROUP BY e.status",
        [],
        |row| Ok((row.get(0)?, row.get(1)?)),
    )?;
    for (status, count) in by_status {
        match status.as_str() {
            "Running" => totals.running_instances = ms_out(count),
            "Completed" => totals.completed_instances = ms_out(count),
            "Failed" => totals.failed_instances = ms_out(count),
            _ => {}
        }
    }
    Ok(totals)
}

/// Instances whose current execution runs, without a look at histories.
pub(crate) fn running(c: Db<'_>) -> Result<u64, OpError> {
    let sql = "SELECT count(*) FROM executions e
         JOIN instances i ON i.key = e.instance AND i.execution = e.number
         WHERE e.status = 'Running' AND i.name IS NOT NULL";
    Ok(first(c, sql, [], |row| row.get(0))?.map_or(0, ms_out))
}

/// Rows that no valid lock covers. A message that sleeps until its time has come is not counted: no
/// worker is late with it.
pub(crate) fn queue_depths(c: Db<'_>, now: u64) -> Result<QueueDepths, OpError> {
    let size = |count: u64| usize::try_from(count).unwrap_or(usize::MAX);
    let messages = messages::count_unlocked(c, now)? + hidden::count_waiting(c, now)?;
    Ok(QueueDepths {
        orchestrator_queue: size(messages),
        worker_queue: size(work::count_unlocked(c, now)?),
        timer_queue: 0,
    })
}
