//! What this process remembers about running executions, so that activities and metrics need not
//! read it again. A miss costs a read.
//!
//! An execution is forgotten when this process sees it end: its instance may be deleted and its id
//! be used again.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, PoisonError};

use crate::providers::{Provider, ProviderError};
use crate::{Event, EventKind};

/// Executions remembered; the oldest go first.
const REMEMBERED_MAX: usize = 10_000;

/// Name, version and age of one execution.
#[derive(Debug, Clone)]
pub(crate) struct ExecutionFact {
    pub(crate) name: String,
    pub(crate) version: String,
    pub(crate) started_at_ms: u64,
    /// Turns committed, as far as this process saw them.
    pub(crate) turns: u64,
    /// Events committed.
    pub(crate) events: u64,
}

impl ExecutionFact {
    /// What an execution's start event says.
    pub(crate) fn from_start(event: &Event) -> Option<Self> {
        let EventKind::OrchestrationStarted { name, version, .. } = &event.kind else {
            return None;
        };
        Some(Self {
            name: name.clone(),
            version: version.clone(),
            started_at_ms: event.timestamp_ms,
            turns: 0,
            events: 0,
        })
    }

    /// What a whole history says. All events of a turn share its time, so the number of different
    /// times is the number of turns that recorded something, but for turns of one millisecond.
    pub(crate) fn from_history(history: &[Event]) -> Option<Self> {
        let changes = history.windows(2).filter(|two| two[0].timestamp_ms != two[1].timestamp_ms);
        let turns = changes.count() as u64 + 1;
        Some(Self { turns, events: history.len() as u64, ..Self::from_start(history.first()?)? })
    }
}

type Key = (String, u64);

#[derive(Default)]
pub(crate) struct ExecutionFacts {
    remembered: Mutex<Remembered>,
}

#[derive(Default)]
struct Remembered {
    /// With the number under which each was first remembered.
    facts: HashMap<Key, (u64, ExecutionFact)>,
    by_age: BTreeMap<u64, Key>,
    next_number: u64,
}

impl ExecutionFacts {
    pub(crate) fn get(&self, instance: &str, execution_id: u64) -> Option<ExecutionFact> {
        self.locked(|remembered| {
            let remembered = remembered.facts.get(&(instance.to_owned(), execution_id));
            remembered.map(|(_, fact)| fact.clone())
        })
    }

    pub(crate) fn put(&self, instance: &str, execution_id: u64, fact: ExecutionFact) {
        let key = (instance.to_owned(), execution_id);
        self.locked(|remembered| remembered.put(key, fact));
    }

    pub(crate) fn forget(&self, instance: &str, execution_id: u64) {
        let key = (instance.to_owned(), execution_id);
        self.locked(|remembered| {
            if let Some((number, _)) = remembered.facts.remove(&key) {
                remembered.by_age.remove(&number);
            }
        });
    }

    /// Name and version of the execution that scheduled an activity (L28): remembered, else read
    /// from its start event.
    pub(crate) async fn of_activity(
        &self,
        store: &dyn Provider,
        instance: &str,
        execution_id: u64,
    ) -> Result<Option<ExecutionFact>, ProviderError> {
        if let Some(fact) = self.get(instance, execution_id) {
            return Ok(Some(fact));
        }
        let first = store.read_history_from(instance, execution_id, 1, Some(1)).await?;
        let fact = first.first().and_then(ExecutionFact::from_start);
        if let Some(fact) = &fact {
            self.put(instance, execution_id, fact.clone());
        }
        Ok(fact)
    }

    fn locked<T>(&self, f: impl FnOnce(&mut Remembered) -> T) -> T {
        f(&mut self.remembered.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Remembered {
    fn put(&mut self, key: Key, fact: ExecutionFact) {
        if let Some((_, known)) = self.facts.get_mut(&key) {
            *known = fact;
            return;
        }
        self.by_age.insert(self.next_number, key.clone());
        self.facts.insert(key, (self.next_number, fact));
        self.next_number += 1;
        while self.by_age.len() > REMEMBERED_MAX
            && let Some((_, oldest)) = self.by_age.pop_first()
        {
            self.facts.remove(&oldest);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fact(name: &str) -> ExecutionFact {
        let (name, version) = (name.to_owned(), "1.0.0".to_owned());
        ExecutionFact { name, version, started_at_ms: 0, turns: 1, events: 1 }
    }

    #[test]
    fn the_oldest_are_forgotten_and_nothing_leaks() {
        let facts = ExecutionFacts::default();
        for n in 0..=REMEMBERED_MAX {
            facts.put(&n.to_string(), 1, fact("a"));
            facts.put(&n.to_string(), 1, fact("b"));
        }
        assert!(facts.get("0", 1).is_none());
        assert_eq!(facts.get("1", 1).map(|fact| fact.name).as_deref(), Some("b"));
        facts.forget("1", 1);
        assert!(facts.get("1", 1).is_none());
        facts.put("1", 1, fact("c"));
        assert_eq!(facts.get("1", 1).map(|fact| fact.name).as_deref(), Some("c"));
        facts.locked(|remembered| {
            assert_eq!(
                (remembered.facts.len(), remembered.by_age.len()),
                (REMEMBERED_MAX, REMEMBERED_MAX)
            );
        });
    }
}
