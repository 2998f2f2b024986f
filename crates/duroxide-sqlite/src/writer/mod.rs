//! The one place that writes.
//!
//! ```text
//!   callers            inbox              writer thread                       file
//!   ───────            ─────              ─────────────                       ────
//!   serialise ── Operation ──▶ ▥▥▥▥ ──▶ begin ─▶ run each ─▶ serve parked ─▶ commit ──▶ fsync
//!      ▲                                                                 │
//!      └──────────────────────── answer ◀────────────────────────────────┘
//! ```
//!
//! Whatever waits in the inbox becomes one transaction; while it is being committed the next one
//! gathers. No caller is answered before the commit is on the disk. A fetch that finds nothing is
//! parked and served inside the very transaction that brings something for it.
//!
//! This folder knows nothing of what an operation means.

mod queued_op;
mod handle;
mod parked;
mod awaiting_sync;
mod queue_forecast;
mod thread;
mod batch;
mod recover;
mod watch;
mod log_size;

pub(crate) use handle::WriterHandle;
pub(crate) use queued_op::{Patience, Queue, QueuedOp, without_reply};
pub(crate) use thread::{WriterConfig, spawn};
