-- Views for people: they only read, may be granted to anybody, and their columns stay as they are from
-- one release to the next, which cannot be said of the tables. A NUL in a name or value is shown as
-- \x1a followed by 0. docs/guide/postgres.md describes the columns.

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

-- What somebody can do or does: turns and activities. A turn is one row, however many messages it
-- will read.
CREATE VIEW duroxide.queue AS
SELECT 'turn' AS kind,
       i.id AS instance,
       NULL::bigint AS activity,
       CASE m.state WHEN 1 THEN 'ready' WHEN 2 THEN 'locked' ELSE 'aside' END AS state,
       q.messages,
       to_timestamp(q.since / 1000.0) AS since,
       CASE WHEN m.state = 2 THEN to_timestamp(m.wake_at / 1000.0) END AS locked_until,
       CASE WHEN m.state = 2 THEN m.node END AS node,
       q.attempts,
       NULL::text AS tag,
       NULL::text AS session
FROM duroxide.mailbox m
JOIN duroxide.instance i ON i.key = m.instance
CROSS JOIN LATERAL (
    SELECT count(*) AS messages, min(q.since) AS since, max(q.attempts) AS attempts
    FROM duroxide.message q WHERE q.instance = m.instance) q
WHERE m.head IS NOT NULL OR m.wake_at IS NOT NULL
UNION ALL
SELECT 'activity',
       i.id,
       w.activity,
       CASE WHEN w.wake_at IS NULL THEN 'ready' WHEN w.token IS NULL THEN 'delayed' ELSE 'locked' END,
       1,
       NULL,
       CASE WHEN w.token IS NOT NULL THEN to_timestamp(w.wake_at / 1000.0) END,
       w.node,
       w.attempts,
       w.tag,
       w.session
FROM duroxide.work w
JOIN duroxide.instance i ON i.key = w.instance;

-- Instances that run and for which nobody can do anything now, and what they may wait for.
CREATE VIEW duroxide.waiting AS
SELECT i.id AS instance,
       i.name AS orchestration,
       i.custom_status,
       to_timestamp(i.updated_at / 1000.0) AS since,
       (SELECT to_timestamp(min(h.visible_at) / 1000.0) FROM duroxide.hidden h
        WHERE h.instance = i.key) AS next_timer,
       (SELECT count(*) FROM duroxide.work w WHERE w.instance = i.key) AS activities
FROM duroxide.instance i
JOIN duroxide.execution e ON e.instance = i.key AND e.number = i.execution
JOIN duroxide.mailbox m ON m.instance = i.key
WHERE e.status = 'Running' AND m.state = 0;
