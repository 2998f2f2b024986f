//! The file of a folder: how a fleet opens it, and what its tables say.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use async_trait::async_trait;
use duroxide::providers::Provider;
use duroxide_fleet::{End, Event, Store, Tables, now_ms};
use duroxide_sqlite::SqliteProvider;
use rusqlite::Connection;

use crate::support::stranger;

/// The kind of store of these tests.
pub(crate) static SQLITE: Sqlite = Sqlite { log_bytes: AtomicU64::new(0) };

/// The log of a store in use is no longer than this, once all stopped processes go on: while a process
/// is stopped in the middle of a read, the log can only grow.
const LOG_BYTES_MAX: u64 = 64 << 20;

/// A file called `store.db` in a folder.
pub(crate) struct Sqlite {
    /// Length of the write-ahead log, as seen last.
    log_bytes: AtomicU64,
}

#[async_trait]
impl Store for Sqlite {
    async fn open(&self, folder: &Path) -> Arc<dyn Provider> {
        let url = format!("sqlite:{}/store.db?mode=rwc", folder.display());
        Arc::new(SqliteProvider::new(&url, None).await.unwrap())
    }

    fn read(&self, folder: &Path) -> Tables {
        let mut leftovers = files(folder); // Before any connection opens the file.
        let c = stranger(&folder.join("store.db"));
        leftovers.extend(damage(&c));
        leftovers.extend(unfinished(&c));
        Tables { ends: ends(&c), events: events(&c), leftovers }
    }

    fn open_work(&self, folder: &Path) -> i64 {
        count(
            &stranger(&folder.join("store.db")),
            "SELECT (SELECT count(*) FROM work) + (SELECT count(*) FROM messages)
             + (SELECT count(*) FROM mailboxes)
             + (SELECT count(*) FROM executions WHERE status = 'Running')",
        )
    }

    fn watch(&self, folder: &Path) {
        let log = std::fs::metadata(folder.join("store.db-wal"));
        self.log_bytes.store(log.map_or(0, |log| log.len()), Ordering::Relaxed);
    }
}

/// Fails if the log was too long when it was looked at last.
pub(crate) fn assert_short_log() {
    let log_bytes = SQLITE.log_bytes.load(Ordering::Relaxed);
    assert!(log_bytes <= LOG_BYTES_MAX, "the log has {log_bytes} bytes");
}

/// Files that ought to be gone with the processes that had the store open.
fn files(folder: &Path) -> Vec<String> {
    let names = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name());
    let names = names.map(|name| name.to_string_lossy().into_owned());
    names
        .filter(|name| name.starts_with("store.db-"))
        .map(|name| format!("{name} is left behind"))
        .collect()
}

fn damage(c: &Connection) -> Vec<String> {
    let mut statement = c.prepare("PRAGMA integrity_check").unwrap();
    let lines = statement.query_map([], |row| row.get::<_, String>(0)).unwrap();
    lines.map(Result::unwrap).filter(|line| line != "ok").collect()
}

fn unfinished(c: &Connection) -> Vec<String> {
    let counts = [
        ("activities queued", "SELECT count(*) FROM work"),
        ("messages", "SELECT count(*) FROM messages"),
        ("mailboxes", "SELECT count(*) FROM mailboxes"),
        ("dead letters", "SELECT count(*) FROM dead_letters"),
        ("owners", "SELECT count(*) FROM nodes"),
        ("running executions", "SELECT count(*) FROM executions WHERE status = 'Running'"),
    ];
    let mut problems: Vec<String> = counts
        .iter()
        .filter_map(|(what, sql)| Some((what, count(c, sql))).filter(|(_, count)| *count != 0))
        .map(|(what, count)| format!("{count} {what} left"))
        .collect();
    let late = "SELECT count(*) FROM hidden WHERE visible_at < ?1";
    let late: i64 = c.query_row(late, [now_ms() as i64 - 1_000], |row| row.get(0)).unwrap();
    if late != 0 {
        problems.push(format!("{late} messages are due and not delivered"));
    }
    let leased = "SELECT count(*) FROM sessions WHERE until > ?1";
    let leased: i64 = c.query_row(leased, [now_ms() as i64], |row| row.get(0)).unwrap();
    if leased != 0 {
        problems.push(format!("{leased} sessions are leased, by no living process"));
    }
    problems
}

fn ends(c: &Connection) -> HashMap<String, End> {
    let sql = "SELECT i.id, e.status, e.output FROM instances i
         JOIN executions e ON e.instance = i.key AND e.number = i.execution";
    let mut statement = c.prepare(sql).unwrap();
    let end = |row: &rusqlite::Row<'_>| {
        Ok((row.get(0)?, End { status: row.get(1)?, output: row.get(2)? }))
    };
    let rows = statement.query_map([], end).unwrap();
    rows.map(Result::unwrap).collect()
}

fn events(c: &Connection) -> Vec<Event> {
    let sql = "SELECT i.id, h.execution, h.event, h.source, h.at, h.body
         FROM history h JOIN instances i ON i.key = h.instance";
    let mut statement = c.prepare(sql).unwrap();
    let rows = statement.query_map([], |row| {
        let (execution, event): (i64, i64) = (row.get(1)?, row.get(2)?);
        let (source, at): (Option<i64>, i64) = (row.get(3)?, row.get(4)?);
        Ok(Event {
            instance: row.get(0)?,
            execution: execution as u64,
            event: event as u64,
            source: source.map(|source| source as u64),
            at_ms: at as u64,
            body: serde_json::from_str(&row.get::<_, String>(5)?).unwrap(),
        })
    });
    rows.unwrap().map(Result::unwrap).collect()
}

fn count(c: &Connection, sql: &str) -> i64 {
    c.query_row(sql, [], |row| row.get(0)).unwrap()
}
