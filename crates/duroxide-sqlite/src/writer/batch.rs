//! One transaction for many jobs; what becomes of them when it fails.

use rusqlite::Connection;

use super::job::Job;
use super::thread::Writer;
use crate::connection::{open_writer, path_of, set_durability};
use crate::crash_point::crash_point;
use crate::error::SqliteError;
use crate::options::Durability;
use crate::owners;
use crate::schema;
use crate::tables::{Sql, mailboxes, nodes, sessions, work};
use crate::tx::{Notes, Tx};
use crate::url::Location;

/// How a transaction ended, if not well.
enum Broken {
    /// It did not happen.
    Undone(rusqlite::Error),
    /// Nobody knows: the commit itself failed.
    Unknown(rusqlite::Error),
}

impl Writer {
    /// Does jobs in one transaction. Those that find nothing are parked, the others answered.
    pub(super) fn process(&mut self, jobs: &mut Vec<Box<dyn Job>>) {
        match self.transact(jobs, false) {
            Ok(()) => {}
            Err(error) if 1 < jobs.len() && is_about_one_job(&error) => {
                // Each alone: the one that cannot be done must not take the others along.
                for job in jobs.drain(..) {
                    let mut alone = vec![job];
                    self.process(&mut alone);
                }
                return;
            }
            Err(error) => {
                jobs.drain(..).for_each(|job| job.fail(&error));
                return;
            }
        }
        let mut over = Vec::with_capacity(jobs.len());
        for job in jobs.drain(..) {
            if !job.is_done() && job.patience().is_some() {
                self.parked.add(job);
            } else {
                over.push(job);
            }
        }
        self.answer(over);
    }

    /// Lets those who wait look again, if it may be worth it.
    pub(super) fn serve_parked(&mut self) {
        if self.parked.is_empty() {
            return;
        }
        if let Err(error) = self.transact(&mut Vec::new(), true) {
            for job in self.parked.drain() {
                job.fail(&error);
            }
        }
    }

    /// Tells callers, and puts right what was done for callers who are gone.
    pub(super) fn answer(&mut self, jobs: Vec<Box<dyn Job>>) {
        let mut undo: Vec<_> = jobs.into_iter().flat_map(|job| job.answer()).collect();
        if !undo.is_empty() {
            self.process(&mut undo);
        }
    }

    /// The last transaction: gives up our leases and our place.
    pub(super) fn sign_off(mut self) {
        let (node, now) = (self.config.owner.id, self.config.clock.now_ms());
        let Some(connection) = self.connection.take() else { return };
        if self.config.location == Location::Memory {
            return;
        }
        let farewell = || -> Sql<()> {
            connection.execute_batch("BEGIN IMMEDIATE")?;
            free_leases(&connection, node, now)?;
            connection.execute_batch("COMMIT")
        };
        if let Err(error) = farewell() {
            // Others do it for us when they find our lock file free.
            tracing::debug!(target: "duroxide::providers", %error, "leases not given up at the end");
        }
    }

    fn transact(&mut self, jobs: &mut [Box<dyn Job>], look: bool) -> Result<(), SqliteError> {
        self.reopen_if_needed()?;
        let must_last = jobs.iter().any(|job| job.must_last());
        match self.try_transact(jobs, look, must_last) {
            Ok(notes) => {
                self.tell(notes);
                Ok(())
            }
            Err(broken) => {
                let verdict = self.recover(broken);
                match verdict {
                    None => Ok(()),
                    Some(error) => {
                        jobs.iter_mut().for_each(|job| job.reset());
                        self.parked.reset();
                        Err(error)
                    }
                }
            }
        }
    }

    fn try_transact(
        &mut self,
        jobs: &mut [Box<dyn Job>],
        look: bool,
        must_last: bool,
    ) -> Result<Notes, Broken> {
        crash_point("before-begin");
        self.set_waiting_for_disk(must_last).map_err(Broken::Undone)?;
        let Some(connection) = &self.connection else { return Ok(Notes::default()) };
        connection
            .prepare_cached("BEGIN IMMEDIATE")
            .and_then(|mut begin| begin.execute([]))
            .map_err(Broken::Undone)?;
        let now = self.config.clock.now_ms();
        let mut tx = Tx::new(connection, self.config.settings, now);
        for job in jobs.iter_mut() {
            job.run(&mut tx).map_err(Broken::Undone)?;
            crash_point("between-ops");
        }
        self.parked.serve(&mut tx, look, jobs).map_err(Broken::Undone)?;
        let mark = must_last.then_some(self.next_batch);
        let notes = tx.finish(mark).map_err(Broken::Undone)?;
        crash_point("before-commit");
        connection
            .prepare_cached("COMMIT")
            .and_then(|mut commit| commit.execute([]))
            .map_err(Broken::Unknown)?;
        crash_point("after-commit");
        self.next_batch += 1;
        Ok(notes)
    }

    /// Only what must survive a power loss waits for the disk; leases ride along for free.
    fn set_waiting_for_disk(&mut self, wanted: bool) -> Sql<()> {
        let wanted = wanted && self.config.durability == Durability::Full;
        if self.config.location == Location::Memory || wanted == self.waits_for_disk {
            return Ok(());
        }
        if let Some(connection) = &self.connection {
            let level = if wanted { Durability::Full } else { Durability::Process };
            set_durability(connection, level)?;
            self.waits_for_disk = wanted;
        }
        Ok(())
    }

    /// After a failure: what to tell the callers. `None` means that it was committed after all.
    fn recover(&mut self, broken: Broken) -> Option<SqliteError> {
        let path = path_of(&self.config.location).to_owned();
        let (error, known) = match &broken {
            Broken::Undone(error) => (SqliteError::sort(&path, error), true),
            Broken::Unknown(error) => {
                let sorted = SqliteError::sort(&path, error);
                let known = matches!(sorted, SqliteError::Full { .. } | SqliteError::Busy { .. });
                (sorted, known)
            }
        };
        let rolled_back = self.connection.as_ref().is_none_or(roll_back);
        if known && rolled_back {
            return Some(error);
        }
        // Whether the commit is in the file only the file knows.
        self.connection = None;
        match self.reopen_if_needed() {
            Ok(()) if self.is_committed(self.next_batch) => {
                self.next_batch += 1;
                None
            }
            Ok(()) => Some(error),
            Err(worse) => {
                tracing::error!(target: "duroxide::providers", %error, %worse, "store unavailable");
                Some(error)
            }
        }
    }

    fn is_committed(&self, batch: i64) -> bool {
        let connection = self.connection.as_ref();
        let last = connection.and_then(|c| nodes::last_batch(c, self.config.owner.id).ok());
        last.flatten() == Some(batch)
    }

    /// Opens the file again after it was lost. Never creates one.
    fn reopen_if_needed(&mut self) -> Result<(), SqliteError> {
        let Location::File { path, .. } = &self.config.location else { return Ok(()) };
        if self.connection.is_some() {
            return Ok(());
        }
        let location = Location::File { path: path.clone(), create: false };
        let connection = open_writer(&location, self.config.durability)?;
        if schema::version_of(path, &connection)? != schema::NEWEST {
            let reason = "it was replaced by a file of another version".to_owned();
            return Err(SqliteError::Other { path: path.clone(), reason });
        }
        nodes::insert(&connection, self.config.owner.id, self.config.clock.now_ms())
            .map_err(|error| SqliteError::sort(path, &error))?;
        self.watch.forget();
        self.waits_for_disk = self.config.durability == Durability::Full;
        self.connection = Some(connection);
        Ok(())
    }

    fn tell(&self, notes: Notes) {
        for instance in &notes.committed {
            self.config.board.ring(instance);
        }
        for letter in &notes.dead_letters {
            tracing::warn!(
                target: "duroxide::providers",
                instance = letter.instance,
                "message became a dead letter: {}", letter.reason
            );
        }
    }

    /// Frees the leases of owners that are gone.
    pub(super) fn bury_dead_owners(&mut self) {
        let (Location::File { path, .. }, Some(connection)) =
            (&self.config.location, &self.connection)
        else {
            return;
        };
        let Ok(others) = nodes::others(connection, self.config.owner.id) else { return };
        self.watch.note_company(!others.is_empty());
        let dead: Vec<i64> = others.into_iter().filter(|id| !owners::lives(path, *id)).collect();
        let now = self.config.clock.now_ms();
        for node in &dead {
            let freed = connection
                .execute_batch("BEGIN IMMEDIATE")
                .and_then(|()| free_leases(connection, *node, now))
                .and_then(|()| connection.execute_batch("COMMIT"));
            if let Err(error) = freed {
                tracing::warn!(target: "duroxide::providers", %error, "leases of a dead process kept");
                if !roll_back(connection) {
                    self.connection = None;
                }
                return;
            }
        }
        if !dead.is_empty() {
            self.serve_parked();
        }
    }
}

/// Frees the leases of an owner and forgets it.
pub(crate) fn free_leases(connection: &Connection, node: i64, now: u64) -> Sql<()> {
    mailboxes::expire_locks_of(connection, node, now)?;
    work::expire_locks_of(connection, node, now)?;
    sessions::expire_leases_of(connection, node, now)?;
    nodes::delete(connection, node)
}

/// Ends a transaction that failed, if SQLite has not done so; whether the connection is usable.
fn roll_back(connection: &Connection) -> bool {
    connection.is_autocommit() || connection.execute_batch("ROLLBACK").is_ok()
}

/// Whether the jobs of a failed transaction may fare better one by one.
fn is_about_one_job(error: &SqliteError) -> bool {
    matches!(error, SqliteError::Other { .. })
}
