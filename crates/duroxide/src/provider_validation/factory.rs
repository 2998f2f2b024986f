//! What a provider author supplies.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

use crate::providers::Provider;

/// Makes stores to check.
#[async_trait]
pub trait ProviderFactory: Sync + Send {
    /// A fresh, empty store of its own.
    async fn create_provider(&self) -> Arc<dyn Provider>;

    /// How long locks last in the checks. Many of them wait for one to run out: short is fast, but
    /// must be long compared with a call.
    fn lock_timeout(&self) -> Duration {
        Duration::from_secs(5)
    }

    /// How soon a fetch without long poll returns from an empty queue.
    fn short_poll_threshold(&self) -> Duration {
        Duration::from_millis(100)
    }

    /// Makes the stored history of an instance undecodable.
    async fn corrupt_instance_history(&self, _instance: &str) {
        panic!("corrupt_instance_history is not implemented for this provider factory");
    }

    /// The highest attempt count among an instance's queued messages, as stored.
    async fn get_max_attempt_count(&self, _instance: &str) -> u32 {
        panic!("get_max_attempt_count is not implemented for this provider factory");
    }

    // ---- What a factory may offer; checks that need it are skipped otherwise (R8.125) -----------

    /// Another provider on the store of `first`, as another process would have it.
    async fn create_second(&self, _first: &Arc<dyn Provider>) -> Option<Arc<dyn Provider>> {
        None
    }

    /// A fresh, empty store that keeps messages for unknown instances so long (R8.29).
    async fn create_with_orphan_retention(
        &self,
        _retention: Duration,
    ) -> Option<Arc<dyn Provider>> {
        None
    }

    /// Makes the messages queued for an instance undecodable, in the store made last; whether it
    /// did.
    async fn corrupt_queued_messages(&self, _instance: &str) -> bool {
        false
    }

    /// Makes the queued activities of an instance undecodable, in the store made last; whether it
    /// did.
    async fn corrupt_queued_work(&self, _instance: &str) -> bool {
        false
    }
}
