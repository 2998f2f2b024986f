//! Reading without changing: histories, instances, totals.

use duroxide_core::model::{
    Event, EventKind, INITIAL_EXECUTION_ID, OrchestrationStatus, SystemStats,
};

use super::instances::{Id, Instance};
use super::state::State;
use super::worker_queue::Phase;
use crate::providers::Refusal;
use crate::providers::{ExecutionInfo, InstanceInfo, QueueDepths, SystemMetrics};

impl State {
    /// Events of the newest execution (R8.95).
    pub(super) fn read(&self, instance: &str) -> Result<Vec<Event>, Refusal> {
        match self.instances.get(instance).and_then(Instance::newest) {
            Some((_, execution)) => execution.history.read().map(<[Event]>::to_vec),
            None => Ok(Vec::new()),
        }
    }

    /// Events of one execution, from an id on (R8.131).
    pub(super) fn read_from(
        &self,
        instance: &str,
        execution_id: u64,
        from_event_id: u64,
        limit: usize,
    ) -> Result<Vec<Event>, Refusal> {
        match self.instances.get(instance).and_then(|i| i.executions.get(&execution_id)) {
            Some(execution) => {
                execution.history.read_from(from_event_id, limit).map(<[Event]>::to_vec)
            }
            None => Ok(Vec::new()),
        }
    }

    /// The status of an instance (R8.133). A damaged history is an error unless the event that
    /// decides came after the damage.
    pub(super) fn status(&self, instance: &str) -> Result<OrchestrationStatus, Refusal> {
        let Some(instance) = self.instances.get(instance) else {
            return Ok(OrchestrationStatus::NotFound);
        };
        let Some((_, execution)) = instance.newest() else {
            return Ok(OrchestrationStatus::NotFound);
        };
        let history = &execution.history;
        let custom = instance
            .row
            .as_ref()
            .map(|row| (row.custom_status.clone(), row.custom_status_version))
            .unwrap_or_default();
        let deciding = match history.outcome() {
            Some(outcome) => Some(outcome),
            None => history.read().map(|_| history.start())?,
        };
        Ok(OrchestrationStatus::from_history(deciding.map_or(&[], std::slice::from_ref), custom))
    }

    /// Custom status and version, if newer than that (R8.100).
    pub(super) fn custom_status(
        &self,
        instance: &str,
        last_seen: u64,
    ) -> Option<(Option<String>, u64)> {
        let row = self.instances.row(instance)?;
        let version = row.custom_status_version;
        (last_seen < version).then(|| (row.custom_status.clone(), version))
    }

    /// Sizes of an instance (R6.41, R6.42, R8.116).
    pub(super) fn stats(&self, instance: &str) -> Option<SystemStats> {
        self.instances.row(instance)?;
        let instance = self.instances.get(instance)?;
        let history = &instance.current()?.1.history;
        let json_len = |event| serde_json::to_string(event).map_or(0, |json| json.len() as u64);
        let carried = history.raw().iter().find_map(|event| match &event.kind {
            EventKind::OrchestrationStarted { carry_forward_events, .. } => {
                carry_forward_events.as_ref().map(Vec::len)
            }
            _ => None,
        });
        let values = instance.kv.merged();
        Some(SystemStats {
            history_event_count: history.raw().len() as u64,
            history_size_bytes: history.raw().iter().map(json_len).sum(),
            queue_pending_count: carried.unwrap_or(0) as u64,
            kv_user_key_count: values.len() as u64,
            kv_total_value_bytes: values.values().map(|value| value.len() as u64).sum(),
        })
    }

    /// Number of the newest execution; 1 for an unknown instance (R8.97).
    pub(super) fn latest_execution_id(&self, instance: &str) -> u64 {
        let newest = self.instances.get(instance).and_then(Instance::newest);
        newest.map_or(INITIAL_EXECUTION_ID, |(number, _)| number)
    }

    /// An instance as a whole (R8.97).
    pub(super) fn instance_info(&self, id: &str) -> Result<InstanceInfo, Refusal> {
        let instance = self.instances.get(id);
        let (Some(row), Some((_, execution))) =
            (instance.and_then(|i| i.row.as_ref()), instance.and_then(Instance::current))
        else {
            return Err(Refusal::UnknownInstance(id.to_owned()));
        };
        Ok(InstanceInfo {
            instance_id: id.to_owned(),
            orchestration_name: row.name.clone(),
            orchestration_version: row.version.clone(),
            current_execution_id: row.current_execution,
            status: execution.status.clone(),
            output: execution.output.clone(),
            created_at: row.created_at,
            updated_at: row.updated_at,
            parent_instance_id: row.parent.as_deref().map(str::to_owned),
        })
    }

    /// One execution (R8.97).
    pub(super) fn execution_info(&self, id: &str, number: u64) -> Result<ExecutionInfo, Refusal> {
        let execution = self.instances.get(id).and_then(|i| i.executions.get(&number));
        let execution = execution.ok_or(Refusal::UnknownExecution(id.to_owned(), number))?;
        Ok(ExecutionInfo {
            execution_id: number,
            status: execution.status.clone(),
            output: execution.output.clone(),
            started_at: execution.started_at,
            completed_at: execution.completed_at,
            event_count: execution.history.raw().len(),
        })
    }

    /// Parent of an instance, if it has one (R8.97).
    pub(super) fn parent(&self, id: &str) -> Result<Option<Id>, Refusal> {
        let row = self.instances.row(id);
        row.map(|row| row.parent.clone()).ok_or_else(|| Refusal::UnknownInstance(id.to_owned()))
    }

    /// Totals.
    pub(super) fn metrics(&self) -> SystemMetrics {
        let mut totals = SystemMetrics::default();
        for (_, instance) in self.instances.all() {
            totals.total_executions += instance.executions.len() as u64;
            totals.total_events += instance.event_count();
            if instance.row.is_none() {
                continue;
            }
            totals.total_instances += 1;
            match instance.current().map(|(_, execution)| execution.status.as_str()) {
                Some("Running") => totals.running_instances += 1,
                Some("Completed") => totals.completed_instances += 1,
                Some("Failed") => totals.failed_instances += 1,
                _ => {}
            }
        }
        totals
    }

    /// What waits in the queues and nobody has locked.
    pub(super) fn queue_depths(&self, now: u64) -> QueueDepths {
        let unlocked = |phase| !matches!(phase, Phase::Locked(_));
        QueueDepths {
            orchestrator_queue: self.messages.mailboxes().map(|(_, m)| m.waiting_len(now)).sum(),
            worker_queue: self.work.rows.values().filter(|row| unlocked(row.phase)).count(),
            timer_queue: 0,
        }
    }
}
