//! Attempts that failed through no fault of the item: the store could not take the turn, nor even
//! take it back uncounted. They must not add up to poison, however long an outage lasts.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Instances remembered; beyond that an outage may cost an attempt.
const REMEMBERED_MAX: usize = 10_000;

/// Attempts of instances that do not count, until they commit something.
#[derive(Default)]
pub(crate) struct Pardons(Mutex<HashMap<String, u32>>);

impl Pardons {
    /// Takes back one attempt.
    pub(super) fn add(&self, instance: &str) {
        let mut pardons = self.all();
        if pardons.len() < REMEMBERED_MAX || pardons.contains_key(instance) {
            let pardoned = pardons.entry(instance.to_owned()).or_default();
            *pardoned = pardoned.saturating_add(1);
        }
    }

    /// The attempts that count, of those the store has counted.
    pub(super) fn counted(&self, instance: &str, attempt: u32) -> u32 {
        let pardoned = self.all().get(instance).copied().unwrap_or(0);
        attempt.saturating_sub(pardoned).max(1)
    }

    /// The messages in question are gone.
    pub(super) fn forget(&self, instance: &str) {
        let mut pardons = self.all();
        if !pardons.is_empty() {
            pardons.remove(instance);
        }
    }

    fn all(&self) -> MutexGuard<'_, HashMap<String, u32>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pardoned_attempts_do_not_count_and_memory_is_bounded() {
        let pardons = Pardons::default();
        pardons.add("a");
        pardons.add("a");
        assert_eq!(pardons.counted("a", 5), 3);
        assert_eq!((pardons.counted("a", 1), pardons.counted("b", 5)), (1, 5));
        pardons.forget("a");
        assert_eq!(pardons.counted("a", 5), 5);
        (0..=REMEMBERED_MAX).for_each(|n| pardons.add(&n.to_string()));
        assert_eq!(pardons.all().len(), REMEMBERED_MAX);
    }
}
