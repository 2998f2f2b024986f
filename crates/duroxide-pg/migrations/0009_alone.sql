-- The common cases of things done alone, in few plain statements: what arrays cost is worth it for
-- many only. Whatever is not common they leave alone and answer with -1, and the caller uses the
-- general function. The order of locks is the same.

-- A message for an instance that is known, or starts with it.
CREATE FUNCTION duroxide.enqueue_one(p_id text, p_kind smallint, p_payload text, p_now bigint)
RETURNS smallint[]
LANGUAGE plpgsql AS $body$
DECLARE
    v_key bigint;
    v_known boolean;
    v_state smallint;
    v_seq bigint;
BEGIN
    SELECT i.key INTO v_key FROM duroxide.instance i WHERE i.id = p_id COLLATE "C";
    IF v_key IS NULL THEN
        IF p_kind <> 1 THEN
            RETURN ARRAY[-1::smallint];
        END IF;
        INSERT INTO duroxide.instance (id) VALUES (p_id) ON CONFLICT DO NOTHING
        RETURNING key INTO v_key;
        IF v_key IS NULL THEN
            RETURN ARRAY[-1::smallint]; -- Somebody else had the same idea.
        END IF;
        v_seq := nextval('duroxide.positions'::regclass);
        INSERT INTO duroxide.mailbox (instance, state, head) VALUES (v_key, 1, v_seq);
    ELSE
        SELECT m.known, m.state INTO v_known, v_state FROM duroxide.mailbox m
        WHERE m.instance = v_key FOR UPDATE;
        IF v_known IS NOT TRUE THEN
            RETURN ARRAY[-1::smallint];
        END IF;
        v_seq := nextval('duroxide.positions'::regclass);
        IF v_state = 0 THEN
            UPDATE duroxide.mailbox SET state = 1, head = v_seq WHERE instance = v_key;
        END IF;
    END IF;
    INSERT INTO duroxide.message (instance, seq, kind, attempts, since, payload)
    VALUES (v_key, v_seq, p_kind, 0, coalesce(p_now, duroxide.now_ms()), p_payload);
    RETURN ARRAY[0::smallint];
END
$body$;

-- The outcome of an activity without session, for an instance that is known. As ack_work.
CREATE FUNCTION duroxide.ack_one(
    p_id text, p_seq bigint, p_token uuid, p_payload text, p_now bigint)
RETURNS smallint[]
LANGUAGE plpgsql AS $body$
DECLARE
    v_key bigint;
    v_known boolean;
    v_state smallint;
    v_session text;
    v_now bigint;
    v_result smallint;
    v_seq bigint;
BEGIN
    SELECT i.key INTO v_key FROM duroxide.instance i WHERE i.id = p_id COLLATE "C";
    SELECT m.known, m.state INTO v_known, v_state FROM duroxide.mailbox m
    WHERE m.instance = v_key FOR UPDATE;
    IF v_known IS NOT TRUE THEN
        RETURN ARRAY[-1::smallint];
    END IF;
    v_now := coalesce(p_now, duroxide.now_ms());
    DELETE FROM duroxide.work w WHERE w.seq = p_seq AND w.token = p_token AND w.wake_at > v_now
    AND w.session IS NULL;
    IF NOT FOUND THEN
        RETURN ARRAY[-1::smallint];
    END IF;
    v_seq := nextval('duroxide.positions'::regclass);
    INSERT INTO duroxide.message (instance, seq, kind, attempts, since, payload)
    VALUES (v_key, v_seq, 0, 0, v_now, p_payload);
    IF v_state = 0 THEN
        UPDATE duroxide.mailbox SET state = 1, head = v_seq WHERE instance = v_key;
    END IF;
    RETURN ARRAY[0::smallint];
END
$body$;

-- A turn that speaks of its own instance only (`p_id`, null if of none), has no parent, no key-value
-- data, cancels nothing, sends no messages but timers. As commit_turns. An event id that is taken is a
-- violated key: the general function tells which.
CREATE FUNCTION duroxide.commit_one(
    p_id text, p_key bigint, p_token uuid, p_execution bigint,
    p_started bigint, p_outcome bigint, p_status text, p_output text,
    p_name text, p_version text, p_pin text, p_customized boolean, p_custom text,
    e_ids bigint[], e_sources bigint[], e_times bigint[], e_stamps text[], e_bodies text[],
    w_executions bigint[], w_activities bigint[], w_tags text[], w_sessions text[],
    w_payloads text[],
    m_kinds smallint[], m_due bigint[], m_payloads text[], p_now bigint,
    OUT result smallint, OUT taken_event bigint, OUT is_ready boolean)
LANGUAGE plpgsql AS $body$
#variable_conflict use_column
DECLARE
    v_mailbox duroxide.mailbox;
    v_now bigint;
    v_instance duroxide.instance;
    v_pin integer;
    v_head bigint;
BEGIN
    result := -1;
    SELECT * INTO v_mailbox FROM duroxide.mailbox m WHERE m.instance = p_key FOR UPDATE;
    v_now := coalesce(p_now, duroxide.now_ms());
    IF v_mailbox.token IS DISTINCT FROM p_token OR v_mailbox.state <> 2
        OR v_mailbox.wake_at <= v_now OR v_now >= ANY (m_due) THEN
        RETURN;
    END IF;
    IF p_pin IS NOT NULL THEN
        SELECT p.id INTO v_pin FROM duroxide.pin p WHERE p.version = p_pin COLLATE "C";
        IF v_pin IS NULL THEN
            RETURN;
        END IF;
    END IF;
    -- The first turn says who it is; the later ones are of an instance that is known.
    SELECT * INTO v_instance FROM duroxide.instance i WHERE i.key = p_key;
    IF v_instance.id IS DISTINCT FROM coalesce(p_id, v_instance.id)
        OR p_started IS NULL AND v_instance.execution IS DISTINCT FROM p_execution
        OR p_started IS NOT NULL AND p_name IS NULL
        OR v_instance.execution > p_execution OR coalesce(v_instance.name, p_name) IS NULL THEN
        RETURN;
    END IF;
    IF p_status IN ('Completed', 'ContinuedAsNew', 'Failed')
        AND EXISTS (SELECT FROM duroxide.kv_delta d WHERE d.instance = p_key) THEN
        RETURN;
    END IF;
    IF coalesce(p_status, p_pin, p_started::text, p_outcome::text) IS NOT NULL THEN
        IF p_started IS NOT NULL THEN
            INSERT INTO duroxide.execution
                (instance, number, status, pin, started_at, completed_at, started, outcome, output)
            VALUES (p_key, p_execution, coalesce(p_status, 'Running'), coalesce(v_pin, 0), v_now,
                CASE WHEN p_status <> 'Running' THEN v_now END, p_started, p_outcome,
                CASE WHEN p_status IS NOT NULL THEN p_output END);
        ELSE
            UPDATE duroxide.execution e SET
                status = coalesce(p_status, e.status),
                output = CASE WHEN p_status IS NULL THEN e.output ELSE p_output END,
                completed_at = CASE WHEN p_status IS NULL THEN e.completed_at
                    WHEN p_status <> 'Running' THEN v_now END,
                outcome = greatest(p_outcome, e.outcome),
                pin = coalesce(v_pin, e.pin)
            WHERE e.instance = p_key AND e.number = p_execution;
            IF NOT FOUND THEN
                RETURN;
            END IF;
        END IF;
    END IF;
    v_pin := CASE WHEN p_started IS NULL THEN coalesce(v_pin, v_instance.pin)
        ELSE coalesce(v_pin, 0) END;
    UPDATE duroxide.instance i SET
        name = coalesce(p_name, i.name),
        version = coalesce(p_version, i.version),
        execution = p_execution,
        pin = v_pin,
        created_at = coalesce(i.created_at, v_now),
        updated_at = v_now,
        custom_status = CASE WHEN p_customized THEN p_custom ELSE i.custom_status END,
        custom_version = i.custom_version + p_customized::integer
    WHERE i.key = p_key;
    INSERT INTO duroxide.history (instance, execution, event, source, at, stamp, body)
    SELECT p_key, p_execution, e.id, e.source, e.at, e.stamp, e.body
    FROM unnest(e_ids, e_sources, e_times, e_stamps, e_bodies) e(id, source, at, stamp, body);
    IF cardinality(w_payloads) > 0 THEN
        INSERT INTO duroxide.work
            (seq, instance, execution, activity, attempts, tag_key, tag, session, payload)
        SELECT nextval('duroxide.positions'::regclass), p_key, u.execution, u.activity, 0,
            duroxide.tag_key(u.tag), u.tag, u.session, u.payload
        FROM unnest(w_executions, w_activities, w_tags, w_sessions, w_payloads)
            u(execution, activity, tag, session, payload);
    END IF;
    IF cardinality(m_payloads) > 0 THEN
        INSERT INTO duroxide.hidden (visible_at, seq, instance, kind, attempts, payload)
        SELECT u.due, nextval('duroxide.positions'::regclass), p_key, u.kind, 0, u.payload
        FROM unnest(m_kinds, m_due, m_payloads) u(kind, due, payload);
    END IF;
    DELETE FROM duroxide.message q WHERE q.instance = p_key AND q.seq = ANY (v_mailbox.taken);
    v_head := (SELECT q.seq FROM duroxide.message q
        WHERE q.instance = p_key ORDER BY q.seq LIMIT 1);
    UPDATE duroxide.mailbox m SET
        done = m.token, token = NULL, node = NULL, taken = NULL, counted = false,
        wake_at = NULL, known = true, pin = v_pin, head = v_head,
        state = CASE WHEN v_head IS NULL THEN 0 ELSE 1 END
    WHERE m.instance = p_key;
    result := 0;
    is_ready := v_head IS NOT NULL;
END
$body$;

-- Whether a turn was committed with this secret, or an activity is over: for those who asked, got no
-- answer, asked again and were refused.
CREATE FUNCTION duroxide.was_done(p_is_turn boolean, p_place bigint, p_token uuid)
RETURNS boolean
LANGUAGE sql STABLE AS $body$
    SELECT CASE WHEN p_is_turn
        THEN EXISTS (SELECT FROM duroxide.mailbox m
            WHERE m.instance = p_place AND m.done = p_token)
        ELSE NOT EXISTS (SELECT FROM duroxide.work w WHERE w.seq = p_place) END
$body$;
