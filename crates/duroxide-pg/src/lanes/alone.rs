//! The common cases of things done alone, as calls that cost less than the general ones.

use tokio_postgres::Row;
use uuid::Uuid;

use super::call::Call;
use super::calls::lock_verdict;
use super::commit::CommitDraft;
use super::commit_columns::add_activities;
use super::op::{Op, Queue};
use crate::drafts::MessageDraft;
use crate::error::Failure;
use crate::events::EventColumns;
use crate::numbers::id_in;

const POST: &str = "SELECT * FROM duroxide.post_one($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11,
     $12, $13, $14)";
const COMMIT: &str = "SELECT * FROM duroxide.commit_one($1, $2, $3, $4, $5, $6, $7, $8, $9, $10,
     $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22, $23, $24, $25, $26, $27, $28, $29,
     $30, $31, $32, $33, $34, $35, $36)";

/// An op that may be a common case, and the queue of a look that can be part of the call.
pub(super) struct Common<'a> {
    pub(super) call: Call<'a>,
    pub(super) queue: Queue,
}

/// The call for an op that may be a common case, if it may. A look at its queue is still to be added.
/// If the look takes a turn with the message, that may be held back (`may_hold`).
pub(super) fn common_call(op: &Op, may_hold: bool) -> Option<Common<'_>> {
    match op {
        Op::Enqueue { message, delay: 0 } => {
            Some(Common { call: post_call(message, None, may_hold), queue: Queue::Turns })
        }
        Op::Ack { seq, secret, outcome: Some(message) } => {
            let call = post_call(message, Some((*seq, *secret)), may_hold);
            Some(Common { call, queue: Queue::Turns })
        }
        Op::Commit(draft) if is_plain(draft) => {
            Some(Common { call: commit_call(draft), queue: Queue::Work })
        }
        _ => None,
    }
}

/// What such a call came to; `None` if it was not the common case, and nothing has happened.
pub(super) fn common_verdict(rows: &[Row]) -> Option<Result<(), Failure>> {
    let code: i16 = rows.first()?.get("result");
    (code != -1).then(|| lock_verdict(code))
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

/// Whether a turn speaks of one instance, its own as far as can be told here, and does nothing unusual.
fn is_plain(draft: &CommitDraft) -> bool {
    let mut ids = ids_of(draft);
    let first = ids.next();
    draft.parent.is_none()
        && draft.name.is_some() == draft.version.is_some()
        && draft.cancelled.is_empty()
        && draft.kv.is_empty()
        && !draft.cleared
        && ids.all(|id| Some(id) == first)
        && draft.messages.iter().all(|message| message.due.is_some())
}

fn ids_of(draft: &CommitDraft) -> impl Iterator<Item = &str> {
    let messages = draft.messages.iter().map(|message| message.draft.instance.as_str());
    draft.work.iter().map(|work| work.instance.as_str()).chain(messages)
}

fn commit_call(draft: &CommitDraft) -> Call<'_> {
    let mut call = Call::new(COMMIT);
    call.add(ids_of(draft).next()).add(draft.key).add(draft.secret);
    call.add(id_in(draft.execution_id)).add(draft.started).add(draft.outcome);
    call.add(draft.status.as_deref()).add(draft.output.as_deref());
    call.add(draft.name.as_deref()).add(draft.version.as_deref()).add(draft.pin.as_deref());
    call.add(draft.custom.is_some()).add(draft.custom.as_ref().and_then(Option::as_deref));
    let events = EventColumns::of(draft.events.iter());
    call.add(events.ids).add(events.sources).add(events.times).add(events.stamps);
    call.add(events.bodies);
    add_activities(&mut call, draft.work.iter());
    let messages = || draft.messages.iter();
    call.add(messages().map(|message| message.draft.kind as i16).collect::<Vec<_>>());
    call.add(messages().map(|message| message.due).collect::<Vec<_>>());
    call.add(messages().map(|message| message.draft.payload.as_str()).collect::<Vec<_>>());
    call
}
