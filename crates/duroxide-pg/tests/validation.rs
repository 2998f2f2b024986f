//! The whole validation suite.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used)]

mod support;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use duroxide::provider_validation::ProviderFactory;
use duroxide::providers::{Provider, TagFilter};
use duroxide_pg::{PostgresProvider, ProviderConfig};
use support::reuse::ReusedSchema;

const LEASE: Duration = Duration::from_millis(500);

const ROT_HISTORY: &str = "UPDATE history SET body = '{bits rotted'
     WHERE instance = (SELECT key FROM instance WHERE id = $1)";
const ROT_MESSAGES: &str = "UPDATE message SET payload = '{bits rotted'
     WHERE instance = (SELECT key FROM instance WHERE id = $1)";
const ROT_WORK: &str = "UPDATE work SET payload = '{bits rotted'
     WHERE instance = (SELECT key FROM instance WHERE id = $1)";
/// An attempt that is under way is written down when it has failed.
const COUNT_ATTEMPTS: &str = "SELECT coalesce(max(a.attempts), 0) FROM (
         SELECT q.instance, q.attempts
             + (m.token IS NOT NULL AND NOT m.counted AND q.seq = ANY (m.taken))::integer AS attempts
         FROM message q JOIN mailbox m ON m.instance = q.instance
         UNION ALL SELECT instance, attempts FROM hidden) a
     WHERE a.instance = (SELECT key FROM instance WHERE id = $1)";

/// Makes stores in schemas of their own, and damages the latest.
struct Factory {
    schemas: Mutex<Vec<ReusedSchema>>,
}

impl Factory {
    /// `None` if there is no server.
    fn new() -> Option<Self> {
        support::has_server().then(|| Self { schemas: Mutex::default() })
    }

    async fn new_schema(&self) -> ProviderConfig {
        let schema = ReusedSchema::take().await.expect("there is a server");
        let config = schema.config();
        self.schemas.lock().unwrap().push(schema);
        config
    }

    async fn open(&self, config: ProviderConfig) -> Arc<dyn Provider> {
        let store = PostgresProvider::new_with_config(config).await.unwrap();
        // A first look on a new connection takes a while on a busy machine, and leases are short.
        let nothing = store.fetch_work_item(LEASE, Duration::ZERO, None, &TagFilter::None).await;
        assert!(nothing.unwrap().is_none());
        Arc::new(store)
    }

    async fn stranger(&self) -> tokio_postgres::Client {
        let latest = self.schemas.lock().unwrap().last().unwrap().config();
        support::stranger(&latest).await
    }
}

#[async_trait]
impl ProviderFactory for Factory {
    async fn create_provider(&self) -> Arc<dyn Provider> {
        self.open(self.new_schema().await).await
    }

    fn lock_timeout(&self) -> Duration {
        LEASE
    }

    async fn corrupt_instance_history(&self, instance: &str) {
        self.stranger().await.execute(ROT_HISTORY, &[&instance]).await.unwrap();
    }

    async fn get_max_attempt_count(&self, instance: &str) -> u32 {
        let row = self.stranger().await.query_one(COUNT_ATTEMPTS, &[&instance]).await.unwrap();
        u32::try_from(row.get::<_, i64>(0)).unwrap()
    }

    async fn create_second(&self, _first: &Arc<dyn Provider>) -> Option<Arc<dyn Provider>> {
        let latest = self.schemas.lock().unwrap().last()?.config();
        Some(self.open(latest).await)
    }

    async fn create_with_orphan_retention(&self, retention: Duration) -> Option<Arc<dyn Provider>> {
        let mut config = self.new_schema().await;
        config.orphan_retention = retention;
        Some(self.open(config).await)
    }

    async fn corrupt_queued_messages(&self, instance: &str) -> bool {
        0 < self.stranger().await.execute(ROT_MESSAGES, &[&instance]).await.unwrap()
    }

    async fn corrupt_queued_work(&self, instance: &str) -> bool {
        0 < self.stranger().await.execute(ROT_WORK, &[&instance]).await.unwrap()
    }
}

duroxide::provider_validation_tests!(match Factory::new() {
    Some(factory) => factory,
    None => return,
});
