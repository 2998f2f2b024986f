-- Views for people: they only read, may be granted to anybody, and their columns stay as they are from
-- one release to the next, which cannot be said of the tables. A NUL in a name or value is shown as
-- \x1a followed by 0. docs/guide/postgres.md describes the columns. `queue`, which names nodes, is in 0010.

CREATE VIEW duroxide.instances AS
SELECT i.id,
       i.name AS orchestration,
       i.version,
       e.status,
       i.execution,
       i.parent,
       i.custom_status,
       e.output,
       to_timestamp(i.created_at / 1000.0) AS created_at,
       to_timestamp(i.updated_at / 1000.0) AS updated_at
FROM duroxide.instance i
JOIN duroxide.execution e ON e.instance = i.key AND e.number = i.execution
WHERE i.name IS NOT NULL;

CREATE VIEW duroxide.executions AS
SELECT i.id AS instance,
       e.number AS execution,
       i.name AS orchestration,
       e.status,
       e.output,
       p.version AS library,
       to_timestamp(e.started_at / 1000.0) AS started_at,
       to_timestamp(e.completed_at / 1000.0) AS completed_at
FROM duroxide.execution e
JOIN duroxide.instance i ON i.key = e.instance
LEFT JOIN duroxide.pin p ON p.id = e.pin
WHERE i.name IS NOT NULL;

-- Whether a message that is not due yet will still be heard: a timer of an execution that has ended
-- will not. The numbers at the end of its text are the only ones that look like this.
CREATE FUNCTION duroxide.is_heard(p_payload text, p_execution bigint) RETURNS boolean
LANGUAGE sql IMMUTABLE AS $body$
    SELECT p_payload NOT LIKE '{"TimerFired":%' OR substring(p_payload FROM
        '"execution_id":([0-9]+),"id":[0-9]+,"fire_at_ms":[0-9]+\}\}$') = p_execution::text
$body$;

-- Instances that run and for which nobody can do anything now, and what they may wait for.
CREATE VIEW duroxide.waiting AS
SELECT i.id AS instance,
       i.name AS orchestration,
       i.custom_status,
       to_timestamp(i.updated_at / 1000.0) AS since,
       (SELECT to_timestamp(min(h.visible_at) / 1000.0) FROM duroxide.hidden h
        WHERE h.instance = i.key AND h.dropped IS NULL
        AND duroxide.is_heard(h.payload, i.execution)) AS next_timer,
       (SELECT count(*) FROM duroxide.work w WHERE w.instance = i.key) AS activities
FROM duroxide.instance i
JOIN duroxide.execution e ON e.instance = i.key AND e.number = i.execution
JOIN duroxide.mailbox m ON m.instance = i.key
WHERE e.status = 'Running' AND m.state = 0;
