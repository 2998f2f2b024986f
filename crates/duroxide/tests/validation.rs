//! The whole validation suite on the memory provider.
#![cfg(feature = "provider-test")]
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used)]

use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use duroxide::provider_validation::{
    ProviderFactory, dead_letters, run_all_validations, two_providers,
};
use duroxide::providers::Provider;
use duroxide::providers::memory::{MemoryOptions, MemoryProvider};

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

    async fn create_second(&self, first: &Arc<dyn Provider>) -> Option<Arc<dyn Provider>> {
        Some(Arc::clone(first)) // memory is shared by sharing the store
    }

    async fn create_with_orphan_retention(&self, retention: Duration) -> Option<Arc<dyn Provider>> {
        let options = MemoryOptions { orphan_retention: retention, ..MemoryOptions::default() };
        Some(Arc::new(MemoryProvider::with_options(options)))
    }
}

mod memory {
    use super::*;
    duroxide::provider_validation_tests!(MemoryFactory::default());
}

#[tokio::test]
async fn all_in_one_call() {
    let report = run_all_validations(&MemoryFactory::default()).await;
    println!("{report}");
    assert!(report.is_ok(), "{report}");
    assert!(report.passed() > 0);
}

/// A factory that offers nothing it need not.
struct BareFactory;

#[async_trait]
impl ProviderFactory for BareFactory {
    async fn create_provider(&self) -> Arc<dyn Provider> {
        Arc::new(MemoryProvider::new())
    }
}

#[tokio::test]
async fn r8_125_what_a_factory_does_not_offer_is_skipped() {
    assert!(two_providers::locks_hold_for_both(&BareFactory).await.is_some());
    assert!(dead_letters::messages_nobody_came_for_are_given_up(&BareFactory).await.is_some());
    assert!(dead_letters::unreadable_messages_hold_up_nobody(&BareFactory).await.is_some());
    assert!(dead_letters::unreadable_work_holds_up_nobody(&BareFactory).await.is_some());
    assert!(dead_letters::queue_messages_for_nobody_are_listed(&BareFactory).await.is_none());
}
