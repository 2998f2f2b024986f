//! The thread: wait, gather, commit, answer; and look around now and then.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use duroxide_core::clock::Clock;
use rusqlite::Connection;

use super::awaiting_sync::AwaitingSync;
use super::handle::{Message, WriterHandle};
use super::log_size::LogSize;
use super::parked::Parked;
use super::queue_forecast::QueueForecasts;
use super::queued_op::QueuedOp;
use super::watch::Watch;
use crate::commit_board::CommitBoard;
use crate::database::Database;
use crate::error::SqliteError;
use crate::faults;
use crate::options::Durability;
use crate::owners::Owner;
use crate::store_files::StoreFiles;
use crate::tx::Settings;
use crate::url::Location;

/// Operations in one transaction at most: a bound on how long the first of them waits for the last.
const BATCH_MAX: usize = 512;

/// How long the writer stays awake after it has handed something out: about twice the time it takes
/// to wake another thread and be woken by it.
const AWAKE: Duration = Duration::from_micros(200);

/// Operations in one transaction up to which there is little to do.
const CALM: usize = 4;

/// What a writer needs to know.
pub(crate) struct WriterConfig {
    pub(crate) location: Location,
    /// The files that are open; `None` for a store in memory.
    pub(crate) files: Option<Arc<StoreFiles>>,
    pub(crate) durability: Durability,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) settings: Settings,
    pub(crate) owner: Owner,
    pub(crate) board: Arc<CommitBoard>,
    pub(crate) faults: faults::Plan,
}

/// Starts the writer on its connection.
pub(crate) fn spawn(
    connection: Connection,
    config: WriterConfig,
) -> std::io::Result<(WriterHandle, JoinHandle<()>)> {
    let (sender, inbox) = channel();
    let builder = std::thread::Builder::new().name("duroxide-sqlite".to_owned());
    let thread = builder.spawn(move || Writer::new(connection, config, inbox).run())?;
    Ok((WriterHandle::new(sender), thread))
}

/// The writer's state; it belongs to one thread.
pub(super) struct Writer {
    /// `None` while the file cannot be opened.
    pub(super) connection: Option<Database>,
    pub(super) config: WriterConfig,
    pub(super) parked: Parked,
    pub(super) awaiting_sync: AwaitingSync,
    pub(super) watch: Watch,
    /// Number of the next transaction.
    pub(super) next_batch: i64,
    /// Whether commits wait for the disk at present.
    pub(super) waits_for_disk: bool,
    pub(super) mended_at: Option<Instant>,
    pub(super) log_size: LogSize,
    /// Until when not to sleep, since the next request may come soon.
    awake_until: Option<Instant>,
    inbox: Receiver<Message>,
    closing: bool,
    /// `None` if it has to be looked up.
    pub(super) forecasts: Option<QueueForecasts>,
    /// When parked fetches should look again, though nothing was written.
    due_at: Option<u64>,
}

impl Writer {
    fn new(connection: Connection, config: WriterConfig, inbox: Receiver<Message>) -> Self {
        let waits_for_disk = config.durability == Durability::Full;
        Self {
            watch: Watch::new(&config.location, &connection),
            connection: Some(Database::of(connection)),
            parked: Parked::default(),
            awaiting_sync: AwaitingSync::default(),
            next_batch: 1,
            waits_for_disk,
            mended_at: None,
            log_size: LogSize::default(),
            config,
            awake_until: None,
            inbox,
            closing: false,
            forecasts: None,
            due_at: None,
        }
    }

    fn run(mut self) {
        faults::enter(&self.config.faults);
        // What a process that died has left is free from the first fetch on.
        self.remove_dead_owners();
        while !self.closing {
            let batch = self.gather();
            self.look_around();
            let is_due = self.is_due();
            let batch = self.park_without_work(batch);
            let ops = batch.len();
            if ops != 0 {
                self.process(batch);
            }
            if is_due {
                self.serve_parked();
            }
            if self.answer_parked() && ops <= CALM {
                self.awake_until = Some(Instant::now() + AWAKE);
            }
            if self.awaiting_sync.is_due(Instant::now()) {
                self.sync_overdue();
            }
            self.tend_log();
        }
        self.sync_overdue();
        self.parked.drain().into_iter().for_each(|op| op.fail(&SqliteError::Closed));
        self.sign_off();
    }

    /// Waits for something to do, then takes all there is.
    fn gather(&mut self) -> Vec<Box<dyn QueuedOp>> {
        let mut batch = Vec::new();
        match self.receive() {
            Ok(message) => self.take(message, &mut batch),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => self.closing = true,
        }
        while batch.len() < BATCH_MAX && !self.closing {
            match self.inbox.try_recv() {
                Ok(message) => self.take(message, &mut batch),
                Err(_) => break,
            }
        }
        batch
    }

    /// The next message. A caller that was just handed a turn or an activity often sends the next
    /// message before this thread could fall asleep and be woken, so for a moment it stays awake. Not
    /// when there is much to do: other threads need the processor more.
    fn receive(&mut self) -> Result<Message, RecvTimeoutError> {
        while self.awake_until.is_some_and(|until| Instant::now() < until) {
            if let Ok(message) = self.inbox.try_recv() {
                return Ok(message);
            }
            std::thread::yield_now();
        }
        let limit = self.sleep_limit();
        match self.log_size.sleep_limit(limit) {
            None => self.inbox.recv().map_err(|_| RecvTimeoutError::Disconnected),
            Some(limit) => self.inbox.recv_timeout(limit),
        }
    }

    fn take(&mut self, message: Message, batch: &mut Vec<Box<dyn QueuedOp>>) {
        match message {
            Message::QueuedOp(op) if op.is_abandoned() => {}
            Message::QueuedOp(op) => batch.push(op),
            Message::Watch => {}
            Message::Close => self.closing = true,
        }
    }

    /// How long to sleep if no message comes; `None` is for ever.
    fn sleep_limit(&mut self) -> Option<Duration> {
        let now = Instant::now();
        let until_sync = self.awaiting_sync.until_due(now);
        if self.parked.is_empty() && !self.config.board.is_watched() {
            return until_sync;
        }
        let until_deadline =
            self.parked.first_deadline().map(|deadline| deadline.saturating_duration_since(now));
        self.due_at = self.next_due();
        let until_due = self
            .due_at
            .map(|due| Duration::from_millis(due.saturating_sub(self.config.clock.now_ms())));
        let until_look = self.watch.next_look(now);
        [until_sync, until_deadline, until_due, until_look].into_iter().flatten().min()
    }

    /// Whether parked fetches should look again, though nothing was written.
    fn is_due(&self) -> bool {
        // Looking is also how a file that was lost is opened again.
        self.connection.is_none() || self.due_at.is_some_and(|at| at <= self.config.clock.now_ms())
    }

    /// Answers the fetches that have waited long enough, or have what they waited for. Returns whether
    /// anything was handed out.
    fn answer_parked(&mut self) -> bool {
        let mut has_handed_out = false;
        loop {
            let over = self.parked.take_served(Instant::now());
            if over.is_empty() {
                return has_handed_out;
            }
            has_handed_out |= over.iter().any(|op| op.is_done());
            // A fetch that was parked without a look has one before it is answered.
            let (over, hasty): (Vec<_>, Vec<_>) =
                over.into_iter().partition(|op| op.has_looked() || op.is_abandoned());
            if !hasty.is_empty() {
                self.process(hasty);
            }
            // What is given back for callers that are gone may serve other fetches.
            self.answer(over);
        }
    }
}
