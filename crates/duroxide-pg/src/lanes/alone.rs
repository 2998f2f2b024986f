//! The common cases of things done alone, as calls that cost less than the general ones.

use tokio_postgres::Row;
use uuid::Uuid;

use super::call::Call;
use super::calls::op_verdict;
use super::commit::{ActivityDone, CommitDraft, TurnDraft};
use super::commit_columns::add_activities;
use super::op::{Op, Queue};
use crate::drafts::MessageDraft;
use crate::error::Failure;
use crate::events::EventColumns;
use crate::numbers::id_in;

const POST: &str = "SELECT * FROM duroxide.post_one($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11,
     $12, $13, $14, $15, $16)";
const COMMIT: &str = "SELECT * FROM duroxide.commit_one($1, $2, $3, $4, $5, $6, $7, $8, $9, $10,
     $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22, $23, $24, $25, $26, $27, $28, $29,
     $30, $31, $32, $33, $34, $35, $36, $37, $38, $39, $40, $41)";

/// An op that may be a common case, and the queue of a look that can be part of the call.
pub(super) struct Common<'a> {
    pub(super) call: Call<'a>,
    pub(super) queue: Queue,
}

/// The call for an op that may be a common case, if it may. A look at its queue is still to be added.
/// If the look takes a turn with the message, that may be held back (`may_hold`).
pub(super) fn common_call(op: &Op, may_hold: bool) -> Option<Common<'_>> {
    match op {
        Op::Enqueue { message, delay: 0 } if message.parent.is_none() => {
            Some(Common { call: post_call(message, None, may_hold), queue: Queue::Turns })
        }
        Op::Ack { seq, secret, outcome: Some(message) } => {
            let call = post_call(message, Some((*seq, *secret)), may_hold);
            Some(Common { call, queue: Queue::Turns })
        }
        Op::Commit(draft) => Some(Common { call: commit_call(draft)?, queue: Queue::Work }),
        _ => None,
    }
}

/// What such a call came to; `None` if it was not the common case, and nothing has happened.
pub(super) fn common_verdict(op: &Op, rows: &[Row]) -> Option<Result<(), Failure>> {
    let code: i16 = rows.first()?.get("result");
    (code != -1).then(|| op_verdict(op, code))
}

fn post_call(message: &MessageDraft, work: Option<(i64, Uuid)>, may_hold: bool) -> Call<'_> {
    Call::new(POST)
        .with(message.instance.as_str())
        .with(message.kind as i16)
        .with(message.payload.as_str())
        .with(work.map(|(seq, _)| seq))
        .with(work.map(|(_, secret)| secret))
        .with(may_hold)
}

/// The id that a turn speaks of, if it speaks of one instance, its own as far as can be told here, and
/// does nothing unusual.
fn plain_id<'a>(turn: &'a TurnDraft, done: Option<&'a ActivityDone>) -> Option<Option<&'a str>> {
    let mut ids = done.map(|done| done.instance.as_str()).into_iter().chain(turn.ids_written());
    let first = ids.next();
    let is_plain = turn.parent.is_none()
        && turn.name.is_some() == turn.version.is_some()
        && turn.cancelled.is_empty()
        && turn.kv.is_empty()
        && !turn.cleared
        && ids.all(|id| Some(id) == first)
        && turn.messages.iter().all(|message| message.due.is_some());
    // A turn that has read an outcome has asked for it in an event before.
    let goes_on = |done: &ActivityDone| {
        turn.started.is_none() && turn.pin.is_none() && done.last_event.0 != 0
    };
    (is_plain && done.is_none_or(goes_on)).then_some(first)
}

fn commit_call(draft: &CommitDraft) -> Option<Call<'_>> {
    let ([turn], done, None) = (&draft.turns[..], draft.activity(), draft.timers()) else {
        return None;
    };
    let mut call = Call::new(COMMIT);
    call.add(plain_id(turn, done)?).add(draft.key()).add(draft.secret);
    call.add(done.map(|done| done.seq)).add(done.map(|done| done.secret));
    call.add(done.map(|done| done.last_event.0)).add(done.map(|done| done.last_event.1));
    call.add(id_in(turn.execution_id)).add(turn.started).add(turn.outcome);
    call.add(turn.status.as_deref()).add(turn.output.as_deref());
    call.add(turn.name.as_deref()).add(turn.version.as_deref()).add(turn.pin.as_deref());
    call.add(turn.custom.is_some()).add(turn.custom.as_ref().and_then(Option::as_deref));
    let events = EventColumns::of(turn.events.iter());
    call.add(events.ids).add(events.sources).add(events.times).add(events.stamps);
    call.add(events.bodies);
    add_activities(&mut call, turn.work.iter());
    let messages = || turn.messages.iter();
    call.add(messages().map(|message| message.draft.kind as i16).collect::<Vec<_>>());
    call.add(messages().map(|message| message.due).collect::<Vec<_>>());
    call.add(messages().map(|message| message.draft.payload.as_str()).collect::<Vec<_>>());
    Some(call)
}
