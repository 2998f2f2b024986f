//! Random operations: this store against the memory provider.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use std::sync::{Arc, Mutex};

use duroxide::clock::Clock;
use duroxide::provider_validation::differential::{DifferentialOptions, compare_with_memory};
use duroxide::providers::Provider;
use duroxide_pg::{PostgresProvider, ProviderConfig};
use support::TestSchema;

async fn open(mut config: ProviderConfig, clock: Arc<dyn Clock>) -> Arc<dyn Provider> {
    config.clock = Some(clock);
    Arc::new(PostgresProvider::new_with_config(config).await.unwrap())
}

#[tokio::test]
async fn it_does_what_the_memory_provider_does() {
    if !support::has_server() {
        return;
    }
    let schemas = Mutex::new(Vec::new()); // which last as long as the test
    let make = async |clock| {
        let schema = TestSchema::new().unwrap();
        let mut config = schema.config();
        // Every other one says the types of values instead of preparing statements.
        config.through_pooler = schemas.lock().unwrap().len() % 2 == 1;
        schemas.lock().unwrap().push(schema);
        open(config, clock).await
    };
    // Every look is some hundred questions.
    let mut options = DifferentialOptions { dump_every: 80, ..DifferentialOptions::from_env() };
    if std::env::var_os("DUROXIDE_SEQUENCES").is_none() {
        options.sequences = 20;
    }
    let report = compare_with_memory(make, options).await;
    let report = report.unwrap_or_else(|difference| panic!("{difference}"));
    println!("{report}");
    assert!(report.operations >= 200 * report.sequences, "{report}");
}
