//! The runtime: fetches turns and activities, runs them, commits what they did.

#[allow(dead_code, reason = "the worker will make contexts")]
mod activity;
mod handlers;
pub mod registry;
pub mod observability;

pub use activity::ActivityContext;
pub use duroxide_core::context::{FnOrchestration, OrchestrationHandler};
pub use handlers::{ActivityHandler, FnActivity};
pub use observability::{LogFormat, ObservabilityConfig};
pub use registry::{OrchestrationRegistry, OrchestrationRegistryBuilder, VersionPolicy};
