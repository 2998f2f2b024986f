-- Nodes: who has the store open, and whether it still lives.
--
-- Each node has a connection that holds an advisory lock for as long as it lasts. A node whose lock can
-- be had is gone, and its locks on turns and activities are free at once instead of when they run out.
-- Nobody can tell a node that died from one that was cut off, until it comes back. So the attempts that
-- end with a node count, and when it comes back they never have: what kills its process is given up in
-- the end, what is only cut off is not. Its old tokens are refused.

CREATE SEQUENCE duroxide.node_ids;

-- gone_at: when it was found to be gone. What it had asked for may come about later than that, so the
-- row stays for a while.
CREATE TABLE duroxide.node (
    id         bigint PRIMARY KEY,
    name       text,
    joined_at  bigint NOT NULL,
    gone_at    bigint
);

-- What a node's advisory lock is on. The sequence's number tells the schemas of a database apart.
CREATE FUNCTION duroxide.node_key(p_id bigint) RETURNS bigint
LANGUAGE sql STABLE AS $body$
    SELECT hashtextextended(
        'duroxide node ' || 'duroxide.node_ids'::regclass::oid || ' ' || p_id, 0)
$body$;

-- Instances with messages that a node lost, and those it has, or had last, locked.
CREATE FUNCTION duroxide.keys_of_node(p_id bigint) RETURNS bigint[]
LANGUAGE plpgsql AS $body$
BEGIN
    RETURN array(
        SELECT q.instance FROM duroxide.message q
        WHERE q.lost IS NOT NULL AND q.lost @> ARRAY[p_id]
        UNION
        SELECT m.instance FROM duroxide.mailbox m
        WHERE m.wake_at IS NOT NULL AND m.state = 2 AND m.node = p_id);
END
$body$;

-- A node has come back, under its old id or another. What it still holds it keeps, and what it lost was
-- no attempt. Its tokens for that are forgotten: what was uncounted here could be given back uncounted
-- with them, and an attempt of somebody else would be gone.
CREATE FUNCTION duroxide.take_back(p_before bigint, p_id bigint, p_now bigint) RETURNS void
LANGUAGE plpgsql AS $body$
DECLARE
    v_keys bigint[] := duroxide.keys_of_node(p_before);
    v_seqs bigint[];
BEGIN
    PERFORM FROM duroxide.mailbox m
    WHERE m.instance = ANY (v_keys) ORDER BY m.instance FOR UPDATE;
    UPDATE duroxide.message q SET
        attempts = greatest(q.attempts - cardinality(array_positions(q.lost, p_before)), 0),
        lost = duroxide.not_lost_by(q.lost, p_before)
    WHERE q.instance = ANY (v_keys) AND q.lost IS NOT NULL AND q.lost @> ARRAY[p_before];
    -- Of locks whose time is up, which nobody has noticed, no attempt will be counted.
    UPDATE duroxide.mailbox m SET token = NULL, node = NULL, taken = NULL, counted = false
    WHERE m.instance = ANY (v_keys) AND m.node = p_before
    AND (m.state <> 2 OR m.wake_at <= p_now);
    UPDATE duroxide.mailbox m SET node = p_id
    WHERE m.instance = ANY (v_keys) AND m.state = 2 AND m.node = p_before;
    v_seqs := array(
        SELECT w.seq FROM duroxide.work w
        WHERE w.lost IS NOT NULL AND w.lost @> ARRAY[p_before]
        UNION
        SELECT w.seq FROM duroxide.work w WHERE w.wake_at IS NOT NULL AND w.node = p_before);
    PERFORM FROM duroxide.work w WHERE w.seq = ANY (v_seqs) ORDER BY w.seq FOR UPDATE;
    UPDATE duroxide.work w SET
        attempts = greatest(w.attempts - cardinality(array_positions(w.lost, p_before)), 0),
        lost = duroxide.not_lost_by(w.lost, p_before),
        token = CASE WHEN w.wake_at > p_now THEN w.token END
    WHERE w.seq = ANY (v_seqs) AND w.lost @> ARRAY[p_before];
    UPDATE duroxide.work w SET node = CASE WHEN w.wake_at > p_now THEN p_id END,
        token = CASE WHEN w.wake_at > p_now THEN w.token END,
        attempts = greatest(w.attempts - (w.wake_at <= p_now)::integer, 0)
    WHERE w.seq = ANY (v_seqs) AND w.wake_at IS NOT NULL AND w.node = p_before;
    UPDATE duroxide.session SET node = p_id
    WHERE id IN (SELECT s.id FROM duroxide.session s
        WHERE s.until > p_now AND s.node = p_before FOR UPDATE SKIP LOCKED);
END
$body$;

-- Makes this connection the proof that a node lives; its id. A node that was here before stays who it
-- is if nobody has noticed that it was gone. Its lock may also be held by what is left of its old
-- connection, which the server does not know to be dead.
CREATE FUNCTION duroxide.join_node(p_before bigint, p_name text, p_now bigint) RETURNS bigint
LANGUAGE plpgsql AS $body$
DECLARE
    v_id bigint;
BEGIN
    IF p_before IS NOT NULL AND pg_try_advisory_lock(duroxide.node_key(p_before)) THEN
        IF EXISTS (SELECT FROM duroxide.node n WHERE n.id = p_before AND n.gone_at IS NULL) THEN
            -- Its locks may have run out all the same, and been taken up by whoever is there.
            PERFORM duroxide.take_back(p_before, p_before, coalesce(p_now, duroxide.now_ms()));
            RETURN p_before;
        END IF;
        PERFORM pg_advisory_unlock(duroxide.node_key(p_before));
    END IF;
    v_id := nextval('duroxide.node_ids'::regclass);
    PERFORM pg_advisory_lock(duroxide.node_key(v_id));
    INSERT INTO duroxide.node (id, name, joined_at)
    VALUES (v_id, p_name, coalesce(p_now, duroxide.now_ms()));
    IF p_before IS NOT NULL THEN
        PERFORM duroxide.take_back(p_before, v_id, coalesce(p_now, duroxide.now_ms()));
    END IF;
    RETURN v_id;
END
$body$;

-- Ends what a node holds, as if its time were up, except where somebody is busy with it. The attempts
-- count, unless it comes back: the node may have died of them. Whether there was anything to end. A node that has been gone
-- for longer than any statement lasts, and holds nothing, is forgotten.
CREATE FUNCTION duroxide.end_node(p_id bigint, p_now bigint) RETURNS boolean
LANGUAGE plpgsql AS $body$
DECLARE
    v_turns bigint[];
    v_work bigint[];
    v_sessions bigint;
BEGIN
    v_turns := array(
        SELECT m.instance FROM duroxide.mailbox m
        WHERE m.wake_at > p_now AND m.state = 2 AND m.node = p_id FOR UPDATE SKIP LOCKED);
    IF cardinality(v_turns) > 0 THEN
        PERFORM duroxide.count_attempts(v_turns);
        UPDATE duroxide.mailbox SET wake_at = p_now WHERE instance = ANY (v_turns);
    END IF;
    v_work := array(
        SELECT w.seq FROM duroxide.work w
        WHERE w.wake_at > p_now AND w.node = p_id FOR UPDATE SKIP LOCKED);
    IF cardinality(v_work) > 0 THEN
        UPDATE duroxide.work w SET wake_at = p_now, node = NULL,
            lost = duroxide.lost_by(w.lost, p_id)
        WHERE w.seq = ANY (v_work);
    END IF;
    UPDATE duroxide.session SET until = p_now
    WHERE id IN (SELECT s.id FROM duroxide.session s
        WHERE s.until > p_now AND s.node = p_id FOR UPDATE SKIP LOCKED);
    GET DIAGNOSTICS v_sessions = ROW_COUNT;
    UPDATE duroxide.node SET gone_at = p_now WHERE id = p_id AND gone_at IS NULL;
    DELETE FROM duroxide.node WHERE id = p_id AND gone_at < p_now - 60000
    AND NOT EXISTS (SELECT FROM duroxide.mailbox m
        WHERE m.wake_at > p_now AND m.state = 2 AND m.node = p_id)
    AND NOT EXISTS (SELECT FROM duroxide.work w WHERE w.wake_at > p_now AND w.node = p_id)
    AND NOT EXISTS (SELECT FROM duroxide.session s WHERE s.until > p_now AND s.node = p_id);
    RETURN cardinality(v_turns) + cardinality(v_work) + v_sessions > 0;
END
$body$;

-- How large the tables are, in bytes: plans are made for tables of a size. Null if one of them is locked as a
-- whole: a pulse does not wait for that.
CREATE FUNCTION duroxide.table_sizes() RETURNS bigint[]
LANGUAGE plpgsql SET lock_timeout = '10ms' AS $body$
BEGIN
    RETURN (SELECT array_agg(pg_relation_size(t.id) ORDER BY t.n)
        FROM unnest(ARRAY['duroxide.instance'::regclass, 'duroxide.execution'::regclass,
            'duroxide.history'::regclass, 'duroxide.mailbox'::regclass,
            'duroxide.message'::regclass, 'duroxide.hidden'::regclass, 'duroxide.work'::regclass,
            'duroxide.session'::regclass, 'duroxide.kv'::regclass, 'duroxide.kv_delta'::regclass])
            WITH ORDINALITY t(id, n));
EXCEPTION WHEN lock_not_available THEN
    RETURN NULL;
END
$body$;

-- Looks around: ends nodes that are gone, tells whether there are others, whether there is anything to
-- fetch, and when time brings something; ends of locks if that is before the pulse after the next. Places
-- and times before `p_turns_from`, `p_work_from` and `p_due_from` are left out (see 0011). entries: so many
-- of indexes had to be read. sizes: of the tables.
CREATE FUNCTION duroxide.pulse(
    p_node bigint, p_now bigint, p_turns_from bigint, p_work_from bigint, p_due_from bigint,
    OUT now_ms bigint, OUT others bigint, OUT ended bigint, OUT has_turns boolean,
    OUT has_work boolean, OUT turns_due bigint, OUT work_due bigint, OUT entries bigint,
    OUT sizes bigint[])
LANGUAGE plpgsql AS $body$
#variable_conflict use_column
DECLARE
    v_id bigint;
BEGIN
    sizes := duroxide.table_sizes();
    now_ms := coalesce(p_now, duroxide.now_ms());
    others := 0;
    ended := 0;
    FOR v_id IN SELECT n.id FROM duroxide.node n WHERE n.id IS DISTINCT FROM p_node ORDER BY n.id
    LOOP
        -- Of those who look at the same time one gets it.
        IF pg_try_advisory_xact_lock(duroxide.node_key(v_id)) THEN
            PERFORM duroxide.be_brief();
            ended := ended + duroxide.end_node(v_id, now_ms)::integer;
        ELSE
            others := others + 1;
        END IF;
    END LOOP;
    entries := -duroxide.entries_read();
    has_turns := EXISTS (SELECT FROM duroxide.mailbox m
        WHERE m.head >= p_turns_from AND m.pin = ANY (array(SELECT p.id FROM duroxide.pin p) || 0));
    SELECT r.is_there INTO has_work FROM duroxide.ready_work(true, true, '{}', p_work_from) r;
    has_work := has_work
        OR EXISTS (SELECT FROM duroxide.work w WHERE w.wake_at IS NULL AND w.session IS NOT NULL);
    turns_due := least(duroxide.next_message_due(p_due_from),
        duroxide.first_ended_turn(p_due_from, now_ms + 2000));
    -- Of all sessions, whoever owns them.
    work_due := least(duroxide.first_ended_work(p_due_from, now_ms + 2000), (
        SELECT s.until FROM duroxide.session s
        WHERE s.until > now_ms ORDER BY s.until LIMIT 1));
    entries := entries + duroxide.entries_read();
END
$body$;

-- Tells other nodes something, without waiting for the disk.
CREATE FUNCTION duroxide.tell(p_channel text, p_text text) RETURNS void
LANGUAGE plpgsql AS $body$
BEGIN
    PERFORM duroxide.be_brief();
    PERFORM pg_notify(p_channel, p_text);
END
$body$;

-- A node goes: what it still holds is free.
CREATE FUNCTION duroxide.leave_node(p_id bigint, p_now bigint) RETURNS void
LANGUAGE plpgsql AS $body$
BEGIN
    PERFORM duroxide.be_brief();
    PERFORM duroxide.end_node(p_id, coalesce(p_now, duroxide.now_ms()));
END
$body$;
