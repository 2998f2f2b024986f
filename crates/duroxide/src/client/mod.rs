//! The client: starts, signals, watches and manages instances through a store, with or without a
//! runtime in the same process.
//!
//! A verb is one message or one read. None of them waits for a runtime to act, except those called
//! `wait_for_…`.

mod start;
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

/// A handle on the instances of one store. Cheap to clone.
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
