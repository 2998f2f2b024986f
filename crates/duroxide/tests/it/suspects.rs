//! What may have ended its process runs alone, and that holds up nobody for long (R7.28).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use duroxide::providers::memory::MemoryProvider;
use duroxide::providers::{Provider, TagFilter};
use duroxide::{Client, OrchestrationContext};
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::support::{WorldBuilder, world, world_on};

/// Fetches an instance's messages so often, as processes do that end then.
async fn try_in_vain(store: &MemoryProvider, times: usize) {
    let second = Duration::from_secs(1);
    for _ in 0..times {
        let fetched = store.fetch_orchestration_item(second, Duration::ZERO, None).await;
        let (_, token, _) = fetched.unwrap().expect("something to run");
        store.abandon_orchestration_item(&token, None, false).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn r7_28_a_suspect_turn_that_does_not_end_lets_others_run_at_last() {
    let memory = Arc::new(MemoryProvider::new());
    let client = Client::new(memory.clone());
    client.start_orchestration("endless", "Endless", "").await.unwrap();
    try_in_vain(&memory, 5).await;
    let (begun, is_over) = (Arc::new(Notify::new()), Arc::new(AtomicBool::new(false)));
    let (begins, ends) = (Arc::clone(&begun), Arc::clone(&is_over));
    let world = world_on(memory)
        .echo("A")
        .orchestration("Endless", move |_ctx, input| {
            let ends = Arc::clone(&ends);
            begins.notify_one();
            async move {
                while !ends.load(Ordering::SeqCst) {
                    std::thread::sleep(Duration::from_millis(5));
                }
                Ok(input)
            }
        })
        .orchestration("Good", |ctx, input| async move { ctx.schedule_activity("A", input).await })
        .patient()
        .start()
        .await;
    begun.notified().await;
    assert_eq!(world.run("good", "Good", "1").await, "A:1");
    is_over.store(true, Ordering::SeqCst);
    world.output("endless").await;
    world.finish().await;
}

#[tokio::test(start_paused = true)]
async fn r7_28_a_turn_without_code_here_is_no_suspect() {
    // One, two, four seconds and so on, a minute at most: ten times.
    let backoffs = Duration::from_secs(63 + 4 * 60);
    for (name, version) in [("Unknown", None), ("Main", Some("2.0.0"))] {
        let world = world()
            .orchestration_version("Main", "1.0.0", |_ctx, input| async move { Ok(input) })
            .patient()
            .start()
            .await;
        let began = Instant::now();
        let client = &world.client;
        match version {
            None => client.start_orchestration("i", name, "").await.unwrap(),
            Some(version) => {
                client.start_orchestration_versioned("i", name, version, "").await.unwrap();
            }
        }
        world.error("i").await;
        let late = began.elapsed().saturating_sub(backoffs);
        assert!(late < Duration::from_millis(20), "{name} was held up for {late:?}");
        world.finish().await;
    }
}

async fn calls(ctx: OrchestrationContext, _input: String) -> Result<String, String> {
    ctx.schedule_activity("Long", "").await
}

/// A world in which the second attempt is the last one, and suspect.
fn strict(memory: &Arc<MemoryProvider>) -> WorldBuilder {
    let world = world_on(Arc::clone(memory)).patient().orchestration("Calls", calls);
    world.options(|options| options.max_attempts = 2)
}

/// Has the first attempts of all activities in the queue come to nothing, as if their process had died.
async fn try_all(memory: &MemoryProvider, count: usize) {
    let (lock, none) = (Duration::from_secs(30), Duration::ZERO);
    let mut tokens = Vec::new();
    for _ in 0..count {
        let fetched = memory.fetch_work_item(lock, none, None, &TagFilter::Any).await.unwrap();
        tokens.push(fetched.expect("an activity").1);
    }
    for token in tokens {
        memory.abandon_work_item(&token, None, false).await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn r7_28_an_innocent_activity_has_the_time_to_end_before_another_suspect_begins() {
    let memory = Arc::new(MemoryProvider::new());
    let world = strict(&memory).options(|options| options.worker_concurrency = 0).start().await;
    for instance in ["a", "b", "c"] {
        world.begin(instance, "Calls", "").await;
        world.until_kind(instance, "ActivityScheduled").await;
    }
    world.close().await;
    try_all(&memory, 3).await;
    static AT_ONCE: AtomicUsize = AtomicUsize::new(0);
    static AT_ONCE_MAX: AtomicUsize = AtomicUsize::new(0);
    let world = strict(&memory)
        .options(|options| options.worker_concurrency = 3)
        .activity("Long", |_ctx, _| async move {
            AT_ONCE_MAX.fetch_max(AT_ONCE.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            tokio::time::sleep(Duration::from_secs(120)).await;
            AT_ONCE.fetch_sub(1, Ordering::SeqCst);
            Ok("done".to_owned())
        })
        .start()
        .await;
    for instance in ["a", "b", "c"] {
        assert_eq!(world.output(instance).await, "done");
    }
    assert_eq!(AT_ONCE_MAX.load(Ordering::SeqCst), 1);
    world.finish().await;
}
