//! A server with no connection to give, one that is read-only, statements that take too long, and
//! nobody who listens.

use std::time::Duration;

use duroxide::providers::{Provider, WorkItem};
use duroxide_fleet::{SOON, alone};
use duroxide_pg::{PostgresProvider, ProviderConfig};
use tokio_postgres::NoTls;

use crate::site::Site;
use crate::store::{SETTINGS, config, on_a_thread};
use crate::support::{TestSchema, stranger};

fn event(instance: &str) -> WorkItem {
    WorkItem::CancelInstance { instance: instance.to_owned(), reason: "enough".to_owned() }
}

/// A URL with another user, who is nobody special.
fn as_nobody(url: &str) -> String {
    let (_, address) = url.rsplit_once('@').unwrap();
    format!("postgres://nobody:secret@{address}")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_without_a_free_connection_is_named_and_waited_for() {
    let Some(site) = Site::own(&["max_connections = 12"]) else { return };
    let server = site.server();
    server.psql("postgres", "CREATE ROLE nobody LOGIN PASSWORD 'secret'").unwrap();
    server.psql("postgres", "GRANT CREATE ON DATABASE postgres TO nobody").unwrap();
    let mut config = ProviderConfig::new(as_nobody(&server.url()));
    config.connect_timeout = Duration::from_secs(2);
    let store = PostgresProvider::new_with_config(config.clone()).await.unwrap();
    store.enqueue_for_orchestrator(event("before"), None).await.unwrap();
    // Whoever comes first takes what is left, and what the store gives back.
    let end = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'nobody'";
    server.psql("postgres", end).unwrap();
    let mut hogs = Vec::new();
    while let Ok((hog, connection)) = tokio_postgres::connect(&config.url, NoTls).await {
        tokio::spawn(connection);
        hogs.push(hog);
    }
    let refused = PostgresProvider::new_with_config(config).await;
    if let Err(refused) = refused {
        assert!(refused.is_retryable(), "{refused}");
        let text = refused.to_string();
        assert!(text.contains("connection") && text.contains("53300"), "{text}");
    }
    drop(hogs);
    let began = tokio::time::Instant::now();
    while let Err(error) = store.enqueue_for_orchestrator(event("after"), None).await {
        assert!(error.is_retryable(), "{error}");
        assert!(began.elapsed() < SOON, "{error}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[test]
fn a_server_that_is_read_only_for_a_while_is_waited_for() {
    let _turn = alone();
    let Some(site) = Site::own(&[]) else { return };
    let crew = site.start(&[]);
    site.fault("read-only");
    let set = |value: &str| {
        let statements = [
            "SET default_transaction_read_only = off",
            &format!("ALTER SYSTEM SET default_transaction_read_only = {value}"),
            "SELECT pg_reload_conf()",
        ];
        on_a_thread(async {
            let client = stranger(&config(&site.stage.folder)).await;
            for statement in statements {
                client.batch_execute(statement).await.unwrap();
            }
        });
    };
    set("on");
    let began = std::time::Instant::now();
    while !site.server().log().contains("read-only transaction") {
        assert!(began.elapsed() < SOON, "nobody was refused");
        std::thread::sleep(Duration::from_millis(20));
    }
    let refused = on_a_thread(async {
        let store = PostgresProvider::new_with_config(config(&site.stage.folder)).await.unwrap();
        store.enqueue_for_orchestrator(event("x"), None).await.unwrap_err()
    });
    assert!(refused.is_retryable() && refused.to_string().contains("read-only"), "{refused}");
    set("off");
    site.fault_over();
    site.progress(16);
    site.finish(crew, "read-only");
}

#[test]
fn statements_that_take_too_long_are_tried_again() {
    let _turn = alone();
    let Some(site) = Site::shared() else { return };
    let crew = site.start(&[(SETTINGS, "timeout_ms=200")]);
    let schema = config(&site.stage.folder).schema;
    for table in ["message", "mailbox", "work", "history"] {
        site.fault("a table locked");
        on_a_thread(async {
            let client = stranger(&config(&site.stage.folder)).await;
            let lock =
                format!("BEGIN; LOCK TABLE \"{schema}\".{table}; SELECT pg_sleep(0.6); COMMIT");
            client.batch_execute(&lock).await.unwrap();
        });
    }
    site.progress(16);
    site.finish(crew, "statement timeouts");
}

#[test]
fn who_does_not_listen_is_slower_and_no_more() {
    let _turn = alone();
    let Some(site) = Site::shared() else { return };
    let crew = site.start(&[(SETTINGS, "listen=off,pool=3")]);
    site.progress(32);
    site.finish(crew, "nobody listens");
}

// A connection that listens is one like others: when it is lost, it is found again, and meanwhile the
// store is asked.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_listener_that_was_ended_comes_back() {
    let Some(schema) = TestSchema::new() else { return };
    let mut config = schema.config();
    config.application_name = schema.name().to_owned();
    let (one, two) =
        (schema.open().await, PostgresProvider::new_with_config(config).await.unwrap());
    let stranger = stranger(&schema.config()).await;
    // Nobody could wait for the end of the poll: the turn comes within it, or not in time.
    let (lock, poll) = (Duration::from_secs(600), Duration::from_secs(600));
    for round in 0..4 {
        let instance = format!("round-{round}");
        let start = WorkItem::StartOrchestration {
            instance: instance.clone(),
            orchestration: "Main".to_owned(),
            input: String::new(),
            version: Some("1.0.0".to_owned()),
            parent_instance: None,
            parent_id: None,
            parent_execution_id: None,
            execution_id: 1,
        };
        let waits = async {
            let began = tokio::time::Instant::now();
            while two.fetch_orchestration_item(lock, poll, None).await.ok().flatten().is_none() {
                assert!(began.elapsed() < SOON, "round {round}: nothing came");
            }
        };
        let sends = async {
            let end = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
                 WHERE application_name = $1 AND (query LIKE 'LISTEN%' OR query LIKE '%pulse%')";
            let began = tokio::time::Instant::now();
            while stranger.query_one(end, &[&schema.name()]).await.unwrap().get::<_, i64>(0) == 0 {
                assert!(began.elapsed() < SOON, "round {round}: nobody listens");
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            one.enqueue_for_orchestrator(start, None).await.unwrap();
        };
        tokio::join!(tokio::time::timeout(SOON, waits), sends).0.expect("the turn");
    }
}
