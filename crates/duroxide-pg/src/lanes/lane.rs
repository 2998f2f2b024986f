//! A lane: one connection that carries whatever waits, one transaction after the other.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::held::{Carrier, Held};
use super::lost::Backend;
use super::op::{Op, Queue, Waiting};
use super::state::Batch;
use super::transaction::{Outcome, transact};
use crate::connection::Connection;
use crate::error::{Failure, PgError};
use crate::store::Store;

/// How often a transaction that others made fail is tried again.
const TRIES: u32 = 10;

/// A lane.
pub(super) struct Lane {
    pub(super) store: Arc<Store>,
    number: usize,
    pub(super) connection: Option<Connection>,
    /// Who serves the connection at the server, if that is known.
    backend: Option<Backend>,
}

impl Lane {
    pub(super) fn new(store: Arc<Store>, number: usize) -> Self {
        Self { store, number, connection: None, backend: None }
    }

    /// Carries what waits, until the store is closed.
    pub(super) async fn run(mut self) {
        loop {
            let connection = self.connection.as_ref().map(Connection::number);
            let next = self.store.floor.next_batch(Carrier { lane: self.number, connection });
            let Some(mut batch) = next.await else { return };
            let held = std::mem::take(&mut batch.held);
            let is_on_disk = batch.has_something_to_do() && self.carry(batch).await;
            self.release(held, is_on_disk).await;
        }
    }

    /// Renews locks, until the store is closed: no renewal waits behind what others wait for.
    pub(super) async fn run_renewals(mut self) {
        while let Some(batch) = self.store.floor.next_renewals().await {
            self.carry(batch).await;
        }
    }

    /// Does what a batch asks for. Whether it, and all before it, has reached the disk.
    pub(super) async fn carry(&mut self, mut batch: Batch) -> bool {
        loop {
            let trouble = match self.attempt(&batch).await {
                Ok(outcome) => {
                    let is_on_disk = outcome.is_on_disk(&batch);
                    for op in self.hand_out(batch, outcome).await {
                        Box::pin(self.carry(Batch::uncommon(op))).await;
                    }
                    return is_on_disk;
                }
                Err(trouble) => trouble,
            };
            let error = &trouble.error;
            if error.is_lock_timeout() && !batch.ops.is_empty() {
                let ops = self.take_apart(batch);
                self.part_blocked(ops).await;
                return false;
            }
            if batch.can_be_parted(error) {
                tracing::debug!(target: "duroxide::providers::postgres", %error, "one by one");
                for op in self.take_apart(batch) {
                    Box::pin(self.carry(Batch::uncommon(op))).await;
                }
                return false;
            }
            match self.keep_repeatable(batch, &trouble) {
                Some(rest) => batch = rest,
                None => return false,
            }
        }
    }

    /// Gives answers that were held back, once what they are about is on the disk.
    async fn release(&mut self, held: Vec<Held>, is_on_disk: bool) {
        if held.is_empty() {
            return;
        }
        let is_on_disk = is_on_disk || self.sync().await;
        let connection = self.connection.as_ref().map(Connection::number);
        let is_safe = |held: &Held| is_on_disk && held.is_vouched_for_by(connection);
        let (safe, doubtful): (Vec<Held>, Vec<Held>) = held.into_iter().partition(is_safe);
        safe.into_iter().for_each(|held| self.confirm(held.waiting));
        let (again, lost): (Vec<Waiting>, Vec<Waiting>) = doubtful
            .into_iter()
            .map(|held| held.waiting)
            .partition(|waiting| waiting.op.is_repeatable() && !self.store.floor.is_closed());
        for waiting in lost {
            let reason = "the connection ended before it was known to be on the server's disk";
            let error = PgError::Connection { reason: reason.to_owned() };
            waiting.answer(Err(Failure::Database(error)));
        }
        if !again.is_empty() {
            let until = Instant::now() + self.store.pool.settings().statement_timeout;
            self.carry(Batch::again(again, until)).await;
        }
    }

    /// Makes the server write to the disk whatever it has; whether it did.
    async fn sync(&mut self) -> bool {
        // A transaction that changes nothing waits for nothing; this one leaves a mark in the log.
        const SYNC: &str = "SELECT pg_logical_emit_message(true, 'duroxide', '')";
        let Some(connection) = &self.connection else { return false };
        let Err(error) = self.store.pool.ask(connection, SYNC, &[]).await else { return true };
        tracing::debug!(target: "duroxide::providers::postgres", %error, "not synced");
        if error.spoils_connection() {
            self.connection = None;
        }
        false
    }

    /// Runs the transaction, again if others made it fail.
    async fn attempt(&mut self, batch: &Batch) -> Result<Outcome, Trouble> {
        let mut tries = 0;
        loop {
            tries += 1;
            let trouble = match self.attempt_once(batch).await {
                Ok(outcome) => return Ok(outcome),
                Err(trouble) => trouble,
            };
            if !trouble.error.is_undone_for_others() || TRIES <= tries {
                return Err(trouble);
            }
            // Nothing has happened, on this connection or another.
            tokio::time::sleep(Duration::from_millis(u64::from(tries) * 3)).await;
        }
    }

    async fn attempt_once(&mut self, batch: &Batch) -> Result<Outcome, Trouble> {
        let unsent = |error| Trouble { error, was_sent: false };
        self.connect_if_needed().await.map_err(unsent)?;
        let Some(connection) = &self.connection else { return Err(unsent(PgError::Timeout)) };
        let result = transact(&self.store, connection, batch).await;
        if let Err(error) = &result {
            if error.spoils_connection() {
                self.connection = None;
                self.store.floor.lower_all();
            }
            if error.is_ambiguous() {
                let secrets = batch.looks.iter().map(|look| look.secret).collect();
                self.store.floor.lose(secrets, self.backend.take());
            }
        }
        result.map_err(|error| Trouble { error, was_sent: true })
    }

    pub(super) async fn connect_if_needed(&mut self) -> Result<(), PgError> {
        if self.connection.as_ref().is_none_or(|connection| !connection.is_open()) {
            self.connection = None;
            let connected = self.store.pool.connect_lane().await;
            let connection = connected.inspect_err(|error| self.store.floor.fail_all(error))?;
            self.backend = self.backend_of(&connection).await?;
            self.connection = Some(connection);
        }
        Ok(())
    }

    /// Who serves a connection. A pooler gives it to others, too.
    async fn backend_of(&self, connection: &Connection) -> Result<Option<Backend>, PgError> {
        const WHO: &str = "SELECT pid, extract(epoch FROM backend_start)::text
             FROM pg_stat_activity WHERE pid = pg_backend_pid() AND backend_start IS NOT NULL";
        if self.store.pool.settings().through_pooler {
            return Ok(None);
        }
        let rows = self.store.pool.ask(connection, WHO, &[]).await?;
        Ok(rows.first().map(|row| (row.get(0), row.get(1))))
    }

    /// Tells everybody what came of it; those are left that were not the common case they seemed.
    async fn hand_out(&self, batch: Batch, outcome: Outcome) -> Vec<Waiting> {
        let (store, floor) = (&self.store, &self.store.floor);
        floor.conclude(&batch);
        let is_common = batch.is_common && batch.ops.len() == 1;
        floor.note_locks(&batch.ops, is_common, outcome.ready_from);
        let left = self.left_by(&batch, &outcome);
        left.iter().for_each(|queue| floor.ring(*queue));
        if let Some(due) = batch.feed.due_in(store.now_ms()) {
            floor.expect(Queue::Turns, Instant::now() + due);
        }
        self.tell_others(&batch, &outcome, &left);
        let is_alone = batch.ops.len() == 1 && !batch.looks.is_empty();
        let mut ops: Vec<_> = batch.ops.into_iter().zip(outcome.verdicts).collect();
        if outcome.is_held {
            // Before the turn is handed out, whose commit lets it go.
            let (lane, connections) = (self.number, outcome.connections);
            let hold = |(waiting, _)| floor.hold(Held { waiting, lane, connections });
            ops.drain(..).for_each(hold);
        }
        let mut uncommon = Vec::new();
        for (waiting, verdict) in ops {
            let Some(mut verdict) = verdict else {
                uncommon.push(waiting);
                continue;
            };
            if waiting.is_repeated && matches!(verdict, Err(Failure::Refused(_))) {
                verdict = self.judge_repeated(&waiting.op, verdict).await;
            }
            match verdict {
                Ok(()) => self.confirm(waiting),
                refused => waiting.answer(refused),
            }
        }
        // Who committed a turn hears of it before an activity of it is handed out: when that is done,
        // the turn that waits for it is to be ready (R8.142).
        if is_alone {
            tokio::task::yield_now().await;
        }
        for (look, seen) in batch.looks.iter().zip(outcome.seen) {
            match seen {
                Some(seen) => floor.serve(look, seen),
                None => floor.look_again(look.desk),
            }
        }
        uncommon
    }

    /// It is done: tells whoever asked for it, and those who wait for it.
    fn confirm(&self, waiting: Waiting) {
        if let Some(bell) = waiting.bell {
            self.store.board.ring(bell);
        }
        waiting.answer(Ok(()));
    }

    /// The queues in which a batch left something that its own looks did not take.
    fn left_by(&self, batch: &Batch, outcome: &Outcome) -> Vec<Queue> {
        let pins = self.store.known_pins();
        let mut queues = vec![Queue::Turns, Queue::Work];
        queues.retain(|queue| batch.leaves(*queue, outcome, &pins));
        queues
    }

    /// Lets other nodes know what this one did not take at once, and what clients may wait for.
    fn tell_others(&self, batch: &Batch, outcome: &Outcome, left: &[Queue]) {
        if !self.store.has_company() {
            return;
        }
        let is_done = |verdict: &Option<Result<(), Failure>>| matches!(verdict, Some(Ok(())));
        let done = batch.ops.iter().zip(&outcome.verdicts).filter(|(_, v)| is_done(v));
        self.store.outbox.add(|news| {
            news.turns |= left.contains(&Queue::Turns);
            news.work |= left.contains(&Queue::Work);
            news.bells.extend(done.filter_map(|(waiting, _)| waiting.bell));
        });
    }

    /// Undoes the grouping: looks are taken again later, ops are done one by one.
    fn take_apart(&self, batch: Batch) -> Vec<Waiting> {
        self.store.floor.conclude(&batch);
        batch.looks.iter().for_each(|look| self.store.floor.look_again(look.desk));
        batch.ops
    }

    /// Tells everybody that nothing came of it, or that nobody knows. What can be done again without
    /// doing it twice stays, if it may have been done.
    fn keep_repeatable(&self, batch: Batch, trouble: &Trouble) -> Option<Batch> {
        let (floor, error) = (&self.store.floor, &trouble.error);
        floor.conclude(&batch);
        // Fetches may as well wait for the server; what is wrong with themselves they hear.
        let is_theirs = !error.is_outage();
        batch.looks.iter().for_each(|look| floor.fail_look(look, error, is_theirs));
        let now = Instant::now();
        let until =
            batch.repeat_until.unwrap_or(now + self.store.pool.settings().statement_timeout);
        let is_worth_it = error.is_ambiguous() && now < until && !floor.is_closed();
        let may_be_done = |waiting: &Waiting| waiting.is_repeated || trouble.was_sent;
        let (kept, failed): (Vec<Waiting>, Vec<Waiting>) = batch
            .ops
            .into_iter()
            .partition(|waiting| is_worth_it && may_be_done(waiting) && waiting.op.is_repeatable());
        for waiting in failed {
            log_failure(&waiting.op, error);
            waiting.answer(Err(Failure::Database(error.clone())));
        }
        (!kept.is_empty()).then(|| Batch::again(kept, until))
    }

    /// What was refused because it was done before, when the answer was lost, is done.
    async fn judge_repeated(&self, op: &Op, refused: Result<(), Failure>) -> Result<(), Failure> {
        let Some(call) = op.was_done() else { return refused };
        let Some(connection) = &self.connection else { return refused };
        let asked = self.store.pool.ask(connection, call.sql, &call.values()).await;
        match asked?.first().map(|row| row.get(0)) {
            Some(true) => Ok(()),
            _ => refused,
        }
    }
}

/// Why a transaction was not made, as far as is known.
struct Trouble {
    error: PgError,
    /// The server may have heard of it.
    was_sent: bool,
}

fn log_failure(op: &Op, error: &PgError) {
    let kind = op.kind();
    tracing::debug!(target: "duroxide::providers::postgres", %error, ?kind, "not done");
}
