//! Who waits for what, and who is called when something turns up.
//!
//! For everything that becomes fetchable exactly one idle poll that can take it is called. A called
//! poll that leaves with something else, or with nothing, passes its call on. So this holds: what
//! is fetchable while a suitable poll is idle has been called out, and somebody will come for it.
//!
//! Time makes things fetchable too. One of the polls, the timekeeper, sleeps until then; when it
//! leaves, another is appointed.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use tokio::sync::Notify;

use super::state::State;

/// One of the two queues, as those who wait for it see it.
pub(super) trait Line: Sized {
    /// What a poll can take.
    type Wants: Clone + Send + Sync;
    /// What names a thing to take.
    type Key: Clone + PartialEq + Send;
    /// A thing taken.
    type Taken: Send;

    /// Takes the next thing, if there is one for this poll.
    fn take(
        state: &mut State,
        wants: &Self::Wants,
        new_token: impl FnOnce() -> String,
        now: u64,
    ) -> Option<(Self::Key, Self::Taken)>;

    /// Whether this poll could take this thing now.
    fn admits(state: &State, wants: &Self::Wants, key: &Self::Key) -> bool;

    /// Things that became fetchable since the last call.
    fn take_awakened(state: &mut State) -> Vec<Self::Key>;

    /// When time alone makes something fetchable next.
    fn next_change(state: &State) -> Option<u64>;
}

/// The polls waiting in one line, in order of arrival.
pub(super) struct Waiters<L: Line> {
    next_ticket: u64,
    idle: BTreeMap<u64, Waiter<L>>,
    called: HashMap<u64, (Waiter<L>, L::Key)>,
    timekeeper: Option<Timekeeper>,
}

/// A waiting poll.
struct Waiter<L: Line> {
    wants: L::Wants,
    signal: Arc<Notify>,
}

/// The poll that watches the time, and the moment it watches for.
struct Timekeeper {
    ticket: u64,
    until: u64,
}

impl<L: Line> Default for Waiters<L> {
    fn default() -> Self {
        Self { next_ticket: 0, idle: BTreeMap::new(), called: HashMap::new(), timekeeper: None }
    }
}

impl<L: Line> Waiters<L> {
    /// A poll begins to wait. The signal tells it to look again.
    pub(super) fn join(&mut self, wants: &L::Wants) -> (u64, Arc<Notify>) {
        let ticket = self.next_ticket;
        self.next_ticket += 1;
        let signal = Arc::new(Notify::new());
        self.idle.insert(ticket, Waiter { wants: wants.clone(), signal: Arc::clone(&signal) });
        (ticket, signal)
    }

    /// A poll ends, with what it took. Its call, if it was called for something else, is passed on.
    pub(super) fn leave(&mut self, state: &State, ticket: u64, took: Option<&L::Key>) {
        self.idle.remove(&ticket);
        if self.timekeeper.as_ref().is_some_and(|keeper| keeper.ticket == ticket) {
            self.timekeeper = None;
        }
        if let Some((_, key)) = self.called.remove(&ticket)
            && took != Some(&key)
        {
            self.call(state, key);
        }
    }

    /// A poll looked and found nothing. Returns the time it should look again at the latest, which
    /// only the timekeeper has to know.
    pub(super) fn wait(&mut self, state: &State, ticket: u64) -> Option<u64> {
        if let Some((waiter, key)) = self.called.remove(&ticket) {
            self.idle.insert(ticket, waiter);
            // What it was called for is gone, or for others only (a session changed hands).
            self.call(state, key);
        }
        let next = L::next_change(state);
        let until = next.unwrap_or(u64::MAX);
        match &mut self.timekeeper {
            Some(keeper) if keeper.ticket != ticket => None,
            Some(keeper) => {
                keeper.until = until;
                next
            }
            None => {
                self.timekeeper = Some(Timekeeper { ticket, until });
                next
            }
        }
    }

    /// Calls one poll for everything that became fetchable, and keeps the time watched.
    pub(super) fn dispatch(&mut self, state: &mut State) {
        for key in L::take_awakened(state) {
            self.call(state, key);
        }
        if let Some(next) = L::next_change(state) {
            self.watch_for(next);
        }
    }

    /// Whether everybody who was called has come.
    #[cfg(test)]
    pub(super) fn is_quiet(&self) -> bool {
        self.called.is_empty()
    }

    /// What those who wait uncalled want.
    #[cfg(test)]
    pub(super) fn idle_wants(&self) -> impl Iterator<Item = &L::Wants> {
        self.idle.values().map(|waiter| &waiter.wants)
    }

    /// Calls the first idle poll that can take this. The timekeeper comes last: if it went, another
    /// would have to be woken for its office.
    fn call(&mut self, state: &State, key: L::Key) {
        let keeper = self.timekeeper.as_ref().map(|keeper| keeper.ticket);
        let mut suitable =
            self.idle.iter().filter(|(_, waiter)| L::admits(state, &waiter.wants, &key));
        let first = suitable.next().map(|(ticket, _)| *ticket);
        let ticket = match first {
            Some(ticket) if Some(ticket) == keeper => suitable.next().map(|(ticket, _)| *ticket),
            _ => first,
        };
        if let Some(ticket) = ticket.or(first)
            && let Some(waiter) = self.idle.remove(&ticket)
        {
            waiter.signal.notify_one();
            self.called.insert(ticket, (waiter, key));
        }
    }

    /// Makes sure that somebody wakes up then.
    fn watch_for(&mut self, next: u64) {
        if self.timekeeper.is_none()
            && let Some((ticket, _)) = self.idle.last_key_value()
        {
            self.timekeeper = Some(Timekeeper { ticket: *ticket, until: u64::MAX });
        }
        if let Some(keeper) = &mut self.timekeeper
            && next < keeper.until
        {
            keeper.until = next;
            if let Some(waiter) = self.idle.get(&keeper.ticket) {
                waiter.signal.notify_one();
            }
        }
    }
}
