//! Databases whose defaults are unusual: everything means what it means elsewhere.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use duroxide::providers::{
    ExecutionMetadata, InstanceFilter, Provider, ProviderAdmin, PruneOptions, TurnCommit, WorkItem,
};
use duroxide::runtime::Runtime;
use duroxide::runtime::registry::ActivityRegistry;
use duroxide::{
    ActivityContext, Client, Event, EventKind, OrchestrationContext, OrchestrationRegistry,
};
use duroxide_pg::{PostgresProvider, ProviderConfig};
use duroxide_pg_testserver::{Pooler, shared};
use support::stranger;
use support::words::start;
use tokio_postgres::{Client as Stranger, NoTls};

const LOCK: Duration = Duration::from_secs(600);
const LONG: Duration = Duration::from_secs(110);

/// Whatever a database may say about those who use it.
const ODD: [&str; 9] = [
    "statement_timeout = '1s'",
    "lock_timeout = '1ms'",
    "idle_in_transaction_session_timeout = '1s'",
    "TimeZone = 'Asia/Kathmandu'",
    "DateStyle = 'German'",
    "IntervalStyle = 'sql_standard'",
    "standard_conforming_strings = off",
    "extra_float_digits = -15",
    "search_path = odd, pg_catalog",
];
/// Functions that stand before the server's own if the search path says so.
const ODD_FUNCTIONS: &str = "CREATE SCHEMA odd;
    CREATE FUNCTION odd.cardinality(bigint[]) RETURNS integer LANGUAGE sql AS 'SELECT 0';
    CREATE FUNCTION odd.clock_timestamp() RETURNS timestamptz LANGUAGE sql
        AS 'SELECT ''epoch''::timestamptz'";

/// A database of its own, which is there as long as the server of all tests.
async fn database(settings: &[&str]) -> Option<ProviderConfig> {
    static MADE: AtomicU32 = AtomicU32::new(0);
    let url = shared()?.url();
    let number = MADE.fetch_add(1, Ordering::Relaxed);
    let name = format!("odd_{}_{number}", std::process::id());
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.unwrap();
    tokio::spawn(connection);
    client.batch_execute(&format!("CREATE DATABASE {name}")).await.unwrap();
    let (server, _) = url.rsplit_once('/').unwrap();
    let config = ProviderConfig::new(format!("{server}/{name}"));
    let inside = tokio_postgres::connect(&config.url, NoTls).await.unwrap();
    tokio::spawn(inside.1);
    inside.0.batch_execute(ODD_FUNCTIONS).await.unwrap();
    for setting in settings {
        client.batch_execute(&format!("ALTER DATABASE {name} SET {setting}")).await.unwrap();
    }
    Some(config)
}

/// Waits until somebody waits for what this connection has locked.
async fn until_blocked(db: &Stranger) {
    let waiting = "SELECT count(*) FROM pg_catalog.pg_locks WHERE NOT granted
         AND pg_catalog.pg_backend_pid() = ANY (pg_catalog.pg_blocking_pids(pid))";
    let began = Instant::now();
    while db.query_one(waiting, &[]).await.unwrap().get::<_, i64>(0) == 0 {
        assert!(began.elapsed() < LONG, "nobody waits");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

/// A message that comes while a commit waits for it makes a turn: the commit sees what came before it.
async fn a_message_meets_a_commit(config: &ProviderConfig, direct: &ProviderConfig) {
    let store = Arc::new(PostgresProvider::new_with_config(config.clone()).await.unwrap());
    let db = stranger(direct).await;
    db.batch_execute("SET search_path = pg_catalog").await.unwrap();
    store.enqueue_for_orchestrator(start("i"), None).await.unwrap();
    let turn = store.fetch_turn(LOCK, LONG, None).await.unwrap().unwrap();
    let message = r#"{"QueueMessage":{"instance":"i","name":"q","data":"1"}}"#;
    let send = format!(
        "BEGIN ISOLATION LEVEL READ COMMITTED; SELECT duroxide.enqueue_messages(ARRAY['i'],
             ARRAY[2]::smallint[], ARRAY[0]::bigint[], ARRAY['{message}'], NULL, 3600000, false)"
    );
    db.batch_execute(&send).await.unwrap();
    let committing = Arc::clone(&store);
    let committed = tokio::spawn(async move {
        let kind = EventKind::OrchestrationStarted {
            name: "Main".into(),
            version: "1.0.0".into(),
            input: "i".into(),
            parent_instance: None,
            parent_id: None,
            parent_execution_id: None,
            carry_forward_events: None,
            initial_custom_status: None,
        };
        let metadata = ExecutionMetadata {
            orchestration_name: Some("Main".into()),
            orchestration_version: Some("1.0.0".into()),
            ..ExecutionMetadata::default()
        };
        let history_delta = vec![Event::with_event_id(1, "i", 1, None, kind)];
        let commit =
            TurnCommit { execution_id: 1, history_delta, metadata, ..TurnCommit::default() };
        committing.commit_turn(&turn.lock_token, commit).await.map_err(|refused| refused.error)
    });
    until_blocked(&db).await;
    db.batch_execute("COMMIT").await.unwrap();
    committed.await.unwrap().unwrap();
    let turn = store.fetch_turn(LOCK, LONG, None).await.unwrap().expect("the message");
    assert!(matches!(&turn.item.messages[..], [WorkItem::QueueMessage { .. }]));
    store.abandon_orchestration_item(&turn.lock_token, None, true).await.unwrap();
    store.delete_instance("i", true).await.unwrap();
}

async fn echo(_: ActivityContext, input: String) -> Result<String, String> {
    Ok(input)
}

async fn chain(ctx: OrchestrationContext, input: String) -> Result<String, String> {
    ctx.schedule_timer(Duration::from_millis(20)).await;
    let echoed = ctx.schedule_activity("Echo", input).await?;
    let begun = ctx.utc_now().await?;
    let now = std::time::SystemTime::now();
    let hour = Duration::from_secs(3600);
    if now.duration_since(begun).is_ok_and(|late| hour < late) {
        return Err("the clock is wrong".to_owned());
    }
    Ok(echoed)
}

/// Workflows run, and are cleaned up.
async fn workflows_run(config: &ProviderConfig) {
    let store = Arc::new(PostgresProvider::new_with_config(config.clone()).await.unwrap());
    let activities = ActivityRegistry::builder().register("Echo", echo).build();
    let orchestrations = OrchestrationRegistry::builder().register("Chain", chain).build();
    let runtime = Runtime::start_with_store(store.clone(), activities, orchestrations).await;
    let client = Client::new(store.clone());
    let text = r"a \ b 'c' \n \\";
    for number in 0..5 {
        client.start_orchestration(&format!("w{number}"), "Chain", text).await.unwrap();
    }
    for number in 0..5 {
        let id = format!("w{number}");
        let output: Result<String, String> =
            client.wait_for_orchestration_typed(&id, LONG).await.unwrap();
        assert_eq!(output.unwrap(), text);
    }
    runtime.shutdown(None).await;
    let all = InstanceFilter::default;
    store.prune_executions_bulk(all(), PruneOptions::default()).await.unwrap();
    assert_eq!(store.delete_instance_bulk(all()).await.unwrap().instances_deleted, 5);
}

async fn works(settings: &[&str], is_pooled: bool) {
    let Some(direct) = database(settings).await else { return };
    let mut config = direct.clone();
    config.through_pooler = is_pooled;
    config.poll_interval = Duration::from_millis(10);
    a_message_meets_a_commit(&config, &direct).await;
    workflows_run(&config).await;
    if !is_pooled {
        return;
    }
    // And where nothing outlives a transaction indeed.
    let Some(pooler) = Pooler::start(&direct.url, 3).unwrap() else { return };
    pooler.url().clone_into(&mut config.url);
    a_message_meets_a_commit(&config, &direct).await;
    workflows_run(&config).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r8_171_repeatable_read_by_default_changes_nothing() {
    works(&["default_transaction_isolation = 'repeatable read'"], false).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r8_171_serializable_by_default_changes_nothing() {
    works(&["default_transaction_isolation = 'serializable'"], false).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r8_171_repeatable_read_by_default_changes_nothing_behind_a_pooler() {
    works(&["default_transaction_isolation = 'repeatable read'"], true).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r8_171_other_defaults_change_nothing() {
    works(&ODD, false).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r8_171_other_defaults_change_nothing_behind_a_pooler() {
    works(&ODD, true).await;
}

// Somebody who makes a database read-only means it: this is not overruled, and waited for.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_that_is_read_only_by_default_stays_so_and_is_named() {
    let Some(config) = database(&[]).await else { return };
    let store = PostgresProvider::new_with_config(config.clone()).await.unwrap();
    drop(store);
    let name = config.url.rsplit_once('/').unwrap().1.to_owned();
    let db = stranger(&config).await;
    let set = format!("ALTER DATABASE {name} SET default_transaction_read_only = on");
    db.batch_execute(&set).await.unwrap();
    let store = PostgresProvider::new_with_config(config).await.unwrap();
    let refused = store.enqueue_for_orchestrator(start("i"), None).await.unwrap_err();
    assert!(refused.is_retryable() && refused.to_string().contains("25006"), "{refused}");
    let reset = format!("ALTER DATABASE {name} RESET default_transaction_read_only");
    db.batch_execute(&reset).await.unwrap();
    store.enqueue_for_orchestrator(start("i"), None).await.unwrap();
}
