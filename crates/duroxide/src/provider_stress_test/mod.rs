//! The stress harness: many instances at a time on one store, counted and timed.
//!
//! A provider author implements [`ProviderStressFactory`] and compares what comes out:
//!
//! ```
//! use std::sync::Arc;
//!
//! use duroxide::provider_stress_tests::parallel_orchestrations::{
//!     ProviderStressFactory, run_parallel_orchestrations_test,
//! };
//! use duroxide::provider_stress_tests::{StressTestConfig, print_comparison_table};
//! use duroxide::providers::Provider;
//! use duroxide::providers::memory::MemoryProvider;
//!
//! struct MyStore;
//!
//! #[async_trait::async_trait]
//! impl ProviderStressFactory for MyStore {
//!     async fn create_provider(&self) -> Arc<dyn Provider> {
//!         Arc::new(MemoryProvider::new()) // a fresh, empty store of your own
//!     }
//!
//!     fn stress_test_config(&self) -> StressTestConfig {
//!         // No time beyond the first round; leave this out to run for ten seconds.
//!         StressTestConfig { duration_secs: 0, ..StressTestConfig::default() }
//!     }
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let result = run_parallel_orchestrations_test(&MyStore).await?;
//! print_comparison_table(&[("mine".into(), "parallel".into(), result.clone())]);
//! assert_eq!(result.failed, 0);
//! # Ok(())
//! # }
//! ```
//!
//! Figures mean something in a release build only, and best on a machine that does nothing else.
//! Why an instance failed is in the log.
//!
//! [`ProviderStressFactory`]: parallel_orchestrations::ProviderStressFactory

mod load;
mod table;
pub mod core;
pub mod parallel_orchestrations;
pub mod large_payload;
#[cfg(test)]
mod tests;
