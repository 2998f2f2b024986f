//! Reads can be held back for a moment, so that the log can be cut off: as long as reads overlap, there
//! is always one that needs its beginning, and it grows for ever.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How long a read waits at most, whatever becomes of the writer.
const WAIT_MAX: Duration = Duration::from_secs(2);

/// Lets reads in, or lets them wait.
#[derive(Debug, Default)]
pub(crate) struct ReadGate {
    state: Mutex<State>,
    opened: Condvar,
}

#[derive(Debug, Default)]
struct State {
    is_closed: bool,
    inside: usize,
}

/// A read that is under way.
pub(crate) struct Inside<'a>(&'a ReadGate);

impl ReadGate {
    /// Waits while the gate is closed, though not for long.
    pub(crate) fn enter(&self) -> Inside<'_> {
        let until = Instant::now() + WAIT_MAX;
        let mut state = self.state();
        while state.is_closed
            && let Some(left) = until.checked_duration_since(Instant::now())
        {
            let waited = self.opened.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        state.inside += 1;
        Inside(self)
    }

    /// Lets new reads wait.
    pub(crate) fn close(&self) {
        self.state().is_closed = true;
    }

    /// Lets reads in.
    pub(crate) fn open(&self) {
        self.state().is_closed = false;
        self.opened.notify_all();
    }

    /// Whether no read is under way.
    pub(crate) fn is_empty(&self) -> bool {
        self.state().inside == 0
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Inside<'_> {
    fn drop(&mut self) {
        self.0.state().inside -= 1;
    }
}
