//! Answers held back: done, but perhaps not on the server's disk yet.
//!
//! A message does nothing by itself: a turn reads it, and the commit of that turn waits for the disk,
//! and takes along whatever the server wrote before. So a message whose turn is handed out at once is
//! not waited for. Whoever sent it hears of it after the next commit that was, or, if none comes soon,
//! after the server was made to write.
//!
//! All this holds only while the server lives. A connection that is older than the message and still
//! works tells that it does; by a younger one nothing is known, and the message counts as one whose
//! answer was lost.

use std::time::Duration;

use tokio::time::Instant;

use super::op::Waiting;

/// How long an answer is held back before the server is made to write.
const HELD_MAX: Duration = Duration::from_millis(2);

/// Who carries a batch.
#[derive(Debug, Clone, Copy)]
pub(super) struct Carrier {
    pub(super) lane: usize,
    /// Number of the lane's connection, if it has one.
    pub(super) connection: Option<u64>,
}

/// An answer held back.
#[derive(Debug)]
pub(super) struct Held {
    pub(super) waiting: Waiting,
    /// The lane that brought it about.
    pub(super) lane: usize,
    /// Connections with lower numbers are older.
    pub(super) connections: u64,
}

impl Held {
    /// Whether what this connection brings to the disk takes it along.
    pub(super) fn is_vouched_for_by(&self, connection: Option<u64>) -> bool {
        connection.is_some_and(|number| number < self.connections)
    }
}

/// Answers held back on the floor.
#[derive(Default)]
pub(super) struct HeldAnswers {
    answers: Vec<Held>,
    due: Option<Instant>,
    is_overdue: bool,
}

impl HeldAnswers {
    pub(super) fn add(&mut self, held: Held, now: Instant) {
        self.answers.push(held);
        if !self.is_overdue {
            self.due.get_or_insert(now + HELD_MAX);
        }
    }

    /// When somebody has to see to them.
    pub(super) fn due(&self) -> Option<Instant> {
        self.due
    }

    /// Those that a batch takes along: it waits for the disk (`is_lasting`), or they have waited long
    /// enough. What nobody else can vouch for is left to its own lane.
    pub(super) fn take_for(
        &mut self,
        carrier: Carrier,
        is_lasting: bool,
        now: Instant,
    ) -> Vec<Held> {
        self.is_overdue |= self.due.is_some_and(|due| due <= now);
        if !is_lasting && !self.is_overdue {
            return Vec::new();
        }
        let is_for =
            |held: &Held| held.lane == carrier.lane || held.is_vouched_for_by(carrier.connection);
        let (taken, left) = std::mem::take(&mut self.answers).into_iter().partition(is_for);
        self.answers = left;
        self.is_overdue &= !self.answers.is_empty();
        if self.is_overdue || self.answers.is_empty() {
            self.due = None;
        }
        taken
    }
}

#[cfg(test)]
mod tests {
    use super::super::op::Op;
    use super::*;
    use crate::drafts::{Kind, MessageDraft};

    /// Brought about by lane 0, when there had been three connections.
    fn held() -> Held {
        let message = MessageDraft {
            instance: "i".into(),
            kind: Kind::Start,
            payload: "p".into(),
            parent: None,
        };
        let waiting = Waiting::new(Op::Enqueue { message, delay: 0 }, None, None);
        Held { waiting, lane: 0, connections: 3 }
    }

    fn by(lane: usize, connection: Option<u64>) -> Carrier {
        Carrier { lane, connection }
    }

    #[test]
    fn a_commit_that_waits_for_the_disk_takes_along_what_is_older_than_its_connection() {
        let now = Instant::now();
        let mut answers = HeldAnswers::default();
        answers.add(held(), now);
        assert!(answers.take_for(by(1, Some(2)), false, now).is_empty(), "not waited for");
        assert!(answers.take_for(by(1, Some(3)), true, now).is_empty(), "a younger connection");
        assert!(answers.take_for(by(1, None), true, now).is_empty(), "no connection");
        assert_eq!(answers.take_for(by(1, Some(2)), true, now).len(), 1);
        assert_eq!(answers.due(), None);
    }

    #[test]
    fn what_has_waited_long_enough_is_seen_to_once() {
        let now = Instant::now();
        let mut answers = HeldAnswers::default();
        answers.add(held(), now);
        let due = answers.due().unwrap();
        assert!(answers.take_for(by(1, Some(7)), false, due).is_empty());
        assert_eq!(answers.due(), None, "nobody is woken for it again and again");
        let taken = answers.take_for(by(0, None), false, due);
        assert_eq!(taken.len(), 1, "its own lane sees to it, whatever became of its connection");
        assert!(!taken[0].is_vouched_for_by(None));
        answers.add(held(), now);
        assert!(answers.due().is_some());
    }
}
