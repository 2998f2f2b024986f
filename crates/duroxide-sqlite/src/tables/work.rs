//! Queued activities.

use rusqlite::{Row, params};

use super::long_texts::{self, TextReference, reference};
use super::{Sql, all, first, id_in, id_out, ms_in, number, optional_text, run, text};
use crate::database::Db;
use crate::token::Secret;

/// An activity about to be queued.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NewWork<'a> {
    pub(crate) instance: i64,
    pub(crate) execution: u64,
    pub(crate) activity: u64,
    pub(crate) tag: Option<&'a str>,
    pub(crate) session: Option<&'a str>,
    pub(crate) payload: &'a str,
    /// Key of the text that belongs into it.
    pub(crate) long_text: Option<i64>,
}

/// A queued activity, without what it is to do.
#[derive(Debug, Clone)]
pub(crate) struct Work {
    pub(crate) instance: i64,
    pub(crate) attempts: u32,
    /// When its lock ends or it becomes visible; `None` if it can be fetched.
    pub(crate) wake_at: Option<i64>,
    /// The latest lock's secret, also after the lock ran out (R8.76).
    pub(crate) token: Option<Secret>,
    pub(crate) session: Option<String>,
}

impl Work {
    /// Whether it is locked and the lock has not run out.
    pub(crate) fn is_locked(&self, now: u64) -> bool {
        self.token.is_some() && self.wake_at.is_some_and(|until| ms_in(now) < until)
    }
}

/// An activity to be handed out.
#[derive(Debug, Clone)]
pub(crate) struct Payload {
    pub(crate) attempts: u32,
    pub(crate) session: Option<String>,
    pub(crate) payload: String,
    pub(crate) text_reference: Option<TextReference>,
}

impl Payload {
    /// How much it is to be handed out.
    pub(crate) fn bytes(&self) -> usize {
        self.payload.len() + self.text_reference.as_ref().map_or(0, TextReference::len)
    }
}

pub(crate) fn insert(c: Db<'_>, seq: i64, work: NewWork<'_>) -> Sql<()> {
    let NewWork { instance, activity, tag, session: None, payload, long_text, .. } = work else {
        return insert_in_session(c, seq, work);
    };
    let (execution, activity) = (id_in(work.execution), id_in(activity));
    run(
        c,
        "INSERT INTO work (seq, instance, execution, activity, attempts, tag, payload, long_text,
         position)
         VALUES (?1, ?2, ?3, ?4, 0, ?5, ?6, ?7, ?1)",
        params![seq, instance, execution, activity, tag, payload, long_text],
    )?;
    Ok(())
}

fn insert_in_session(c: Db<'_>, seq: i64, work: NewWork<'_>) -> Sql<()> {
    run(
        c,
        "INSERT INTO work (seq, instance, execution, activity, attempts, tag, session, payload,
         long_text, position, holder)
         VALUES (?1, ?2, ?3, ?4, 0, ?5, ?6, ?7, ?8, ?1,
         (SELECT owner FROM sessions WHERE id = ?6 AND NOT lapsed))",
        params![
            seq,
            work.instance,
            id_in(work.execution),
            id_in(work.activity),
            work.tag,
            work.session,
            work.payload,
            work.long_text
        ],
    )?;
    Ok(())
}

pub(crate) fn get(c: Db<'_>, seq: i64) -> Sql<Option<Work>> {
    first(
        c,
        "SELECT instance, attempts, wake_at, token, session FROM work WHERE seq = ?1",
        [seq],
        |row| {
            Ok(Work {
                instance: row.get(0)?,
                attempts: row.get(1)?,
                wake_at: row.get(2)?,
                token: row.get(3)?,
                session: optional_text(row, 4)?,
            })
        },
    )
}

/// What an activity is to do.
pub(crate) fn payload(c: Db<'_>, seq: i64) -> Sql<Option<Payload>> {
    let sql = "SELECT attempts, session, payload, instance, long_text FROM work WHERE seq = ?1";
    let found = first(c, sql, [seq], |row| {
        let payload = Payload {
            attempts: row.get(0)?,
            session: optional_text(row, 1)?,
            payload: text(row, 2)?,
            text_reference: reference(row, 4)?,
        };
        Ok((number(row, 3)?.unwrap_or(0), payload))
    })?;
    let Some((instance, mut payload)) = found else { return Ok(None) };
    long_texts::fetch(c, instance, &mut payload.text_reference)?;
    Ok(Some(payload))
}

/// Position of a row in the queue, which changes when it is moved behind others (R8.146), and its
/// number, which does not.
pub(crate) type Place = (i64, i64);

fn place(row: &Row<'_>) -> Sql<Place> {
    Ok((row.get(0)?, row.get(1)?))
}

/// The oldest fetchable activity without tag and session.
pub(crate) fn oldest_untagged(c: Db<'_>) -> Sql<Option<Place>> {
    first(
        c,
        "SELECT position, seq FROM work WHERE wake_at IS NULL AND session IS NULL AND tag IS NULL
         ORDER BY position LIMIT 1",
        [],
        place,
    )
}

/// The oldest fetchable activity with this tag and without session.
pub(crate) fn oldest_tagged(c: Db<'_>, tag: &str) -> Sql<Option<Place>> {
    first(
        c,
        "SELECT position, seq FROM work WHERE wake_at IS NULL AND session IS NULL AND tag = ?1
         ORDER BY position LIMIT 1",
        [tag],
        place,
    )
}

/// The first tag after `last` that fetchable activities without session have.
pub(crate) fn next_tag(c: Db<'_>, last: Option<&str>) -> Sql<Option<String>> {
    match last {
        None => first(
            c,
            "SELECT tag FROM work WHERE wake_at IS NULL AND session IS NULL AND tag IS NOT NULL
             ORDER BY tag LIMIT 1",
            [],
            |row| text(row, 0),
        ),
        Some(last) => first(
            c,
            "SELECT tag FROM work WHERE wake_at IS NULL AND session IS NULL AND tag > ?1
             ORDER BY tag LIMIT 1",
            [last],
            |row| text(row, 0),
        ),
    }
}

/// Which tags a worker takes, as parameters of a statement.
#[derive(Debug, Clone, Default)]
pub(crate) struct Tags<'a> {
    pub(crate) any: bool,
    pub(crate) untagged: bool,
    pub(crate) named: [Option<&'a str>; 5],
}

/// The oldest fetchable activity with this tag, or without, of sessions that this owner holds or, for
/// `None`, no owner (R8.81).
pub(crate) fn oldest_held(
    c: Db<'_>,
    holder: Option<&str>,
    tag: Option<&str>,
) -> Sql<Option<Place>> {
    first(
        c,
        "SELECT position, seq FROM work WHERE wake_at IS NULL AND session IS NOT NULL
         AND holder IS ?1 AND tag IS ?2 ORDER BY position LIMIT 1",
        [holder, tag],
        place,
    )
}

/// Whether any activity of a session can be fetched, by any owner.
pub(crate) fn any_in_sessions(c: Db<'_>) -> Sql<bool> {
    let sql = "SELECT 1 FROM work INDEXED BY work_ready_sessions
               WHERE wake_at IS NULL AND session IS NOT NULL LIMIT 1";
    Ok(first(c, sql, [], |row| row.get::<_, i64>(0))?.is_some())
}

/// The first tag after `last` that fetchable activities of such sessions have.
pub(crate) fn next_held_tag(
    c: Db<'_>,
    holder: Option<&str>,
    last: Option<&str>,
) -> Sql<Option<String>> {
    match last {
        None => first(
            c,
            "SELECT tag FROM work WHERE wake_at IS NULL AND session IS NOT NULL
             AND holder IS ?1 AND tag IS NOT NULL ORDER BY tag LIMIT 1",
            [holder],
            |row| text(row, 0),
        ),
        Some(last) => first(
            c,
            "SELECT tag FROM work WHERE wake_at IS NULL AND session IS NOT NULL
             AND holder IS ?1 AND tag > ?2 ORDER BY tag LIMIT 1",
            [holder, Some(last)],
            |row| text(row, 0),
        ),
    }
}

/// Notes with the activities of a session which owner holds it.
pub(crate) fn set_holder(c: Db<'_>, session: &str, holder: Option<&str>) -> Sql<()> {
    run(c, "UPDATE work SET holder = ?2 WHERE session = ?1", params![session, holder])?;
    Ok(())
}

/// Locks an activity and counts the attempt (R8.72).
pub(crate) fn lock(c: Db<'_>, seq: i64, token: &Secret, until: u64, node: i64) -> Sql<()> {
    run(
        c,
        "UPDATE work SET token = ?2, wake_at = ?3, node = ?4,
         attempts = min(attempts + 1, 4294967295) WHERE seq = ?1",
        params![seq, token, ms_in(until), node],
    )?;
    Ok(())
}

/// Holds a lock for longer.
pub(crate) fn set_wake(c: Db<'_>, seq: i64, until: u64) -> Sql<()> {
    run(c, "UPDATE work SET wake_at = ?2 WHERE seq = ?1", params![seq, ms_in(until)])?;
    Ok(())
}

/// Gives an activity back (R8.76).
pub(crate) fn release(c: Db<'_>, seq: i64, until: Option<u64>, attempts: u32) -> Sql<()> {
    run(
        c,
        "UPDATE work SET token = NULL, node = NULL, wake_at = ?2, attempts = ?3 WHERE seq = ?1",
        params![seq, until.map(ms_in), attempts],
    )?;
    Ok(())
}

pub(crate) fn delete(c: Db<'_>, seq: i64) -> Sql<usize> {
    run(c, "DELETE FROM work WHERE seq = ?1", [seq])
}

/// Removes an activity wherever it stands (R8.52).
pub(crate) fn delete_activity(
    c: Db<'_>,
    instance: i64,
    execution: u64,
    activity: u64,
) -> Sql<usize> {
    run(
        c,
        "DELETE FROM work WHERE instance = ?1 AND execution = ?2 AND activity = ?3",
        params![instance, id_in(execution), id_in(activity)],
    )
}

pub(crate) fn delete_all(c: Db<'_>, instance: i64) -> Sql<usize> {
    run(c, "DELETE FROM work WHERE instance = ?1", [instance])
}

/// Whether time has changed anything: a lock has run out, a row becomes visible, or the lease of a
/// session has run out.
pub(crate) fn is_due(c: Db<'_>, now: u64) -> Sql<bool> {
    let sql = "SELECT EXISTS (SELECT 1 FROM work WHERE wake_at <= ?1)
               OR EXISTS (SELECT 1 FROM sessions WHERE lapsed = 0 AND until <= ?1)";
    Ok(first(c, sql, [ms_in(now)], |row| row.get(0))?.unwrap_or(false))
}

/// Lets time pass: rows become visible. How many.
pub(crate) fn show(c: Db<'_>, now: u64) -> Sql<usize> {
    run(c, "UPDATE work SET wake_at = NULL WHERE wake_at <= ?1 AND token IS NULL", [ms_in(now)])
}

/// Rows whose lock has run out: in the order in which the locks ended, then in that of the queue.
pub(crate) fn ran_out(c: Db<'_>, now: u64) -> Sql<Vec<i64>> {
    let sql = "SELECT seq FROM work WHERE wake_at <= ?1 ORDER BY wake_at, position";
    all(c, sql, [ms_in(now)], |row| row.get(0))
}

/// Makes a row fetchable at another place of the queue.
pub(crate) fn move_to(c: Db<'_>, seq: i64, position: i64) -> Sql<()> {
    run(c, "UPDATE work SET wake_at = NULL, position = ?2 WHERE seq = ?1", [seq, position])?;
    Ok(())
}

/// Ends the locks of an owner that is gone.
pub(crate) fn expire_locks_of(c: Db<'_>, node: i64, now: u64) -> Sql<usize> {
    run(
        c,
        "UPDATE work SET wake_at = ?2 WHERE node = ?1 AND token IS NOT NULL AND wake_at > ?2",
        params![node, ms_in(now)],
    )
}

/// The same for one that died: at once if it was the first to have them, else after a pause of 50 ms
/// that doubles with every attempt, up to 1.6 s.
pub(crate) fn expire_locks_of_dead(c: Db<'_>, node: i64, now: u64) -> Sql<usize> {
    run(
        c,
        "UPDATE work SET wake_at = min(wake_at,
         ?2 + CASE WHEN attempts < 2 THEN 0 ELSE 50 << min(attempts - 2, 5) END)
         WHERE node = ?1 AND token IS NOT NULL AND wake_at > ?2",
        params![node, ms_in(now)],
    )
}

/// Activities that no valid lock covers.
pub(crate) fn count_unlocked(c: Db<'_>, now: u64) -> Sql<u64> {
    let count = first(
        c,
        "SELECT count(*) FROM work WHERE NOT (token IS NOT NULL AND ifnull(wake_at, 0) > ?1)",
        [ms_in(now)],
        |row| row.get(0),
    )?;
    Ok(count.map_or(0, super::ms_out))
}

/// Activities by owner execution and id, for dumps.
pub(crate) fn sample(c: Db<'_>, limit: i64) -> Sql<Vec<(i64, u64, u64)>> {
    all(c, "SELECT seq, execution, activity FROM work ORDER BY seq LIMIT ?1", [limit], |row| {
        Ok((row.get(0)?, id_out(row.get(1)?), id_out(row.get(2)?)))
    })
}
