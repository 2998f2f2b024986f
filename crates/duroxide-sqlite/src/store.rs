//! The store itself: opened, closed, and what it offers beyond the contract.

use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::thread::JoinHandle;

use duroxide_core::clock::{Clock, wall_clock_ms};
use rusqlite::Connection;
use tokio::sync::oneshot;

use crate::commit_board::CommitBoard;
use crate::connection::{close_quietly, open_writer, path_of};
use crate::database::Db;
#[cfg(feature = "test-hooks")]
use crate::error::Failure;
use crate::error::SqliteError;
use crate::options::SqliteOptions;
use crate::owners::{self, Owner};
use crate::readers::Readers;
use crate::repair::repair_if_needed;
use crate::store_files::{StoreFiles, real_name};
use crate::tables::nodes;
use crate::tx::Settings;
use crate::url::Location;
use crate::writer::{self, WriterConfig, WriterHandle};
use crate::{faults, inspect, queries, schema};

/// A store in a SQLite file, or in memory.
///
/// Any number of processes may have one file open, and run workflows on it, at the same time. When
/// the last of them closes it, one file is left: the database.
pub struct SqliteProvider {
    pub(crate) writer: WriterHandle,
    pub(crate) readers: Readers,
    pub(crate) board: Arc<CommitBoard>,
    pub(crate) clock: Arc<dyn Clock>,
    location: Location,
    /// `None` for a store in memory.
    files: Option<Arc<StoreFiles>>,
    thread: Option<JoinHandle<()>>,
    #[cfg(feature = "test-hooks")]
    faults: faults::Plan,
}

impl SqliteProvider {
    /// Opens the store that a URL names: `sqlite:app.db` if it exists, `sqlite:app.db?mode=rwc` to
    /// create it if it does not, `sqlite::memory:` for one in memory (R10.2, R10.3).
    ///
    /// # Errors
    /// Whatever is wrong with the URL or the file; a file of another program is left as it is.
    pub async fn new(
        database_url: &str,
        options: Option<SqliteOptions>,
    ) -> Result<Self, SqliteError> {
        let location = Location::parse(database_url)?;
        let options = options.unwrap_or_default();
        // Opening may wait for other processes; that is no work for an async thread.
        let (reply, opened) = oneshot::channel();
        let open = move || drop(reply.send(Self::open(location, &options)));
        let builder = std::thread::Builder::new().name("duroxide-sqlite-open".to_owned());
        builder.spawn(open).map_err(|error| no_thread(Path::new(database_url), &error))?;
        opened.await.unwrap_or(Err(SqliteError::Closed))
    }

    /// An empty store in memory, gone when dropped.
    ///
    /// # Errors
    /// If there is no memory for it.
    pub async fn new_in_memory() -> Result<Self, SqliteError> {
        Self::new_in_memory_with_options(None).await
    }

    /// An empty store in memory, with options.
    ///
    /// # Errors
    /// If there is no memory for it.
    pub async fn new_in_memory_with_options(
        options: Option<SqliteOptions>,
    ) -> Result<Self, SqliteError> {
        Self::new("sqlite::memory:", options).await
    }

    /// Copies the write-ahead log into the database file and empties it. SQLite does so by itself
    /// every few thousand pages; this keeps the log small.
    ///
    /// It is no step towards a copy of the file. The next commit is in the log again; and a program
    /// that opens the database file by itself (`std::fs::copy`, `File::open`) while it has the store
    /// open releases, when it closes the file, the locks that SQLite has on it for the whole process.
    /// Copies are made with `VACUUM INTO` or the `sqlite3` command, as the guide to operations shows.
    ///
    /// # Errors
    /// If the file cannot be written, or another process reads an older state for too long.
    pub async fn checkpoint(&self) -> Result<(), SqliteError> {
        let (Location::File { path, .. }, Some(files)) = (&self.location, &self.files) else {
            return Ok(());
        };
        files.check_names()?;
        let checkpoint = |c: &Connection| -> Result<i64, rusqlite::Error> {
            c.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0))
        };
        // Not inside a transaction, so on a connection of its own.
        let path = path.clone();
        let (reply, done) = oneshot::channel();
        let run = move || {
            let location = Location::File { path: path.clone(), create: false };
            let result = open_writer(&location, crate::Durability::Full).and_then(|connection| {
                close_quietly(&connection)
                    .and_then(|()| checkpoint(&connection))
                    .map_err(|error: rusqlite::Error| SqliteError::sort(&path, &error))
            });
            drop(reply.send(result));
        };
        let builder = std::thread::Builder::new().name("duroxide-sqlite-checkpoint".to_owned());
        let path = path_of(&self.location);
        builder.spawn(run).map_err(|error| no_thread(path, &error))?;
        match done.await.unwrap_or(Err(SqliteError::Closed))? {
            0 => Ok(()),
            _ => {
                let reason = "a reader still uses an older state".to_owned();
                Err(SqliteError::Busy { path: path.to_owned(), reason })
            }
        }
    }

    /// Queue sizes and a few rows as text, for people.
    pub async fn debug_dump(&self) -> String {
        let now = self.clock.now_ms();
        match self.readers.read(move |c| queries::dump::dump(c, now)).await {
            Ok(text) => text,
            Err(failure) => failure.during("debug_dump").to_string(),
        }
    }

    /// What goes wrong with this store, and what is watched of it.
    #[cfg(feature = "test-hooks")]
    #[doc(hidden)]
    pub fn faults(&self) -> &faults::Faults {
        &self.faults
    }

    /// Runs a statement with one parameter behind the store's back; how many rows it changed.
    #[cfg(feature = "test-hooks")]
    #[doc(hidden)]
    pub async fn tamper(&self, sql: &'static str, parameter: &str) -> Result<usize, SqliteError> {
        let op = crate::ops::Tamper { sql, parameter: parameter.to_owned() };
        self.writer.run(op).await.map_err(|failure| match failure {
            Failure::Storage(error) => error,
            Failure::Refused(_) => SqliteError::Closed,
        })
    }

    /// A number found behind the store's back, by a query with one parameter.
    #[cfg(feature = "test-hooks")]
    #[doc(hidden)]
    pub async fn count(&self, sql: &'static str, parameter: &str) -> Result<i64, SqliteError> {
        let parameter = parameter.to_owned();
        let read = move |c: Db<'_>| {
            Ok(crate::tables::first(c, sql, [&parameter], |row| row.get(0))?.unwrap_or(0))
        };
        self.readers.read(read).await.map_err(|failure| match failure {
            Failure::Storage(error) => error,
            Failure::Refused(_) => SqliteError::Closed,
        })
    }

    fn open(location: Location, options: &SqliteOptions) -> Result<Self, SqliteError> {
        let location = match location {
            Location::File { path, create } => Location::File { path: real_name(&path), create },
            Location::Memory => location,
        };
        let path = path_of(&location).to_owned();
        let clock = options.clock.clone().unwrap_or_else(|| Arc::new(WallClock));
        let id = owners::fresh_id();
        let owner = match &location {
            Location::Memory => Owner::alone(id),
            Location::File { path, create } => {
                inspect::inspect(path, *create)?;
                owners::sweep(path);
                Owner::of_file(path, id).map_err(|error| inspect::sort(path, &error))?
            }
        };
        let mut connection = open_writer(&location, options.durability)?;
        schema::migrate(&path, &mut connection)?;
        let sort = |error: rusqlite::Error| SqliteError::sort(&path, &error);
        let settings = Settings { node: id, orphan_retention_ms: options.orphan_retention_ms() };
        repair_if_needed(Db::of(&connection), settings, clock.now_ms()).map_err(sort)?;
        nodes::insert(Db::of(&connection), id, clock.now_ms()).map_err(sort)?;

        let board = Arc::new(CommitBoard::new());
        let faults = faults::Plan::default();
        let files = match &location {
            Location::Memory => None,
            Location::File { path, .. } => Some(Arc::new(StoreFiles::of(path)?)),
        };
        let config = WriterConfig {
            location: location.clone(),
            files: files.clone(),
            durability: options.durability,
            clock: Arc::clone(&clock),
            settings,
            owner,
            board: Arc::clone(&board),
            faults: faults.clone(),
        };
        let (writer, thread) =
            writer::spawn(connection, config).map_err(|error| no_thread(&path, &error))?;
        let readers = match &files {
            None => Readers::Writer(writer.clone()),
            Some(files) => {
                Readers::of_file(files, &faults).map_err(|error| no_thread(&path, &error))?
            }
        };
        Ok(Self {
            writer,
            readers,
            board,
            clock,
            location,
            files,
            thread: Some(thread),
            #[cfg(feature = "test-hooks")]
            faults,
        })
    }
}

impl Drop for SqliteProvider {
    fn drop(&mut self) {
        // The writer last, and alone: of two connections that close at the same moment none is the
        // last, and the log would stay behind.
        self.readers.close();
        self.writer.close();
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!(target: "duroxide::providers", "the writing thread panicked");
        }
    }
}

impl fmt::Debug for SqliteProvider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SqliteProvider").field("location", &self.location).finish_non_exhaustive()
    }
}

/// The machine's wall clock: what all processes that share a file agree on.
struct WallClock;

impl Clock for WallClock {
    fn now_ms(&self) -> u64 {
        wall_clock_ms()
    }
}

fn no_thread(path: &Path, error: &std::io::Error) -> SqliteError {
    let reason = format!("no thread could be started: {error}");
    SqliteError::Other { path: path.to_owned(), reason }
}
