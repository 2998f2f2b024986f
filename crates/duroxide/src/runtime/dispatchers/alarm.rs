//! An alarm that rings on time: tasks are woken to the millisecond, and up to two of them late.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use tokio::sync::Notify;

/// Rings at the time it is set to. A thread waits for that, as long as the alarm is there.
pub(super) struct Alarm(Arc<Shared>);

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
    rings: Notify,
}

#[derive(Default)]
struct State {
    at: Option<Instant>,
    is_over: bool,
}

impl Alarm {
    /// An alarm that is not set. Without a thread it never rings, so it must not be relied on.
    pub(super) fn new() -> Self {
        let shared = Arc::<Shared>::default();
        let builder = std::thread::Builder::new().name("duroxide-timers".to_owned());
        let watched = Arc::clone(&shared);
        if let Err(error) = builder.spawn(move || watched.watch()) {
            tracing::debug!(%error, "no thread for timers; they may be a millisecond or two late");
        }
        Self(shared)
    }

    /// Sets it to another time.
    pub(super) fn set(&self, at: Instant) {
        let before = self.0.locked().at.replace(at);
        // Who is woken too early looks again, and sleeps on.
        if before.is_none_or(|before| at < before) {
            self.0.changed.notify_one();
        }
    }

    /// Waits until it rings.
    pub(super) async fn rang(&self) {
        self.0.rings.notified().await;
    }
}

impl Drop for Alarm {
    fn drop(&mut self) {
        self.0.locked().is_over = true;
        self.0.changed.notify_one();
    }
}

impl Shared {
    fn watch(&self) {
        let mut state = self.locked();
        while !state.is_over {
            let pause = state.at.map(|at| at.saturating_duration_since(Instant::now()));
            state = match pause {
                None => self.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
                Some(pause) if pause.is_zero() => {
                    state.at = None;
                    self.rings.notify_one();
                    state
                }
                Some(pause) => {
                    let waited = self.changed.wait_timeout(state, pause);
                    waited.unwrap_or_else(PoisonError::into_inner).0
                }
            };
        }
    }

    fn locked(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test]
    async fn it_rings_when_it_is_time_and_not_before() {
        let alarm = Alarm::new();
        for pause in [20, 1, 0, 5] {
            let at = Instant::now() + Duration::from_millis(pause);
            alarm.set(at + Duration::from_secs(3600));
            alarm.set(at);
            alarm.rang().await;
            assert!(at <= Instant::now());
        }
    }

    #[tokio::test]
    async fn its_thread_ends_with_it() {
        let alarm = Alarm::new();
        alarm.set(Instant::now() + Duration::from_secs(3600));
        let shared = Arc::downgrade(&alarm.0);
        drop(alarm);
        while shared.upgrade().is_some() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
}
