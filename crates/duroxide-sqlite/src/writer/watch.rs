//! Looking around: have other processes changed the file, do they still live, is the file still
//! there? Only while a fetch or a client waits.

use std::time::{Duration, Instant};

use rusqlite::Connection;

use super::thread::Writer;
use crate::url::Location;

/// Pause between looks while no other process seems to have the file open.
const ALONE: Duration = Duration::from_millis(100);
/// Pause between looks while other processes have the file open.
const IN_COMPANY: Duration = Duration::from_millis(10);
/// Pause between checks whether the other processes live.
const PULSE: Duration = Duration::from_millis(250);

/// What was seen last.
pub(super) struct Watch {
    /// A store in memory has no other processes to look out for.
    is_shared: bool,
    data_version: Option<i64>,
    in_company: bool,
    /// `None` until the first look, which comes with the first operation: a process that was started again
    /// finds what it held before free at once.
    looked_at: Option<Instant>,
    pulse_at: Option<Instant>,
}

impl Watch {
    pub(super) fn new(location: &Location, connection: &Connection) -> Self {
        Self {
            is_shared: *location != Location::Memory,
            data_version: data_version(connection),
            in_company: false,
            looked_at: None,
            pulse_at: None,
        }
    }

    /// How long until the next look.
    pub(super) fn next_look(&self, now: Instant) -> Option<Duration> {
        let next = self.looked_at.map_or(now, |at| at + self.interval());
        self.is_shared.then(|| next.saturating_duration_since(now))
    }

    /// Other processes were seen, or not.
    pub(super) fn note_company(&mut self, in_company: bool) {
        self.in_company = in_company;
    }

    /// The connection is a new one.
    pub(super) fn forget(&mut self) {
        self.data_version = None;
    }

    fn interval(&self) -> Duration {
        if self.in_company { IN_COMPANY } else { ALONE }
    }
}

impl Writer {
    /// Looks around if it is time to.
    pub(super) fn look_around(&mut self) {
        let now = Instant::now();
        let is_time = self.watch.next_look(now).is_some_and(|pause| pause.is_zero());
        if !is_time {
            return;
        }
        self.watch.looked_at = Some(now);
        self.notice_changes();
        if self.watch.pulse_at.is_none_or(|at| at + PULSE <= now) {
            self.watch.pulse_at = Some(now);
            self.notice_loss();
            self.remove_dead_owners();
        }
    }

    /// Other processes have committed something: it may be for a fetch or a client that waits here.
    fn notice_changes(&mut self) {
        let Some(connection) = &self.connection else { return };
        let version = data_version(connection.connection());
        if version.is_some() && self.watch.data_version != version {
            self.watch.data_version = version;
            self.watch.in_company = true;
            self.forecasts = None;
            self.config.board.notify_all();
            self.serve_parked();
        }
    }

    /// A file that was deleted or replaced is no longer this store.
    fn notice_loss(&mut self) {
        let lost = self.config.files.as_ref().and_then(|files| files.check_names().err());
        if let Some(error) = lost {
            self.close_file();
            self.fail_awaiting_sync(&error);
            self.parked.drain().into_iter().for_each(|op| op.fail(&error));
        }
    }
}

fn data_version(connection: &Connection) -> Option<i64> {
    let mut statement = connection.prepare_cached("PRAGMA data_version").ok()?;
    statement.query_row([], |row| row.get(0)).ok()
}
