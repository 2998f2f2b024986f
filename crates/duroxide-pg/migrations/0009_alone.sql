-- The common cases of things done alone, in few plain statements: what arrays cost is worth it for
-- many only. Whatever is not common they leave alone and answer with -1, and the caller uses the
-- general function. The order of locks is the same.
--
-- With `p_max` a fetch follows, as `fetch_turns` or `fetch_work` would do it. What has just come is
-- handed out without being queued first if nothing else waits, whose turn it would be.

-- A message for an instance that is known, or starts with it; with `p_work` the outcome of that
-- activity, which has no session. If the fetch takes the turn it makes, and `p_hold`, then nothing here
-- waits for the disk: the commit of that turn will, and takes along all that was written before.
CREATE FUNCTION duroxide.post_one(
    p_id text, p_kind smallint, p_payload text, p_work bigint, p_work_token uuid, p_hold boolean,
    p_max integer, p_lock bigint, p_pins integer[], p_known_pins bigint, p_token uuid,
    p_node bigint, p_now bigint, p_retention bigint, p_from bigint, p_due_from bigint)
RETURNS TABLE (
    result smallint, is_held boolean,
    now_ms bigint, next_due bigint, new_pins boolean, more boolean,
    key bigint, id text, token uuid, name text, version text, execution bigint, start_body text,
    seqs bigint[], payloads text[], attempts bigint, last_event bigint, last_event_at bigint,
    kv_keys text[], kv_values text[], kv_times bigint[])
LANGUAGE plpgsql AS $body$
#variable_conflict use_column
DECLARE
    v_result smallint := -1;
    v_key bigint;
    v_is_new boolean := false;
    v_known boolean;
    v_state smallint;
    v_pin integer;
    v_seq bigint;
    v_others boolean := true;
    v_has_kv boolean;
    v_setting text;
    v_pins integer[] := p_pins;
BEGIN
    <<post>> BEGIN
        SELECT m.instance, m.known, m.state, m.pin INTO v_key, v_known, v_state, v_pin
        FROM duroxide.mailbox m
        WHERE m.instance = (SELECT i.key FROM duroxide.instance i WHERE i.id = p_id COLLATE "C")
        FOR UPDATE;
        IF v_key IS NULL THEN
            EXIT post WHEN p_kind <> 1;
            INSERT INTO duroxide.instance (id) VALUES (p_id) ON CONFLICT DO NOTHING
            RETURNING instance.key INTO v_key;
            EXIT post WHEN v_key IS NULL; -- Somebody else had the same idea.
            v_is_new := true;
            v_state := 0;
            v_pin := 0;
        ELSE
            EXIT post WHEN NOT v_known;
        END IF;
        now_ms := coalesce(p_now, duroxide.now_ms());
        IF p_work IS NOT NULL THEN
            DELETE FROM duroxide.work w WHERE w.seq = p_work AND w.token = p_work_token
            AND w.wake_at > now_ms AND w.session IS NULL;
            EXIT post WHEN NOT FOUND;
        END IF;
        v_result := 0;
        v_seq := nextval('duroxide.positions'::regclass);
        INSERT INTO duroxide.message (instance, seq, kind, attempts, since, payload)
        VALUES (v_key, v_seq, p_kind, 0, now_ms, p_payload);

        IF v_state = 0 AND p_max > 0 AND coalesce(v_pin = ANY (p_pins), true) THEN
            -- Only now is the instance looked at: while the lock was waited for, a commit may have
            -- begun another execution.
            IF v_pins IS NULL THEN
                v_pins := array(SELECT p.id FROM duroxide.pin p) || 0;
            END IF;
            SELECT (SELECT d.visible_at FROM duroxide.hidden d WHERE d.visible_at >= p_due_from
                    ORDER BY d.visible_at LIMIT 1),
                EXISTS (SELECT FROM duroxide.mailbox m
                    WHERE m.head >= p_from AND m.pin = ANY (v_pins)) OR i.name IS NULL AND NOT v_is_new,
                EXISTS (SELECT FROM duroxide.kv k WHERE k.instance = v_key),
                i.name, i.version, i.execution, l.event, l.at
            INTO next_due, v_others, v_has_kv, name, version, execution, last_event, last_event_at
            FROM duroxide.instance i LEFT JOIN LATERAL (
                SELECT h.event, h.at FROM duroxide.history h
                WHERE h.instance = v_key AND h.execution = i.execution
                ORDER BY h.event DESC LIMIT 1) l ON true
            WHERE i.key = v_key;
            v_others := v_others OR coalesce(next_due <= now_ms, false);
        END IF;
        IF v_is_new THEN
            INSERT INTO duroxide.mailbox (instance, state, head, wake_at, token, node, taken)
            VALUES (v_key,
                CASE WHEN v_others THEN 1 ELSE 2 END, CASE WHEN v_others THEN v_seq END,
                CASE WHEN NOT v_others THEN now_ms + p_lock END,
                CASE WHEN NOT v_others THEN p_token END,
                CASE WHEN NOT v_others THEN p_node END,
                CASE WHEN NOT v_others THEN ARRAY[v_seq] END);
        ELSIF NOT v_others THEN
            UPDATE duroxide.mailbox m SET state = 2, head = NULL, wake_at = now_ms + p_lock,
                token = p_token, node = p_node, counted = false, taken = ARRAY[v_seq]
            WHERE m.instance = v_key;
        ELSIF v_state = 0 THEN
            UPDATE duroxide.mailbox m SET state = 1, head = v_seq
            WHERE m.instance = v_key;
        END IF;
    END;
    IF v_others AND p_max > 0 THEN
        RETURN QUERY SELECT v_result, false, f.* FROM duroxide.fetch_turns(p_max, p_lock, p_pins,
            p_known_pins, p_token, p_node, p_now, p_retention, p_from, p_due_from, false, false) f;
        RETURN;
    END IF;
    result := v_result;
    is_held := p_hold AND NOT v_others;
    IF is_held THEN
        v_setting := set_config('synchronous_commit', 'off', true); -- The turn's commit will wait.
    END IF;
    IF NOT v_others THEN
        new_pins := false;
        more := false;
        key := v_key;
        id := p_id;
        token := p_token;
        seqs := ARRAY[v_seq];
        payloads := ARRAY[p_payload];
        attempts := 1;
        IF v_has_kv THEN
            SELECT array_agg(k.key), array_agg(k.value), array_agg(k.updated_at)
            INTO kv_keys, kv_values, kv_times FROM duroxide.kv k WHERE k.instance = v_key;
        END IF;
    END IF;
    RETURN NEXT;
END
$body$;

-- A turn that speaks of its own instance only (`p_id`, null if of none), has no parent, no key-value
-- data, cancels nothing, sends no messages but timers. As commit_turns. An event id that is taken is a
-- violated key, which undoes everything: the general function tells which.
--
-- With `p_work` it is a direct turn (R8.142): that activity, which has no session, is taken out, and
-- tells which instance it is. There are events, the last of them `p_last`.
CREATE FUNCTION duroxide.commit_one(
    p_id text, p_key bigint, p_lock_token uuid,
    p_work bigint, p_work_token uuid, p_last bigint, p_last_at bigint, p_execution bigint,
    p_started bigint, p_outcome bigint, p_status text, p_output text,
    p_name text, p_version text, p_pin text, p_customized boolean, p_custom text,
    e_ids bigint[], e_sources bigint[], e_times bigint[], e_stamps text[], e_bodies text[],
    w_executions bigint[], w_activities bigint[], w_tags text[], w_sessions text[],
    w_payloads text[],
    m_kinds smallint[], m_due bigint[], m_payloads text[],
    p_max integer, p_lock bigint, p_any boolean, p_untagged boolean, p_tags text[],
    p_owner text, p_lease bigint, p_token uuid, p_node bigint, p_now bigint, p_from bigint)
RETURNS TABLE (
    result smallint, ready_from bigint,
    now_ms bigint, next_due bigint, more boolean, seq bigint, token uuid, attempts bigint,
    payload text)
LANGUAGE plpgsql AS $body$
#variable_conflict use_column
DECLARE
    v_mailbox duroxide.mailbox;
    v_version xid;
    v_pin integer;
    v_instance_pin integer;
    v_others boolean;
BEGIN
    <<commit>> BEGIN
        IF p_work IS NULL THEN
            SELECT * INTO v_mailbox FROM duroxide.mailbox m WHERE m.instance = p_key FOR UPDATE;
            now_ms := coalesce(p_now, duroxide.now_ms());
            EXIT commit WHEN v_mailbox.token IS DISTINCT FROM p_lock_token
                OR v_mailbox.state <> 2 OR v_mailbox.wake_at <= now_ms OR now_ms >= ANY (m_due);
        ELSE
            -- A look without a lock: whatever changes the instance changes its mailbox, too, which
            -- is noticed when that is written. The mailbox is named first, as everywhere: whoever
            -- locks whole tables is not to meet us in another order.
            now_ms := coalesce(p_now, duroxide.now_ms());
            SELECT m.instance, m.xmin, CASE
                WHEN w.wake_at <= now_ms OR now_ms >= ANY (m_due) THEN NULL
                WHEN m.state = 0 AND i.name IS NOT NULL
                    AND i.id = p_id COLLATE "C" AND i.execution = p_execution
                    AND l.event = p_last AND l.at = p_last_at
                    AND (SELECT true FROM duroxide.hidden q
                        WHERE q.instance = m.instance AND q.visible_at <= now_ms LIMIT 1) IS NULL
                    THEN 0
                ELSE 4 END -- See judge_direct.
            INTO p_key, v_version, result
            FROM duroxide.mailbox m
            JOIN duroxide.work w ON w.instance = m.instance
            JOIN duroxide.instance i ON i.key = m.instance
            LEFT JOIN LATERAL (
                SELECT h.event, h.at FROM duroxide.history h
                WHERE h.instance = m.instance AND h.execution = p_execution
                ORDER BY h.event DESC LIMIT 1) l ON true
            WHERE w.seq = p_work AND w.token = p_work_token AND w.session IS NULL;
            EXIT commit WHEN result IS DISTINCT FROM 0;
            result := NULL;
        END IF;
        IF p_pin IS NOT NULL THEN
            SELECT p.id INTO v_pin FROM duroxide.pin p WHERE p.version = p_pin COLLATE "C";
            EXIT commit WHEN v_pin IS NULL;
        END IF;
        IF p_status IN ('Completed', 'ContinuedAsNew', 'Failed') THEN
            EXIT commit WHEN EXISTS (SELECT FROM duroxide.kv_delta d WHERE d.instance = p_key);
        END IF;
        IF p_work IS NOT NULL THEN
            -- It stays at rest; what is left of a lock that ran out goes.
            UPDATE duroxide.mailbox m SET done = p_lock_token, token = NULL, taken = NULL,
                behind = NULL
            WHERE m.instance = p_key AND m.xmin = v_version;
            EXIT commit WHEN NOT FOUND;
            DELETE FROM duroxide.work w
            WHERE w.seq = p_work AND w.token = p_work_token AND w.wake_at > now_ms;
            IF NOT FOUND THEN
                RAISE unique_violation USING MESSAGE = 'an activity that is no longer locked';
            END IF;
        END IF;
        -- The first turn says who it is; the later ones are of an instance that is known.
        UPDATE duroxide.instance i SET
            name = coalesce(p_name, i.name),
            version = coalesce(p_version, i.version),
            execution = p_execution,
            pin = CASE WHEN p_started IS NULL THEN coalesce(v_pin, i.pin)
                ELSE coalesce(v_pin, 0) END,
            created_at = coalesce(i.created_at, now_ms),
            updated_at = now_ms,
            custom_status = CASE WHEN p_customized THEN p_custom ELSE i.custom_status END,
            custom_version = i.custom_version + p_customized::integer
        WHERE i.key = p_key AND i.id = coalesce(p_id, i.id)
        AND CASE WHEN p_started IS NULL THEN i.execution = p_execution AND i.name IS NOT NULL
            ELSE p_name IS NOT NULL AND coalesce(i.execution <= p_execution, true) END
        RETURNING i.pin INTO v_instance_pin;
        IF NOT FOUND THEN
            EXIT commit WHEN p_work IS NULL;
            RAISE unique_violation USING MESSAGE = 'an instance that is not what it was';
        END IF;
        IF p_started IS NOT NULL THEN
            INSERT INTO duroxide.execution
                (instance, number, status, pin, started_at, completed_at, started, outcome, output)
            VALUES (p_key, p_execution, coalesce(p_status, 'Running'), coalesce(v_pin, 0), now_ms,
                CASE WHEN p_status <> 'Running' THEN now_ms END, p_started, p_outcome,
                CASE WHEN p_status IS NOT NULL THEN p_output END);
        ELSIF coalesce(p_status, p_pin, p_outcome::text) IS NOT NULL THEN
            UPDATE duroxide.execution e SET
                status = coalesce(p_status, e.status),
                output = CASE WHEN p_status IS NULL THEN e.output ELSE p_output END,
                completed_at = CASE WHEN p_status IS NULL THEN e.completed_at
                    WHEN p_status <> 'Running' THEN now_ms END,
                outcome = greatest(p_outcome, e.outcome),
                pin = coalesce(v_pin, e.pin)
            WHERE e.instance = p_key AND e.number = p_execution;
            IF NOT FOUND THEN
                RAISE unique_violation USING MESSAGE = 'an execution without a row';
            END IF;
        END IF;
        INSERT INTO duroxide.history (instance, execution, event, source, at, stamp, body)
        SELECT p_key, p_execution, e.id, e.source, e.at, e.stamp, e.body
        FROM unnest(e_ids, e_sources, e_times, e_stamps, e_bodies) e(id, source, at, stamp, body);

        IF cardinality(m_payloads) > 0 THEN
            INSERT INTO duroxide.hidden (visible_at, seq, instance, kind, attempts, payload)
            SELECT u.due, nextval('duroxide.positions'::regclass), p_key, u.kind, 0, u.payload
            FROM unnest(m_kinds, m_due, m_payloads) u(kind, due, payload);
        END IF;
        IF p_work IS NULL THEN
            DELETE FROM duroxide.message q
            WHERE q.instance = p_key AND q.seq = ANY (v_mailbox.taken);
            UPDATE duroxide.mailbox m SET
                done = m.token, token = NULL, node = NULL, taken = NULL, counted = false,
                behind = NULL, wake_at = NULL, known = true, pin = v_instance_pin, head = h.seq,
                state = CASE WHEN h.seq IS NULL THEN 0 ELSE 1 END
            FROM (SELECT (SELECT q.seq FROM duroxide.message q
                WHERE q.instance = p_key ORDER BY q.seq LIMIT 1) AS seq) h
            WHERE m.instance = p_key RETURNING m.head INTO ready_from;
        END IF;
        IF cardinality(w_payloads) = 1 AND p_max > 0 AND p_untagged
            AND coalesce(w_tags[1], w_sessions[1]) IS NULL THEN
            SELECT n.is_there INTO v_others
            FROM duroxide.next_work(p_any, p_tags, p_owner, now_ms, p_from) n;
            IF NOT v_others THEN
                RETURN QUERY
                    INSERT INTO duroxide.work AS w (seq, position, instance, execution, activity,
                        attempts, wake_at, token, node, tag_key, payload)
                    SELECT s.seq, s.seq, p_key, w_executions[1], w_activities[1], 1,
                        now_ms + p_lock, p_token, p_node, 0, w_payloads[1]
                    FROM (SELECT nextval('duroxide.positions'::regclass) AS seq) s
                    RETURNING 0::smallint, ready_from, now_ms, next_due, false, w.seq, w.token,
                        w.attempts, w.payload;
                RETURN;
            END IF;
        END IF;
        IF cardinality(w_payloads) > 0 THEN
            INSERT INTO duroxide.work
                (seq, position, instance, execution, activity, attempts, tag_key, tag, session,
                payload)
            SELECT u.seq, u.seq, p_key, u.execution, u.activity, 0, duroxide.tag_key(u.tag),
                u.tag, u.session, u.payload
            FROM (SELECT nextval('duroxide.positions'::regclass) AS seq, w.*
                FROM unnest(w_executions, w_activities, w_tags, w_sessions, w_payloads)
                    w(execution, activity, tag, session, payload)) u;
        END IF;
        result := 0;
    END;
    result := coalesce(result, -1);
    IF p_max > 0 THEN
        RETURN QUERY SELECT result, ready_from, f.* FROM duroxide.fetch_work(p_max, p_lock, p_any,
            p_untagged, p_tags, p_owner, p_lease, p_token, p_node, p_now, p_from, false, NULL) f;
    ELSE
        RETURN NEXT;
    END IF;
END
$body$;

-- Whether a turn was committed with this secret: for those who asked, got no answer, asked again and
-- were refused.
CREATE FUNCTION duroxide.was_committed(p_key bigint, p_token uuid) RETURNS boolean
LANGUAGE sql STABLE AS $body$
    SELECT EXISTS (SELECT FROM duroxide.mailbox m WHERE m.instance = p_key AND m.done = p_token)
$body$;

-- The same for a direct turn of the instance with this id.
CREATE FUNCTION duroxide.was_committed_directly(p_id text, p_token uuid) RETURNS boolean
LANGUAGE sql STABLE AS $body$
    SELECT EXISTS (SELECT FROM duroxide.instance i JOIN duroxide.mailbox m ON m.instance = i.key
        WHERE i.id = p_id COLLATE "C" AND m.done = p_token)
$body$;

-- Whether an activity is over.
CREATE FUNCTION duroxide.is_gone(p_seq bigint) RETURNS boolean
LANGUAGE sql STABLE AS $body$
    SELECT NOT EXISTS (SELECT FROM duroxide.work w WHERE w.seq = p_seq)
$body$;
