-- Activities and sessions.

-- Queues activities of any instances, noted if they are new.
CREATE FUNCTION duroxide.enqueue_work(
    p_ids text[], p_executions bigint[], p_activities bigint[], p_tags text[], p_sessions text[],
    p_payloads text[], p_locked boolean)
RETURNS void
LANGUAGE plpgsql AS $body$
BEGIN
    PERFORM duroxide.queue_work(duroxide.opened_mailboxes(p_ids, '{}', p_locked), p_executions,
        p_activities, p_tags, p_sessions, p_payloads);
END
$body$;

-- Whether there is anything of sessions that this owner may have, as far as can be told at once, if there
-- is anything of sessions at all.
CREATE FUNCTION duroxide.owned_work(p_owner text, p_now bigint) RETURNS boolean
LANGUAGE plpgsql STABLE AS $body$
BEGIN
    RETURN coalesce(
        -- In the order of the index that holds no others, so that no other one seems to do.
        (SELECT true FROM duroxide.work w
            WHERE w.wake_at IS NULL AND w.session IS NOT NULL AND NOT w.parked
            ORDER BY w.tag_key, w.position LIMIT 1),
        (SELECT true FROM duroxide.session s
            WHERE s.parked AND s.until > 0 AND s.until <= p_now ORDER BY s.until LIMIT 1),
        (SELECT true FROM duroxide.session s WHERE s.parked AND s.owner = p_owner COLLATE "C"
            AND hashtextextended(s.owner, 0) = hashtextextended(p_owner COLLATE "C", 0)
            ORDER BY hashtextextended(s.owner, 0), hashtextextended(s.id, 0) LIMIT 1), false);
END
$body$;

-- The same, whether or not there are sessions.
--
-- This function and the two that say what is ready are a part of every commit: in this language they
-- become a part of the statement that asks, where a call costs more than all that is looked up. Each index
-- they name is made ready for that, asked or not: hence the functions for what is rare.
CREATE FUNCTION duroxide.session_work(p_owner text, p_now bigint)
RETURNS TABLE (is_there boolean)
LANGUAGE sql STABLE AS $body$
    SELECT p_owner IS NOT NULL
        -- Parked or not.
        AND (SELECT true FROM duroxide.work w
            WHERE w.wake_at IS NULL AND w.session IS NOT NULL
            ORDER BY hashtextextended(w.session, 0), w.position LIMIT 1) IS NOT NULL
        AND duroxide.owned_work(p_owner, p_now)
$body$;

-- The first end of a lock on an activity, or of its delay, between these times.
CREATE FUNCTION duroxide.first_ended_work(p_from bigint, p_until bigint) RETURNS bigint
LANGUAGE plpgsql AS $body$
BEGIN
    RETURN (SELECT w.wake_at FROM duroxide.work w
        WHERE w.wake_at >= p_from AND w.wake_at <= p_until ORDER BY w.wake_at LIMIT 1);
END
$body$;

-- The oldest activities without session that can be fetched, locked against other fetches: a batch
-- that ends before one that comes alone (R8.146), or is this one, and where it gets too large (R8.147).
-- before: nothing of sessions behind this place is for the same batch; room: bytes left in it. Rows with
-- one tag are ordered by it as well, so that no other index seems to do. Nothing before `p_from` is looked
-- for (see 0011).
CREATE FUNCTION duroxide.choose_work(
    p_max integer, p_any boolean, p_untagged boolean, p_tags text[], p_from bigint,
    OUT seqs bigint[], OUT places bigint[], OUT before bigint, OUT room bigint, OUT is_cut boolean)
LANGUAGE plpgsql AS $body$
DECLARE
    v_are_alone boolean[];
    v_bytes integer[];
    v_total bigint;
    v_taken integer;
BEGIN
    IF p_any THEN
        SELECT array_agg(c.seq), array_agg(c.position), array_agg(c.is_alone), array_agg(c.bytes),
            sum(c.bytes)
        INTO seqs, places, v_are_alone, v_bytes, v_total
        FROM (
            SELECT c.* FROM (
                SELECT w.seq, w.position, w.attempts > 0 AND w.position <> w.seq AS is_alone,
                    octet_length(w.payload) AS bytes
                FROM duroxide.work w
                WHERE w.wake_at IS NULL AND w.session IS NULL AND w.tag_key = 0
                AND w.position >= p_from
                ORDER BY w.tag_key, w.position LIMIT p_max FOR UPDATE SKIP LOCKED) c
            UNION ALL
            SELECT c.* FROM (
                SELECT w.seq, w.position, w.attempts > 0 AND w.position <> w.seq,
                    octet_length(w.payload)
                FROM duroxide.work w
                WHERE w.wake_at IS NULL AND w.session IS NULL AND w.tag_key <> 0
                AND w.position >= p_from
                ORDER BY w.position LIMIT p_max FOR UPDATE SKIP LOCKED) c
            ORDER BY position LIMIT p_max) c;
    ELSE
        SELECT array_agg(c.seq), array_agg(c.position), array_agg(c.is_alone), array_agg(c.bytes),
            sum(c.bytes)
        INTO seqs, places, v_are_alone, v_bytes, v_total
        FROM (
            SELECT c.* FROM (
                SELECT NULL::text AS tag WHERE p_untagged UNION ALL SELECT unnest(p_tags)) t
            CROSS JOIN LATERAL (
                SELECT w.seq, w.position, w.attempts > 0 AND w.position <> w.seq AS is_alone,
                    octet_length(w.payload) AS bytes
                FROM duroxide.work w
                WHERE w.wake_at IS NULL AND w.session IS NULL
                AND w.tag_key = duroxide.tag_key(t.tag)
                AND w.tag IS NOT DISTINCT FROM t.tag COLLATE "C"
                AND w.position >= p_from
                ORDER BY w.tag_key, w.position LIMIT p_max FOR UPDATE SKIP LOCKED) c
            ORDER BY c.position LIMIT p_max) c;
    END IF;
    seqs := coalesce(seqs, '{}');
    before := places[p_max];
    room := duroxide.fetch_bytes();
    IF true = ANY (v_are_alone) OR v_total - v_bytes[1] > room THEN
        FOR v_place IN 1 .. cardinality(seqs) LOOP
            IF v_are_alone[v_place] OR v_place > 1 AND v_bytes[v_place] > room THEN
                before := places[v_place];
                v_taken := greatest(v_place - 1, 1);
                EXIT;
            END IF;
            room := room - CASE WHEN v_place > 1 THEN v_bytes[v_place] ELSE 0 END;
        END LOOP;
    ELSE
        room := room - coalesce(v_total - v_bytes[1], 0);
    END IF;
    is_cut := coalesce(v_taken < cardinality(seqs), false);
    IF is_cut THEN
        seqs := seqs[: v_taken];
        places := places[: v_taken];
    END IF;
END
$body$;

-- Activities of sessions wait in one queue, whoever may have them: most sessions are free, or their
-- owner looks as often as anybody else. But one owner may be slow and its session long, and then its
-- activities would be in the way of everybody. Those that a fetch has met in numbers, and that are
-- somebody else's, are parked: they leave the queue, and their session says so. Its owner looks there,
-- too; when its lease ends they go back. Both are done under the lock of the session's row, which is
-- taken in a statement before.

-- Parks those of these activities that are still somebody else's; how many.
CREATE FUNCTION duroxide.park(p_seqs bigint[], p_owner text, p_now bigint) RETURNS bigint
LANGUAGE plpgsql AS $body$
DECLARE
    v_ids text[];
    v_parked bigint;
BEGIN
    v_ids := array(
        SELECT s.id FROM (
            SELECT DISTINCT w.session FROM duroxide.work w WHERE w.seq = ANY (p_seqs)) w
        JOIN duroxide.session s ON s.id = w.session FOR UPDATE OF s SKIP LOCKED);
    UPDATE duroxide.session s SET parked = true FROM unnest(v_ids) u(id)
    WHERE s.id = u.id COLLATE "C" AND NOT s.parked;
    UPDATE duroxide.work w SET parked = true WHERE w.seq IN (
        SELECT o.seq FROM duroxide.work o JOIN duroxide.session s ON s.id = o.session
        WHERE o.seq = ANY (p_seqs) AND o.session = ANY (v_ids) AND o.wake_at IS NULL
        AND s.owner <> p_owner COLLATE "C" AND s.until > p_now FOR UPDATE OF o SKIP LOCKED);
    GET DIAGNOSTICS v_parked = ROW_COUNT;
    RETURN v_parked;
END
$body$;

-- Puts activities of sessions that are free again back into the queue, some at a time.
CREATE FUNCTION duroxide.unpark(p_now bigint) RETURNS void
LANGUAGE plpgsql AS $body$
DECLARE
    v_ids text[];
BEGIN
    v_ids := array(
        SELECT s.id FROM duroxide.session s
        WHERE s.parked AND s.until > 0 AND s.until <= p_now
        ORDER BY s.until LIMIT 100 FOR UPDATE SKIP LOCKED);
    UPDATE duroxide.work w SET parked = false WHERE w.seq IN (
        SELECT o.seq FROM unnest(v_ids) u(id) CROSS JOIN LATERAL (
            SELECT r.seq FROM duroxide.work r
            WHERE r.parked AND r.session = u.id COLLATE "C"
            AND hashtextextended(r.session, 0) = hashtextextended(u.id COLLATE "C", 0)
            ORDER BY hashtextextended(r.session, 0), r.position
            LIMIT 1000 FOR UPDATE SKIP LOCKED) o
        LIMIT 1000);
    PERFORM duroxide.note_unparked(v_ids);
END
$body$;

-- Notes that nothing of these sessions, whose rows are locked, is parked any more, if it is so.
CREATE FUNCTION duroxide.note_unparked(p_ids text[]) RETURNS void
LANGUAGE plpgsql AS $body$
BEGIN
    UPDATE duroxide.session s SET parked = false FROM unnest(p_ids) u(id)
    WHERE s.id = u.id COLLATE "C" AND NOT EXISTS (
        SELECT FROM duroxide.work w WHERE w.parked AND w.session = s.id
        AND hashtextextended(w.session, 0) = hashtextextended(s.id, 0));
END
$body$;

-- The first activities in the queue of sessions, up to `p_limit` with each tag, and whose they are.
CREATE FUNCTION duroxide.near_session_work(
    p_any boolean, p_untagged boolean, p_tags text[], p_before bigint, p_room bigint,
    p_owner text, p_now bigint, p_limit integer)
RETURNS TABLE (seq bigint, session text, place bigint, is_alone boolean, is_foreign boolean)
LANGUAGE plpgsql AS $body$
#variable_conflict use_column
BEGIN
    RETURN QUERY
        WITH RECURSIVE tag(key) AS (
            (SELECT w.tag_key FROM duroxide.work w
                WHERE p_any AND w.wake_at IS NULL AND w.session IS NOT NULL AND NOT w.parked
                ORDER BY w.tag_key, w.position LIMIT 1)
            UNION ALL
            SELECT (SELECT w.tag_key FROM duroxide.work w
                WHERE w.wake_at IS NULL AND w.session IS NOT NULL AND NOT w.parked
                AND w.tag_key > tag.key ORDER BY w.tag_key, w.position LIMIT 1)
            FROM tag WHERE tag.key IS NOT NULL),
        asked(key, tag) AS (
            SELECT t.key, NULL FROM tag t WHERE t.key IS NOT NULL
            UNION ALL SELECT 0, NULL WHERE NOT p_any AND p_untagged
            UNION ALL SELECT duroxide.tag_key(u.tag), u.tag FROM unnest(p_tags) u(tag)
                WHERE NOT p_any)
        SELECT w.seq, w.session, w.position, w.is_alone,
            coalesce(s.owner <> p_owner COLLATE "C" AND s.until > p_now, false)
        FROM asked a CROSS JOIN LATERAL (
            SELECT o.seq, o.session, o.position,
                o.attempts > 0 AND o.position <> o.seq OR octet_length(o.payload) > p_room
                    AS is_alone
            FROM duroxide.work o
            WHERE o.wake_at IS NULL AND o.session IS NOT NULL AND NOT o.parked
            AND o.tag_key = a.key AND (p_any OR o.tag IS NOT DISTINCT FROM a.tag COLLATE "C")
            AND (p_before IS NULL OR o.position < p_before)
            ORDER BY o.tag_key, o.position LIMIT p_limit) w
        LEFT JOIN duroxide.session s ON s.id = w.session;
END
$body$;

-- Which session to try next: that of the oldest activity that is free or belongs to this owner (R8.81),
-- and not of those that were seen. What is asked about it is as for choose_session_work. is_unfinished:
-- so much is in the way that there may be others behind it; another fetch gets further.
CREATE FUNCTION duroxide.next_session(
    p_any boolean, p_untagged boolean, p_tags text[], p_before bigint, p_room bigint,
    p_owner text, p_now bigint, p_seen text[],
    OUT session text, OUT place bigint, OUT is_alone boolean, OUT is_unfinished boolean)
LANGUAGE plpgsql AS $body$
#variable_conflict use_column
DECLARE
    v_limit integer := 4;
    v_near record;
    v_parked record;
BEGIN
    is_unfinished := true;
    -- What is met in numbers is parked, some at a time.
    FOR v_round IN 1 .. 10 LOOP
        SELECT array_agg(n.session ORDER BY n.place) FILTER (WHERE n.is_mine) AS sessions,
            array_agg(n.place ORDER BY n.place) FILTER (WHERE n.is_mine) AS places,
            array_agg(n.is_alone ORDER BY n.place) FILTER (WHERE n.is_mine) AS are_alone,
            array_agg(n.seq) FILTER (WHERE n.is_foreign) AS foreign_seqs, count(*) AS found
        INTO v_near
        FROM (
            SELECT o.*, NOT o.is_foreign AND o.session <> ALL (p_seen) AS is_mine
            FROM duroxide.near_session_work(p_any, p_untagged, p_tags, p_before, p_room, p_owner,
                p_now, v_limit) o) n;
        is_unfinished := v_near.places IS NULL AND v_near.found >= v_limit;
        EXIT WHEN NOT is_unfinished;
        IF v_limit < 100 THEN
            v_limit := 100;
        ELSE
            EXIT WHEN v_near.foreign_seqs IS NULL
                OR duroxide.park(v_near.foreign_seqs, p_owner, p_now) = 0;
        END IF;
    END LOOP;
    SELECT s.id AS session, w.position AS place, w.is_alone INTO v_parked
    FROM (
        SELECT o.id, o.until FROM duroxide.session o
        WHERE o.parked AND o.owner = p_owner COLLATE "C"
        AND hashtextextended(o.owner, 0) = hashtextextended(p_owner COLLATE "C", 0)
        ORDER BY hashtextextended(o.owner, 0), hashtextextended(o.id, 0)) s
    CROSS JOIN LATERAL (
        SELECT o.position,
            o.attempts > 0 AND o.position <> o.seq OR octet_length(o.payload) > p_room AS is_alone
        FROM duroxide.work o
        WHERE o.wake_at IS NULL AND o.session = s.id
        AND hashtextextended(o.session, 0) = hashtextextended(s.id, 0)
        AND (p_any OR o.tag IS NULL AND p_untagged OR o.tag = ANY (p_tags))
        AND (p_before IS NULL OR o.position < p_before)
        ORDER BY hashtextextended(o.session, 0), o.position LIMIT 1) w
    WHERE s.until > p_now AND s.id <> ALL (p_seen)
    ORDER BY w.position LIMIT 1;
    IF coalesce(v_near.places[1] < v_parked.place, v_parked.place IS NULL) THEN
        session := v_near.sessions[1];
        place := v_near.places[1];
        is_alone := v_near.are_alone[1];
    ELSE
        session := v_parked.session;
        place := v_parked.place;
        is_alone := v_parked.is_alone;
    END IF;
END
$body$;

-- The oldest activity of a session that is free or belongs to this owner (R8.81), locked against
-- other fetches; before the place `p_before` if that is given. One that has to be alone because a lock
-- on it ended without its holder (R8.146), or that is larger than `p_room` (R8.147), is only found, not taken, unless it is
-- before `p_first`. If taken, its session is the owner's afterwards (R8.82). The session comes first: who
-- locked an activity before it could make another one, who gets the session, begin with a younger
-- activity.
CREATE FUNCTION duroxide.choose_session_work(
    p_any boolean, p_untagged boolean, p_tags text[], p_first bigint, p_before bigint,
    p_room bigint, p_owner text, p_until bigint, p_node bigint, p_now bigint,
    OUT seq bigint, OUT place bigint, OUT is_alone boolean, OUT is_unfinished boolean)
LANGUAGE plpgsql AS $body$
#variable_conflict use_column
DECLARE
    v_session text;
    v_seen text[] := '{}';
    v_is_skipped boolean := false;
BEGIN
    IF (SELECT s.until FROM duroxide.session s
        WHERE s.parked AND s.until > 0 ORDER BY s.until LIMIT 1) <= p_now THEN
        PERFORM duroxide.unpark(p_now);
    END IF;
    LOOP
        SELECT n.session, n.place, n.is_alone, n.is_unfinished
        INTO v_session, place, is_alone, is_unfinished
        FROM duroxide.next_session(p_any, p_untagged, p_tags, p_before, p_room, p_owner, p_now,
            v_seen) n;
        EXIT WHEN v_session IS NULL OR is_alone AND p_first < place;
        v_seen := v_seen || v_session;
        INSERT INTO duroxide.session (id, owner, until, last_activity)
        SELECT v_session, p_owner, 0, 0
        WHERE NOT EXISTS (SELECT FROM duroxide.session s WHERE s.id = v_session COLLATE "C")
        ON CONFLICT DO NOTHING;
        UPDATE duroxide.session s
        SET owner = p_owner, until = p_until, last_activity = p_now, node = p_node
        WHERE s.id = (
            SELECT o.id FROM duroxide.session o WHERE o.id = v_session COLLATE "C"
            AND (o.owner = p_owner COLLATE "C" OR o.until <= p_now) FOR UPDATE SKIP LOCKED);
        IF NOT FOUND THEN -- Somebody was faster with this session, or has it locked for a moment.
            v_is_skipped := true;
            CONTINUE;
        END IF;
        SELECT w.seq, w.position,
            w.attempts > 0 AND w.position <> w.seq OR octet_length(w.payload) > p_room
        INTO seq, place, is_alone FROM duroxide.work w
        WHERE w.wake_at IS NULL AND w.session = v_session COLLATE "C"
        AND hashtextextended(w.session, 0) = hashtextextended(v_session COLLATE "C", 0)
        AND (p_any OR w.tag IS NULL AND p_untagged OR w.tag = ANY (p_tags))
        AND (p_before IS NULL OR w.position < p_before)
        ORDER BY hashtextextended(w.session, 0), w.position LIMIT 1 FOR UPDATE SKIP LOCKED;
        EXIT WHEN FOUND;
    END LOOP;
    is_unfinished := is_unfinished OR v_is_skipped;
END
$body$;

-- Whether there are activities with a tag, any or one of these, but no session, that can be fetched; those
-- before `p_from` do not count.
CREATE FUNCTION duroxide.tagged_work(p_any boolean, p_tags text[], p_from bigint) RETURNS boolean
LANGUAGE plpgsql STABLE AS $body$
BEGIN
    IF p_any THEN
        RETURN (SELECT true FROM duroxide.work w
            WHERE w.wake_at IS NULL AND w.session IS NULL AND w.tag_key <> 0
            AND w.position >= p_from ORDER BY w.position LIMIT 1) IS NOT NULL;
    END IF;
    RETURN EXISTS (SELECT FROM duroxide.work w
        WHERE w.wake_at IS NULL AND w.session IS NULL AND w.tag_key = ANY (
            array(SELECT duroxide.tag_key(u.tag) FROM unnest(p_tags) u(tag)))
        AND w.position >= p_from);
END
$body$;

-- Whether there are activities without session that can be fetched by whoever takes these tags; such as
-- somebody else has locked for a moment count, those before `p_from` do not.
CREATE FUNCTION duroxide.ready_work(
    p_any boolean, p_untagged boolean, p_tags text[], p_from bigint)
RETURNS TABLE (is_there boolean)
LANGUAGE sql STABLE AS $body$
    SELECT p_untagged AND EXISTS (SELECT FROM duroxide.work w
            WHERE w.wake_at IS NULL AND w.session IS NULL AND w.tag_key = 0
            AND w.position >= p_from)
        OR (p_any OR cardinality(p_tags) > 0) AND duroxide.tagged_work(p_any, p_tags, p_from)
$body$;

-- Whether there is an activity, or may be one, that has to be handed out before a new one without tag
-- and session to somebody who takes such.
CREATE FUNCTION duroxide.next_work(
    p_any boolean, p_tags text[], p_owner text, p_now bigint, p_from bigint)
RETURNS TABLE (is_there boolean)
LANGUAGE sql STABLE AS $body$
    SELECT r.is_there OR s.is_there
    FROM duroxide.ready_work(p_any, true, p_tags, p_from) r,
        duroxide.session_work(p_owner, p_now) s
$body$;

-- Locks up to `p_max` activities that these tags and sessions admit, the oldest first (R8.72). Each
-- row is one. If there is none, one row tells the time. The secret, `more` and `p_from` are as for turns;
-- locks that have ended since `p_ended_from` are looked for, unless that is null. The next thing to happen
-- is only told if it is to happen now, and somebody else has it locked for a moment. Without an owner there are no activities of sessions (R8.80); with one there is one at most, the
-- last (R8.139). One whose lock ended without its holder is alone (R8.146), and there is a limit to what all of them
-- hold (R8.147).
CREATE FUNCTION duroxide.fetch_work(
    p_max integer, p_lock bigint, p_any boolean, p_untagged boolean, p_tags text[],
    p_owner text, p_lease bigint, p_token uuid, p_node bigint, p_now bigint, p_from bigint,
    p_alone boolean, p_ended_from bigint)
RETURNS TABLE (
    now_ms bigint, next_due bigint, more boolean, seq bigint, token uuid, attempts bigint, payload text)
LANGUAGE plpgsql AS $body$
#variable_conflict use_column
DECLARE
    v_now bigint := coalesce(p_now, duroxide.now_ms());
    v_from bigint := p_from;
    v_seqs bigint[];
    v_chosen record;
    v_bound record;
    v_is_cut boolean;
    v_is_unfinished boolean := false;
    v_has_sessions boolean;
    v_due bigint;
    v_left boolean;
    v_more boolean;
BEGIN
    IF p_alone THEN
        PERFORM set_config('synchronous_commit', 'off', true); -- As be_brief.
    END IF;
    IF p_ended_from IS NOT NULL
        AND duroxide.first_ended_work(p_ended_from, v_now) IS NOT NULL THEN
        v_seqs := array(
            SELECT w.seq FROM duroxide.work w
            WHERE w.wake_at >= p_ended_from AND w.wake_at <= v_now
            ORDER BY w.wake_at LIMIT 1000 FOR UPDATE SKIP LOCKED);
        -- What was locked, and not given back, goes behind all others (R8.146).
        WITH ended AS (
            UPDATE duroxide.work w SET wake_at = NULL, lost = duroxide.lost_by(w.lost, w.node),
                position = coalesce(o.place, w.position)
            FROM (
                SELECT s.seq, CASE WHEN s.token IS NOT NULL
                    THEN nextval('duroxide.positions'::regclass) END AS place
                FROM (
                    SELECT e.seq, e.token FROM duroxide.work e WHERE e.seq = ANY (v_seqs)
                    ORDER BY e.wake_at, e.position) s) o
            WHERE w.seq = o.seq RETURNING w.position)
        SELECT least(v_from, min(e.position)) INTO v_from FROM ended e;
        -- The pulse has told of the first one only.
        v_due := duroxide.first_ended_work(p_ended_from, v_now + 2000);
    END IF;
    SELECT s.is_there INTO v_has_sessions FROM duroxide.session_work(p_owner, v_now) s;
    v_chosen := duroxide.choose_work(p_max, p_any, p_untagged, p_tags, v_from);
    v_seqs := v_chosen.seqs;
    v_is_cut := v_chosen.is_cut;
    IF v_has_sessions THEN
        v_bound := duroxide.choose_session_work(p_any, p_untagged, p_tags, v_chosen.places[1],
            v_chosen.before, v_chosen.room, p_owner, v_now + p_lease, p_node, v_now);
        v_is_unfinished := v_bound.is_unfinished;
        IF v_bound.place IS NOT NULL THEN
            v_is_cut := true;
            v_seqs := array(
                SELECT u.seq FROM unnest(v_chosen.seqs, v_chosen.places) WITH ORDINALITY
                    u(seq, place, n)
                WHERE u.place < v_bound.place ORDER BY u.n);
            IF NOT (v_bound.is_alone AND cardinality(v_seqs) > 0) THEN
                v_seqs := v_seqs || v_bound.seq;
            END IF;
        END IF;
    END IF;
    IF cardinality(v_seqs) = 0 THEN
        IF v_is_unfinished THEN
            v_due := v_now;
        END IF;
        SELECT r.is_there INTO v_left FROM duroxide.ready_work(p_any, p_untagged, p_tags, v_from) r;
        RETURN QUERY SELECT v_now, v_due, CASE WHEN NOT v_left THEN false END, NULL::bigint,
            NULL::uuid, NULL::bigint, NULL;
        RETURN;
    END IF;
    UPDATE duroxide.work w SET token = p_token, wake_at = v_now + p_lock, node = p_node,
        attempts = least(w.attempts + 1, 4294967295), parked = false
    WHERE w.seq = ANY (v_seqs);
    SELECT r.is_there INTO v_left FROM duroxide.ready_work(p_any, p_untagged, p_tags, v_from) r;
    v_more := CASE WHEN NOT v_left THEN false
        WHEN v_is_cut OR cardinality(v_seqs) = p_max THEN true END;
    IF v_has_sessions AND v_more IS NOT TRUE THEN
        -- Of sessions one is claimed at a time: behind it there may be more for the same owner.
        SELECT s.is_there OR v_more INTO v_more FROM duroxide.session_work(p_owner, v_now) s;
    END IF;
    RETURN QUERY
        SELECT v_now, v_due, v_more, w.seq, w.token, w.attempts, w.payload
        FROM duroxide.work w WHERE w.seq = ANY (v_seqs) ORDER BY w.position;
END
$body$;

-- As fetch_work, one activity at most, for when that fails: one that cannot be read is set apart for a
-- minute, and the next one is tried. Those of sessions come after the others, so that it is known which
-- one it was.
CREATE FUNCTION duroxide.fetch_work_singly(
    p_max integer, p_lock bigint, p_any boolean, p_untagged boolean, p_tags text[],
    p_owner text, p_lease bigint, p_token uuid, p_node bigint, p_now bigint, p_from bigint,
    p_alone boolean, p_ended_from bigint)
RETURNS TABLE (
    now_ms bigint, next_due bigint, more boolean, seq bigint, token uuid, attempts bigint, payload text)
LANGUAGE plpgsql AS $body$
#variable_conflict use_column
DECLARE
    v_now bigint := coalesce(p_now, duroxide.now_ms());
    v_owner text;
    v_rows record;
    v_seq bigint;
    v_reason text;
BEGIN
    FOR v_try IN 1 .. 100 LOOP
        BEGIN
            SELECT f.* INTO v_rows FROM duroxide.fetch_work(1, p_lock, p_any, p_untagged, p_tags,
                v_owner, p_lease, p_token, p_node, v_now, p_from, p_alone, p_ended_from) f;
            IF v_rows.seq IS NOT NULL OR v_owner IS NOT DISTINCT FROM p_owner THEN
                RETURN QUERY SELECT v_rows.now_ms, v_rows.next_due, true, v_rows.seq, v_rows.token,
                    v_rows.attempts, v_rows.payload;
                RETURN;
            END IF;
            v_owner := p_owner;
            CONTINUE;
        EXCEPTION WHEN OTHERS THEN
            IF v_try = 100 OR NOT duroxide.is_about_data(SQLSTATE) THEN
                RAISE;
            END IF;
            v_reason := SQLERRM;
        END;
        SELECT c.seqs[1] INTO v_seq FROM duroxide.choose_work(1, p_any, p_untagged, p_tags, p_from) c;
        IF v_seq IS NULL AND v_owner IS NOT NULL THEN
            SELECT c.seq INTO v_seq FROM duroxide.choose_session_work(p_any, p_untagged, p_tags,
                NULL, NULL, duroxide.fetch_bytes(), p_owner, v_now + p_lease, p_node, v_now) c;
        END IF;
        UPDATE duroxide.work w SET wake_at = v_now + 60000, token = NULL, node = NULL,
            parked = false
        WHERE w.seq = v_seq;
        RAISE WARNING 'activity % cannot be read, which is tried again in a minute: %', v_seq, v_reason;
    END LOOP;
END
$body$;

-- Whether an activity is locked with this token: as judge_lock.
CREATE FUNCTION duroxide.judge_work(p_work duroxide.work, p_token uuid, p_now bigint)
RETURNS smallint
LANGUAGE sql IMMUTABLE AS $body$
    SELECT CASE
        WHEN (p_work).token IS DISTINCT FROM p_token THEN 1
        WHEN (p_work).wake_at > p_now THEN 0
        ELSE 2 END::smallint
$body$;

-- Notes that sessions were used, if their leases hold (R8.85).
CREATE FUNCTION duroxide.touch_sessions(p_ids text[], p_now bigint) RETURNS void
LANGUAGE plpgsql AS $body$
BEGIN
    PERFORM FROM duroxide.session s JOIN unnest(p_ids) u(id) ON s.id = u.id COLLATE "C"
    ORDER BY s.id FOR UPDATE OF s;
    UPDATE duroxide.session s SET last_activity = p_now
    FROM unnest(p_ids) u(id) WHERE s.id = u.id COLLATE "C" AND s.until > p_now;
END
$body$;

-- Removes locked activities and queues their outcomes (R8.74). Those without outcome have null for
-- the place of the instance in `p_ids`. For each, in their order: 0, or why not.
CREATE FUNCTION duroxide.ack_work(
    p_ids text[], p_seqs bigint[], p_tokens uuid[], p_targets integer[], p_payloads text[],
    p_now bigint, p_retention bigint, p_locked boolean)
RETURNS smallint[]
LANGUAGE plpgsql AS $body$
DECLARE
    v_now bigint;
    v_keys bigint[] := duroxide.opened_mailboxes(p_ids, '{}', p_locked);
    v_results smallint[];
    v_sessions text[];
BEGIN
    IF NOT p_locked THEN
        PERFORM FROM duroxide.work w WHERE w.seq = ANY (p_seqs) ORDER BY w.seq FOR UPDATE;
    END IF;
    v_now := coalesce(p_now, duroxide.now_ms());
    v_results := array(
        SELECT duroxide.judge_work(w, u.token, v_now)
        FROM unnest(p_seqs, p_tokens) WITH ORDINALITY u(seq, token, n)
        LEFT JOIN duroxide.work w ON w.seq = u.seq ORDER BY u.n);
    WITH gone AS (
        DELETE FROM duroxide.work w USING unnest(p_seqs, v_results) u(seq, result)
        WHERE w.seq = u.seq AND u.result = 0 RETURNING w.session)
    SELECT array_agg(DISTINCT g.session) INTO v_sessions FROM gone g WHERE g.session IS NOT NULL;
    PERFORM duroxide.post(
        array_agg(v_keys[u.target] ORDER BY u.n), array_agg(0::smallint), NULL,
        array_agg(u.payload ORDER BY u.n), NULL, v_now, p_retention)
    FROM unnest(p_targets, p_payloads, v_results) WITH ORDINALITY u(target, payload, result, n)
    WHERE u.result = 0 AND u.target IS NOT NULL HAVING count(*) > 0;
    IF 0 <> ANY (v_results) THEN
        -- Names noted for outcomes that were refused.
        PERFORM duroxide.settle(array(SELECT m.instance FROM duroxide.mailbox m
            WHERE m.instance = ANY (v_keys) AND NOT m.known AND m.state = 0), p_retention);
    END IF;
    IF v_sessions IS NOT NULL THEN
        PERFORM duroxide.touch_sessions(v_sessions, v_now);
    END IF;
    RETURN v_results;
END
$body$;

-- Holds locks for longer (R8.75). For each, in their order: 0, or why not.
CREATE FUNCTION duroxide.renew_work(
    p_seqs bigint[], p_tokens uuid[], p_extend bigint[], p_now bigint)
RETURNS smallint[]
LANGUAGE plpgsql AS $body$
DECLARE
    v_now bigint;
    v_results smallint[];
    v_sessions text[];
BEGIN
    PERFORM FROM duroxide.work w WHERE w.seq = ANY (p_seqs) ORDER BY w.seq FOR UPDATE;
    v_now := coalesce(p_now, duroxide.now_ms());
    v_results := array(
        SELECT duroxide.judge_work(w, u.token, v_now)
        FROM unnest(p_seqs, p_tokens) WITH ORDINALITY u(seq, token, n)
        LEFT JOIN duroxide.work w ON w.seq = u.seq ORDER BY u.n);
    WITH renewed AS (
        UPDATE duroxide.work w SET wake_at = v_now + u.extend
        FROM unnest(p_seqs, p_extend, v_results) u(seq, extend, result)
        WHERE w.seq = u.seq AND u.result = 0 RETURNING w.session)
    SELECT array_agg(DISTINCT r.session) INTO v_sessions
    FROM renewed r WHERE r.session IS NOT NULL;
    IF v_sessions IS NOT NULL THEN
        PERFORM duroxide.touch_sessions(v_sessions, v_now);
    END IF;
    RETURN v_results;
END
$body$;

-- Gives activities back (R8.76); they stay bound to their sessions (R8.88). For each, in their order:
-- 0, or why not.
CREATE FUNCTION duroxide.abandon_work(
    p_seqs bigint[], p_tokens uuid[], p_delays bigint[], p_uncount boolean[], p_now bigint)
RETURNS smallint[]
LANGUAGE plpgsql AS $body$
DECLARE
    v_now bigint;
    v_given bigint[];
BEGIN
    PERFORM FROM duroxide.work w WHERE w.seq = ANY (p_seqs) ORDER BY w.seq FOR UPDATE;
    v_now := coalesce(p_now, duroxide.now_ms());
    WITH given AS (
        UPDATE duroxide.work w SET token = NULL, node = NULL,
            wake_at = CASE WHEN u.delay > 0 THEN v_now + u.delay END,
            attempts = greatest(w.attempts - u.uncount::integer, 0),
            lost = CASE WHEN u.uncount THEN duroxide.not_lost_by(w.lost, w.node) ELSE w.lost END
        FROM unnest(p_seqs, p_tokens, p_delays, p_uncount) u(seq, token, delay, uncount)
        WHERE w.seq = u.seq AND w.token = u.token RETURNING w.seq)
    SELECT array_agg(g.seq) INTO v_given FROM given g;
    RETURN array(
        SELECT CASE WHEN u.seq = ANY (v_given) THEN 0 ELSE 1 END::smallint
        FROM unnest(p_seqs) WITH ORDINALITY u(seq, n) ORDER BY u.n);
END
$body$;

-- Makes a locked activity that cannot be decoded a dead letter (R8.78). 0, or why not.
CREATE FUNCTION duroxide.bury_work(p_seq bigint, p_token uuid, p_reason text, p_now bigint)
RETURNS smallint
LANGUAGE plpgsql AS $body$
DECLARE
    v_work duroxide.work;
    v_now bigint;
    v_result smallint;
    v_id text;
    v_newest bigint;
BEGIN
    SELECT * INTO v_work FROM duroxide.work WHERE seq = p_seq FOR UPDATE;
    v_now := coalesce(p_now, duroxide.now_ms());
    v_result := duroxide.judge_work(v_work, p_token, v_now);
    IF v_result = 0 THEN
        v_id := coalesce((SELECT i.id FROM duroxide.instance i WHERE i.key = v_work.instance), '');
        DELETE FROM duroxide.work WHERE seq = p_seq;
        INSERT INTO duroxide.dead_letter (instance, payload, reason, at)
        VALUES (v_id, v_work.payload, p_reason, v_now) RETURNING id INTO v_newest;
        DELETE FROM duroxide.dead_letter WHERE id <= v_newest - 10000;
        RAISE WARNING 'an activity of % became a dead letter: %', v_id, p_reason;
    END IF;
    RETURN v_result;
END
$body$;

-- Extends the valid, recently used leases of these owners; how many there were (R8.86).
CREATE FUNCTION duroxide.renew_sessions(
    p_owners text[], p_extend bigint, p_idle bigint, p_now bigint)
RETURNS bigint
LANGUAGE plpgsql AS $body$
DECLARE
    v_now bigint;
    v_renewed bigint;
BEGIN
    PERFORM FROM duroxide.session s
    JOIN (SELECT DISTINCT unnest(p_owners) AS id) o ON s.owner = o.id COLLATE "C"
    ORDER BY s.id FOR UPDATE OF s;
    v_now := coalesce(p_now, duroxide.now_ms());
    UPDATE duroxide.session s SET until = v_now + p_extend
    FROM (SELECT DISTINCT unnest(p_owners) AS id) o
    WHERE s.owner = o.id COLLATE "C" AND s.until > v_now AND s.last_activity > v_now - p_idle;
    GET DIAGNOSTICS v_renewed = ROW_COUNT;
    RETURN v_renewed;
END
$body$;

-- Forgets sessions whose lease ran out and that no activity needs; how many there were (R8.87).
CREATE FUNCTION duroxide.clean_sessions(p_now bigint) RETURNS bigint
LANGUAGE plpgsql AS $body$
DECLARE
    v_now bigint := coalesce(p_now, duroxide.now_ms());
    v_ids text[];
    v_removed bigint;
BEGIN
    v_ids := array(
        SELECT s.id FROM duroxide.session s WHERE s.until <= v_now
        ORDER BY s.id FOR UPDATE SKIP LOCKED);
    DELETE FROM duroxide.session s USING unnest(v_ids) u(id)
    WHERE s.id = u.id COLLATE "C"
    AND NOT EXISTS (SELECT FROM duroxide.work w WHERE w.session = s.id);
    GET DIAGNOSTICS v_removed = ROW_COUNT;
    v_ids := array(SELECT s.id FROM duroxide.session s WHERE s.parked FOR UPDATE SKIP LOCKED);
    PERFORM duroxide.note_unparked(v_ids);
    RETURN v_removed;
END
$body$;

-- Locks activities by position, those at `p_seqs` and those that the others name, and then the sessions
-- of these by id.
CREATE FUNCTION duroxide.lock_work(
    p_seqs bigint[], c_keys bigint[], c_executions bigint[], c_activities bigint[])
RETURNS void
LANGUAGE plpgsql AS $body$
DECLARE
    v_sessions text[];
BEGIN
    IF cardinality(c_keys) > 0 THEN
        p_seqs := p_seqs || array(
            SELECT a.seq FROM unnest(c_keys, c_executions, c_activities) u(key, execution, activity)
            CROSS JOIN LATERAL (
                SELECT x.seq FROM duroxide.work x
                WHERE x.instance = u.key AND x.execution = u.execution
                AND x.activity = u.activity OFFSET 0) a);
    END IF;
    IF cardinality(p_seqs) > 0 THEN
        SELECT array_agg(w.session) INTO v_sessions FROM (
            SELECT o.session FROM duroxide.work o WHERE o.seq = ANY (p_seqs)
            ORDER BY o.seq FOR UPDATE) w
        WHERE w.session IS NOT NULL;
        IF v_sessions IS NOT NULL THEN
            PERFORM FROM duroxide.session s
            JOIN (SELECT DISTINCT unnest(v_sessions) AS id) u ON s.id = u.id COLLATE "C"
            ORDER BY s.id FOR UPDATE OF s;
        END IF;
    END IF;
END
$body$;

-- Takes all the locks of a transaction that calls several functions, in the order in which locks are
-- taken: pins and names that are new (those of `p_also` are not noted), mailboxes by key, activities
-- by position (those at `p_seqs`, and those that `c_ids`, `c_executions` and `c_activities` name), the
-- sessions of these by id.
CREATE FUNCTION duroxide.lock_batch(
    p_pins text[], p_ids text[], p_also text[], p_keys bigint[], p_seqs bigint[],
    c_ids text[], c_executions bigint[], c_activities bigint[])
RETURNS void
LANGUAGE plpgsql AS $body$
BEGIN
    PERFORM duroxide.note_pins(p_pins);
    PERFORM duroxide.open_mailboxes(p_ids, p_keys || duroxide.keys_of(p_also));
    PERFORM duroxide.lock_work(p_seqs, duroxide.keys_of(c_ids), c_executions, c_activities);
END
$body$;

-- Gives back, uncounted, what was fetched with these secrets: nobody got to hear of it.
CREATE FUNCTION duroxide.forget_fetches(p_tokens uuid[], p_now bigint, p_retention bigint)
RETURNS void
LANGUAGE plpgsql AS $body$
DECLARE
    v_keys bigint[];
    v_tokens uuid[];
BEGIN
    SELECT array_agg(m.instance), array_agg(m.token) INTO v_keys, v_tokens
    FROM duroxide.mailbox m
    WHERE m.wake_at IS NOT NULL AND m.state = 2 AND m.token = ANY (p_tokens);
    IF v_keys IS NOT NULL THEN
        PERFORM duroxide.abandon_turns(v_keys, v_tokens,
            array_fill(0::bigint, ARRAY[cardinality(v_keys)]),
            array_fill(true, ARRAY[cardinality(v_keys)]), p_now, p_retention);
    END IF;
    SELECT array_agg(w.seq), array_agg(w.token) INTO v_keys, v_tokens
    FROM duroxide.work w WHERE w.wake_at IS NOT NULL AND w.token = ANY (p_tokens);
    IF v_keys IS NOT NULL THEN
        PERFORM duroxide.abandon_work(v_keys, v_tokens,
            array_fill(0::bigint, ARRAY[cardinality(v_keys)]),
            array_fill(true, ARRAY[cardinality(v_keys)]), p_now);
    END IF;
END
$body$;
