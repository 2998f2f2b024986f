//! The schema of a folder: how a fleet opens it, and what its tables say.
#![allow(dead_code)] // Each test binary uses a part.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use duroxide::providers::Provider;
use duroxide_fleet::{End, Event, Store, Tables};
use duroxide_pg::{PostgresProvider, ProviderConfig};
use tokio_postgres::Client;

use crate::support::stranger;

/// The kind of store of these tests.
pub(crate) static POSTGRES: Postgres = Postgres;
/// If set, a process reaches the server there.
pub(crate) const URL: &str = "FLEET_PG_URL";
/// If set, settings of a process's store: `listen=off,pool=2`.
pub(crate) const SETTINGS: &str = "FLEET_PG_SETTINGS";
/// A file in the folder that says where the server is, if not where all tests are.
pub(crate) const URL_FILE: &str = "server-url";

/// A schema that has the name of the folder.
pub(crate) struct Postgres;

#[async_trait]
impl Store for Postgres {
    async fn open(&self, folder: &Path) -> Arc<dyn Provider> {
        let mut config = config(folder);
        if let Ok(url) = std::env::var(URL) {
            config.url = url;
        }
        if let Ok(settings) = std::env::var(SETTINGS) {
            settings.split(',').for_each(|setting| change(&mut config, setting));
        }
        Arc::new(PostgresProvider::new_with_config(config).await.unwrap())
    }

    fn read(&self, folder: &Path) -> Tables {
        on_a_thread(async {
            let client = stranger(&config(folder)).await;
            let leftovers = unfinished(&client).await;
            Tables { ends: ends(&client).await, events: events(&client).await, leftovers }
        })
    }

    fn open_work(&self, folder: &Path) -> i64 {
        on_a_thread(async { count(&stranger(&config(folder)).await, OPEN_WORK).await })
    }
}

/// How the schema of a folder is reached.
pub(crate) fn config(folder: &Path) -> ProviderConfig {
    let url = std::fs::read_to_string(folder.join(URL_FILE));
    let url = url.unwrap_or_else(|_| duroxide_pg_testserver::shared().unwrap().url().to_owned());
    let mut config = ProviderConfig::new(url);
    config.schema = folder.file_name().unwrap().to_string_lossy().into_owned();
    // By this the connections of a store are told from those of others.
    config.application_name = config.schema.clone();
    config
}

fn change(config: &mut ProviderConfig, setting: &str) {
    let (name, value) = setting.split_once('=').unwrap();
    match name {
        "listen" => config.listen = value == "on",
        "pooler" => config.through_pooler = value == "on",
        "pool" => config.pool_size = value.parse().unwrap(),
        "timeout_ms" => config.statement_timeout = Duration::from_millis(value.parse().unwrap()),
        other => panic!("no such setting: {other}"),
    }
}

/// Waits for something, wherever it is called.
pub(crate) fn on_a_thread<T: Send>(work: impl Future<Output = T> + Send) -> T {
    std::thread::scope(|scope| {
        let wait = || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.unwrap().block_on(work)
        };
        scope.spawn(wait).join().unwrap()
    })
}

const OPEN_WORK: &str = "SELECT (SELECT count(*) FROM work) + (SELECT count(*) FROM message)
     + (SELECT count(*) FROM mailbox WHERE state IN (1, 2))
     + (SELECT count(*) FROM execution WHERE status = 'Running')";

async fn unfinished(client: &Client) -> Vec<String> {
    let counts = [
        ("activities queued", "SELECT count(*) FROM work"),
        ("messages", "SELECT count(*) FROM message"),
        ("mailboxes with a lock", "SELECT count(*) FROM mailbox WHERE state <> 0"),
        ("dead letters", "SELECT count(*) FROM dead_letter"),
        ("running executions", "SELECT count(*) FROM execution WHERE status = 'Running'"),
        (
            "messages due and not delivered",
            "SELECT count(*) FROM hidden
             WHERE visible_at < extract(epoch FROM clock_timestamp()) * 1000 - 1000",
        ),
    ];
    let mut problems = Vec::new();
    for (what, sql) in counts {
        let count = count(client, sql).await;
        if count != 0 {
            problems.push(format!("{count} {what} left"));
        }
    }
    problems
}

async fn ends(client: &Client) -> HashMap<String, End> {
    let sql = "SELECT i.id, e.status, e.output FROM instance i
         JOIN execution e ON e.instance = i.key AND e.number = i.execution";
    let rows = client.query(sql, &[]).await.unwrap();
    let end = |row: &tokio_postgres::Row| End { status: row.get(1), output: row.get(2) };
    rows.iter().map(|row| (row.get(0), end(row))).collect()
}

async fn events(client: &Client) -> Vec<Event> {
    let sql = "SELECT i.id, h.execution, h.event, h.source, h.at, h.body
         FROM history h JOIN instance i ON i.key = h.instance";
    let rows = client.query(sql, &[]).await.unwrap();
    let event = |row: &tokio_postgres::Row| Event {
        instance: row.get(0),
        execution: row.get::<_, i64>(1) as u64,
        event: row.get::<_, i64>(2) as u64,
        source: row.get::<_, Option<i64>>(3).map(|source| source as u64),
        at_ms: row.get::<_, i64>(4) as u64,
        body: serde_json::from_str(row.get(5)).unwrap(),
    };
    rows.iter().map(event).collect()
}

async fn count(client: &Client, sql: &str) -> i64 {
    client.query_one(sql, &[]).await.unwrap().get(0)
}
