//! Answers held back: committed, but perhaps not on the disk yet.
//!
//! A message does nothing by itself: a turn reads it, and what the turn brings about is synced
//! before any other transaction sees it, together with everything before it in the log. So a message
//! whose turn is about to run need not be synced on its own. It is committed at once, the turn begins,
//! and the sender of the message is answered when the turn's commit has reached the disk, or, if that
//! takes too long, after a sync of its own.

use std::time::{Duration, Instant};

use super::queued_op::{Queue, QueuedOp};
use super::thread::Writer;
use crate::connection::path_of;
use crate::database::Db;
use crate::error::SqliteError;
use crate::ops::Lasts;
use crate::options::Durability;
use crate::store_files::StoreFiles;
use crate::tables::nodes;
use crate::url::Location;

/// How long an answer is held back at most: a few syncs of a good disk.
const SYNC_DELAY_MAX: Duration = Duration::from_millis(1);

/// Operations that are committed and wait for a sync, with the number of their transaction.
#[derive(Default)]
pub(super) struct AwaitingSync {
    ops: Vec<(i64, Box<dyn QueuedOp>)>,
    due_at: Option<Instant>,
}

impl AwaitingSync {
    /// Whether the first of them has waited long enough.
    pub(super) fn is_due(&self, now: Instant) -> bool {
        self.due_at.is_some_and(|due| due <= now)
    }

    /// How long it may still wait.
    pub(super) fn until_due(&self, now: Instant) -> Option<Duration> {
        self.due_at.map(|due| due.saturating_duration_since(now))
    }

    pub(super) fn add(&mut self, batch: i64, op: Box<dyn QueuedOp>) {
        self.due_at.get_or_insert_with(|| Instant::now() + SYNC_DELAY_MAX);
        self.ops.push((batch, op));
    }

    fn take(&mut self) -> Vec<(i64, Box<dyn QueuedOp>)> {
        self.due_at = None;
        std::mem::take(&mut self.ops)
    }
}

impl Writer {
    /// Whether the next transaction has to be synced before any other sees it.
    pub(super) fn needs_sync(&self, ops: &[Box<dyn QueuedOp>]) -> bool {
        match ops.iter().map(|op| op.lasts()).max().unwrap_or(Lasts::No) {
            Lasts::BeforeSeen => true,
            // Whether a fetch waits for a turn now tells whether one may begin at once.
            Lasts::BeforeAnswer => {
                !self.can_delay_sync()
                    || !self.waits_for_turns(ops)
                    || self.awaiting_sync.is_due(Instant::now())
            }
            Lasts::No => self.awaiting_sync.is_due(Instant::now()),
        }
    }

    /// Whether a turn was handed out by the transaction that has just ended.
    pub(super) fn has_begun_turns(&self, ops: &[Box<dyn QueuedOp>]) -> bool {
        let mut fetches = ops.iter().chain(self.parked.iter());
        fetches.any(|op| op.waits_for(Queue::Turns) && op.is_done())
    }

    /// Answers the operations that were held back: what they did is on the disk.
    pub(super) fn answer_awaiting_sync(&mut self) {
        let ops = self.awaiting_sync.take().into_iter().map(|(_, op)| op).collect();
        self.answer(ops);
    }

    /// Brings what is held back to the disk, by a sync of its own.
    pub(super) fn sync_overdue(&mut self) {
        if self.awaiting_sync.ops.is_empty() {
            return;
        }
        if let Some(Err(error)) = self.config.files.as_ref().map(|files| files.sync()) {
            // Whether the commits are there is asked of the file, opened anew.
            tracing::warn!(target: "duroxide::providers", %error, "log not synced");
            self.close_file();
        }
        match self.reopen_if_needed().and_then(|()| self.check_files(StoreFiles::check_commit)) {
            Ok(()) => self.answer_awaiting_sync(),
            Err(error) => self.fail_awaiting_sync(&error),
        }
    }

    /// Fails the operations that were held back: they did not happen.
    pub(super) fn fail_awaiting_sync(&mut self, error: &SqliteError) {
        self.awaiting_sync.take().into_iter().for_each(|(_, op)| op.fail(error));
    }

    /// After the file was opened anew: what it does not have did not happen.
    pub(super) fn recheck_awaiting_sync(&mut self) {
        if self.awaiting_sync.ops.is_empty() {
            return;
        }
        let connection = self.connection.as_ref();
        let last = connection
            .and_then(|c| nodes::last_batch(Db::of(c.connection()), self.config.owner.id).ok());
        let last = last.flatten().unwrap_or(0);
        let path = path_of(&self.config.location).to_owned();
        let reason = "the commit was lost before it reached the disk".to_owned();
        let error = SqliteError::Io { path, reason };
        for (batch, op) in self.awaiting_sync.take() {
            match batch {
                batch if batch <= last => self.awaiting_sync.add(batch, op),
                _ => op.fail(&error),
            }
        }
    }

    /// Whether there is a disk to wait for.
    pub(super) fn can_delay_sync(&self) -> bool {
        self.config.durability == Durability::Full && self.config.location != Location::Memory
    }

    fn waits_for_turns(&self, ops: &[Box<dyn QueuedOp>]) -> bool {
        ops.iter().chain(self.parked.iter()).any(|op| op.waits_for(Queue::Turns))
    }
}
