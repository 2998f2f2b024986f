//! The core of Duroxide: events, the orchestration context, replay, and the provider contract.
//!
//! This crate only speaks: given a history and messages, replay says what should happen. It does no
//! I/O, has no threads, reads no clock and draws no random numbers. The `duroxide` crate acts.

pub mod model;
pub mod clock;
mod id_map;
#[doc(hidden)]
pub mod user_code;
pub mod context;
pub mod replay;
pub mod provider;
