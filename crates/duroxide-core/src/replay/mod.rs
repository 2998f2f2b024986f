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

mod engine;
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
pub use turn::{ForeignWait, Turn, run_turn};
