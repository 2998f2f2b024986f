//! Rolling upgrades on the store in memory.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::sync::Arc;

use duroxide::providers::Provider;
use duroxide::providers::memory::MemoryProvider;

async fn open() -> Option<Arc<dyn Provider>> {
    Some(Arc::new(MemoryProvider::new()))
}

duroxide_fleet::rolling_upgrade_tests!(open());
