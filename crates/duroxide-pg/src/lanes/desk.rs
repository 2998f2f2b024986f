//! Where fetches wait: one desk for all that ask for the same.

use std::collections::VecDeque;
use std::time::Duration;

use duroxide_core::provider::{SemverRange, SessionFetchConfig, TagFilter};
use tokio::sync::oneshot;
use tokio::time::Instant;
use tokio_postgres::Row;
use uuid::Uuid;

use super::bounds::{BEGINNING, Bounds};
use super::catch::Catch;
use super::op::Queue;
use crate::error::Failure;
use crate::token::fresh_secret;

/// What a fetch asks for.
#[derive(Debug, Clone)]
pub(crate) struct Fetch {
    pub(crate) lock_ms: i64,
    pub(crate) what: What,
}

#[derive(Debug, Clone)]
pub(crate) enum What {
    /// Turns of instances with pins in this range; `None` is all (R8.90).
    Turns { pins: Option<SemverRange> },
    /// Activities with these tags, and of sessions that are free or belong to the owner.
    Work { tags: TagFilter, session: Option<SessionFetchConfig> },
}

impl Fetch {
    pub(crate) fn queue(&self) -> Queue {
        match self.what {
            What::Turns { .. } => Queue::Turns,
            What::Work { .. } => Queue::Work,
        }
    }

    pub(super) fn is_of_sessions(&self) -> bool {
        matches!(self.what, What::Work { session: Some(_), .. })
    }

    fn is_same(&self, other: &Self) -> bool {
        let session = |session: &Option<SessionFetchConfig>| {
            session.as_ref().map(|session| (session.owner_id.clone(), session.lock_timeout))
        };
        let same = match (&self.what, &other.what) {
            (What::Turns { pins }, What::Turns { pins: others }) => pins == others,
            (
                What::Work { tags, session: ours },
                What::Work { tags: other_tags, session: theirs },
            ) => tags == other_tags && session(ours) == session(theirs),
            _ => false,
        };
        same && self.lock_ms == other.lock_ms
    }
}

/// What somebody wants to fetch, and for how long they wait for it.
#[derive(Debug)]
pub(crate) struct Wish {
    pub(crate) fetch: Fetch,
    pub(crate) max: usize,
    pub(crate) deadline: Instant,
    /// Content with what an earlier look saw, so that the wait need not begin with another.
    pub(crate) is_content: bool,
}

/// Somebody who waits for something to fetch.
#[derive(Debug)]
pub(super) struct Fetcher {
    pub(super) id: u64,
    pub(super) max: usize,
    pub(super) deadline: Instant,
    /// Whether a look was begun for it.
    pub(super) has_looked: bool,
    pub(super) reply: oneshot::Sender<Result<Catch, Failure>>,
}

/// Where those wait who ask for the same.
#[derive(Debug)]
pub(super) struct Desk {
    pub(super) id: u64,
    pub(super) fetch: Fetch,
    pub(super) waiting: VecDeque<Fetcher>,
    /// There may be something that no look has seen.
    pub(super) is_dirty: bool,
    /// A look is under way.
    pub(super) is_looking: bool,
    /// The next look is to see everything that is due by then, ends of locks, too.
    pub(super) seeks_ended: bool,
    /// Where looks begin, and the lowest place that became ready since the latest look began.
    pub(super) from: i64,
    lowest: i64,
    /// When to look again even if nobody rings.
    pub(super) due: Option<Instant>,
    /// The last look failed, perhaps because of one item: the next one leaves such aside.
    pub(super) is_careful: bool,
    /// The secret of the latest look.
    secret: Option<Uuid>,
    /// When to look again for what the last look may have left to others.
    again: Option<Instant>,
    /// How long after the next look that leaves something.
    pause: Duration,
}

/// A look at a queue, part of a transaction.
#[derive(Debug)]
pub(super) struct Look {
    pub(super) desk: u64,
    pub(super) fetch: Fetch,
    pub(super) max: usize,
    /// Of all locks that it takes.
    pub(super) secret: Uuid,
    /// Takes one item at most, and leaves aside what cannot be read.
    pub(super) is_careful: bool,
    /// Looks for locks that have ended, too.
    pub(super) seeks_ended: bool,
    /// The place, and the time, before which it does not look.
    pub(super) from: i64,
    pub(super) due_from: i64,
}

impl Look {
    /// In how many milliseconds what it takes may be free again.
    pub(super) fn ends_in(&self) -> impl Iterator<Item = i64> {
        let lease = match &self.fetch.what {
            What::Work { session: Some(session), .. } => {
                i64::try_from(session.lock_timeout.as_millis()).ok()
            }
            _ => None,
        };
        std::iter::once(self.fetch.lock_ms).chain(lease)
    }
}

/// What a look came to.
pub(super) struct Seen {
    pub(super) rows: Vec<Row>,
    /// There may be more.
    pub(super) is_full: bool,
    /// There is something that it did not take: somebody else has it locked.
    pub(super) has_left: bool,
    /// How long until time brings something.
    pub(super) due_in: Duration,
    /// The place before which it has left nothing that it could have had.
    pub(super) first: Option<i64>,
}

/// Pauses between looks for what others have locked: from the first to the longest, doubling.
const FIRST_PAUSE: Duration = Duration::from_millis(5);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// Most rows of one look; what is fetched for nobody has to go back.
const LOOK_MAX: usize = 256;

impl Desk {
    pub(super) fn new(id: u64, fetch: Fetch, from: i64) -> Self {
        let waiting = VecDeque::new();
        Self {
            id,
            fetch,
            waiting,
            is_dirty: true,
            is_looking: false,
            seeks_ended: true,
            from,
            lowest: i64::MAX,
            due: None,
            is_careful: false,
            secret: None,
            again: None,
            pause: FIRST_PAUSE,
        }
    }

    pub(super) fn serves(&self, fetch: &Fetch) -> bool {
        self.fetch.is_same(fetch)
    }

    /// Whether somebody waits for a look that nobody is taking.
    pub(super) fn is_open(&self) -> bool {
        !self.waiting.is_empty() && !self.is_looking
    }

    pub(super) fn wants_look(&self, now: Instant) -> bool {
        self.is_dirty || self.is_due(now) || self.again.is_some_and(|again| again <= now)
    }

    /// Whether time has brought something, as far as is known.
    pub(super) fn is_due(&self, now: Instant) -> bool {
        self.due.is_some_and(|due| due <= now)
    }

    /// Time may bring something then.
    pub(super) fn expect(&mut self, due: Instant) {
        self.due = Some(self.due.map_or(due, |before| before.min(due)));
    }

    /// Something became ready at this place.
    pub(super) fn lower(&mut self, place: i64) {
        self.from = place.min(self.from);
        self.lowest = place.min(self.lowest);
    }

    /// A look is to be taken again.
    pub(super) fn look_again(&mut self) {
        self.is_looking = false;
        self.is_dirty = true;
        self.seeks_ended = true;
    }

    /// When somebody has to look at the latest.
    pub(super) fn next_due(&self) -> Option<Instant> {
        self.due.into_iter().chain(self.again).min()
    }

    /// A look is over. If it left something, which somebody had locked for a moment, another follows
    /// soon, and ever later while it comes to nothing. If looks are bounded, the next one begins a little
    /// before what this one found first.
    pub(super) fn note(&mut self, seen: &Seen, is_bounded: bool, now: Instant) {
        self.is_looking = false;
        self.is_careful = false;
        self.is_dirty |= seen.is_full;
        self.expect(now + seen.due_in);
        if let Some(first) = seen.first.filter(|_| is_bounded && !seen.has_left) {
            self.from = Bounds::behind(first).min(self.lowest);
        }
        let takes = !seen.rows.is_empty();
        if takes || !seen.has_left {
            self.pause = FIRST_PAUSE;
        }
        if seen.has_left {
            self.again = Some(now + self.pause);
            if !takes {
                self.pause = (self.pause * 2).min(LONGEST_PAUSE);
            }
        }
    }

    /// The look that is under way comes to nothing: whoever took it is gone. Its secret.
    pub(super) fn interrupt(&mut self) -> Option<Uuid> {
        if !self.is_looking {
            return None;
        }
        self.look_again();
        self.secret
    }

    /// Begins a look for all who wait.
    pub(super) fn begin_look(&mut self, due_from: i64, now: Instant) -> Look {
        let seeks_ended = self.seeks_ended || self.next_due().is_some_and(|due| due <= now);
        self.is_dirty = false;
        self.is_looking = true;
        self.seeks_ended = false;
        self.lowest = i64::MAX;
        self.due = None;
        self.again = None;
        self.waiting.iter_mut().for_each(|fetcher| fetcher.has_looked = true);
        let max: usize = self.waiting.iter().map(|fetcher| fetcher.max).sum();
        let secret = fresh_secret();
        self.secret = Some(secret);
        Look {
            desk: self.id,
            fetch: self.fetch.clone(),
            max: max.clamp(1, LOOK_MAX),
            secret,
            is_careful: self.is_careful,
            seeks_ended,
            from: if self.is_careful { BEGINNING } else { self.from },
            due_from,
        }
    }
}

/// Takes out what is meant, and leaves the others in their order.
pub(super) fn take_where<T>(
    from: &mut VecDeque<T>,
    mut is_meant: impl FnMut(&mut T) -> bool,
) -> Vec<T> {
    let mut taken = Vec::new();
    let all = std::mem::take(from);
    for mut item in all {
        if is_meant(&mut item) { taken.push(item) } else { from.push_back(item) }
    }
    taken
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(has_left: bool) -> Seen {
        let due_in = Duration::from_secs(15);
        Seen { rows: Vec::new(), is_full: false, has_left, due_in, first: None }
    }

    #[test]
    fn what_others_have_locked_is_looked_for_ever_more_seldom() {
        let fetch = Fetch { lock_ms: 1, what: What::Turns { pins: None } };
        let (mut desk, now) = (Desk::new(1, fetch, BEGINNING), Instant::now());
        let mut wait_after = |has_left| {
            desk.begin_look(BEGINNING, now);
            desk.note(&seen(has_left), false, now);
            desk.next_due().map_or(0, |due| (due - now).as_millis())
        };
        let pauses: Vec<u128> = (0..10).map(|_| wait_after(true)).collect();
        assert_eq!(pauses, [5, 10, 20, 40, 80, 160, 320, 640, 1000, 1000]);
        assert_eq!(wait_after(false), 15_000, "there is nothing to look for");
        assert_eq!(wait_after(true), 5, "something else");
    }
}
