//! A batch as one transaction in one round trip.

use std::time::Duration;

use duroxide_core::clock::millis_rounded_up as millis;
use duroxide_core::provider::TagFilter;
use tokio_postgres::Row;

use super::alone::{common_call, common_verdict, statement_for_both};
use super::call::Call;
use super::calls::{Terms, call_of, lock_call, verdicts};
use super::desk::{Look, Seen, What};
use super::op::{Kind, Op, Queue};
use super::state::Batch;
use crate::connection::Connection;
use crate::error::{Failure, PgError};
use crate::numbers::span_in;
use crate::pins::Pins;
use crate::store::Store;
use crate::text::pack;

/// How long at most between looks of those who wait, whatever the server told: the pulse is there every
/// second, and this is for the time without one.
const LONGEST_WAIT: Duration = Duration::from_secs(15);
/// The same where time is given by a test, which may let it jump.
const LONGEST_WAIT_BY_TEST: Duration = Duration::from_millis(50);
/// How long at least: what is due may be in somebody else's hands.
const PAUSE: Duration = Duration::from_millis(2);

/// The statements of looks.
pub(super) const FETCH_TURNS: &str =
    "SELECT * FROM duroxide.fetch_turns($1, $2, $3, $4, $5, $6, $7, $8, $9)";
pub(super) const FETCH_WORK: &str =
    "SELECT * FROM duroxide.fetch_work($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)";

/// What a transaction came to.
pub(crate) struct Outcome {
    /// For each op; `None` if it was not the common case, and has to be done in the general way.
    pub(super) verdicts: Vec<Option<Result<(), Failure>>>,
    /// For each look; `None` if it has to be taken again.
    pub(super) seen: Vec<Option<Seen>>,
    /// Messages came during turns that were committed.
    pub(super) has_turns: bool,
}

impl Batch {
    /// Whether it brought something that its own looks, as far as can be told, did not take.
    pub(super) fn leaves(&self, queue: Queue, outcome: &Outcome, known: &Pins) -> bool {
        let admits_all = |what: &What| match what {
            What::Turns { pins } => pins.as_ref().is_none_or(|range| known.are_within(range)),
            What::Work { tags, .. } => {
                let takes_plain = !matches!(tags, TagFilter::None | TagFilter::Tags(_));
                takes_plain && !self.feed.is_odd_work
            }
        };
        let takes_all = |(look, seen): (&Look, &Option<Seen>)| {
            admits_all(&look.fetch.what) && seen.as_ref().is_some_and(|seen| !seen.is_full)
        };
        let of_queue = |(look, _): &(&Look, &Option<Seen>)| look.fetch.queue() == queue;
        let has_more = queue == Queue::Turns && outcome.has_turns;
        (has_more || self.feed.has(queue))
            && !self.looks.iter().zip(&outcome.seen).filter(of_queue).any(takes_all)
    }
}

/// Does everything, or nothing.
pub(super) async fn transact(
    store: &Store,
    connection: &Connection,
    batch: &Batch,
) -> Result<Outcome, PgError> {
    let terms =
        Terms { now: store.given_time(), retention: store.retention(), node: store.node_id() };
    let common = match &batch.ops[..] {
        [only] if batch.is_common => common_call(&only.op, terms),
        _ => None,
    };
    match (common, &batch.ops[..]) {
        (Some(call), [only]) => transact_alone(store, connection, call, &only.op, batch).await,
        _ => transact_many(store, connection, batch, terms).await,
    }
}

/// The common case of an op alone, with the looks that ride along.
async fn transact_alone(
    store: &Store,
    connection: &Connection,
    call: Call<'_>,
    op: &Op,
    batch: &Batch,
) -> Result<Outcome, PgError> {
    let terms =
        Terms { now: store.given_time(), retention: store.retention(), node: store.node_id() };
    let is_ready_of = |rows: &[Row]| matches!(op, Op::Commit(_)) && rows.iter().any(is_ready);
    if let [look] = &batch.looks[..]
        && let Some(sql) = statement_for_both(&call, look)
    {
        let both = [call.followed_by(look_call(store, look, false, terms), sql)];
        let begin = store.pool.begin(false, true);
        let rows = store.pool.pipeline(connection, begin, &both).await?.pop().unwrap_or_default();
        let (verdicts, has_turns) = (vec![common_verdict(op, &rows)], is_ready_of(&rows));
        let seen = vec![read_look(store, connection, look, rows).await];
        return Ok(Outcome { verdicts, seen, has_turns });
    }
    let looks = batch.looks.iter().map(|look| look_call(store, look, false, terms));
    let calls: Vec<Call<'_>> = std::iter::once(call).chain(looks).collect();
    let begin = store.pool.begin(false, calls.len() == 1);
    let mut answers = store.pool.pipeline(connection, begin, &calls).await?.into_iter();
    let rows = answers.next().unwrap_or_default();
    let (verdicts, has_turns) = (vec![common_verdict(op, &rows)], is_ready_of(&rows));
    let seen = read_looks(store, connection, batch, answers).await;
    Ok(Outcome { verdicts, seen, has_turns })
}

async fn transact_many(
    store: &Store,
    connection: &Connection,
    batch: &Batch,
    terms: Terms,
) -> Result<Outcome, PgError> {
    let groups = groups_of(batch);
    let is_alone = groups.len() + batch.looks.len() == 1;
    let mut calls = Vec::with_capacity(groups.len() + batch.looks.len() + 1);
    let locks_first = 1 < groups.len();
    if locks_first {
        calls.push(lock_call(&batch.ops));
    }
    calls.extend(groups.iter().map(|(kind, _, ops)| call_of(*kind, ops, terms)));
    calls.extend(batch.looks.iter().map(|look| look_call(store, look, is_alone, terms)));
    let is_brief = batch.ops.iter().all(|waiting| waiting.op.is_brief());
    // A look that is alone says itself that it need not be on the disk.
    let is_bare = is_alone && (!is_brief || batch.ops.is_empty());
    let begin = store.pool.begin(is_brief, is_bare);
    let mut answers = store.pool.pipeline(connection, begin, &calls).await?.into_iter();

    if locks_first {
        answers.next();
    }
    let mut result: Vec<Option<Result<(), Failure>>> = batch.ops.iter().map(|_| None).collect();
    let mut has_turns = false;
    for (kind, places, ops) in &groups {
        let rows = answers.next().unwrap_or_default();
        has_turns |= *kind == Kind::Commit && rows.iter().any(is_ready);
        for (place, verdict) in places.iter().zip(verdicts(*kind, ops, &rows)) {
            result[*place] = Some(verdict);
        }
    }
    let seen = read_looks(store, connection, batch, answers).await;
    Ok(Outcome { verdicts: result, seen, has_turns })
}

async fn read_looks(
    store: &Store,
    connection: &Connection,
    batch: &Batch,
    answers: impl Iterator<Item = Vec<Row>>,
) -> Vec<Option<Seen>> {
    let mut seen = Vec::with_capacity(batch.looks.len());
    for (look, rows) in batch.looks.iter().zip(answers) {
        seen.push(read_look(store, connection, look, rows).await);
    }
    seen
}

fn is_ready(row: &Row) -> bool {
    row.get::<_, Option<bool>>("is_ready") == Some(true)
}

/// Ops by kind, in the order in which kinds are done, with their places in the batch.
fn groups_of(batch: &Batch) -> Vec<(Kind, Vec<usize>, Vec<&Op>)> {
    let mut groups: Vec<(Kind, Vec<usize>, Vec<&Op>)> = Vec::new();
    for (place, waiting) in batch.ops.iter().enumerate() {
        let kind = waiting.op.kind();
        match groups.iter_mut().find(|(other, _, _)| *other == kind) {
            Some((_, places, ops)) => {
                places.push(place);
                ops.push(&waiting.op);
            }
            None => groups.push((kind, vec![place], vec![&waiting.op])),
        }
    }
    groups.sort_by_key(|(kind, _, _)| *kind);
    groups
}

fn look_call<'a>(store: &Store, look: &'a Look, is_alone: bool, terms: Terms) -> Call<'a> {
    let max = i32::try_from(look.max).unwrap_or(i32::MAX);
    match &look.fetch.what {
        What::Turns { pins } => {
            let known = store.known_pins();
            let call = Call::new(FETCH_TURNS).with(max).with(look.fetch.lock_ms);
            let admitted = pins.as_ref().map(|range| known.admitted(range));
            let call = call.with(admitted).with(known.count()).with(look.secret);
            call.with(terms.node).with(is_alone).with(terms.now).with(terms.retention)
        }
        What::Work { tags, session } => {
            let (any, untagged, tags) = tags_of(tags);
            let owner = session.as_ref().map(|session| pack(&session.owner_id));
            let lease = session.as_ref().map(|session| span_in(millis(session.lock_timeout)));
            let call = Call::new(FETCH_WORK).with(max).with(look.fetch.lock_ms);
            let call = call.with(any).with(untagged).with(tags).with(owner).with(lease);
            call.with(look.secret).with(terms.node).with(is_alone).with(terms.now)
        }
    }
}

/// What a look came to; `None` if it has to be taken again.
async fn read_look(
    store: &Store,
    connection: &Connection,
    look: &Look,
    rows: Vec<Row>,
) -> Option<Seen> {
    let longest = match store.given_time() {
        Some(_) => LONGEST_WAIT_BY_TEST,
        None => LONGEST_WAIT,
    };
    let Some(first) = rows.first() else {
        return Some(Seen { rows, is_full: false, due_in: longest });
    };
    let now: i64 = first.get("now_ms");
    store.note_time(now);
    let is_turns = matches!(look.fetch.what, What::Turns { .. });
    if is_turns && first.get("new_pins") {
        // Should this fail, the next look says so again.
        if let Err(error) = store.learn_pins(connection).await {
            tracing::debug!(target: "duroxide::providers::postgres", %error, "pins not read");
        }
        return None;
    }
    let until = |due: i64| Duration::from_millis(u64::try_from(due - now).unwrap_or(0));
    let due: Option<i64> = first.get("next_due");
    let due_in = due.map_or(longest, |due| until(due).clamp(PAUSE, longest));
    let place: Option<i64> = first.get(if is_turns { "key" } else { "seq" });
    let rows = if place.is_some() { rows } else { Vec::new() };
    let is_full = !rows.is_empty() && rows.iter().any(|row| row.get("more"));
    Some(Seen { rows, is_full, due_in })
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
