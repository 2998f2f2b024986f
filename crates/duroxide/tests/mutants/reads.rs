//! Reads that give something else.

use std::collections::HashMap;

use duroxide::providers::memory::InstanceSnapshot;
use duroxide::providers::{Provider, ProviderAdmin, ProviderError};
use duroxide::{Event, EventKind, SystemStats};

use super::list::Mutant;
use super::wrapper::MutantProvider;

/// The sizes of nothing.
const NOTHING: SystemStats = SystemStats {
    history_event_count: 0,
    history_size_bytes: 0,
    queue_pending_count: 0,
    kv_user_key_count: 0,
    kv_total_value_bytes: 0,
};

impl MutantProvider {
    pub async fn wrong_read(&self, instance: &str) -> Result<Vec<Event>, ProviderError> {
        if self.is(Mutant::ReadsFirstExecution) {
            return self.inner.read_with_execution(instance, 1).await;
        }
        let latest = self.inner.latest_execution_id(instance).await?;
        if self.notes().pruned.get(instance) == Some(&latest) {
            return Ok(Vec::new());
        }
        let read = self.inner.read(instance).await;
        if self.is(Mutant::ReadsDamageAsEmpty) { Ok(read.unwrap_or_default()) } else { read }
    }

    pub async fn wrong_read_of(
        &self,
        instance: &str,
        execution_id: u64,
    ) -> Result<Vec<Event>, ProviderError> {
        if self.is(Mutant::ReadsLatestExecution) {
            return self.inner.read(instance).await;
        }
        if self.notes().pruned.get(instance) == Some(&execution_id) {
            return Ok(Vec::new());
        }
        let read = self.inner.read_with_execution(instance, execution_id).await;
        match self.mutant {
            Some(Mutant::ReadsDamagedExecutionAsEmpty) => Ok(read.unwrap_or_default()),
            _ => read,
        }
    }

    pub async fn wrong_append(
        &self,
        instance: &str,
        execution_id: u64,
        mut events: Vec<Event>,
    ) -> Result<(), ProviderError> {
        match self.mutant {
            Some(Mutant::SwallowsAppend) => return Ok(()),
            Some(Mutant::SkipsDuplicateAppend) => {
                let stored = self.inner.read_with_execution(instance, execution_id).await?;
                events.retain(|new| stored.iter().all(|old| old.event_id != new.event_id));
            }
            _ => {}
        }
        self.inner.append_with_execution(instance, execution_id, events).await
    }

    pub async fn wrong_custom_status(
        &self,
        instance: &str,
        last_seen_version: u64,
    ) -> Result<Option<(Option<String>, u64)>, ProviderError> {
        let last_seen = if self.is(Mutant::RepeatsStatus) { 0 } else { last_seen_version };
        let status = self.inner.get_custom_status(instance, last_seen).await?;
        Ok(match self.mutant {
            Some(Mutant::LeavesCustomStatus) => {
                status.or_else(|| self.notes().left_status.get(instance).cloned())
            }
            Some(Mutant::TakesFirstStatus) => status.map(|(_, version)| {
                (self.notes().first_status.get(instance).cloned().flatten(), version)
            }),
            Some(Mutant::ForgetsStatusOfOldExecution) => {
                let history = self.inner.read(instance).await?;
                let updates = |e: &Event| matches!(e.kind, EventKind::CustomStatusUpdated { .. });
                status.filter(|_| history.iter().any(updates))
            }
            Some(Mutant::FreezesStatusVersion) => status.map(|(status, _)| (status, 1)),
            Some(Mutant::HidesStatusReset) => status.filter(|(status, _)| status.is_some()),
            _ => status,
        })
    }

    pub async fn wrong_values(
        &self,
        instance: &str,
    ) -> Result<HashMap<String, String>, ProviderError> {
        let mut values = self.inner.get_kv_all_values(instance).await?;
        let snapshot = self.inner.snapshot();
        match self.mutant {
            Some(Mutant::LosesEmptyValues) => values.retain(|_, value| !value.is_empty()),
            Some(Mutant::CutsLongValues) => values.values_mut().for_each(|v| v.truncate(1000)),
            Some(Mutant::ReadsMergedValuesOnly) => {
                values = snapshot.instances.get(instance).map(merged).unwrap_or_default();
            }
            Some(Mutant::PruneLosesValues) if self.notes().valueless.contains(instance) => {
                values.clear();
            }
            Some(Mutant::KeepsClearedValues | Mutant::DeletionLeavesValues)
                if self.is(Mutant::KeepsClearedValues)
                    || !snapshot.instances.contains_key(instance) =>
            {
                for ((owner, key), value) in &self.notes().values {
                    if owner == instance {
                        values.entry(key.clone()).or_insert_with(|| value.clone());
                    }
                }
            }
            Some(Mutant::MixesInstances) => {
                for other in snapshot.instances.keys() {
                    values.extend(self.inner.get_kv_all_values(other).await?);
                }
            }
            _ => {}
        }
        Ok(values)
    }

    pub async fn wrong_stats(&self, instance: &str) -> Result<Option<SystemStats>, ProviderError> {
        let mut stats = self.inner.get_instance_stats(instance).await?;
        match (self.mutant, &mut stats) {
            (Some(Mutant::MeasuresUnknown), None) => stats = Some(NOTHING),
            (Some(Mutant::MeasuresNoCarriedMessages), Some(stats)) => stats.queue_pending_count = 0,
            (Some(Mutant::MeasuresNoBytes), Some(stats)) => stats.history_size_bytes = 0,
            (Some(Mutant::MeasuresNoValueBytes), Some(stats)) => stats.kv_total_value_bytes = 0,
            (Some(Mutant::MeasuresAllExecutions), Some(stats)) => {
                let snapshot = self.inner.snapshot();
                let executions = snapshot.instances[instance].executions.values();
                stats.history_event_count = executions.map(|e| e.history.len() as u64).sum();
            }
            (Some(Mutant::MeasuresMergedValuesOnly), Some(stats)) => {
                let snapshot = self.inner.snapshot();
                let values = snapshot.instances.get(instance).map(merged).unwrap_or_default();
                stats.kv_user_key_count = values.len() as u64;
                stats.kv_total_value_bytes = values.values().map(|v| v.len() as u64).sum();
            }
            _ => {}
        }
        Ok(stats)
    }
}

/// The values of ended executions.
fn merged(instance: &InstanceSnapshot) -> HashMap<String, String> {
    let entries = instance.kv_store.iter();
    entries.map(|(key, entry)| (key.clone(), entry.value.clone())).collect()
}
