-- Where queues are looked through from.
--
-- While somebody holds an old snapshot (a dump, say) nothing that was done since can be cleared away, not
-- from indexes either: whoever looks for the oldest thing in a queue, or for what is due, reads all entries
-- that were used up since, which come before the first that lives. Then nodes tell their looks where to
-- begin: `p_from` is a place in a queue, `p_due_from` a time. Such a bound is a guess, kept in the memory
-- of a node: there may be something before it. The truth is a look from the very beginning, which
-- `sweep` takes now and then, beside everything else. Where little has to be read nobody has a bound.

-- Entries of these indexes that this connection has read, since its counters were taken last.
CREATE FUNCTION duroxide.entries_read() RETURNS bigint
LANGUAGE sql VOLATILE AS $body$
    SELECT coalesce(sum(pg_stat_get_xact_tuples_returned(u.id)), 0)::bigint
    FROM unnest(ARRAY['duroxide.mailbox_ready'::regclass, 'duroxide.mailbox_wake'::regclass,
        'duroxide.hidden_pkey'::regclass, 'duroxide.work_ready'::regclass,
        'duroxide.work_ready_tagged'::regclass, 'duroxide.work_wake'::regclass]) u(id)
$body$;

-- What is ready first, from the very beginning: of turns by pin, of activities without session by tag
-- (null is none), each with its place. next_place: everything that is queued from now on is behind it.
-- due: the first end of a lock, or message, before `p_due_from`. entries: so many had to be read.
CREATE FUNCTION duroxide.sweep(
    p_due_from bigint,
    OUT next_place bigint, OUT pins integer[], OUT pin_places bigint[], OUT tags text[],
    OUT tag_places bigint[], OUT due bigint, OUT entries bigint)
LANGUAGE plpgsql
SET enable_seqscan = off SET enable_bitmapscan = off SET jit = off SET plan_cache_mode = force_generic_plan
AS $body$
#variable_conflict use_column
BEGIN
    entries := -duroxide.entries_read();
    next_place := coalesce(pg_sequence_last_value('duroxide.positions'::regclass), 0);
    SELECT array_agg(c.pin), array_agg(c.head) INTO pins, pin_places
    FROM (SELECT 0 AS id UNION ALL SELECT p.id FROM duroxide.pin p) p
    CROSS JOIN LATERAL (
        SELECT m.pin, m.head FROM duroxide.mailbox m
        WHERE m.pin = p.id AND m.head IS NOT NULL ORDER BY m.head LIMIT 1) c;
    WITH RECURSIVE first AS (
        (SELECT w.tag_key, w.tag, w.position FROM duroxide.work w
            WHERE w.wake_at IS NULL AND w.session IS NULL
            ORDER BY w.tag_key, w.position LIMIT 1)
        UNION ALL
        SELECT n.* FROM first CROSS JOIN LATERAL (
            SELECT w.tag_key, w.tag, w.position FROM duroxide.work w
            WHERE w.wake_at IS NULL AND w.session IS NULL AND w.tag_key > first.tag_key
            ORDER BY w.tag_key, w.position LIMIT 1) n)
    SELECT array_agg(f.tag), array_agg(f.position) INTO tags, tag_places FROM first f;
    due := least(
        (SELECT q.visible_at FROM duroxide.hidden q
            WHERE q.visible_at < p_due_from ORDER BY q.visible_at LIMIT 1),
        (SELECT m.wake_at FROM duroxide.mailbox m
            WHERE m.wake_at < p_due_from ORDER BY m.wake_at LIMIT 1),
        (SELECT w.wake_at FROM duroxide.work w
            WHERE w.wake_at < p_due_from ORDER BY w.wake_at LIMIT 1));
    entries := entries + duroxide.entries_read();
END
$body$;
