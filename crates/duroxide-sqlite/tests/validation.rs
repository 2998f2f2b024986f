//! The whole validation suite: on a file and in memory, and instrumented.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used)]

mod support;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use duroxide::provider_validation::{ProviderFactory, run_all_validations};
use duroxide::providers::Provider;
use duroxide::providers::instrumented::InstrumentedProvider;
use duroxide_sqlite::{SqliteOptions, SqliteProvider};
use support::{Folder, stranger};

const LOCK_TIMEOUT: Duration = Duration::from_millis(200);

const ROT_HISTORY: &str = "UPDATE history SET body = '{bits rotted'
     WHERE instance = (SELECT key FROM instances WHERE id = ?1)";
const ROT_MESSAGES: &str = "UPDATE messages SET payload = '{bits rotted'
     WHERE instance = (SELECT key FROM instances WHERE id = ?1)";
const ROT_WORK: &str = "UPDATE work SET payload = '{bits rotted'
     WHERE instance = (SELECT key FROM instances WHERE id = ?1)";
/// The attempt of a lock still held is written down when it ends without a commit.
const COUNT_ATTEMPTS: &str = "SELECT ifnull(max(attempts), 0) FROM
     (SELECT q.instance, q.attempts + ifnull(m.state = 2 AND NOT q.late, 0) AS attempts
      FROM messages q LEFT JOIN mailboxes m ON m.instance = q.instance
      UNION ALL SELECT instance, attempts FROM hidden)
     WHERE instance = (SELECT key FROM instances WHERE id = ?1)";

/// Makes stores in files, and damages the latest.
#[derive(Default)]
struct FileFactory {
    folders: Mutex<Vec<Folder>>,
    instrumented: bool,
}

impl FileFactory {
    fn instrumented() -> Self {
        Self { instrumented: true, ..Self::default() }
    }

    fn new_folder(&self) -> String {
        let folder = Folder::new();
        let url = folder.url("store.db");
        self.folders.lock().unwrap().push(folder);
        url
    }

    async fn open(&self, url: &str, options: Option<SqliteOptions>) -> Arc<dyn Provider> {
        let store = Arc::new(SqliteProvider::new(url, options).await.unwrap());
        if self.instrumented { Arc::new(InstrumentedProvider::new(store, None)) } else { store }
    }

    fn latest(&self, damage: impl FnOnce(&rusqlite::Connection) -> usize) -> usize {
        let folders = self.folders.lock().unwrap();
        let latest = folders.last().expect("a store was made");
        damage(&stranger(&latest.file("store.db")))
    }
}

#[async_trait]
impl ProviderFactory for FileFactory {
    async fn create_provider(&self) -> Arc<dyn Provider> {
        self.open(&self.new_folder(), None).await
    }

    fn lock_timeout(&self) -> Duration {
        LOCK_TIMEOUT
    }

    async fn corrupt_instance_history(&self, instance: &str) {
        self.latest(|c| c.execute(ROT_HISTORY, [instance]).unwrap());
    }

    async fn get_max_attempt_count(&self, instance: &str) -> u32 {
        let count = |row: &rusqlite::Row<'_>| row.get::<_, i64>(0);
        self.latest(|c| c.query_row(COUNT_ATTEMPTS, [instance], count).unwrap() as usize) as u32
    }

    async fn create_second(&self, _first: &Arc<dyn Provider>) -> Option<Arc<dyn Provider>> {
        let url = self.folders.lock().unwrap().last()?.url("store.db");
        Some(self.open(&url, None).await)
    }

    async fn create_with_orphan_retention(&self, retention: Duration) -> Option<Arc<dyn Provider>> {
        let options =
            SqliteOptions { orphan_retention: Some(retention), ..SqliteOptions::default() };
        Some(self.open(&self.new_folder(), Some(options)).await)
    }

    async fn corrupt_queued_messages(&self, instance: &str) -> bool {
        0 < self.latest(|c| c.execute(ROT_MESSAGES, [instance]).unwrap())
    }

    async fn corrupt_queued_work(&self, instance: &str) -> bool {
        0 < self.latest(|c| c.execute(ROT_WORK, [instance]).unwrap())
    }
}

/// Makes stores in memory, and damages the latest.
#[cfg(feature = "test-hooks")]
#[derive(Default)]
struct MemoryFactory {
    latest: Mutex<Option<Arc<SqliteProvider>>>,
}

#[cfg(feature = "test-hooks")]
impl MemoryFactory {
    async fn open(&self, options: Option<SqliteOptions>) -> Arc<dyn Provider> {
        let store = SqliteProvider::new_in_memory_with_options(options).await.unwrap();
        let store = Arc::new(store);
        *self.latest.lock().unwrap() = Some(Arc::clone(&store));
        store
    }

    async fn tamper(&self, sql: &'static str, instance: &str) -> usize {
        let latest = self.latest.lock().unwrap().clone().expect("a store was made");
        latest.tamper(sql, instance).await.unwrap()
    }
}

#[cfg(feature = "test-hooks")]
#[async_trait]
impl ProviderFactory for MemoryFactory {
    async fn create_provider(&self) -> Arc<dyn Provider> {
        self.open(None).await
    }

    fn lock_timeout(&self) -> Duration {
        LOCK_TIMEOUT
    }

    async fn corrupt_instance_history(&self, instance: &str) {
        self.tamper(ROT_HISTORY, instance).await;
    }

    async fn get_max_attempt_count(&self, instance: &str) -> u32 {
        let latest = self.latest.lock().unwrap().clone().expect("a store was made");
        latest.count(COUNT_ATTEMPTS, instance).await.unwrap() as u32
    }

    async fn create_second(&self, first: &Arc<dyn Provider>) -> Option<Arc<dyn Provider>> {
        Some(Arc::clone(first)) // memory is shared by sharing the store
    }

    async fn create_with_orphan_retention(&self, retention: Duration) -> Option<Arc<dyn Provider>> {
        let options =
            SqliteOptions { orphan_retention: Some(retention), ..SqliteOptions::default() };
        Some(self.open(Some(options)).await)
    }

    async fn corrupt_queued_messages(&self, instance: &str) -> bool {
        0 < self.tamper(ROT_MESSAGES, instance).await
    }

    async fn corrupt_queued_work(&self, instance: &str) -> bool {
        0 < self.tamper(ROT_WORK, instance).await
    }
}

#[cfg(feature = "test-hooks")]
mod memory {
    use super::*;
    duroxide::provider_validation_tests!(MemoryFactory::default());
}

mod file {
    use super::*;
    duroxide::provider_validation_tests!(FileFactory::default());
}

/// Through the wrapper that measures: in one go, since each check is a test of its own above, and on a
/// file only, since the wrapper does not know.
#[tokio::test]
async fn instrumented_on_a_file() {
    let report = run_all_validations(&FileFactory::instrumented()).await;
    assert!(report.is_ok(), "{report}");
}
