//! What this process remembers about running executions, so that activities and metrics need not
//! read it again. A miss costs a read, never correctness.

use std::collections::{HashMap, VecDeque};
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
    facts: HashMap<Key, ExecutionFact>,
    by_age: VecDeque<Key>,
}

impl ExecutionFacts {
    pub(crate) fn get(&self, instance: &str, execution_id: u64) -> Option<ExecutionFact> {
        self.locked(|remembered| {
            remembered.facts.get(&(instance.to_owned(), execution_id)).cloned()
        })
    }

    pub(crate) fn put(&self, instance: &str, execution_id: u64, fact: ExecutionFact) {
        let key = (instance.to_owned(), execution_id);
        self.locked(|remembered| {
            if remembered.facts.insert(key.clone(), fact).is_none() {
                remembered.by_age.push_back(key);
            }
            while remembered.by_age.len() > REMEMBERED_MAX {
                if let Some(oldest) = remembered.by_age.pop_front() {
                    remembered.facts.remove(&oldest);
                }
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
        facts.locked(|remembered| {
            assert_eq!(
                (remembered.facts.len(), remembered.by_age.len()),
                (REMEMBERED_MAX, REMEMBERED_MAX)
            );
        });
    }
}
