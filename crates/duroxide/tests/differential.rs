//! Random operations: the memory provider against itself.
#![cfg(feature = "provider-test")]
#![allow(missing_docs, clippy::panic, clippy::unwrap_used)]

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
    assert!(report.operations >= 200 * report.sequences, "{report}");
}

/// What never happens is not compared.
#[tokio::test]
async fn everything_is_tried_with_and_without_success() {
    let report = compare_with_memory(memory, DifferentialOptions::default()).await.unwrap();
    assert!(report.operations >= 10_000, "{report}");
    assert!(report.calls.len() >= 25, "{report}");
    for (call, count) in &report.calls {
        assert!(count.answered >= 10, "{call}\n{report}");
        let can_be_refused =
            ["ack_", "commit_", "abandon_", "renew_o", "renew_w", "delete_instance", "enqueue_"];
        if can_be_refused.iter().any(|part| call.starts_with(part)) && !call.ends_with("bulk") {
            assert!(count.refused >= 5, "{call}\n{report}");
        }
        if call.starts_with("fetch_") {
            assert!(count.empty >= 10, "{call}\n{report}");
        }
    }
}
