//! Copies of an instance, written behind the store's back: a million by way of the client would take
//! minutes.

use crate::workloads::Failure;
use crate::workloads::args::Args;

/// Every table that knows something of an instance which rests, without the columns that differ.
const COPY: &[&str] = &[
    "INSERT INTO instances (id, name, version, execution, pin, parent, created_at, updated_at)
     WITH RECURSIVE copies (n) AS (VALUES (1) UNION ALL SELECT n + 1 FROM copies WHERE n < ?2)
     SELECT ?1 || '-' || n, name, version, execution, pin, parent, created_at, updated_at
     FROM copies, instances WHERE id = ?1",
    "INSERT INTO executions
     (instance, number, status, pin, started_at, completed_at, started, outcome, output)
     SELECT c.key, e.number, e.status, e.pin, e.started_at, e.completed_at, e.started, e.outcome,
     e.output FROM instances c, instances m JOIN executions e ON e.instance = m.key
     WHERE m.id = ?1 AND c.key > ?3",
    "INSERT INTO history (instance, execution, event, source, at, stamp, body)
     SELECT c.key, h.execution, h.event, h.source, h.at, h.stamp, h.body
     FROM instances c, instances m JOIN history h ON h.instance = m.key
     WHERE m.id = ?1 AND c.key > ?3",
    "INSERT INTO hidden (visible_at, seq, instance, kind, attempts, payload)
     SELECT h.visible_at + c.key, h.seq, c.key, h.kind, h.attempts,
     replace(h.payload, m.id, c.id)
     FROM instances c, instances m JOIN hidden h ON h.instance = m.key
     WHERE m.id = ?1 AND c.key > ?3",
];

/// Copies of an instance in a closed store.
pub(crate) fn copy(args: &Args, id: &str, count: u64) -> Result<(), Failure> {
    let file = args.database().ok_or("only a file can be filled")?;
    let mut connection = rusqlite::Connection::open(file)?;
    let transaction = connection.transaction()?;
    let last: i64 =
        transaction.query_row("SELECT max(key) FROM instances", [], |row| row.get(0))?;
    let count = i64::try_from(count)?;
    for sql in COPY {
        let mut statement = transaction.prepare(sql)?;
        let values: [&dyn rusqlite::ToSql; 3] = [&id, &count, &last];
        let wanted = statement.parameter_count();
        // Numbered parameters that a statement leaves out in the middle are still there.
        statement.execute(&values[..wanted])?;
    }
    transaction.commit()?;
    connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))?;
    Ok(())
}
