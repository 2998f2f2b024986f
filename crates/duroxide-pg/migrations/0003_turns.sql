-- Turns: fetched, held, given back.

-- Nodes that lost a lock, with one more, the latest of them at least.
CREATE FUNCTION duroxide.lost_by(p_lost bigint[], p_node bigint) RETURNS bigint[]
LANGUAGE sql IMMUTABLE AS $body$
    SELECT CASE WHEN p_node IS NULL THEN p_lost
        WHEN cardinality(p_lost) >= 32 THEN p_lost[2:] || p_node
        ELSE coalesce(p_lost, '{}') || p_node END
$body$;

-- The same without one.
CREATE FUNCTION duroxide.not_lost_by(p_lost bigint[], p_node bigint) RETURNS bigint[]
LANGUAGE sql IMMUTABLE AS $body$
    SELECT nullif(array_remove(p_lost, p_node), '{}')
$body$;

-- Writes down the attempts of locks that ended without a commit, and whose they were. Those that a
-- commit ends need no counting, which is why it is not done when the lock is taken.
CREATE FUNCTION duroxide.count_attempts(p_keys bigint[]) RETURNS void
LANGUAGE plpgsql AS $body$
BEGIN
    UPDATE duroxide.message q SET attempts = least(q.attempts + 1, 4294967295),
        lost = duroxide.lost_by(q.lost, m.node)
    FROM duroxide.mailbox m
    WHERE m.instance = ANY (p_keys) AND NOT m.counted AND m.token IS NOT NULL
    AND q.instance = m.instance AND q.seq = ANY (m.taken);
    UPDATE duroxide.mailbox SET counted = true
    WHERE instance = ANY (p_keys) AND NOT counted AND token IS NOT NULL;
END
$body$;

-- Puts mailboxes whose locks ended without their holders behind all that are ready (R8.146), in the
-- order in which the locks ended, then in that in which they were.
CREATE FUNCTION duroxide.put_behind(p_keys bigint[]) RETURNS void
LANGUAGE plpgsql AS $body$
BEGIN
    UPDATE duroxide.mailbox m SET behind = o.place
    FROM (
        SELECT s.instance, nextval('duroxide.positions'::regclass) AS place FROM (
            SELECT b.instance FROM duroxide.mailbox b
            WHERE b.instance = ANY (p_keys) AND b.state = 2
            ORDER BY b.wake_at, greatest(b.taken[1], b.behind)) s) o
    WHERE m.instance = o.instance;
END
$body$;

-- Lets time pass: messages become due; locks end, and patience, if `p_ended`. What is due before
-- `p_due_from` is not looked for (see 0011). Mailboxes that somebody is busy with are left for the next
-- look. A step brings about so much at most, and then there is another. The lowest place among the
-- ready of what it made ready: a message keeps the place it got when it was queued.
CREATE FUNCTION duroxide.advance(
    p_now bigint, p_due_from bigint, p_ended boolean, p_retention bigint)
RETURNS bigint
LANGUAGE plpgsql AS $body$
DECLARE
    v_keys bigint[];
    v_found bigint[];
    v_seen bigint[] := '{}';
    v_kinds smallint[];
    v_all bigint[] := '{}';
BEGIN
    IF (SELECT visible_at FROM duroxide.hidden WHERE visible_at >= p_due_from
        ORDER BY visible_at LIMIT 1) <= p_now THEN
        -- Those that somebody has locked are passed over, however many messages of theirs are due.
        FOR v_round IN 1..8 LOOP
            v_found := array(
                SELECT DISTINCT d.instance FROM (
                    SELECT q.instance FROM duroxide.hidden q
                    WHERE q.visible_at >= p_due_from AND q.visible_at <= p_now
                    AND q.instance <> ALL (v_seen)
                    ORDER BY q.visible_at, q.seq LIMIT 1000) d);
            v_keys := array(
                SELECT m.instance FROM duroxide.mailbox m
                WHERE m.instance = ANY (v_found) FOR UPDATE SKIP LOCKED);
            EXIT WHEN cardinality(v_keys) > 0 OR cardinality(v_found) = 0;
            v_seen := v_seen || v_found;
        END LOOP;
        WITH due AS (
            DELETE FROM duroxide.hidden q USING (
                SELECT d.visible_at, d.seq FROM unnest(v_keys) u(key)
                CROSS JOIN LATERAL (
                    SELECT o.visible_at, o.seq FROM duroxide.hidden o
                    WHERE o.instance = u.key AND o.visible_at <= p_now
                    ORDER BY o.visible_at LIMIT 1000) d
                LIMIT 10000) d
            WHERE q.visible_at = d.visible_at AND q.seq = d.seq RETURNING q.*),
        moved AS (
            INSERT INTO duroxide.message (instance, seq, kind, attempts, since, payload, parent)
            SELECT d.instance, d.seq, d.kind, d.attempts, d.visible_at, d.payload, d.parent
            FROM due d
            RETURNING instance, kind)
        SELECT array_agg(m.instance), array_agg(m.kind) INTO v_keys, v_kinds FROM moved m;
        IF cardinality(v_keys) > 0 THEN
            PERFORM duroxide.rouse(v_keys, v_kinds, p_retention);
            v_all := v_keys;
        END IF;
    END IF;
    IF p_ended AND duroxide.first_ended_turn(p_due_from, p_now) IS NOT NULL THEN
        v_keys := array(
            SELECT m.instance FROM duroxide.mailbox m
            WHERE m.wake_at >= p_due_from AND m.wake_at <= p_now
            ORDER BY m.wake_at LIMIT 1000 FOR UPDATE SKIP LOCKED);
        PERFORM duroxide.count_attempts(v_keys);
        PERFORM duroxide.put_behind(v_keys);
        PERFORM duroxide.give_up(v_keys, p_now, p_retention);
        UPDATE duroxide.mailbox m SET state = 0 WHERE m.instance = ANY (v_keys) AND m.state = 6;
        PERFORM duroxide.settle(v_keys, p_retention);
        v_all := v_all || v_keys;
    END IF;
    RETURN (SELECT min(m.head) FROM duroxide.mailbox m WHERE m.instance = ANY (v_all));
END
$body$;

-- Gives up messages for nobody: queue messages at once (R8.28), others that have waited long enough
-- for a start (R8.29). Of each instance the oldest; should there be more, they are due at once.
CREATE FUNCTION duroxide.give_up(p_keys bigint[], p_now bigint, p_retention bigint) RETURNS void
LANGUAGE plpgsql AS $body$
DECLARE
    v_keys bigint[];
    v_seqs bigint[];
    v_reasons text[];
BEGIN
    SELECT array_agg(q.instance ORDER BY q.seq), array_agg(q.seq ORDER BY q.seq),
        array_agg(CASE m.state
            WHEN 4 THEN 'queue message for an instance that does not exist'
            ELSE 'no such instance appeared within ' || p_retention / 1000 || ' s' END
            ORDER BY q.seq)
    INTO v_keys, v_seqs, v_reasons
    FROM duroxide.mailbox m CROSS JOIN LATERAL (
        SELECT o.instance, o.seq, o.kind,
            bool_and(o.since <= p_now - p_retention) OVER (ORDER BY o.seq) AS are_old
        FROM (
            SELECT b.instance, b.seq, b.kind, b.since FROM duroxide.message b
            WHERE b.instance = m.instance ORDER BY b.seq LIMIT 1000) o) q
    WHERE m.instance = ANY (p_keys) AND (m.state = 4 AND q.kind = 2 OR m.state = 3 AND q.are_old);
    IF cardinality(v_keys) > 0 THEN
        PERFORM duroxide.bury(v_keys, v_seqs, v_reasons, p_now);
    END IF;
END
$body$;

-- The first end of a lock on a turn, or of patience, between these times.
CREATE FUNCTION duroxide.first_ended_turn(p_from bigint, p_until bigint) RETURNS bigint
LANGUAGE plpgsql AS $body$
BEGIN
    RETURN (SELECT m.wake_at FROM duroxide.mailbox m
        WHERE m.wake_at >= p_from AND m.wake_at <= p_until ORDER BY m.wake_at LIMIT 1);
END
$body$;

-- When the next message becomes due.
CREATE FUNCTION duroxide.next_message_due(p_from bigint) RETURNS bigint
LANGUAGE plpgsql AS $body$
BEGIN
    RETURN (SELECT q.visible_at FROM duroxide.hidden q
        WHERE q.visible_at >= p_from ORDER BY q.visible_at LIMIT 1);
END
$body$;

-- The messages of a turn: their places, how many bytes they are, whether one was tried before.
CREATE TYPE duroxide.turn_batch AS (seqs bigint[], bytes integer, is_tried boolean);

-- The messages of a turn if not all of them can be (R8.147): the oldest, at least one; and in any case
-- that which begins the next execution, or the start of an instance that is not known. And 0, if some
-- are left.
CREATE FUNCTION duroxide.bounded_batch(p_key bigint) RETURNS duroxide.turn_batch
LANGUAGE plpgsql AS $body$
DECLARE
    v_batch duroxide.turn_batch;
    v_start bigint;
    v_start_bytes integer := 0;
    v_leaves_some boolean;
BEGIN
    SELECT q.seq, octet_length(q.payload) INTO v_start, v_start_bytes FROM duroxide.message q
    WHERE q.instance = p_key AND q.kind = 1 AND starts_with(q.payload, '{"ContinueAsNew"')
    ORDER BY q.seq LIMIT 1;
    IF v_start IS NULL AND NOT (SELECT m.known FROM duroxide.mailbox m WHERE m.instance = p_key) THEN
        SELECT q.seq, octet_length(q.payload) INTO v_start, v_start_bytes FROM duroxide.message q
        WHERE q.instance = p_key AND q.kind = 1 ORDER BY q.seq LIMIT 1;
    END IF;
    SELECT array_agg(o.seq ORDER BY o.seq), sum(o.bytes), bool_or(o.attempts > 0)
    INTO v_batch.seqs, v_batch.bytes, v_batch.is_tried
    FROM (
        SELECT r.seq, r.attempts, octet_length(r.payload) AS bytes,
            row_number() OVER (ORDER BY r.seq) AS n,
            sum(octet_length(r.payload)) OVER (ORDER BY r.seq) AS total
        FROM (
            SELECT q.seq, q.attempts, q.payload FROM duroxide.message q
            WHERE q.instance = p_key ORDER BY q.seq LIMIT duroxide.turn_messages()) r
        WHERE r.seq IS DISTINCT FROM v_start) o
    WHERE o.n = 1 AND v_start IS NULL
    OR o.n <= duroxide.turn_messages() - (v_start IS NOT NULL)::integer
    AND o.total <= duroxide.turn_bytes() - coalesce(v_start_bytes, 0);
    v_leaves_some := (SELECT true FROM duroxide.message q
        WHERE q.instance = p_key AND q.seq > coalesce(v_batch.seqs[cardinality(v_batch.seqs)], 0)
        AND q.seq IS DISTINCT FROM v_start LIMIT 1);
    IF v_start IS NOT NULL THEN
        v_batch.seqs := array(SELECT u.seq FROM unnest(v_batch.seqs || v_start) u(seq) ORDER BY 1);
        v_batch.bytes := coalesce(v_batch.bytes, 0) + v_start_bytes;
        v_batch.is_tried := coalesce(v_batch.is_tried, false) OR (SELECT q.attempts > 0 FROM duroxide.message q
            WHERE q.instance = p_key AND q.seq = v_start);
    END IF;
    IF v_leaves_some THEN
        v_batch.seqs := v_batch.seqs || 0::bigint;
    END IF;
    RETURN v_batch;
END
$body$;

-- Locks up to `p_max` instances with their messages, those with the oldest first (R8.20, R8.21). One
-- whose lock ended without its holder is alone (R8.146), and there is a limit to what all of them hold (R8.147): what
-- is left over of an instance makes its next turn. With one secret for all, which the caller makes up: it can give back what it never heard of.
-- `p_pins` are the pins the caller can replay, of the `p_known_pins` it knows; null is all (R8.90).
-- Each row is a turn. If there is none, one row tells the time, the next thing to happen, and whether
-- there are pins the caller does not know: then it has to ask again. `more`: whether there are more; null
-- if there are only those that somebody else has locked for a moment.
--
-- `p_from` and `p_due_from` are the places and times before which it does not look (see 0011). Locks that
-- have ended are looked for if `p_ended`; when the next one will end is not among the next things to
-- happen: nodes know that of their own, and of all others from the pulse.
CREATE FUNCTION duroxide.fetch_turns(
    p_max integer, p_lock bigint, p_pins integer[], p_known_pins bigint, p_token uuid,
    p_node bigint, p_now bigint, p_retention bigint, p_from bigint, p_due_from bigint,
    p_alone boolean, p_ended boolean)
RETURNS TABLE (
    now_ms bigint, next_due bigint, new_pins boolean, more boolean,
    key bigint, id text, token uuid, name text, version text, execution bigint, start_body text,
    seqs bigint[], payloads text[], attempts bigint, last_event bigint, last_event_at bigint,
    kv_keys text[], kv_values text[], kv_times bigint[])
LANGUAGE plpgsql AS $body$
#variable_conflict use_column
DECLARE
    v_now bigint := coalesce(p_now, duroxide.now_ms());
    v_pins integer[] := p_pins;
    v_from bigint := p_from;
    v_keys bigint[];
    v_found integer;
    v_count bigint;
    v_due bigint;
    v_left boolean;
BEGIN
    IF p_alone THEN
        PERFORM set_config('synchronous_commit', 'off', true); -- As be_brief.
    END IF;
    SELECT (SELECT count(*) FROM duroxide.pin),
        (SELECT visible_at FROM duroxide.hidden WHERE visible_at >= p_due_from
            ORDER BY visible_at LIMIT 1) INTO v_count, v_due;
    IF p_pins IS NULL THEN
        v_pins := array(SELECT p.id FROM duroxide.pin p) || 0;
    -- Pins are never removed: as many as are known are those that are known.
    ELSIF v_count <> p_known_pins THEN
        RETURN QUERY SELECT v_now, v_now, true, false, NULL::bigint, NULL, NULL::uuid, NULL, NULL,
            NULL::bigint, NULL, NULL::bigint[], NULL::text[], NULL::bigint, NULL::bigint,
            NULL::bigint, NULL::text[], NULL::text[], NULL::bigint[];
        RETURN;
    END IF;
    IF p_ended OR v_due <= v_now THEN
        v_from := least(v_from, duroxide.advance(v_now, p_due_from, p_ended, p_retention));
        v_due := duroxide.next_message_due(p_due_from);
        IF p_ended THEN
            -- What is left of those that have ended somebody else has locked for a moment.
            -- The pulse has told of the first one only.
            v_due := least(v_due, duroxide.first_ended_turn(p_due_from, v_now + 2000));
        END IF;
    END IF;
    v_keys := array(
        SELECT c.instance FROM unnest(v_pins) p(pin)
        CROSS JOIN LATERAL (
            SELECT m.instance, m.head FROM duroxide.mailbox m
            WHERE m.pin = p.pin AND m.head >= v_from
            ORDER BY m.head LIMIT p_max FOR UPDATE SKIP LOCKED) c
        ORDER BY c.head LIMIT p_max);
    v_found := cardinality(v_keys);
    IF v_found = 0 THEN
        v_left := EXISTS (SELECT FROM duroxide.mailbox m
            WHERE m.head >= v_from AND m.pin = ANY (v_pins));
        RETURN QUERY SELECT v_now, v_due, false, CASE WHEN NOT v_left THEN false END,
            NULL::bigint, NULL, NULL::uuid, NULL, NULL, NULL::bigint, NULL, NULL::bigint[], NULL::text[],
            NULL::bigint, NULL::bigint, NULL::bigint, NULL::text[], NULL::text[],
            NULL::bigint[];
        RETURN;
    END IF;
    WITH batch AS MATERIALIZED (
        SELECT u.key, u.n, k.behind, CASE
            WHEN q.messages > duroxide.turn_messages() OR q.bytes > duroxide.turn_bytes()
                THEN duroxide.bounded_batch(u.key)
            ELSE (q.seqs, q.bytes, q.is_tried)::duroxide.turn_batch END AS b
        FROM unnest(v_keys) WITH ORDINALITY u(key, n)
        CROSS JOIN LATERAL (
            SELECT m.behind FROM duroxide.mailbox m WHERE m.instance = u.key LIMIT 1) k
        CROSS JOIN LATERAL (
            SELECT array_agg(o.seq ORDER BY o.seq) AS seqs, bool_or(o.attempts > 0) AS is_tried,
                count(*) AS messages, sum(octet_length(o.payload)) AS bytes
            FROM (
                SELECT r.seq, r.attempts, r.payload FROM duroxide.message r
                WHERE r.instance = u.key ORDER BY r.seq
                LIMIT duroxide.turn_messages() + 1) o) q),
    found AS (
        SELECT t.key, t.n, (t.b).seqs,
            bool_or((t.b).is_tried AND t.behind IS NOT NULL) OVER (ORDER BY t.n) AS are_tried,
            sum(CASE WHEN t.n > 1 THEN (t.b).bytes END) OVER (ORDER BY t.n) AS bytes
        FROM batch t),
    taken AS (
        UPDATE duroxide.mailbox m SET state = 2, head = NULL, wake_at = v_now + p_lock,
            token = p_token, node = p_node, counted = false, taken = coalesce(f.seqs, '{}')
        FROM found f WHERE m.instance = f.key
        AND (f.n = 1 OR NOT f.are_tried AND f.bytes <= duroxide.fetch_bytes())
        RETURNING f.key, f.n)
    SELECT array_agg(t.key ORDER BY t.n) INTO v_keys FROM taken t;
    v_left := EXISTS (SELECT FROM duroxide.mailbox m
        WHERE m.head >= v_from AND m.pin = ANY (v_pins));
    RETURN QUERY
        SELECT v_now, v_due, false, CASE WHEN NOT v_left THEN false
            WHEN cardinality(v_keys) < v_found OR v_found = p_max THEN true END,
            i.key, i.id, m.token, i.name, i.version,
            coalesce(i.execution, e.number), h.body, m.taken, q.payloads, q.attempts,
            l.event, l.at, v.keys, v.vals, v.times
        FROM unnest(v_keys) WITH ORDINALITY u(key, n)
        JOIN duroxide.mailbox m ON m.instance = u.key
        JOIN duroxide.instance i ON i.key = m.instance
        -- Without a row that says who it is, the start event does (R8.25).
        LEFT JOIN LATERAL (
            SELECT x.number, x.started FROM duroxide.execution x
            WHERE i.name IS NULL AND x.instance = i.key
            ORDER BY x.number DESC LIMIT 1) e ON e.started IS NOT NULL
        LEFT JOIN LATERAL (
            SELECT o.body FROM duroxide.history o
            WHERE o.instance = i.key AND o.execution = e.number AND o.event = e.started LIMIT 1) h
            ON true
        LEFT JOIN LATERAL (
            SELECT o.event, o.at FROM duroxide.history o
            WHERE o.instance = i.key AND o.execution = coalesce(i.execution, e.number, 1)
            ORDER BY o.event DESC LIMIT 1) l ON true
        CROSS JOIN LATERAL (
            SELECT array_agg(b.payload ORDER BY b.seq) AS payloads,
                max(b.attempts) + 1 AS attempts
            FROM duroxide.message b WHERE b.instance = i.key AND b.seq = ANY (m.taken)) q
        CROSS JOIN LATERAL (
            SELECT array_agg(k.key) AS keys, array_agg(k.value) AS vals,
                array_agg(k.updated_at) AS times
            FROM duroxide.kv k WHERE k.instance = i.key) v
        ORDER BY u.n;
END
$body$;

-- Whether an error may be due to what was read, so that reading something else is worth a try.
CREATE FUNCTION duroxide.is_about_data(p_code text) RETURNS boolean
LANGUAGE sql IMMUTABLE AS $body$
    SELECT left(p_code, 2) NOT IN ('08', '25', '40', '53', '55', '57')
$body$;

-- As fetch_turns, one turn at most, for when that fails: a mailbox that cannot be read is set apart for
-- a minute, and the next one is tried. What does not concern one mailbox fails here, too.
CREATE FUNCTION duroxide.fetch_turns_singly(
    p_max integer, p_lock bigint, p_pins integer[], p_known_pins bigint, p_token uuid,
    p_node bigint, p_now bigint, p_retention bigint, p_from bigint, p_due_from bigint,
    p_alone boolean, p_ended boolean)
RETURNS TABLE (
    now_ms bigint, next_due bigint, new_pins boolean, more boolean,
    key bigint, id text, token uuid, name text, version text, execution bigint, start_body text,
    seqs bigint[], payloads text[], attempts bigint, last_event bigint, last_event_at bigint,
    kv_keys text[], kv_values text[], kv_times bigint[])
LANGUAGE plpgsql AS $body$
#variable_conflict use_column
DECLARE
    v_now bigint := coalesce(p_now, duroxide.now_ms());
    v_pins integer[] := coalesce(p_pins, array(SELECT p.id FROM duroxide.pin p) || 0);
    v_key bigint;
    v_reason text;
BEGIN
    PERFORM duroxide.advance(v_now, p_due_from, p_ended, p_retention);
    FOR v_try IN 1 .. 100 LOOP
        BEGIN
            RETURN QUERY SELECT f.* FROM duroxide.fetch_turns(1, p_lock, p_pins, p_known_pins,
                p_token, p_node, v_now, p_retention, p_from, p_due_from, p_alone, p_ended) f;
            RETURN;
        EXCEPTION WHEN OTHERS THEN
            IF v_try = 100 OR NOT duroxide.is_about_data(SQLSTATE) THEN
                RAISE;
            END IF;
            v_reason := SQLERRM;
        END;
        SELECT c.instance INTO v_key FROM unnest(v_pins) p(pin)
        CROSS JOIN LATERAL (
            SELECT m.instance, m.head FROM duroxide.mailbox m
            WHERE m.pin = p.pin AND m.head >= p_from
            ORDER BY m.head LIMIT 1 FOR UPDATE SKIP LOCKED) c
        ORDER BY c.head LIMIT 1;
        UPDATE duroxide.mailbox m SET state = 5, head = NULL, wake_at = v_now + 60000
        WHERE m.instance = v_key;
        RAISE WARNING 'a turn of % cannot be read, which is tried again in a minute: %',
            (SELECT i.id FROM duroxide.instance i WHERE i.key = v_key), v_reason;
    END LOOP;
END
$body$;

-- Whether a mailbox is locked with this token: 0 it is, 1 it never was or is no longer the latest
-- (R8.40), 2 it was (R8.41).
CREATE FUNCTION duroxide.judge_lock(p_mailbox duroxide.mailbox, p_token uuid, p_now bigint)
RETURNS smallint
LANGUAGE sql IMMUTABLE AS $body$
    SELECT CASE
        WHEN (p_mailbox).token IS DISTINCT FROM p_token THEN 1
        WHEN (p_mailbox).state = 2 AND (p_mailbox).wake_at > p_now THEN 0
        ELSE 2 END::smallint
$body$;

-- Holds locks for longer (R8.68). For each, in their order: 0, or why not.
CREATE FUNCTION duroxide.renew_turns(
    p_keys bigint[], p_tokens uuid[], p_extend bigint[], p_now bigint)
RETURNS smallint[]
LANGUAGE plpgsql AS $body$
DECLARE
    v_now bigint;
    v_results smallint[];
BEGIN
    PERFORM FROM duroxide.mailbox WHERE instance = ANY (p_keys) ORDER BY instance FOR UPDATE;
    v_now := coalesce(p_now, duroxide.now_ms());
    v_results := array(
        SELECT duroxide.judge_lock(m, u.token, v_now)
        FROM unnest(p_keys, p_tokens) WITH ORDINALITY u(key, token, n)
        LEFT JOIN duroxide.mailbox m ON m.instance = u.key ORDER BY u.n);
    UPDATE duroxide.mailbox m SET wake_at = v_now + u.extend
    FROM unnest(p_keys, p_extend, v_results) u(key, extend, result)
    WHERE m.instance = u.key AND u.result = 0;
    RETURN v_results;
END
$body$;

-- Gives a turn back (R8.65 – R8.67): 0, or why not. The token has to be the latest, its time may be
-- up.
CREATE FUNCTION duroxide.abandon_turn(
    p_key bigint, p_token uuid, p_delay bigint, p_uncount boolean, p_now bigint,
    p_retention bigint)
RETURNS smallint
LANGUAGE plpgsql AS $body$
DECLARE
    v_mailbox duroxide.mailbox;
    v_now bigint;
    v_more integer;
    v_waits boolean;
BEGIN
    SELECT * INTO v_mailbox FROM duroxide.mailbox WHERE instance = p_key FOR UPDATE;
    IF v_mailbox.token IS DISTINCT FROM p_token THEN
        RETURN 1;
    END IF;
    v_now := coalesce(p_now, duroxide.now_ms());
    v_more := (CASE WHEN v_mailbox.counted THEN 0 ELSE 1 END)
        - (CASE WHEN p_uncount THEN 1 ELSE 0 END);
    -- What a turn left behind must not overtake it: then all messages stay where they are, and the
    -- mailbox waits (R8.149).
    v_waits := p_delay > 0 AND coalesce(0 = ANY (v_mailbox.taken), false);
    IF p_delay > 0 AND NOT v_waits THEN
        WITH taken AS (
            DELETE FROM duroxide.message q
            WHERE q.instance = p_key AND q.seq = ANY (v_mailbox.taken) RETURNING q.*)
        INSERT INTO duroxide.hidden (visible_at, seq, instance, kind, attempts, payload, parent)
        SELECT v_now + p_delay, t.seq, t.instance, t.kind,
            greatest(least(t.attempts + v_more, 4294967295), 0), t.payload, t.parent
        FROM taken t;
    ELSIF v_more <> 0 THEN
        UPDATE duroxide.message q
        SET attempts = greatest(least(q.attempts + v_more, 4294967295), 0),
            lost = CASE WHEN p_uncount THEN duroxide.not_lost_by(q.lost, v_mailbox.node)
                ELSE q.lost END
        WHERE q.instance = p_key AND q.seq = ANY (v_mailbox.taken);
    END IF;
    UPDATE duroxide.mailbox SET token = NULL, node = NULL, taken = NULL, counted = false,
        state = CASE WHEN v_waits THEN 6 ELSE 0 END, wake_at = v_now + p_delay
    WHERE instance = p_key;
    PERFORM duroxide.settle(ARRAY[p_key], p_retention);
    RETURN 0;
END
$body$;

-- Gives turns back, each as if alone. For each, in their order: 0, or why not.
CREATE FUNCTION duroxide.abandon_turns(
    p_keys bigint[], p_tokens uuid[], p_delays bigint[], p_uncount boolean[], p_now bigint,
    p_retention bigint)
RETURNS smallint[]
LANGUAGE plpgsql AS $body$
BEGIN
    PERFORM FROM duroxide.mailbox WHERE instance = ANY (p_keys) ORDER BY instance FOR UPDATE;
    RETURN array(
        SELECT duroxide.abandon_turn(u.key, u.token, u.delay, u.uncount, p_now, p_retention)
        FROM unnest(p_keys, p_tokens, p_delays, p_uncount) WITH ORDINALITY
            u(key, token, delay, uncount, n) ORDER BY u.n);
END
$body$;

-- Takes messages that cannot be decoded out of a locked turn and gives it back, uncounted (R8.30).
CREATE FUNCTION duroxide.bury_messages(
    p_key bigint, p_token uuid, p_seqs bigint[], p_reasons text[], p_now bigint,
    p_retention bigint)
RETURNS smallint
LANGUAGE plpgsql AS $body$
DECLARE
    v_mailbox duroxide.mailbox;
    v_now bigint;
    v_result smallint;
BEGIN
    SELECT * INTO v_mailbox FROM duroxide.mailbox WHERE instance = p_key FOR UPDATE;
    v_now := coalesce(p_now, duroxide.now_ms());
    v_result := duroxide.judge_lock(v_mailbox, p_token, v_now);
    IF v_result = 0 THEN
        PERFORM duroxide.bury(
            array_fill(p_key, ARRAY[cardinality(p_seqs)]), p_seqs, p_reasons, v_now);
        v_result := duroxide.abandon_turn(p_key, p_token, 0, true, v_now, p_retention);
    END IF;
    RETURN v_result;
END
$body$;
