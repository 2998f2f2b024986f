//! What code says about itself: the custom status, and key-value data in two layers.

use std::collections::HashMap;

use duroxide::providers::KvEntry;
use duroxide::{Event, EventKind};

use super::store::Tables;

/// The key-value data of one instance (R8.110).
#[derive(Default)]
pub(crate) struct Values {
    /// What ended executions left.
    store: HashMap<String, KvEntry>,
    /// What the current execution did since: set, or cleared (none).
    delta: HashMap<String, Option<KvEntry>>,
}

impl Tables {
    /// The last change of a commit counts, and counts once (R8.50).
    pub(crate) fn apply_custom_status(&mut self, instance: &str, events: &[Event]) {
        let last = events.iter().rev().find_map(|event| match &event.kind {
            EventKind::CustomStatusUpdated { status } => Some(status.clone()),
            _ => None,
        });
        if let (Some(status), Some(row)) = (last, self.instances.get_mut(instance)) {
            row.custom_status = status;
            row.custom_status_version += 1;
        }
    }

    /// The custom status, if it is news (R8.100).
    pub(crate) fn custom_status(&self, instance: &str, seen: u64) -> Option<(Option<String>, u64)> {
        let row = self.instances.get(instance)?;
        let news = row.custom_status_version > seen;
        news.then(|| (row.custom_status.clone(), row.custom_status_version))
    }

    /// Changes go to the delta, in order (R8.112).
    pub(crate) fn apply_values(&mut self, instance: &str, events: &[Event]) {
        let Values { store, delta } = self.values.entry(instance.to_owned()).or_default();
        for event in events {
            match &event.kind {
                EventKind::KeyValueSet { key, value, last_updated_at_ms: at } => {
                    let entry = KvEntry { value: value.clone(), last_updated_at_ms: *at };
                    delta.insert(key.clone(), Some(entry));
                }
                EventKind::KeyValueCleared { key } => {
                    delta.insert(key.clone(), None);
                }
                EventKind::KeyValuesCleared => {
                    delta.values_mut().for_each(|entry| *entry = None);
                    delta.extend(store.keys().map(|key| (key.clone(), None)));
                }
                _ => {}
            }
        }
    }

    /// The execution has ended: what it did becomes part of the store (R8.113).
    pub(crate) fn merge_values(&mut self, instance: &str) {
        let Some(Values { store, delta }) = self.values.get_mut(instance) else { return };
        for (key, entry) in delta.drain() {
            match entry {
                Some(entry) => store.insert(key, entry),
                None => store.remove(&key),
            };
        }
    }

    /// What a replay starts from: the store alone (R8.111).
    pub(crate) fn kv_snapshot(&self, instance: &str) -> HashMap<String, KvEntry> {
        self.values.get(instance).map(|values| values.store.clone()).unwrap_or_default()
    }

    /// What is seen from outside: the delta over the store (R8.110).
    pub(crate) fn all_values(&self, instance: &str) -> HashMap<String, String> {
        let Some(Values { store, delta }) = self.values.get(instance) else {
            return HashMap::new();
        };
        let untouched = store.iter().filter(|(key, _)| !delta.contains_key(*key));
        let changed = delta.iter().filter_map(|(key, entry)| Some((key, entry.as_ref()?)));
        untouched.chain(changed).map(|(key, entry)| (key.clone(), entry.value.clone())).collect()
    }
}
