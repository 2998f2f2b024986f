//! The timers of an instance that its runtime fires itself (R1.67).

use std::collections::BTreeSet;
use std::time::Duration;

use duroxide_core::model::WorkItem;

/// How much later than at their time the store shows timers that we mean to fire: so late they are if
/// we do not come to it.
const GRACE: Duration = Duration::from_millis(50);
/// How long after their time we begin to fire them at most. Later their messages would be visible
/// before the turn is stored, and the turn in vain.
const BEGUN_WITHIN_MS: u64 = 35;
/// How many are fired in one turn at most: the store looks for each among those of the instance.
const FIRED_AT_ONCE: usize = 100;

/// Timers whose messages the store holds back, by the time they are due.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct OwnTimers(BTreeSet<(u64, u64)>);

impl OwnTimers {
    /// Those that a turn sets.
    pub(crate) fn set_by(messages: &[WorkItem]) -> Self {
        Self(messages.iter().filter_map(due).collect())
    }

    /// Adds others.
    pub(crate) fn and(mut self, others: Self) -> Self {
        self.0.extend(others.0);
        self
    }

    /// Takes out those that a turn has read.
    pub(crate) fn without(mut self, messages: &[WorkItem]) -> Self {
        for read in messages.iter().filter_map(due) {
            self.0.remove(&read);
        }
        self
    }

    /// How much later than at their time the store is to show them.
    pub(crate) fn grace(&self) -> Duration {
        if self.0.is_empty() { Duration::ZERO } else { GRACE }
    }

    /// When the first is due.
    pub(crate) fn first_due_at(&self) -> Option<u64> {
        self.0.first().map(|(at, _)| *at)
    }

    /// Forgets those that are so late that they are left to the store.
    pub(crate) fn forget_late(&mut self, now_ms: u64) {
        while self.first_due_at().is_some_and(|at| at.saturating_add(BEGUN_WITHIN_MS) < now_ms) {
            self.0.pop_first();
        }
    }

    /// The messages of those that are due, as many as are fired at once.
    pub(crate) fn due(&self, now_ms: u64, instance: &str, execution_id: u64) -> Vec<WorkItem> {
        let message = |(fire_at_ms, id): &(u64, u64)| WorkItem::TimerFired {
            instance: instance.to_owned(),
            execution_id,
            id: *id,
            fire_at_ms: *fire_at_ms,
        };
        let due = self.0.iter().take_while(|(at, _)| *at <= now_ms).take(FIRED_AT_ONCE);
        due.map(message).collect()
    }

    /// About how much memory they take.
    pub(crate) fn bytes(&self) -> usize {
        2 * size_of::<(u64, u64)>() * self.0.len()
    }
}

/// Time and number of a timer.
fn due(message: &WorkItem) -> Option<(u64, u64)> {
    match message {
        WorkItem::TimerFired { fire_at_ms, id, .. } => Some((*fire_at_ms, *id)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn timer(id: u64, fire_at_ms: u64) -> WorkItem {
        WorkItem::TimerFired { instance: "i".to_owned(), execution_id: 3, id, fire_at_ms }
    }

    #[test]
    fn r1_67_those_that_are_due_are_told_in_order_and_as_they_were_set() {
        let other = WorkItem::CancelInstance { instance: "i".to_owned(), reason: String::new() };
        let timers = OwnTimers::set_by(&[timer(7, 200), other, timer(5, 100), timer(6, 100)]);
        assert_eq!(timers.first_due_at(), Some(100));
        assert_eq!(timers.due(99, "i", 3), []);
        assert_eq!(timers.due(199, "i", 3), [timer(5, 100), timer(6, 100)]);
        let timers = timers.without(&[timer(5, 100)]).and(OwnTimers::set_by(&[timer(8, 150)]));
        assert_eq!(timers.due(200, "i", 3), [timer(6, 100), timer(8, 150), timer(7, 200)]);
        assert_eq!((timers.grace(), OwnTimers::default().grace()), (GRACE, Duration::ZERO));
    }

    #[test]
    fn r1_67_those_that_are_late_are_left_to_the_store() {
        let mut timers = OwnTimers::set_by(&[timer(5, 100), timer(6, 101)]);
        timers.forget_late(100 + BEGUN_WITHIN_MS);
        assert_eq!(timers.first_due_at(), Some(100));
        timers.forget_late(101 + BEGUN_WITHIN_MS);
        assert_eq!(timers.first_due_at(), Some(101));
        timers.forget_late(u64::MAX);
        assert_eq!(timers, OwnTimers::default());
        assert!(Duration::from_millis(BEGUN_WITHIN_MS) < GRACE);
    }

    #[test]
    fn r1_67_those_that_are_too_many_for_a_turn_are_fired_in_the_next() {
        let all: Vec<WorkItem> = (0..105).map(|id| timer(id, 100)).collect();
        let timers = OwnTimers::set_by(&all);
        let first = timers.due(100, "i", 3);
        assert_eq!(first, all[..FIRED_AT_ONCE]);
        assert_eq!(timers.without(&first).due(100, "i", 3), all[FIRED_AT_ONCE..]);
    }
}
