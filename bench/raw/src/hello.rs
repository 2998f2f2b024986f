//! The rows a one-activity orchestration leaves and passes through, without any logic.

use rusqlite::{Connection, params};

/// Rows written for each instance: inserted, changed or deleted.
pub(crate) const ROWS: u64 = 20;

/// Creates the tables.
pub(crate) fn create(connection: &Connection) -> rusqlite::Result<()> {
    connection.execute_batch(
        "CREATE TABLE instance (
             key INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, name TEXT NOT NULL,
             execution INTEGER NOT NULL, status TEXT NOT NULL, token TEXT);
         CREATE TABLE execution (
             instance INTEGER NOT NULL, number INTEGER NOT NULL, status TEXT NOT NULL,
             output TEXT, PRIMARY KEY (instance, number)) WITHOUT ROWID;
         CREATE TABLE history (
             instance INTEGER NOT NULL, execution INTEGER NOT NULL, event INTEGER NOT NULL,
             data TEXT NOT NULL, PRIMARY KEY (instance, execution, event)) WITHOUT ROWID;
         CREATE TABLE queue (
             id INTEGER PRIMARY KEY, instance INTEGER NOT NULL, item TEXT NOT NULL,
             token TEXT);",
    )
}

/// Writes the rows of one instance, in the order in which they would come.
pub(crate) fn write(connection: &Connection, number: u64) -> rusqlite::Result<()> {
    let key = number as i64;
    let run = |sql: &str, values: &[&dyn rusqlite::ToSql]| -> rusqlite::Result<()> {
        connection.prepare_cached(sql)?.execute(values).map(drop)
    };
    let enqueue = |id: i64, item: &str| {
        run("INSERT INTO queue VALUES (?1, ?2, ?3, NULL)", params![id, key, item])
    };
    let lease = |id: i64| run("UPDATE queue SET token = 'a token' WHERE id = ?1", params![id]);
    let dequeue = |id: i64| run("DELETE FROM queue WHERE id = ?1", params![id]);
    let record = |event: i64, data: &str| {
        run("INSERT INTO history VALUES (?1, 1, ?2, ?3)", params![key, event, data])
    };
    let set = |token: Option<&str>, status: &str| {
        let sql = "UPDATE instance SET token = ?2, status = ?3 WHERE key = ?1";
        run(sql, params![key, token, status])
    };
    let [start, work, done] = [3 * key, 3 * key + 1, 3 * key + 2];

    enqueue(start, START)?;
    let id = format!("i-{number}");
    let sql = "INSERT INTO instance VALUES (?1, ?2, 'Hello', 1, 'Running', 'a token')";
    run(sql, params![key, id])?;
    lease(start)?;
    run("INSERT INTO execution VALUES (?1, 1, 'Running', NULL)", params![key])?;
    record(1, STARTED)?;
    record(2, SCHEDULED)?;
    enqueue(work, WORK)?;
    dequeue(start)?;
    set(None, "Running")?;
    lease(work)?;
    dequeue(work)?;
    enqueue(done, DONE)?;
    set(Some("a token"), "Running")?;
    lease(done)?;
    record(3, COMPLETED)?;
    record(4, ENDED)?;
    let sql = "UPDATE execution SET status = 'Completed', output = 'hello' WHERE instance = ?1";
    run(sql, params![key])?;
    dequeue(done)?;
    set(None, "Completed")?;
    run("UPDATE instance SET execution = 1 WHERE key = ?1", params![key])
}

const START: &str = r#"{"StartOrchestration":{"instance":"i-1","orchestration":"Hello","input":"hello","version":null,"parent_instance":null,"parent_id":null,"execution_id":1}}"#;
const WORK: &str = r#"{"ActivityExecute":{"instance":"i-1","execution_id":1,"id":2,"name":"Echo","input":"hello"}}"#;
const DONE: &str =
    r#"{"ActivityCompleted":{"instance":"i-1","execution_id":1,"id":2,"result":"hello"}}"#;
const STARTED: &str = r#"{"event_id":1,"timestamp_ms":1700000000000,"type":"OrchestrationStarted","name":"Hello","version":"1.0.0","input":"hello","parent_instance":null,"parent_id":null}"#;
const SCHEDULED: &str = r#"{"event_id":2,"timestamp_ms":1700000000000,"type":"ActivityScheduled","name":"Echo","input":"hello"}"#;
const COMPLETED: &str = r#"{"event_id":3,"source_event_id":2,"timestamp_ms":1700000000000,"type":"ActivityCompleted","result":"hello"}"#;
const ENDED: &str = r#"{"event_id":4,"timestamp_ms":1700000000000,"type":"OrchestrationCompleted","output":"hello"}"#;
