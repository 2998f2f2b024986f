//! Turns about to be committed, as arrays for `commit_turns`.

use std::collections::HashMap;

use uuid::Uuid;

use super::call::Call;
use super::calls::Terms;
use super::commit::{CancelDraft, CommitDraft, TimedMessage};
use crate::drafts::WorkDraft;
use crate::events::EventColumns;
use crate::numbers::id_in;

const COMMIT: &str = "SELECT result, taken_event, is_ready
     FROM duroxide.commit_turns($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22, $23, $24, $25,
     $26, $27, $28, $29, $30, $31, $32, $33, $34, $35, $36, $37, $38, $39, $40, $41, $42, $43, $44, $45)";

/// The call that commits turns of different instances.
pub(super) fn commit_call<'a>(drafts: &[&'a CommitDraft], terms: Terms) -> Call<'a> {
    let ids = Ids::of(drafts);
    let mut call = Call::new(COMMIT);
    add_turns(&mut call, drafts, &ids);
    let events = EventColumns::of(drafts.iter().flat_map(|draft| &draft.events));
    call.add(turns(drafts, |draft| draft.events.len()));
    call.add(events.ids).add(events.sources).add(events.times).add(events.stamps);
    call.add(events.bodies);
    let kv = || drafts.iter().flat_map(|draft| &draft.kv);
    call.add(turns(drafts, |draft| draft.kv.len()));
    call.add(kv().map(|(key, _, _)| key.as_str()).collect::<Vec<_>>());
    call.add(kv().map(|(_, value, _)| value.as_deref()).collect::<Vec<_>>());
    call.add(kv().map(|(_, _, at)| *at).collect::<Vec<_>>());
    add_work(&mut call, drafts, &ids);
    add_cancelled(&mut call, drafts, &ids);
    add_messages(&mut call, drafts, &ids);
    call.add(terms.now).add(terms.retention).add(terms.is_locked);
    call.insert(0, ids.opened).insert(0, ids.texts);
    call
}

/// What there is one of in each turn.
fn add_turns<'a>(call: &mut Call<'a>, drafts: &[&'a CommitDraft], ids: &Ids<'a>) {
    let text = |pick: fn(&CommitDraft) -> &Option<String>| -> Vec<Option<&'a str>> {
        drafts.iter().map(|draft| pick(draft).as_deref()).collect()
    };
    call.add(drafts.iter().map(|draft| draft.key).collect::<Vec<_>>());
    call.add(drafts.iter().map(|draft| draft.secret).collect::<Vec<Uuid>>());
    call.add(drafts.iter().map(|draft| id_in(draft.execution_id)).collect::<Vec<_>>());
    call.add(drafts.iter().map(|draft| draft.started).collect::<Vec<_>>());
    call.add(drafts.iter().map(|draft| draft.outcome).collect::<Vec<_>>());
    call.add(text(|draft| &draft.status)).add(text(|draft| &draft.output));
    call.add(text(|draft| &draft.name)).add(text(|draft| &draft.version));
    let parent = |draft: &&CommitDraft| draft.parent.as_deref().map(|id| ids.place(id));
    call.add(drafts.iter().map(parent).collect::<Vec<_>>());
    call.add(text(|draft| &draft.pin));
    call.add(drafts.iter().map(|draft| draft.custom.is_some()).collect::<Vec<_>>());
    let custom = |draft: &&'a CommitDraft| -> Option<&'a str> { draft.custom.as_ref()?.as_deref() };
    call.add(drafts.iter().map(custom).collect::<Vec<_>>());
    call.add(drafts.iter().map(|draft| draft.cleared).collect::<Vec<_>>());
}

fn add_work<'a>(call: &mut Call<'a>, drafts: &[&'a CommitDraft], ids: &Ids<'a>) {
    let all = || drafts.iter().flat_map(|draft| &draft.work);
    call.add(turns(drafts, |draft| draft.work.len()));
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

fn add_cancelled<'a>(call: &mut Call<'a>, drafts: &[&'a CommitDraft], ids: &Ids<'a>) {
    let all = || drafts.iter().flat_map(|draft| &draft.cancelled);
    call.add(turns(drafts, |draft| draft.cancelled.len()));
    call.add(all().map(|gone: &CancelDraft| ids.place(&gone.instance)).collect::<Vec<_>>());
    call.add(all().map(|gone| gone.execution).collect::<Vec<_>>());
    call.add(all().map(|gone| gone.activity).collect::<Vec<_>>());
}

fn add_messages<'a>(call: &mut Call<'a>, drafts: &[&'a CommitDraft], ids: &Ids<'a>) {
    let all = || drafts.iter().flat_map(|draft| &draft.messages);
    call.add(turns(drafts, |draft| draft.messages.len()));
    let place = |message: &TimedMessage| ids.place(&message.draft.instance);
    call.add(all().map(place).collect::<Vec<_>>());
    call.add(all().map(|message| message.draft.kind as i16).collect::<Vec<_>>());
    call.add(all().map(|message| message.due).collect::<Vec<_>>());
    call.add(all().map(|message| message.draft.payload.as_str()).collect::<Vec<_>>());
}

/// The ids that turns speak of, each once: first those that are written to, then the others.
struct Ids<'a> {
    texts: Vec<&'a str>,
    opened: i32,
    places: HashMap<&'a str, i32>,
}

impl<'a> Ids<'a> {
    fn of(drafts: &[&'a CommitDraft]) -> Self {
        let mut ids = Self { texts: Vec::new(), opened: 0, places: HashMap::new() };
        for draft in drafts {
            draft.work.iter().for_each(|work| ids.add(&work.instance));
            draft.messages.iter().for_each(|message| ids.add(&message.draft.instance));
        }
        ids.opened = place(ids.texts.len());
        for draft in drafts {
            draft.cancelled.iter().for_each(|gone| ids.add(&gone.instance));
            draft.parent.iter().for_each(|parent| ids.add(parent));
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

/// The place of each draft, from 1, as often as it has entries.
fn turns(drafts: &[&CommitDraft], entries: impl Fn(&CommitDraft) -> usize) -> Vec<i32> {
    let repeat = |(place, draft): (i32, &&CommitDraft)| std::iter::repeat_n(place, entries(draft));
    (1..).zip(drafts).flat_map(repeat).collect()
}

/// Arrays begin at 1; none has as many entries as there are numbers.
pub(super) fn place(count: usize) -> i32 {
    i32::try_from(count).unwrap_or(i32::MAX)
}
