-- What every node asks every few seconds, for its gauges.

-- Messages that were given back for a while: they wait, unlike timers that are not due. There are few.
CREATE INDEX hidden_tried ON duroxide.hidden (visible_at) WHERE attempts > 0;

CREATE INDEX execution_running ON duroxide.execution (instance) WHERE status = 'Running';

-- How many executions run, and so instances: those that are not current have ended. Read from the
-- index alone: what it costs does not depend on how many have ended. A bitmap would look at the same
-- dead entries every time, a scan of the index marks them.
CREATE FUNCTION duroxide.count_running() RETURNS bigint
LANGUAGE sql STABLE SET enable_seqscan = off SET enable_bitmapscan = off AS $body$
    SELECT count(*) FROM duroxide.execution e WHERE e.status = 'Running'
$body$;

-- What counts all there is is planned anew each time, and as the server thinks best: connections forbid
-- what is right here (see 0002).

-- Instances, executions and events.
CREATE FUNCTION duroxide.totals(
    OUT instances bigint, OUT executions bigint, OUT events bigint, OUT running bigint,
    OUT completed bigint, OUT failed bigint)
LANGUAGE sql STABLE
SET enable_seqscan = on SET enable_bitmapscan = on SET enable_sort = on SET enable_hashjoin = on
SET enable_mergejoin = on SET enable_material = on AS $body$
    SELECT (SELECT count(*) FROM duroxide.instance WHERE name IS NOT NULL),
        (SELECT count(*) FROM duroxide.execution),
        (SELECT count(*) FROM duroxide.history),
        count(*) FILTER (WHERE e.status = 'Running'),
        count(*) FILTER (WHERE e.status = 'Completed'),
        count(*) FILTER (WHERE e.status = 'Failed')
    FROM duroxide.instance i
    JOIN duroxide.execution e ON e.instance = i.key AND e.number = i.execution
    WHERE i.name IS NOT NULL
$body$;

-- Messages and activities that no valid lock covers. What sleeps until its time has come does not wait for
-- anybody; what was tried and given back for a while does.
CREATE FUNCTION duroxide.queue_depths(p_now bigint, OUT messages bigint, OUT activities bigint)
LANGUAGE sql
SET enable_seqscan = on SET enable_bitmapscan = on SET enable_sort = on SET enable_hashjoin = on
SET enable_mergejoin = on SET enable_material = on AS $body$
    SELECT (SELECT count(*) FROM duroxide.hidden h WHERE h.visible_at <= t.now) + (
            SELECT count(*) FROM duroxide.hidden h
            WHERE h.visible_at > t.now AND h.attempts > 0) + (
            SELECT count(*) FROM duroxide.message q
            LEFT JOIN duroxide.mailbox m ON m.instance = q.instance AND m.state = 2
                AND m.wake_at > t.now AND q.seq = ANY (m.taken)
            WHERE m.instance IS NULL),
        (SELECT count(*) FROM duroxide.work w
            WHERE w.token IS NULL OR coalesce(w.wake_at, 0) <= t.now)
    FROM (SELECT coalesce(p_now, duroxide.now_ms()) AS now) t
$body$;

-- The name of an activity, from its message. Not by way of json: what that refuses (a NUL in an id or an
-- input) would take the whole view with it.
CREATE FUNCTION duroxide.activity_name(p_payload text) RETURNS text
LANGUAGE sql IMMUTABLE SET standard_conforming_strings = on AS $body$
    SELECT CASE
        WHEN position('\' IN n.name) = 0 OR position('\u0000' IN n.name) > 0 THEN n.name
        ELSE ('"' || n.name || '"')::json #>> '{}' END
    FROM (SELECT substring(p_payload FROM
        '^\{"ActivityExecute":\{"instance":"(?:[^"\\]|\\.)*","execution_id":[0-9]+,"id":[0-9]+,"name":"((?:[^"\\]|\\.)*)"')
        AS name) n
$body$;

-- What somebody can do or does: turns and activities. A turn is one row, however many messages it
-- will read.
CREATE VIEW duroxide.queue AS
SELECT 'turn' AS kind,
       i.id AS instance,
       NULL::bigint AS activity,
       CASE m.state WHEN 1 THEN 'ready' WHEN 2 THEN 'locked' WHEN 6 THEN 'delayed'
           ELSE 'aside' END AS state,
       q.messages,
       CASE WHEN m.state <> 6 THEN to_timestamp(q.since / 1000.0) END AS since,
       CASE WHEN m.state = 2 THEN to_timestamp(m.wake_at / 1000.0) END AS locked_until,
       CASE WHEN m.state = 2 THEN m.node END AS node,
       q.attempts,
       NULL::text AS tag,
       NULL::text AS session,
       i.name,
       n.name AS node_name
FROM duroxide.mailbox m
JOIN duroxide.instance i ON i.key = m.instance
LEFT JOIN duroxide.node n ON n.id = m.node AND m.state = 2
CROSS JOIN LATERAL (
    SELECT count(*) AS messages, min(q.since) AS since, max(q.attempts) AS attempts
    FROM duroxide.message q WHERE q.instance = m.instance) q
WHERE m.head IS NOT NULL OR m.wake_at IS NOT NULL
UNION ALL
-- Turns given back for a while, of which nothing else can be fetched: what was tried is not due yet.
SELECT 'turn',
       i.id,
       NULL,
       'delayed',
       h.messages,
       NULL,
       NULL,
       NULL,
       h.attempts,
       NULL,
       NULL,
       i.name,
       NULL
FROM (
    SELECT d.instance, count(*) AS messages, max(d.attempts) AS attempts
    FROM duroxide.hidden d WHERE d.attempts > 0 GROUP BY d.instance) h
JOIN duroxide.mailbox m ON m.instance = h.instance AND m.head IS NULL AND m.wake_at IS NULL
JOIN duroxide.instance i ON i.key = h.instance
UNION ALL
SELECT 'activity',
       i.id,
       w.activity,
       CASE WHEN w.wake_at IS NULL THEN 'ready' WHEN w.token IS NULL THEN 'delayed' ELSE 'locked' END,
       1,
       to_timestamp((SELECT h.at FROM duroxide.history h WHERE h.instance = w.instance
           AND h.execution = w.execution AND h.event = w.activity) / 1000.0),
       CASE WHEN w.token IS NOT NULL THEN to_timestamp(w.wake_at / 1000.0) END,
       w.node,
       w.attempts,
       w.tag,
       w.session,
       duroxide.activity_name(w.payload),
       n.name
FROM duroxide.work w
JOIN duroxide.instance i ON i.key = w.instance
LEFT JOIN duroxide.node n ON n.id = w.node;
