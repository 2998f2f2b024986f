//! Fleets of real processes on one store, for tests: random load, kills and pauses, and a checker
//! that reads tables and journals instead of asking the library.
//!
//! The processes are the test binary itself, run again in a role (`process.rs`); a test binary has
//! one ignored test called `role` that plays it. What a store has to bring along is in `store.rs`.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "for tests only")]

mod store;
mod folder;
mod process;
mod journal;
mod roles;
mod programs;
mod handlers;
mod attend;
mod worker;
mod client;
mod check;
mod repeats;
pub mod torture;
pub mod company;
pub mod takeover;
pub mod zombies;
pub mod reuse;
pub mod killers;
pub mod names;
pub mod rolling;

pub use attend::{Attendant, attend_all, finish_orphans, tried_starts, unattended};
pub use check::{assert_sound, problems};
pub use client::{AT_ONCE, PATIENT, SEED};
pub use folder::Folder;
pub use handlers::{HOLD, activities, let_go, orchestrations};
pub use journal::{Journal, Line, middle_and_max, now_ms};
pub use process::{Process, SOON, alone};
pub use programs::{Program, Step, below, mix};
pub use roles::{Stage, next_line, on_tokio, play, told_to_end};
pub use store::{End, Event, Store, Tables};
pub use worker::{LONG_LEASES, SHORT_LEASES, calm_leases, long_leases, short_leases};
