//! Schemas of their own for tests, on a server that all tests share; and the database as a stranger
//! sees it.
#![allow(dead_code)] // Each test binary uses a part.

pub(crate) mod reuse;
pub(crate) mod told;
pub(crate) mod words;

use std::sync::atomic::{AtomicU32, Ordering};

use duroxide_pg::{PostgresProvider, ProviderConfig};
use duroxide_pg_testserver::{URL_VARIABLE, shared};
use tokio_postgres::{Client, NoTls};

/// Whether there is a server. If not, that has been said.
pub(crate) fn has_server() -> bool {
    shared().is_some()
}

/// A schema of its own. On a server that outlives the tests it is removed when dropped.
#[derive(Debug)]
pub(crate) struct TestSchema {
    url: &'static str,
    name: String,
}

impl TestSchema {
    /// `None` if there is no server: the test is to be skipped.
    pub(crate) fn new() -> Option<Self> {
        static MADE: AtomicU32 = AtomicU32::new(0);
        let url = shared()?.url();
        let number = MADE.fetch_add(1, Ordering::Relaxed);
        let since_1970 = std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap().as_millis();
        Some(Self { url, name: format!("t_{}_{since_1970}_{number}", std::process::id()) })
    }

    /// One with a name of the test's choice, which no other test has.
    pub(crate) fn named(name: &str) -> Option<Self> {
        Some(Self { url: shared()?.url(), name: name.to_owned() })
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn config(&self) -> ProviderConfig {
        let mut config = ProviderConfig::new(self.url);
        self.name.clone_into(&mut config.schema);
        config
    }

    pub(crate) async fn open(&self) -> PostgresProvider {
        PostgresProvider::new_with_config(self.config()).await.unwrap()
    }
}

/// A connection that knows nothing of the provider, in the schema of a store.
pub(crate) async fn stranger(config: &ProviderConfig) -> Client {
    let (client, connection) = tokio_postgres::connect(&config.url, NoTls).await.unwrap();
    tokio::spawn(connection);
    let quoted = config.schema.replace('"', "\"\"");
    client.batch_execute(&format!("SET search_path = \"{quoted}\"")).await.unwrap();
    client
}

impl Drop for TestSchema {
    fn drop(&mut self) {
        remove_if_it_would_stay(self.config());
    }
}

/// Removes a schema on a server that outlives the tests.
pub(crate) fn remove_if_it_would_stay(config: ProviderConfig) {
    if std::env::var_os(URL_VARIABLE).is_none() {
        return;
    }
    let clean_up = move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.unwrap().block_on(async {
            let store = PostgresProvider::new_with_config(config).await;
            store.unwrap().cleanup_schema().await.unwrap();
        });
    };
    std::thread::spawn(clean_up).join().unwrap();
}
