//! The whole validation suite on the store of `examples/custom_provider`, so that what the guide
//! builds stays correct.
#![cfg(feature = "provider-test")]
#![allow(missing_docs, clippy::panic)]

#[path = "../examples/custom_provider/store.rs"]
mod store;
#[path = "../examples/custom_provider/turns.rs"]
mod turns;
#[path = "../examples/custom_provider/commit.rs"]
mod commit;
#[path = "../examples/custom_provider/reads.rs"]
mod reads;
#[path = "../examples/custom_provider/work.rs"]
mod work;
#[path = "../examples/custom_provider/sessions.rs"]
mod sessions;
#[path = "../examples/custom_provider/kv.rs"]
mod kv;
#[path = "../examples/custom_provider/admin.rs"]
mod admin;
#[path = "../examples/custom_provider/delete.rs"]
mod delete;
#[path = "../examples/custom_provider/provider.rs"]
mod provider;
#[path = "../examples/custom_provider/factory.rs"]
mod factory;

use std::sync::Arc;

use duroxide::provider_validation::differential::{DifferentialOptions, compare_with_memory};
use duroxide::providers::Provider;

use store::TableStore;

mod tables {
    use super::factory::TableFactory;
    duroxide::provider_validation_tests!(TableFactory::default());
}

/// Where the contract leaves room the two may differ, so no strange operations.
#[tokio::test]
async fn it_does_what_the_memory_provider_does() {
    let make = async |clock| Arc::new(TableStore::with_clock(clock)) as Arc<dyn Provider>;
    let options = DifferentialOptions {
        strange: false,
        operations_per_sequence: 100,
        ..DifferentialOptions::from_env()
    };
    let compared = compare_with_memory(make, options).await;
    compared.unwrap_or_else(|difference| panic!("{difference}"));
}
