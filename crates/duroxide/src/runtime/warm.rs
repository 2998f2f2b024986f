//! Instances that stay in memory between their turns, as far as there is room.
//!
//! Who waits for a timer or an event may wait for long: of those, the one that has waited longest goes
//! first. Who waits for an activity is called in the order of the queue, so of those the youngest will be
//! called last, and goes first; otherwise none would be left where many begin before the first is
//! answered. Nobody keeps a place that way for longer than a while.

mod timers;

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use duroxide_core::model::KvEntry;
use duroxide_core::replay::Suspended;

use tokio::sync::Notify;
use tokio::time::Instant;

use super::observability::MetricsProvider;
use super::options::{WarmMode, WarmOptions};

pub(crate) use self::timers::OwnTimers;

/// What a runtime keeps.
pub(crate) struct WarmInstances {
    options: WarmOptions,
    metrics: Arc<MetricsProvider>,
    kept: Mutex<Kept>,
    /// An instance came whose timer is due before all others.
    sooner: Notify,
}

/// An instance between two turns.
pub(crate) struct Warm {
    pub(crate) suspended: Suspended,
    /// The key-value entries its execution began with.
    pub(crate) kv_snapshot: HashMap<String, KvEntry>,
    /// Which of those that had its name it is.
    pub(crate) incarnation: u64,
    /// Its timers that are ours to fire.
    pub(crate) timers: OwnTimers,
}

impl Warm {
    fn bytes(&self) -> usize {
        let entry = |(key, entry): (&String, &KvEntry)| {
            size_of::<(String, KvEntry)>() + key.len() + entry.value.len()
        };
        let values = self.kv_snapshot.iter().map(entry).sum::<usize>();
        self.suspended.bytes() + values + self.timers.bytes()
    }
}

/// How long an instance has a better right to its place because it waits for work.
const PREFERRED: Duration = Duration::from_secs(60);

#[derive(Default)]
struct Kept {
    by_instance: HashMap<String, (u64, Warm)>,
    /// By the order in which they were kept: those that wait for work, since when, and the others.
    at_work: BTreeMap<u64, (Instant, String)>,
    others: BTreeMap<u64, String>,
    /// Those that have timers of ours, by the first of these.
    due: BTreeMap<(u64, u64), String>,
    next: u64,
    bytes: usize,
}

impl WarmInstances {
    pub(crate) fn new(options: WarmOptions, metrics: Arc<MetricsProvider>) -> Self {
        Self { options, metrics, kept: Mutex::default(), sooner: Notify::new() }
    }

    /// Whether anything is kept at all.
    pub(crate) fn is_on(&self) -> bool {
        self.options.mode != WarmMode::Off
    }

    /// Whether each turn is checked against a replay.
    pub(crate) fn compares(&self) -> bool {
        self.options.mode == WarmMode::Compare
    }

    /// Whether one more can be kept without another having to go.
    pub(crate) fn has_room(&self, bytes: usize) -> bool {
        let WarmOptions { max_instances, max_bytes, .. } = self.options;
        self.locked(|kept| {
            kept.by_instance.len() < max_instances && kept.bytes.saturating_add(bytes) < max_bytes
        })
    }

    /// When the first timer is due that is ours to fire.
    pub(crate) fn first_due_at(&self) -> Option<u64> {
        self.locked(|kept| kept.due.first_key_value().map(|((at, _), _)| *at))
    }

    /// Waits until that may have become sooner.
    pub(crate) async fn sooner(&self) {
        self.sooner.notified().await;
    }

    /// Takes out the instance whose timer is due first, if one is and is not too late to be fired.
    pub(crate) fn take_due(&self, now_ms: u64) -> Option<(String, Warm)> {
        let found = self.locked(|kept| kept.take_due(now_ms))?;
        self.metrics.record_warm_lookup(true);
        Some(found)
    }

    /// Takes an instance out, if what was kept is its state after this event. Whatever else was kept
    /// of it is outdated and dropped.
    pub(crate) fn take(
        &self,
        instance: &str,
        (incarnation, execution_id): (u64, u64),
        (last_event_id, last_event_at_ms): (u64, u64),
    ) -> Option<Warm> {
        let is_this = |Warm { suspended, incarnation: kept, .. }: &Warm| {
            *kept == incarnation
                && suspended.execution_id() == execution_id
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
        // Dropped outside the lock, as above.
        let (_outdated, evicted, is_sooner) = self.locked(|kept| {
            let outdated = kept.remove(instance);
            let is_sooner = kept.insert(instance, warm);
            (outdated, kept.shrink(&self.options), is_sooner)
        });
        if is_sooner {
            self.sooner.notify_one();
        }
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

    /// Whether its timer is due before all others.
    fn insert(&mut self, instance: &str, warm: Warm) -> bool {
        let age = self.next;
        let due_at = warm.timers.first_due_at();
        self.next += 1;
        self.bytes += warm.bytes();
        if warm.suspended.waits_for_work() {
            self.at_work.insert(age, (Instant::now(), instance.to_owned()));
        } else {
            self.others.insert(age, instance.to_owned());
        }
        self.by_instance.insert(instance.to_owned(), (age, warm));
        let Some(due_at) = due_at else { return false };
        self.due.insert((due_at, age), instance.to_owned());
        self.due.first_key_value().is_some_and(|(first, _)| *first == (due_at, age))
    }

    fn take_due(&mut self, now_ms: u64) -> Option<(String, Warm)> {
        while let Some(first) = self.due.first_entry() {
            if now_ms < first.key().0 {
                return None;
            }
            let ((_, age), instance) = first.remove_entry();
            let Some((_, warm)) = self.by_instance.get_mut(&instance) else { continue };
            let bytes = warm.timers.bytes();
            warm.timers.forget_late(now_ms);
            self.bytes = self.bytes.saturating_sub(bytes - warm.timers.bytes());
            match warm.timers.first_due_at() {
                Some(at) if at <= now_ms => {
                    return self.remove(&instance).map(|warm| (instance, warm));
                }
                Some(at) => drop(self.due.insert((at, age), instance)),
                None => {}
            }
        }
        None
    }

    fn remove(&mut self, instance: &str) -> Option<Warm> {
        let (age, warm) = self.by_instance.remove(instance)?;
        self.at_work.remove(&age);
        self.others.remove(&age);
        if let Some(due_at) = warm.timers.first_due_at() {
            self.due.remove(&(due_at, age));
        }
        self.bytes = self.bytes.saturating_sub(warm.bytes());
        Some(warm)
    }

    /// Takes out what there is no room for.
    fn shrink(&mut self, options: &WarmOptions) -> Vec<Warm> {
        let mut evicted = Vec::new();
        while (options.max_instances < self.by_instance.len() || options.max_bytes < self.bytes)
            && let Some(instance) = self.first_to_go()
        {
            evicted.extend(self.remove(&instance));
        }
        evicted
    }

    fn first_to_go(&self) -> Option<String> {
        let oldest_at_work = self.at_work.first_key_value().map(|(_, kept)| kept);
        let tired = oldest_at_work.filter(|(since, _)| PREFERRED < since.elapsed());
        let other = self.others.first_key_value().map(|(_, instance)| instance);
        let youngest = self.at_work.last_key_value().map(|(_, (_, instance))| instance);
        tired.map(|(_, instance)| instance).or(other).or(youngest).cloned()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use duroxide_core::model::WorkItem;
    use duroxide_core::replay::{HistoryManager, Turn, WorkItemReader, run_turn_and_keep};

    use super::*;
    use crate::OrchestrationContext;
    use crate::runtime::registry::OrchestrationRegistry;

    /// An instance that waits: for work if `input` is "work", else for an event.
    fn waiting(instance: &str, input: &str) -> Warm {
        let code = |ctx: OrchestrationContext, input: String| async move {
            match input.as_str() {
                "work" => ctx.schedule_activity("A", "").await,
                _ => Ok(ctx.schedule_wait("E").await),
            }
        };
        let registry = OrchestrationRegistry::builder().register("Waits", code).build();
        let (version, handler) = registry.resolve_handler("Waits").unwrap();
        let start = WorkItem::StartOrchestration {
            instance: instance.to_owned(),
            orchestration: "Waits".to_owned(),
            input: input.to_owned(),
            version: None,
            parent_instance: None,
            parent_id: None,
            parent_execution_id: None,
            execution_id: 1,
        };
        let no_history = HistoryManager::from_owned(Vec::new());
        let (_, suspended) = run_turn_and_keep(Turn {
            instance: instance.to_owned(),
            execution_id: 1,
            history: Vec::new(),
            parent_execution_fallback: 1,
            messages: WorkItemReader::from_owned(vec![start], &no_history, instance),
            handler,
            version: version.to_string(),
            kv_snapshot: HashMap::new(),
            now_ms: 1,
            system_calls: None,
            foreign_wait: Default::default(),
        });
        Warm {
            suspended: suspended.unwrap(),
            kv_snapshot: HashMap::new(),
            incarnation: 7,
            timers: OwnTimers::default(),
        }
    }

    fn store(max_instances: usize, max_bytes: usize) -> WarmInstances {
        let options = WarmOptions { mode: WarmMode::On, max_instances, max_bytes };
        WarmInstances::new(options, Arc::default())
    }

    /// Keeps these, each what its second letter says; who is left.
    fn kept(store: &WarmInstances, instances: &[&str]) -> Vec<String> {
        for instance in instances {
            let input = if instance.ends_with('w') { "work" } else { "event" };
            store.keep(instance, waiting(instance, input));
        }
        let mut left = store.locked(|kept| kept.by_instance.keys().cloned().collect::<Vec<_>>());
        left.sort();
        left
    }

    #[tokio::test(start_paused = true)]
    async fn who_has_waited_longest_for_an_event_goes_first() {
        assert_eq!(kept(&store(2, usize::MAX), &["1e", "2e", "3e"]), ["2e", "3e"]);
        assert_eq!(kept(&store(2, usize::MAX), &["1w", "2e", "3w"]), ["1w", "3w"]);
        assert_eq!(kept(&store(0, usize::MAX), &["1w", "2e"]), [""; 0]);
    }

    /// The name was deleted and used again within a millisecond, and the new one has come as far.
    #[tokio::test(start_paused = true)]
    async fn r1_65_another_life_is_not_taken_for_the_one_that_was_kept() {
        let store = store(2, usize::MAX);
        for (incarnation, is_this) in [(8, false), (7, true), (7, false)] {
            if incarnation == 8 || is_this {
                store.keep("1e", waiting("1e", "event"));
            }
            let found = store.take("1e", (incarnation, 1), (2, 1));
            assert_eq!(found.is_some(), is_this, "{incarnation}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn of_those_that_wait_for_work_the_youngest_goes_first_for_a_while() {
        let store = store(2, usize::MAX);
        assert_eq!(kept(&store, &["1w", "2w", "3w", "4w"]), ["1w", "2w"]);
        store.forget("1w");
        assert_eq!(kept(&store, &["5w", "6e"]), ["2w", "5w"]);
        tokio::time::advance(PREFERRED * 2).await;
        assert_eq!(kept(&store, &["7w"]), ["5w", "7w"]);
        assert_eq!(kept(&store, &["8e"]), ["7w", "8e"]);
    }

    #[tokio::test(start_paused = true)]
    async fn r1_67_who_has_a_timer_that_is_due_is_taken_out_unless_it_is_late() {
        let store = store(3, usize::MAX);
        let keep = |name: &str, fire_at_ms: &[u64]| {
            let timer = |fire_at_ms: &u64| WorkItem::TimerFired {
                instance: name.to_owned(),
                execution_id: 1,
                id: *fire_at_ms,
                fire_at_ms: *fire_at_ms,
            };
            let set: Vec<WorkItem> = fire_at_ms.iter().map(timer).collect();
            store.keep(name, Warm { timers: OwnTimers::set_by(&set), ..waiting(name, "event") });
        };
        let taken = |now_ms| store.take_due(now_ms).map(|(instance, _)| instance);
        keep("a", &[300]);
        keep("b", &[200, 900]);
        keep("c", &[100]);
        assert_eq!((store.first_due_at(), store.has_room(0)), (Some(100), false));
        assert_eq!((taken(99), taken(100), taken(100)), (None, Some("c".into()), None));
        // The first of b is late; it stays for the second.
        assert_eq!((taken(310), taken(310)), (Some("a".into()), None));
        assert_eq!((store.first_due_at(), store.has_room(0)), (Some(900), true));
        assert_eq!(taken(900), Some("b".into()));
        assert_eq!((store.first_due_at(), store.locked(|kept| kept.bytes)), (None, 0));
        // Whoever goes takes its timers along.
        ["d", "e", "f", "g"].iter().for_each(|name| keep(name, &[1_000]));
        store.forget("e");
        assert_eq!((taken(1_000), taken(1_000)), (Some("f".into()), Some("g".into())));
        assert_eq!((taken(1_000), store.locked(|kept| kept.due.len())), (None, 0));
    }

    #[tokio::test(start_paused = true)]
    async fn bytes_are_bounded_as_well() {
        let one = waiting("1e", "event").bytes();
        let store = store(usize::MAX, 2 * one + one / 2);
        assert_eq!(kept(&store, &["1e", "2e", "3e"]), ["2e", "3e"]);
        assert_eq!(kept(&store, &["3e", "3e"]), ["2e", "3e"], "the same once more is no more");
        ["2e", "3e"].iter().for_each(|instance| store.forget(instance));
        assert_eq!(store.locked(|kept| kept.bytes), 0);
    }
}
