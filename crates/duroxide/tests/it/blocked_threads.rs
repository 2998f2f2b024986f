//! Code that blocks its thread costs nobody a lock, not even on a runtime of one thread (R7.64).
//!
//! These tests run on real time: what is tested is that time goes on while tasks do not.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use duroxide::providers::Provider;
use duroxide::providers::memory::{LockSnapshot, MemoryProvider};
use duroxide::runtime::Runtime;
use duroxide::runtime::registry::ActivityRegistry;
use duroxide::{Client, OrchestrationRegistry, RuntimeOptions};
use tokio::sync::Notify;

use crate::support::logs::listen;
use crate::support::{world, world_on};

/// Locks of turns, activities and sessions; they are renewed after three seconds, which leaves a busy
/// machine three more.
const LOCK: Duration = Duration::from_secs(6);
/// For everything to happen, on a slow machine.
const PATIENCE: Duration = Duration::from_secs(60);

fn short_locks(options: &mut RuntimeOptions) {
    options.orchestrator_lock_timeout = LOCK;
    options.worker_lock_timeout = LOCK;
    options.worker_lock_renewal_buffer = Duration::ZERO;
    options.session_lock_timeout = LOCK;
    options.max_attempts = 1;
}

/// Keeps the thread until something holds.
fn block_until(mut holds: impl FnMut() -> bool) {
    let began = Instant::now();
    while !holds() {
        assert!(began.elapsed() < PATIENCE, "in vain");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Keeps the thread until all of these times have been moved twice, and are not past.
fn block_until_renewed(memory: &MemoryProvider, ends: fn(&MemoryProvider) -> Vec<u64>) {
    for _ in 0..2 {
        let before = ends(memory);
        block_until(|| ends(memory).iter().zip(&before).all(|(now, before)| before < now));
    }
    let now = memory.snapshot().taken_at_ms;
    let ends = ends(memory);
    assert!(!ends.is_empty() && ends.iter().all(|end| now < *end), "{ends:?} {now}");
}

fn turn_locks(memory: &MemoryProvider) -> Vec<u64> {
    let ends = |lock: LockSnapshot| lock.held_until;
    memory.snapshot().instance_locks.into_values().filter_map(ends).collect()
}

fn activity_locks(memory: &MemoryProvider) -> Vec<u64> {
    let ends = |lock: LockSnapshot| lock.held_until;
    let rows = memory.snapshot().worker_queue.into_iter();
    rows.filter_map(|row| row.lock).filter_map(ends).collect()
}

fn session_leases(memory: &MemoryProvider) -> Vec<u64> {
    let sessions = memory.snapshot().sessions.into_values();
    sessions.filter_map(|session| session.leased_until).collect()
}

async fn r7_64_turns() {
    let memory = Arc::new(MemoryProvider::new());
    let (store, turns) = (Arc::clone(&memory), Arc::new(AtomicUsize::new(0)));
    let counted = Arc::clone(&turns);
    let world = world_on(memory)
        .orchestration("Main", move |_ctx, input| {
            counted.fetch_add(1, Ordering::SeqCst);
            let store = Arc::clone(&store);
            async move {
                block_until_renewed(&store, turn_locks);
                Ok(input)
            }
        })
        .options(short_locks)
        .start()
        .await;
    world.begin("m", "Main", "done").await;
    assert_eq!(world.output("m").await, "done");
    assert_eq!(turns.load(Ordering::SeqCst), 1);
    world.finish().await;
}

#[tokio::test]
async fn r7_64_a_turn_that_blocks_the_only_thread_keeps_its_lock() {
    r7_64_turns().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r7_64_a_turn_that_blocks_one_of_two_threads_keeps_its_lock() {
    r7_64_turns().await;
}

#[tokio::test]
async fn r7_64_activities_and_sessions_beside_one_that_blocks_keep_theirs() {
    let memory = Arc::new(MemoryProvider::new());
    let (store, runs) = (Arc::clone(&memory), Arc::new(AtomicUsize::new(0)));
    let (good_runs, all_runs) = (Arc::clone(&runs), Arc::clone(&runs));
    let begun = Arc::new(tokio::sync::Notify::new());
    let has_begun = Arc::clone(&begun);
    let world = world_on(memory)
        .activity("Block", move |_ctx, _| {
            all_runs.fetch_add(1, Ordering::SeqCst);
            let (store, begun) = (Arc::clone(&store), Arc::clone(&begun));
            async move {
                begun.notified().await;
                block_until_renewed(&store, activity_locks);
                block_until_renewed(&store, session_leases);
                Ok("blocked".to_owned())
            }
        })
        .activity("Good", move |ctx, _| {
            good_runs.fetch_add(1, Ordering::SeqCst);
            has_begun.notify_one();
            async move {
                tokio::time::sleep(LOCK * 2).await;
                Ok(if ctx.is_cancelled() { "cancelled" } else { "good" }.to_owned())
            }
        })
        .orchestration("Main", |ctx, _| async move {
            let good = ctx.schedule_activity_on_session("Good", "", "s");
            let (block, good) = ctx.join2(ctx.schedule_activity("Block", ""), good).await;
            Ok(format!("{} {}", block?, good?))
        })
        .options(short_locks)
        .start()
        .await;
    world.begin("m", "Main", "").await;
    assert_eq!(world.output("m").await, "blocked good");
    assert_eq!(runs.load(Ordering::SeqCst), 2);
    world.finish().await;
}

/// The same on the store that writes to a disk, through a thread of its own.
#[cfg(feature = "sqlite")]
#[tokio::test]
async fn r7_64_a_turn_that_blocks_the_only_thread_keeps_its_lock_in_sqlite() {
    let store = duroxide::providers::sqlite::SqliteProvider::new_in_memory().await.unwrap();
    let (store, turns) = (Arc::new(store), Arc::new(AtomicUsize::new(0)));
    let counted = Arc::clone(&turns);
    let orchestrations = OrchestrationRegistry::builder()
        .register("Main", move |_ctx, input| {
            counted.fetch_add(1, Ordering::SeqCst);
            async move {
                std::thread::sleep(LOCK * 2);
                Ok(input)
            }
        })
        .build();
    let mut options = RuntimeOptions::default();
    short_locks(&mut options);
    let activities = ActivityRegistry::builder().build();
    let runtime =
        Runtime::start_with_options(store.clone(), activities, orchestrations, options).await;
    let client = Client::new(store);
    client.start_orchestration("m", "Main", "done").await.unwrap();
    let output: String = client.wait_for_orchestration_typed("m", PATIENCE).await.unwrap().unwrap();
    assert_eq!((output.as_str(), turns.load(Ordering::SeqCst)), ("done", 1));
    runtime.shutdown(None).await;
}

#[tokio::test]
async fn r9_58_a_turn_that_does_not_end_is_named_with_its_place_while_it_runs() {
    let logs = listen();
    let ear = logs.ear();
    let world = world_on(Arc::new(MemoryProvider::new()))
        .echo("A")
        .orchestration("Hog", move |ctx, _| {
            let ear = ear.clone();
            async move {
                let answer = ctx.schedule_activity("A", "").await;
                let _unused = ctx.schedule_timer(Duration::from_secs(1)); // The last call.
                block_until(|| ear("without an await"));
                answer
            }
        })
        .start()
        .await;
    let line = line!() - 7;
    world.begin("hog-1", "Hog", "").await;
    assert_eq!(world.output("hog-1").await, "A:");
    let record = logs.saying("without an await").remove(0);
    assert_eq!((record.field("instance_id"), record.field("orchestration_name")), ("hog-1", "Hog"));
    assert_eq!(record.field("place"), format!("{}:{line}", file!()));
    assert_eq!(record.level, tracing::Level::WARN);
    world.finish().await;
}

#[test]
fn r7_127_a_store_is_let_go_when_the_tokio_runtime_is_dropped() {
    let store = Arc::new(MemoryProvider::new());
    let tokio = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let provider: Arc<dyn Provider> = store.clone();
    let (activities, orchestrations) =
        (ActivityRegistry::builder().build(), OrchestrationRegistry::builder().build());
    let runtime = tokio.block_on(Runtime::start_with_store(provider, activities, orchestrations));
    drop((tokio, runtime));
    block_until(|| Arc::strong_count(&store) == 1);
}

/// An activity that blocks a thread until another one has run.
async fn others_run_beside_a_blocked_thread(store: Arc<dyn Provider>) {
    let (begun, runs) = (Arc::new(Notify::new()), Arc::new(AtomicUsize::new(0)));
    let (blocks, blocked_until, run) = (Arc::clone(&begun), Arc::clone(&runs), Arc::clone(&runs));
    let world = world()
        .through(|_| store)
        .activity("Block", move |_, round| {
            let (blocks, runs) = (Arc::clone(&blocks), Arc::clone(&blocked_until));
            async move {
                blocks.notify_one();
                let round: usize = round.parse().unwrap();
                block_until(|| round < runs.load(Ordering::SeqCst));
                Ok(String::new())
            }
        })
        .activity("Run", move |_, _| {
            run.fetch_add(1, Ordering::SeqCst);
            async { Ok(String::new()) }
        })
        .orchestration("Main", |ctx, input: String| async move {
            let (name, round) = input.split_once(' ').unwrap();
            ctx.schedule_activity(name, round).await
        })
        .start()
        .await;
    for round in 0..10 {
        world.begin(&format!("block {round}"), "Main", &format!("Block {round}")).await;
        begun.notified().await;
        world.begin(&format!("run {round}"), "Main", &format!("Run {round}")).await;
        world.output(&format!("run {round}")).await;
        world.output(&format!("block {round}")).await;
    }
    world.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r7_29_an_activity_that_blocks_one_of_two_threads_holds_up_no_other() {
    others_run_beside_a_blocked_thread(Arc::new(MemoryProvider::new())).await;
}

#[cfg(feature = "sqlite")]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r7_29_an_activity_that_blocks_one_of_two_threads_holds_up_no_other_in_sqlite() {
    let store = duroxide::providers::sqlite::SqliteProvider::new_in_memory().await.unwrap();
    others_run_beside_a_blocked_thread(Arc::new(store)).await;
}
