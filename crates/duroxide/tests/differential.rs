//! Random operations: the memory provider against itself.
#![cfg(feature = "provider-test")]
#![allow(missing_docs, clippy::panic)]

use std::sync::Arc;

use duroxide::clock::Clock;
use duroxide::provider_validation::differential::{DifferentialOptions, compare_with_memory};
use duroxide::providers::Provider;
use duroxide::providers::memory::{MemoryOptions, MemoryProvider};

async fn memory(clock: Arc<dyn Clock>) -> Arc<dyn Provider> {
    Arc::new(MemoryProvider::with_options(MemoryOptions { clock, ..MemoryOptions::default() }))
}

#[tokio::test]
async fn the_memory_provider_agrees_with_itself() {
    let report = compare_with_memory(memory, DifferentialOptions::from_env())
        .await
        .unwrap_or_else(|difference| panic!("{difference}"));
    println!("{report}");
    assert!(report.operations >= 10_000, "{report}");
}
