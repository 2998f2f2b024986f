//! Many orchestrations at a time, each with a few short activities: the throughput of queues and
//! locks.

use std::error::Error;
use std::sync::Arc;

use async_trait::async_trait;

use super::core::{
    StressTestConfig, StressTestResult, create_default_activities, create_default_orchestrations,
    run_stress_test,
};
use crate::providers::Provider;

/// Makes stores to press.
#[async_trait]
pub trait ProviderStressFactory: Send + Sync {
    /// A fresh, empty store.
    async fn create_provider(&self) -> Arc<dyn Provider>;

    /// How hard and how long to press it.
    fn stress_test_config(&self) -> StressTestConfig {
        StressTestConfig::default()
    }
}

/// Runs the test as the factory configures it.
///
/// # Errors
/// As [`run_stress_test`].
pub async fn run_parallel_orchestrations_test(
    factory: &dyn ProviderStressFactory,
) -> Result<StressTestResult, Box<dyn Error>> {
    run_parallel_orchestrations_test_with_config(factory, factory.stress_test_config()).await
}

/// Runs the test.
///
/// # Errors
/// As [`run_stress_test`].
pub async fn run_parallel_orchestrations_test_with_config(
    factory: &dyn ProviderStressFactory,
    config: StressTestConfig,
) -> Result<StressTestResult, Box<dyn Error>> {
    let activities = create_default_activities(config.activity_delay_ms);
    let store = factory.create_provider().await;
    run_stress_test(config, store, activities, create_default_orchestrations()).await
}
