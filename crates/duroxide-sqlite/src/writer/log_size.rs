//! A log that has grown too long is cut off: reads are held back until those under way have ended, and
//! a checkpoint gets through.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::thread::Writer;
use crate::connection::{LOG_BYTES_MAX, cut_log};
use crate::store_files::StoreFiles;

/// How long reads that are under way are waited for. Others wait behind them.
const PATIENCE: Duration = Duration::from_secs(1);
/// Pause after that was in vain: somebody reads for long, here or in another process.
const PAUSE: Duration = Duration::from_secs(5);
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
}

impl LogSize {
    /// How long the writer may sleep.
    pub(super) fn sleep_limit(&self, limit: Option<Duration>) -> Option<Duration> {
        match self.closed_at {
            Some(_) => Some(limit.map_or(LOOK, |limit| limit.min(LOOK))),
            None => limit,
        }
    }
}

impl Writer {
    /// Looks at the length of the log, and does something about it if need be. Never waits for reads:
    /// they have the time until the next call.
    pub(super) fn tend_log(&mut self) {
        let Some(files) = self.config.files.clone() else { return };
        let now = Instant::now();
        if self.log_size.next_try.is_some_and(|at| now < at) && self.log_size.closed_at.is_none() {
            return;
        }
        if self.log_size.closed_at.is_none() {
            if files.log_bytes() <= u64::from(LOG_BYTES_MAX) {
                return;
            }
            files.gate.close();
            self.log_size.closed_at = Some(now);
        }
        let is_cut = files.gate.is_empty() && self.try_to_cut(&files, now);
        let is_over = self.log_size.closed_at.is_none_or(|since| since + PATIENCE <= now);
        if is_cut || is_over {
            files.gate.open();
            self.log_size.closed_at = None;
            self.log_size.next_try = (!is_cut).then(|| now + PAUSE);
        }
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
