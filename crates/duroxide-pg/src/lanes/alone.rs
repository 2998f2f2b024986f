//! The common cases of things done alone, as calls that cost less than the general ones.

use tokio_postgres::Row;

use super::call::Call;
use super::calls::{Terms, lock_verdict};
use super::commit::CommitDraft;
use super::commit_columns::add_activities;
use super::op::Op;
use crate::error::Failure;
use crate::events::EventColumns;
use crate::numbers::id_in;

/// The call for an op that may be a common case, if it may.
pub(super) fn common_call(op: &Op, terms: Terms) -> Option<Call<'_>> {
    match op {
        Op::Enqueue { message, delay: 0 } => {
            const ENQUEUE: &str = "SELECT duroxide.enqueue_one($1, $2, $3, $4)";
            let call = Call::new(ENQUEUE).with(message.instance.as_str());
            Some(call.with(message.kind as i16).with(message.payload.as_str()).with(terms.now))
        }
        Op::Ack { seq, secret, outcome: Some(message) } => {
            const ACK: &str = "SELECT duroxide.ack_one($1, $2, $3, $4, $5)";
            let call = Call::new(ACK).with(message.instance.as_str()).with(*seq).with(*secret);
            Some(call.with(message.payload.as_str()).with(terms.now))
        }
        Op::Commit(draft) if is_plain(draft) => Some(commit_call(draft, terms)),
        _ => None,
    }
}

/// What such a call came to; `None` if it was not the common case, and nothing has happened.
pub(super) fn common_verdict(op: &Op, rows: &[Row]) -> Option<Result<(), Failure>> {
    let row = rows.first()?;
    let code = match op {
        Op::Commit(_) => row.get(0),
        _ => *row.get::<_, Vec<i16>>(0).first()?,
    };
    (code != -1).then(|| lock_verdict(code))
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

fn commit_call(draft: &CommitDraft, terms: Terms) -> Call<'_> {
    const COMMIT: &str = "SELECT result, taken_event, is_ready
         FROM duroxide.commit_one($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15,
         $16, $17, $18, $19, $20, $21, $22, $23, $24, $25, $26, $27)";
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
    call.add(terms.now);
    call
}
