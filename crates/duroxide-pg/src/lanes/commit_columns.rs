//! Turns about to be committed, as arrays for `commit_turns`.

use std::collections::HashMap;

use uuid::Uuid;

use super::call::Call;
use super::calls::Terms;
use super::commit::{ActivityDone, CancelDraft, CommitDraft, TimedMessage, TimersDue, TurnDraft};
use crate::drafts::WorkDraft;
use crate::events::EventColumns;
use crate::numbers::id_in;

const COMMIT: &str = "SELECT * FROM duroxide.commit_turns($1, $2, $3, $4, $5, $6, $7, $8, $9, $10,
     $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22, $23, $24, $25, $26, $27, $28, $29,
     $30, $31, $32, $33, $34, $35, $36, $37, $38, $39, $40, $41, $42, $43, $44, $45, $46, $47, $48,
     $49, $50, $51, $52, $53, $54, $55, $56, $57, $58, $59, $60, $61, $62, $63, $64, $65, $66, $67,
     $68, $69, $70, $71, $72, $73)";

/// One of the turns of a call.
struct Entry<'a> {
    draft: &'a CommitDraft,
    turn: &'a TurnDraft,
    /// Which it is of those that follow one another, from 1.
    step: i32,
}

/// The call for commits of different instances. A look at activities is still to be added.
pub(super) fn commit_call<'a>(drafts: &[&'a CommitDraft], terms: Terms) -> Call<'a> {
    let entry = |draft: &&'a CommitDraft| -> Vec<Entry<'a>> {
        let steps = (1..).zip(&draft.turns);
        steps.map(|(step, turn)| Entry { draft, turn, step }).collect()
    };
    let entries: Vec<Entry<'a>> = drafts.iter().flat_map(entry).collect();
    let turns: Vec<&'a TurnDraft> = entries.iter().map(|entry| entry.turn).collect();
    let ids = Ids::of(&turns);
    let mut call = Call::new(COMMIT);
    add_rights(&mut call, &entries);
    add_turns(&mut call, &turns, &ids);
    add_direct(&mut call, &entries);
    add_timers(&mut call, &entries);
    let events = EventColumns::of(turns.iter().flat_map(|turn| &turn.events));
    call.add(places(&turns, |turn| turn.events.len()));
    call.add(events.ids).add(events.sources).add(events.times).add(events.stamps);
    call.add(events.bodies);
    let kv = || turns.iter().flat_map(|turn| &turn.kv);
    call.add(places(&turns, |turn| turn.kv.len()));
    call.add(kv().map(|(key, _, _)| key.as_str()).collect::<Vec<_>>());
    call.add(kv().map(|(_, value, _)| value.as_deref()).collect::<Vec<_>>());
    call.add(kv().map(|(_, _, at)| *at).collect::<Vec<_>>());
    add_work(&mut call, &turns, &ids);
    add_cancelled(&mut call, &turns, &ids);
    add_messages(&mut call, &turns, &ids);
    call.add(terms.retention).add(terms.is_locked);
    call.insert(0, ids.opened).insert(0, ids.texts);
    call
}

/// By what right each turn is committed.
fn add_rights(call: &mut Call<'_>, entries: &[Entry<'_>]) {
    call.add(entries.iter().map(|entry| entry.draft.key()).collect::<Vec<_>>());
    call.add(entries.iter().map(|entry| entry.draft.secret).collect::<Vec<Uuid>>());
    call.add(entries.iter().map(|entry| entry.step).collect::<Vec<_>>());
}

/// What there is one of in each turn.
fn add_turns<'a>(call: &mut Call<'a>, turns: &[&'a TurnDraft], ids: &Ids<'a>) {
    let text = |pick: fn(&TurnDraft) -> &Option<String>| -> Vec<Option<&'a str>> {
        turns.iter().map(|turn| pick(turn).as_deref()).collect()
    };
    call.add(turns.iter().map(|turn| id_in(turn.execution_id)).collect::<Vec<_>>());
    call.add(turns.iter().map(|turn| turn.started).collect::<Vec<_>>());
    call.add(turns.iter().map(|turn| turn.outcome).collect::<Vec<_>>());
    call.add(text(|turn| &turn.status)).add(text(|turn| &turn.output));
    call.add(text(|turn| &turn.name)).add(text(|turn| &turn.version));
    let parent = |turn: &&TurnDraft| turn.parent.as_deref().map(|id| ids.place(id));
    call.add(turns.iter().map(parent).collect::<Vec<_>>());
    call.add(text(|turn| &turn.pin));
    call.add(turns.iter().map(|turn| turn.custom.is_some()).collect::<Vec<_>>());
    let custom = |turn: &&'a TurnDraft| -> Option<&'a str> { turn.custom.as_ref()?.as_deref() };
    call.add(turns.iter().map(custom).collect::<Vec<_>>());
    call.add(turns.iter().map(|turn| turn.cleared).collect::<Vec<_>>());
}

/// The activities of direct turns, and what these have seen; each for all turns that follow.
fn add_direct<'a>(call: &mut Call<'a>, entries: &[Entry<'a>]) {
    let direct = |(place, entry): (i32, &Entry<'a>)| {
        let execution_id = entry.draft.turns.first()?.execution_id;
        Some((place, entry.draft.activity()?, id_in(execution_id)))
    };
    let all: Vec<(i32, &'a ActivityDone, i64)> = (1..).zip(entries).filter_map(direct).collect();
    call.add(all.iter().map(|(place, _, _)| *place).collect::<Vec<_>>());
    call.add(all.iter().map(|(_, done, _)| done.instance.as_str()).collect::<Vec<_>>());
    call.add(all.iter().map(|(_, done, _)| done.seq).collect::<Vec<_>>());
    call.add(all.iter().map(|(_, done, _)| done.secret).collect::<Vec<Uuid>>());
    call.add(all.iter().map(|(_, _, execution)| *execution).collect::<Vec<_>>());
    call.add(all.iter().map(|(_, done, _)| done.last_event.0).collect::<Vec<_>>());
    call.add(all.iter().map(|(_, done, _)| done.last_event.1).collect::<Vec<_>>());
}

/// The timers that turns have read, and what these have seen; each for all turns that follow.
fn add_timers<'a>(call: &mut Call<'a>, entries: &[Entry<'a>]) {
    let fired = |(place, entry): (i32, &Entry<'a>)| {
        let execution_id = entry.draft.turns.first()?.execution_id;
        let first = place - entry.step + 1;
        Some((place, first, entry.draft.timers()?, id_in(execution_id)))
    };
    let all: Vec<(i32, i32, &'a TimersDue, i64)> = (1..).zip(entries).filter_map(fired).collect();
    call.add(all.iter().map(|(place, ..)| *place).collect::<Vec<_>>());
    call.add(all.iter().map(|(_, first, ..)| *first).collect::<Vec<_>>());
    call.add(all.iter().map(|(_, _, due, _)| due.instance.as_str()).collect::<Vec<_>>());
    call.add(all.iter().map(|(_, _, _, execution)| *execution).collect::<Vec<_>>());
    call.add(all.iter().map(|(_, _, due, _)| due.last_event.0).collect::<Vec<_>>());
    call.add(all.iter().map(|(_, _, due, _)| due.last_event.1).collect::<Vec<_>>());
    let firsts = || all.iter().filter(|(place, first, ..)| place == first);
    let timers = || {
        firsts().flat_map(|(place, _, due, _)| due.timers.iter().map(move |timer| (*place, timer)))
    };
    call.add(timers().map(|(place, _)| place).collect::<Vec<_>>());
    call.add(timers().map(|(_, (due, _))| *due).collect::<Vec<_>>());
    call.add(timers().map(|(_, (_, payload))| payload.as_str()).collect::<Vec<_>>());
}

fn add_work<'a>(call: &mut Call<'a>, turns: &[&'a TurnDraft], ids: &Ids<'a>) {
    let all = || turns.iter().flat_map(|turn| &turn.work);
    call.add(places(turns, |turn| turn.work.len()));
    call.add(all().map(|work| ids.place(&work.instance)).collect::<Vec<_>>());
    add_activities(call, all());
}

/// Everything about activities but whose they are.
pub(super) fn add_activities<'a>(
    call: &mut Call<'a>,
    work: impl Iterator<Item = &'a WorkDraft> + Clone,
) {
    call.add(work.clone().map(|work| work.execution).collect::<Vec<_>>());
    call.add(work.clone().map(|work| work.activity).collect::<Vec<_>>());
    call.add(work.clone().map(|work| work.tag.as_deref()).collect::<Vec<_>>());
    call.add(work.clone().map(|work| work.session.as_deref()).collect::<Vec<_>>());
    call.add(work.map(|work| work.payload.as_str()).collect::<Vec<_>>());
}

fn add_cancelled<'a>(call: &mut Call<'a>, turns: &[&'a TurnDraft], ids: &Ids<'a>) {
    let all = || turns.iter().flat_map(|turn| &turn.cancelled);
    call.add(places(turns, |turn| turn.cancelled.len()));
    call.add(all().map(|gone: &CancelDraft| ids.place(&gone.instance)).collect::<Vec<_>>());
    call.add(all().map(|gone| gone.execution).collect::<Vec<_>>());
    call.add(all().map(|gone| gone.activity).collect::<Vec<_>>());
}

fn add_messages<'a>(call: &mut Call<'a>, turns: &[&'a TurnDraft], ids: &Ids<'a>) {
    let all = || turns.iter().flat_map(|turn| &turn.messages);
    call.add(places(turns, |turn| turn.messages.len()));
    let place = |message: &TimedMessage| ids.place(&message.draft.instance);
    call.add(all().map(place).collect::<Vec<_>>());
    call.add(all().map(|message| message.draft.kind as i16).collect::<Vec<_>>());
    call.add(all().map(|message| message.due).collect::<Vec<_>>());
    call.add(all().map(|message| message.draft.payload.as_str()).collect::<Vec<_>>());
    call.add(all().map(|message| message.draft.parent.as_deref()).collect::<Vec<_>>());
}

/// The ids that turns speak of, each once: first those that are written to, then the others.
struct Ids<'a> {
    texts: Vec<&'a str>,
    opened: i32,
    places: HashMap<&'a str, i32>,
}

impl<'a> Ids<'a> {
    fn of(turns: &[&'a TurnDraft]) -> Self {
        let mut ids = Self { texts: Vec::new(), opened: 0, places: HashMap::new() };
        turns.iter().flat_map(|turn| turn.ids_written()).for_each(|id| ids.add(id));
        ids.opened = place(ids.texts.len());
        for turn in turns {
            turn.cancelled.iter().for_each(|gone| ids.add(&gone.instance));
            turn.parent.iter().for_each(|parent| ids.add(parent));
        }
        ids
    }

    fn add(&mut self, id: &'a str) {
        if !self.places.contains_key(id) {
            self.texts.push(id);
            self.places.insert(id, place(self.texts.len()));
        }
    }

    fn place(&self, id: &str) -> i32 {
        self.places.get(id).copied().unwrap_or(0)
    }
}

/// The place of each turn, from 1, as often as it has entries.
fn places(turns: &[&TurnDraft], entries: impl Fn(&TurnDraft) -> usize) -> Vec<i32> {
    let repeat = |(place, turn): (i32, &&TurnDraft)| std::iter::repeat_n(place, entries(turn));
    (1..).zip(turns).flat_map(repeat).collect()
}

/// Arrays begin at 1; none has as many entries as there are numbers.
pub(super) fn place(count: usize) -> i32 {
    i32::try_from(count).unwrap_or(i32::MAX)
}
