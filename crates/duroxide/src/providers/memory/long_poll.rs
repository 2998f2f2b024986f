//! Long polls: a fetch returns the moment there is something to fetch (R8.32).
//!
//! Everything that changes the store happens between two awaits, under its lock. A poll that is
//! dropped at an await (R8.33) leaves its line and passes on what it was called for.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

use super::instances::Id;
use super::state::State;
use super::turns::{TakenTurn, TurnWants};
use super::waiters::{Line, Waiters};
use super::work::{TakenWork, WorkWants};
use super::{Inner, MemoryProvider};

/// Longer than anybody waits, and safe to add to an instant.
const FOR_EVER: Duration = Duration::from_secs(10 * 365 * 24 * 3600);

/// The line of those who fetch turns.
pub(super) struct Turns;

/// The line of those who fetch activities.
pub(super) struct Work;

impl Line for Turns {
    type Wants = TurnWants;
    type Key = Id;
    /// A turn, and the bytes of its messages.
    type Taken = TakenTurn;

    fn take(
        state: &mut State,
        wants: &TurnWants,
        new_token: impl FnOnce() -> String,
        now: u64,
    ) -> Option<(Id, TakenTurn)> {
        state.take_turn(wants, new_token, now)
    }

    fn admits(state: &State, wants: &TurnWants, key: &Id) -> bool {
        state.messages.runnable_pin(key).is_some_and(|pin| wants.accepts(pin))
    }

    fn take_awakened(state: &mut State) -> Vec<Id> {
        state.messages.take_awakened()
    }

    fn next_change(state: &State) -> Option<u64> {
        state.messages.next_change()
    }
}

impl Line for Work {
    type Wants = WorkWants;
    type Key = u64;
    type Taken = TakenWork;

    fn take(
        state: &mut State,
        wants: &WorkWants,
        new_token: impl FnOnce() -> String,
        now: u64,
    ) -> Option<(u64, TakenWork)> {
        state.take_work(wants, new_token, now)
    }

    fn admits(state: &State, wants: &WorkWants, key: &u64) -> bool {
        state.work.rows.get(key).is_some_and(|row| wants.admits(&state.work, row))
    }

    fn take_awakened(state: &mut State) -> Vec<u64> {
        state.work.take_awakened()
    }

    fn next_change(state: &State) -> Option<u64> {
        state.work.next_change()
    }
}

/// A line that the store keeps.
pub(super) trait KeptLine: Line {
    /// The line and the data it is about.
    fn of(inner: &mut Inner) -> (&mut Waiters<Self>, &mut State);
}

impl KeptLine for Turns {
    fn of(inner: &mut Inner) -> (&mut Waiters<Self>, &mut State) {
        (&mut inner.turn_polls, &mut inner.state)
    }
}

impl KeptLine for Work {
    fn of(inner: &mut Inner) -> (&mut Waiters<Self>, &mut State) {
        (&mut inner.work_polls, &mut inner.state)
    }
}

/// Takes the next thing, waiting for it up to `poll_timeout`.
pub(super) async fn poll<L: KeptLine>(
    store: &MemoryProvider,
    wants: &L::Wants,
    poll_timeout: Duration,
) -> Option<L::Taken> {
    let at_once = store.with(|inner, now| L::take(&mut inner.state, wants, || store.token(), now));
    if at_once.is_some() || poll_timeout.is_zero() {
        return at_once.map(|(_, taken)| taken);
    }
    let deadline = Instant::now() + poll_timeout.min(FOR_EVER);
    let mut seat = Seat::<L>::join(store, wants);
    loop {
        let wake_at = match seat.look(wants) {
            Look::Taken(taken) => return Some(taken),
            Look::WaitUntil(wake_at) => wake_at,
        };
        if deadline <= Instant::now() {
            return None;
        }
        tokio::select! {
            () = seat.signal.notified() => {}
            () = sleep_until(wake_at.map_or(deadline, |at| deadline.min(at))) => {}
        }
    }
}

/// What a look at the queue gave.
enum Look<T> {
    Taken(T),
    WaitUntil(Option<Instant>),
}

/// A poll's place in its line, given up when dropped.
struct Seat<'a, L: KeptLine> {
    store: &'a MemoryProvider,
    /// `None` once the poll has left the line.
    ticket: Option<u64>,
    signal: Arc<Notify>,
    line: std::marker::PhantomData<fn() -> L>,
}

impl<'a, L: KeptLine> Seat<'a, L> {
    fn join(store: &'a MemoryProvider, wants: &L::Wants) -> Self {
        let (ticket, signal) = store.with(|inner, _| L::of(inner).0.join(wants));
        Self { store, ticket: Some(ticket), signal, line: std::marker::PhantomData }
    }

    /// Takes something and leaves, or waits on.
    fn look(&mut self, wants: &L::Wants) -> Look<L::Taken> {
        let Some(ticket) = self.ticket else { return Look::WaitUntil(None) };
        let store = self.store;
        store.with(|inner, now| {
            let (line, state) = L::of(inner);
            match L::take(state, wants, || store.token(), now) {
                Some((key, taken)) => {
                    line.leave(state, ticket, Some(&key));
                    self.ticket = None;
                    Look::Taken(taken)
                }
                None => {
                    let wake_at = line.wait(state, ticket);
                    let wait = |at: u64| Duration::from_millis(at.saturating_sub(now));
                    Look::WaitUntil(wake_at.map(|at| Instant::now() + wait(at).min(FOR_EVER)))
                }
            }
        })
    }
}

impl<L: KeptLine> Drop for Seat<'_, L> {
    fn drop(&mut self) {
        if let Some(ticket) = self.ticket {
            self.store.with(|inner, _| {
                let (line, state) = L::of(inner);
                line.leave(state, ticket, None);
            });
        }
    }
}
