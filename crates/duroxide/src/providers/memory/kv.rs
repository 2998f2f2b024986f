//! Key-value data of one instance (R8.110 – R8.116).

use std::collections::{BTreeMap, HashMap};

use duroxide_core::model::{Event, EventKind, KvEntry};

/// What completed executions left behind, and what the current one changed since.
#[derive(Debug, Default)]
pub(super) struct Kv {
    /// Values of completed executions: what the next turn is handed (R8.111).
    pub(super) store: BTreeMap<String, KvEntry>,
    /// Changes of the current execution; `None` is a tombstone.
    pub(super) delta: BTreeMap<String, Option<KvEntry>>,
}

impl Kv {
    /// Applies the key-value events among `events`, in order (R8.112).
    pub(super) fn apply(&mut self, events: &[Event]) {
        for event in events {
            match &event.kind {
                EventKind::KeyValueSet { key, value, last_updated_at_ms } => {
                    let entry =
                        KvEntry { value: value.clone(), last_updated_at_ms: *last_updated_at_ms };
                    self.delta.insert(key.clone(), Some(entry));
                }
                EventKind::KeyValueCleared { key } => {
                    self.delta.insert(key.clone(), None);
                }
                EventKind::KeyValuesCleared => self.clear(),
                _ => {}
            }
        }
    }

    /// The execution ended: its changes become part of the store (R8.113).
    pub(super) fn merge(&mut self) {
        for (key, change) in std::mem::take(&mut self.delta) {
            match change {
                Some(entry) => self.store.insert(key, entry),
                None => self.store.remove(&key),
            };
        }
    }

    /// A value as seen from outside: the delta wins, a tombstone hides (R8.110).
    pub(super) fn get(&self, key: &str) -> Option<&str> {
        let entry = match self.delta.get(key) {
            Some(change) => change.as_ref(),
            None => self.store.get(key),
        };
        entry.map(|entry| entry.value.as_str())
    }

    /// All values as seen from outside.
    pub(super) fn merged(&self) -> HashMap<String, String> {
        let untouched = self.store.iter().filter(|(key, _)| !self.delta.contains_key(*key));
        let changed = self.delta.iter().filter_map(|(key, change)| Some((key, change.as_ref()?)));
        untouched.chain(changed).map(|(key, entry)| (key.clone(), entry.value.clone())).collect()
    }

    /// What a turn is handed.
    pub(super) fn snapshot(&self) -> HashMap<String, KvEntry> {
        self.store.iter().map(|(key, entry)| (key.clone(), entry.clone())).collect()
    }

    fn clear(&mut self) {
        let all: Vec<String> = self.store.keys().chain(self.delta.keys()).cloned().collect();
        self.delta.extend(all.into_iter().map(|key| (key, None)));
    }
}
