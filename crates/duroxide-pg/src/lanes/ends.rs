//! Times at which locks may end, as far as looks do not tell.
//!
//! The next end of a lock is not asked for with each look: entries of locks that were used up stand before
//! it. The pulse tells of those that end before the one after it; shorter ones this node knows of itself, and
//! hears of those of others a second late at most.

use std::collections::BTreeSet;
use std::time::Duration;

use tokio::time::Instant;

use super::floor::Floor;
use super::op::{Op, Queue, Waiting};
use super::state::State;

/// What is further away the pulse tells in time.
const NEAR: Duration = Duration::from_secs(3);
/// Times that are no further apart are one.
const STEP: Duration = Duration::from_millis(5);

/// Times that are near, by queue.
#[derive(Debug, Default)]
pub(super) struct Ends([BTreeSet<Instant>; 2]);

impl Ends {
    fn add(&mut self, queue: Queue, end: Instant) {
        let ends = &mut self.0[queue as usize];
        if ends.range(end..end + STEP).next().is_none() {
            ends.insert(end);
        }
    }

    /// Takes those out that are over; whether there are any.
    fn take(&mut self, queue: Queue, now: Instant) -> bool {
        let ends = &mut self.0[queue as usize];
        let mut is_any = false;
        while ends.first().is_some_and(|end| *end <= now) {
            ends.pop_first();
            is_any = true;
        }
        is_any
    }

    /// The first of all.
    pub(super) fn first(&self) -> Option<Instant> {
        self.0.iter().filter_map(|ends| ends.first().copied()).min()
    }
}

impl State {
    /// Time may bring something then.
    pub(super) fn expect(&mut self, queue: Queue, due: Instant) {
        if due <= Instant::now() + NEAR {
            return self.ends.add(queue, due);
        }
        for desk in self.desks.iter_mut().filter(|desk| desk.fetch.queue() == queue) {
            desk.expect(due);
        }
    }

    /// A lock was taken that lasts so long, and is gone before the pulse could tell.
    pub(super) fn expect_end(&mut self, queue: Queue, ms: i64) {
        let lasts = Duration::from_millis(u64::try_from(ms).unwrap_or(0));
        if lasts <= NEAR {
            self.ends.add(queue, Instant::now() + lasts);
        }
    }

    /// What was to be expected by now is looked for.
    pub(super) fn pass_time(&mut self, now: Instant) {
        for queue in [Queue::Turns, Queue::Work] {
            if self.ends.take(queue, now) {
                let desks = self.desks.iter_mut();
                desks.filter(|desk| desk.fetch.queue() == queue).for_each(|desk| desk.expect(now));
            }
        }
    }
}

impl Floor {
    /// There will be something to fetch.
    pub(crate) fn expect(&self, queue: Queue, due: Instant) {
        let mut state = self.lock();
        state.expect(queue, due);
        self.set_alarm(&mut state);
    }

    /// What ops have given back may stand before what was fetched last, or come after a while; locks that
    /// they hold for longer end later. What was done as a common case was for an instance that is known.
    pub(super) fn note_locks(&self, ops: &[Waiting], is_common: bool, ready_from: Option<i64>) {
        let is_for_nobody = |op: &Op| !is_common && op.may_be_for_nobody();
        let is_quiet = |waiting: &Waiting| {
            let op = &waiting.op;
            op.gives_back().is_none() && op.ends_in().is_none() && !is_for_nobody(op)
        };
        if ready_from.is_none() && ops.iter().all(is_quiet) {
            return;
        }
        let mut state = self.lock();
        if let Some(place) = ready_from {
            state.lower(Queue::Turns, place);
        }
        for waiting in ops {
            if let Some((queue, place)) = waiting.op.gives_back() {
                state.lower(queue, place);
            }
            if let Some((queue, ms)) = waiting.op.ends_in() {
                state.expect_end(queue, ms);
            }
            if is_for_nobody(&waiting.op) {
                state.expect(Queue::Turns, Instant::now());
            }
        }
        self.set_alarm(&mut state);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_close_to_each_other_are_one() {
        let (mut ends, now) = (Ends::default(), Instant::now());
        for ms in (0..100).rev() {
            ends.add(Queue::Work, now + Duration::from_millis(ms));
        }
        assert!(ends.0[Queue::Work as usize].len() <= 21);
        assert!(ends.first().is_some_and(|first| first <= now + STEP));
        assert!(!ends.take(Queue::Turns, now + NEAR));
        assert!(ends.take(Queue::Work, now + NEAR));
        assert_eq!(ends.first(), None);
    }
}
