-- What every node asks once a minute, for its gauges.

CREATE INDEX execution_running ON duroxide.execution (instance) WHERE status = 'Running';

-- How many executions run, and so instances: those that are not current have ended. Read from the
-- index alone: what it costs does not depend on how many have ended. A bitmap would look at the same
-- dead entries every time, a scan of the index marks them.
CREATE FUNCTION duroxide.count_running() RETURNS bigint
LANGUAGE sql STABLE SET enable_seqscan = off SET enable_bitmapscan = off AS $body$
    SELECT count(*) FROM duroxide.execution e WHERE e.status = 'Running'
$body$;
