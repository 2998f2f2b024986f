//! What becomes of a store after a failure: rolled back, reopened, or lost.

use std::time::{Duration, Instant};

use rusqlite::Connection;

use super::thread::Writer;
use crate::connection::{close_quietly, open_writer, path_of};
use crate::database::{Database, Db};
use crate::error::SqliteError;
use crate::faults;
use crate::options::Durability;
use crate::owners;
use crate::repair::repair;
use crate::schema;
use crate::store_files::StoreFiles;
use crate::tables::{Sql, mailboxes, nodes, sessions, work};
use crate::url::Location;

/// How a transaction ended, if not well.
pub(super) enum Broken {
    /// It did not happen.
    Undone(rusqlite::Error),
    /// It did not happen, because a parked fetch failed.
    Waiting(rusqlite::Error),
    /// Whether it happened is not known: the commit itself failed.
    Unknown(rusqlite::Error),
}

/// What the callers of a failed transaction are told.
pub(super) struct Trouble {
    pub(super) error: SqliteError,
    /// Whether a parked fetch met it, not one of the operations.
    pub(super) is_about_waiting: bool,
}

impl Trouble {
    /// The store as a whole is in trouble.
    pub(super) fn of_store(error: SqliteError) -> Self {
        Self { error, is_about_waiting: false }
    }

    /// Whether the operations of the transaction may fare better one by one.
    pub(super) fn may_be_about_one_op(&self) -> bool {
        use SqliteError::{Corrupt, Other, Unreadable};
        matches!(self.error, Other { .. } | Corrupt { .. } | Unreadable { .. })
    }
}

impl Writer {
    /// After a failure: what to tell the callers. `Ok` means that it was committed after all.
    pub(super) fn recover(&mut self, broken: Broken, batch: i64) -> Result<(), Trouble> {
        let path = path_of(&self.config.location).to_owned();
        let (error, may_be_committed) = match &broken {
            Broken::Undone(error) | Broken::Waiting(error) => (error, false),
            Broken::Unknown(error) => (error, true),
        };
        let error = SqliteError::sort(&path, error);
        let is_about_waiting = matches!(broken, Broken::Waiting(_));
        let rolled_back = self.connection.as_ref().is_none_or(|c| roll_back(c.connection()));
        let is_known = !may_be_committed
            || matches!(error, SqliteError::Full { .. } | SqliteError::Busy { .. })
            || self.config.location == Location::Memory;
        if is_known && rolled_back {
            return Err(Trouble { error, is_about_waiting });
        }
        // Only the file tells whether it has the commit.
        self.close_file();
        match self.reopen_if_needed() {
            Ok(()) if self.is_committed(batch) => Ok(()),
            Ok(()) => Err(Trouble { error, is_about_waiting }),
            Err(worse) => {
                tracing::error!(target: "duroxide::providers", %error, %worse, "store unavailable");
                let reason = format!("{error}; whether it happened is not known, since: {worse}");
                let error = match worse {
                    SqliteError::Lost { .. } => worse,
                    _ if may_be_committed => SqliteError::Io { path, reason },
                    _ => error,
                };
                Err(Trouble::of_store(error))
            }
        }
    }

    /// Opens the file again after it was closed on an error. Never makes one, never takes another.
    pub(super) fn reopen_if_needed(&mut self) -> Result<(), SqliteError> {
        let Some(files) = &self.config.files else { return Ok(()) };
        if self.connection.is_some() {
            return Ok(());
        }
        let path = files.path();
        files.check_names()?;
        faults::reopen().map_err(|error| SqliteError::sort(path, &error))?;
        let location = Location::File { path: path.to_owned(), create: false };
        let connection = open_writer(&location, self.config.durability)?;
        schema::version_of(path, &connection)?;
        nodes::insert(Db::of(&connection), self.config.owner.id, self.config.clock.now_ms())
            .map_err(|error| SqliteError::sort(path, &error))?;
        files.take_up()?;
        files.sync().map_err(|error| {
            let (path, reason) = (path.to_owned(), format!("log not synced: {error}"));
            SqliteError::Io { path, reason }
        })?;
        self.watch.forget();
        self.waits_for_disk = self.config.durability == Durability::Full;
        self.connection = Some(Database::of(connection));
        self.recheck_awaiting_sync();
        Ok(())
    }

    /// Whether the files are those that others find; if not, nothing more is written to them.
    pub(super) fn check_files(
        &mut self,
        check: impl FnOnce(&StoreFiles) -> Result<(), SqliteError>,
    ) -> Result<(), SqliteError> {
        let verdict = self.config.files.as_deref().map_or(Ok(()), check);
        if let Err(lost) = &verdict {
            self.close_file();
            self.fail_awaiting_sync(lost);
        }
        verdict
    }

    /// Closes the file, to be opened again. What SQLite would copy from a log that no other process
    /// finds is left where it is.
    pub(super) fn close_file(&mut self) {
        let Some(connection) = self.connection.take() else { return };
        let Some(files) = &self.config.files else { return };
        if files.check_names().is_err()
            && let Err(error) = close_quietly(connection.connection())
        {
            tracing::error!(target: "duroxide::providers", %error, "lost file written at the end");
        }
        files.let_go();
    }

    /// Sets rows right that make no sense; whether that was tried. Not all the time: it takes long.
    pub(super) fn repair(&mut self) -> bool {
        const PAUSE: Duration = Duration::from_secs(1);
        if self.mended_at.is_some_and(|at| at.elapsed() < PAUSE) {
            return false;
        }
        self.mended_at = Some(Instant::now());
        let Some(connection) = &self.connection else { return false };
        let now = self.config.clock.now_ms();
        if let Err(error) = connection.with(|db| repair(db, self.config.settings, now)) {
            tracing::error!(target: "duroxide::providers", %error, "store not repaired");
            return false;
        }
        true
    }

    /// Frees the leases of owners that are gone.
    pub(super) fn remove_dead_owners(&mut self) {
        let (Location::File { path, .. }, Some(connection)) =
            (&self.config.location, &self.connection)
        else {
            return;
        };
        let connection = connection.connection();
        let db = Db::of(connection);
        let Ok(others) = nodes::others(db, self.config.owner.id) else { return };
        self.watch.note_company(!others.is_empty());
        let dead: Vec<i64> = others.into_iter().filter(|id| !owners::lives(path, *id)).collect();
        let now = self.config.clock.now_ms();
        for node in &dead {
            let freed = connection
                .execute_batch("BEGIN IMMEDIATE")
                .and_then(|()| free_leases_of_dead(db, *node, now))
                .and_then(|()| connection.execute_batch("COMMIT"));
            if let Err(error) = freed {
                tracing::warn!(target: "duroxide::providers", %error, "leases of a dead process kept");
                if !roll_back(connection) {
                    self.close_file();
                }
                return;
            }
        }
        if !dead.is_empty() {
            self.forecasts = None;
            self.serve_parked();
        }
    }

    fn is_committed(&self, batch: i64) -> bool {
        let connection = self.connection.as_ref();
        let last = connection
            .and_then(|c| nodes::last_batch(Db::of(c.connection()), self.config.owner.id).ok());
        last.flatten() == Some(batch)
    }
}

/// Frees the leases of an owner and forgets it.
pub(super) fn free_leases(connection: Db<'_>, node: i64, now: u64) -> Sql<()> {
    mailboxes::expire_locks_of(connection, node, now)?;
    work::expire_locks_of(connection, node, now)?;
    sessions::expire_leases_of(connection, node, now)?;
    nodes::delete(connection, node)
}

/// The same for an owner that died. It may have died of what it had locked, and so may the next worker
/// that locks it: what was tried before waits a little, longer each time, so that processes which end
/// right after they started do not use up its attempts (R8.146).
fn free_leases_of_dead(connection: Db<'_>, node: i64, now: u64) -> Sql<()> {
    mailboxes::expire_locks_of_dead(connection, node, now)?;
    work::expire_locks_of_dead(connection, node, now)?;
    sessions::expire_leases_of(connection, node, now)?;
    nodes::delete(connection, node)
}

/// Ends a transaction that failed, if SQLite has not done so; whether the connection is usable.
fn roll_back(connection: &Connection) -> bool {
    connection.is_autocommit() || connection.execute_batch("ROLLBACK").is_ok()
}
