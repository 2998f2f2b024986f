//! The client: starts, signals, watches and manages instances through a store, with or without a
//! runtime in the same process.
//!
//! A verb is one message or one read. None of them waits for a runtime to act, except those called
//! `wait_for_…`.

mod start;
mod start_request;
mod signal;
mod cancel;
mod status;
mod kv;
mod wait;
mod manage;
mod error;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use duroxide_core::model::{WorkItem, encode};
use duroxide_core::provider::Provider;
use serde::Serialize;

pub use error::ClientError;
pub use start_request::{IfEnded, StartRequest};

/// A handle on the instances of one store. Cheap to clone.
///
/// It needs the store, not the runtime: the instances may run in another process.
///
/// # Start and wait
///
/// ```
/// # use std::{sync::Arc, time::Duration};
/// # use duroxide::{*, providers::memory::MemoryProvider};
/// # use duroxide::runtime::{Runtime, registry::ActivityRegistry};
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let store = Arc::new(MemoryProvider::new());
/// # let orchestrations = OrchestrationRegistry::builder()
/// #     .register("Upper", |_ctx, text: String| async move { Ok(text.to_uppercase()) })
/// #     .register_typed("Sum", |_ctx: OrchestrationContext, all: Vec<u32>| async move {
/// #         Ok::<u32, String>(all.iter().sum())
/// #     })
/// #     .build();
/// # let activities = ActivityRegistry::builder().build();
/// # let runtime = Runtime::start_with_store(store.clone(), activities, orchestrations).await;
/// let client = Client::new(store);
/// let patience = Duration::from_secs(5);
///
/// client.start_orchestration("upper-1", "Upper", "hello").await?;
/// match client.wait_for_orchestration("upper-1", patience).await? {
///     OrchestrationStatus::Completed { output, .. } => assert_eq!(output, "HELLO"),
///     OrchestrationStatus::Failed { details, .. } => return Err(details.display_message().into()),
///     other => unreachable!("a wait ends with one of the two: {other:?}"),
/// }
///
/// // The same with types: the outer error is the client's, the inner one the orchestration's.
/// client.start_orchestration_typed("sum-1", "Sum", [1, 2, 3]).await?;
/// let sum: u32 = client.wait_for_orchestration_typed("sum-1", patience).await??;
/// assert_eq!(sum, 6);
/// # runtime.shutdown(None).await;
/// # Ok(())
/// # }
/// ```
///
/// # Signal, watch, cancel
///
/// ```
/// # use std::{sync::Arc, time::Duration};
/// # use duroxide::{*, providers::memory::MemoryProvider};
/// # use duroxide::runtime::{Runtime, registry::ActivityRegistry};
/// # async fn cook(ctx: OrchestrationContext, _: String) -> Result<String, String> {
/// #     ctx.set_custom_status("what?");
/// #     let dish = ctx.schedule_wait("Dish").await;
/// #     ctx.set_kv_value("dish", dish.as_str());
/// #     let first = ctx.dequeue_event("spices").await;
/// #     ctx.set_custom_status(format!("{dish} with {first}"));
/// #     loop { ctx.dequeue_event("spices").await; }
/// # }
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let store = Arc::new(MemoryProvider::new());
/// # let orchestrations = OrchestrationRegistry::builder().register("Cook", cook).build();
/// # let activities = ActivityRegistry::builder().build();
/// # let runtime = Runtime::start_with_store(store.clone(), activities, orchestrations).await;
/// # let client = Client::new(store);
/// # let patience = Duration::from_secs(5);
/// client.start_orchestration("cook-1", "Cook", "").await?;
///
/// // An event is for whoever waits now, so wait until the instance says that it does...
/// client.wait_for_status_change("cook-1", 0, patience, patience).await?;
/// client.raise_event("cook-1", "Dish", "soup").await?;
/// // ... while messages in a queue stay until they are read.
/// client.enqueue_event("cook-1", "spices", "pepper").await?;
/// client.enqueue_event("cook-1", "spices", "salt").await?;
///
/// assert_eq!(client.wait_for_kv_value("cook-1", "dish", patience).await?, "soup");
/// let status = client.wait_for_status_change("cook-1", 1, patience, patience).await?;
/// assert!(matches!(status, OrchestrationStatus::Running { custom_status: Some(text), .. }
///     if text == "soup with pepper"));
///
/// client.cancel_instance("cook-1", "the guests have left").await?;
/// let status = client.wait_for_orchestration("cook-1", patience).await?;
/// assert!(matches!(status, OrchestrationStatus::Failed { details, .. }
///     if details.display_message() == "canceled: the guests have left"));
/// # runtime.shutdown(None).await;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Client {
    store: Arc<dyn Provider>,
}

impl Client {
    /// A client of this store.
    pub fn new(store: Arc<dyn Provider>) -> Self {
        Self { store }
    }

    /// All a client ever writes: a message, visible at once.
    async fn send(&self, message: WorkItem) -> Result<(), ClientError> {
        Ok(self.store.enqueue_for_orchestrator(message, None).await?)
    }
}

/// Encodes a typed payload (R6.3, R6.13).
fn payload<T: Serialize + ?Sized>(value: &T) -> Result<String, ClientError> {
    encode(value).map_err(|error| ClientError::invalid(format!("encode: {error}")))
}
