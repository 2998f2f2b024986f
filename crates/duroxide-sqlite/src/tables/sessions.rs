//! Which worker a session's activities belong to, and for how long (R8.80 – R8.88).

use rusqlite::params;

use super::{Sql, all, first, ms_in, run, text, work};
use crate::database::Db;

/// A worker's claim on a session.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Claim<'a> {
    pub(crate) owner: &'a str,
    pub(crate) node: i64,
    pub(crate) now: u64,
    pub(crate) until: u64,
}

/// Claims or refreshes a session (R8.82); writes a new owner to its activities.
pub(crate) fn claim(c: Db<'_>, session: &str, claim: Claim<'_>) -> Sql<()> {
    let holder =
        first(c, "SELECT owner FROM sessions WHERE id = ?1 AND NOT lapsed", [session], |row| {
            text(row, 0)
        })?;
    run(
        c,
        "INSERT INTO sessions (id, owner, until, last_activity, node) VALUES (?1, ?2, ?3, ?4, ?5)
         ON CONFLICT (id) DO UPDATE SET owner = excluded.owner, until = excluded.until,
         last_activity = excluded.last_activity, node = excluded.node, lapsed = 0",
        params![session, claim.owner, ms_in(claim.until), ms_in(claim.now), claim.node],
    )?;
    if holder.as_deref() == Some(claim.owner) {
        return Ok(());
    }
    work::set_holder(c, session, Some(claim.owner))
}

/// Lets time pass: leases run out. How many.
pub(crate) fn lapse(c: Db<'_>, now: u64) -> Sql<usize> {
    let sql = "SELECT id FROM sessions WHERE lapsed = 0 AND until <= ?1";
    let lapsed = all(c, sql, [ms_in(now)], |row| text(row, 0))?;
    for session in &lapsed {
        run(c, "UPDATE sessions SET lapsed = 1 WHERE id = ?1", [session])?;
        work::set_holder(c, session, None)?;
    }
    Ok(lapsed.len())
}

/// The session was used, if its lease holds (R8.85).
pub(crate) fn touch(c: Db<'_>, session: &str, now: u64) -> Sql<()> {
    run(
        c,
        "UPDATE sessions SET last_activity = ?2 WHERE id = ?1 AND until > ?2",
        params![session, ms_in(now)],
    )?;
    Ok(())
}

/// Extends an owner's valid, recently used leases; how many there were (R8.86).
pub(crate) fn renew(c: Db<'_>, owner: &str, now: u64, idle_since: u64, until: u64) -> Sql<usize> {
    run(
        c,
        "UPDATE sessions SET until = ?4 WHERE owner = ?1 AND until > ?2 AND last_activity > ?3",
        params![owner, ms_in(now), ms_in(idle_since), ms_in(until)],
    )
}

/// Forgets sessions whose lease ran out and that no activity needs (R8.87).
pub(crate) fn delete_orphaned(c: Db<'_>, now: u64) -> Sql<usize> {
    run(
        c,
        "DELETE FROM sessions WHERE until <= ?1
         AND NOT EXISTS (SELECT 1 FROM work WHERE work.session = sessions.id)",
        [ms_in(now)],
    )
}

/// Ends the leases of an owner that is gone.
pub(crate) fn expire_leases_of(c: Db<'_>, node: i64, now: u64) -> Sql<usize> {
    run(
        c,
        "UPDATE sessions SET until = ?2 WHERE node = ?1 AND until > ?2",
        params![node, ms_in(now)],
    )
}
