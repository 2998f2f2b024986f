//! Ops of one kind as one call, and what its answer means for each of them.

use duroxide_core::provider::Refusal;
use tokio_postgres::Row;
use uuid::Uuid;

use super::call::Call;
use super::commit::CommitDraft;
use super::commit_columns::{add_activities, commit_call, place};
use super::op::{Kind, Lock, Op, Waiting};
use crate::drafts::{MessageDraft, WorkDraft};
use crate::error::Failure;
use crate::numbers::id_out;
use crate::store::Store;
use crate::text::unpack;

/// What calls are told about the store.
#[derive(Debug, Clone, Copy)]
pub(super) struct Terms {
    /// The time to go by, if that is not the server's.
    pub(super) now: Option<i64>,
    /// How long messages for nobody are kept.
    pub(super) retention: i64,
    pub(super) node: Option<i64>,
    /// The transaction has taken all its locks.
    pub(super) is_locked: bool,
}

impl Terms {
    pub(super) fn of(store: &Store) -> Self {
        let (now, retention, node) =
            (store.given_time(), store.retention(), store.membership.node());
        Self { now, retention, node, is_locked: false }
    }
}

/// The call that does ops of one kind.
pub(super) fn call_of<'a>(kind: Kind, ops: &[&'a Op], terms: Terms) -> Call<'a> {
    match kind {
        Kind::Enqueue => enqueue_call(ops, terms),
        Kind::QueueWork => queue_work_call(ops, terms),
        Kind::Commit => {
            let drafts: Vec<&CommitDraft> = ops.iter().filter_map(|op| commit_of(op)).collect();
            commit_call(&drafts, terms)
        }
        Kind::Ack => ack_call(ops, terms),
        Kind::AbandonTurn => {
            const ABANDON: &str = "SELECT duroxide.abandon_turns($1, $2, $3, $4, $5, $6)";
            abandon_call(ABANDON, ops, terms).with(terms.retention)
        }
        Kind::AbandonWork => {
            const ABANDON: &str = "SELECT duroxide.abandon_work($1, $2, $3, $4, $5)";
            abandon_call(ABANDON, ops, terms)
        }
        Kind::RenewTurn => {
            const RENEW: &str = "SELECT duroxide.renew_turns($1, $2, $3, $4)";
            renew_call(RENEW, ops, terms)
        }
        Kind::RenewWork => {
            const RENEW: &str = "SELECT duroxide.renew_work($1, $2, $3, $4)";
            renew_call(RENEW, ops, terms)
        }
    }
}

/// How each of the ops went.
pub(super) fn verdicts(kind: Kind, ops: &[&Op], rows: &[Row]) -> Vec<Result<(), Failure>> {
    match kind {
        Kind::Enqueue | Kind::QueueWork => ops.iter().map(|_| Ok(())).collect(),
        Kind::Commit => {
            let (codes, taken): (Vec<i16>, Vec<Option<i64>>) =
                rows.first().map(|row| (row.get(0), row.get(1))).unwrap_or_default();
            let answers: Vec<_> = codes.into_iter().zip(taken).collect();
            let mut rest = &answers[..];
            let verdict = |op: &&Op| {
                let turns = commit_of(op).map_or(1, |draft| draft.turns.len());
                let (own, others) = rest.split_at(turns.min(rest.len()));
                rest = others;
                commit_verdict(op, own)
            };
            ops.iter().map(verdict).collect()
        }
        _ => {
            let codes: Vec<i16> = rows.first().map(|row| row.get(0)).unwrap_or_default();
            codes.into_iter().map(lock_verdict).collect()
        }
    }
}

/// The call that takes all locks of ops of several kinds.
pub(super) fn lock_call<'a>(waiting: &'a [Waiting]) -> Call<'a> {
    const LOCK: &str = "SELECT duroxide.lock_batch($1, $2, $3, $4, $5, $6, $7, $8)";
    let ops = || waiting.iter().map(|waiting| &waiting.op);
    let commits = || ops().filter_map(commit_of);
    let turns = || commits().flat_map(|draft| &draft.turns);
    let mut ids: Vec<&str> = Vec::new();
    let (mut keys, mut seqs) = (Vec::new(), Vec::new());
    for op in ops() {
        match op {
            Op::Enqueue { message, .. } => ids.push(&message.instance),
            Op::QueueWork(draft) => ids.push(&draft.instance),
            Op::Commit(draft) => {
                ids.extend(draft.turns.iter().flat_map(|turn| turn.ids_written()));
            }
            Op::Ack { outcome, .. } => ids.extend(outcome.iter().map(|m| m.instance.as_str())),
            Op::Renew { .. } | Op::Abandon { .. } => {}
        }
        match op.lock() {
            Some((super::Queue::Turns, key)) => keys.push(key),
            Some((super::Queue::Work, seq)) => seqs.push(seq),
            None => {}
        }
    }
    ids.sort_unstable();
    ids.dedup();
    let cancelled = || turns().flat_map(|turn| &turn.cancelled);
    let parents = turns().filter_map(|turn| turn.parent.as_deref());
    let direct = commits().filter_map(CommitDraft::activity).map(|done| done.instance.as_str());
    let others = cancelled().map(|gone| gone.instance.as_str());
    let also: Vec<&str> = others.chain(parents).chain(direct).collect();
    Call::new(LOCK)
        .with(turns().map(|turn| turn.pin.as_deref()).collect::<Vec<_>>())
        .with(ids)
        .with(also)
        .with(keys)
        .with(seqs)
        .with(cancelled().map(|gone| gone.instance.as_str()).collect::<Vec<_>>())
        .with(cancelled().map(|gone| gone.execution).collect::<Vec<_>>())
        .with(cancelled().map(|gone| gone.activity).collect::<Vec<_>>())
}

/// The call that marks the timers that turns have dropped, if they have dropped any (R8.151). It comes
/// after the commits, in their transaction.
pub(super) fn drop_call(waiting: &[Waiting]) -> Option<Call<'_>> {
    const DROP: &str = "SELECT duroxide.drop_timers($1, $2, $3, $4)";
    let commits = || waiting.iter().filter_map(|waiting| commit_of(&waiting.op));
    let dropped = || {
        commits().flat_map(|draft| {
            let timers = draft.turns.iter().flat_map(|turn| &turn.dropped_timers);
            timers.map(|timer| (draft.secret, timer))
        })
    };
    dropped().next()?;
    let call = Call::new(DROP)
        .with(dropped().map(|(_, timer)| timer.instance.as_str()).collect::<Vec<_>>())
        .with(dropped().map(|(secret, _)| secret).collect::<Vec<Uuid>>())
        .with(dropped().map(|(_, timer)| timer.due).collect::<Vec<_>>())
        .with(dropped().map(|(_, timer)| timer.payload.as_str()).collect::<Vec<_>>());
    Some(call)
}

fn enqueue_call<'a>(ops: &[&'a Op], terms: Terms) -> Call<'a> {
    const ENQUEUE: &str = "SELECT duroxide.enqueue_messages($1, $2, $3, $4, $5, $6, $7, $8)";
    let pick = |op: &&'a Op| -> Option<(&'a MessageDraft, i64)> {
        if let Op::Enqueue { message, delay } = op { Some((message, *delay)) } else { None }
    };
    let messages = || ops.iter().filter_map(pick);
    Call::new(ENQUEUE)
        .with(messages().map(|(message, _)| message.instance.as_str()).collect::<Vec<_>>())
        .with(messages().map(|(message, _)| message.kind as i16).collect::<Vec<_>>())
        .with(messages().map(|(_, delay)| delay).collect::<Vec<_>>())
        .with(messages().map(|(message, _)| message.payload.as_str()).collect::<Vec<_>>())
        .with(terms.now)
        .with(terms.retention)
        .with(terms.is_locked)
        .with(messages().map(|(message, _)| message.parent.as_deref()).collect::<Vec<_>>())
}

fn queue_work_call<'a>(ops: &[&'a Op], terms: Terms) -> Call<'a> {
    const ENQUEUE: &str = "SELECT duroxide.enqueue_work($1, $2, $3, $4, $5, $6, $7)";
    let pick = |op: &&'a Op| -> Option<&'a WorkDraft> {
        if let Op::QueueWork(draft) = op { Some(draft) } else { None }
    };
    let work: Vec<&WorkDraft> = ops.iter().filter_map(pick).collect();
    let mut call = Call::new(ENQUEUE);
    call.add(work.iter().map(|work| work.instance.as_str()).collect::<Vec<_>>());
    add_activities(&mut call, work.into_iter().collect::<Vec<_>>().into_iter());
    call.with(terms.is_locked)
}

fn ack_call<'a>(ops: &[&'a Op], terms: Terms) -> Call<'a> {
    const ACK: &str = "SELECT duroxide.ack_work($1, $2, $3, $4, $5, $6, $7, $8)";
    let pick = |op: &&'a Op| -> Option<(i64, Uuid, Option<&'a MessageDraft>)> {
        let Op::Ack { seq, secret, outcome } = op else { return None };
        Some((*seq, *secret, outcome.as_ref()))
    };
    let acks = || ops.iter().filter_map(pick);
    let mut ids = Vec::new();
    let target = |message: &'a MessageDraft| {
        ids.push(message.instance.as_str());
        place(ids.len())
    };
    let mut target = target;
    let targets: Vec<Option<i32>> = acks().map(|(_, _, done)| done.map(&mut target)).collect();
    let payload = |done: Option<&'a MessageDraft>| done.map(|message| message.payload.as_str());
    Call::new(ACK)
        .with(ids)
        .with(acks().map(|(seq, _, _)| seq).collect::<Vec<_>>())
        .with(acks().map(|(_, secret, _)| secret).collect::<Vec<_>>())
        .with(targets)
        .with(acks().map(|(_, _, done)| payload(done)).collect::<Vec<_>>())
        .with(terms.now)
        .with(terms.retention)
        .with(terms.is_locked)
}

fn abandon_call<'a>(sql: &'static str, ops: &[&'a Op], terms: Terms) -> Call<'a> {
    let pick = |op: &&Op| -> Option<(Lock, i64, bool)> {
        let Op::Abandon { lock, delay, uncount } = op else { return None };
        Some((*lock, *delay, *uncount))
    };
    let given = || ops.iter().filter_map(pick);
    Call::new(sql)
        .with(given().map(|(lock, _, _)| lock.place).collect::<Vec<_>>())
        .with(given().map(|(lock, _, _)| lock.secret).collect::<Vec<_>>())
        .with(given().map(|(_, delay, _)| delay).collect::<Vec<_>>())
        .with(given().map(|(_, _, uncount)| uncount).collect::<Vec<_>>())
        .with(terms.now)
}

fn renew_call<'a>(sql: &'static str, ops: &[&'a Op], terms: Terms) -> Call<'a> {
    let pick = |op: &&Op| -> Option<(Lock, i64)> {
        if let Op::Renew { lock, extend } = op { Some((*lock, *extend)) } else { None }
    };
    let held = || ops.iter().filter_map(pick);
    Call::new(sql)
        .with(held().map(|(lock, _)| lock.place).collect::<Vec<_>>())
        .with(held().map(|(lock, _)| lock.secret).collect::<Vec<_>>())
        .with(held().map(|(_, extend)| extend).collect::<Vec<_>>())
        .with(terms.now)
}

fn commit_of(op: &Op) -> Option<&CommitDraft> {
    if let Op::Commit(draft) = op { Some(draft) } else { None }
}

/// What came of turns that follow one another; all of them were refused, or none.
fn commit_verdict(op: &Op, answers: &[(i16, Option<i64>)]) -> Result<(), Failure> {
    let turns = commit_of(op).map_or(&[][..], |draft| &draft.turns);
    let duplicate = turns.iter().zip(answers).find_map(|(turn, answer)| match *answer {
        (3, Some(taken)) => Some((turn.execution_id, id_out(taken))),
        _ => None,
    });
    match duplicate {
        Some((execution_id, event_id)) => {
            Err(Refusal::DuplicateEvent { execution_id, event_id }.into())
        }
        None => op_verdict(op, answers.last().map_or(1, |(code, _)| *code)),
    }
}

/// What a function's answer means for an op.
pub(super) fn op_verdict(op: &Op, code: i16) -> Result<(), Failure> {
    let at_rest = commit_of(op).and_then(CommitDraft::seen_at_rest);
    match (code, at_rest) {
        (4, Some(instance)) => Err(Refusal::NotAtRest(unpack(instance.to_owned())).into()),
        (5, _) => Err(Refusal::NotHeldBack.into()),
        _ => lock_verdict(code),
    }
}

fn lock_verdict(code: i16) -> Result<(), Failure> {
    match code {
        0 => Ok(()),
        2 => Err(Refusal::LockExpired.into()),
        _ => Err(Refusal::UnknownToken.into()),
    }
}
