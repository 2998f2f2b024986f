//! The tokio runtimes a store is used on: several, one after the other, and one that stands still.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use duroxide::providers::{Provider, TagFilter};
use duroxide::runtime::Runtime;
use duroxide::runtime::registry::ActivityRegistry;
use duroxide::{ActivityContext, Client, OrchestrationRegistry, RuntimeOptions};
use duroxide_pg::PostgresProvider;
use support::TestSchema;
use support::words::start;
use tokio::runtime::Builder;

const LOCK: Duration = Duration::from_secs(60);
const PATIENCE: Duration = Duration::from_secs(60);
/// A lease that runs out while code blocks.
const LEASE: Duration = Duration::from_secs(5);

fn several_threads() -> tokio::runtime::Runtime {
    Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap()
}

fn one_thread() -> tokio::runtime::Runtime {
    Builder::new_current_thread().enable_all().build().unwrap()
}

/// Uses a store for everything: queues, fetches, locks, reads.
async fn use_it(store: &PostgresProvider, id: &str) {
    let work = async {
        let none = store.fetch_work_item(LOCK, Duration::from_millis(20), None, &TagFilter::Any);
        assert!(none.await.unwrap().is_none());
        store.enqueue_for_orchestrator(start(id), None).await.unwrap();
        let turn = store.fetch_turn(LOCK, PATIENCE, None).await.unwrap().unwrap();
        store.renew_orchestration_item_lock(&turn.lock_token, LOCK).await.unwrap();
        store.abandon_orchestration_item(&turn.lock_token, Some(LOCK), true).await.unwrap();
        store.read(id).await.unwrap();
    };
    tokio::time::timeout(PATIENCE, work).await.expect("an answer");
}

#[test]
fn a_store_goes_on_when_the_runtime_it_was_opened_on_has_ended() {
    let Some(schema) = TestSchema::new() else { return };
    for round in 0..4_u64 {
        let first = several_threads();
        let store = Arc::new(first.block_on(schema.open()));
        first.block_on(use_it(&store, "first"));
        // Somebody is at it all the time, so that something is under way at the end.
        let busy = Arc::clone(&store);
        first.spawn(async move {
            loop {
                let looked = busy.fetch_turn(LOCK, Duration::ZERO, None).await;
                drop(looked);
            }
        });
        std::thread::sleep(Duration::from_millis(20 + round));
        first.shutdown_background();
        several_threads().block_on(use_it(&store, "second"));
        one_thread().block_on(use_it(&store, "third"));
    }
}

#[test]
fn who_waits_on_another_runtime_goes_on_waiting() {
    let Some(schema) = TestSchema::new() else { return };
    let (first, second) = (several_threads(), several_threads());
    let store = Arc::new(first.block_on(schema.open()));
    first.block_on(use_it(&store, "first"));
    let fetching = Arc::clone(&store);
    let fetched = second.spawn(async move {
        fetching.fetch_work_item(LOCK, PATIENCE, None, &TagFilter::Any).await
    });
    std::thread::sleep(Duration::from_millis(50));
    drop(first);
    let (tell, told) = std::sync::mpsc::channel();
    second.spawn(async move {
        store.enqueue_for_worker(support::words::activity("first", 2)).await.unwrap();
        let found = fetched.await.unwrap().unwrap();
        tell.send((found.is_some(), store)).unwrap();
    });
    assert!(told.recv_timeout(PATIENCE).expect("an answer").0);
}

#[test]
fn a_runtime_that_stands_still_keeps_nobody_waiting() {
    let Some(schema) = TestSchema::new() else { return };
    let first = one_thread();
    let store = Arc::new(first.block_on(schema.open()));
    first.block_on(use_it(&store, "first"));
    // It is still there, and nobody runs it.
    several_threads().block_on(use_it(&store, "second"));
    drop(first);
}

fn short_leases() -> RuntimeOptions {
    RuntimeOptions {
        orchestrator_lock_timeout: LEASE,
        worker_lock_timeout: LEASE,
        worker_lock_renewal_buffer: Duration::ZERO,
        session_lock_timeout: LEASE,
        max_attempts: 1,
        ..RuntimeOptions::default()
    }
}

// R7.64.
#[tokio::test]
async fn r7_64_a_turn_that_blocks_the_only_thread_keeps_its_lock_in_postgres() {
    let Some(schema) = TestSchema::new() else { return };
    let store = Arc::new(schema.open().await);
    let turns = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&turns);
    let orchestrations = OrchestrationRegistry::builder()
        .register("Main", move |_ctx, input: String| {
            counted.fetch_add(1, Ordering::SeqCst);
            async move {
                std::thread::sleep(LEASE * 2);
                Ok(input)
            }
        })
        .build();
    let activities = ActivityRegistry::builder().build();
    let runtime =
        Runtime::start_with_options(store.clone(), activities, orchestrations, short_leases())
            .await;
    let client = Client::new(store);
    client.start_orchestration("m", "Main", "done").await.unwrap();
    let output: String = client.wait_for_orchestration_typed("m", PATIENCE).await.unwrap().unwrap();
    assert_eq!((output.as_str(), turns.load(Ordering::SeqCst)), ("done", 1));
    runtime.shutdown(None).await;
}

// R7.64.
#[tokio::test]
async fn r7_64_activities_and_sessions_beside_one_that_blocks_keep_theirs_in_postgres() {
    let Some(schema) = TestSchema::new() else { return };
    let store = Arc::new(schema.open().await);
    let runs = Arc::new(AtomicUsize::new(0));
    let (good_runs, block_runs) = (Arc::clone(&runs), Arc::clone(&runs));
    let begun = Arc::new(tokio::sync::Notify::new());
    let has_begun = Arc::clone(&begun);
    let activities = ActivityRegistry::builder()
        .register("Block", move |_: ActivityContext, _: String| {
            block_runs.fetch_add(1, Ordering::SeqCst);
            let begun = Arc::clone(&begun);
            async move {
                begun.notified().await;
                let began = Instant::now();
                std::thread::sleep(LEASE * 2);
                assert!(LEASE < began.elapsed());
                Ok("blocked".to_owned())
            }
        })
        .register("Good", move |ctx: ActivityContext, _: String| {
            good_runs.fetch_add(1, Ordering::SeqCst);
            has_begun.notify_one();
            async move {
                tokio::time::sleep(LEASE * 2).await;
                Ok(if ctx.is_cancelled() { "cancelled" } else { "good" }.to_owned())
            }
        })
        .build();
    let orchestrations = OrchestrationRegistry::builder()
        .register("Main", |ctx: duroxide::OrchestrationContext, _: String| async move {
            let good = ctx.schedule_activity_on_session("Good", "", "s");
            let (block, good) = ctx.join2(ctx.schedule_activity("Block", ""), good).await;
            Ok(format!("{} {}", block?, good?))
        })
        .build();
    let runtime =
        Runtime::start_with_options(store.clone(), activities, orchestrations, short_leases())
            .await;
    let client = Client::new(store);
    client.start_orchestration("m", "Main", "").await.unwrap();
    let output: String = client.wait_for_orchestration_typed("m", PATIENCE).await.unwrap().unwrap();
    assert_eq!((output.as_str(), runs.load(Ordering::SeqCst)), ("blocked good", 2));
    runtime.shutdown(None).await;
}
