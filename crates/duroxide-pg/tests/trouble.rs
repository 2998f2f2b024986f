//! A database in trouble: nothing is lost, nothing happens twice, and it goes on by itself.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use std::sync::Arc;
use std::time::{Duration, Instant};

use duroxide::providers::Provider;
use duroxide::runtime::registry::ActivityRegistry;
use duroxide::runtime::{OrchestrationStatus, Runtime};
use duroxide::{ActivityContext, Client, EventKind, OrchestrationContext, OrchestrationRegistry};
use duroxide_pg::{PostgresProvider, ProviderConfig};
use support::TestSchema;

const PATIENCE: Duration = Duration::from_secs(60);
/// Connections that are killed. Not for ever: a machine that is too busy to connect between two kills
/// gets nothing done.
const KILLS: u64 = 60;

async fn echo(_: ActivityContext, input: String) -> Result<String, String> {
    Ok(input)
}

async fn chain(ctx: OrchestrationContext, input: String) -> Result<String, String> {
    let mut text = input;
    for step in 0..5 {
        text = ctx.schedule_activity("Echo", format!("{text}{step}")).await?;
    }
    ctx.schedule_timer(Duration::from_millis(10)).await;
    Ok(text)
}

/// A store whose connections can be told from others, with a runtime on it.
async fn begin(schema: &TestSchema) -> (ProviderConfig, Arc<Runtime>, Arc<PostgresProvider>) {
    let mut config = schema.config();
    schema.name().clone_into(&mut config.application_name);
    let store = Arc::new(PostgresProvider::new_with_config(config.clone()).await.unwrap());
    let activities = ActivityRegistry::builder().register("Echo", echo).build();
    let orchestrations = OrchestrationRegistry::builder().register("Chain", chain).build();
    let runtime = Runtime::start_with_store(store.clone(), activities, orchestrations).await;
    (config, runtime, store)
}

/// Starts one; an answer that was lost is asked for again, which is harmless for a start.
async fn start(client: &Client, id: &str) {
    let began = Instant::now();
    while let Err(error) = client.start_orchestration(id, "Chain", "x").await {
        assert!(began.elapsed() < PATIENCE, "{error}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// The result is right, and every step is recorded once.
async fn check(client: &Client, store: &PostgresProvider, id: &str) {
    let status = client.wait_for_orchestration(id, PATIENCE).await.unwrap();
    match status {
        OrchestrationStatus::Completed { output, .. } => assert_eq!(output, "x01234"),
        other => panic!("{id}: {other:?}"),
    }
    let history = loop {
        if let Ok(history) = store.read(id).await {
            break history;
        }
    };
    let done = |event: &&duroxide::Event| matches!(event.kind, EventKind::ActivityCompleted { .. });
    assert_eq!(history.iter().filter(done).count(), 5, "{id}");
    let ids: Vec<u64> = history.iter().map(|event| event.event_id).collect();
    assert_eq!(ids, (1..=ids.len() as u64).collect::<Vec<_>>());
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_killed_at_random_lose_and_double_nothing() {
    let Some(schema) = TestSchema::new() else { return };
    let (config, runtime, store) = begin(&schema).await;
    let stranger = support::stranger(&config).await;
    let killer = tokio::spawn(async move {
        const KILL: &str = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
             WHERE application_name = $1 ORDER BY random() LIMIT 1";
        let mut killed = 0;
        while killed < KILLS {
            killed += stranger.execute(KILL, &[&config.application_name]).await.unwrap();
            tokio::time::sleep(Duration::from_millis(15)).await;
        }
    });
    let client = Client::new(store.clone());
    let mut started = 0;
    // There is something to do for as long as connections are killed.
    while started < 60 || !killer.is_finished() {
        start(&client, &format!("i{started}")).await;
        started += 1;
    }
    for number in 0..started {
        check(&client, &store, &format!("i{number}")).await;
    }
    killer.await.unwrap();
    runtime.shutdown(None).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn deadlocks_timeouts_and_read_only_times_are_waited_out() {
    let Some(schema) = TestSchema::new() else { return };
    let (config, runtime, store) = begin(&schema).await;
    let client = Client::new(store.clone());
    let mut stranger = support::stranger(&config).await;
    for number in 0..5 {
        start(&client, &format!("i{number}")).await;
        // Somebody holds everything for a while.
        let held = stranger.transaction().await.unwrap();
        held.batch_execute("LOCK TABLE mailbox, work, history IN ACCESS EXCLUSIVE MODE")
            .await
            .unwrap();
        tokio::time::sleep(Duration::from_millis(300)).await;
        held.rollback().await.unwrap();
        // Plans are outdated from now on.
        let change = format!("ALTER TABLE history ADD COLUMN odd{number} integer");
        stranger.batch_execute(&change).await.unwrap();
    }
    for number in 0..5 {
        check(&client, &store, &format!("i{number}")).await;
    }
    runtime.shutdown(None).await;
}
