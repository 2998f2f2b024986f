//! Durable execution for Rust: workflows as ordinary async code that survive crashes.
//!
//! An *orchestration* is an async function. What it waits for (activities, timers, events, other
//! orchestrations) is recorded in a store as it happens. After a crash, a restart or a move to
//! another machine the function runs again from its beginning over what was recorded, arrives where
//! it had been, and goes on.
//!
//! # Hello, world
//!
//! ```
//! use std::sync::Arc;
//! use std::time::Duration;
//!
//! use duroxide::providers::sqlite::SqliteProvider;
//! use duroxide::runtime::Runtime;
//! use duroxide::runtime::registry::ActivityRegistry;
//! use duroxide::{ActivityContext, Client, OrchestrationContext, OrchestrationRegistry};
//!
//! // Does the work: any I/O, at least once.
//! async fn greet(_ctx: ActivityContext, name: String) -> Result<String, String> {
//!     Ok(format!("Hello, {name}!"))
//! }
//!
//! // Says what is to be done, in which order.
//! async fn hello(ctx: OrchestrationContext, name: String) -> Result<String, String> {
//!     ctx.schedule_activity("Greet", name).await
//! }
//!
//! #[tokio::main]
//! async fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     let activities = ActivityRegistry::builder().register("Greet", greet).build();
//!     let orchestrations = OrchestrationRegistry::builder().register("Hello", hello).build();
//!
//!     // Or a file: SqliteProvider::new("sqlite:hello.db?mode=rwc", None).
//!     let store = Arc::new(SqliteProvider::new_in_memory().await?);
//!     let runtime = Runtime::start_with_store(store.clone(), activities, orchestrations).await;
//!
//!     let client = Client::new(store);
//!     client.start_orchestration("hello-1", "Hello", "world").await?;
//!     let output: String =
//!         client.wait_for_orchestration_typed("hello-1", Duration::from_secs(5)).await??;
//!     assert_eq!(output, "Hello, world!");
//!
//!     runtime.shutdown(None).await;
//!     Ok(())
//! }
//! ```
//!
//! The `examples` folder has more: fan-out, approval by a human, sagas, eternal instances, sessions,
//! upgrades. The guides in `docs/guide` explain one subject each.
//!
//! # Concepts
//!
//! - An **instance** is a durable name with a state: `hello-1` above. It is started once.
//! - An **execution** is one run of an instance. Most instances have one; each
//!   [`continue_as_new`](OrchestrationContext::continue_as_new) begins another with an empty
//!   history.
//! - A **turn** is one step of an execution: messages in, code run until it waits, everything it
//!   asked for stored in one commit. Nothing of a turn that was not committed ever happened.
//! - The **history** of an execution is what its turns recorded, as [`Event`]s. Replaying it is how
//!   an execution comes back.
//! - An **activity** is where the world is touched: I/O, clocks, random numbers. It runs at least
//!   once, wherever a worker is free, with all the time it needs.
//!
//! # What orchestration code may do
//!
//! It must do the same every time it runs over the same history. So it awaits only what its context
//! returns, and asks the context instead of the system:
//!
//! | instead of | use |
//! |---|---|
//! | I/O, `tokio::spawn` | [`schedule_activity`](OrchestrationContext::schedule_activity) |
//! | `tokio::time::sleep` | [`schedule_timer`](OrchestrationContext::schedule_timer) |
//! | `SystemTime::now` | [`utc_now`](OrchestrationContext::utc_now) |
//! | random ids | [`new_guid`](OrchestrationContext::new_guid) |
//! | channels | [`schedule_wait`](OrchestrationContext::schedule_wait), [`dequeue_event`](OrchestrationContext::dequeue_event) |
//! | logs | [`trace_info`](OrchestrationContext::trace_info), silent during replay |
//!
//! Branches, loops, helper functions, `match`, `?`, the combinators of the `futures` crate, and
//! `tokio::select!` and `tokio::join!` (with `biased;`) over durable futures are all fine. Code that does something else than its history says
//! fails with [`ConfigErrorKind::Nondeterminism`]; code changes go through
//! [versions](runtime::registry::RegistryBuilder).
//!
//! # Where to look
//!
//! - [`OrchestrationContext`] and [`DurableFuture`]: writing orchestrations.
//! - [`ActivityContext`]: writing activities. [`RetryPolicy`]: trying them again.
//! - [`Client`]: starting, signalling, watching and managing instances.
//! - [`runtime`]: running them, with [`runtime::RuntimeOptions`], [`runtime::registry`] and
//!   [`runtime::observability`].
//! - [`providers`]: stores, and the contract for writing one.

pub mod clock;
pub mod random;
mod context;
pub mod client;
pub mod runtime;
pub mod providers;
#[cfg(any(test, feature = "provider-test"))]
pub mod provider_validation;
#[cfg(any(test, feature = "provider-test"))]
pub mod provider_validations;
#[cfg(any(test, feature = "provider-test"))]
pub mod provider_stress_test;
#[cfg(any(test, feature = "provider-test"))]
pub mod provider_stress_tests;
#[cfg(all(doctest, feature = "sqlite"))]
mod guide;

use std::sync::Arc;

pub use client::{Client, ClientError, IfEnded, StartRequest};
#[doc(hidden)]
pub use context::CompletionResult;
pub use context::{
    ContinuingAsNew, DurableFuture, Either2, Either3, OrchestrationContext, RetryingActivity,
    ScheduleKind,
};
pub use duroxide_core::model::{
    Action, ActivityTimeout, AppErrorKind, BackoffStrategy, ConfigErrorKind, ErrorDetails, Event,
    EventKind, INITIAL_EVENT_ID, INITIAL_EXECUTION_ID, LogLevel, PoisonMessageType, RetryPolicy,
    SUB_ORCH_AUTO_PREFIX, SystemStats, build_child_instance_id, is_auto_generated_sub_orch_id,
};
pub use providers::{
    DeleteInstanceResult, DispatcherCapabilityFilter, ExecutionInfo, InstanceFilter, InstanceInfo,
    InstanceTree, ProviderAdmin, PruneOptions, PruneResult, QueueDepths,
    ScheduledActivityIdentifier, SemverRange, SessionFetchConfig, StartOutcome, SystemMetrics,
    TagFilter, current_build_version,
};
pub use runtime::{
    ActivityContext, OrchestrationDescriptor, OrchestrationHandler, OrchestrationRegistry,
    OrchestrationRegistryBuilder, OrchestrationStatus, RuntimeOptions,
};

/// A shared store.
pub type ProviderRef = Arc<dyn providers::Provider>;
/// A shared orchestration.
pub type OrchestrationHandlerRef = Arc<dyn OrchestrationHandler>;
