//! The server's clock, as well as it is known here.
//!
//! Whenever an answer carries the server's time, that time was earlier than now. So the largest
//! difference to our own clock that was seen lately is the best guess, and what is told here is never
//! before a time that an answer carried: a timer that the server found due is due.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Differences are forgotten after two of these: the server's clock may be set back.
const WINDOW: Duration = Duration::from_secs(30);

/// Of a millisecond.
const MICROS: i64 = 1000;

/// The server's time by way of ours. Ours only counts: it cannot be set.
#[derive(Debug)]
pub(crate) struct ServerClock {
    zero: Instant,
    state: Mutex<State>,
}

#[derive(Debug, Clone, Copy)]
struct State {
    /// When the present window began.
    since: Instant,
    /// Largest differences of this window and the one before, in microseconds: with whole milliseconds
    /// of our own clock the server's would seem to be up to one ahead.
    present: i64,
    before: i64,
}

impl ServerClock {
    /// A clock that knows this time only.
    pub(crate) fn starting_at(server_ms: i64) -> Self {
        let zero = Instant::now();
        let ahead = server_ms.saturating_mul(MICROS);
        let state = State { since: zero, present: ahead, before: ahead };
        Self { zero, state: Mutex::new(state) }
    }

    /// An answer carried this time.
    pub(crate) fn note(&self, server_ms: i64) {
        self.note_at(server_ms, Instant::now());
    }

    /// The server's time now.
    pub(crate) fn now_ms(&self) -> i64 {
        self.at(Instant::now())
    }

    fn note_at(&self, server_ms: i64, now: Instant) {
        let ahead = server_ms.saturating_mul(MICROS).saturating_sub(self.since_zero(now));
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if WINDOW <= now.duration_since(state.since) {
            *state = State { since: now, present: ahead, before: state.present };
        } else {
            state.present = state.present.max(ahead);
        }
    }

    fn at(&self, now: Instant) -> i64 {
        let state = *self.state.lock().unwrap_or_else(PoisonError::into_inner);
        self.since_zero(now).saturating_add(state.present.max(state.before)).div_euclid(MICROS)
    }

    /// In microseconds.
    fn since_zero(&self, now: Instant) -> i64 {
        i64::try_from(now.duration_since(self.zero).as_micros()).unwrap_or(i64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn l23_an_answer_that_took_its_time_sets_nothing_back() {
        let clock = ServerClock::starting_at(0);
        let at = |ms| clock.zero + Duration::from_millis(ms);
        clock.note_at(1_000_000, at(10));
        assert_eq!(clock.at(at(10)), 1_000_000);
        clock.note_at(1_000_005, at(100)); // On its way for 85 ms.
        assert_eq!(clock.at(at(100)), 1_000_090);
        clock.note_at(1_000_095, at(102)); // A faster one.
        assert_eq!(clock.at(at(102)), 1_000_095);
    }

    #[test]
    fn r4_30_it_is_never_ahead_of_the_server() {
        let clock = ServerClock::starting_at(0);
        let at = |us| clock.zero + Duration::from_micros(us);
        clock.note_at(1_000_000, at(10_900));
        assert_eq!(clock.at(at(10_900)), 1_000_000);
        assert_eq!(clock.at(at(11_000)), 1_000_000, "a tenth of a millisecond has passed");
        assert_eq!(clock.at(at(11_900)), 1_000_001);
    }

    #[test]
    fn l23_a_clock_that_was_set_back_is_followed_after_a_while() {
        let clock = ServerClock::starting_at(0);
        let at = |seconds| clock.zero + Duration::from_secs(seconds);
        clock.note_at(1_000_000, at(0));
        for second in 1..=70 {
            clock.note_at(500_000 + 1_000 * second, at(second as u64));
        }
        assert_eq!(clock.at(at(70)), 570_000);
    }
}
