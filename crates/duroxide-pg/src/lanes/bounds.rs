//! Where looks begin (`migrations/0011_bounds.sql`).
//!
//! A bound is a guess, and only made where a look from the very beginning reads many entries that were used
//! up: then a queue is looked through from a little before what was fetched last. Something may become ready
//! before that; the sweep finds it, and what this node itself brings about there lowers the bound at once.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::desk::{Fetch, What};
use super::floor::Floor;
use super::op::Queue;
use super::state::State;
use crate::pins::Pins;

/// Before everything.
pub(crate) const BEGINNING: i64 = i64::MIN;

/// Places between the bound and what was fetched last. A place is given out before it can be seen: many
/// transactions are under way at a time, and each has some places that others may overtake.
const WINDOW: i64 = 1000;
/// The same for times, in milliseconds: a commit may take so long from its look at the clock on.
const MARGIN_MS: i64 = 2000;
/// Entries read by a pulse from which on there are bounds, and by a sweep up to which there are none any more.
const MANY: i64 = 1000;
const FEW: i64 = 500;
/// The next sweep is due so many times the duration of the last one later.
const SWEEPS_IN: u32 = 20;
/// The pause between two sweeps at least. Sweeps begin with pulses, and a pulse that is a little early is not
/// to be passed over.
const SHORTEST_PAUSE: Duration = Duration::from_millis(500);
/// And at most: so long something may stay unseen that another node has made ready before the bound.
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// What is known about where looks may begin.
pub(super) struct Bounds {
    /// Whether looks have bounds at all.
    is_on: bool,
    /// Nothing is due before this time, as far as is known.
    due_from: i64,
    /// What the last sweep has seen, for desks to come.
    swept: Option<Swept>,
    /// The lowest places that became ready since the last sweep began.
    lowest: [i64; 2],
    /// When the next sweep is due; none while one is under way.
    next_sweep: Option<Instant>,
}

impl Default for Bounds {
    fn default() -> Self {
        let (due_from, lowest) = (BEGINNING, [i64::MAX; 2]);
        Self { is_on: false, due_from, swept: None, lowest, next_sweep: None }
    }
}

impl Bounds {
    pub(super) fn is_on(&self) -> bool {
        self.is_on
    }

    pub(super) fn due_from(&self) -> i64 {
        self.due_from
    }

    /// Where looks of a new desk begin.
    pub(super) fn begin_for(&self, fetch: &Fetch) -> i64 {
        let swept = self.swept.as_ref().map(|swept| swept.lowest_for(fetch));
        swept.map_or(BEGINNING, |place| place.min(self.lowest[fetch.queue() as usize]))
    }

    /// Where looks begin after one that has found this first.
    pub(super) fn behind(first: i64) -> i64 {
        first.saturating_sub(WINDOW)
    }
}

/// What was seen from the very beginning of all queues.
#[derive(Debug)]
pub(crate) struct Swept {
    /// Everything that is queued from now on is behind this place.
    pub(crate) next_place: i64,
    /// The first turn of each pin.
    pub(crate) pins: Vec<(i32, i64)>,
    pub(crate) known_pins: Arc<Pins>,
    /// The first activity of each tag.
    pub(crate) tags: Vec<(Option<String>, i64)>,
    /// The first time, before that of which everything was believed to be over.
    pub(crate) due: Option<i64>,
    /// How many entries had to be read.
    pub(crate) entries: i64,
}

impl Swept {
    /// The first thing that a fetch takes.
    fn first_for(&self, fetch: &Fetch) -> Option<i64> {
        match &fetch.what {
            What::Turns { pins } => {
                let admitted = pins.as_ref().map(|range| self.known_pins.admitted(range));
                let is_admitted = |pin: &i32| admitted.as_ref().is_none_or(|all| all.contains(pin));
                let places = self.pins.iter().filter(|(pin, _)| is_admitted(pin));
                places.map(|(_, place)| *place).min()
            }
            What::Work { tags, .. } => {
                let is_admitted = |tag: &Option<String>| tags.matches(tag.as_deref());
                let places = self.tags.iter().filter(|(tag, _)| is_admitted(tag));
                places.map(|(_, place)| *place).min()
            }
        }
    }

    /// Where a fetch may begin to look.
    fn lowest_for(&self, fetch: &Fetch) -> i64 {
        self.first_for(fetch).unwrap_or(i64::MAX).min(Bounds::behind(self.next_place))
    }
}

impl State {
    /// Something became ready at this place, by way of this node: looks begin there at the latest.
    pub(super) fn lower(&mut self, queue: Queue, place: i64) {
        let lowest = &mut self.bounds.lowest[queue as usize];
        *lowest = place.min(*lowest);
        for desk in self.desks.iter_mut().filter(|desk| desk.fetch.queue() == queue) {
            desk.lower(place);
        }
    }

    fn drop_bounds(&mut self) {
        self.bounds = Bounds::default();
        self.desks.iter_mut().for_each(|desk| desk.lower(BEGINNING));
    }

    fn note_sweep(&mut self, swept: Swept) {
        // They may have been given up meanwhile.
        if !self.bounds.is_on || swept.entries < FEW {
            return self.drop_bounds();
        }
        for desk in &mut self.desks {
            match swept.first_for(&desk.fetch) {
                Some(first) if first < desk.from => {
                    desk.lower(first);
                    desk.is_dirty = true;
                }
                _ => {
                    let lowest = self.bounds.lowest[desk.fetch.queue() as usize];
                    desk.from = desk.from.max(swept.lowest_for(&desk.fetch).min(lowest));
                }
            }
        }
        if let Some(due) = swept.due {
            self.bounds.due_from = self.bounds.due_from.min(due);
            let now = Instant::now();
            self.expect(Queue::Turns, now);
            self.expect(Queue::Work, now);
        }
        self.bounds.swept = Some(swept);
    }
}

impl Floor {
    /// Something became ready at this place, by way of this node.
    pub(crate) fn lower(&self, queue: Queue, place: i64) {
        self.lock().lower(queue, place);
    }

    /// Anything may have become ready: the node was cut off.
    pub(crate) fn lower_all(&self) {
        let mut state = self.lock();
        state.lower(Queue::Turns, BEGINNING);
        state.lower(Queue::Work, BEGINNING);
    }

    /// Looks begin at the very beginning again.
    pub(crate) fn drop_bounds(&self) {
        self.lock().drop_bounds();
    }

    /// Where a pulse begins to look, for turns, for activities, and for what is due.
    pub(crate) fn bounds(&self) -> [i64; 3] {
        let state = self.lock();
        let from = |queue| {
            let of_queue = state.desks.iter().filter(|desk| desk.fetch.queue() == queue);
            of_queue.map(|desk| desk.from).min().unwrap_or(i64::MAX)
        };
        match state.bounds.is_on {
            true => [from(Queue::Turns), from(Queue::Work), state.bounds.due_from],
            false => [BEGINNING; 3],
        }
    }

    /// A pulse has found that nothing is due before `due`, and has read so many entries for what it
    /// told.
    pub(crate) fn note_pulse(&self, due: i64, entries: i64) {
        let mut state = self.lock();
        if state.bounds.is_on {
            state.bounds.due_from = due.saturating_sub(MARGIN_MS);
        } else if MANY < entries {
            state.bounds.is_on = true;
            state.bounds.next_sweep = Some(Instant::now());
        }
    }

    /// The time before which a sweep is to look for what is due, if one is due itself.
    pub(crate) fn begin_sweep(&self) -> Option<i64> {
        let mut state = self.lock();
        let bounds = &mut state.bounds;
        bounds.next_sweep.take_if(|next| *next <= Instant::now())?;
        bounds.lowest = [i64::MAX; 2];
        Some(bounds.due_from)
    }

    /// A sweep is over. If it came to nothing, so does all that rests on it.
    pub(crate) fn end_sweep(&self, swept: Option<Swept>, took: Duration) {
        let mut state = self.lock();
        match swept {
            Some(swept) => state.note_sweep(swept),
            None => state.drop_bounds(),
        }
        if state.bounds.is_on {
            let pause = (SWEEPS_IN * took).clamp(SHORTEST_PAUSE, LONGEST_PAUSE);
            state.bounds.next_sweep = Some(Instant::now() + pause);
        }
        self.set_alarm(&mut state);
        drop(state);
        self.lanes.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use duroxide_core::provider::TagFilter;

    use super::*;

    fn turns() -> Fetch {
        Fetch { lock_ms: 1, what: What::Turns { pins: None } }
    }

    fn work(tags: TagFilter) -> Fetch {
        Fetch { lock_ms: 1, what: What::Work { tags, session: None } }
    }

    fn swept(pins: Vec<(i32, i64)>, entries: i64) -> Swept {
        let (known_pins, tags) = (Arc::default(), vec![(Some("tag".to_owned()), 7_000)]);
        Swept { next_place: 50_000, pins, known_pins, tags, due: None, entries }
    }

    fn bounded() -> State {
        let mut state = State::default();
        state.bounds.is_on = true;
        state
    }

    #[test]
    fn a_sweep_raises_bounds_and_lowers_them_for_what_it_finds() {
        let mut state = bounded();
        state.desk_for(turns());
        state.note_sweep(swept(vec![], MANY));
        assert_eq!(state.desk_for(turns()).from, 49_000);
        state.desk_for(turns()).is_dirty = false;
        state.note_sweep(swept(vec![(0, 20_000)], MANY));
        let desk = state.desk_for(turns());
        assert_eq!((desk.from, desk.is_dirty), (20_000, true), "before the bound");
        state.note_sweep(swept(vec![(0, 45_000)], MANY));
        assert_eq!(state.desk_for(turns()).from, 45_000);
    }

    #[test]
    fn bounds_depend_on_what_a_fetch_takes() {
        let mut state = bounded();
        state.note_sweep(swept(vec![], MANY));
        assert_eq!(state.desk_for(work(TagFilter::DefaultOnly)).from, 49_000);
        assert_eq!(state.desk_for(work(TagFilter::Any)).from, 7_000);
    }

    #[test]
    fn what_this_node_made_ready_during_a_sweep_stays_in_sight() {
        let mut state = bounded();
        state.desk_for(turns());
        state.lower(Queue::Turns, 30_000);
        state.note_sweep(swept(vec![], MANY));
        assert_eq!(state.desk_for(turns()).from, 30_000);
        let other = Fetch { lock_ms: 2, ..turns() };
        assert_eq!(state.desk_for(other).from, 30_000);
    }

    #[test]
    fn where_little_is_read_there_are_no_bounds() {
        let mut state = bounded();
        state.desk_for(turns());
        state.note_sweep(swept(vec![], MANY));
        state.note_sweep(swept(vec![], FEW - 1));
        assert_eq!(state.desk_for(turns()).from, BEGINNING);
        assert!(!state.bounds.is_on);
    }
}
