//! One turn as a function: history and messages in, outcome out. No I/O, no clock, no threads, no
//! randomness; what the turn needs of the outside is handed in.
//!
//! ```text
//!   messages ── accept ──► events ─┐
//!                                  ▼
//!   history ─────────────────── apply ──► context state ──► poll ──► actions
//!                                  ▲                                   │
//!                            bind (history)  ◄─────────────────────────┤
//!                                                                      ▼
//!   outcome ◄── finish ◄── cancel (dropped futures) ◄── emit (new) ── events
//! ```
//!
//! Nothing is stored or sent: the engine says what the turn came to. Running it over a stored history
//! shows whether changed code still agrees with what happened.
//!
//! ```
//! use std::sync::Arc;
//!
//! use duroxide_core::context::{FnOrchestration, OrchestrationContext};
//! use duroxide_core::model::{Action, Event, EventKind, WorkItem};
//! use duroxide_core::replay::{ReplayEngine, TurnResult};
//!
//! async fn order(ctx: OrchestrationContext, item: String) -> Result<String, String> {
//!     ctx.schedule_activity("Charge", item).await
//! }
//!
//! let started = EventKind::OrchestrationStarted {
//!     name: "Order".into(),
//!     version: "1.0.0".into(),
//!     input: "book".into(),
//!     parent_instance: None,
//!     parent_id: None,
//!     parent_execution_id: None,
//!     carry_forward_events: None,
//!     initial_custom_status: None,
//! };
//! let mut history = vec![Event::with_event_id(1, "order-7", 1, None, started)];
//!
//! // The first turn: the code asks for an activity and waits.
//! let mut turn = ReplayEngine::new("order-7".into(), 1, history.clone());
//! let result = turn.execute_orchestration(
//!     Arc::new(FnOrchestration(order)), "book".into(), "Order".into(), "1.0.0".into(), "w",
//! );
//! assert!(matches!(result, TurnResult::Continue));
//! assert!(matches!(turn.pending_actions(), [Action::CallActivity { name, .. }] if name == "Charge"));
//! history.extend_from_slice(turn.history_delta());
//!
//! // The second: the activity is done, the code runs again and comes further.
//! let mut turn = ReplayEngine::new("order-7".into(), 1, history);
//! turn.prep_completions(vec![WorkItem::ActivityCompleted {
//!     instance: "order-7".into(),
//!     execution_id: 1,
//!     id: 2,
//!     result: "paid".into(),
//! }]);
//! let result = turn.execute_orchestration(
//!     Arc::new(FnOrchestration(order)), "book".into(), "Order".into(), "1.0.0".into(), "w",
//! );
//! assert!(matches!(result, TurnResult::Completed(output) if output == "paid"));
//! ```

mod engine;
mod run;
mod history;
mod messages;
mod index;
mod record;
mod accept;
mod execution;
mod apply;
mod bind;
mod emit;
mod cancel;
mod limits;
mod divergence;
mod outcome;
mod terminal;
mod subscriptions;
mod turn;
mod suspended;
mod failure;
#[cfg(test)]
mod tests;

pub use divergence::{DivergenceReport, DivergenceRow, SourceLocation};
pub use emit::SystemCalls;
pub use engine::{ReplayEngine, TurnResult};
pub use failure::{FailedTurn, fail_turn};
pub use history::HistoryManager;
pub use messages::WorkItemReader;
pub use outcome::{FinishedChild, TurnOutcome, TurnStatus};
pub use suspended::{Resumption, Suspended};
pub use turn::{ForeignWait, Turn, run_turn, run_turn_and_keep};
