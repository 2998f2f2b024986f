//! Schemas that several tests use, one after the other: making one takes longer than most tests.

use std::time::{Duration, SystemTime};

use duroxide_pg::{PostgresProvider, ProviderConfig};
use duroxide_pg_testserver::shared;
use tokio_postgres::{Client, NoTls};

/// Tables that tests leave something in.
const FILLED: &str = "SELECT string_agg(format('%I.%I', schemaname, tablename), ', ')
     FROM pg_tables WHERE schemaname = $1 AND tablename <> 'migration'";
/// Connections of whoever had the schema before and has died: the server may finish what they asked.
const OTHERS: &str = "SELECT FROM pg_stat_activity WHERE application_name = $1";

/// An empty schema that nobody else uses until this is dropped.
pub(crate) struct ReusedSchema {
    config: ProviderConfig,
    /// Its connection holds the lock on the name.
    _lock: Client,
}

impl ReusedSchema {
    /// The first of those of this build that is free, made if it does not exist; `None` if there is no
    /// server.
    pub(crate) async fn take() -> Option<Self> {
        let url = shared()?.url();
        let (client, connection) = tokio_postgres::connect(url, NoTls).await.unwrap();
        tokio::spawn(connection);
        let build = build();
        for number in 0.. {
            let name = format!("reused_{build}_{number}");
            let lock = "SELECT pg_try_advisory_lock(hashtextextended($1, 0))";
            if client.query_one(lock, &[&name]).await.unwrap().get(0) {
                let mut config = ProviderConfig::new(url);
                config.schema = name.clone();
                config.application_name = name;
                empty(&client, &config).await;
                return Some(Self { config, _lock: client });
            }
        }
        None
    }

    pub(crate) fn config(&self) -> ProviderConfig {
        self.config.clone()
    }
}

impl Drop for ReusedSchema {
    fn drop(&mut self) {
        super::remove_if_it_would_stay(self.config());
    }
}

async fn empty(client: &Client, config: &ProviderConfig) {
    let name = &config.schema;
    while !client.query(OTHERS, &[name]).await.unwrap().is_empty() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let tables: Option<String> = client.query_one(FILLED, &[name]).await.unwrap().get(0);
    match tables {
        Some(tables) => client.batch_execute(&format!("TRUNCATE {tables}")).await.unwrap(),
        None => drop(PostgresProvider::new_with_config(config.clone()).await.unwrap()),
    }
}

/// Tells builds apart, whose schemas may differ.
fn build() -> u128 {
    let program = std::env::current_exe().unwrap().metadata().unwrap();
    program.modified().unwrap().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_nanos()
}
