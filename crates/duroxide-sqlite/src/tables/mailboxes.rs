//! What can be done with an instance's messages, and which lock is on them.

use rusqlite::{Row, params};

use super::{Sql, all, first, ms_in, run};
use crate::database::Db;
use crate::token::Secret;

/// What can be done with a mailbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(i64)]
pub(crate) enum State {
    /// Nothing: its lock ran out and it is empty, or its start is not due yet.
    Resting = 0,
    /// A turn can be fetched.
    Ready = 1,
    /// A turn is locked.
    Locked = 2,
    /// Messages for no instance, which a start may yet follow (R8.29).
    AwaitingStart = 3,
    /// Queue messages for no instance (R8.28).
    Undeliverable = 4,
    /// Nothing until `wake_at`: a turn that had left messages behind was given back (R8.149).
    Waiting = 5,
}

impl State {
    fn from_stored(stored: i64) -> Self {
        match stored {
            1 => Self::Ready,
            2 => Self::Locked,
            3 => Self::AwaitingStart,
            4 => Self::Undeliverable,
            5 => Self::Waiting,
            _ => Self::Resting,
        }
    }
}

/// The mailbox of one instance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Mailbox {
    pub(crate) state: State,
    pub(crate) pin: i64,
    /// Place among the ready ones: its oldest message's, unless it was moved.
    pub(crate) head: Option<i64>,
    /// End of the lock, of the time that messages for no instance are kept, or of the wait.
    pub(crate) wake_at: Option<i64>,
    /// The latest lock's secret, also after the lock ran out (R8.67).
    pub(crate) token: Option<Secret>,
    pub(crate) node: Option<i64>,
    /// Where it stands at the earliest, since it was moved behind others: a lock on it ended without
    /// a commit, and there was no commit since (R8.146).
    pub(crate) moved_to: Option<i64>,
    /// What the latest lock was taken with.
    pub(crate) batch: Batch,
}

/// Which messages a lock has: those up to a position that did not come after it was taken, and
/// perhaps another one behind them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Batch {
    /// `None` is all.
    pub(crate) upto: Option<i64>,
    pub(crate) extra: Option<i64>,
    /// Whether there were others that could be read (R8.147).
    pub(crate) leaves_some: bool,
}

/// What of a mailbox decides where a message goes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MailboxSummary {
    pub(crate) state: State,
    pub(crate) head: Option<i64>,
    moved_to: Option<i64>,
    /// Whether it is locked, or a lock on it ran out.
    pub(crate) was_locked: bool,
}

impl MailboxSummary {
    /// Where it stands with this oldest message.
    pub(crate) fn place(&self, oldest: i64) -> i64 {
        self.moved_to.map_or(oldest, |moved_to| moved_to.max(oldest))
    }
}

impl Mailbox {
    /// A mailbox that is not locked.
    pub(crate) fn resting() -> Self {
        Self {
            state: State::Resting,
            pin: 0,
            head: None,
            wake_at: None,
            token: None,
            node: None,
            moved_to: None,
            batch: Batch { upto: None, extra: None, leaves_some: false },
        }
    }

    /// Where it stands with this oldest message.
    pub(crate) fn place(&self, oldest: i64) -> i64 {
        self.moved_to.map_or(oldest, |moved_to| moved_to.max(oldest))
    }

    /// Whether it is locked and the lock has not run out.
    pub(crate) fn is_locked(&self, now: u64) -> bool {
        self.state == State::Locked && self.wake_at.is_some_and(|until| ms_in(now) < until)
    }
}

fn read(row: &Row<'_>) -> Sql<Mailbox> {
    Ok(Mailbox {
        state: State::from_stored(row.get(0)?),
        pin: row.get(1)?,
        head: row.get(2)?,
        wake_at: row.get(3)?,
        token: row.get(4)?,
        node: row.get(5)?,
        moved_to: row.get(6)?,
        batch: Batch { upto: row.get(7)?, extra: row.get(8)?, leaves_some: row.get(9)? },
    })
}

pub(crate) fn get(c: Db<'_>, instance: i64) -> Sql<Option<Mailbox>> {
    first(
        c,
        "SELECT state, pin, head, wake_at, token, node, moved_to, upto, extra, leaves_some
         FROM mailboxes WHERE instance = ?1",
        [instance],
        read,
    )
}

/// The same without what is not needed to deliver a message.
pub(crate) fn mailbox_summary(c: Db<'_>, instance: i64) -> Sql<Option<MailboxSummary>> {
    let sql = "SELECT state, head, moved_to, token IS NOT NULL FROM mailboxes WHERE instance = ?1";
    first(c, sql, [instance], |row| {
        let state = State::from_stored(row.get(0)?);
        let (head, moved_to, was_locked) = (row.get(1)?, row.get(2)?, row.get(3)?);
        Ok(MailboxSummary { state, head, moved_to, was_locked })
    })
}

/// Whether a lock on it ended without a commit or a give-back since the last commit (R8.146).
pub(crate) fn is_moved(c: Db<'_>, instance: i64) -> Sql<bool> {
    Ok(get(c, instance)?.is_some_and(|mailbox| mailbox.moved_to.is_some()))
}

pub(crate) fn put(c: Db<'_>, instance: i64, mailbox: &Mailbox) -> Sql<()> {
    run(
        c,
        "INSERT INTO mailboxes (instance, state, pin, head, wake_at, token, node, moved_to,
         upto, extra, leaves_some)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)
         ON CONFLICT (instance) DO UPDATE SET state = excluded.state, pin = excluded.pin,
         head = excluded.head, wake_at = excluded.wake_at, token = excluded.token,
         node = excluded.node, moved_to = excluded.moved_to, upto = excluded.upto,
         extra = excluded.extra, leaves_some = excluded.leaves_some",
        params![
            instance,
            mailbox.state as i64,
            mailbox.pin,
            mailbox.head,
            mailbox.wake_at,
            mailbox.token,
            mailbox.node,
            mailbox.moved_to,
            mailbox.batch.upto,
            mailbox.batch.extra,
            mailbox.batch.leaves_some
        ],
    )?;
    Ok(())
}

/// The mailbox of a new instance whose start is its first message.
pub(crate) fn insert_ready(c: Db<'_>, instance: i64, head: i64) -> Sql<()> {
    let sql = "INSERT INTO mailboxes (instance, state, pin, head) VALUES (?1, 1, 0, ?2)";
    run(c, sql, [instance, head])?;
    Ok(())
}

/// Locks a ready mailbox.
pub(crate) fn lock(c: Db<'_>, instance: i64, lock: &Lock, batch: Batch) -> Sql<()> {
    run(
        c,
        "UPDATE mailboxes SET state = 2, pin = 0, head = NULL, wake_at = ?2, token = ?3, node = ?4,
         upto = ?5, extra = ?6, leaves_some = ?7 WHERE instance = ?1",
        params![
            instance,
            ms_in(lock.until),
            lock.token,
            lock.node,
            batch.upto,
            batch.extra,
            batch.leaves_some
        ],
    )?;
    Ok(())
}

/// Which node holds a mailbox, by which secret, and until when.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Lock {
    pub(crate) token: Secret,
    pub(crate) until: u64,
    pub(crate) node: i64,
}

/// Moves a ready mailbox forward.
pub(crate) fn set_head(c: Db<'_>, instance: i64, head: i64) -> Sql<()> {
    run(c, "UPDATE mailboxes SET head = ?2 WHERE instance = ?1", [instance, head])?;
    Ok(())
}

/// Removes a mailbox that has no messages. Whether it did.
pub(crate) fn delete_if_empty(c: Db<'_>, instance: i64) -> Sql<bool> {
    let deleted = run(
        c,
        "DELETE FROM mailboxes WHERE instance = ?1
         AND NOT EXISTS (SELECT 1 FROM messages WHERE instance = ?1)",
        [instance],
    )?;
    Ok(0 < deleted)
}

pub(crate) fn delete(c: Db<'_>, instance: i64) -> Sql<()> {
    run(c, "DELETE FROM mailboxes WHERE instance = ?1", [instance])?;
    Ok(())
}

/// The ready mailboxes with the oldest messages among those with this pin: (head, instance).
pub(crate) fn oldest_ready(c: Db<'_>, pin: i64, limit: i64) -> Sql<Vec<(i64, i64)>> {
    all(
        c,
        "SELECT head, instance FROM mailboxes WHERE pin = ?1 AND head IS NOT NULL
         ORDER BY head LIMIT ?2",
        [pin, limit],
        |row| Ok((row.get(0)?, row.get(1)?)),
    )
}

/// Mailboxes that time has changed, and when.
pub(crate) fn due(c: Db<'_>, now: u64, limit: i64) -> Sql<Vec<(i64, i64)>> {
    all(
        c,
        "SELECT wake_at, instance FROM mailboxes WHERE wake_at <= ?1 ORDER BY wake_at LIMIT ?2",
        params![ms_in(now), limit],
        |row| Ok((row.get(0)?, row.get(1)?)),
    )
}

/// Mailboxes of instances that only queue messages refer to (R8.28).
pub(crate) fn undeliverable(c: Db<'_>, limit: i64) -> Sql<Vec<i64>> {
    all(c, "SELECT instance FROM mailboxes WHERE state = 4 LIMIT ?1", [limit], |row| row.get(0))
}

/// Ends the locks of an owner that is gone.
pub(crate) fn expire_locks_of(c: Db<'_>, node: i64, now: u64) -> Sql<usize> {
    run(
        c,
        "UPDATE mailboxes SET wake_at = ?2 WHERE node = ?1 AND state = 2 AND wake_at > ?2",
        params![node, ms_in(now)],
    )
}

/// The same for one that died: at once if it was the first to have them, else after a pause of 50 ms
/// that doubles with every attempt, up to 1.6 s. The oldest message tells how many there were.
pub(crate) fn expire_locks_of_dead(c: Db<'_>, node: i64, now: u64) -> Sql<usize> {
    run(
        c,
        "UPDATE mailboxes SET wake_at = min(wake_at, ?2 + ifnull((
         SELECT CASE WHEN attempts < 1 THEN 0 ELSE 50 << min(attempts - 1, 5) END
         FROM messages m WHERE m.instance = mailboxes.instance ORDER BY seq LIMIT 1), 0))
         WHERE node = ?1 AND state = 2 AND wake_at > ?2",
        params![node, ms_in(now)],
    )
}
