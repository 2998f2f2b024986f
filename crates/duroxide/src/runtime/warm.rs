//! Instances that stay in memory between their turns, those that have waited longest first to go.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use duroxide_core::model::KvEntry;
use duroxide_core::replay::Suspended;

use super::observability::MetricsProvider;
use super::options::{WarmMode, WarmOptions};

/// What a runtime keeps.
pub(crate) struct WarmInstances {
    options: WarmOptions,
    metrics: Arc<MetricsProvider>,
    kept: Mutex<Kept>,
}

/// An instance between two turns.
pub(crate) struct Warm {
    pub(crate) suspended: Suspended,
    /// The key-value entries its execution began with.
    pub(crate) kv_snapshot: HashMap<String, KvEntry>,
}

impl Warm {
    fn bytes(&self) -> usize {
        let entry = |(key, entry): (&String, &KvEntry)| {
            size_of::<(String, KvEntry)>() + key.len() + entry.value.len()
        };
        self.suspended.bytes() + self.kv_snapshot.iter().map(entry).sum::<usize>()
    }
}

#[derive(Default)]
struct Kept {
    by_instance: HashMap<String, (u64, Warm)>,
    /// By the order in which they were kept.
    by_age: BTreeMap<u64, String>,
    next: u64,
    bytes: usize,
}

impl WarmInstances {
    pub(crate) fn new(options: WarmOptions, metrics: Arc<MetricsProvider>) -> Self {
        Self { options, metrics, kept: Mutex::default() }
    }

    /// Whether anything is kept at all.
    pub(crate) fn is_on(&self) -> bool {
        self.options.mode != WarmMode::Off
    }

    /// Whether each turn is checked against a replay.
    pub(crate) fn compares(&self) -> bool {
        self.options.mode == WarmMode::Compare
    }

    /// Takes an instance out, if what was kept is its state after this event. Whatever else was kept
    /// of it is outdated and dropped.
    pub(crate) fn take(
        &self,
        instance: &str,
        execution_id: u64,
        (last_event_id, last_event_at_ms): (u64, u64),
    ) -> Option<Warm> {
        let is_this = |Warm { suspended, .. }: &Warm| {
            suspended.execution_id() == execution_id
                && suspended.last_event_id() == last_event_id
                && suspended.last_event_at_ms() == last_event_at_ms
        };
        let found = self.locked(|kept| kept.remove(instance)).filter(is_this);
        self.metrics.record_warm_lookup(found.is_some());
        found
    }

    /// Whether an instance is here and waits for this activity and no other.
    pub(crate) fn is_waiting_for(&self, instance: &str, execution_id: u64, activity: u64) -> bool {
        self.locked(|kept| kept.is_waiting_for(instance, execution_id, activity))
    }

    /// Takes such an instance out.
    pub(crate) fn take_waiting_for(
        &self,
        instance: &str,
        execution_id: u64,
        activity: u64,
    ) -> Option<Warm> {
        let found = self.locked(|kept| {
            let waits = kept.is_waiting_for(instance, execution_id, activity);
            waits.then(|| kept.remove(instance)).flatten()
        })?;
        self.metrics.record_warm_lookup(true);
        Some(found)
    }

    /// Forgets an instance.
    pub(crate) fn forget(&self, instance: &str) {
        // Dropped outside the lock: its destructors are user code.
        drop(self.locked(|kept| kept.remove(instance)));
    }

    /// Keeps an instance until its next turn, or until there is no room.
    pub(crate) fn keep(&self, instance: &str, warm: Warm) {
        let evicted = self.locked(|kept| {
            kept.insert(instance, warm);
            kept.shrink(&self.options)
        });
        self.metrics.record_warm_evictions(evicted.len() as u64);
        self.metrics.set_warm_bytes(self.locked(|kept| kept.bytes as u64));
    }

    fn locked<T>(&self, work: impl FnOnce(&mut Kept) -> T) -> T {
        work(&mut self.kept.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Kept {
    fn is_waiting_for(&self, instance: &str, execution_id: u64, activity: u64) -> bool {
        self.by_instance.get(instance).is_some_and(|(_, Warm { suspended, .. })| {
            suspended.execution_id() == execution_id && suspended.waits_only_for_activity(activity)
        })
    }

    fn insert(&mut self, instance: &str, warm: Warm) {
        let age = self.next;
        self.next += 1;
        self.bytes += warm.bytes();
        self.by_age.insert(age, instance.to_owned());
        self.by_instance.insert(instance.to_owned(), (age, warm));
    }

    fn remove(&mut self, instance: &str) -> Option<Warm> {
        let (age, warm) = self.by_instance.remove(instance)?;
        self.by_age.remove(&age);
        self.bytes = self.bytes.saturating_sub(warm.bytes());
        Some(warm)
    }

    /// Takes out what there is no room for.
    fn shrink(&mut self, options: &WarmOptions) -> Vec<Warm> {
        let mut evicted = Vec::new();
        while (options.max_instances < self.by_age.len() || options.max_bytes < self.bytes)
            && let Some((_, instance)) = self.by_age.first_key_value()
        {
            let instance = instance.clone();
            evicted.extend(self.remove(&instance));
        }
        evicted
    }
}
