//! Starts that are answered (R6.86 – R6.88): of many on several stores, one begins an instance.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use std::sync::Arc;
use std::time::Duration;

use duroxide::providers::{ExecutionMetadata, Provider};
use duroxide::{Client, Event, EventKind, IfEnded, StartOutcome};
use duroxide_pg::PostgresProvider;
use support::{TestSchema, stranger};
use tokio::sync::Barrier;

const LONG: Duration = Duration::from_secs(600);
/// On each store.
const PEOPLE: usize = 8;
const ROUNDS: usize = 20;

/// Two stores on one schema, as two nodes have them.
async fn two(schema: &TestSchema) -> [Arc<PostgresProvider>; 2] {
    [Arc::new(schema.open().await), Arc::new(schema.open().await)]
}

/// What many hear who start an id at once, on all of the stores: how many of them Started, Running, Ended,
/// and an error.
async fn crowd(stores: &[Arc<PostgresProvider>; 2], if_ended: IfEnded) -> [usize; 4] {
    let barrier = Arc::new(Barrier::new(2 * PEOPLE));
    let people: Vec<_> = (0..2 * PEOPLE)
        .map(|number| {
            let (client, barrier) = (Client::new(stores[number % 2].clone()), barrier.clone());
            tokio::spawn(async move {
                barrier.wait().await;
                client.start("i", "Main", "x").if_ended(if_ended).await
            })
        })
        .collect();
    let mut heard = [0; 4];
    for one in people {
        heard[match one.await.unwrap() {
            Ok(StartOutcome::Started) => 0,
            Ok(StartOutcome::Running) => 1,
            Ok(StartOutcome::Ended) => 2,
            Err(error) => {
                assert!(!error.is_retryable(), "{error}");
                3
            }
        }] += 1;
    }
    heard
}

/// Runs the only turn there is, which has exactly one start.
async fn run_to_the_end(store: &PostgresProvider) {
    let fetched = store.fetch_orchestration_item(LONG, Duration::ZERO, None).await.unwrap();
    let (item, token, _) = fetched.unwrap();
    assert_eq!(item.messages.len(), 1, "{:?}", item.messages);
    let event = |id, kind| Event::with_event_id(id, "i", 1, None, kind);
    let started = EventKind::OrchestrationStarted {
        name: "Main".to_owned(),
        version: "1.0.0".to_owned(),
        input: "x".to_owned(),
        parent_instance: None,
        parent_id: None,
        parent_execution_id: None,
        carry_forward_events: None,
        initial_custom_status: None,
    };
    let done = EventKind::OrchestrationCompleted { output: "out".to_owned() };
    let metadata = ExecutionMetadata {
        status: Some("Completed".to_owned()),
        output: Some("out".to_owned()),
        orchestration_name: Some("Main".to_owned()),
        orchestration_version: Some("1.0.0".to_owned()),
        ..ExecutionMetadata::default()
    };
    let events = vec![event(1, started), event(2, done)];
    let acked = store.ack_orchestration_item(&token, 1, events, vec![], vec![], metadata, vec![]);
    acked.await.unwrap();
    assert!(store.fetch_orchestration_item(LONG, Duration::ZERO, None).await.unwrap().is_none());
}

#[tokio::test(flavor = "multi_thread")]
async fn r6_88_of_many_starts_on_two_stores_one_begins() {
    let Some(schema) = TestSchema::new() else { return };
    let stores = two(&schema).await;
    for if_ended in [IfEnded::Keep, IfEnded::Refuse, IfEnded::Replace] {
        for round in 0..ROUNDS {
            // The first of a kind on an id that is free, the others by way of a replacement.
            let if_free = if round == 0 { if_ended } else { IfEnded::Replace };
            assert_eq!(crowd(&stores, if_free).await, [1, 2 * PEOPLE - 1, 0, 0], "{if_ended:?}");
            run_to_the_end(&stores[round % 2]).await;
            match if_ended {
                IfEnded::Keep => {
                    assert_eq!(crowd(&stores, if_ended).await, [0, 0, 2 * PEOPLE, 0]);
                }
                IfEnded::Refuse => {
                    assert_eq!(crowd(&stores, if_ended).await, [0, 0, 0, 2 * PEOPLE]);
                }
                IfEnded::Replace => {}
            }
        }
        stores[0].as_management_capability().unwrap().delete_instance("i", false).await.unwrap();
    }
}

// R6.88: an answer is given under the lock of the name, not before.
#[tokio::test(flavor = "multi_thread")]
async fn r6_88_a_start_waits_for_whoever_has_the_name() {
    let Some(schema) = TestSchema::new() else { return };
    let stores = two(&schema).await;
    assert_eq!(crowd(&stores, IfEnded::Keep).await[0], 1);
    run_to_the_end(&stores[0]).await;
    // Somebody is about to end what looks as if it ran, and nobody knows before that is committed.
    let mut other = stranger(&schema.config()).await;
    let both = "UPDATE execution SET status = 'Running'";
    other.batch_execute(both).await.unwrap();
    let pid = other.query_one("SELECT pg_backend_pid()", &[]).await.unwrap();
    let pid: i32 = pid.get(0);
    let change = other.transaction().await.unwrap();
    change.batch_execute("SELECT FROM mailbox FOR UPDATE").await.unwrap();
    change.batch_execute("UPDATE execution SET status = 'Completed'").await.unwrap();
    let client = Client::new(stores[1].clone());
    let asked = tokio::spawn(async move { client.start("i", "Main", "x").await });
    // Until it waits.
    let waits = "SELECT count(*) FROM pg_stat_activity WHERE $1 = ANY (pg_blocking_pids(pid))";
    let watcher = stranger(&schema.config()).await;
    while watcher.query_one(waits, &[&pid]).await.unwrap().get::<_, i64>(0) == 0 {
        assert!(!asked.is_finished(), "it did not wait");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    change.commit().await.unwrap();
    assert_eq!(asked.await.unwrap().unwrap(), StartOutcome::Ended);
}
