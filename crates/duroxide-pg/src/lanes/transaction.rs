//! A batch as one transaction in one round trip.

use duroxide_core::provider::TagFilter;
use tokio_postgres::Row;

use super::alone::{Common, common_call, common_verdict};
use super::call::Call;
use super::calls::{Terms, call_of, drop_call, lock_call, verdicts};
use super::desk::{Look, Seen, What};
use super::look::{add_look, look_call, read_look};
use super::op::{Kind, Op, Queue, Waiting};
use super::state::Batch;
use crate::connection::Connection;
use crate::error::{Failure, PgError};
use crate::pins::Pins;
use crate::store::Store;

/// What a transaction came to.
pub(crate) struct Outcome {
    /// For each op; `None` if it was not the common case, and has to be done in the general way.
    pub(super) verdicts: Vec<Option<Result<(), Failure>>>,
    /// For each look; `None` if it has to be taken again.
    pub(super) seen: Vec<Option<Seen>>,
    /// Messages came during turns that were committed: the lowest place of their instances.
    pub(super) ready_from: Option<i64>,
    /// It is done, and may not be on the disk.
    pub(super) is_held: bool,
    /// How many connections there had been before it was asked for: these are older than it.
    pub(super) connections: u64,
}

impl Outcome {
    /// Whether the batch, and all before it, is on the disk: only what changes something is waited for.
    pub(super) fn is_on_disk(&self, batch: &Batch) -> bool {
        let lasts = |(waiting, verdict): (&Waiting, &Option<Result<(), Failure>>)| {
            matches!(verdict, Some(Ok(()))) && !waiting.op.is_brief()
        };
        !self.is_held && batch.ops.iter().zip(&self.verdicts).any(lasts)
    }
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
        let reaches = |look: &Look| match queue {
            Queue::Turns => outcome.ready_from.is_none_or(|place| look.from <= place),
            Queue::Work => true,
        };
        let takes_all = |(look, seen): (&Look, &Option<Seen>)| {
            let is_full = seen.as_ref().is_none_or(|seen| seen.is_full);
            admits_all(&look.fetch.what) && reaches(look) && !is_full
        };
        let of_queue = |(look, _): &(&Look, &Option<Seen>)| look.fetch.queue() == queue;
        let has_more = queue == Queue::Turns && outcome.ready_from.is_some();
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
    // Not after the answer: one that was opened meanwhile may be to a server that has failed since.
    let connections = Connection::count();
    let terms = Terms::of(store);
    if let [only] = &batch.ops[..]
        && batch.is_common
        && let Some(common) = common_call(&only.op, !store.pool.settings().through_pooler)
    {
        let outcome = transact_alone(store, connection, common, batch, terms).await?;
        return Ok(Outcome { connections, ..outcome });
    }
    let outcome = transact_many(store, connection, batch, terms).await?;
    Ok(Outcome { connections, ..outcome })
}

/// The common case of an op alone, with the looks that ride along: one is part of it.
async fn transact_alone(
    store: &Store,
    connection: &Connection,
    common: Common<'_>,
    batch: &Batch,
    terms: Terms,
) -> Result<Outcome, PgError> {
    let Common { mut call, queue } = common;
    let inner = batch.looks.iter().position(|look| can_be_inner(look, queue));
    add_look(&mut call, store, queue, inner.map(|place| &batch.looks[place]), terms);
    let others = others_than(inner, &batch.looks);
    let others = others.map(|look| look_call(store, look, false, terms));
    let drops = drop_call(&batch.ops);
    let own = 1 + usize::from(drops.is_some());
    let calls: Vec<Call<'_>> = std::iter::once(call).chain(drops).chain(others).collect();
    let begin = store.pool.begin(false, calls.len() == 1);
    let mut answers = store.pool.pipeline(connection, begin, &calls).await?;

    let rows = answers.drain(..own).next().unwrap_or_default();
    let verdicts = batch.ops.iter().map(|only| common_verdict(&only.op, &rows)).collect();
    let ready_from = rows.first().filter(|_| queue == Queue::Work).and_then(ready_from);
    let is_held = queue == Queue::Turns && rows.iter().any(|row| row.get("is_held"));
    if let Some(place) = inner {
        answers.insert(place, rows);
    }
    let seen = read_looks(store, connection, batch, answers.into_iter()).await;
    Ok(Outcome { verdicts, seen, ready_from, is_held, connections: 0 })
}

async fn transact_many(
    store: &Store,
    connection: &Connection,
    batch: &Batch,
    mut terms: Terms,
) -> Result<Outcome, PgError> {
    let groups = groups_of(batch);
    let drops = drop_call(&batch.ops);
    let has_drops = drops.is_some();
    let is_alone = groups.len() + batch.looks.len() + usize::from(has_drops) == 1;
    let mut calls = Vec::with_capacity(groups.len() + batch.looks.len() + 1);
    let locks_first = 1 < groups.len();
    if locks_first {
        calls.push(lock_call(&batch.ops));
        terms.is_locked = true;
    }
    let inner = inner_look(batch, &groups);
    calls.extend(groups.iter().map(|(kind, _, ops)| {
        let mut call = call_of(*kind, ops, terms);
        if *kind == Kind::Commit {
            let look = inner.map(|place| &batch.looks[place]);
            add_look(&mut call, store, Queue::Work, look, terms);
        }
        call
    }));
    calls.extend(drops);
    let others = others_than(inner, &batch.looks);
    calls.extend(others.map(|look| look_call(store, look, is_alone, terms)));
    let is_brief = batch.ops.iter().all(|waiting| waiting.op.is_brief());
    // A look that is alone says itself that it need not be on the disk.
    let is_bare = is_alone && (!is_brief || batch.ops.is_empty());
    let begin = store.pool.begin(is_brief, is_bare);
    let mut answers = store.pool.pipeline(connection, begin, &calls).await?.into_iter();

    if locks_first {
        answers.next();
    }
    let mut result: Vec<Option<Result<(), Failure>>> = batch.ops.iter().map(|_| None).collect();
    let (mut made_ready, mut inner_rows) = (None, Vec::new());
    for (kind, places, ops) in &groups {
        let rows = answers.next().unwrap_or_default();
        for (place, verdict) in places.iter().zip(verdicts(*kind, ops, &rows)) {
            result[*place] = Some(verdict);
        }
        if *kind == Kind::Commit {
            let mut rows = rows.into_iter();
            made_ready = rows.next().as_ref().and_then(ready_from);
            inner_rows = rows.collect();
        }
    }
    let mut answers: Vec<Vec<Row>> = answers.skip(usize::from(has_drops)).collect();
    if let Some(place) = inner {
        answers.insert(place, inner_rows);
    }
    let seen = read_looks(store, connection, batch, answers.into_iter()).await;
    let ready_from = made_ready;
    Ok(Outcome { verdicts: result, seen, ready_from, is_held: false, connections: 0 })
}

/// A look at activities is part of the commits, which may bring some.
fn inner_look(batch: &Batch, groups: &[Group<'_>]) -> Option<usize> {
    groups.iter().find(|(kind, _, _)| *kind == Kind::Commit)?;
    batch.looks.iter().position(|look| can_be_inner(look, Queue::Work))
}

fn can_be_inner(look: &Look, queue: Queue) -> bool {
    look.fetch.queue() == queue && !look.is_careful && !look.seeks_ended
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

/// The looks that are not part of another call.
fn others_than(inner: Option<usize>, looks: &[Look]) -> impl Iterator<Item = &Look> {
    looks.iter().enumerate().filter(move |(place, _)| Some(*place) != inner).map(|(_, look)| look)
}

fn ready_from(row: &Row) -> Option<i64> {
    row.get("ready_from")
}

/// Ops of one kind, with their places in the batch.
type Group<'a> = (Kind, Vec<usize>, Vec<&'a Op>);

/// Ops by kind, in the order in which kinds are done.
fn groups_of(batch: &Batch) -> Vec<Group<'_>> {
    let mut groups: Vec<Group<'_>> = Vec::new();
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
