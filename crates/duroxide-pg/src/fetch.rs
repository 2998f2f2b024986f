//! What is fetched: waited for, decoded, made into what the runtime expects.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use duroxide_core::clock::millis_rounded_up as millis;
use duroxide_core::model::WorkItem;
use duroxide_core::provider::{
    DispatcherCapabilityFilter, FetchedTurn, Refusal, SessionFetchConfig, TagFilter,
};
use tokio::time::Instant;
use tokio_postgres::Row;
use uuid::Uuid;

use crate::error::Failure;
use crate::lanes::{BEGINNING, Catch, FOR_EVER, Fetch, Queue, What, Wish};
use crate::numbers::{attempts_out, span_in};
use crate::store::Store;
use crate::text::pack;
use crate::token;
use crate::turn::decode_turn;

/// How long somebody has to be ready to wait to be content with what an earlier look saw.
const LONG: Duration = Duration::from_millis(100);

/// A locked activity: item, token, attempt.
pub(crate) type Job = (WorkItem, String, u32);

/// What a fetch of turns asks for; `None` if the filter lets nothing through. Of its ranges the first
/// counts (R8.90).
pub(crate) fn turns_wanted(
    lock_timeout: Duration,
    filter: Option<&DispatcherCapabilityFilter>,
) -> Option<Fetch> {
    let pins = match filter {
        Some(filter) => Some(filter.supported_duroxide_versions.first()?.clone()),
        None => None,
    };
    Some(Fetch { lock_ms: span_in(millis(lock_timeout)), what: What::Turns { pins } })
}

/// What a fetch of activities asks for; `None` if the filter lets nothing through (R8.79).
pub(crate) fn work_wanted(
    lock_timeout: Duration,
    session: Option<&SessionFetchConfig>,
    tags: &TagFilter,
) -> Option<Fetch> {
    if *tags == TagFilter::None {
        return None;
    }
    let what = What::Work { tags: tags.clone(), session: session.cloned() };
    Some(Fetch { lock_ms: span_in(millis(lock_timeout)), what })
}

impl Store {
    /// The next turns.
    pub(crate) async fn poll_turns(
        self: &Arc<Self>,
        fetch: Option<Fetch>,
        max: usize,
        poll_timeout: Duration,
        with_history: bool,
    ) -> Result<Vec<FetchedTurn>, Failure> {
        let deadline = Instant::now() + poll_timeout.min(FOR_EVER);
        loop {
            let Some(catch) = self.poll(fetch.clone(), max, poll_timeout, deadline).await? else {
                return Ok(Vec::new());
            };
            let mut turns = self.decode_turns(catch.rows()).await?;
            if with_history {
                self.add_histories(&mut turns).await?;
            }
            if !turns.is_empty() {
                catch.keep();
                return Ok(turns);
            }
        }
    }

    /// The next activities.
    pub(crate) async fn poll_work(
        self: &Arc<Self>,
        fetch: Option<Fetch>,
        max: usize,
        poll_timeout: Duration,
    ) -> Result<Vec<Job>, Failure> {
        let deadline = Instant::now() + poll_timeout.min(FOR_EVER);
        loop {
            let Some(catch) = self.poll(fetch.clone(), max, poll_timeout, deadline).await? else {
                return Ok(Vec::new());
            };
            let jobs = self.decode_work(catch.rows()).await?;
            if !jobs.is_empty() {
                catch.keep();
                return Ok(jobs);
            }
        }
    }

    async fn poll(
        self: &Arc<Self>,
        fetch: Option<Fetch>,
        max: usize,
        poll_timeout: Duration,
        deadline: Instant,
    ) -> Result<Option<Catch>, Failure> {
        let Some(fetch) = fetch else {
            // Waiting keeps the caller from asking again and again.
            tokio::time::sleep_until(deadline).await;
            return Ok(None);
        };
        self.start_if_needed();
        self.membership.settled().await;
        let is_content = LONG <= poll_timeout && self.given_time().is_none();
        let catch = self.floor.fetch(Wish { fetch, max, deadline, is_content }).await?;
        Ok((!catch.rows().is_empty()).then_some(catch))
    }

    /// Turns as the runtime expects them. What cannot be decoded becomes dead letters, and the rest
    /// of its turn is fetched again, by us or by somebody else (R8.30).
    async fn decode_turns(&self, rows: &[Row]) -> Result<Vec<FetchedTurn>, Failure> {
        let mut turns = Vec::with_capacity(rows.len());
        let mut failure = None;
        for row in rows {
            match decode_turn(row) {
                Ok(turn) => turns.push(turn),
                Err(undecodable) => {
                    let (key, secret) = (row.get("key"), row.get("token"));
                    failure = self.bury_messages(key, secret, &undecodable).await.err().or(failure);
                }
            }
        }
        match failure {
            Some(failure) if turns.is_empty() => Err(failure),
            _ => Ok(turns),
        }
    }

    async fn bury_messages(
        &self,
        key: i64,
        secret: Uuid,
        undecodable: &[(i64, String)],
    ) -> Result<(), Failure> {
        const BURY: &str = "SELECT duroxide.bury_messages($1, $2, $3, $4, $5, $6)";
        let seqs: Vec<i64> = undecodable.iter().map(|(seq, _)| *seq).collect();
        let reason = |(_, why): &(i64, String)| format!("message cannot be decoded: {why}");
        let reasons: Vec<String> =
            undecodable.iter().map(|why| pack(&reason(why)).into_owned()).collect();
        let (now, retention) = (self.given_time(), self.retention());
        self.pool.query(BURY, &[&key, &secret, &seqs, &reasons, &now, &retention]).await?;
        self.floor.lower(Queue::Turns, BEGINNING);
        Ok(())
    }

    /// Reads the histories into turns. One that makes no sense is reported in its turn (R8.31).
    async fn add_histories(&self, turns: &mut [FetchedTurn]) -> Result<(), Failure> {
        for turn in turns.iter_mut().filter(|turn| !turn.history_included) {
            let (id, execution) = (&turn.item.instance, turn.item.execution_id);
            match self.history(id, execution, 0, usize::MAX).await {
                Ok(history) => turn.item.history = history,
                Err(Failure::Refused(Refusal::UnreadableHistory(why))) => {
                    turn.item.history_error = Some(why);
                    turn.item.kv_snapshot = HashMap::new();
                }
                Err(failure) => return Err(failure),
            }
            turn.history_included = true;
        }
        Ok(())
    }

    /// Activities as the runtime expects them. What cannot be decoded becomes a dead letter (R8.78).
    async fn decode_work(&self, rows: &[Row]) -> Result<Vec<Job>, Failure> {
        let mut jobs = Vec::with_capacity(rows.len());
        let mut failure = None;
        for row in rows {
            let (seq, secret): (i64, Uuid) = (row.get("seq"), row.get("token"));
            match serde_json::from_str(row.get("payload")) {
                Ok(item) => {
                    let attempts = attempts_out(row.get("attempts"));
                    jobs.push((item, token::of_work(seq, secret), attempts));
                }
                Err(error) => {
                    let buried = self.bury_work(seq, secret, &error.to_string()).await;
                    failure = buried.err().or(failure);
                }
            }
        }
        match failure {
            Some(failure) if jobs.is_empty() => Err(failure),
            _ => Ok(jobs),
        }
    }

    async fn bury_work(&self, seq: i64, secret: Uuid, why: &str) -> Result<(), Failure> {
        const BURY: &str = "SELECT duroxide.bury_work($1, $2, $3, $4)";
        let reason = format!("activity cannot be decoded: {why}");
        self.pool.query(BURY, &[&seq, &secret, &pack(&reason), &self.given_time()]).await?;
        Ok(())
    }
}
