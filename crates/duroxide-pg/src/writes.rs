//! Everything that writes and is neither a fetch nor a commit: one function of the schema each.

use duroxide_core::model::{Event, WorkItem, kind_of};
use duroxide_core::provider::Refusal;
use tokio_postgres::Row;
use tokio_postgres::types::FromSql;

use crate::commit::refusal_of_lock;
use crate::drafts::{MessageDraft, WorkDraft};
use crate::error::Failure;
use crate::events::{Delta, EventColumns};
use crate::numbers::{id_in, id_out, span_in};
use crate::store::Store;
use crate::text::{pack, pack_some};
use crate::token;

impl Store {
    /// Queues a message (R8.10).
    pub(crate) async fn enqueue_message(&self, item: &WorkItem, delay: u64) -> Result<(), Failure> {
        const ENQUEUE: &str = "SELECT duroxide.enqueue_messages($1, $2, $3, $4, $5, $6)";
        let draft = MessageDraft::of(item)?;
        let (ids, kinds) = (vec![pack(draft.instance)], vec![draft.kind as i16]);
        let (delays, payloads) = (vec![span_in(delay)], vec![draft.payload]);
        let (now, retention) = (self.given_time(), self.retention());
        self.pool.query(ENQUEUE, &[&ids, &kinds, &delays, &payloads, &now, &retention]).await?;
        self.turns.ring();
        Ok(())
    }

    /// Queues an activity.
    pub(crate) async fn enqueue_work(&self, item: &WorkItem) -> Result<(), Failure> {
        const ENQUEUE: &str = "SELECT duroxide.enqueue_work($1, $2, $3, $4, $5, $6)";
        let draft = WorkDraft::of(item)?;
        let (executions, activities) = (vec![id_in(draft.execution)], vec![id_in(draft.activity)]);
        let (ids, payloads) = (vec![pack(draft.instance)], vec![draft.payload]);
        let (tags, sessions) = (vec![pack_some(draft.tag)], vec![pack_some(draft.session)]);
        self.pool
            .query(ENQUEUE, &[&ids, &executions, &activities, &tags, &sessions, &payloads])
            .await?;
        self.work.ring();
        Ok(())
    }

    /// Removes a locked activity and queues its outcome (R8.74).
    pub(crate) async fn ack_work(
        &self,
        token: &str,
        outcome: Option<&WorkItem>,
    ) -> Result<(), Failure> {
        const ACK: &str = "SELECT duroxide.ack_work($1, $2, $3, $4, $5, $6, $7)";
        let (seq, secret) = token::read_work(token)?;
        let is_outcome = |item: &WorkItem| {
            matches!(item, WorkItem::ActivityCompleted { .. } | WorkItem::ActivityFailed { .. })
        };
        if let Some(item) = outcome.filter(|item| !is_outcome(item)) {
            return Err(Refusal::NotAnOutcome(kind_of(item)).into());
        }
        let draft = outcome.map(MessageDraft::of).transpose()?;
        let ids: Vec<_> = draft.iter().map(|draft| pack(draft.instance)).collect();
        let targets = vec![draft.as_ref().map(|_| 1)];
        let payloads = vec![draft.map(|draft| draft.payload)];
        let (seqs, secrets) = (vec![seq], vec![secret]);
        let (now, retention) = (self.given_time(), self.retention());
        let rows = self
            .pool
            .query(ACK, &[&ids, &seqs, &secrets, &targets, &payloads, &now, &retention])
            .await?;
        verdict(first_of(&rows))?;
        self.turns.ring();
        Ok(())
    }

    /// Gives a turn back (R8.65).
    pub(crate) async fn abandon_turn(
        &self,
        token: &str,
        delay: Option<u64>,
        uncount: bool,
    ) -> Result<(), Failure> {
        const ABANDON: &str = "SELECT duroxide.abandon_turn($1, $2, $3, $4, $5, $6)";
        let (key, secret) = token::read_turn(token)?;
        let (delay, now, retention) =
            (span_in(delay.unwrap_or(0)), self.given_time(), self.retention());
        let rows =
            self.pool.query(ABANDON, &[&key, &secret, &delay, &uncount, &now, &retention]).await?;
        verdict(value(&rows))?;
        self.turns.ring();
        Ok(())
    }

    /// Gives an activity back (R8.76).
    pub(crate) async fn abandon_work(
        &self,
        token: &str,
        delay: u64,
        uncount: bool,
    ) -> Result<(), Failure> {
        const ABANDON: &str = "SELECT duroxide.abandon_work($1, $2, $3, $4, $5)";
        let (seq, secret) = token::read_work(token)?;
        let (delay, now) = (span_in(delay), self.given_time());
        let rows = self.pool.query(ABANDON, &[&seq, &secret, &delay, &uncount, &now]).await?;
        verdict(value(&rows))?;
        self.work.ring();
        Ok(())
    }

    /// Holds a turn's lock for longer (R8.68).
    pub(crate) async fn renew_turn(&self, token: &str, extend: u64) -> Result<(), Failure> {
        const RENEW: &str = "SELECT duroxide.renew_turns($1, $2, $3, $4)";
        let (key, secret) = token::read_turn(token)?;
        let (keys, secrets, extend) = (vec![key], vec![secret], vec![span_in(extend)]);
        let rows = self.pool.query(RENEW, &[&keys, &secrets, &extend, &self.given_time()]).await?;
        verdict(first_of(&rows))
    }

    /// Holds an activity's lock for longer (R8.75).
    pub(crate) async fn renew_work(&self, token: &str, extend: u64) -> Result<(), Failure> {
        const RENEW: &str = "SELECT duroxide.renew_work($1, $2, $3, $4)";
        let (seq, secret) = token::read_work(token)?;
        let (seqs, secrets, extend) = (vec![seq], vec![secret], vec![span_in(extend)]);
        let rows = self.pool.query(RENEW, &[&seqs, &secrets, &extend, &self.given_time()]).await?;
        verdict(first_of(&rows))
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
        let rows = self.pool.query(CLEAN, &[&self.given_time()]).await?;
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
        let columns = EventColumns::of(std::iter::once(&delta));
        let (started, outcome) = (delta.started.map(id_in), delta.outcome.map(id_in));
        let rows = self
            .pool
            .query(
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
        self.turns.ring();
        Ok(())
    }
}

/// The value a function returned.
pub(crate) fn value<'r, T: FromSql<'r>>(rows: &'r [Row]) -> Option<T> {
    rows.first().map(|row| row.get(0))
}

/// The first of the values a function returned.
fn first_of(rows: &[Row]) -> Option<i16> {
    value::<Vec<i16>>(rows)?.first().copied()
}

fn verdict(code: Option<i16>) -> Result<(), Failure> {
    match code {
        Some(0) => Ok(()),
        code => Err(refusal_of_lock(code.unwrap_or(1)).into()),
    }
}

/// A stored count.
pub(crate) fn count(stored: Option<i64>) -> usize {
    usize::try_from(stored.unwrap_or(0)).unwrap_or(0)
}
