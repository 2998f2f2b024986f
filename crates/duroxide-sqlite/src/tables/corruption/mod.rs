//! Rows that make no sense: found, set right where something else tells what is right, and otherwise
//! made dead letters.
//!
//! SQLite lets any value into any column, so damage may leave a text where a number belongs. Each
//! statement scans its table: nothing here runs while all is well.

use super::{Sql, first};
use crate::database::Db;

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
         ifnull((SELECT max(position) FROM work WHERE typeof(position) = 'integer'
         AND position < 4611686018427387904), 0),
         ifnull((SELECT max(moved_to) FROM mailboxes WHERE typeof(moved_to) = 'integer'
         AND moved_to < 4611686018427387904), 0),
         ifnull((SELECT max(seq) FROM messages WHERE typeof(seq) = 'integer'
         AND seq < 4611686018427387904), 0),
         ifnull((SELECT max(seq) FROM hidden WHERE typeof(seq) = 'integer'
         AND seq < 4611686018427387904), 0),
         ifnull((SELECT max(key) FROM instances WHERE key < 4611686018427387904), 0))"
    };
}

macro_rules! bad_counter {
    () => {
        concat!("NOT ", is_position!("next_seq"), " OR next_seq <= ", last_position!())
    };
}

/// A message whose instance, or whose place in the queue, cannot be told.
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
    ($kind:literal) => {
        concat!(
            "typeof(kind) <> 'integer' OR ",
            $kind,
            " NOT IN (0, 1, 2)
             OR (json_valid(payload) AND ",
            $kind,
            " <> ",
            kind_of_payload!(),
            ")"
        )
    };
}

/// A start that no index knows and that is not the first message of its instance, with its parent.
macro_rules! lost_start {
    () => {
        "kind = 1 AND (EXISTS (SELECT 1 FROM messages o
         WHERE o.instance = messages.instance AND o.seq < messages.seq)
         OR (parent IS NOT NULL AND NOT EXISTS (SELECT 1 FROM instances i
         WHERE i.key = messages.instance AND i.parent IS messages.parent)))"
    };
}

macro_rules! bad_message {
    () => {
        concat!(
            bad_kind!("iif(kind = 3, 1, kind)"),
            " OR ",
            lost_start!(),
            " OR NOT ",
            is_count!("attempts"),
            " OR late NOT IN (0, 1)
             OR typeof(since) <> 'integer'"
        )
    };
}

macro_rules! bad_hidden {
    () => {
        concat!(
            bad_kind!("kind"),
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

macro_rules! holder_by_session {
    () => {
        "(SELECT s.owner FROM sessions s WHERE s.id = work.session AND s.lapsed IS 0)"
    };
}

macro_rules! bad_work {
    () => {
        concat!(
            "NOT ",
            is_count!("attempts"),
            " OR NOT ",
            is_position!("position"),
            " OR typeof(wake_at) NOT IN ('integer', 'null')
             OR holder IS NOT ",
            holder_by_session!(),
            " OR NOT ",
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
            "typeof(state) <> 'integer' OR state NOT IN (0, 1, 2, 3, 4, 5)
             OR typeof(head) NOT IN ('integer', 'null') OR typeof(wake_at) NOT IN ('integer', 'null')
             OR typeof(node) NOT IN ('integer', 'null') OR pin IS NULL OR NOT ", is_pin!("pin"),
            " OR (moved_to IS NOT NULL AND NOT ", is_position!("moved_to"), ")
             OR typeof(upto) NOT IN ('integer', 'null') OR typeof(extra) NOT IN ('integer', 'null')
             OR leaves_some NOT IN (0, 1)",
            " OR NOT ", is_secret!("token"), " OR (state = 1) <> (head IS NOT NULL)
             OR (state IN (2, 3, 5) AND wake_at IS NULL) OR (state = 2 AND token IS NULL)
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
         OR typeof(last_activity) <> 'integer' OR lapsed NOT IN (0, 1)"
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

// Behind the conditions, which it uses.
mod repair;

pub(crate) use repair::{
    delete_mailboxes, repair_instances, repair_queues, repair_work, without_mailbox,
};

/// Whether any row makes no sense.
pub(crate) fn is_any(c: Db<'_>) -> Sql<bool> {
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
