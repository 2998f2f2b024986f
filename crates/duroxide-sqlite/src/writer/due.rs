//! When time alone changes something for those who wait.

use rusqlite::Connection;

use super::job::Queue;
use super::parked::Parked;
use super::thread::Writer;
use crate::tables::{Sql, first, ms_in, ms_out};

/// The next times at which something happens by itself, as a transaction left them. They hold until
/// somebody else writes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Due {
    turns: Option<i64>,
    work: Option<i64>,
}

impl Due {
    /// Looks them up: each is the first entry of an index.
    pub(super) fn look(c: &Connection, now: u64) -> Sql<Self> {
        let found = first(
            c,
            "SELECT
             (SELECT visible_at FROM hidden ORDER BY visible_at LIMIT 1),
             (SELECT wake_at FROM mailboxes WHERE wake_at IS NOT NULL ORDER BY wake_at LIMIT 1),
             (SELECT wake_at FROM work WHERE wake_at IS NOT NULL ORDER BY wake_at LIMIT 1),
             (SELECT until FROM sessions WHERE until > ?1 ORDER BY until LIMIT 1)",
            [ms_in(now)],
            |row| Ok([row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?]),
        )?;
        let [message, lock, activity, session]: [Option<i64>; 4] = found.unwrap_or_default();
        let earlier = |a: Option<i64>, b: Option<i64>| a.into_iter().chain(b).min();
        Ok(Self { turns: earlier(message, lock), work: earlier(activity, session) })
    }

    /// The first of those that somebody waits for.
    fn first(self, parked: &Parked) -> Option<u64> {
        let turns = self.turns.filter(|_| parked.waits_for(Queue::Turns));
        let work = self.work.filter(|_| parked.waits_for(Queue::Work));
        turns.into_iter().chain(work).min().map(ms_out)
    }
}

impl Writer {
    /// When time alone changes something for those who wait.
    pub(super) fn next_due(&mut self) -> Option<u64> {
        if self.due.is_none() {
            let (connection, now) = (self.connection.as_ref()?, self.config.clock.now_ms());
            // Should this fail, the next look around is not far, and the next fetch reports it.
            self.due = Due::look(connection, now).ok();
        }
        self.due?.first(&self.parked)
    }
}
