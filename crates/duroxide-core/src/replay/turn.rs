//! A turn from its ingredients to its outcome.

use std::collections::HashMap;
use std::sync::Arc;

use super::emit::SystemCalls;
use super::engine::{Code, ReplayEngine, TurnResult};
use super::limits;
use super::messages::WorkItemReader;
use super::outcome::TurnOutcome;
use super::suspended::{Ran, Suspended};
use crate::context::OrchestrationHandler;
use crate::model::version::BUILD_VERSION;
use crate::model::{Event, EventKind, INITIAL_EVENT_ID, KvEntry, WorkItem};

/// What to do with an orchestration that waits for something that is not durable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ForeignWait {
    /// Say so and leave it running.
    #[default]
    Warn,
    /// Fail it.
    Fail,
}

/// The ingredients of a turn.
pub struct Turn {
    /// The instance.
    pub instance: String,
    /// The execution that runs.
    pub execution_id: u64,
    /// Its events so far; empty if it begins now.
    pub history: Vec<Event>,
    /// The messages to take in, and the start if it begins now.
    pub messages: WorkItemReader,
    /// The code.
    pub handler: Arc<dyn OrchestrationHandler>,
    /// Resolved version of the code.
    pub version: String,
    /// Key-value entries of completed executions.
    pub kv_snapshot: HashMap<String, KvEntry>,
    /// The time, milliseconds since the epoch.
    pub now_ms: u64,
    /// What answers system calls within the turn.
    pub system_calls: Option<Box<dyn SystemCalls>>,
    /// What to do about waits that are not durable.
    pub foreign_wait: ForeignWait,
    /// Execution of the parent to notify if the start event does not name one (R3.116).
    pub parent_execution_fallback: u64,
}

/// Runs a turn.
pub fn run_turn(turn: Turn) -> TurnOutcome {
    run_turn_and_keep(turn).0
}

/// Runs a turn and keeps the code as it is then, if it waits for more: the next turn can go on from
/// there instead of beginning again.
pub fn run_turn_and_keep(turn: Turn) -> (TurnOutcome, Option<Suspended>) {
    let Turn { instance, execution_id, mut history, messages, version, .. } = turn;
    let persisted_len = history.len();
    history.extend(first_event(
        &history,
        &messages,
        &version,
        (&instance, execution_id, turn.now_ms),
    ));
    let Facts { name, input, parent } = Facts::of(&history);
    let mut engine = ReplayEngine::new(instance, execution_id, history)
        .with_persisted_history_len(persisted_len)
        .with_kv_snapshot(turn.kv_snapshot)
        .with_now_ms(turn.now_ms)
        .failing_on_foreign_wait(turn.foreign_wait == ForeignWait::Fail);
    if let Some(system_calls) = turn.system_calls {
        engine = engine.with_system_calls(system_calls);
    }
    engine.prep_completions(messages.completion_messages);
    let code = Code {
        handler: turn.handler,
        input,
        orchestration_name: name.clone(),
        orchestration_version: version,
    };
    let (result, execution) = engine.begin(code);
    let parent_execution_fallback = turn.parent_execution_fallback;
    let ran = Ran { engine, execution, name, parent, parent_execution_fallback };
    Box::new(ran).conclude(result, 0)
}

/// A violation is a failure like any other: it ends the execution once, tells the parent and
/// cancels what is open (L4, L5).
pub(super) fn within_limits(engine: &ReplayEngine, result: TurnResult) -> TurnResult {
    if matches!(result, TurnResult::Failed(_) | TurnResult::Cancelled(_)) {
        return result;
    }
    match limits::check(engine.history_delta(), engine.live_keys) {
        Ok(()) => result,
        Err(violation) => TurnResult::Failed(violation),
    }
}

/// What the start event says.
#[derive(Default)]
pub(super) struct Facts {
    pub(super) name: String,
    pub(super) input: String,
    /// Instance, execution if known, and schedule event.
    pub(super) parent: Option<(String, Option<u64>, u64)>,
}

impl Facts {
    pub(super) fn of(history: &[Event]) -> Self {
        let Some(EventKind::OrchestrationStarted {
            name,
            input,
            parent_instance,
            parent_id,
            parent_execution_id,
            ..
        }) = history.first().map(|event| &event.kind)
        else {
            return Self::default();
        };
        let parent = parent_instance.clone().zip(*parent_id);
        Self {
            name: name.clone(),
            input: input.clone(),
            parent: parent.map(|(instance, id)| (instance, *parent_execution_id, id)),
        }
    }
}

/// The start event of an execution that has none yet, from the batch's start (R1.30).
pub(super) fn first_event(
    history: &[Event],
    messages: &WorkItemReader,
    version: &str,
    (instance, execution_id, now_ms): (&str, u64, u64),
) -> Option<Event> {
    if !history.is_empty() {
        return None;
    }
    Some(Event {
        event_id: INITIAL_EVENT_ID,
        source_event_id: None,
        instance_id: instance.to_owned(),
        execution_id,
        timestamp_ms: now_ms,
        duroxide_version: BUILD_VERSION.to_owned(),
        kind: start_event(messages, version)?,
    })
}

/// What a start message says, as an event (R2.20 – R2.22).
fn start_event(messages: &WorkItemReader, version: &str) -> Option<EventKind> {
    let start = messages.start_item.as_ref()?;
    let (carry_forward_events, initial_custom_status) = match start {
        WorkItem::ContinueAsNew { carry_forward_events, initial_custom_status, .. } => {
            let carried = Some(carry_forward_events.clone()).filter(|list| !list.is_empty());
            (carried, initial_custom_status.clone())
        }
        _ => (None, None),
    };
    Some(EventKind::OrchestrationStarted {
        name: messages.orchestration_name.clone(),
        version: version.to_owned(),
        input: messages.input.clone(),
        parent_instance: messages.parent_instance.clone(),
        parent_id: messages.parent_id,
        parent_execution_id: messages.parent_execution_id,
        carry_forward_events,
        initial_custom_status,
    })
}
