//! Replay, case by case: a history as text, messages as text, code, and the expected outcome as text.
//!
//! `check` runs the engine, `check_turn` a whole turn. Both also replay a history that goes on: cold,
//! an hour later, it must add nothing, or live turn and replay would part.

mod notation;
mod logs;
mod messages;
mod beginning;
mod matching;
mod applying;
mod arrivals;
mod quiescence;
mod results;
mod waits;
mod queues;
mod policies;
mod sending;
mod drops;
mod kept;
mod endings;
mod continuing;
mod limits;
mod combinators;
mod woken;
mod divergences;
mod foreign_waits;
mod activities;
mod timeouts;
mod children;
mod tracing;
mod store;
mod by_hand;
mod reading;
mod ids;
#[cfg(feature = "replay-version-test")]
mod topics;

use std::fmt::Write as _;
use std::future::Future;
use std::sync::Arc;

use expect_test::Expect;

use self::notation::{INSTANCE, Settings, Story};
use super::*;
use crate::context::{FnOrchestration, OrchestrationContext, OrchestrationHandler};
use crate::model::{
    ErrorDetails, Event, EventKind, SYSCALL_NEW_GUID, SYSCALL_UTC_NOW_MS, WorkItem,
};

const FOREIGN: &str = "waits for something that is not durable\n";

/// The handler of a case.
pub(super) type Code = Arc<dyn OrchestrationHandler>;

/// Wraps a closure as a handler.
pub(super) fn code<F, Fut>(code: F) -> Code
where
    F: Fn(OrchestrationContext, String) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<String, String>> + Send + 'static,
{
    Arc::new(FnOrchestration(code))
}

/// Runs the engine over a history and messages: result, new events, actions, cancellations.
pub(super) fn check<F, Fut>(history: &str, messages: &str, handler: F, expected: Expect)
where
    F: Fn(OrchestrationContext, String) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<String, String>> + Send + 'static,
{
    let (story, handler) = (Story::read(history), code(handler));
    let (engine, result) = run_engine(&story, messages, handler.clone());
    expected.assert_eq(&engine_text(&engine, &result));
    if matches!(result, TurnResult::Continue) {
        assert_replays(&story.settings, engine.final_history(), handler);
    }
}

/// [`check`] for histories on which replay is known to part from the live turn.
pub(super) fn check_without_replay<F, Fut>(
    history: &str,
    messages: &str,
    handler: F,
    expected: Expect,
) where
    F: Fn(OrchestrationContext, String) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<String, String>> + Send + 'static,
{
    let (engine, result) = run_engine(&Story::read(history), messages, code(handler));
    expected.assert_eq(&engine_text(&engine, &result));
}

/// Runs a turn over a history and messages: status, new events, messages, cancellations.
pub(super) fn check_turn<F, Fut>(history: &str, messages: &str, handler: F, expected: Expect)
where
    F: Fn(OrchestrationContext, String) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<String, String>> + Send + 'static,
{
    let (story, handler) = (Story::read(history), code(handler));
    let turn = turn(&story, messages, handler.clone());
    let mut history = turn.history.clone();
    let outcome = run_turn(turn);
    expected.assert_eq(&outcome_text(&outcome));
    if outcome.status == TurnStatus::Running && !outcome.events.is_empty() {
        history.extend(outcome.events);
        assert_replays(&story.settings, history, handler);
    }
}

/// A context that no engine drives.
pub(super) fn bare_context() -> OrchestrationContext {
    OrchestrationContext::new(Vec::new(), 1, "i".into(), "O".into(), "1.0.0".into(), None)
}

/// What a future says when polled once.
pub(super) fn polled<F: Future>(future: F) -> Option<F::Output> {
    let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
    match std::pin::pin!(future).poll(&mut cx) {
        std::task::Poll::Ready(value) => Some(value),
        std::task::Poll::Pending => None,
    }
}

/// The engine after a run.
pub(super) fn run_engine(
    story: &Story,
    messages: &str,
    handler: Code,
) -> (ReplayEngine, TurnResult) {
    let settings = &story.settings;
    let mut engine = engine(settings, story.events.clone());
    engine.prep_completions(notation::messages(messages, settings.execution_id));
    let result = execute(&mut engine, handler);
    (engine, result)
}

fn engine(settings: &Settings, history: Vec<Event>) -> ReplayEngine {
    let persisted_len = settings.persisted_len.unwrap_or(history.len());
    let engine = ReplayEngine::new(INSTANCE.to_owned(), settings.execution_id, history)
        .with_persisted_history_len(persisted_len)
        .with_kv_snapshot(settings.kv_snapshot.clone())
        .with_now_ms(settings.now_ms)
        .failing_on_foreign_wait(settings.foreign_wait_fails);
    match settings.system_calls {
        true => engine.with_system_calls(Box::new(Answers::new(settings.now_ms))),
        false => engine,
    }
}

fn execute(engine: &mut ReplayEngine, handler: Code) -> TurnResult {
    let started = engine.final_history().into_iter().find_map(|event| match event.kind {
        EventKind::OrchestrationStarted { name, version, input, .. } => {
            Some((name, version, input))
        }
        _ => None,
    });
    let (name, version, input) = started.unwrap_or_default();
    engine.execute_orchestration(handler, input, name, version, "w")
}

/// A turn as the dispatcher would put it together.
fn turn(story: &Story, messages: &str, handler: Code) -> Turn {
    let settings = &story.settings;
    let manager = HistoryManager::from_history(&story.events);
    let messages = notation::messages(messages, settings.execution_id);
    let messages = WorkItemReader::from_messages(&messages, &manager, INSTANCE);
    let continues = messages.is_continue_as_new;
    Turn {
        instance: INSTANCE.to_owned(),
        execution_id: settings.execution_id + u64::from(continues),
        history: if continues { Vec::new() } else { story.events.clone() },
        version: messages.version.clone().unwrap_or_else(|| "1.0.0".to_owned()),
        messages,
        handler,
        kv_snapshot: settings.kv_snapshot.clone(),
        now_ms: settings.now_ms,
        system_calls: settings
            .system_calls
            .then(|| Box::new(Answers::new(settings.now_ms)) as Box<dyn SystemCalls>),
        foreign_wait: if settings.foreign_wait_fails {
            ForeignWait::Fail
        } else {
            ForeignWait::Warn
        },
        parent_execution_fallback: 7,
    }
}

/// Replays a stored history without messages: nothing may come of it.
fn assert_replays(settings: &Settings, history: Vec<Event>, handler: Code) {
    let execution_id = history.last().map_or(1, |event| event.execution_id);
    let later = Settings {
        now_ms: settings.now_ms + 3_600_000,
        kv_snapshot: settings.kv_snapshot.clone(),
        execution_id,
        ..Settings::default()
    };
    let mut engine = engine(&later, history);
    let result = execute(&mut engine, handler);
    let text = engine_text(&engine, &result).replace(FOREIGN, "");
    assert_eq!(text, "continue\n", "a cold replay of this turn parts from it");
    assert_eq!(engine.timers_without_listener(), [], "an earlier turn has told of them");
}

fn engine_text(engine: &ReplayEngine, result: &TurnResult) -> String {
    let mut text = format!("{}\n", notation::result(result));
    text += &notation::events(engine.history_delta());
    let actions: Vec<String> = engine.pending_actions().iter().map(notation::action).collect();
    if !actions.is_empty() {
        writeln!(text, "actions: {}", actions.join(", ")).unwrap();
    }
    cancelled_text(&mut text, engine.cancelled_activity_ids());
    if !engine.cancelled_sub_orchestration_ids().is_empty() {
        let ids = engine.cancelled_sub_orchestration_ids().join(" ");
        writeln!(text, "cancelled children: {ids}").unwrap();
    }
    if engine.waits_for_foreign() {
        text += FOREIGN;
    }
    text
}

fn outcome_text(outcome: &TurnOutcome) -> String {
    let mut text = match &outcome.status {
        TurnStatus::Running => "running\n".to_owned(),
        TurnStatus::Completed(_) => "ended: completed\n".to_owned(),
        TurnStatus::Failed(_) => "ended: failed\n".to_owned(),
        TurnStatus::ContinuedAsNew(_) => "ended: continued as new\n".to_owned(),
    };
    text += &notation::events(&outcome.events);
    for (queue, items) in [("worker", &outcome.activities), ("orch", &outcome.messages)] {
        for item in items {
            writeln!(text, "{queue}: {}", notation::work_item(item)).unwrap();
        }
    }
    cancelled_text(&mut text, &outcome.cancelled);
    for timer in &outcome.dropped_timers {
        writeln!(text, "dropped: {}", notation::work_item(timer)).unwrap();
    }
    if outcome.waits_for_foreign {
        text += FOREIGN;
    }
    text
}

fn cancelled_text(text: &mut String, ids: &[u64]) {
    if !ids.is_empty() {
        let ids: Vec<String> = ids.iter().map(u64::to_string).collect();
        writeln!(text, "cancelled activities: {}", ids.join(" ")).unwrap();
    }
}

/// System calls with foreseeable answers.
pub(super) struct Answers {
    now_ms: u64,
    guids: u32,
}

impl Answers {
    fn new(now_ms: u64) -> Self {
        Self { now_ms, guids: 0 }
    }
}

impl SystemCalls for Answers {
    fn answer(&mut self, name: &str, _input: &str) -> Option<Result<String, String>> {
        match name {
            SYSCALL_NEW_GUID => {
                self.guids += 1;
                Some(Ok(format!("guid-{}", self.guids)))
            }
            SYSCALL_UTC_NOW_MS => Some(Ok(self.now_ms.to_string())),
            _ => None,
        }
    }
}
