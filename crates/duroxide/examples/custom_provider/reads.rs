//! Reading: histories as they were written, and sizes.

use duroxide::providers::ProviderError;
use duroxide::{Event, EventKind, INITIAL_EXECUTION_ID, SystemStats};

use super::store::{Execution, Tables, decode};

impl Tables {
    /// The current execution, which is the highest (R8.47); 1 before there is any.
    pub(crate) fn latest_execution(&self, instance: &str) -> u64 {
        let numbers = self.executions.get(instance);
        numbers.and_then(|all| all.keys().next_back().copied()).unwrap_or(INITIAL_EXECUTION_ID)
    }

    /// One execution.
    pub(crate) fn execution(&self, instance: &str, execution_id: u64) -> Option<&Execution> {
        self.executions.get(instance)?.get(&execution_id)
    }

    /// All its events, in order; none for an unknown one. One that cannot be read spoils the rest:
    /// a history with a gap replays into nonsense (R8.95).
    pub(crate) fn history(&self, instance: &str, number: u64) -> Result<Vec<Event>, ProviderError> {
        self.history_from(instance, number, 0, None)
    }

    /// Its events from an id on (R8.131).
    pub(crate) fn history_from(
        &self,
        instance: &str,
        number: u64,
        from: u64,
        limit: Option<usize>,
    ) -> Result<Vec<Event>, ProviderError> {
        let Some(execution) = self.execution(instance, number) else { return Ok(Vec::new()) };
        let rows = execution.events.range(from..).take(limit.unwrap_or(usize::MAX));
        rows.map(|(_, text)| decode("read", text)).collect()
    }

    /// Sizes of the current execution and of the values as seen from outside (R6.41, R6.42, R8.116).
    pub(crate) fn stats(&self, instance: &str) -> Result<Option<SystemStats>, ProviderError> {
        if !self.instances.contains_key(instance) {
            return Ok(None);
        }
        let number = self.latest_execution(instance);
        let history = self.history(instance, number)?;
        let carried = history.iter().find_map(|event| match &event.kind {
            EventKind::OrchestrationStarted { carry_forward_events, .. } => {
                carry_forward_events.as_ref().map(Vec::len)
            }
            _ => None,
        });
        let texts = self.execution(instance, number).map(|row| row.events.values());
        let values = self.all_values(instance);
        Ok(Some(SystemStats {
            history_event_count: history.len() as u64,
            history_size_bytes: texts.into_iter().flatten().map(|text| text.len() as u64).sum(),
            queue_pending_count: carried.unwrap_or(0) as u64,
            kv_user_key_count: values.len() as u64,
            kv_total_value_bytes: values.values().map(|value| value.len() as u64).sum(),
        }))
    }
}
