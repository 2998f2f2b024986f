//! Ending an execution without running its code: poison and unstorable turns.

use super::engine::ReplayEngine;
use super::messages::WorkItemReader;
use super::outcome::TurnOutcome;
use super::terminal::Ending;
use super::turn::{Facts, first_event};
use crate::model::{ErrorDetails, Event};

/// An execution to be ended.
pub struct FailedTurn {
    /// The instance.
    pub instance: String,
    /// The execution that ends.
    pub execution_id: u64,
    /// Its events so far; empty if it never began.
    pub history: Vec<Event>,
    /// The batch, whose start begins the execution if it never did.
    pub messages: WorkItemReader,
    /// Version to record if it never began.
    pub version: String,
    /// The time, milliseconds since the epoch.
    pub now_ms: u64,
    /// Execution of the parent to notify if the start event does not name one.
    pub parent_execution_fallback: u64,
    /// Why it ends.
    pub details: ErrorDetails,
}

/// The failure as an outcome: a start event if there was none, so that no history begins with its
/// end; the failure; word to the parent and to running children.
pub fn fail_turn(turn: FailedTurn) -> TurnOutcome {
    let FailedTurn { instance, execution_id, mut history, messages, now_ms, .. } = turn;
    let persisted_len = history.len();
    history.extend(first_event(
        &history,
        &messages,
        &turn.version,
        (&instance, execution_id, now_ms),
    ));
    let Facts { name, parent, .. } = Facts::of(&history);
    let mut engine = ReplayEngine::new(instance, execution_id, history)
        .with_persisted_history_len(persisted_len)
        .with_now_ms(now_ms);
    let parent_execution_fallback = turn.parent_execution_fallback;
    let engine = &mut engine;
    Ending { engine, name, parent, parent_execution_fallback }.into_failure(turn.details)
}
