//! The commit of a turn (R8.40 – R8.62): everything is checked first, then everything happens.

use duroxide_core::model::{Event, EventKind, WorkItem};

use super::history::History;
use super::instances::{Execution, Id, NewRow, RUNNING};
use super::mailbox::Mailbox;
use super::state::State;
use super::worker_queue::{WorkRow, check_message, check_work};
use crate::providers::Refusal;
use crate::providers::{
    DirectTurn, ExecutionMetadata, ScheduledActivityIdentifier, TimerTurn, TurnCommit,
};

impl State {
    /// Commits a turn, or changes nothing and gives the commit back.
    pub(super) fn commit(
        &mut self,
        token: &str,
        commit: Box<TurnCommit>,
        now: u64,
    ) -> Result<(), (Refusal, Box<TurnCommit>)> {
        match self.check_commit(token, &commit) {
            Ok(id) => {
                self.apply_commit(&id, *commit, now);
                Ok(())
            }
            Err(refusal) => Err((refusal, commit)),
        }
    }

    /// Takes out an activity and commits the turn that has read its outcome (R8.142), or changes
    /// nothing.
    pub(super) fn commit_direct(&mut self, turn: DirectTurn, now: u64) -> Result<(), Refusal> {
        let sequence = self.work.holder(&turn.work_token)?;
        let id = self.shared_id(&turn.instance);
        let is_its_own = |row: &WorkRow| check_work(&row.item) == Ok(&turn.instance);
        let seen = (turn.commit.execution_id, turn.last_event_id, turn.last_event_at_ms);
        if !self.work.rows.get(&sequence).is_some_and(is_its_own) || !self.is_at_rest(&id, seen) {
            return Err(Refusal::NotAtRest(turn.instance));
        }
        self.check_turns(&id, &turn.commit)?;
        self.work.touch_session_of(sequence, now);
        self.work.remove(sequence);
        self.apply_commit(&id, turn.commit, now);
        Ok(())
    }

    /// Takes out timers that are held back and commits the turn that has read them (R8.150), or changes
    /// nothing.
    pub(super) fn commit_timers(&mut self, turn: TimerTurn, now: u64) -> Result<(), Refusal> {
        let id = self.shared_id(&turn.instance);
        let seen = (turn.commit.execution_id, turn.last_event_id, turn.last_event_at_ms);
        let lived = self.instances.get(&id).map_or(0, |instance| instance.incarnation);
        let is_this = turn.incarnation == 0 || turn.incarnation == lived;
        if !is_this || !self.is_at_rest(&id, seen) {
            return Err(Refusal::NotAtRest(turn.instance));
        }
        let sequences = self.messages.held_back(&id, &turn.timers, now)?;
        self.check_turns(&id, &turn.commit)?;
        self.messages.remove_held_back(&id, &sequences);
        self.apply_commit(&id, turn.commit, now);
        Ok(())
    }

    /// Appends events outside a turn, under the same rules (R8.96).
    pub(super) fn append(
        &mut self,
        instance: &str,
        execution_id: u64,
        events: Vec<Event>,
        now: u64,
    ) -> Result<(), Refusal> {
        let id = self.shared_id(instance);
        self.check_events(&id, execution_id, &events)?;
        let position = self.messages.skip_position();
        self.begin_life(&id, position);
        self.execution_mut(&id, execution_id, now).history.append(events);
        self.note_commit(&id);
        self.settle(&id, now);
        Ok(())
    }

    /// Everything that can be wrong with a commit; the instance it is for.
    fn check_commit(&self, token: &str, commit: &TurnCommit) -> Result<Id, Refusal> {
        let id = self.messages.holder(token)?;
        self.check_turns(&id, commit)?;
        Ok(id)
    }

    fn check_turns(&self, id: &Id, commit: &TurnCommit) -> Result<(), Refusal> {
        for turn in commit.turns()? {
            self.check_events(id, turn.execution_id, &turn.history_delta)?;
            turn.worker_items.iter().try_for_each(|item| check_work(item).map(drop))?;
            turn.orchestrator_items.iter().try_for_each(|item| check_message(item).map(drop))?;
        }
        Ok(())
    }

    /// Whether an instance is as a turn has seen it, and nobody is about to change that.
    fn is_at_rest(&self, id: &Id, (execution_id, last_id, last_at_ms): (u64, u64, u64)) -> bool {
        let is_undisturbed =
            |mailbox: &Mailbox| mailbox.held_until().is_none() && mailbox.visible.is_empty();
        let instance = self.instances.get(id);
        let current = instance.and_then(|instance| instance.row.as_ref());
        let execution = instance.and_then(|instance| instance.executions.get(&execution_id));
        self.messages.mailbox(id).is_none_or(is_undisturbed)
            && current.is_some_and(|row| row.current_execution == execution_id)
            && execution.is_some_and(|execution| execution.history.end() == (last_id, last_at_ms))
    }

    /// The steps of a commit. None of them can fail.
    fn apply_commit(&mut self, id: &Id, commit: TurnCommit, now: u64) {
        let first = self.messages.consume(id); // R8.42, R8.54
        self.begin_life(id, first);
        let mut next = Some(Box::new(commit));
        while let Some(mut turn) = next {
            next = turn.successor.take(); // R8.140
            self.apply_turn(id, *turn, now);
        }
    }

    /// Numbers an instance that begins to be (R8.143).
    fn begin_life(&mut self, id: &Id, position: u64) {
        let instance = self.instances.entry(id);
        if instance.incarnation == 0 {
            instance.incarnation = position;
        }
    }

    fn apply_turn(&mut self, id: &Id, commit: TurnCommit, now: u64) {
        let TurnCommit { execution_id, history_delta, metadata, .. } = commit;
        let custom_status = last_custom_status(&history_delta);

        self.record_instance(id, execution_id, &metadata, now); // R8.43, R8.44, R8.47
        self.record_kv(id, &history_delta, &metadata); // R8.51
        let execution = self.execution_mut(id, execution_id, now); // R8.45
        execution.pin = metadata.pinned_duroxide_version.or(execution.pin.take()); // R8.46
        execution.history.append(history_delta); // R8.48
        if let Some(status) = metadata.status {
            record_end(execution, status, metadata.output, now); // R8.49
        }
        self.record_custom_status(id, custom_status); // R8.50
        self.queue_work(commit.worker_items); // R8.52
        self.cancel_work(&commit.cancelled_activities);
        self.queue_messages(commit.orchestrator_items, commit.timer_grace_ms, now); // R8.53
        self.note_commit(id);
        self.settle(id, now);
    }

    fn check_events(&self, id: &str, execution_id: u64, delta: &[Event]) -> Result<(), Refusal> {
        let stored = self.instances.get(id).and_then(|i| i.executions.get(&execution_id));
        match stored {
            Some(execution) => execution.history.check(execution_id, delta),
            None => History::default().check(execution_id, delta),
        }
    }

    /// The row: made when name and version are there, otherwise only kept up to date.
    fn record_instance(
        &mut self,
        id: &Id,
        execution_id: u64,
        metadata: &ExecutionMetadata,
        now: u64,
    ) {
        let identity =
            metadata.orchestration_name.as_ref().zip(metadata.orchestration_version.as_ref());
        match (self.instances.entry(id).row.as_mut(), identity) {
            (Some(row), identity) => {
                if let Some((name, version)) = identity {
                    row.name.clone_from(name);
                    row.version.clone_from(version);
                }
                row.current_execution = row.current_execution.max(execution_id);
                row.updated_at = now;
            }
            (None, Some((name, version))) => {
                let parent = metadata.parent_instance_id.as_deref();
                let row = NewRow {
                    name: name.clone(),
                    version: version.clone(),
                    current_execution: execution_id,
                    parent: parent.map(|parent| self.shared_id(parent)),
                };
                self.instances.create_row(id, row, now);
            }
            (None, None) => {}
        }
    }

    fn record_kv(&mut self, id: &Id, delta: &[Event], metadata: &ExecutionMetadata) {
        let kv = &mut self.instances.entry(id).kv;
        kv.apply(delta);
        if matches!(metadata.status.as_deref(), Some("Completed" | "ContinuedAsNew" | "Failed")) {
            kv.merge();
        }
    }

    fn record_custom_status(&mut self, id: &Id, update: Option<Option<String>>) {
        if let (Some(status), Some(row)) = (update, self.instances.entry(id).row.as_mut()) {
            row.custom_status = status;
            row.custom_status_version += 1;
        }
    }

    fn execution_mut(&mut self, id: &Id, execution_id: u64, now: u64) -> &mut Execution {
        let executions = &mut self.instances.entry(id).executions;
        executions.entry(execution_id).or_insert_with(|| Execution::new(now))
    }

    fn queue_work(&mut self, items: Vec<WorkItem>) {
        for item in items {
            if let Ok(id) = check_work(&item).map(|instance| self.shared_id(instance)) {
                self.work.push(&id, item);
            }
        }
    }

    fn cancel_work(&mut self, cancelled: &[ScheduledActivityIdentifier]) {
        for activity in cancelled {
            let instance = self.shared_id(&activity.instance);
            let rows = self.work.rows_of(&instance, activity.execution_id, activity.activity_id);
            rows.into_iter().for_each(|sequence| self.work.remove(sequence));
        }
    }

    fn queue_messages(&mut self, items: Vec<WorkItem>, timer_grace_ms: u64, now: u64) {
        for item in items {
            let visible_at = match &item {
                // One that is overdue waits from now on, should its instance not exist (R8.29).
                WorkItem::TimerFired { fire_at_ms, .. } => {
                    fire_at_ms.saturating_add(timer_grace_ms).max(now)
                }
                _ => now,
            };
            if let Ok(id) = check_message(&item).map(|instance| self.shared_id(instance)) {
                self.messages.push(&id, item, visible_at, now);
                self.settle(&id, now);
            }
        }
    }
}

fn record_end(execution: &mut Execution, status: String, output: Option<String>, now: u64) {
    execution.completed_at = (status != RUNNING).then_some(now);
    execution.status = status;
    execution.output = output;
}

fn last_custom_status(delta: &[Event]) -> Option<Option<String>> {
    delta.iter().rev().find_map(|event| match &event.kind {
        EventKind::CustomStatusUpdated { status } => Some(status.clone()),
        _ => None,
    })
}
