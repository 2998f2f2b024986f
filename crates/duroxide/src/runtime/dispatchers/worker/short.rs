//! Which activities are known to be short.
//!
//! When a slot has fetched an activity, the slot that is to wait for the next one is woken, and tokio keeps the
//! task woken last for the thread that woke it: no other thread may take it. Should the activity block that
//! thread, nothing would be fetched until it ends. So the slot yields before it runs an activity: the other
//! one waits at the store by then. That costs some microseconds, which is saved for activities that have
//! long been short.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// What is shorter keeps a thread from nothing.
const SHORT: Duration = Duration::from_millis(1);
/// So many have to be short in a row.
const IN_A_ROW: u32 = 32;

/// How often activities were short without an exception, by name. Only registered ones run.
#[derive(Debug, Default)]
pub(super) struct ShortActivities(Mutex<HashMap<String, u32>>);

impl ShortActivities {
    /// Learns how long one took.
    pub(super) fn learn(&self, name: &str, took: Duration) {
        let mut runs = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match runs.get_mut(name) {
            Some(short) if took < SHORT => *short = short.saturating_add(1),
            Some(short) => *short = 0,
            None => {
                runs.insert(name.to_owned(), u32::from(took < SHORT));
            }
        }
    }

    /// Whether the next one will be short, as far as can be told.
    pub(super) fn contains(&self, name: &str) -> bool {
        let runs = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        runs.get(name).is_some_and(|short| IN_A_ROW <= *short)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_long_run_outweighs_many_short_ones() {
        let activities = ShortActivities::default();
        let run = |times, took| (0..times).for_each(|_| activities.learn("A", took));
        assert!(!activities.contains("A"), "never run");
        run(IN_A_ROW - 1, Duration::ZERO);
        assert!(!activities.contains("A"));
        run(1, Duration::ZERO);
        assert!(activities.contains("A") && !activities.contains("B"));
        run(1, SHORT);
        run(IN_A_ROW - 1, Duration::ZERO);
        assert!(!activities.contains("A"));
    }
}
