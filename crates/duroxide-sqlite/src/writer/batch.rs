//! One transaction for many operations; what each caller is told when it fails.

use super::queue_forecast::QueueForecasts;
use super::queued_op::QueuedOp;
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
use crate::tx::{Tx, TxEffects};
use crate::url::Location;

/// Which of the parked fetches a transaction tries again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Serve {
    /// The fetches whose queue the transaction has changed.
    WhatChanged,
    /// All of them.
    Everything,
    /// None of them.
    Nothing,
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
    /// Does operations in one transaction. Those that find nothing are parked, the others answered.
    pub(super) fn process(&mut self, mut ops: Vec<Box<dyn QueuedOp>>) {
        match self.transact(&mut ops, Serve::WhatChanged) {
            Ok(committed) => self.hand_out(ops, committed),
            // A row that a parked fetch cannot read must not fail the operations.
            Err(trouble) if trouble.is_about_waiting => {
                match self.transact(&mut ops, Serve::Nothing) {
                    Ok(committed) => self.hand_out(ops, committed),
                    Err(trouble) => self.process_each(ops, &trouble),
                }
                self.serve_each_parked();
            }
            Err(trouble) => self.process_each(ops, &trouble),
        }
    }

    /// Runs the parked fetches again, if it may be worth it.
    pub(super) fn serve_parked(&mut self) {
        if self.parked.is_empty() {
            return;
        }
        if let Err(trouble) = self.transact(&mut [], Serve::Everything) {
            if trouble.may_be_about_one_op() {
                self.serve_each_parked();
            } else {
                self.parked.drain().into_iter().for_each(|op| op.fail(&trouble.error));
            }
        }
    }

    /// Answers callers, and gives back what was handed out to callers that are gone.
    pub(super) fn answer(&mut self, ops: Vec<Box<dyn QueuedOp>>) {
        let undo: Vec<_> = ops.into_iter().flat_map(|op| op.answer()).collect();
        if !undo.is_empty() {
            self.process(undo);
        }
    }

    /// The last transaction: gives up this owner's leases and its row.
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
            // Another process does it when it finds this owner's lock file free.
            tracing::debug!(target: "duroxide::providers", %error, "leases not given up at the end");
        }
    }

    /// After a transaction was undone: each alone, or after repairing the store, if that can help.
    fn process_each(&mut self, ops: Vec<Box<dyn QueuedOp>>, trouble: &Trouble) {
        if 1 < ops.len() && trouble.may_be_about_one_op() {
            ops.into_iter().for_each(|op| self.process(vec![op]));
            return;
        }
        if matches!(trouble.error, SqliteError::Unreadable { .. }) && self.repair() {
            self.process(ops);
            return;
        }
        ops.into_iter().for_each(|op| op.fail(&trouble.error));
    }

    /// Runs each parked fetch again in a transaction of its own.
    fn serve_each_parked(&mut self) {
        for op in self.parked.drain() {
            self.process(vec![op]);
        }
    }

    fn hand_out(&mut self, ops: Vec<Box<dyn QueuedOp>>, committed: Committed) {
        let held_with = match committed {
            Committed::ToLog(batch) if self.can_delay_sync() => Some(batch),
            _ => None,
        };
        let has_begun_turns = self.has_begun_turns(&ops);
        let mut must_sync = false;
        let mut over = Vec::with_capacity(ops.len());
        for op in ops {
            if !op.is_done() && op.patience().is_some() {
                self.parked.add(op);
            } else if let Some(batch) = held_with.filter(|_| op.lasts() != Lasts::No) {
                must_sync = !has_begun_turns;
                self.awaiting_sync.add(batch, op);
            } else {
                over.push(op);
            }
        }
        self.answer(over);
        if must_sync {
            self.sync_overdue();
        }
    }

    fn transact(
        &mut self,
        ops: &mut [Box<dyn QueuedOp>],
        serve: Serve,
    ) -> Result<Committed, Trouble> {
        // A commit may also copy the log into the database: not one that others have replaced.
        let checked = self.reopen_if_needed().and_then(|()| self.check_files(StoreFiles::check));
        checked.map_err(Trouble::of_store)?;
        let is_synced = self.needs_sync(ops);
        // A number of its own for every try: it tells later whether this one was committed.
        let batch = self.next_batch;
        self.next_batch += 1;
        let committed = match self.try_transact(ops, serve, is_synced, batch) {
            Ok(effects) => {
                // No caller is told of a commit that no process will find.
                if let Err(lost) = self.check_files(StoreFiles::check_commit) {
                    self.reset(ops);
                    return Err(Trouble::of_store(lost));
                }
                let has_written = effects.has_written;
                self.tell(effects);
                match has_written {
                    false => Committed::Nothing,
                    true if is_synced => Committed::ToDisk,
                    true => Committed::ToLog(batch),
                }
            }
            Err(broken) => {
                if let Err(trouble) = self.recover(broken, batch) {
                    self.reset(ops);
                    return Err(trouble);
                }
                Committed::ToDisk // It was found in the file, and the file was synced.
            }
        };
        if committed == Committed::ToDisk {
            self.answer_awaiting_sync();
        }
        Ok(committed)
    }

    /// What was done for these operations, and for the parked fetches, is undone.
    fn reset(&mut self, ops: &mut [Box<dyn QueuedOp>]) {
        ops.iter_mut().for_each(|op| op.reset());
        self.parked.reset();
    }

    fn try_transact(
        &mut self,
        ops: &mut [Box<dyn QueuedOp>],
        serve: Serve,
        is_synced: bool,
        batch: i64,
    ) -> Result<TxEffects, Broken> {
        crash_point("before-begin");
        self.forecasts = None;
        self.set_waiting_for_disk(is_synced).map_err(Broken::Undone)?;
        let Some(database) = &self.connection else { return Ok(TxEffects::default()) };
        let (effects, forecasts) = database.with(|db| -> Result<_, Broken> {
            faults::before_begin(&db).map_err(Broken::Undone)?;
            db.with("BEGIN IMMEDIATE", |begin| begin.execute([])).map_err(Broken::Undone)?;
            let now = self.config.clock.now_ms();
            let mut tx = Tx::new(db, self.config.settings, now);
            for op in ops.iter_mut() {
                op.run(&mut tx).map_err(Broken::Undone)?;
                crash_point("between-ops");
            }
            if serve != Serve::Nothing {
                let all = serve == Serve::Everything;
                self.parked.serve(&mut tx, all, ops).map_err(Broken::Waiting)?;
            }
            let effects = tx.finish(batch).map_err(Broken::Undone)?;
            let forecasts = QueueForecasts::of(db).map_err(Broken::Undone)?;
            crash_point("before-commit");
            let commit = || db.with("COMMIT", |commit| commit.execute([])).map(drop);
            faults::commit(&db, is_synced, commit).map_err(Broken::Unknown)?;
            crash_point("after-commit");
            Ok((effects, forecasts))
        })?;
        self.forecasts = Some(forecasts);
        Ok(effects)
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

    fn tell(&self, effects: TxEffects) {
        for instance in &effects.committed {
            self.config.board.notify(instance);
        }
        for letter in &effects.dead_letters {
            tracing::warn!(
                target: "duroxide::providers",
                instance = letter.instance,
                "message became a dead letter: {}", letter.reason
            );
        }
    }
}
