//! Turns about to be committed, as arrays for `commit_turns`.

use std::borrow::Cow;
use std::collections::HashMap;

use duroxide_core::model::WorkItem;
use duroxide_core::provider::{Refusal, TurnCommit};
use tokio_postgres::types::ToSql;
use uuid::Uuid;

use crate::drafts::{MessageDraft, WorkDraft};
use crate::error::Failure;
use crate::events::{Delta, EventColumns};
use crate::numbers::{id_in, id_out, ms_in};
use crate::store::Store;
use crate::text::{pack, pack_some};
use crate::token;

const COMMIT: &str = "SELECT result, taken_event FROM duroxide.commit_turns($1, $2, $3, $4, $5, $6,
     $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22, $23, $24, $25,
     $26, $27, $28, $29, $30, $31, $32, $33, $34, $35, $36, $37, $38, $39, $40, $41, $42, $43, $44)";

/// One turn, serialised.
#[derive(Debug)]
pub(crate) struct CommitDraft<'a> {
    key: i64,
    secret: Uuid,
    commit: &'a TurnCommit,
    delta: Delta<'a>,
    work: Vec<WorkDraft<'a>>,
    messages: Vec<(MessageDraft<'a>, Option<i64>)>,
}

impl<'a> CommitDraft<'a> {
    /// Serialises a commit; whatever can be refused without looking at the store is refused.
    pub(crate) fn of(lock_token: &str, commit: &'a TurnCommit) -> Result<Self, Refusal> {
        let (key, secret) = token::read_turn(lock_token)?;
        let work = commit.worker_items.iter().map(WorkDraft::of).collect::<Result<_, _>>()?;
        let message = |item| Ok((MessageDraft::of(item)?, due_time(item)));
        Ok(Self {
            key,
            secret,
            commit,
            delta: Delta::of(commit.execution_id, &commit.history_delta)?,
            work,
            messages: commit.orchestrator_items.iter().map(message).collect::<Result<_, _>>()?,
        })
    }
}

impl Store {
    /// Commits turns, of different instances, in one transaction; how each of them went.
    pub(crate) async fn commit_turns(
        &self,
        drafts: &[CommitDraft<'_>],
    ) -> Result<Vec<Result<(), Refusal>>, Failure> {
        let ids = Ids::of(drafts);
        let columns = Columns::of(drafts, &ids);
        let (now, retention) = (self.given_time(), self.retention());
        let mut params = columns.params();
        params.insert(0, &ids.opened);
        params.insert(0, &ids.texts);
        params.push(&now);
        params.push(&retention);
        let rows = self.pool.query(COMMIT, &params).await?;
        let verdict = |(row, draft): (&tokio_postgres::Row, &CommitDraft<'_>)| match row.get(0) {
            0_i16 => Ok(()),
            3 => Err(Refusal::DuplicateEvent {
                execution_id: draft.commit.execution_id,
                event_id: id_out(row.get(1)),
            }),
            code => Err(refusal_of_lock(code)),
        };
        Ok(rows.iter().zip(drafts).map(verdict).collect())
    }
}

/// Why a lock does not hold.
pub(crate) fn refusal_of_lock(code: i16) -> Refusal {
    if code == 2 { Refusal::LockExpired } else { Refusal::UnknownToken }
}

/// The ids that turns speak of, each once: first those that are written to, then the others.
struct Ids<'a> {
    texts: Vec<Cow<'a, str>>,
    opened: i32,
    places: HashMap<&'a str, i32>,
}

impl<'a> Ids<'a> {
    fn of(drafts: &'a [CommitDraft<'_>]) -> Self {
        let mut ids = Self { texts: Vec::new(), opened: 0, places: HashMap::new() };
        for draft in drafts {
            draft.work.iter().for_each(|work| ids.add(work.instance));
            draft.messages.iter().for_each(|(message, _)| ids.add(message.instance));
        }
        ids.opened = place(ids.texts.len());
        for draft in drafts {
            draft
                .commit
                .cancelled_activities
                .iter()
                .for_each(|activity| ids.add(&activity.instance));
            draft.commit.metadata.parent_instance_id.iter().for_each(|parent| ids.add(parent));
        }
        ids
    }

    fn add(&mut self, id: &'a str) {
        if !self.places.contains_key(id) {
            self.texts.push(pack(id));
            self.places.insert(id, place(self.texts.len()));
        }
    }

    fn place(&self, id: &str) -> i32 {
        self.places.get(id).copied().unwrap_or(0)
    }
}

/// What the function takes, in its order.
struct Columns<'a> {
    keys: Vec<i64>,
    tokens: Vec<Uuid>,
    executions: Vec<i64>,
    started: Vec<Option<i64>>,
    outcomes: Vec<Option<i64>>,
    statuses: Vec<Option<Cow<'a, str>>>,
    outputs: Vec<Option<Cow<'a, str>>>,
    names: Vec<Option<Cow<'a, str>>>,
    versions: Vec<Option<Cow<'a, str>>>,
    parents: Vec<Option<i32>>,
    pins: Vec<Option<String>>,
    customized: Vec<bool>,
    customs: Vec<Option<Cow<'a, str>>>,
    cleared: Vec<bool>,
    event_turns: Vec<i32>,
    events: EventColumns<'a>,
    kv: KvColumns<'a>,
    work: WorkColumns<'a>,
    cancelled: CancelColumns,
    messages: MessageColumns<'a>,
}

impl<'a> Columns<'a> {
    fn of(drafts: &'a [CommitDraft<'a>], ids: &Ids<'a>) -> Self {
        let metadata = || drafts.iter().map(|draft| &draft.commit.metadata);
        let deltas = || drafts.iter().map(|draft| &draft.delta);
        let text = |pick: fn(&duroxide_core::provider::ExecutionMetadata) -> Option<&String>| {
            metadata().map(|metadata| pick(metadata).map(|text| pack(text))).collect()
        };
        let pin = |version: &semver::Version| version.to_string();
        Self {
            keys: drafts.iter().map(|draft| draft.key).collect(),
            tokens: drafts.iter().map(|draft| draft.secret).collect(),
            executions: drafts.iter().map(|draft| id_in(draft.commit.execution_id)).collect(),
            started: deltas().map(|delta| delta.started.map(id_in)).collect(),
            outcomes: deltas().map(|delta| delta.outcome.map(id_in)).collect(),
            statuses: text(|metadata| metadata.status.as_ref()),
            outputs: text(|metadata| metadata.output.as_ref()),
            names: text(|metadata| metadata.orchestration_name.as_ref()),
            versions: text(|metadata| metadata.orchestration_version.as_ref()),
            parents: metadata()
                .map(|metadata| metadata.parent_instance_id.as_ref().map(|id| ids.place(id)))
                .collect(),
            pins: metadata()
                .map(|metadata| metadata.pinned_duroxide_version.as_ref().map(pin))
                .collect(),
            customized: deltas().map(|delta| delta.custom_status.is_some()).collect(),
            customs: deltas().map(|delta| pack_some(delta.custom_status.flatten())).collect(),
            cleared: deltas().map(|delta| delta.cleared).collect(),
            event_turns: turns(drafts, |draft| draft.delta.events.len()),
            events: EventColumns::of(deltas()),
            kv: KvColumns::of(drafts),
            work: WorkColumns::of(drafts, ids),
            cancelled: CancelColumns::of(drafts, ids),
            messages: MessageColumns::of(drafts, ids),
        }
    }

    fn params(&self) -> Vec<&(dyn ToSql + Sync)> {
        let (events, kv, work) = (&self.events, &self.kv, &self.work);
        let (cancelled, messages) = (&self.cancelled, &self.messages);
        vec![
            &self.keys,
            &self.tokens,
            &self.executions,
            &self.started,
            &self.outcomes,
            &self.statuses,
            &self.outputs,
            &self.names,
            &self.versions,
            &self.parents,
            &self.pins,
            &self.customized,
            &self.customs,
            &self.cleared,
            &self.event_turns,
            &events.ids,
            &events.sources,
            &events.times,
            &events.stamps,
            &events.bodies,
            &kv.turns,
            &kv.keys,
            &kv.values,
            &kv.times,
            &work.turns,
            &work.ids,
            &work.executions,
            &work.activities,
            &work.tags,
            &work.sessions,
            &work.payloads,
            &cancelled.turns,
            &cancelled.ids,
            &cancelled.executions,
            &cancelled.activities,
            &messages.turns,
            &messages.ids,
            &messages.kinds,
            &messages.due,
            &messages.payloads,
        ]
    }
}

struct KvColumns<'a> {
    turns: Vec<i32>,
    keys: Vec<Cow<'a, str>>,
    values: Vec<Option<Cow<'a, str>>>,
    times: Vec<i64>,
}

impl<'a> KvColumns<'a> {
    fn of(drafts: &'a [CommitDraft<'a>]) -> Self {
        let changes = || drafts.iter().flat_map(|draft| &draft.delta.kv);
        Self {
            turns: turns(drafts, |draft| draft.delta.kv.len()),
            keys: changes().map(|(key, _)| pack(key)).collect(),
            values: changes().map(|(_, set)| set.map(|(value, _)| pack(value))).collect(),
            times: changes().map(|(_, set)| set.map_or(0, |(_, at)| ms_in(at))).collect(),
        }
    }
}

struct WorkColumns<'a> {
    turns: Vec<i32>,
    ids: Vec<i32>,
    executions: Vec<i64>,
    activities: Vec<i64>,
    tags: Vec<Option<Cow<'a, str>>>,
    sessions: Vec<Option<Cow<'a, str>>>,
    payloads: Vec<&'a str>,
}

impl<'a> WorkColumns<'a> {
    fn of(drafts: &'a [CommitDraft<'a>], ids: &Ids<'a>) -> Self {
        let all = || drafts.iter().flat_map(|draft| &draft.work);
        Self {
            turns: turns(drafts, |draft| draft.work.len()),
            ids: all().map(|work| ids.place(work.instance)).collect(),
            executions: all().map(|work| id_in(work.execution)).collect(),
            activities: all().map(|work| id_in(work.activity)).collect(),
            tags: all().map(|work| pack_some(work.tag)).collect(),
            sessions: all().map(|work| pack_some(work.session)).collect(),
            payloads: all().map(|work| work.payload.as_str()).collect(),
        }
    }
}

struct CancelColumns {
    turns: Vec<i32>,
    ids: Vec<i32>,
    executions: Vec<i64>,
    activities: Vec<i64>,
}

impl CancelColumns {
    fn of(drafts: &[CommitDraft<'_>], ids: &Ids<'_>) -> Self {
        let all = || drafts.iter().flat_map(|draft| &draft.commit.cancelled_activities);
        Self {
            turns: turns(drafts, |draft| draft.commit.cancelled_activities.len()),
            ids: all().map(|activity| ids.place(&activity.instance)).collect(),
            executions: all().map(|activity| id_in(activity.execution_id)).collect(),
            activities: all().map(|activity| id_in(activity.activity_id)).collect(),
        }
    }
}

struct MessageColumns<'a> {
    turns: Vec<i32>,
    ids: Vec<i32>,
    kinds: Vec<i16>,
    due: Vec<Option<i64>>,
    payloads: Vec<&'a str>,
}

impl<'a> MessageColumns<'a> {
    fn of(drafts: &'a [CommitDraft<'a>], ids: &Ids<'a>) -> Self {
        let all = || drafts.iter().flat_map(|draft| &draft.messages);
        Self {
            turns: turns(drafts, |draft| draft.messages.len()),
            ids: all().map(|(message, _)| ids.place(message.instance)).collect(),
            kinds: all().map(|(message, _)| message.kind as i16).collect(),
            due: all().map(|(_, due)| *due).collect(),
            payloads: all().map(|(message, _)| message.payload.as_str()).collect(),
        }
    }
}

/// The place of each draft, from 1, as often as it has entries.
fn turns(drafts: &[CommitDraft<'_>], entries: impl Fn(&CommitDraft<'_>) -> usize) -> Vec<i32> {
    let repeat = |(place, draft)| std::iter::repeat_n(place, entries(draft));
    (1..).zip(drafts).flat_map(repeat).collect()
}

/// Arrays begin at 1; none has as many entries as there are numbers.
fn place(count: usize) -> i32 {
    i32::try_from(count).unwrap_or(i32::MAX)
}

fn due_time(item: &WorkItem) -> Option<i64> {
    match item {
        WorkItem::TimerFired { fire_at_ms, .. } => Some(ms_in(*fire_at_ms)),
        _ => None,
    }
}
