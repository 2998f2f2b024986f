//! The key-value store as one execution sees it: the snapshot of completed executions, changed by
//! what the code does (R4.80 – R4.91).

use std::collections::{BTreeMap, HashMap, VecDeque};

use crate::model::KvEntry;

pub(crate) struct Kv {
    entries: BTreeMap<String, KvEntry>,
    /// Stamps that history recorded for each key, oldest first: replay takes them again, so that a
    /// value's age does not depend on when the code happens to be re-run (L9).
    recorded_stamps: HashMap<String, VecDeque<u64>>,
}

impl Kv {
    pub(super) fn new(snapshot: HashMap<String, KvEntry>) -> Self {
        Self { entries: snapshot.into_iter().collect(), recorded_stamps: HashMap::new() }
    }

    /// Remembers a stamp found in history.
    pub(crate) fn remember_stamp(&mut self, key: &str, stamp_ms: u64) {
        self.recorded_stamps.entry(key.to_owned()).or_default().push_back(stamp_ms);
    }

    /// Forgets the oldest stamp of a key: the code no longer makes that write.
    pub(crate) fn forget_stamp(&mut self, key: &str) {
        self.recorded_stamps.get_mut(key).and_then(VecDeque::pop_front);
    }

    /// Sets a key; its stamp.
    pub(super) fn set(&mut self, key: &str, value: &str, now_ms: u64) -> u64 {
        let recorded = self.recorded_stamps.get_mut(key).and_then(VecDeque::pop_front);
        let last_updated_at_ms = recorded.unwrap_or(now_ms);
        let entry = KvEntry { value: value.to_owned(), last_updated_at_ms };
        self.entries.insert(key.to_owned(), entry);
        last_updated_at_ms
    }

    pub(super) fn clear(&mut self, key: &str) {
        self.entries.remove(key);
    }

    pub(super) fn clear_all(&mut self) {
        self.entries.clear();
    }

    pub(super) fn get(&self, key: &str) -> Option<&KvEntry> {
        self.entries.get(key)
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// All entries in key order.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&String, &KvEntry)> {
        self.entries.iter()
    }
}
