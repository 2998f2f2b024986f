//! A log that has grown too long is cut off: reads are held back until those under way have ended, and
//! a checkpoint gets through.
//!
//! That cannot help while another process reads an old state. How far the log has been copied tells:
//! while that stays where it was when reads were held back in vain, they are let in. Where others read
//! all the time, but not the same state, the pauses get longer.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::thread::Writer;
use crate::connection::{LOG_BYTES_MAX, copied_of_log, cut_log};
use crate::store_files::StoreFiles;

/// How long reads that are under way are waited for. Others wait behind them.
const PATIENCE: Duration = Duration::from_secs(1);
/// Pause after that was in vain: a read takes long, here or in another process. It doubles with every
/// time.
const PAUSE: Duration = Duration::from_secs(5);
/// How often it doubles: up to 80 s, so that reads lose one second of these at most.
const DOUBLINGS_MAX: u32 = 4;
/// Pause between tries that fail because another process reads.
const TRY_AGAIN: Duration = Duration::from_millis(100);
/// How often the writer looks whether the reads have ended.
const LOOK: Duration = Duration::from_millis(2);

/// What is being done about the length of the log.
#[derive(Debug, Default)]
pub(super) struct LogSize {
    /// Since when reads are held back.
    closed_at: Option<Instant>,
    /// Not before.
    next_try: Option<Instant>,
    /// How often in a row it was in vain.
    in_vain: u32,
    /// How far the log had been copied the last time, when another process needed the rest.
    stuck_at: Option<i64>,
}

impl LogSize {
    /// How long the writer may sleep.
    pub(super) fn sleep_limit(&self, limit: Option<Duration>) -> Option<Duration> {
        match self.closed_at {
            Some(_) => Some(limit.map_or(LOOK, |limit| limit.min(LOOK))),
            None => limit,
        }
    }

    /// Whether it is time to look.
    fn is_due(&self, now: Instant) -> bool {
        self.closed_at.is_some() || self.next_try.is_none_or(|at| at <= now)
    }

    /// Whether to hold reads back, given how far the log has been copied: not if another process still
    /// reads the state it read when that was in vain.
    fn begin(&mut self, now: Instant, copied: Option<i64>) -> bool {
        if self.stuck_at.is_some() && self.stuck_at == copied {
            self.next_try = Some(now + PAUSE);
            return false;
        }
        self.closed_at = Some(now);
        true
    }

    /// Whether reads have been held back for long enough.
    fn is_over(&self, now: Instant) -> bool {
        self.closed_at.is_none_or(|since| since + PATIENCE <= now)
    }

    /// Reads go on, since the log is cut off.
    fn succeed(&mut self) {
        *self = Self::default();
    }

    /// Reads go on, and the log is as long as it was, copied so far.
    fn give_up(&mut self, now: Instant, copied: Option<i64>) {
        let pause = PAUSE * (1 << self.in_vain.min(DOUBLINGS_MAX));
        self.in_vain += 1;
        (self.closed_at, self.next_try, self.stuck_at) = (None, Some(now + pause), copied);
    }
}

impl Writer {
    /// Looks at the length of the log, and does something about it if need be. Never waits for reads:
    /// they have the time until the next call.
    pub(super) fn tend_log(&mut self) {
        let Some(files) = self.config.files.clone() else { return };
        let now = Instant::now();
        if !self.log_size.is_due(now) {
            return;
        }
        if self.log_size.closed_at.is_none() {
            if files.log_bytes() <= u64::from(LOG_BYTES_MAX) {
                return self.log_size.succeed();
            }
            let copied = self.log_size.stuck_at.and_then(|_| self.copied_of_log());
            if !self.log_size.begin(now, copied) {
                return;
            }
            files.gate.close();
        }
        let (is_empty, is_over) = (files.gate.is_empty(), self.log_size.is_over(now));
        if is_empty && self.try_to_cut(&files, now) {
            files.gate.open();
            self.log_size.succeed();
        } else if is_over {
            files.gate.open();
            // Reads of this process that have not ended are over some time.
            let copied = if is_empty { self.copied_of_log() } else { None };
            self.log_size.give_up(now, copied);
        }
    }

    /// How far the log has been copied into the database; `None` if that cannot be told.
    fn copied_of_log(&mut self) -> Option<i64> {
        self.check_files(StoreFiles::check).ok()?;
        copied_of_log(self.connection.as_ref()?.connection()).ok()
    }

    fn try_to_cut(&mut self, files: &Arc<StoreFiles>, now: Instant) -> bool {
        if self.log_size.next_try.is_some_and(|at| now < at) {
            return false;
        }
        self.log_size.next_try = Some(now + TRY_AGAIN);
        // What is copied into the database must be its own log.
        if self.check_files(StoreFiles::check).is_err() {
            return true;
        }
        let Some(connection) = &self.connection else { return true };
        match cut_log(connection.connection()) {
            Ok(is_cut) => is_cut,
            Err(error) => {
                let path = files.path().display();
                tracing::warn!(target: "duroxide::providers", %error, %path, "log not cut off");
                false
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use rusqlite::Connection;

    use super::*;
    use crate::connection::open_writer;
    use crate::options::Durability;
    use crate::url::Location;

    /// Looks every second for so long, always in vain; for how many seconds reads were held back.
    fn held_back(seconds: u32, copied: impl Fn(u32) -> Option<i64>) -> u32 {
        let (mut log, began, mut held_back) = (LogSize::default(), Instant::now(), 0);
        for second in 0..seconds {
            let now = began + Duration::from_secs(1) * second;
            if log.closed_at.is_some() {
                held_back += 1;
                assert!(log.is_over(now));
                log.give_up(now, copied(second));
            } else if log.is_due(now) {
                log.begin(now, copied(second));
            }
        }
        held_back
    }

    #[test]
    fn r10_28_reads_are_held_back_once_for_a_state_that_another_process_reads() {
        assert_eq!(held_back(3600, |_| Some(7)), 1);
        // Every ten minutes it is another one.
        assert_eq!(held_back(3600, |second| Some(i64::from(second / 600))), 6);
    }

    #[test]
    fn r10_28_reads_lose_little_where_others_read_all_the_time() {
        let lost = held_back(3600, |second| Some(i64::from(second)));
        assert!((40..=50).contains(&lost), "{lost} s of an hour");
        assert_eq!(held_back(3600, |_| None), lost, "where it cannot be told, too");
    }

    #[test]
    fn r10_28_after_a_cut_all_begins_anew() {
        let (mut log, now) = (LogSize::default(), Instant::now());
        (0..9).for_each(|_| log.give_up(now, Some(7)));
        assert_eq!(log.next_try, Some(now + PAUSE * 16));
        assert!(!log.begin(now, Some(7)) && log.begin(now, Some(8)));
        log.succeed();
        assert!(log.begin(now, Some(7)));
        log.give_up(now, Some(7));
        assert_eq!(log.next_try, Some(now + PAUSE));
    }

    #[test]
    fn r10_28_how_far_the_log_is_copied_tells_whether_an_old_state_is_read() {
        let path = std::env::temp_dir().join(format!("log-{:x}.db", crate::owners::fresh_id()));
        let location = Location::File { path: path.clone(), create: true };
        let writer = open_writer(&location, Durability::Process).unwrap();
        writer.execute_batch("CREATE TABLE t (n)").unwrap();
        let write = || {
            writer.execute("INSERT INTO t VALUES (zeroblob(9000))", []).unwrap();
        };
        write();
        let reader = Connection::open(&path).unwrap();
        reader.execute_batch("BEGIN; SELECT count(*) FROM t").unwrap();
        write();
        let stuck_at = copied_of_log(&writer).unwrap();
        assert!(!cut_log(&writer).unwrap());
        (0..9).for_each(|_| write());
        assert_eq!(copied_of_log(&writer).unwrap(), stuck_at, "the same state is read");
        reader.execute_batch("COMMIT; BEGIN; SELECT count(*) FROM t").unwrap();
        write();
        assert_ne!(copied_of_log(&writer).unwrap(), stuck_at, "another state is read");
        reader.execute_batch("COMMIT").unwrap();
        assert!(cut_log(&writer).unwrap());
        drop((reader, writer));
        std::fs::remove_file(&path).unwrap();
    }
}
