//! Rolling upgrades on one file.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use std::sync::Arc;

use duroxide::providers::Provider;
use duroxide_fleet::rolling;
use duroxide_sqlite::SqliteProvider;
use support::{Folder, stranger};

async fn open() -> Option<Arc<dyn Provider>> {
    Some(Arc::new(SqliteProvider::new_in_memory().await.unwrap()))
}

duroxide_fleet::rolling_upgrade_tests!(open());

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn wide_supported_range_drains_stuck_items_via_deserialization_error() {
    let folder = Folder::fast();
    let store = SqliteProvider::new(&folder.url("a.db"), None).await.unwrap();
    let damage = async |id: &str| {
        let sql = "UPDATE history SET body = '{\"type\":\"Unknown\"}'
             WHERE instance = (SELECT key FROM instances WHERE id = ?1)";
        assert_ne!(stranger(&folder.file("a.db")).execute(sql, [id]).unwrap(), 0);
    };
    let scenario = rolling::wide_supported_range_drains_stuck_items_via_deserialization_error;
    scenario(Arc::new(store), damage).await;
}
