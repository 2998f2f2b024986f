//! Durable execution for Rust.

pub mod clock;
pub mod random;
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

use std::sync::Arc;

pub use client::{Client, ClientError};
#[doc(hidden)]
pub use duroxide_core::context::CompletionResult;
pub use duroxide_core::context::{
    DurableFuture, Either2, Either3, OrchestrationContext, ScheduleKind,
};
pub use duroxide_core::model::{
    Action, AppErrorKind, BackoffStrategy, ConfigErrorKind, ErrorDetails, Event, EventKind,
    INITIAL_EVENT_ID, INITIAL_EXECUTION_ID, LogLevel, PoisonMessageType, RetryPolicy,
    SUB_ORCH_AUTO_PREFIX, SystemStats, build_child_instance_id, is_auto_generated_sub_orch_id,
};
pub use providers::{
    DeleteInstanceResult, DispatcherCapabilityFilter, ExecutionInfo, InstanceFilter, InstanceInfo,
    InstanceTree, ProviderAdmin, PruneOptions, PruneResult, QueueDepths,
    ScheduledActivityIdentifier, SemverRange, SessionFetchConfig, SystemMetrics, TagFilter,
    current_build_version,
};
pub use runtime::{
    ActivityContext, OrchestrationDescriptor, OrchestrationHandler, OrchestrationRegistry,
    OrchestrationRegistryBuilder, OrchestrationStatus, RuntimeOptions,
};

/// A shared store.
pub type ProviderRef = Arc<dyn providers::Provider>;
/// A shared orchestration.
pub type OrchestrationHandlerRef = Arc<dyn OrchestrationHandler>;
