//! Rows that make no sense: found, set right where something else tells what is right, and otherwise
//! made dead letters.
//!
//! SQLite lets any value into any column, so damage may leave a text where a number belongs. Each
//! statement scans its table: nothing here runs while all is well.

use rusqlite::Connection;

use super::{Sql, all, first, ms_in, run};

/// Queue positions are counted, so they never get here.
macro_rules! is_position {
    ($column:literal) => {
        concat!("(typeof(", $column, ") = 'integer' AND ", $column, " < 4611686018427387904)")
    };
}

macro_rules! is_count {
    ($column:literal) => {
        concat!("(typeof(", $column, ") = 'integer' AND ", $column, " BETWEEN 0 AND 4294967295)")
    };
}

macro_rules! is_pin {
    ($column:literal) => {
        concat!(
            "(typeof(",
            $column,
            ") IN ('integer', 'null') AND (ifnull(",
            $column,
            ", 0) = 0 OR ",
            $column,
            " IN (SELECT id FROM pins)))"
        )
    };
}

macro_rules! is_secret {
    ($column:literal) => {
        concat!(
            "(",
            $column,
            " IS NULL OR (typeof(",
            $column,
            ") = 'blob' AND length(",
            $column,
            ") = 16))"
        )
    };
}

macro_rules! last_position {
    () => {
        "max(0, ifnull((SELECT max(seq) FROM work WHERE seq < 4611686018427387904), 0),
         ifnull((SELECT max(seq) FROM messages WHERE typeof(seq) = 'integer'
         AND seq < 4611686018427387904), 0),
         ifnull((SELECT max(seq) FROM hidden WHERE typeof(seq) = 'integer'
         AND seq < 4611686018427387904), 0))"
    };
}

macro_rules! bad_counter {
    () => {
        concat!("NOT ", is_position!("next_seq"), " OR next_seq <= ", last_position!())
    };
}

/// A message that cannot be told whose it is, or in which place of the queue.
macro_rules! lost_message {
    ($table:literal) => {
        concat!(
            "NOT ",
            is_position!("seq"),
            " OR typeof(instance) <> 'integer'
             OR NOT EXISTS (SELECT 1 FROM instances i WHERE i.key = ",
            $table,
            ".instance)"
        )
    };
}

macro_rules! kind_of_payload {
    () => {
        "CASE WHEN NOT json_valid(payload) THEN 1
         WHEN payload GLOB '{\"StartOrchestration\"*' THEN 1
         WHEN payload GLOB '{\"ContinueAsNew\"*' THEN 1
         WHEN payload GLOB '{\"QueueMessage\"*' THEN 2 ELSE 0 END"
    };
}

macro_rules! bad_kind {
    () => {
        concat!(
            "typeof(kind) <> 'integer' OR kind NOT IN (0, 1, 2)
             OR (json_valid(payload) AND kind <> ",
            kind_of_payload!(),
            ")"
        )
    };
}

macro_rules! bad_message {
    () => {
        concat!(
            bad_kind!(),
            " OR NOT ",
            is_count!("attempts"),
            " OR taken NOT IN (0, 1)
             OR typeof(since) <> 'integer'"
        )
    };
}

macro_rules! bad_hidden {
    () => {
        concat!(
            bad_kind!(),
            " OR NOT ",
            is_count!("attempts"),
            " OR typeof(visible_at) <> 'integer'"
        )
    };
}

/// What the payload says and the columns do not. SQLite's JSON ends texts at a NUL: those are left
/// alone.
macro_rules! is_clear {
    () => {
        "(typeof(payload) = 'text' AND json_valid(payload) AND instr(payload, '\\u0000') = 0
         AND json_type(payload, '$.ActivityExecute') = 'object'
         AND json_type(payload, '$.ActivityExecute.execution_id') = 'integer'
         AND typeof(json_extract(payload, '$.ActivityExecute.execution_id')) = 'integer'
         AND typeof(json_extract(payload, '$.ActivityExecute.id')) = 'integer')"
    };
}

macro_rules! owner_of_payload {
    () => {
        "(SELECT key FROM instances
         WHERE id = json_extract(payload, '$.ActivityExecute.instance'))"
    };
}

macro_rules! bad_work {
    () => {
        concat!(
            "NOT ",
            is_count!("attempts"),
            " OR typeof(wake_at) NOT IN ('integer', 'null')
             OR NOT ",
            is_secret!("token"),
            " OR (",
            is_clear!(),
            " AND (
             execution IS NOT json_extract(payload, '$.ActivityExecute.execution_id')
             OR activity IS NOT json_extract(payload, '$.ActivityExecute.id')
             OR tag IS NOT json_extract(payload, '$.ActivityExecute.tag')
             OR session IS NOT json_extract(payload, '$.ActivityExecute.session_id')
             OR instance IS NOT ifnull(",
            owner_of_payload!(),
            ", instance)))"
        )
    };
}

macro_rules! bad_mailbox {
    () => {
        concat!(
            "typeof(state) <> 'integer' OR state NOT IN (0, 1, 2, 3, 4)
             OR typeof(head) NOT IN ('integer', 'null') OR typeof(wake_at) NOT IN ('integer', 'null')
             OR typeof(node) NOT IN ('integer', 'null') OR pin IS NULL OR NOT ", is_pin!("pin"),
            " OR NOT ", is_secret!("token"), " OR (state = 1) <> (head IS NOT NULL)
             OR (state IN (2, 3) AND wake_at IS NULL) OR (state = 2 AND token IS NULL)
             OR (state = 0 AND EXISTS (SELECT 1 FROM messages m WHERE m.instance = mailboxes.instance)
             AND NOT EXISTS (SELECT 1 FROM hidden h
             WHERE h.instance = mailboxes.instance AND h.kind = 1))
             OR NOT EXISTS (SELECT 1 FROM instances i WHERE i.key = mailboxes.instance)"
        )
    };
}

macro_rules! bad_session {
    () => {
        "typeof(id) <> 'text' OR typeof(owner) <> 'text' OR typeof(until) <> 'integer'
         OR typeof(last_activity) <> 'integer'"
    };
}

macro_rules! bad_instance {
    () => {
        concat!(
            "NOT ",
            is_pin!("pin"),
            " OR (name IS NOT NULL AND NOT EXISTS (SELECT 1 FROM executions e
             WHERE e.instance = instances.key AND e.number = instances.execution))"
        )
    };
}

macro_rules! lost_execution {
    () => {
        "typeof(instance) <> 'integer' OR typeof(number) <> 'integer'"
    };
}

macro_rules! bury_and_delete {
    ($c:expr, $now:expr, $table:literal, $condition:expr, $payload:literal) => {{
        let buried = run(
            $c,
            concat!(
                "INSERT INTO dead_letters (instance, payload, reason, at)
                 SELECT (SELECT id FROM instances i WHERE i.key = ",
                $table,
                ".instance), ",
                $payload,
                ", 'row of ",
                $table,
                " that makes no sense: instance ' || quote(instance), ?1
                 FROM ",
                $table,
                " WHERE ",
                $condition
            ),
            [ms_in($now)],
        )?;
        run($c, concat!("DELETE FROM ", $table, " WHERE ", $condition), [])?;
        buried
    }};
}

/// Whether any row makes no sense.
pub(crate) fn is_any(c: &Connection) -> Sql<bool> {
    let sql = concat!(
        "SELECT EXISTS (SELECT 1 FROM mailboxes WHERE ",
        bad_mailbox!(),
        ")
         OR EXISTS (SELECT 1 FROM work WHERE ",
        bad_work!(),
        ")
         OR EXISTS (SELECT 1 FROM hidden WHERE ",
        lost_message!("hidden"),
        ")
         OR EXISTS (SELECT 1 FROM hidden WHERE ",
        bad_hidden!(),
        ")
         OR EXISTS (SELECT 1 FROM messages WHERE ",
        lost_message!("messages"),
        ")
         OR EXISTS (SELECT 1 FROM messages WHERE ",
        bad_message!(),
        ")
         OR EXISTS (SELECT 1 FROM messages m
         WHERE NOT EXISTS (SELECT 1 FROM mailboxes b WHERE b.instance = m.instance))
         OR EXISTS (SELECT 1 FROM counters WHERE ",
        bad_counter!(),
        ")
         OR EXISTS (SELECT 1 FROM sessions WHERE ",
        bad_session!(),
        ")
         OR EXISTS (SELECT 1 FROM instances WHERE ",
        bad_instance!(),
        ")
         OR EXISTS (SELECT 1 FROM executions WHERE ",
        lost_execution!(),
        " OR NOT ",
        is_pin!("pin"),
        ")"
    );
    Ok(first(c, sql, [], |row| row.get(0))?.unwrap_or(false))
}

/// Queues: messages whose place or owner is lost become dead letters, the rest is set right. How many
/// rows there were.
pub(crate) fn mend_queues(c: &Connection, now: u64) -> Sql<usize> {
    let now_ms = [ms_in(now)];
    let mut rows = 0;
    rows +=
        bury_and_delete!(c, now, "messages", lost_message!("messages"), "CAST(payload AS TEXT)");
    rows += bury_and_delete!(c, now, "hidden", lost_message!("hidden"), "CAST(payload AS TEXT)");
    rows += run(
        c,
        concat!(
            "UPDATE messages SET kind = ",
            kind_of_payload!(),
            ",
             attempts = CASE WHEN ",
            is_count!("attempts"),
            " THEN attempts ELSE 0 END,
             taken = (taken = 1), since = CASE typeof(since) WHEN 'integer' THEN since ELSE ?1 END
             WHERE ",
            bad_message!()
        ),
        now_ms,
    )?;
    // A timer says itself when it is due; everything else is due now.
    rows += run(
        c,
        concat!(
            "UPDATE hidden SET kind = ",
            kind_of_payload!(),
            ",
             attempts = CASE WHEN ",
            is_count!("attempts"),
            " THEN attempts ELSE 0 END,
             visible_at = CASE WHEN typeof(visible_at) = 'integer' THEN visible_at
             WHEN json_valid(payload) AND json_type(payload, '$.TimerFired.fire_at_ms') = 'integer'
             THEN json_extract(payload, '$.TimerFired.fire_at_ms') ELSE ?1 END
             WHERE ",
            bad_hidden!()
        ),
        now_ms,
    )?;
    rows += run(
        c,
        concat!("UPDATE counters SET next_seq = 1 + ", last_position!(), " WHERE ", bad_counter!()),
        [],
    )?;
    Ok(rows)
}

/// Activities say themselves what they are; a lock that makes no sense is none.
pub(crate) fn mend_work(c: &Connection) -> Sql<usize> {
    let mut rows = run(
        c,
        concat!(
            "UPDATE work SET attempts = CASE WHEN ",
            is_count!("attempts"),
            " THEN attempts ELSE 0 END,
             wake_at = CASE WHEN typeof(wake_at) = 'integer' AND ",
            is_secret!("token"),
            " THEN wake_at END,
             token = CASE WHEN ",
            is_secret!("token"),
            " AND typeof(wake_at) = 'integer'
             THEN token END
             WHERE ",
            bad_work!()
        ),
        [],
    )?;
    rows +=
        run(
            c,
            concat!(
            "UPDATE work SET execution = json_extract(payload, '$.ActivityExecute.execution_id'),
             activity = json_extract(payload, '$.ActivityExecute.id'),
             tag = json_extract(payload, '$.ActivityExecute.tag'),
             session = json_extract(payload, '$.ActivityExecute.session_id'),
             instance = ifnull(", owner_of_payload!(), ", instance)
             WHERE (", bad_work!(), ") AND ", is_clear!()
        ),
            [],
        )?;
    rows += run(c, concat!("DELETE FROM sessions WHERE ", bad_session!()), [])?;
    Ok(rows)
}

/// Instances and executions: what history says counts.
pub(crate) fn mend_instances(c: &Connection, now: u64) -> Sql<usize> {
    let mut rows = bury_and_delete!(
        c,
        now,
        "executions",
        lost_execution!(),
        "'execution ' || quote(number) || ', status ' || quote(status) || ', output ' || quote(output)"
    );
    rows += run(
        c,
        "INSERT OR IGNORE INTO executions (instance, number, status, started_at, started, outcome)
         SELECT i.key, h.execution, CASE
         WHEN max(h.body GLOB '{\"type\":\"OrchestrationCompleted\"*') THEN 'Completed'
         WHEN max(h.body GLOB '{\"type\":\"OrchestrationFailed\"*') THEN 'Failed'
         WHEN max(h.body GLOB '{\"type\":\"OrchestrationContinuedAsNew\"*') THEN 'ContinuedAsNew'
         ELSE 'Running' END, min(h.at), min(h.event),
         max(CASE WHEN h.body GLOB '{\"type\":\"OrchestrationCompleted\"*'
         OR h.body GLOB '{\"type\":\"OrchestrationFailed\"*' THEN h.event END)
         FROM instances i JOIN history h ON h.instance = i.key
         WHERE i.name IS NOT NULL AND typeof(h.execution) = 'integer'
         AND typeof(h.event) = 'integer' AND typeof(h.at) = 'integer'
         AND NOT EXISTS (SELECT 1 FROM executions e
         WHERE e.instance = i.key AND e.number = h.execution)
         GROUP BY i.key, h.execution",
        [],
    )?;
    rows += run(c, concat!("UPDATE executions SET pin = NULL WHERE NOT ", is_pin!("pin")), [])?;
    rows += run(
        c,
        concat!(
            "UPDATE instances SET pin = CASE WHEN ",
            is_pin!("pin"),
            " THEN pin END,
             execution = ifnull((SELECT e.number FROM executions e WHERE e.instance = instances.key
             ORDER BY e.number DESC LIMIT 1), execution)
             WHERE ",
            bad_instance!()
        ),
        [],
    )?;
    Ok(rows)
}

/// Mailboxes follow from the messages: those that make no sense go. How many.
pub(crate) fn delete_mailboxes(c: &Connection) -> Sql<usize> {
    run(c, concat!("DELETE FROM mailboxes WHERE ", bad_mailbox!()), [])
}

/// Instances with messages and without a mailbox.
pub(crate) fn without_mailbox(c: &Connection) -> Sql<Vec<i64>> {
    all(
        c,
        "SELECT DISTINCT instance FROM messages m
         WHERE NOT EXISTS (SELECT 1 FROM mailboxes b WHERE b.instance = m.instance)",
        [],
        |row| row.get(0),
    )
}
