//! The commit of a turn: first everything that can fail, then everything that cannot.

use std::collections::BTreeMap;

use duroxide::Event;
use duroxide::providers::{ProviderError, TurnCommit, WorkItem};

use super::store::{Execution, Instance, Tables, encode};
use super::turns::Message;
use super::work::Job;

const ACK: &str = "ack_orchestration_item";
const ENDED: [&str; 3] = ["Completed", "Failed", "ContinuedAsNew"];

/// The rows a turn adds.
struct TurnRows {
    events: BTreeMap<u64, String>,
    jobs: Vec<Job>,
    messages: Vec<Message>,
}

impl Tables {
    /// Makes one turn true, or changes nothing (R8.40 – R8.57). The numbers are the steps of the
    /// contract.
    pub(crate) fn commit(
        &mut self,
        token: &str,
        commit: &TurnCommit,
        now: u64,
    ) -> Result<(), ProviderError> {
        let instance = self.locked_instance(token, now)?; // 1
        // One turn, or two that follow one another (R8.140).
        let turns = commit.turns().map_err(|refusal| refusal.during(ACK))?;
        let rows = turns.iter().map(|turn| self.rows_of(&instance, turn, now));
        let rows: Vec<TurnRows> = rows.collect::<Result<_, _>>()?;

        // Nothing fails from here on. A database rolls back instead.
        self.messages.retain(|row| row.batch.as_deref() != Some(token)); // 2
        for (turn, rows) in turns.into_iter().zip(rows) {
            self.save_turn(&instance, turn, rows, now);
        }
        self.moved_to.remove(&instance); // what was tried is gone (R8.146)
        self.turn_locks.remove(&instance); // 10
        Ok(())
    }

    /// What a turn adds, if that can be stored.
    fn rows_of(
        &self,
        instance: &str,
        turn: &TurnCommit,
        now: u64,
    ) -> Result<TurnRows, ProviderError> {
        Ok(TurnRows {
            events: self.event_rows(ACK, instance, turn.execution_id, &turn.history_delta)?,
            jobs: job_rows(&turn.worker_items, now)?,
            messages: message_rows(&turn.orchestrator_items, now)?,
        })
    }

    fn save_turn(&mut self, instance: &str, turn: &TurnCommit, mut rows: TurnRows, now: u64) {
        self.save_instance(instance, turn, now); // 3
        self.save_execution(instance, turn, now).events.extend(rows.events); // 4, 5, 6
        self.apply_custom_status(instance, &turn.history_delta); // 7
        self.apply_values(instance, &turn.history_delta);
        if turn.metadata.status.as_deref().is_some_and(|status| ENDED.contains(&status)) {
            self.merge_values(instance);
        }
        self.jobs.append(&mut rows.jobs); // 8
        self.jobs.retain(|job| !turn.cancelled_activities.iter().any(|which| job.is(which)));
        rows.messages.into_iter().for_each(|row| self.post(row)); // 9
    }

    /// Appends outside a turn (R8.96).
    pub(crate) fn append(
        &mut self,
        instance: &str,
        execution_id: u64,
        events: &[Event],
        now: u64,
    ) -> Result<(), ProviderError> {
        let rows = self.event_rows("append_with_execution", instance, execution_id, events)?;
        self.execution_row(instance, execution_id, now).events.extend(rows);
        Ok(())
    }

    /// The rows of new events, none of whose ids may be 0 or taken (R8.60 – R8.62). What is stored
    /// already is not read: it may be unreadable (R8.48).
    fn event_rows(
        &self,
        operation: &str,
        instance: &str,
        execution_id: u64,
        events: &[Event],
    ) -> Result<BTreeMap<u64, String>, ProviderError> {
        let stored = self.execution(instance, execution_id).map(|row| &row.events);
        let mut rows = BTreeMap::new();
        for event in events {
            let (id, row) = (event.event_id, encode(operation, event)?);
            let is_stored = stored.is_some_and(|events| events.contains_key(&id));
            if id == 0 || is_stored || rows.insert(id, row).is_some() {
                let message = format!("event id {id} of {instance} is not to be had");
                return Err(ProviderError::permanent(operation, message));
            }
        }
        Ok(rows)
    }

    /// Creates or updates the instance, if the commit names it (R8.43, R8.44).
    fn save_instance(&mut self, id: &str, commit: &TurnCommit, now: u64) {
        let number = self.fresh_number();
        let metadata = &commit.metadata;
        let names = (metadata.orchestration_name.clone(), metadata.orchestration_version.clone());
        if let (Some(name), Some(version)) = names {
            let row = self.instances.entry(id.to_owned()).or_insert_with(|| Instance {
                name: String::new(),
                version: String::new(),
                parent: metadata.parent_instance_id.clone(),
                custom_status: None,
                custom_status_version: 0,
                created_at_ms: now,
                updated_at_ms: now,
                number,
            });
            (row.name, row.version) = (name, version);
        }
        if let Some(row) = self.instances.get_mut(id) {
            row.updated_at_ms = now;
        }
    }

    /// Creates or updates the execution; what the metadata leaves out stays (R8.45, R8.46, R8.49).
    fn save_execution(&mut self, id: &str, commit: &TurnCommit, now: u64) -> &mut Execution {
        let row = self.execution_row(id, commit.execution_id, now);
        if let Some(pin) = &commit.metadata.pinned_duroxide_version {
            row.pin = Some(pin.clone());
        }
        if let Some(status) = &commit.metadata.status {
            row.status.clone_from(status);
            row.output.clone_from(&commit.metadata.output);
            row.completed_at_ms = Some(now);
        }
        row
    }

    fn execution_row(&mut self, instance: &str, execution_id: u64, now: u64) -> &mut Execution {
        let executions = self.executions.entry(instance.to_owned()).or_default();
        executions.entry(execution_id).or_insert_with(|| Execution::begun(now))
    }
}

fn job_rows(items: &[WorkItem], now: u64) -> Result<Vec<Job>, ProviderError> {
    items.iter().map(|item| Job::new(ACK, item, now)).collect()
}

/// Timers are hidden until they are due; everything else is visible now (R8.53).
fn message_rows(items: &[WorkItem], now: u64) -> Result<Vec<Message>, ProviderError> {
    let row = |item: &WorkItem| {
        let visible_at = match item {
            WorkItem::TimerFired { fire_at_ms, .. } => *fire_at_ms,
            _ => now,
        };
        Message::new(ACK, item, now, visible_at)
    };
    items.iter().map(row).collect()
}
