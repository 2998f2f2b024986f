//! Why work was given back here: when it is given up for good, people want to know.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::observability::labels;

/// Reasons remembered; beyond that those that come first stay.
const REMEMBERED_MAX: usize = 10_000;

/// Why an attempt came to nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Reason {
    /// One of few words, for metrics.
    pub(crate) label: &'static str,
    /// For people.
    pub(crate) text: String,
}

impl Reason {
    /// What is left if nobody said anything.
    pub(crate) fn process_ended() -> Self {
        let text = "no error is known: each time the process ended, or lost its lock, while it ran";
        Self { label: labels::CAUSE_PROCESS_ENDED, text: text.to_owned() }
    }
}

/// The latest reason of each piece of work that was given back by this process.
pub(crate) struct Reasons<K>(Mutex<HashMap<K, Reason>>);

impl<K> Default for Reasons<K> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<K: Eq + Hash> Reasons<K> {
    pub(crate) fn note(&self, key: K, label: &'static str, text: impl Into<String>) {
        let mut reasons = self.all();
        if reasons.len() < REMEMBERED_MAX || reasons.contains_key(&key) {
            reasons.insert(key, Reason { label, text: text.into() });
        }
    }

    pub(crate) fn get<Q>(&self, key: &Q) -> Option<Reason>
    where
        K: std::borrow::Borrow<Q>,
        Q: Eq + Hash + ?Sized,
    {
        self.all().get(key).cloned()
    }

    /// The work is done, or given up.
    pub(crate) fn forget<Q>(&self, key: &Q)
    where
        K: std::borrow::Borrow<Q>,
        Q: Eq + Hash + ?Sized,
    {
        let mut reasons = self.all();
        if !reasons.is_empty() {
            reasons.remove(key);
        }
    }

    fn all(&self) -> MutexGuard<'_, HashMap<K, Reason>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_latest_reason_is_kept_and_memory_is_bounded() {
        let reasons = Reasons::<String>::default();
        reasons.note("a".to_owned(), "error", "first");
        reasons.note("a".to_owned(), "error", "last");
        let last = Reason { label: "error", text: "last".to_owned() };
        assert_eq!(reasons.get("a"), Some(last));
        reasons.forget("a");
        assert_eq!(reasons.get("a"), None);
        (0..=REMEMBERED_MAX).for_each(|n| reasons.note(n.to_string(), "error", ""));
        assert_eq!(reasons.all().len(), REMEMBERED_MAX);
    }
}
