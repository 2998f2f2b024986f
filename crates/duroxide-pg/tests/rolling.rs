//! Rolling upgrades on one database.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use std::sync::Arc;

use duroxide::providers::Provider;
use duroxide_fleet::rolling;
use support::{TestSchema, stranger};

async fn open() -> Option<Arc<dyn Provider>> {
    let store: Arc<dyn Provider> = Arc::new(TestSchema::new()?.open().await);
    Some(store)
}

duroxide_fleet::rolling_upgrade_tests!(open());

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn wide_supported_range_drains_stuck_items_via_deserialization_error() {
    let Some(schema) = TestSchema::new() else { return };
    let damage = async |id: &str| {
        let sql = "UPDATE history SET body = '{\"type\":\"Unknown\"}'
             WHERE instance = (SELECT key FROM instance WHERE id = $1)";
        let client = stranger(&schema.config()).await;
        assert_ne!(client.execute(sql, &[&id]).await.unwrap(), 0);
    };
    let store = Arc::new(schema.open().await);
    let scenario = rolling::wide_supported_range_drains_stuck_items_via_deserialization_error;
    scenario(store, damage).await;
}
