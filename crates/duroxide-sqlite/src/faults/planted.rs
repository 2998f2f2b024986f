//! The plan of a store under test.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rusqlite::{Connection, Statement, StatementStatus, ffi};

use crate::tables::Sql;

/// A store's plan, shared by its threads.
pub(crate) type Plan = Arc<Faults>;

/// 0 is the usual limit.
static BUSY_LIMIT_MS: AtomicU64 = AtomicU64::new(0);

thread_local! {
    static CURRENT: RefCell<Option<Plan>> = const { RefCell::new(None) };
    /// Steps of this thread's statements since its last read has ended.
    static STEPS: Cell<u64> = const { Cell::new(0) };
}

/// How a commit goes wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CommitFault {
    /// It fails and did not happen.
    Before,
    /// It happens, but is reported as failed.
    After,
}

/// What a store was seen to do.
#[derive(Debug, Clone, Default)]
pub struct Seen {
    /// Statements that ran, with the steps that SQLite's machine took for them in all.
    pub statements: BTreeMap<&'static str, u64>,
    /// For each commit: whether it was to be synced, and `PRAGMA synchronous` at that moment.
    pub commits: Vec<(bool, i64)>,
    /// For each of them: rows that the writer had changed by then, in all.
    pub rows_changed: Vec<u64>,
    /// For each read: steps that SQLite's machine took for it.
    pub reads: Vec<u64>,
    /// How often the log was synced apart from a commit.
    pub syncs: u64,
}

/// Faults to come, and what is being watched.
#[derive(Debug, Default)]
pub struct Faults {
    plan: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Statements until the next one fails, and its result code.
    statement: Option<(u64, i32)>,
    commits: VecDeque<(CommitFault, i32)>,
    /// Tries to open the file again that fail.
    reopenings: u64,
    /// Syncs of the log that fail.
    syncs: u64,
    /// Pages the database may have, to be told to SQLite.
    pages_max: Option<u32>,
    fired: u64,
    watched: Option<Seen>,
}

impl Faults {
    /// Lets the n-th statement from now fail with a result code; 1 is the next.
    pub fn fail_statement(&self, n: u64, code: i32) {
        self.lock().statement = Some((n, code));
    }

    /// Lets the next commit fail, after those already planned.
    pub fn fail_commit(&self, fault: CommitFault, code: i32) {
        self.lock().commits.push_back((fault, code));
    }

    /// Lets the next try to open the file again fail.
    pub fn fail_reopening(&self) {
        self.lock().reopenings += 1;
    }

    /// Lets the next sync of the log, apart from a commit, fail.
    pub fn fail_sync(&self) {
        self.lock().syncs += 1;
    }

    /// Lets the database not grow beyond this many pages, or its present size if that is larger.
    pub fn limit_pages(&self, pages_max: u32) {
        self.lock().pages_max = Some(pages_max);
    }

    /// How many faults have happened; those that have not are called off.
    pub fn fired(&self) -> u64 {
        let mut plan = self.lock();
        plan.statement = None;
        plan.commits.clear();
        plan.reopenings = 0;
        plan.syncs = 0;
        plan.fired
    }

    /// Begins to watch, from nothing.
    pub fn watch(&self) {
        self.lock().watched = Some(Seen::default());
    }

    /// What was seen since.
    pub fn seen(&self) -> Seen {
        self.lock().watched.clone().unwrap_or_default()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.plan.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Shortens how long others may keep a file, for all stores of this process.
pub fn set_busy_limit(limit: Duration) {
    BUSY_LIMIT_MS.store(limit.as_millis() as u64, Ordering::Relaxed);
}

/// How long others may keep a file.
pub(crate) fn busy_limit(usual: Duration) -> Duration {
    match BUSY_LIMIT_MS.load(Ordering::Relaxed) {
        0 => usual,
        limit => Duration::from_millis(limit),
    }
}

/// Makes a store's plan that of this thread.
pub(crate) fn enter(plan: &Plan) {
    CURRENT.set(Some(Arc::clone(plan)));
}

/// Called before each statement.
pub(crate) fn statement(_sql: &'static str) -> Sql<()> {
    with(|state| {
        let (n, code) = state.statement?;
        if 1 < n {
            state.statement = Some((n - 1, code));
            return None;
        }
        state.statement = None;
        state.fired += 1;
        Some(failure(code))
    })
}

/// Called after each statement.
pub(crate) fn done(sql: &'static str, statement: &Statement<'_>) {
    let steps = u64::try_from(statement.reset_status(StatementStatus::VmStep)).unwrap_or(0);
    STEPS.set(STEPS.get() + steps);
    // Nothing fails here.
    drop(with(|state| {
        if let Some(seen) = &mut state.watched {
            *seen.statements.entry(sql).or_default() += steps;
        }
        None
    }));
}

/// Called after each read.
pub(crate) fn read_ended() {
    let steps = STEPS.take();
    drop(with(|state| {
        state.watched.as_mut()?.reads.push(steps);
        None
    }));
}

/// Called before each transaction of the writer.
pub(crate) fn before_begin(connection: &Connection) -> Sql<()> {
    let mut pages_max = None;
    with(|state| {
        pages_max = state.pages_max.take();
        None
    })?;
    match pages_max {
        Some(pages) => connection.pragma_update(None, "max_page_count", pages),
        None => Ok(()),
    }
}

/// Called before a file is opened again.
pub(crate) fn reopen() -> Sql<()> {
    with(|state| {
        let is_planned = 0 < state.reopenings;
        state.reopenings -= u64::from(is_planned);
        state.fired += u64::from(is_planned);
        is_planned.then(|| failure(ffi::SQLITE_CANTOPEN))
    })
}

/// Called before the log is synced.
pub(crate) fn sync() -> std::io::Result<()> {
    let fault = with(|state| {
        if let Some(seen) = &mut state.watched {
            seen.syncs += 1;
        }
        let is_planned = 0 < state.syncs;
        state.syncs -= u64::from(is_planned);
        state.fired += u64::from(is_planned);
        is_planned.then(|| failure(ffi::SQLITE_IOERR_FSYNC))
    });
    fault.map_err(std::io::Error::other)
}

/// Commits a transaction of the writer.
pub(crate) fn commit(
    connection: &Connection,
    is_synced: bool,
    commit: impl FnOnce() -> Sql<()>,
) -> Sql<()> {
    let (mut fault, mut is_watched) = (None, false);
    with(|state| {
        fault = state.commits.pop_front();
        state.fired += u64::from(fault.is_some());
        is_watched = state.watched.is_some();
        None
    })?;
    if is_watched {
        let level = connection.pragma_query_value(None, "synchronous", |row| row.get(0))?;
        with(|state| {
            let seen = state.watched.get_or_insert_default();
            seen.commits.push((is_synced, level));
            seen.rows_changed.push(connection.total_changes());
            None
        })?;
    }
    match fault {
        None => commit(),
        Some((CommitFault::Before, code)) => Err(failure(code)),
        Some((CommitFault::After, code)) => commit().and(Err(failure(code))),
    }
}

fn with(look: impl FnOnce(&mut State) -> Option<rusqlite::Error>) -> Sql<()> {
    let fault = CURRENT.with_borrow(|plan| look(&mut plan.as_ref()?.lock()));
    fault.map_or(Ok(()), Err)
}

fn failure(code: i32) -> rusqlite::Error {
    rusqlite::Error::SqliteFailure(ffi::Error::new(code), Some("planted by a test".to_owned()))
}
