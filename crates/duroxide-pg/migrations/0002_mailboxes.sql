-- How messages reach an instance. Whoever calls these functions holds the lock on the mailbox rows
-- concerned, taken in a statement of its own: only a statement that begins after the lock was
-- obtained sees everything that those before did.
--
-- Locks are taken in one order, so that nobody waits in a circle: new pins, new names, then mailboxes
-- by key, then activities by position, then sessions by id. Each function does so; a transaction that
-- calls several begins with `lock_batch`, and tells those after it that they hold their locks
-- (`p_locked`). Fetches come last and never wait for a lock that exists, except for a session that
-- somebody else brings into being at the same moment: that one waits for nobody any more.
--
-- The plans of these functions hold whatever the tables hold when they are made if sequential scans,
-- bitmap scans, hash joins, merge joins, materialization and custom plans are off: connections that
-- call them see to that. Rows are looked up one by one for what is given in arrays: in a subquery with
-- a limit where it is a join, since a table that was empty once is as well looked through. The same is
-- true of EXISTS in an expression, for which the server may read the rows of all instances: there it is a
-- subquery with a limit, too.

-- The time, by the clock that decides everything.
CREATE FUNCTION duroxide.now_ms() RETURNS bigint
LANGUAGE sql VOLATILE AS $body$
    SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint
$body$;

-- Lets this transaction end without waiting for the disk. For transactions that only take, extend or
-- give back locks: should the server fail before they are on the disk, the locks were never taken,
-- somebody else takes them, and whoever believed to have them is refused by the token, which every
-- commit checks. A later commit that does wait takes what was before it to the disk as well.
CREATE FUNCTION duroxide.be_brief() RETURNS void
LANGUAGE plpgsql AS $body$
BEGIN
    PERFORM set_config('synchronous_commit', 'off', true);
END
$body$;

-- What is fetched at once at most (R8.147): messages of a turn, their bytes, bytes beyond the first.
CREATE FUNCTION duroxide.turn_messages() RETURNS integer LANGUAGE sql IMMUTABLE AS 'SELECT 1000';
CREATE FUNCTION duroxide.turn_bytes() RETURNS bigint LANGUAGE sql IMMUTABLE AS 'SELECT 4194304::bigint';
CREATE FUNCTION duroxide.fetch_bytes() RETURNS bigint LANGUAGE sql IMMUTABLE AS 'SELECT 16777216::bigint';

-- What activities with this tag have in common in the index; 0 for those without.
CREATE FUNCTION duroxide.tag_key(p_tag text) RETURNS bigint
LANGUAGE sql IMMUTABLE AS $body$
    SELECT coalesce(hashtextextended(p_tag COLLATE "C", 0), 0)
$body$;

-- The keys of ids, in their order; null for the unknown.
CREATE FUNCTION duroxide.keys_of(p_ids text[]) RETURNS bigint[]
LANGUAGE plpgsql AS $body$
BEGIN
    RETURN array(
        SELECT i.key FROM unnest(p_ids) WITH ORDINALITY u(id, n)
        LEFT JOIN duroxide.instance i ON i.id = u.id COLLATE "C"
        ORDER BY u.n);
END
$body$;

-- Notes ids that are new; comes before any lock.
CREATE FUNCTION duroxide.note_ids(p_ids text[]) RETURNS void
LANGUAGE plpgsql AS $body$
BEGIN
    WITH noted AS (
        INSERT INTO duroxide.instance (id)
        SELECT DISTINCT u.id COLLATE "C" FROM unnest(p_ids) u(id)
        WHERE NOT EXISTS (SELECT FROM duroxide.instance i WHERE i.id = u.id COLLATE "C")
        ORDER BY 1
        ON CONFLICT DO NOTHING
        RETURNING key)
    INSERT INTO duroxide.mailbox (instance) SELECT key FROM noted;
END
$body$;

-- Locks the mailboxes of ids, noted if they are new, and those with the keys `p_also` that exist.
-- The keys of the ids, in their order.
CREATE FUNCTION duroxide.open_mailboxes(p_ids text[], p_also bigint[]) RETURNS bigint[]
LANGUAGE plpgsql AS $body$
DECLARE
    v_keys bigint[];
    v_locked bigint;
BEGIN
    LOOP
        v_keys := '{}';
        IF cardinality(p_ids) > 0 THEN
            v_keys := duroxide.keys_of(p_ids);
            IF array_position(v_keys, NULL) IS NOT NULL THEN
                PERFORM duroxide.note_ids(p_ids);
                v_keys := duroxide.keys_of(p_ids);
            END IF;
        END IF;
        SELECT count(*) FILTER (WHERE m.instance = ANY (v_keys)) INTO v_locked FROM (
            SELECT b.instance FROM duroxide.mailbox b
            WHERE b.instance = ANY (v_keys || p_also) ORDER BY b.instance FOR UPDATE) m;
        -- One may have been deleted between the look and the lock.
        EXIT WHEN v_locked = cardinality(v_keys);
        EXIT WHEN array_position(v_keys, NULL) IS NULL
            AND v_locked = (SELECT count(DISTINCT k) FROM unnest(v_keys) k);
    END LOOP;
    RETURN v_keys;
END
$body$;

-- The keys of ids whose mailboxes this transaction has locked, or locks now. One that was locked may
-- have been forgotten meanwhile, by a function before.
CREATE FUNCTION duroxide.opened_mailboxes(p_ids text[], p_also bigint[], p_locked boolean)
RETURNS bigint[]
LANGUAGE plpgsql AS $body$
DECLARE
    v_keys bigint[];
BEGIN
    IF p_locked THEN
        v_keys := duroxide.keys_of(p_ids);
        IF array_position(v_keys, NULL) IS NULL THEN
            RETURN v_keys;
        END IF;
    END IF;
    RETURN duroxide.open_mailboxes(p_ids, p_also);
END
$body$;

-- Of these instances, by id and by key, and of these activities, those that somebody else has locked at
-- this moment. For transactions that could not have a row in time: who wants it is to wait alone.
CREATE FUNCTION duroxide.locked_by_others(
    p_ids text[], p_keys bigint[], p_seqs bigint[],
    OUT ids text[], OUT keys bigint[], OUT seqs bigint[])
LANGUAGE plpgsql AS $body$
#variable_conflict use_column
DECLARE
    v_keys bigint[] := duroxide.keys_of(p_ids);
    v_free bigint[];
BEGIN
    PERFORM duroxide.be_brief();
    v_free := array(
        SELECT m.instance FROM duroxide.mailbox m
        WHERE m.instance = ANY (v_keys || p_keys) FOR UPDATE SKIP LOCKED);
    ids := array(
        SELECT u.id FROM unnest(p_ids, v_keys) u(id, key)
        JOIN duroxide.mailbox m ON m.instance = u.key WHERE m.instance <> ALL (v_free));
    keys := array(
        SELECT m.instance FROM duroxide.mailbox m
        WHERE m.instance = ANY (p_keys) AND m.instance <> ALL (v_free));
    v_free := array(
        SELECT w.seq FROM duroxide.work w WHERE w.seq = ANY (p_seqs) FOR UPDATE SKIP LOCKED);
    seqs := array(
        SELECT w.seq FROM duroxide.work w
        WHERE w.seq = ANY (p_seqs) AND w.seq <> ALL (v_free));
END
$body$;

-- Takes messages out of circulation, for people to look at (R8.137). The oldest letters make room.
CREATE FUNCTION duroxide.bury(p_keys bigint[], p_seqs bigint[], p_reasons text[], p_now bigint)
RETURNS void
LANGUAGE plpgsql AS $body$
DECLARE
    v_newest bigint;
    v_row record;
BEGIN
    FOR v_row IN
        WITH gone AS (
            DELETE FROM duroxide.message q
            USING unnest(p_keys, p_seqs, p_reasons) u(key, seq, reason)
            WHERE q.instance = u.key AND q.seq = u.seq
            RETURNING q.instance, q.seq, q.payload, u.reason)
        INSERT INTO duroxide.dead_letter (instance, payload, reason, at)
        SELECT coalesce(i.id, ''), g.payload, g.reason, p_now
        FROM gone g LEFT JOIN duroxide.instance i ON i.key = g.instance ORDER BY g.seq
        RETURNING id, instance, reason
    LOOP
        v_newest := v_row.id;
        RAISE WARNING 'a message for % became a dead letter: %', v_row.instance, v_row.reason;
    END LOOP;
    DELETE FROM duroxide.dead_letter WHERE id <= v_newest - 10000;
END
$body$;

-- Brings mailboxes that nobody has locked in line with their messages.
CREATE FUNCTION duroxide.settle(p_keys bigint[], p_retention bigint) RETURNS void
LANGUAGE plpgsql AS $body$
BEGIN
    UPDATE duroxide.mailbox m SET
        state = s.state,
        head = CASE WHEN s.state = 1 THEN greatest(s.head, m.behind) END,
        -- Whose lock ended without its holder stays marked while there are messages, due or not.
        behind = CASE WHEN s.head IS NOT NULL OR m.behind IS NOT NULL AND (
            SELECT true FROM duroxide.hidden q WHERE q.instance = m.instance LIMIT 1)
            THEN m.behind END,
        -- What is undeliverable is due at once.
        wake_at = CASE s.state WHEN 3 THEN s.since + p_retention WHEN 4 THEN s.since
            WHEN 6 THEN m.wake_at END
    FROM (
        SELECT b.instance AS key, h.seq AS head, h.since, CASE
            WHEN h.seq IS NULL THEN 0
            WHEN b.state = 6 THEN 6
            WHEN b.known THEN 1
            WHEN (SELECT true FROM duroxide.message q
                WHERE q.instance = b.instance AND q.kind = 1 LIMIT 1) THEN 1
            WHEN (SELECT true FROM duroxide.hidden q
                WHERE q.instance = b.instance AND q.kind = 1 LIMIT 1) THEN 0
            -- Of the oldest: what is behind them is looked at when they are gone.
            WHEN (SELECT true FROM (SELECT q.kind FROM duroxide.message q
                WHERE q.instance = b.instance ORDER BY q.seq LIMIT 1000) q
                WHERE q.kind <> 2 LIMIT 1) THEN 3
            ELSE 4 END AS state
        FROM duroxide.mailbox b
        LEFT JOIN LATERAL (
            SELECT q.seq, q.since FROM duroxide.message q
            WHERE q.instance = b.instance ORDER BY q.seq LIMIT 1) h ON true
        WHERE b.instance = ANY (p_keys)) s
    WHERE m.instance = s.key;
    -- A name that nothing speaks of any more is forgotten.
    WITH gone AS (
        DELETE FROM duroxide.mailbox m
        WHERE m.instance = ANY (p_keys) AND NOT m.known AND m.state = 0
        AND coalesce(
            (SELECT true FROM duroxide.message q WHERE q.instance = m.instance LIMIT 1),
            (SELECT true FROM duroxide.hidden q WHERE q.instance = m.instance LIMIT 1),
            (SELECT true FROM duroxide.execution e WHERE e.instance = m.instance LIMIT 1),
            (SELECT true FROM duroxide.work w WHERE w.instance = m.instance LIMIT 1)) IS NULL
        RETURNING m.instance)
    DELETE FROM duroxide.instance i USING gone WHERE i.key = gone.instance;
END
$body$;

-- Messages have come: mailboxes of the known are ready, and those that a start reaches; the others are
-- looked at, unless what came is one more of what waits already.
CREATE FUNCTION duroxide.rouse(p_keys bigint[], p_kinds smallint[], p_retention bigint)
RETURNS void
LANGUAGE plpgsql AS $body$
DECLARE
    v_others bigint[];
BEGIN
    WITH come AS MATERIALIZED (
        SELECT u.key, m.known, m.state, m.head, m.behind, u.any_start, u.all_queue,
            (SELECT q.seq FROM duroxide.message q
                WHERE q.instance = u.key ORDER BY q.seq LIMIT 1) AS oldest,
            NOT m.known AND u.any_start AND m.state = 0 AND (
                SELECT true FROM duroxide.message q
                WHERE q.instance = u.key AND q.kind = 1 LIMIT 1) IS NOT NULL AS is_started
        FROM (
            SELECT u.key, bool_or(u.kind = 1) AS any_start, bool_and(u.kind = 2) AS all_queue
            FROM unnest(p_keys, p_kinds) u(key, kind) GROUP BY u.key) u
        JOIN duroxide.mailbox m ON m.instance = u.key),
    ready AS (
        UPDATE duroxide.mailbox m SET state = 1, head = greatest(c.behind, c.oldest)
        FROM come c
        WHERE m.instance = c.key AND c.state = 0 AND c.oldest IS NOT NULL
        AND (c.known OR c.is_started))
    SELECT array_agg(c.key) INTO v_others FROM come c
    WHERE NOT c.known AND (c.state = 0 AND NOT c.is_started
        OR c.state = 3 AND c.any_start OR c.state = 4 AND NOT c.all_queue)
    OR c.state = 1 AND coalesce(c.behind < c.head, true) AND c.oldest < c.head;
    IF v_others IS NOT NULL THEN
        PERFORM duroxide.settle(v_others, p_retention);
    END IF;
END
$body$;

-- Puts messages into mailboxes, now or when they are due, in the order given (R8.10, R8.53). All are
-- due at once if `p_due` is null, none begins a child if `p_parents` is.
CREATE FUNCTION duroxide.post(
    p_keys bigint[], p_kinds smallint[], p_due bigint[], p_payloads text[], p_parents text[],
    p_now bigint, p_retention bigint)
RETURNS void
LANGUAGE plpgsql AS $body$
DECLARE
    v_seqs bigint[];
    v_hides boolean := p_due IS NOT NULL AND p_now < ANY (p_due);
BEGIN
    IF NOT v_hides THEN
        INSERT INTO duroxide.message (instance, seq, kind, attempts, since, payload, parent)
        SELECT u.key, nextval('duroxide.positions'::regclass), u.kind, 0, p_now, u.payload,
            u.parent
        FROM unnest(p_keys, p_kinds, p_payloads, p_parents) u(key, kind, payload, parent);
    ELSE
        v_seqs := array(
            SELECT nextval('duroxide.positions'::regclass)
            FROM generate_series(1, cardinality(p_keys)));
        INSERT INTO duroxide.message (instance, seq, kind, attempts, since, payload, parent)
        SELECT u.key, u.seq, u.kind, 0, p_now, u.payload, u.parent
        FROM unnest(p_keys, v_seqs, p_kinds, p_due, p_payloads, p_parents)
            u(key, seq, kind, due, payload, parent)
        WHERE coalesce(u.due, 0) <= p_now;
        INSERT INTO duroxide.hidden (visible_at, seq, instance, kind, attempts, payload, parent)
        SELECT u.due, u.seq, u.key, u.kind, 0, u.payload, u.parent
        FROM unnest(p_keys, v_seqs, p_kinds, p_due, p_payloads, p_parents)
            u(key, seq, kind, due, payload, parent)
        WHERE u.due > p_now;
    END IF;
    PERFORM duroxide.rouse(p_keys, p_kinds, p_retention);
END
$body$;

-- Marks timers of one instance, whatever their number, in one pass over what is hidden of it: timers that are
-- set together have the same time, and to look for each among all is quadratic.
CREATE FUNCTION duroxide.drop_many_timers(p_key bigint, p_payloads text[]) RETURNS void
LANGUAGE plpgsql SET enable_nestloop = off SET enable_hashjoin = on AS $body$
BEGIN
    UPDATE duroxide.hidden q SET dropped = true
    FROM (SELECT DISTINCT u.payload FROM unnest(p_payloads) u(payload)) u
    WHERE (q.instance, q.visible_at) >= (p_key, 0)
    AND (q.instance, q.visible_at) <= (p_key, 9223372036854775807)
    AND q.payload = u.payload AND q.attempts = 0 AND q.dropped IS NULL;
END
$body$;

-- Marks timers that nothing waits for any more (R8.151), in the transaction that commits the turns that
-- have dropped them and after that commit. The secret tells whether a turn was committed: if it was by
-- an earlier transaction, of which no answer came, its timers are marked and no row is written.
CREATE FUNCTION duroxide.drop_timers(
    p_ids text[], p_secrets uuid[], p_due bigint[], p_payloads text[])
RETURNS void
LANGUAGE plpgsql AS $body$
DECLARE
    v_keys bigint[] := duroxide.keys_of(p_ids);
    v_times bigint[];
    v_seqs bigint[];
    v_of_one record;
BEGIN
    IF cardinality(p_ids) > 16 THEN
        FOR v_of_one IN
            SELECT t.key, array_agg(t.payload) AS payloads
            FROM unnest(v_keys, p_secrets, p_payloads) t(key, secret, payload)
            WHERE (SELECT m.done FROM duroxide.mailbox m WHERE m.instance = t.key) = t.secret
            GROUP BY t.key
        LOOP
            PERFORM duroxide.drop_many_timers(v_of_one.key, v_of_one.payloads);
        END LOOP;
        RETURN;
    END IF;
    SELECT array_agg(h.visible_at), array_agg(h.seq) INTO v_times, v_seqs
    FROM unnest(v_keys, p_secrets, p_due, p_payloads) t(key, secret, due, payload)
    CROSS JOIN LATERAL duroxide.held_back(t.key, t.due, t.payload) h
    WHERE (SELECT m.done FROM duroxide.mailbox m WHERE m.instance = t.key) = t.secret;
    UPDATE duroxide.hidden q SET dropped = true
    FROM unnest(v_times, v_seqs) u(visible_at, seq)
    WHERE q.visible_at = u.visible_at AND q.seq = u.seq AND q.dropped IS NULL;
END
$body$;

-- Queues messages for instances, visible after a delay (R8.10, R8.12).
CREATE FUNCTION duroxide.enqueue_messages(
    p_ids text[], p_kinds smallint[], p_delays bigint[], p_payloads text[],
    p_now bigint, p_retention bigint, p_locked boolean, p_parents text[] DEFAULT NULL)
RETURNS void
LANGUAGE plpgsql AS $body$
DECLARE
    v_keys bigint[] := duroxide.opened_mailboxes(p_ids, '{}', p_locked);
    v_now bigint := coalesce(p_now, duroxide.now_ms());
BEGIN
    PERFORM duroxide.post(v_keys, p_kinds,
        CASE WHEN 0 < ANY (p_delays) THEN array(SELECT v_now + u.delay
            FROM unnest(p_delays) WITH ORDINALITY u(delay, n) ORDER BY u.n) END,
        p_payloads, p_parents, v_now, p_retention);
END
$body$;
