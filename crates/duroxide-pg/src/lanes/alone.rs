//! The common cases of things done alone, as calls that cost less than the general ones.

use tokio_postgres::Row;

use super::call::Call;
use super::calls::{Terms, lock_verdict};
use super::commit::CommitDraft;
use super::commit_columns::add_activities;
use super::desk::Look;
use super::op::{Op, Queue};
use crate::error::Failure;
use crate::events::EventColumns;
use crate::numbers::id_in;

const ENQUEUE: &str = "SELECT duroxide.enqueue_one($1, $2, $3, $4) AS result";
const ACK: &str = "SELECT duroxide.ack_one($1, $2, $3, $4, $5) AS result";
const COMMIT: &str = "SELECT result, is_ready
     FROM duroxide.commit_one($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15,
     $16, $17, $18, $19, $20, $21, $22, $23, $24, $25, $26, $27)";

const ENQUEUE_AND_FETCH_TURNS: &str = "SELECT o.result, f.*
     FROM duroxide.enqueue_one($1, $2, $3, $4) o(result)
     CROSS JOIN LATERAL duroxide.fetch_turns(
         CASE WHEN o.result IS NULL THEN 0 ELSE $5 END, $6, $7, $8, $9, $10, $11, $12, $13) f";
const ACK_AND_FETCH_TURNS: &str = "SELECT o.result, f.*
     FROM duroxide.ack_one($1, $2, $3, $4, $5) o(result)
     CROSS JOIN LATERAL duroxide.fetch_turns(
         CASE WHEN o.result IS NULL THEN 0 ELSE $6 END, $7, $8, $9, $10, $11, $12, $13, $14) f";
const COMMIT_AND_FETCH_WORK: &str = "SELECT o.result, o.is_ready, f.*
     FROM duroxide.commit_one($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15,
         $16, $17, $18, $19, $20, $21, $22, $23, $24, $25, $26, $27) o
     CROSS JOIN LATERAL duroxide.fetch_work(
         CASE WHEN o.result IS NULL THEN 0 ELSE $28 END, $29, $30, $31, $32, $33, $34, $35, $36,
         $37, $38) f";

/// The call for an op that may be a common case, if it may.
pub(super) fn common_call(op: &Op, terms: Terms) -> Option<Call<'_>> {
    match op {
        Op::Enqueue { message, delay: 0 } => {
            let call = Call::new(ENQUEUE).with(message.instance.as_str());
            Some(call.with(message.kind as i16).with(message.payload.as_str()).with(terms.now))
        }
        Op::Ack { seq, secret, outcome: Some(message) } => {
            let call = Call::new(ACK).with(message.instance.as_str()).with(*seq).with(*secret);
            Some(call.with(message.payload.as_str()).with(terms.now))
        }
        Op::Commit(draft) if is_plain(draft) => Some(commit_call(draft, terms)),
        _ => None,
    }
}

/// The statement that does such an op and then looks: the look is told what came of the op, so that it
/// comes after it. `None` where these two seldom come together.
pub(super) fn statement_for_both(op: &Call<'_>, look: &Look) -> Option<&'static str> {
    match (op.sql, look.fetch.queue()) {
        (ENQUEUE, Queue::Turns) => Some(ENQUEUE_AND_FETCH_TURNS),
        (ACK, Queue::Turns) => Some(ACK_AND_FETCH_TURNS),
        (COMMIT, Queue::Work) => Some(COMMIT_AND_FETCH_WORK),
        _ => None,
    }
}

/// What such a call came to; `None` if it was not the common case, and nothing has happened.
pub(super) fn common_verdict(op: &Op, rows: &[Row]) -> Option<Result<(), Failure>> {
    let row = rows.first()?;
    let code = match op {
        Op::Commit(_) => row.get("result"),
        _ => *row.get::<_, Vec<i16>>("result").first()?,
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
