//! The whole validation suite on the memory provider.
#![cfg(feature = "provider-test")]
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used)]

use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use duroxide::provider_validation::{ProviderFactory, run_all_validations};
use duroxide::providers::Provider;
use duroxide::providers::memory::MemoryProvider;

/// Makes memory stores and remembers the latest, to damage it.
#[derive(Default)]
struct MemoryFactory {
    latest: Mutex<Option<Arc<MemoryProvider>>>,
}

impl MemoryFactory {
    fn latest(&self) -> Arc<MemoryProvider> {
        self.latest.lock().unwrap().clone().expect("a store was made")
    }
}

#[async_trait]
impl ProviderFactory for MemoryFactory {
    async fn create_provider(&self) -> Arc<dyn Provider> {
        let store = Arc::new(MemoryProvider::new());
        *self.latest.lock().unwrap() = Some(store.clone());
        store
    }

    fn lock_timeout(&self) -> Duration {
        Duration::from_millis(200)
    }

    async fn corrupt_instance_history(&self, instance: &str) {
        self.latest().corrupt_history(instance, "bits rotted");
    }

    async fn get_max_attempt_count(&self, instance: &str) -> u32 {
        self.latest().max_attempt_count(instance)
    }
}

mod memory {
    use super::*;
    duroxide::provider_validation_tests!(MemoryFactory::default());
}

#[tokio::test]
async fn all_in_one_call() {
    let report = run_all_validations(&MemoryFactory::default()).await;
    assert!(report.is_ok(), "{report}");
    assert!(report.passed() > 0);
}
