//! Everything that writes and is no fetch: what goes by the lanes, and what is seldom asked for.

use std::sync::Arc;

use duroxide_core::model::{Event, WorkItem};
use duroxide_core::provider::{DirectTurn, Refusal, TimerTurn, TurnCommit};
use tokio_postgres::Row;
use tokio_postgres::types::FromSql;

use crate::commit_board::place_of;
use crate::drafts::{MessageDraft, WorkDraft};
use crate::error::Failure;
use crate::events::{Delta, EventColumns};
use crate::lanes::{BEGINNING, CommitDraft, Lock, Op, Queue};
use crate::numbers::{id_in, id_out, span_in};
use crate::store::Store;
use crate::text::pack;
use crate::token;

impl Store {
    /// Queues a message (R8.10).
    pub(crate) async fn enqueue_message(
        self: &Arc<Self>,
        item: &WorkItem,
        delay: u64,
    ) -> Result<(), Failure> {
        self.run(Op::Enqueue { message: MessageDraft::of(item)?, delay: span_in(delay) }).await
    }

    /// Queues an activity.
    pub(crate) async fn enqueue_work(self: &Arc<Self>, item: &WorkItem) -> Result<(), Failure> {
        self.run(Op::QueueWork(WorkDraft::of(item)?)).await
    }

    /// Commits a turn (R8.40).
    pub(crate) async fn commit(
        self: &Arc<Self>,
        lock_token: &str,
        commit: &TurnCommit,
    ) -> Result<(), Failure> {
        let draft = CommitDraft::of(lock_token, commit)?;
        let bell = token::bell_of_turn(lock_token).filter(|_| draft.can_be_waited_for());
        self.start_if_needed();
        self.floor.run(Op::Commit(Box::new(draft)), bell).await
    }

    /// Removes a locked activity and commits the turn that has read its outcome (R8.142).
    pub(crate) async fn commit_direct(self: &Arc<Self>, turn: &DirectTurn) -> Result<(), Failure> {
        let draft = CommitDraft::of_direct(turn)?;
        let bell = draft.can_be_waited_for().then(|| place_of(&turn.instance));
        self.start_if_needed();
        self.floor.run(Op::Commit(Box::new(draft)), bell).await
    }

    /// Removes timers that are held back and commits the turn that has read them (R8.150).
    pub(crate) async fn commit_timers(self: &Arc<Self>, turn: &TimerTurn) -> Result<(), Failure> {
        let key = match turn.incarnation {
            // Fetches tell it, but whoever asks may not have fetched it.
            0 => self.key_of(&turn.instance).await?,
            key => Some(id_in(key)),
        };
        let key = key.ok_or_else(|| Refusal::NotAtRest(turn.instance.clone()))?;
        let draft = CommitDraft::of_timers(turn, key)?;
        let bell = draft.can_be_waited_for().then(|| place_of(&turn.instance));
        self.start_if_needed();
        self.floor.run(Op::Commit(Box::new(draft)), bell).await
    }

    /// Removes a locked activity and queues its outcome (R8.74).
    pub(crate) async fn ack_work(
        self: &Arc<Self>,
        token: &str,
        outcome: Option<&WorkItem>,
    ) -> Result<(), Failure> {
        self.run(Op::ack(token, outcome)?).await
    }

    /// Gives a turn back (R8.65).
    pub(crate) async fn abandon_turn(
        self: &Arc<Self>,
        token: &str,
        delay: u64,
        uncount: bool,
    ) -> Result<(), Failure> {
        self.run(Op::Abandon { lock: turn_lock(token)?, delay: span_in(delay), uncount }).await
    }

    /// Gives an activity back (R8.76).
    pub(crate) async fn abandon_work(
        self: &Arc<Self>,
        token: &str,
        delay: u64,
        uncount: bool,
    ) -> Result<(), Failure> {
        self.run(Op::Abandon { lock: work_lock(token)?, delay: span_in(delay), uncount }).await
    }

    /// Holds a turn's lock for longer (R8.68).
    pub(crate) async fn renew_turn(
        self: &Arc<Self>,
        token: &str,
        extend: u64,
    ) -> Result<(), Failure> {
        self.run(Op::Renew { lock: turn_lock(token)?, extend: span_in(extend) }).await
    }

    /// Holds an activity's lock for longer (R8.75).
    pub(crate) async fn renew_work(
        self: &Arc<Self>,
        token: &str,
        extend: u64,
    ) -> Result<(), Failure> {
        self.run(Op::Renew { lock: work_lock(token)?, extend: span_in(extend) }).await
    }

    /// Extends leases (R8.86).
    pub(crate) async fn renew_sessions(
        &self,
        owners: &[&str],
        extend: u64,
        idle: u64,
    ) -> Result<usize, Failure> {
        const RENEW: &str = "SELECT duroxide.renew_sessions($1, $2, $3, $4)";
        let owners: Vec<_> = owners.iter().map(|owner| pack(owner)).collect();
        let (extend, idle, now) = (span_in(extend), span_in(idle), self.given_time());
        let rows = self.pool.query(RENEW, &[&owners, &extend, &idle, &now]).await?;
        Ok(count(value(&rows)))
    }

    /// Forgets sessions nobody needs (R8.87).
    pub(crate) async fn clean_sessions(&self) -> Result<usize, Failure> {
        const CLEAN: &str = "SELECT duroxide.clean_sessions($1)";
        let rows = self.pool.change(CLEAN, &[&self.given_time()]).await?;
        Ok(count(value(&rows)))
    }

    /// Appends events outside a turn (R8.96).
    pub(crate) async fn append(
        &self,
        instance: &str,
        execution_id: u64,
        events: &[Event],
    ) -> Result<(), Failure> {
        const APPEND: &str =
            "SELECT duroxide.append_events($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)";
        let delta = Delta::of(execution_id, events)?;
        let columns = EventColumns::of(delta.events.iter());
        let (started, outcome) = (delta.started.map(id_in), delta.outcome.map(id_in));
        let rows = self
            .pool
            .change(
                APPEND,
                &[
                    &pack(instance),
                    &id_in(execution_id),
                    &started,
                    &outcome,
                    &columns.ids,
                    &columns.sources,
                    &columns.times,
                    &columns.stamps,
                    &columns.bodies,
                    &self.given_time(),
                    &self.retention(),
                ],
            )
            .await?;
        if let Some(taken) = value::<Option<i64>>(&rows).flatten() {
            let event_id = id_out(taken);
            return Err(Refusal::DuplicateEvent { execution_id, event_id }.into());
        }
        self.board.ring(place_of(instance));
        self.floor.lower(Queue::Turns, BEGINNING);
        self.floor.ring(Queue::Turns);
        Ok(())
    }

    async fn run(self: &Arc<Self>, op: Op) -> Result<(), Failure> {
        self.start_if_needed();
        self.floor.run(op, None).await
    }
}

fn turn_lock(token: &str) -> Result<Lock, Refusal> {
    let (place, secret) = token::read_turn(token)?;
    Ok(Lock { queue: Queue::Turns, place, secret })
}

fn work_lock(token: &str) -> Result<Lock, Refusal> {
    let (place, secret) = token::read_work(token)?;
    Ok(Lock { queue: Queue::Work, place, secret })
}

/// The value a function returned.
pub(crate) fn value<'r, T: FromSql<'r>>(rows: &'r [Row]) -> Option<T> {
    rows.first().map(|row| row.get(0))
}

/// A stored count.
pub(crate) fn count(stored: Option<i64>) -> usize {
    usize::try_from(stored.unwrap_or(0)).unwrap_or(0)
}
