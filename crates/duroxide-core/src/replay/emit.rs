//! New actions become events and pending work (R3.65 – R3.68), and the turn goes on until the code
//! has nothing more to say.

use std::collections::VecDeque;

use super::engine::ReplayEngine;
use super::execution::Execution;
use super::index::Class;
use crate::context::Emitted;
use crate::model::limits::{MAX_IDLE_ROUNDS, MAX_SYSTEM_CALLS_PER_TURN};
use crate::model::{
    Action, ErrorDetails, EventKind, SYSCALL_PREFIX, child_suffix, is_auto_generated_sub_orch_id,
};

/// Answers system calls within the turn that makes them. Recorded like any activity, so a turn that
/// is repeated after a crash may draw again: nothing of the first try was committed.
pub trait SystemCalls: Send + Sync {
    /// The answer to a built-in activity; `None` sends it to a worker.
    fn answer(&mut self, name: &str, input: &str) -> Option<Result<String, String>>;
}

/// Answers recorded as scheduled but not yet delivered: (schedule event, answer).
type Answers = VecDeque<(u64, Result<String, String>)>;

impl ReplayEngine {
    /// Records what the code asked for and goes on while that may move it.
    pub(super) fn advance(&mut self, execution: &mut Execution) -> Result<(), ErrorDetails> {
        if !execution.rules.strict {
            return self.advance_by_rounds(execution);
        }
        let mut answers = Answers::new();
        loop {
            self.record_emitted(execution, &mut answers);
            // As in replay: a dequeue just recorded reads before the next completion is known.
            execution.settle()?;
            let has_more = !execution.emitted.is_empty();
            let is_done = execution.output.is_some() && !has_more;
            if is_done || !has_more && !self.deliver_answer(execution, &mut answers)? {
                return Ok(());
            }
        }
    }

    /// The same for old executions, which have no wakes: polls as long as there is anything new.
    fn advance_by_rounds(&mut self, execution: &mut Execution) -> Result<(), ErrorDetails> {
        let mut answers = Answers::new();
        let mut idle_rounds = 0;
        let mut emitted_any = self.record_emitted(execution, &mut answers);
        while execution.output.is_none() && (emitted_any || !answers.is_empty()) {
            // As in replay: a dequeue just recorded reads before the next completion is known.
            let answered = !execution.must_poll && self.deliver_answer(execution, &mut answers)?;
            let dequeued = execution.poll()?;
            emitted_any = self.record_emitted(execution, &mut answers);
            idle_rounds = if answered || dequeued { 0 } else { idle_rounds + 1 };
            if emitted_any && idle_rounds >= MAX_IDLE_ROUNDS {
                return Err(never_quiet());
            }
        }
        Ok(())
    }

    /// Records all unmatched actions; whether there were any.
    fn record_emitted(&mut self, execution: &mut Execution, answers: &mut Answers) -> bool {
        let mut any = false;
        while let Some(emitted) = execution.emitted.pop_front() {
            self.record_action(execution, emitted, answers);
            any = true;
        }
        any
    }

    fn record_action(
        &mut self,
        execution: &mut Execution,
        emitted: Emitted,
        answers: &mut Answers,
    ) {
        let Emitted { token, mut action, .. } = emitted;
        let event_id = self.recorder.upcoming_id();
        assign_id(&mut action, event_id, self.recorder.execution_id);
        let Some(kind) = recorded_as(&action) else {
            self.pending_actions.push(action); // Continue-as-new is no event of its own.
            return;
        };
        execution.ctx.state().bind(token, event_id);
        let class = Class::of(&kind);
        let event = self.record(None, kind);
        if let Some(class) = class {
            execution.open(event, class);
        }
        #[cfg(feature = "replay-version-test")]
        if let EventKind::ExternalSubscribed2 { name, topic } = &event.kind {
            execution.subscribe_topic(event_id, name, topic);
        }
        match self.answer(&action) {
            Some(answer) => answers.push_back((event_id, answer)),
            None => self.pending_actions.push(action),
        }
    }

    fn answer(&mut self, action: &Action) -> Option<Result<String, String>> {
        let Action::CallActivity { name, input, .. } = action else { return None };
        if !name.starts_with(SYSCALL_PREFIX) || self.answered >= MAX_SYSTEM_CALLS_PER_TURN {
            return None;
        }
        let answer = self.system_calls.as_mut()?.answer(name, input)?;
        self.answered += 1;
        Some(answer)
    }

    /// Delivers one answer: as in replay, the code is polled after each completion.
    fn deliver_answer(
        &mut self,
        execution: &mut Execution,
        answers: &mut Answers,
    ) -> Result<bool, ErrorDetails> {
        let Some((source, answer)) = answers.pop_front() else { return Ok(false) };
        let kind = match answer {
            Ok(result) => EventKind::ActivityCompleted { result },
            Err(message) => EventKind::ActivityFailed {
                details: ErrorDetails::application(
                    crate::model::AppErrorKind::ActivityFailed,
                    message,
                ),
            },
        };
        let event = self.record(Some(source), kind);
        match execution.apply(event) {
            Ok(()) => Ok(true),
            // Its schedule was opened a moment ago: only where ids have run out can it be another's.
            Err(divergence) => Err(self.diverged(execution, divergence)),
        }
    }
}

/// R3.67, for code that asks for more on every poll.
fn never_quiet() -> ErrorDetails {
    ErrorDetails::Infrastructure {
        operation: "quiescence_loop".to_owned(),
        message: format!(
            "orchestration scheduled new work in {MAX_IDLE_ROUNDS} polls without any of it resolving"
        ),
        retryable: false,
    }
}

fn assign_id(action: &mut Action, event_id: u64, execution_id: u64) {
    match action {
        Action::StartSubOrchestration { scheduling_event_id, instance, .. } => {
            *scheduling_event_id = event_id;
            if is_auto_generated_sub_orch_id(instance) {
                *instance = child_suffix(execution_id, event_id);
            }
        }
        Action::CallActivity { scheduling_event_id, .. }
        | Action::CreateTimer { scheduling_event_id, .. }
        | Action::WaitExternal { scheduling_event_id, .. }
        | Action::StartOrchestrationDetached { scheduling_event_id, .. }
        | Action::DequeueEvent { scheduling_event_id, .. } => *scheduling_event_id = event_id,
        #[cfg(feature = "replay-version-test")]
        Action::WaitExternal2 { scheduling_event_id, .. } => *scheduling_event_id = event_id,
        Action::ContinueAsNew { .. }
        | Action::UpdateCustomStatus { .. }
        | Action::SetKeyValue { .. }
        | Action::ClearKeyValue { .. }
        | Action::ClearKeyValues => {}
    }
}

fn recorded_as(action: &Action) -> Option<EventKind> {
    Some(match action.clone() {
        Action::CallActivity { name, input, session_id, tag, .. } => {
            EventKind::ActivityScheduled { name, input, session_id, tag }
        }
        Action::CreateTimer { fire_at_ms, .. } => EventKind::TimerCreated { fire_at_ms },
        Action::WaitExternal { name, .. } => EventKind::ExternalSubscribed { name },
        Action::StartOrchestrationDetached { name, instance, input, .. } => {
            EventKind::OrchestrationChained { name, instance, input }
        }
        Action::StartSubOrchestration { name, instance, input, .. } => {
            EventKind::SubOrchestrationScheduled { name, instance, input }
        }
        Action::ContinueAsNew { .. } => return None,
        Action::UpdateCustomStatus { status } => EventKind::CustomStatusUpdated { status },
        Action::DequeueEvent { name, .. } => EventKind::QueueSubscribed { name },
        #[cfg(feature = "replay-version-test")]
        Action::WaitExternal2 { name, topic, .. } => EventKind::ExternalSubscribed2 { name, topic },
        Action::SetKeyValue { key, value, last_updated_at_ms } => {
            EventKind::KeyValueSet { key, value, last_updated_at_ms }
        }
        Action::ClearKeyValue { key } => EventKind::KeyValueCleared { key },
        Action::ClearKeyValues => EventKind::KeyValuesCleared,
    })
}
