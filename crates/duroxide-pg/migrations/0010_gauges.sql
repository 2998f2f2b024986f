-- What every node asks once a minute, for its gauges.

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

-- Messages and activities that no valid lock covers.
CREATE FUNCTION duroxide.queue_depths(p_now bigint, OUT messages bigint, OUT activities bigint)
LANGUAGE sql
SET enable_seqscan = on SET enable_bitmapscan = on SET enable_sort = on SET enable_hashjoin = on
SET enable_mergejoin = on SET enable_material = on AS $body$
    SELECT (SELECT count(*) FROM duroxide.hidden) + (
            SELECT count(*) FROM duroxide.message q
            LEFT JOIN duroxide.mailbox m ON m.instance = q.instance AND m.state = 2
                AND m.wake_at > t.now AND q.seq = ANY (m.taken)
            WHERE m.instance IS NULL),
        (SELECT count(*) FROM duroxide.work w
            WHERE w.token IS NULL OR coalesce(w.wake_at, 0) <= t.now)
    FROM (SELECT coalesce(p_now, duroxide.now_ms()) AS now) t
$body$;
