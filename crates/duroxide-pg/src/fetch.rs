//! What is fetched: waited for, decoded, made into what the runtime expects.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use duroxide_core::clock::millis_rounded_up as millis;
use duroxide_core::model::WorkItem;
use duroxide_core::provider::{
    DispatcherCapabilityFilter, FetchedTurn, Refusal, SemverRange, SessionFetchConfig, TagFilter,
};
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_postgres::Row;
use uuid::Uuid;

use crate::error::Failure;
use crate::looks::Found;
use crate::numbers::{attempts_out, ms_out, span_in};
use crate::store::Store;
use crate::text::pack;
use crate::token;
use crate::turn::decode_turn;

/// Longer than anybody waits, and safe to add to an instant.
const FOR_EVER: Duration = Duration::from_secs(10 * 365 * 24 * 3600);
/// How long at most until a look at what other nodes did.
const LOOK_AGAIN: Duration = Duration::from_millis(50);
/// How long at least: what is due may be in somebody else's hands.
const PAUSE: Duration = Duration::from_millis(2);

const FETCH_TURNS: &str = "SELECT * FROM duroxide.fetch_turns($1, $2, $3, $4, $5, $6, $7)";
const FETCH_WORK: &str = "SELECT * FROM duroxide.fetch_work($1, $2, $3, $4, $5, $6, $7, $8, $9)";

/// What a fetch of turns asks for.
#[derive(Debug, Clone)]
pub(crate) struct TurnFetch {
    pub(crate) lock_ms: u64,
    /// Pins it can replay; `None` is all (R8.90).
    pub(crate) pins: Option<SemverRange>,
    pub(crate) max: usize,
    pub(crate) with_history: bool,
}

impl TurnFetch {
    /// Turns without history; `None` if the filter lets nothing through. Of its ranges the first
    /// counts (R8.90).
    pub(crate) fn new(
        lock_timeout: Duration,
        filter: Option<&DispatcherCapabilityFilter>,
        max: usize,
    ) -> Option<Self> {
        let pins = match filter {
            Some(filter) => Some(filter.supported_duroxide_versions.first()?.clone()),
            None => None,
        };
        Some(Self { lock_ms: millis(lock_timeout), pins, max, with_history: false })
    }

    /// The same with history.
    pub(crate) fn with_history(self) -> Self {
        Self { with_history: true, ..self }
    }
}

/// What a fetch of an activity asks for.
#[derive(Debug, Clone)]
pub(crate) struct WorkFetch {
    pub(crate) lock_ms: u64,
    pub(crate) tags: TagFilter,
    pub(crate) session: Option<SessionFetchConfig>,
    pub(crate) max: usize,
}

/// A locked activity: item, token, attempt.
pub(crate) type Job = (WorkItem, String, u32);

impl Store {
    /// The next turns.
    pub(crate) async fn poll_turns(
        self: &Arc<Self>,
        fetch: Option<TurnFetch>,
        poll_timeout: Duration,
    ) -> Result<Vec<FetchedTurn>, Failure> {
        let Some(fetch) = fetch else {
            // Waiting keeps the caller from asking again and again.
            tokio::time::sleep(poll_timeout).await;
            return Ok(Vec::new());
        };
        let deadline = Instant::now() + poll_timeout.min(FOR_EVER);
        loop {
            let bell = self.turns.listen();
            let (store, asked) = (Arc::clone(self), fetch.clone());
            let look = async move { store.fetch_turns(asked).await };
            let store = Arc::clone(self);
            let give_back = async move |turns: Vec<FetchedTurn>| store.give_turns_back(turns).await;
            match self.looks.look(look, give_back).await? {
                Found::Something(turns) => return Ok(turns),
                Found::Nothing(_) if deadline <= Instant::now() => return Ok(Vec::new()),
                Found::Nothing(due) => self.wait(bell, due, deadline).await,
            }
        }
    }

    /// The next activities.
    pub(crate) async fn poll_work(
        self: &Arc<Self>,
        fetch: WorkFetch,
        poll_timeout: Duration,
    ) -> Result<Vec<Job>, Failure> {
        if fetch.max == 0 {
            return Ok(Vec::new());
        }
        if fetch.tags == TagFilter::None {
            // R8.79. Waiting keeps the caller from asking again and again.
            tokio::time::sleep(poll_timeout).await;
            return Ok(Vec::new());
        }
        let deadline = Instant::now() + poll_timeout.min(FOR_EVER);
        loop {
            let bell = self.work.listen();
            let (store, asked) = (Arc::clone(self), fetch.clone());
            let look = async move { store.fetch_work(&asked).await };
            let store = Arc::clone(self);
            let give_back = async move |jobs: Vec<Job>| store.give_work_back(jobs).await;
            match self.looks.look(look, give_back).await? {
                Found::Something(jobs) => {
                    if fetch.session.is_some() {
                        // The same owner may be waiting elsewhere for the rows behind these.
                        self.work.ring();
                    }
                    return Ok(jobs);
                }
                Found::Nothing(_) if deadline <= Instant::now() => return Ok(Vec::new()),
                Found::Nothing(due) => self.wait(bell, due, deadline).await,
            }
        }
    }

    /// Waits until there may be something: a call, the time something is due, a look at what others
    /// did, the end.
    async fn wait(&self, mut bell: watch::Receiver<u64>, due: Option<u64>, deadline: Instant) {
        let until_due = due.map_or(LOOK_AGAIN, |due| {
            Duration::from_millis(due.saturating_sub(self.now_ms())).clamp(PAUSE, LOOK_AGAIN)
        });
        let end = deadline.min(Instant::now() + until_due);
        // The bell ends with the store, which we are part of.
        drop(tokio::time::timeout_at(end, bell.changed()).await);
    }

    /// One look for turns.
    async fn fetch_turns(&self, fetch: TurnFetch) -> Result<Found<Vec<FetchedTurn>>, Failure> {
        let max = i32::try_from(fetch.max).unwrap_or(i32::MAX);
        loop {
            let known = self.known_pins();
            let admitted = fetch.pins.as_ref().map(|range| known.admitted(range));
            let node: Option<i64> = None;
            let rows = self
                .pool
                .query(
                    FETCH_TURNS,
                    &[
                        &max,
                        &span_in(fetch.lock_ms),
                        &admitted,
                        &known.count(),
                        &node,
                        &self.given_time(),
                        &self.retention(),
                    ],
                )
                .await?;
            let Some(first) = rows.first() else { return Ok(Found::Nothing(None)) };
            self.note_time(first.get("now_ms"));
            if first.get("new_pins") {
                self.learn_pins().await?;
                continue;
            }
            if first.get::<_, Option<i64>>("key").is_none() {
                let due: Option<i64> = first.get("next_due");
                return Ok(Found::Nothing(due.map(ms_out)));
            }
            let mut turns = self.decode_turns(&rows).await?;
            if fetch.with_history
                && let Err(failure) = self.add_histories(&mut turns).await
            {
                self.give_turns_back(turns).await;
                return Err(failure);
            }
            if !turns.is_empty() {
                return Ok(Found::Something(turns));
            }
        }
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

    /// One look for activities.
    async fn fetch_work(&self, fetch: &WorkFetch) -> Result<Found<Vec<Job>>, Failure> {
        let (any, untagged, tags) = tags_of(&fetch.tags);
        let owner = fetch.session.as_ref().map(|session| pack(&session.owner_id));
        let lease = fetch.session.as_ref().map(|session| span_in(millis(session.lock_timeout)));
        let (max, node): (i32, Option<i64>) = (i32::try_from(fetch.max).unwrap_or(i32::MAX), None);
        let lock = span_in(fetch.lock_ms);
        loop {
            let now = self.given_time();
            let rows = self
                .pool
                .query(
                    FETCH_WORK,
                    &[&max, &lock, &any, &untagged, &tags, &owner, &lease, &node, &now],
                )
                .await?;
            let Some(first) = rows.first() else { return Ok(Found::Nothing(None)) };
            self.note_time(first.get("now_ms"));
            if first.get::<_, Option<i64>>("seq").is_none() {
                let due: Option<i64> = first.get("next_due");
                return Ok(Found::Nothing(due.map(ms_out)));
            }
            let jobs = self.decode_work(&rows).await?;
            if !jobs.is_empty() {
                return Ok(Found::Something(jobs));
            }
        }
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

    async fn give_turns_back(&self, turns: Vec<FetchedTurn>) {
        for turn in turns {
            if let Err(error) = self.abandon_turn(&turn.lock_token, None, true).await {
                log_unclaimed(error);
            }
        }
    }

    async fn give_work_back(&self, jobs: Vec<Job>) {
        for (_, token, _) in jobs {
            if let Err(error) = self.abandon_work(&token, 0, true).await {
                log_unclaimed(error);
            }
        }
    }
}

/// Its lock will run out.
fn log_unclaimed(failure: Failure) {
    let error = failure.during("give_back");
    tracing::warn!(target: "duroxide::providers::postgres", %error, "nobody took what was fetched");
}

/// Whether all, whether those without, and which tags a worker takes.
fn tags_of(filter: &TagFilter) -> (bool, bool, Vec<String>) {
    let packed = |tags: &std::collections::HashSet<String>| {
        tags.iter().map(|tag| pack(tag).into_owned()).collect()
    };
    match filter {
        TagFilter::Any => (true, true, Vec::new()),
        TagFilter::None => (false, false, Vec::new()),
        TagFilter::DefaultOnly => (false, true, Vec::new()),
        TagFilter::Tags(tags) => (false, false, packed(tags)),
        TagFilter::DefaultAnd(tags) => (false, true, packed(tags)),
    }
}
