-- The commit of turns (R8.40 – R8.62): everything is checked first, then everything happens.

-- Notes versions that are new; comes before any lock.
CREATE FUNCTION duroxide.note_pins(p_pins text[]) RETURNS void
LANGUAGE plpgsql AS $body$
BEGIN
    IF array_remove(p_pins, NULL) <> '{}'
        AND EXISTS (SELECT FROM unnest(p_pins) u(pin) WHERE u.pin IS NOT NULL
        AND NOT EXISTS (SELECT FROM duroxide.pin p WHERE p.version = u.pin COLLATE "C")) THEN
        INSERT INTO duroxide.pin (version)
        SELECT DISTINCT u.pin COLLATE "C" FROM unnest(p_pins) u(pin)
        WHERE u.pin IS NOT NULL ORDER BY 1 ON CONFLICT DO NOTHING;
    END IF;
END
$body$;

-- What the events of an execution say about key-value data (R8.110 – R8.113).
CREATE FUNCTION duroxide.record_kv(
    p_cleared bigint[], p_keys bigint[], p_names text[], p_values text[], p_times bigint[],
    p_ended bigint[])
RETURNS void
LANGUAGE plpgsql AS $body$
BEGIN
    IF cardinality(p_cleared) > 0 THEN
        UPDATE duroxide.kv_delta SET value = NULL WHERE instance = ANY (p_cleared);
        INSERT INTO duroxide.kv_delta (instance, key, value, updated_at)
        SELECT k.instance, k.key, NULL, 0 FROM duroxide.kv k
        WHERE k.instance = ANY (p_cleared) AND NOT EXISTS (
            SELECT FROM duroxide.kv_delta d WHERE d.instance = k.instance AND d.key = k.key);
    END IF;
    IF cardinality(p_keys) > 0 THEN
        DELETE FROM duroxide.kv_delta d USING unnest(p_keys, p_names) u(key, name)
        WHERE d.instance = u.key AND d.key = u.name COLLATE "C";
        INSERT INTO duroxide.kv_delta (instance, key, value, updated_at)
        SELECT u.key, u.name, u.value, u.at
        FROM unnest(p_keys, p_names, p_values, p_times) u(key, name, value, at);
    END IF;
    IF EXISTS (SELECT FROM duroxide.kv_delta WHERE instance = ANY (p_ended)) THEN
        DELETE FROM duroxide.kv k USING duroxide.kv_delta d
        WHERE d.instance = ANY (p_ended) AND k.instance = d.instance AND k.key = d.key;
        INSERT INTO duroxide.kv (instance, key, value, updated_at)
        SELECT d.instance, d.key, d.value, d.updated_at FROM duroxide.kv_delta d
        WHERE d.instance = ANY (p_ended) AND d.value IS NOT NULL;
        DELETE FROM duroxide.kv_delta WHERE instance = ANY (p_ended);
    END IF;
END
$body$;

-- Of events about to be stored, the first for each turn whose id is taken (R8.62); null for the
-- turns that have none. Appending is the common case and costs one look.
CREATE FUNCTION duroxide.taken_events(
    p_keys bigint[], p_executions bigint[], e_turns integer[], e_ids bigint[])
RETURNS bigint[]
LANGUAGE plpgsql AS $body$
DECLARE
    v_taken bigint[] := array_fill(NULL::bigint, ARRAY[cardinality(p_keys)]);
    v_row record;
BEGIN
    FOR v_row IN
        SELECT e.turn, (
            SELECT min(h.event) FROM duroxide.history h
            WHERE h.instance = p_keys[e.turn] AND h.execution = p_executions[e.turn]
            AND h.event = ANY (e.ids)) AS event
        FROM (
            SELECT u.turn, min(u.id) AS lowest, array_agg(u.id) AS ids
            FROM unnest(e_turns, e_ids) u(turn, id) GROUP BY u.turn) e
        WHERE e.lowest <= (
            SELECT h.event FROM duroxide.history h
            WHERE h.instance = p_keys[e.turn] AND h.execution = p_executions[e.turn]
            ORDER BY h.event DESC LIMIT 1)
    LOOP
        v_taken[v_row.turn] := v_row.event;
    END LOOP;
    RETURN v_taken;
END
$body$;

-- Stores executions (R8.45, R8.46, R8.49); what is null leaves things as they are: an empty status
-- stands for that where there is a row already. A conflict finds each row by itself, where a join would
-- compare every execution given with every other.
CREATE FUNCTION duroxide.record_executions(
    p_keys bigint[], p_numbers bigint[], p_started bigint[], p_outcomes bigint[],
    p_statuses text[], p_outputs text[], p_pins text[], p_now bigint)
RETURNS void
LANGUAGE plpgsql AS $body$
BEGIN
    INSERT INTO duroxide.execution AS e
        (instance, number, status, pin, started_at, completed_at, started, outcome, output)
    SELECT u.key, u.number,
        coalesce(u.status, CASE WHEN x.is_there THEN '' ELSE 'Running' END),
        coalesce(p.id, CASE WHEN x.is_there THEN -1 ELSE 0 END), p_now,
        CASE WHEN u.status <> 'Running' THEN p_now END, u.started, u.outcome,
        CASE WHEN u.status IS NOT NULL THEN u.output END
    FROM unnest(p_keys, p_numbers, p_started, p_outcomes, p_statuses, p_outputs, p_pins)
        u(key, number, started, outcome, status, output, pin)
    LEFT JOIN duroxide.pin p ON p.version = u.pin COLLATE "C"
    CROSS JOIN LATERAL (
        SELECT (SELECT true FROM duroxide.execution o
            WHERE o.instance = u.key AND o.number = u.number LIMIT 1) AS is_there) x
    WHERE x.is_there IS NULL
    OR coalesce(u.status, u.pin, u.started::text, u.outcome::text) IS NOT NULL
    ON CONFLICT (instance, number) DO UPDATE SET
        status = coalesce(nullif(EXCLUDED.status, ''), e.status),
        output = CASE WHEN EXCLUDED.status = '' THEN e.output ELSE EXCLUDED.output END,
        completed_at = CASE WHEN EXCLUDED.status = '' THEN e.completed_at
            ELSE EXCLUDED.completed_at END,
        started = coalesce(EXCLUDED.started, e.started),
        outcome = greatest(EXCLUDED.outcome, e.outcome),
        pin = coalesce(nullif(EXCLUDED.pin, -1), e.pin);
END
$body$;

-- Queues activities, fetchable at once, in the order given (R8.71).
CREATE FUNCTION duroxide.queue_work(
    p_keys bigint[], p_executions bigint[], p_activities bigint[], p_tags text[],
    p_sessions text[], p_payloads text[])
RETURNS void
LANGUAGE plpgsql AS $body$
BEGIN
    INSERT INTO duroxide.work
        (seq, position, instance, execution, activity, attempts, tag_key, tag, session, payload)
    SELECT u.seq, u.seq, u.key, u.execution, u.activity, 0, duroxide.tag_key(u.tag), u.tag,
        u.session, u.payload
    FROM (SELECT nextval('duroxide.positions'::regclass) AS seq, w.* FROM
        unnest(p_keys, p_executions, p_activities, p_tags, p_sessions, p_payloads)
        w(key, execution, activity, tag, session, payload)) u;
END
$body$;

-- Whether direct turns may be committed (R8.142): 0, 1 or 2 as judge_lock, of their activities; 4 if
-- the instance is not at rest as they have seen it. Of two for one instance the second is too late.
CREATE FUNCTION duroxide.judge_direct(
    d_ids text[], d_seqs bigint[], d_tokens uuid[], d_executions bigint[], d_last bigint[],
    d_last_at bigint[], d_secrets uuid[], p_now bigint)
RETURNS smallint[]
LANGUAGE plpgsql AS $body$
BEGIN
    RETURN array(
        WITH judged AS MATERIALIZED (
            SELECT u.n, u.secret, w.instance, CASE
                WHEN duroxide.judge_work(w, u.token, p_now) <> 0
                    THEN duroxide.judge_work(w, u.token, p_now)
                WHEN m.state = 0 AND i.name IS NOT NULL AND i.id = u.id COLLATE "C"
                    AND i.execution = u.execution
                    AND coalesce(l.event, 0) = u.last AND coalesce(l.at, 0) = u.last_at
                    -- Of this instance: not to be found among all that are due.
                    AND (SELECT true FROM duroxide.hidden q WHERE q.instance = w.instance
                        AND q.visible_at <= p_now LIMIT 1) IS NULL THEN 0
                ELSE 4 END AS result
            FROM unnest(d_ids, d_seqs, d_tokens, d_executions, d_last, d_last_at, d_secrets)
                WITH ORDINALITY u(id, seq, token, execution, last, last_at, secret, n)
            LEFT JOIN duroxide.work w ON w.seq = u.seq
            LEFT JOIN duroxide.mailbox m ON m.instance = w.instance
            LEFT JOIN duroxide.instance i ON i.key = w.instance
            LEFT JOIN LATERAL (
                SELECT h.event, h.at FROM duroxide.history h
                WHERE h.instance = w.instance AND h.execution = u.execution
                ORDER BY h.event DESC LIMIT 1) l ON true)
        SELECT CASE WHEN j.result = 0 AND j.secret <> first_value(j.secret) OVER (
                PARTITION BY j.instance, j.result ORDER BY j.n) THEN 4 ELSE j.result END::smallint
        FROM judged j ORDER BY j.n);
END
$body$;

-- The keys of the instances that activities belong to, in their order; null if an activity is gone.
CREATE FUNCTION duroxide.keys_of_work(p_seqs bigint[]) RETURNS bigint[]
LANGUAGE plpgsql AS $body$
BEGIN
    -- The mailbox is named first, as everywhere.
    RETURN array(
        SELECT o.instance FROM unnest(p_seqs) WITH ORDINALITY u(seq, n)
        LEFT JOIN (
            SELECT m.instance, w.seq FROM duroxide.mailbox m
            JOIN duroxide.work w ON w.instance = m.instance) o ON o.seq = u.seq
        ORDER BY u.n);
END
$body$;

-- Takes the activities of direct turns out, and puts their instances under locks that the commit uses
-- up. Nothing was taken with them: messages there are none.
CREATE FUNCTION duroxide.begin_direct(
    p_keys bigint[], p_secrets uuid[], p_seqs bigint[], p_now bigint)
RETURNS void
LANGUAGE plpgsql AS $body$
DECLARE
    v_sessions text[];
BEGIN
    WITH gone AS (
        DELETE FROM duroxide.work w WHERE w.seq = ANY (p_seqs) RETURNING w.session)
    SELECT array_agg(DISTINCT g.session) INTO v_sessions FROM gone g WHERE g.session IS NOT NULL;
    UPDATE duroxide.mailbox m SET token = u.secret, taken = NULL
    FROM unnest(p_keys, p_secrets) u(key, secret) WHERE m.instance = u.key;
    IF v_sessions IS NOT NULL THEN
        PERFORM duroxide.touch_sessions(v_sessions, p_now);
    END IF;
END
$body$;

-- Whether turns may be committed that have read timers (R8.150): 0; 4 if the instance is not at rest as
-- they have seen it; 5 if a timer is not due, or is not held back. `f_firsts` says which turn has the
-- timers. Of two for one instance none is committed: they cannot have seen each other.
CREATE FUNCTION duroxide.judge_timers(
    p_keys bigint[], p_tokens uuid[], f_turns integer[], f_firsts integer[], f_ids text[],
    f_executions bigint[], f_last bigint[], f_last_at bigint[],
    t_turns integer[], t_due bigint[], t_payloads text[], p_now bigint)
RETURNS smallint[]
LANGUAGE plpgsql AS $body$
BEGIN
    RETURN array(
        SELECT CASE
            WHEN m.state IS DISTINCT FROM 0 OR i.name IS NULL OR i.id <> u.id COLLATE "C"
                OR i.execution <> u.execution
                OR coalesce(l.event, 0) <> u.last OR coalesce(l.at, 0) <> u.last_at
                OR EXISTS (SELECT FROM unnest(p_keys, p_tokens) o(key, token)
                    WHERE o.key = p_keys[u.turn] AND o.token <> p_tokens[u.turn])
                OR (SELECT true FROM duroxide.hidden q WHERE q.instance = m.instance
                    AND q.visible_at <= p_now LIMIT 1) THEN 4
            WHEN (SELECT count(DISTINCT h.seq) < count(*)
                FROM unnest(t_turns, t_due, t_payloads) t(turn, due, payload)
                LEFT JOIN LATERAL duroxide.held_back(m.instance, t.due, t.payload) h
                    ON t.due <= p_now
                WHERE t.turn = u.first) THEN 5
            ELSE 0 END::smallint
        FROM unnest(f_turns, f_firsts, f_ids, f_executions, f_last, f_last_at)
            WITH ORDINALITY u(turn, first, id, execution, last, last_at, n)
        LEFT JOIN duroxide.mailbox m ON m.instance = p_keys[u.turn]
        LEFT JOIN duroxide.instance i ON i.key = m.instance
        LEFT JOIN LATERAL (
            SELECT h.event, h.at FROM duroxide.history h
            WHERE h.instance = m.instance AND h.execution = u.execution
            ORDER BY h.event DESC LIMIT 1) l ON true
        ORDER BY u.n);
END
$body$;

-- Where a timer is that is held back and was never fetched. Both columns are compared together, so that
-- only the index of an instance's messages does: the one by time holds the timers of all.
CREATE FUNCTION duroxide.held_back(p_key bigint, p_due bigint, p_payload text)
RETURNS TABLE (visible_at bigint, seq bigint)
LANGUAGE sql STABLE AS $body$
    SELECT q.visible_at, q.seq FROM duroxide.hidden q
    WHERE (q.instance, q.visible_at) >= (p_key, p_due)
    AND (q.instance, q.visible_at) <= (p_key, 9223372036854775807)
    AND q.attempts = 0 AND q.payload = p_payload
    ORDER BY q.instance, q.visible_at LIMIT 1
$body$;

-- Takes timers out, and puts their instances under locks that the commit uses up.
CREATE FUNCTION duroxide.begin_fired(
    p_keys bigint[], p_secrets uuid[], t_keys bigint[], t_due bigint[], t_payloads text[])
RETURNS void
LANGUAGE plpgsql AS $body$
DECLARE
    v_times bigint[];
    v_seqs bigint[];
BEGIN
    SELECT array_agg(h.visible_at), array_agg(h.seq) INTO v_times, v_seqs
    FROM unnest(t_keys, t_due, t_payloads) t(key, due, payload)
    CROSS JOIN LATERAL duroxide.held_back(t.key, t.due, t.payload) h;
    DELETE FROM duroxide.hidden q USING unnest(v_times, v_seqs) u(visible_at, seq)
    WHERE q.visible_at = u.visible_at AND q.seq = u.seq;
    UPDATE duroxide.mailbox m SET token = u.secret, taken = NULL
    FROM unnest(p_keys, p_secrets) u(key, secret) WHERE m.instance = u.key;
END
$body$;

-- Commits turns. Ids of instances are given once, in `p_ids`, and meant by their place; those from
-- place `p_opened` + 1 on are not noted if they are new. All other arrays have an entry per turn, or
-- say with `…_turns` to which turn an entry belongs. Of one instance there is one turn at most, except
-- for those that follow one another (R8.140): they have one lock, and `p_steps` counts them from 1.
-- Either all of them are committed or none.
--
-- `d_…` are for turns that have no lock but are about an activity (R8.142), which is taken out: see
-- judge_direct. They have no key, and a secret that they make up. `f_…` are for turns that have no lock
-- but have read timers, `t_…` (R8.150), which are taken out: see judge_timers. They make up a secret, too.
--
-- The first row tells for each turn, in their order: 0, or why not (1, 2: see judge_lock; 3: an event
-- id is taken; 4, 5: see judge_timers) and that event's id; and the lowest place of the instances for which
-- messages have come meanwhile, that make another turn.
--
-- With `p_max` a fetch follows, as `fetch_work` would do it. Activities of these turns are handed out
-- without being queued first if all of them can be and nothing else waits, whose turn it would be.
-- The other rows are what it comes to.
CREATE FUNCTION duroxide.commit_turns(
    p_ids text[], p_opened integer,
    p_keys bigint[], p_tokens uuid[], p_steps integer[], p_executions bigint[],
    p_started bigint[], p_outcomes bigint[], p_statuses text[], p_outputs text[],
    p_names text[], p_versions text[], p_parents integer[], p_pins text[],
    p_customized boolean[], p_customs text[], p_cleared boolean[],
    d_turns integer[], d_ids text[], d_seqs bigint[], d_tokens uuid[], d_executions bigint[],
    d_last bigint[], d_last_at bigint[],
    f_turns integer[], f_firsts integer[], f_ids text[], f_executions bigint[],
    f_last bigint[], f_last_at bigint[],
    t_turns integer[], t_due bigint[], t_payloads text[],
    e_turns integer[], e_ids bigint[], e_sources bigint[], e_times bigint[], e_stamps text[],
    e_bodies text[],
    k_turns integer[], k_names text[], k_values text[], k_times bigint[],
    w_turns integer[], w_ids integer[], w_executions bigint[], w_activities bigint[],
    w_tags text[], w_sessions text[], w_payloads text[],
    c_turns integer[], c_ids integer[], c_executions bigint[], c_activities bigint[],
    m_turns integer[], m_ids integer[], m_kinds smallint[], m_due bigint[], m_payloads text[],
    m_parents text[],
    p_retention bigint, p_locked boolean,
    p_max integer, p_lock bigint, p_any boolean, p_untagged boolean, p_tags text[],
    p_owner text, p_lease bigint, p_token uuid, p_node bigint, p_now bigint, p_from bigint)
RETURNS TABLE (
    results smallint[], taken_events bigint[], ready_from bigint,
    now_ms bigint, next_due bigint, more boolean, seq bigint, token uuid, attempts bigint,
    payload text)
LANGUAGE plpgsql AS $body$
#variable_conflict use_column
DECLARE
    v_now bigint;
    v_hands_out boolean := false;
    v_seqs bigint[];
    v_payloads text[];
    v_others bigint[];
    v_targets bigint[];
    v_results smallint[];
    v_step_results smallint[];
    v_taken bigint[];
    v_ok bigint[];
    v_steps integer := (SELECT max(u.step) FROM unnest(p_steps) u(step));
    v_row record;
BEGIN
    IF NOT p_locked THEN
        PERFORM duroxide.note_pins(p_pins);
    END IF;
    IF cardinality(d_turns) > 0 THEN
        FOR v_row IN SELECT u.turn, u.key
            FROM unnest(d_turns, duroxide.keys_of_work(d_seqs)) u(turn, key)
            WHERE u.key IS NOT NULL
        LOOP
            p_keys[v_row.turn] := v_row.key;
        END LOOP;
    END IF;
    v_others := '{}';
    IF p_opened < cardinality(p_ids) THEN
        v_others := duroxide.keys_of(p_ids[p_opened + 1 :]);
    END IF;
    v_targets := duroxide.opened_mailboxes(p_ids[: p_opened], p_keys || v_others, p_locked)
        || v_others;
    IF NOT p_locked AND (cardinality(d_turns) > 0 OR v_steps > 1) THEN
        PERFORM duroxide.lock_work(d_seqs,
            array(SELECT v_targets[u.id] FROM unnest(c_ids) WITH ORDINALITY u(id, n) ORDER BY u.n),
            c_executions, c_activities);
    END IF;

    v_now := coalesce(p_now, duroxide.now_ms());
    v_results := array(
        SELECT duroxide.judge_lock(m, t.token, v_now)
        FROM unnest(p_keys, p_tokens) WITH ORDINALITY t(key, token, n)
        LEFT JOIN duroxide.mailbox m ON m.instance = t.key ORDER BY t.n);
    IF cardinality(d_turns) > 0 THEN
        FOR v_row IN SELECT u.turn, u.result FROM unnest(d_turns, duroxide.judge_direct(d_ids,
            d_seqs, d_tokens, d_executions, d_last, d_last_at,
            array(SELECT p_tokens[o.turn] FROM unnest(d_turns) WITH ORDINALITY o(turn, n)
                ORDER BY o.n), v_now)) u(turn, result)
        LOOP
            v_results[v_row.turn] := v_row.result;
        END LOOP;
    END IF;
    IF cardinality(f_turns) > 0 THEN
        FOR v_row IN SELECT u.turn, u.result FROM unnest(f_turns, duroxide.judge_timers(p_keys,
            p_tokens, f_turns, f_firsts, f_ids, f_executions, f_last, f_last_at,
            t_turns, t_due, t_payloads, v_now)) u(turn, result)
        LOOP
            v_results[v_row.turn] := v_row.result;
        END LOOP;
    END IF;
    v_taken := duroxide.taken_events(p_keys, p_executions, e_turns, e_ids);
    v_results := array(
        SELECT CASE WHEN u.result = 0 AND u.event IS NOT NULL THEN 3::smallint ELSE u.result END
        FROM unnest(v_results, v_taken) WITH ORDINALITY u(result, event, n) ORDER BY u.n);
    IF v_steps > 1 THEN
        v_results := array(
            SELECT max(u.result) OVER (PARTITION BY u.key, u.token)
            FROM unnest(v_results, p_keys, p_tokens) WITH ORDINALITY u(result, key, token, n)
            ORDER BY u.n);
    END IF;
    v_ok := array(
        SELECT u.key FROM unnest(p_keys, v_results) WITH ORDINALITY u(key, result, n)
        WHERE u.result = 0 ORDER BY u.n);

    IF cardinality(v_ok) > 0 THEN
        IF cardinality(d_turns) > 0 THEN
            PERFORM duroxide.begin_direct(array_agg(p_keys[u.turn]), array_agg(p_tokens[u.turn]),
                array_agg(u.seq), v_now)
            FROM unnest(d_turns, d_seqs) u(turn, seq)
            WHERE v_results[u.turn] = 0 AND p_steps[u.turn] = 1 HAVING count(*) > 0;
        END IF;
        IF cardinality(f_turns) > 0 THEN
            PERFORM duroxide.begin_fired(array_agg(p_keys[u.turn]), array_agg(p_tokens[u.turn]),
                (SELECT array_agg(p_keys[t.turn]) FROM unnest(t_turns) t(turn)
                    WHERE v_results[t.turn] = 0),
                (SELECT array_agg(t.due) FROM unnest(t_turns, t_due) t(turn, due)
                    WHERE v_results[t.turn] = 0),
                (SELECT array_agg(t.payload) FROM unnest(t_turns, t_payloads) t(turn, payload)
                    WHERE v_results[t.turn] = 0))
            FROM unnest(f_turns) u(turn)
            WHERE v_results[u.turn] = 0 AND p_steps[u.turn] = 1 HAVING count(*) > 0;
        END IF;
        DELETE FROM duroxide.message q USING duroxide.mailbox m
        WHERE m.instance = ANY (v_ok) AND q.instance = m.instance AND q.seq = ANY (m.taken);

        -- What is cancelled again must not be handed out.
        IF cardinality(w_turns) BETWEEN 1 AND p_max AND p_untagged AND v_steps = 1
            AND cardinality(c_turns) = 0
            AND cardinality(array_remove(w_tags, NULL) || array_remove(w_sessions, NULL)) = 0
            AND (SELECT sum(octet_length(u.payload)) FROM unnest(w_payloads) u(payload))
                <= duroxide.fetch_bytes() THEN
            SELECT NOT n.is_there INTO v_hands_out
            FROM duroxide.next_work(p_any, p_tags, p_owner, v_now, p_from) n;
        END IF;
        FOR v_step IN 1 .. v_steps LOOP
            v_step_results := v_results;
            IF v_steps > 1 THEN
                v_step_results := array(
                    SELECT CASE WHEN u.step = v_step THEN u.result ELSE -1 END
                    FROM unnest(v_results, p_steps) WITH ORDINALITY u(result, step, n)
                    ORDER BY u.n);
            END IF;
            PERFORM duroxide.record_executions(
                array_agg(t.key), array_agg(t.execution), array_agg(t.started),
                array_agg(t.outcome), array_agg(t.status), array_agg(t.output), array_agg(t.pin),
                v_now)
            FROM unnest(p_keys, v_step_results, p_executions, p_started, p_outcomes, p_statuses,
                p_outputs, p_pins) t(key, result, execution, started, outcome, status, output, pin)
            WHERE t.result = 0;

            -- The row: made when name and version are there, otherwise only kept up to date.
            UPDATE duroxide.instance i SET
                name = coalesce(t.name, i.name),
                version = coalesce(t.version, i.version),
                parent = CASE WHEN i.name IS NULL THEN t.parent ELSE i.parent END,
                execution = greatest(i.execution, t.execution),
                pin = CASE WHEN coalesce(i.execution, t.execution) <= t.execution
                    THEN e.pin ELSE i.pin END,
                created_at = coalesce(i.created_at, v_now),
                updated_at = v_now,
                custom_status = CASE WHEN t.customized THEN t.custom ELSE i.custom_status END,
                custom_version = i.custom_version + t.customized::integer
            FROM (
                SELECT u.key, u.result, u.execution, u.customized, u.custom,
                    p_ids[u.parent] AS parent,
                    CASE WHEN u.version IS NOT NULL THEN u.name END AS name,
                    CASE WHEN u.name IS NOT NULL THEN u.version END AS version
                FROM unnest(p_keys, v_step_results, p_executions, p_names, p_versions, p_parents,
                    p_customized, p_customs)
                    u(key, result, execution, name, version, parent, customized, custom)) t
            CROSS JOIN LATERAL (
                SELECT x.pin FROM duroxide.execution x
                WHERE x.instance = t.key AND x.number = t.execution LIMIT 1) e
            WHERE t.result = 0 AND i.key = t.key AND (i.name IS NOT NULL OR t.name IS NOT NULL);

            INSERT INTO duroxide.history (instance, execution, event, source, at, stamp, body)
            SELECT p_keys[e.turn], p_executions[e.turn], e.id, e.source, e.at, e.stamp, e.body
            FROM unnest(e_turns, e_ids, e_sources, e_times, e_stamps, e_bodies)
                e(turn, id, source, at, stamp, body)
            WHERE v_step_results[e.turn] = 0;

            IF cardinality(k_turns) > 0 OR true = ANY (p_cleared)
                OR p_statuses && ARRAY['Completed', 'ContinuedAsNew', 'Failed'] THEN
                PERFORM duroxide.record_kv(
                    array(SELECT t.key
                        FROM unnest(p_keys, v_step_results, p_cleared) t(key, result, cleared)
                        WHERE t.result = 0 AND t.cleared),
                    k.keys, k.names, k.vals, k.times,
                    array(SELECT t.key
                        FROM unnest(p_keys, v_step_results, p_statuses) t(key, result, status)
                        WHERE t.result = 0
                        AND t.status IN ('Completed', 'ContinuedAsNew', 'Failed')))
                FROM (
                    SELECT array_agg(p_keys[u.turn]) AS keys, array_agg(u.name) AS names,
                        array_agg(u.value) AS vals, array_agg(u.at) AS times
                    FROM unnest(k_turns, k_names, k_values, k_times) u(turn, name, value, at)
                    WHERE v_step_results[u.turn] = 0) k;
            END IF;

            IF v_hands_out THEN
                WITH made AS (
                    INSERT INTO duroxide.work (seq, position, instance, execution, activity,
                        attempts, wake_at, token, node, tag_key, payload)
                    SELECT u.seq, u.seq, v_targets[u.id], u.execution, u.activity, 1,
                        v_now + p_lock, p_token, p_node, 0, u.payload
                    FROM (SELECT nextval('duroxide.positions'::regclass) AS seq, w.*
                        FROM unnest(w_turns, w_ids, w_executions, w_activities, w_payloads)
                            w(turn, id, execution, activity, payload)
                        WHERE v_step_results[w.turn] = 0) u
                    RETURNING seq, payload)
                SELECT array_agg(m.seq ORDER BY m.seq), array_agg(m.payload ORDER BY m.seq)
                INTO v_seqs, v_payloads FROM made m;
            ELSIF cardinality(w_turns) > 0 THEN
                INSERT INTO duroxide.work
                    (seq, position, instance, execution, activity, attempts, tag_key, tag,
                    session, payload)
                SELECT u.seq, u.seq, v_targets[u.id], u.execution, u.activity, 0,
                    duroxide.tag_key(u.tag), u.tag, u.session, u.payload
                FROM (SELECT nextval('duroxide.positions'::regclass) AS seq, w.*
                    FROM unnest(w_turns, w_ids, w_executions, w_activities, w_tags, w_sessions,
                        w_payloads) w(turn, id, execution, activity, tag, session, payload)
                    WHERE v_step_results[w.turn] = 0) u;
            END IF;
            IF cardinality(c_turns) > 0 THEN
                -- After what this commit queues (R8.52).
                DELETE FROM duroxide.work w USING (
                    SELECT o.seq FROM duroxide.work o WHERE o.seq = ANY (array(
                        SELECT a.seq FROM unnest(c_turns, c_ids, c_executions, c_activities)
                            u(turn, id, execution, activity)
                        CROSS JOIN LATERAL (
                            SELECT x.seq FROM duroxide.work x
                            WHERE x.instance = v_targets[u.id] AND x.execution = u.execution
                            AND x.activity = u.activity OFFSET 0) a
                        WHERE v_step_results[u.turn] = 0))
                    ORDER BY o.seq FOR UPDATE OF o) d
                WHERE w.seq = d.seq;
            END IF;
        END LOOP;

        ready_from := duroxide.release(v_ok, p_retention);
        IF cardinality(m_turns) > 0 THEN
            PERFORM duroxide.post(
                array_agg(v_targets[u.id] ORDER BY u.n), array_agg(u.kind ORDER BY u.n),
                array_agg(u.due ORDER BY u.n), array_agg(u.payload ORDER BY u.n),
                array_agg(u.parent ORDER BY u.n), v_now, p_retention)
            FROM unnest(m_turns, m_ids, m_kinds, m_due, m_payloads, m_parents) WITH ORDINALITY
                u(turn, id, kind, due, payload, parent, n)
            WHERE v_results[u.turn] = 0 HAVING count(*) > 0;
        END IF;
    END IF;
    IF cardinality(v_ok) < cardinality(p_keys) THEN
        -- Names noted for commits that were refused.
        PERFORM duroxide.settle(array(SELECT m.instance FROM duroxide.mailbox m
            WHERE m.instance = ANY (v_targets) AND NOT m.known AND m.state = 0), p_retention);
    END IF;
    results := v_results;
    taken_events := v_taken;
    RETURN NEXT;
    IF v_seqs IS NOT NULL THEN
        RETURN QUERY SELECT NULL::smallint[], NULL::bigint[], NULL::bigint, v_now, NULL::bigint,
                false, u.seq, p_token, 1::bigint, u.payload
            FROM unnest(v_seqs, v_payloads) u(seq, payload);
    ELSIF p_max > 0 THEN
        RETURN QUERY SELECT NULL::smallint[], NULL::bigint[], NULL::bigint, f.*
            FROM duroxide.fetch_work(p_max, p_lock, p_any, p_untagged, p_tags, p_owner, p_lease,
                p_token, p_node, p_now, p_from, false, NULL) f;
    END IF;
END
$body$;

-- Opens mailboxes whose locks were used up (R8.54); the lowest place of those that are ready again.
CREATE FUNCTION duroxide.release(p_keys bigint[], p_retention bigint) RETURNS bigint
LANGUAGE plpgsql AS $body$
DECLARE
    v_first bigint;
    v_unknown bigint[];
BEGIN
    WITH opened AS (
        UPDATE duroxide.mailbox m SET
            done = m.token, token = NULL, node = NULL, taken = NULL, counted = false,
            behind = NULL, wake_at = NULL, known = s.known, pin = s.pin, head = CASE WHEN s.known THEN s.head END,
            state = CASE WHEN s.known AND s.head IS NOT NULL THEN 1 ELSE 0 END
        FROM (
            SELECT i.key, CASE WHEN i.name IS NULL THEN 0 ELSE i.pin END AS pin,
                i.name IS NOT NULL OR coalesce((
                    SELECT e.started IS NOT NULL FROM duroxide.execution e
                    WHERE e.instance = i.key ORDER BY e.number DESC LIMIT 1), false) AS known,
                (SELECT q.seq FROM duroxide.message q
                    WHERE q.instance = i.key ORDER BY q.seq LIMIT 1) AS head
            FROM duroxide.instance i WHERE i.key = ANY (p_keys)) s
        WHERE m.instance = s.key
        RETURNING m.instance, m.known, m.head)
    SELECT min(o.head), array_agg(o.instance) FILTER (WHERE NOT o.known)
    INTO v_first, v_unknown FROM opened o;
    IF v_unknown IS NOT NULL THEN
        PERFORM duroxide.settle(v_unknown, p_retention);
        v_first := least(v_first, (
            SELECT min(m.head) FROM duroxide.mailbox m WHERE m.instance = ANY (v_unknown)));
    END IF;
    RETURN v_first;
END
$body$;

-- Appends events outside a turn (R8.96). The id of an event that is taken, if there is one; then
-- nothing has happened.
CREATE FUNCTION duroxide.append_events(
    p_id text, p_execution bigint, p_started bigint, p_outcome bigint,
    e_ids bigint[], e_sources bigint[], e_times bigint[], e_stamps text[], e_bodies text[],
    p_now bigint, p_retention bigint)
RETURNS bigint
LANGUAGE plpgsql AS $body$
DECLARE
    v_key bigint := (duroxide.open_mailboxes(ARRAY[p_id], '{}'))[1];
    v_now bigint := coalesce(p_now, duroxide.now_ms());
    v_taken bigint;
BEGIN
    v_taken := (duroxide.taken_events(ARRAY[v_key], ARRAY[p_execution],
        array_fill(1, ARRAY[cardinality(e_ids)]), e_ids))[1];
    IF v_taken IS NULL THEN
        PERFORM duroxide.record_executions(ARRAY[v_key], ARRAY[p_execution], ARRAY[p_started],
            ARRAY[p_outcome], ARRAY[NULL::text], ARRAY[NULL::text], ARRAY[NULL::text], v_now);
        INSERT INTO duroxide.history (instance, execution, event, source, at, stamp, body)
        SELECT v_key, p_execution, e.id, e.source, e.at, e.stamp, e.body
        FROM unnest(e_ids, e_sources, e_times, e_stamps, e_bodies) e(id, source, at, stamp, body);
        UPDATE duroxide.mailbox m SET known = i.name IS NOT NULL OR coalesce((
            SELECT e.started IS NOT NULL FROM duroxide.execution e
            WHERE e.instance = v_key ORDER BY e.number DESC LIMIT 1), false)
        FROM duroxide.instance i WHERE m.instance = v_key AND i.key = v_key;
    END IF;
    PERFORM duroxide.settle(ARRAY[v_key], p_retention)
    FROM duroxide.mailbox m WHERE m.instance = v_key AND m.state <> 2;
    RETURN v_taken;
END
$body$;
