//! Looks: as values of a call, and what they came to.

use std::time::Duration;

use duroxide_core::clock::millis_rounded_up as millis;
use duroxide_core::provider::TagFilter;
use tokio_postgres::Row;

use super::call::Call;
use super::calls::Terms;
use super::desk::{Look, Seen, What};
use super::op::Queue;
use crate::connection::Connection;
use crate::numbers::span_in;
use crate::store::Store;
use crate::text::pack;

/// How long at most between looks of those who wait, whatever the server told: the pulse is there every
/// second, and this is for the time without one.
const LONGEST_WAIT: Duration = Duration::from_secs(15);
/// The same where time is given by a test, which may let it jump.
const LONGEST_WAIT_BY_TEST: Duration = Duration::from_millis(50);
/// The statements of looks.
const FETCH_TURNS: &str = "SELECT * FROM duroxide.fetch_turns($1, $2, $3, $4, $5, $6, $7, $8, $9,
     $10, $11, $12)";
const FETCH_WORK: &str =
    "SELECT * FROM duroxide.fetch_work($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11,
     $12, $13)";
/// The same for what one item may have made fail.
const FETCH_TURNS_SINGLY: &str =
    "SELECT * FROM duroxide.fetch_turns_singly($1, $2, $3, $4, $5, $6, $7, $8,
     $9, $10, $11, $12)";
const FETCH_WORK_SINGLY: &str =
    "SELECT * FROM duroxide.fetch_work_singly($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11,
     $12, $13)";

/// A look as a call of its own.
pub(super) fn look_call<'a>(
    store: &Store,
    look: &'a Look,
    is_alone: bool,
    terms: Terms,
) -> Call<'a> {
    let queue = look.fetch.queue();
    let mut call = Call::new(match (queue, look.is_careful) {
        (Queue::Turns, false) => FETCH_TURNS,
        (Queue::Turns, true) => FETCH_TURNS_SINGLY,
        (Queue::Work, false) => FETCH_WORK,
        (Queue::Work, true) => FETCH_WORK_SINGLY,
    });
    add_look(&mut call, store, queue, Some(look), terms);
    call.add(is_alone);
    match queue {
        Queue::Turns => call.with(look.seeks_ended),
        Queue::Work => call.with(look.seeks_ended.then_some(look.due_from)),
    }
}

/// Adds a look at a queue to the values of a call, or that there is none.
pub(super) fn add_look<'a>(
    call: &mut Call<'a>,
    store: &Store,
    queue: Queue,
    look: Option<&'a Look>,
    terms: Terms,
) {
    let what = look.map(|look| &look.fetch.what);
    call.add(look.map(|look| i32::try_from(look.max).unwrap_or(i32::MAX)));
    call.add(look.map(|look| look.fetch.lock_ms));
    if queue == Queue::Turns {
        let known = store.known_pins();
        let range = what.and_then(|what| match what {
            What::Turns { pins } => pins.as_ref(),
            What::Work { .. } => None,
        });
        call.add(range.map(|range| known.admitted(range))).add(known.count());
    } else {
        let (tags, session) = match what {
            Some(What::Work { tags, session }) => (tags, session.as_ref()),
            _ => (&TagFilter::None, None),
        };
        let (any, untagged, tags) = tags_of(tags);
        call.add(any).add(untagged).add(tags);
        call.add(session.map(|session| pack(&session.owner_id)));
        call.add(session.map(|session| span_in(millis(session.lock_timeout))));
    }
    call.add(look.map(|look| look.secret)).add(terms.node).add(terms.now);
    if queue == Queue::Turns {
        call.add(terms.retention);
    }
    call.add(look.map(|look| look.from));
    if queue == Queue::Turns {
        call.add(look.map(|look| look.due_from));
    }
}

/// What a look came to; `None` if it has to be taken again.
pub(super) async fn read_look(
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
        let (is_full, has_left, first) = (false, false, None);
        return Some(Seen { rows, is_full, has_left, due_in: longest, first });
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
    let due: Option<i64> = first.get("next_due");
    let until = due.and_then(|due| u64::try_from(due - now).ok()).filter(|until| *until != 0);
    let due_in = until.map_or(longest, |ms| Duration::from_millis(ms).min(longest));
    // What is due now, and has not come about, is in somebody else's hands.
    let is_late = due.is_some() && until.is_none();
    let more: Option<bool> = first.get("more");
    let has_left = is_late || more.is_none();
    let place: Option<i64> = first.get(if is_turns { "key" } else { "seq" });
    let rows = if place.is_some() { rows } else { Vec::new() };
    let is_full = !rows.is_empty() && more == Some(true);
    // The place of a turn is that of its first message, or behind it; and so with activities.
    let first = rows.first().and_then(|first| match is_turns {
        true => first.get::<_, Vec<i64>>("seqs").first().copied(),
        false => place,
    });
    Some(Seen { rows, is_full, has_left, due_in, first })
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
