//! A lane: one connection that carries whatever waits, one transaction after the other.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use uuid::Uuid;

use super::floor::Batch;
use super::op::{Op, Queue, Waiting};
use super::transaction::{Outcome, transact};
use crate::connection::Connection;
use crate::error::{Failure, PgError};
use crate::store::Store;

/// How often a transaction that others made fail is tried again.
const TRIES: u32 = 10;

/// A lane.
pub(super) struct Lane {
    store: Arc<Store>,
    connection: Option<Connection>,
    /// Secrets of looks that may have taken something nobody got to hear of.
    lost: Vec<Uuid>,
}

impl Lane {
    pub(super) fn new(store: Arc<Store>) -> Self {
        Self { store, connection: None, lost: Vec::new() }
    }

    /// Carries what waits, until the store is closed.
    pub(super) async fn run(mut self) {
        while let Some(batch) = self.store.floor.next_batch().await {
            self.carry(batch).await;
        }
    }

    async fn carry(&mut self, batch: Batch) {
        match self.attempt(&batch).await {
            Ok(outcome) => {
                for op in self.hand_out(batch, outcome) {
                    Box::pin(self.carry(Batch::uncommon(op))).await;
                }
            }
            Err(error) if batch.can_be_parted(&error) => {
                tracing::debug!(target: "duroxide::providers::postgres", %error, "one by one");
                for op in self.take_apart(batch) {
                    Box::pin(self.carry(Batch::uncommon(op))).await;
                }
            }
            Err(error) => self.fail(batch, &error),
        }
    }

    /// Runs the transaction, again if others made it fail.
    async fn attempt(&mut self, batch: &Batch) -> Result<Outcome, PgError> {
        let mut tries = 0;
        loop {
            tries += 1;
            let error = match self.attempt_once(batch).await {
                Ok(outcome) => return Ok(outcome),
                Err(error) => error,
            };
            if !error.is_undone_for_others() || TRIES <= tries {
                return Err(error);
            }
            // Nothing has happened, on this connection or another.
            tokio::time::sleep(Duration::from_millis(u64::from(tries) * 3)).await;
        }
    }

    async fn attempt_once(&mut self, batch: &Batch) -> Result<Outcome, PgError> {
        if self.connection.as_ref().is_none_or(|connection| !connection.is_open()) {
            self.connection = None;
            let connection = match self.store.pool.connect_lane().await {
                Ok(connection) => connection,
                Err(error) => {
                    self.store.floor.fail_all(&error);
                    return Err(error);
                }
            };
            self.forget_lost(&connection).await?;
            self.connection = Some(connection);
        }
        let Some(connection) = &self.connection else { return Err(PgError::Timeout) };
        let result = transact(&self.store, connection, batch).await;
        if let Err(error) = &result {
            if error.spoils_connection() {
                self.connection = None;
            }
            if error.is_ambiguous() {
                self.lost.extend(batch.looks.iter().map(|look| look.secret));
            }
        }
        result
    }

    /// Gives back what looks took whose answers were lost.
    async fn forget_lost(&mut self, connection: &Connection) -> Result<(), PgError> {
        const FORGET: &str = "SELECT duroxide.forget_fetches($1, $2, $3)";
        if self.lost.is_empty() {
            return Ok(());
        }
        let (now, retention) = (self.store.given_time(), self.store.retention());
        self.store.pool.ask(connection, FORGET, &[&self.lost, &now, &retention]).await?;
        self.lost.clear();
        Ok(())
    }

    /// Tells everybody what came of it; those are left that were not the common case they seemed.
    fn hand_out(&self, batch: Batch, outcome: Outcome) -> Vec<Waiting> {
        let (store, floor) = (&self.store, &self.store.floor);
        let rode: Vec<u64> = batch.looks.iter().map(|look| look.desk).collect();
        floor.conclude(&batch, &rode, true);
        if outcome.has_turns && !batch.looks.iter().any(|look| look.fetch.queue() == Queue::Turns) {
            floor.ring(Queue::Turns);
        }
        if let Some(due) = batch.feed.due_in(store.now_ms()) {
            floor.expect(Queue::Turns, tokio::time::Instant::now() + due);
        }
        self.tell_others(&batch, &outcome);
        for (look, seen) in batch.looks.iter().zip(outcome.seen) {
            match seen {
                Some(seen) => floor.serve(look, seen),
                None => floor.look_again(look.desk),
            }
        }
        let mut uncommon = Vec::new();
        for (waiting, verdict) in batch.ops.into_iter().zip(outcome.verdicts) {
            let Some(verdict) = verdict else {
                uncommon.push(waiting);
                continue;
            };
            if let (Some(bell), Ok(())) = (waiting.bell, &verdict) {
                store.board.ring(bell);
            }
            waiting.answer(verdict);
        }
        uncommon
    }

    /// Lets other nodes know what this one did not take at once, and what clients may wait for.
    fn tell_others(&self, batch: &Batch, outcome: &Outcome) {
        if !self.store.company.load(Ordering::Acquire) {
            return;
        }
        let pins = self.store.known_pins();
        let turns = batch.leaves(Queue::Turns, outcome, &pins);
        let work = batch.leaves(Queue::Work, outcome, &pins);
        let done = batch
            .ops
            .iter()
            .zip(&outcome.verdicts)
            .filter(|(_, verdict)| matches!(verdict, Some(Ok(()))));
        self.store.outbox.add(|news| {
            news.turns |= turns;
            news.work |= work;
            news.bells.extend(done.filter_map(|(waiting, _)| waiting.bell));
        });
    }

    /// Undoes the grouping: looks are taken again later, ops are done one by one.
    fn take_apart(&self, batch: Batch) -> Vec<Waiting> {
        self.store.floor.conclude(&batch, &[], false);
        batch.looks.iter().for_each(|look| self.store.floor.look_again(look.desk));
        batch.ops
    }

    fn fail(&self, batch: Batch, error: &PgError) {
        let floor = &self.store.floor;
        floor.conclude(&batch, &[], false);
        // Fetches may as well wait for the server; what is wrong with themselves they hear.
        let is_theirs = !error.is_outage();
        batch.looks.iter().for_each(|look| floor.fail_look(look.desk, error, is_theirs));
        for waiting in batch.ops {
            log_failure(&waiting.op, error);
            waiting.answer(Err(Failure::Database(error.clone())));
        }
    }
}

fn log_failure(op: &Op, error: &PgError) {
    let kind = op.kind();
    tracing::debug!(target: "duroxide::providers::postgres", %error, ?kind, "not done");
}
