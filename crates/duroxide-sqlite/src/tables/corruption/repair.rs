//! What is done about rows that make no sense.

use crate::database::Db;
use crate::tables::{Sql, all, ms_in, run};

macro_rules! dead_letter_and_delete {
    ($c:expr, $now:expr, $table:literal, $condition:expr, $payload:expr) => {{
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

/// Followed by the long text that the row refers to, as far as that can be found.
macro_rules! and_long_text {
    ($table:literal) => {
        concat!(
            " || ifnull(char(10) || (SELECT t.text FROM long_texts t
             WHERE t.instance = ",
            $table,
            ".instance AND t.key = ",
            $table,
            ".long_text), '')"
        )
    };
}

/// Queues: messages whose place or owner is lost become dead letters, the rest is set right. How many
/// rows there were.
pub(crate) fn repair_queues(c: Db<'_>, now: u64) -> Sql<usize> {
    let now_ms = [ms_in(now)];
    let mut rows = 0;
    rows += dead_letter_and_delete!(
        c,
        now,
        "messages",
        lost_message!("messages"),
        concat!("CAST(payload AS TEXT)", and_long_text!("messages"))
    );
    rows += dead_letter_and_delete!(
        c,
        now,
        "hidden",
        lost_message!("hidden"),
        concat!("CAST(payload AS TEXT)", and_long_text!("hidden"))
    );
    rows += run(
        c,
        concat!(
            "UPDATE messages SET kind = CASE WHEN ",
            kind_of_payload!(),
            " = 1 THEN 3 ELSE ",
            kind_of_payload!(),
            " END,
             attempts = CASE WHEN ",
            is_count!("attempts"),
            " THEN attempts ELSE 0 END,
             late = (late = 1), since = CASE typeof(since) WHEN 'integer' THEN since ELSE ?1 END
             WHERE ",
            bad_message!()
        ),
        now_ms,
    )?;
    // The payload of a timer says when it is due; everything else is due now.
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

/// The payload of an activity says what its columns should; a lock that makes no sense is removed.
pub(crate) fn repair_work(c: Db<'_>) -> Sql<usize> {
    let mut rows = run(
        c,
        concat!(
            "UPDATE work SET attempts = CASE WHEN ",
            is_count!("attempts"),
            " THEN attempts ELSE 0 END,
             position = CASE WHEN ",
            is_position!("position"),
            " THEN position ELSE seq END,
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
    rows += run(
        c,
        concat!(
            "UPDATE work SET holder = ",
            holder_by_session!(),
            " WHERE holder IS NOT ",
            holder_by_session!()
        ),
        [],
    )?;
    Ok(rows)
}

/// Instances and executions: what history says counts.
pub(crate) fn repair_instances(c: Db<'_>, now: u64) -> Sql<usize> {
    let mut rows = dead_letter_and_delete!(
        c,
        now,
        "executions",
        lost_execution!(),
        concat!(
            "'execution ' || quote(number) || ', status ' || quote(status) || ', output '
             || quote(output)",
            and_long_text!("executions")
        )
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

/// Mailboxes follow from the messages: rows that make no sense are deleted. How many.
pub(crate) fn delete_mailboxes(c: Db<'_>) -> Sql<usize> {
    run(c, concat!("DELETE FROM mailboxes WHERE ", bad_mailbox!()), [])
}

/// Instances with messages and without a mailbox.
pub(crate) fn without_mailbox(c: Db<'_>) -> Sql<Vec<i64>> {
    all(
        c,
        "SELECT DISTINCT instance FROM messages m
         WHERE NOT EXISTS (SELECT 1 FROM mailboxes b WHERE b.instance = m.instance)",
        [],
        |row| row.get(0),
    )
}
