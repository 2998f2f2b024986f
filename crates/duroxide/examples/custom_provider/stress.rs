//! How the store bears load: many instances at a time, beside the memory provider.

use std::error::Error;
use std::sync::Arc;

use async_trait::async_trait;
use duroxide::provider_stress_tests::parallel_orchestrations::{
    ProviderStressFactory, run_parallel_orchestrations_test,
};
use duroxide::provider_stress_tests::{StressTestConfig, print_comparison_table};
use duroxide::providers::Provider;
use duroxide::providers::memory::MemoryProvider;

use super::store::TableStore;

/// Which store to press.
enum Which {
    Tables,
    Memory,
}

#[async_trait]
impl ProviderStressFactory for Which {
    async fn create_provider(&self) -> Arc<dyn Provider> {
        match self {
            Self::Tables => Arc::new(TableStore::new()),
            Self::Memory => Arc::new(MemoryProvider::new()),
        }
    }

    fn stress_test_config(&self) -> StressTestConfig {
        StressTestConfig { duration_secs: 3, ..StressTestConfig::default() }
    }
}

/// Runs the parallel load on both and prints the results side by side.
pub(crate) async fn compare() -> Result<(), Box<dyn Error>> {
    let mut results = Vec::new();
    for (name, which) in [("tables", Which::Tables), ("memory", Which::Memory)] {
        let result = run_parallel_orchestrations_test(&which).await?;
        results.push((name.to_owned(), "parallel".to_owned(), result));
    }
    print_comparison_table(&results);
    Ok(())
}
