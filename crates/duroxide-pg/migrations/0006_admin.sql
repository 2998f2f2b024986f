-- Deleting and pruning.

-- These instances and all their descendants.
CREATE FUNCTION duroxide.tree_of(p_ids text[]) RETURNS text[]
LANGUAGE plpgsql AS $body$
BEGIN
    RETURN array(
        WITH RECURSIVE tree(id) AS (
            SELECT u.id COLLATE "C" FROM unnest(p_ids) u(id)
            UNION
            SELECT i.id FROM tree JOIN duroxide.instance i ON i.parent = tree.id)
        SELECT t.id FROM tree t);
END
$body$;

-- Of these instances, one whose current execution has not ended.
CREATE FUNCTION duroxide.running_of(p_ids text[]) RETURNS text
LANGUAGE plpgsql AS $body$
BEGIN
    RETURN (
        SELECT i.id FROM unnest(p_ids) WITH ORDINALITY u(id, n)
        JOIN duroxide.instance i ON i.id = u.id COLLATE "C"
        -- Of each: not to be found among all that run.
        CROSS JOIN LATERAL (
            SELECT x.status FROM duroxide.execution x
            WHERE x.instance = i.key AND x.number = i.execution LIMIT 1) e
        WHERE i.name IS NOT NULL AND e.status = 'Running' ORDER BY u.n LIMIT 1);
END
$body$;

-- Mailboxes where starts of children of these instances are queued.
CREATE FUNCTION duroxide.mailboxes_of_starts(p_ids text[]) RETURNS bigint[]
LANGUAGE plpgsql AS $body$
BEGIN
    RETURN array(
        SELECT q.instance FROM unnest(p_ids) u(id)
        JOIN duroxide.message q ON q.parent = u.id COLLATE "C"
        UNION
        SELECT q.instance FROM unnest(p_ids) u(id)
        JOIN duroxide.hidden q ON q.parent = u.id COLLATE "C");
END
$body$;

-- Takes out the starts of children of these instances (R6.68), from mailboxes that are locked here. How
-- many, and the keys of those that only such a start spoke for: they are to be deleted, too. A turn that
-- has read one loses its lock, uncounted.
CREATE FUNCTION duroxide.delete_starts_of(
    p_ids text[], p_doomed bigint[], p_now bigint, p_retention bigint, OUT starts bigint, OUT nobody bigint[])
LANGUAGE plpgsql AS $body$
#variable_conflict use_column
DECLARE
    v_now bigint := coalesce(p_now, duroxide.now_ms());
    v_keys bigint[];
    v_taken bigint[];
    v_hidden bigint[];
BEGIN
    WITH gone AS (
        DELETE FROM duroxide.message q USING unnest(p_ids) u(id)
        WHERE q.parent = u.id COLLATE "C" RETURNING q.instance, q.seq)
    SELECT count(*), array_agg(DISTINCT g.instance),
        array_agg(DISTINCT g.instance) FILTER (WHERE g.seq = ANY (m.taken))
    INTO starts, v_keys, v_taken
    FROM gone g JOIN duroxide.mailbox m ON m.instance = g.instance;
    WITH gone AS (
        DELETE FROM duroxide.hidden q USING unnest(p_ids) u(id)
        WHERE q.parent = u.id COLLATE "C" RETURNING q.instance)
    SELECT starts + count(*), array_agg(DISTINCT g.instance) INTO starts, v_hidden FROM gone g;
    v_keys := array(
        SELECT u.key FROM unnest(v_keys || v_hidden) u(key) WHERE u.key <> ALL (p_doomed));
    nobody := array(
        SELECT m.instance FROM duroxide.mailbox m
        WHERE m.instance = ANY (v_keys) AND NOT m.known
        AND NOT EXISTS (SELECT FROM duroxide.message q
            WHERE q.instance = m.instance AND q.kind = 1)
        AND NOT EXISTS (SELECT FROM duroxide.hidden q
            WHERE q.instance = m.instance AND q.kind = 1));
    PERFORM duroxide.abandon_turn(m.instance, m.token, 0, true, v_now, p_retention)
    FROM duroxide.mailbox m
    WHERE m.instance = ANY (v_taken) AND m.instance = ANY (v_keys)
    AND m.instance <> ALL (nobody) AND m.state = 2 AND m.wake_at > v_now;
    PERFORM duroxide.settle(array(SELECT m.instance FROM duroxide.mailbox m
        WHERE m.instance = ANY (v_keys) AND m.instance <> ALL (nobody) AND m.state <> 2),
        p_retention);
END
$body$;

-- Deletes instances, with their descendants if `p_tree`, or nothing at all (R6.60 – R6.68).
-- refusal: 0 none, 1 `culprit` still runs, 2 `culprit` is a child of `parent` and would lose it.
CREATE FUNCTION duroxide.delete_instances(
    p_ids text[], p_force boolean, p_tree boolean, p_now bigint, p_retention bigint,
    OUT refusal smallint, OUT culprit text, OUT parent text, OUT instances bigint,
    OUT executions bigint, OUT events bigint, OUT messages bigint, OUT ids text[])
LANGUAGE plpgsql
SET enable_seqscan = off SET jit = off SET plan_cache_mode = force_generic_plan AS $body$
#variable_conflict use_column
DECLARE
    v_keys bigint[];
    v_queued bigint[];
    v_work bigint[];
    v_nobody bigint[];
    v_count bigint;
BEGIN
    ids := p_ids;
    LOOP
        IF p_tree THEN
            ids := duroxide.tree_of(p_ids);
        END IF;
        v_keys := array_remove(duroxide.keys_of(ids), NULL);
        v_queued := duroxide.mailboxes_of_starts(ids);
        PERFORM FROM duroxide.mailbox m
        WHERE m.instance = ANY (v_keys || v_queued) ORDER BY m.instance FOR UPDATE;
        -- A child that is committed first locks its parent's mailbox, and so does the commit that
        -- starts one: from here on there is none that is not known here.
        EXIT WHEN (NOT p_tree OR ids @> duroxide.tree_of(p_ids))
            AND v_keys @> array_remove(duroxide.keys_of(ids), NULL)
            AND v_queued @> duroxide.mailboxes_of_starts(ids);
    END LOOP;
    refusal := 0;
    IF NOT p_force THEN
        culprit := duroxide.running_of(ids);
        IF culprit IS NOT NULL THEN
            refusal := 1;
            RETURN;
        END IF;
    END IF;
    SELECT i.id, i.parent INTO culprit, parent
    FROM unnest(ids) u(id) JOIN duroxide.instance i ON i.parent = u.id COLLATE "C"
    WHERE i.id <> ALL (ids) LIMIT 1;
    IF culprit IS NOT NULL THEN
        refusal := 2;
        RETURN;
    END IF;
    messages := 0;
    IF cardinality(v_queued) > 0 THEN
        SELECT s.starts, s.nobody INTO messages, v_nobody
        FROM duroxide.delete_starts_of(ids, v_keys, p_now, p_retention) s;
        v_keys := v_keys || v_nobody;
    END IF;
    DELETE FROM duroxide.message q WHERE q.instance = ANY (v_keys);
    GET DIAGNOSTICS v_count = ROW_COUNT;
    messages := messages + v_count;
    DELETE FROM duroxide.hidden q WHERE q.instance = ANY (v_keys);
    GET DIAGNOSTICS v_count = ROW_COUNT;
    messages := messages + v_count;
    v_work := array(SELECT w.seq FROM duroxide.work w WHERE w.instance = ANY (v_keys));
    PERFORM FROM duroxide.work w WHERE w.seq = ANY (v_work) ORDER BY w.seq FOR UPDATE;
    DELETE FROM duroxide.work w WHERE w.seq = ANY (v_work);
    GET DIAGNOSTICS v_count = ROW_COUNT;
    messages := messages + v_count;
    DELETE FROM duroxide.execution e WHERE e.instance = ANY (v_keys);
    GET DIAGNOSTICS executions = ROW_COUNT;
    DELETE FROM duroxide.history h WHERE h.instance = ANY (v_keys);
    GET DIAGNOSTICS events = ROW_COUNT;
    DELETE FROM duroxide.kv k WHERE k.instance = ANY (v_keys);
    DELETE FROM duroxide.kv_delta k WHERE k.instance = ANY (v_keys);
    instances := (SELECT count(*) FROM duroxide.instance i
        WHERE i.key = ANY (v_keys) AND i.name IS NOT NULL);
    DELETE FROM duroxide.instance i WHERE i.key = ANY (v_keys);
    -- The lock goes with the mailbox: a turn in progress cannot commit any more (R8.57).
    DELETE FROM duroxide.mailbox m WHERE m.instance = ANY (v_keys);
END
$body$;

-- Instances that a filter lets through, oldest first (R6.70).
CREATE FUNCTION duroxide.candidates(p_ids text[], p_completed_before bigint)
RETURNS TABLE (key bigint, id text, parent text, execution bigint)
LANGUAGE plpgsql AS $body$
#variable_conflict use_column
BEGIN
    RETURN QUERY
        SELECT i.key, i.id, i.parent, i.execution FROM duroxide.instance i
        LEFT JOIN duroxide.execution e ON e.instance = i.key AND e.number = i.execution
        WHERE i.name IS NOT NULL AND (p_ids IS NULL OR i.id = ANY (p_ids))
        AND (p_completed_before IS NULL OR e.completed_at < p_completed_before)
        ORDER BY i.created_at, i.key;
END
$body$;

-- Ended roots without a running descendant that a filter lets through (R6.71, R6.74).
CREATE FUNCTION duroxide.ended_roots(p_ids text[], p_completed_before bigint, p_limit bigint)
RETURNS text[]
LANGUAGE plpgsql AS $body$
DECLARE
    v_roots text[] := '{}';
    v_row record;
BEGIN
    FOR v_row IN
        SELECT c.id FROM duroxide.candidates(p_ids, p_completed_before) c
        -- Without its parent a child is the root of what is left (R6.69).
        WHERE NOT EXISTS (SELECT FROM duroxide.instance i
            WHERE i.id = c.parent AND i.name IS NOT NULL)
    LOOP
        EXIT WHEN cardinality(v_roots) >= p_limit;
        IF duroxide.running_of(duroxide.tree_of(ARRAY[v_row.id])) IS NULL THEN
            v_roots := v_roots || v_row.id;
        END IF;
    END LOOP;
    RETURN v_roots;
END
$body$;

-- Executions of these instances that can be removed (R6.80 – R6.85): ended, not current, not among the
-- newest to keep, ended before a time if one is given. Nothing is locked; so many at most.
CREATE FUNCTION duroxide.prunable(
    p_keys bigint[], p_keep bigint, p_completed_before bigint, p_limit bigint)
RETURNS TABLE (instance bigint, number bigint)
LANGUAGE plpgsql
SET enable_seqscan = off SET jit = off SET plan_cache_mode = force_generic_plan AS $body$
#variable_conflict use_column
BEGIN
    RETURN QUERY
        SELECT e.instance, e.number FROM (
            SELECT x.*, i.execution AS newest,
                row_number() OVER (PARTITION BY x.instance ORDER BY x.number DESC) AS age
            FROM duroxide.execution x JOIN duroxide.instance i ON i.key = x.instance
            WHERE x.instance = ANY (p_keys)) e
        WHERE e.age > greatest(p_keep, 1) AND e.number IS DISTINCT FROM e.newest
        AND e.status <> 'Running'
        AND (p_completed_before IS NULL OR e.completed_at < p_completed_before)
        ORDER BY e.instance, e.number LIMIT p_limit;
END
$body$;

-- Removes executions that could be removed when they were chosen, if they still can under the lock of
-- their instance. They are given by instance. After about so many events it is enough for one
-- transaction: `seen` tells how many of them were looked at. Instances that somebody else has locked
-- are left, and named in `locked`, unless they are to be waited for.
CREATE FUNCTION duroxide.prune(
    p_instances bigint[], p_numbers bigint[], p_keep bigint, p_completed_before bigint,
    p_events bigint, p_wait boolean,
    OUT executions bigint, OUT events bigint, OUT seen bigint, OUT locked bigint[])
LANGUAGE plpgsql
SET enable_seqscan = off SET jit = off SET plan_cache_mode = force_generic_plan AS $body$
#variable_conflict use_column
DECLARE
    v_instance bigint;
    v_is_locked boolean;
    v_keep bigint := greatest(p_keep, 1);
    v_count bigint;
    v_row record;
BEGIN
    executions := 0;
    events := 0;
    seen := 0;
    locked := '{}';
    FOR v_row IN SELECT u.instance, u.number FROM unnest(p_instances, p_numbers)
        WITH ORDINALITY u(instance, number, n) ORDER BY u.n
    LOOP
        EXIT WHEN events >= p_events;
        seen := seen + 1;
        IF v_instance IS DISTINCT FROM v_row.instance THEN
            v_instance := v_row.instance;
            IF p_wait THEN
                PERFORM FROM duroxide.mailbox m WHERE m.instance = v_instance FOR UPDATE;
            ELSE
                PERFORM FROM duroxide.mailbox m WHERE m.instance = v_instance
                FOR UPDATE SKIP LOCKED;
            END IF;
            v_is_locked := FOUND;
            IF NOT v_is_locked AND NOT p_wait AND EXISTS (
                SELECT FROM duroxide.mailbox m WHERE m.instance = v_instance) THEN
                locked := locked || v_instance;
            END IF;
        END IF;
        CONTINUE WHEN NOT v_is_locked;
        DELETE FROM duroxide.execution e
        WHERE e.instance = v_instance AND e.number = v_row.number AND e.status <> 'Running'
        AND (p_completed_before IS NULL OR e.completed_at < p_completed_before)
        AND e.number IS DISTINCT FROM (
            SELECT i.execution FROM duroxide.instance i WHERE i.key = v_instance)
        AND v_keep <= (SELECT count(*) FROM (
            SELECT FROM duroxide.execution x
            WHERE x.instance = v_instance AND x.number > v_row.number LIMIT v_keep) newer);
        CONTINUE WHEN NOT FOUND;
        executions := executions + 1;
        DELETE FROM duroxide.history h
        WHERE h.instance = v_instance AND h.execution = v_row.number;
        GET DIAGNOSTICS v_count = ROW_COUNT;
        events := events + v_count;
    END LOOP;
END
$body$;

-- Deletes ended trees as `delete_instances` does, all or none of these, and waits only briefly for what
-- somebody else has locked.
CREATE FUNCTION duroxide.delete_trees(
    p_roots text[], p_now bigint, p_retention bigint,
    OUT refusal smallint, OUT culprit text, OUT parent text, OUT instances bigint,
    OUT executions bigint, OUT events bigint, OUT messages bigint, OUT ids text[])
LANGUAGE plpgsql AS $body$
#variable_conflict use_column
BEGIN
    PERFORM set_config('lock_timeout', '100', true);
    SELECT d.* INTO refusal, culprit, parent, instances, executions, events, messages, ids
    FROM duroxide.delete_instances(p_roots, false, true, p_now, p_retention) d;
END
$body$;

-- Queues the start of an instance unless its id is taken (R6.88). outcome: 0 it is queued; 1 the id is
-- taken by one that runs, or by a start that is queued; 2 by one that has ended, which makes room if
-- `p_replace`, with its descendants, unless that is refused: 3 `culprit` still runs, 4 it is a child, 5
-- `culprit` is a child of `parent` and would lose it.
CREATE FUNCTION duroxide.start_instance(
    p_id text, p_payload text, p_replace boolean, p_now bigint, p_retention bigint,
    OUT outcome smallint, OUT culprit text, OUT parent text)
LANGUAGE plpgsql
SET enable_seqscan = off SET jit = off SET plan_cache_mode = force_generic_plan AS $body$
#variable_conflict use_column
DECLARE
    v_key bigint;
    v_ids text[] := '{}';
    v_is_known boolean;
    v_refusal smallint;
BEGIN
    IF p_replace THEN
        -- What a deletion locks is locked together with the rest, to keep the order.
        v_ids := duroxide.tree_of(ARRAY[p_id]);
    END IF;
    v_key := (duroxide.open_mailboxes(ARRAY[p_id],
        array_remove(duroxide.keys_of(v_ids), NULL) || duroxide.mailboxes_of_starts(v_ids)))[1];
    SELECT m.known INTO v_is_known FROM duroxide.mailbox m WHERE m.instance = v_key;
    IF v_is_known THEN
        -- One that continues as new goes on.
        outcome := CASE WHEN (
            SELECT e.status FROM duroxide.execution e WHERE e.instance = v_key
            ORDER BY e.number DESC LIMIT 1) IN ('Completed', 'Failed') THEN 2 ELSE 1 END;
    ELSE
        outcome := coalesce(
            (SELECT 1 FROM duroxide.message q WHERE q.instance = v_key AND q.kind = 1 LIMIT 1),
            (SELECT 1 FROM duroxide.hidden q WHERE q.instance = v_key AND q.kind = 1 LIMIT 1), 0);
    END IF;
    IF outcome = 2 AND p_replace THEN
        SELECT p.id INTO parent FROM duroxide.instance i
        JOIN duroxide.instance p ON p.id = i.parent AND p.name IS NOT NULL
        WHERE i.key = v_key;
        IF parent IS NOT NULL THEN
            outcome := 4;
            RETURN;
        END IF;
        SELECT d.refusal, d.culprit, d.parent INTO v_refusal, culprit, parent
        FROM duroxide.delete_instances(ARRAY[p_id], false, true, p_now, p_retention) d;
        outcome := CASE v_refusal WHEN 0 THEN 0 WHEN 1 THEN 3 ELSE 5 END;
    END IF;
    IF outcome = 0 THEN
        PERFORM duroxide.enqueue_messages(ARRAY[p_id], ARRAY[1::smallint], ARRAY[0::bigint],
            ARRAY[p_payload], p_now, p_retention, true);
    END IF;
END
$body$;
