//! One transaction for many jobs; who hears what when it fails.

use super::job::Job;
use super::outlook::Outlook;
use super::recover::{Broken, Trouble, free_leases};
use super::thread::Writer;
use crate::connection::set_durability;
use crate::crash_point::crash_point;
use crate::database::Db;
use crate::error::SqliteError;
use crate::faults;
use crate::ops::Lasts;
use crate::options::Durability;
use crate::store_files::StoreFiles;
use crate::tables::Sql;
use crate::tx::{Notes, Tx};
use crate::url::Location;

/// Which of those who wait look for work in a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Look {
    /// Those for whom there is something new.
    AtNews,
    /// All.
    AtAll,
    /// None.
    Away,
}

/// What became of a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Committed {
    /// There was nothing to commit, so that nothing was synced either.
    Nothing,
    /// It is in the log.
    ToLog(i64),
    /// It is on the disk, and with it all that was in the log before.
    ToDisk,
}

impl Writer {
    /// Does jobs in one transaction. Those that find nothing are parked, the others answered.
    pub(super) fn process(&mut self, mut jobs: Vec<Box<dyn Job>>) {
        match self.transact(&mut jobs, Look::AtNews) {
            Ok(committed) => self.hand_out(jobs, committed),
            // What one of them cannot read must not take the others along.
            Err(trouble) if trouble.is_about_waiting => {
                match self.transact(&mut jobs, Look::Away) {
                    Ok(committed) => self.hand_out(jobs, committed),
                    Err(trouble) => self.process_each(jobs, &trouble),
                }
                self.serve_each_parked();
            }
            Err(trouble) => self.process_each(jobs, &trouble),
        }
    }

    /// Lets those who wait look again, if it may be worth it.
    pub(super) fn serve_parked(&mut self) {
        if self.parked.is_empty() {
            return;
        }
        if let Err(trouble) = self.transact(&mut [], Look::AtAll) {
            if trouble.may_be_about_one_job() {
                self.serve_each_parked();
            } else {
                self.parked.drain().into_iter().for_each(|job| job.fail(&trouble.error));
            }
        }
    }

    /// Tells callers, and puts right what was done for callers who are gone.
    pub(super) fn answer(&mut self, jobs: Vec<Box<dyn Job>>) {
        let undo: Vec<_> = jobs.into_iter().flat_map(|job| job.answer()).collect();
        if !undo.is_empty() {
            self.process(undo);
        }
    }

    /// The last transaction: gives up our leases and our place.
    pub(super) fn sign_off(mut self) {
        let (node, now) = (self.config.owner.id, self.config.clock.now_ms());
        if self.config.location == Location::Memory
            || self.check_files(StoreFiles::check_names).is_err()
        {
            return;
        }
        let Some(connection) = self.connection.take() else { return };
        let farewell = || -> Sql<()> {
            let connection = connection.connection();
            connection.execute_batch("BEGIN IMMEDIATE")?;
            free_leases(Db::of(connection), node, now)?;
            connection.execute_batch("COMMIT")
        };
        if let Err(error) = farewell() {
            // Others do it for us when they find our lock file free.
            tracing::debug!(target: "duroxide::providers", %error, "leases not given up at the end");
        }
    }

    /// After a transaction was undone: each alone, or after mending the store, if that can help.
    fn process_each(&mut self, jobs: Vec<Box<dyn Job>>, trouble: &Trouble) {
        if 1 < jobs.len() && trouble.may_be_about_one_job() {
            jobs.into_iter().for_each(|job| self.process(vec![job]));
            return;
        }
        if matches!(trouble.error, SqliteError::Unreadable { .. }) && self.mend() {
            self.process(jobs);
            return;
        }
        jobs.into_iter().for_each(|job| job.fail(&trouble.error));
    }

    /// Lets each of those who wait look on its own.
    fn serve_each_parked(&mut self) {
        for job in self.parked.drain() {
            self.process(vec![job]);
        }
    }

    fn hand_out(&mut self, jobs: Vec<Box<dyn Job>>, committed: Committed) {
        let held_with = match committed {
            Committed::ToLog(batch) if self.can_hold() => Some(batch),
            _ => None,
        };
        let has_begun_turns = self.has_begun_turns(&jobs);
        let mut must_sync = false;
        let mut over = Vec::with_capacity(jobs.len());
        for job in jobs {
            if !job.is_done() && job.patience().is_some() {
                self.parked.add(job);
            } else if let Some(batch) = held_with.filter(|_| job.lasts() != Lasts::No) {
                must_sync = !has_begun_turns;
                self.held.add(batch, job);
            } else {
                over.push(job);
            }
        }
        self.answer(over);
        if must_sync {
            self.sync_held();
        }
    }

    fn transact(&mut self, jobs: &mut [Box<dyn Job>], look: Look) -> Result<Committed, Trouble> {
        // A commit may also copy the log into the database: not one that others have replaced.
        let checked = self.reopen_if_needed().and_then(|()| self.check_files(StoreFiles::check));
        checked.map_err(Trouble::of_store)?;
        let is_synced = self.needs_sync(jobs);
        // A number of its own for every try: it tells later whether this one was committed.
        let batch = self.next_batch;
        self.next_batch += 1;
        let committed = match self.try_transact(jobs, look, is_synced, batch) {
            Ok(notes) => {
                // Nobody hears of what nobody will find.
                if let Err(lost) = self.check_files(StoreFiles::check_commit) {
                    self.reset(jobs);
                    return Err(Trouble::of_store(lost));
                }
                let has_written = notes.has_written;
                self.tell(notes);
                match has_written {
                    false => Committed::Nothing,
                    true if is_synced => Committed::ToDisk,
                    true => Committed::ToLog(batch),
                }
            }
            Err(broken) => {
                if let Err(trouble) = self.recover(broken, batch) {
                    self.reset(jobs);
                    return Err(trouble);
                }
                Committed::ToDisk // It was found in the file, and the file was synced.
            }
        };
        if committed == Committed::ToDisk {
            self.answer_held();
        }
        Ok(committed)
    }

    /// What was done for these, and for those who wait, is undone.
    fn reset(&mut self, jobs: &mut [Box<dyn Job>]) {
        jobs.iter_mut().for_each(|job| job.reset());
        self.parked.reset();
    }

    fn try_transact(
        &mut self,
        jobs: &mut [Box<dyn Job>],
        look: Look,
        is_synced: bool,
        batch: i64,
    ) -> Result<Notes, Broken> {
        crash_point("before-begin");
        self.outlook = None;
        self.set_waiting_for_disk(is_synced).map_err(Broken::Undone)?;
        let Some(database) = &self.connection else { return Ok(Notes::default()) };
        let (notes, outlook) = database.with(|db| -> Result<_, Broken> {
            faults::before_begin(&db).map_err(Broken::Undone)?;
            db.with("BEGIN IMMEDIATE", |begin| begin.execute([])).map_err(Broken::Undone)?;
            let now = self.config.clock.now_ms();
            let mut tx = Tx::new(db, self.config.settings, now);
            for job in jobs.iter_mut() {
                job.run(&mut tx).map_err(Broken::Undone)?;
                crash_point("between-ops");
            }
            if look != Look::Away {
                let all = look == Look::AtAll;
                self.parked.serve(&mut tx, all, jobs).map_err(Broken::Waiting)?;
            }
            let notes = tx.finish(batch).map_err(Broken::Undone)?;
            let outlook = Outlook::of(db).map_err(Broken::Undone)?;
            crash_point("before-commit");
            let commit = || db.with("COMMIT", |commit| commit.execute([])).map(drop);
            faults::commit(&db, is_synced, commit).map_err(Broken::Unknown)?;
            crash_point("after-commit");
            Ok((notes, outlook))
        })?;
        self.outlook = Some(outlook);
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
            set_durability(connection.connection(), level)?;
            self.waits_for_disk = wanted;
        }
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
}
