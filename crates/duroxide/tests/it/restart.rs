//! Crashes: a runtime that is killed anywhere, and one on the same store that finishes the work.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use duroxide::providers::memory::MemoryProvider;
use duroxide::{Client, OrchestrationContext};
use tokio::time::{Instant, sleep};

use crate::support::faults::{Fault, Faults, FaultyProvider};
use crate::support::look::has;
use crate::support::{WorldBuilder, kinds, world, world_on};

/// A bit of everything that takes several turns.
async fn saga(ctx: OrchestrationContext, input: String) -> Result<String, String> {
    if input == "start" {
        ctx.set_kv_value("seen", "first");
        let carried = ctx.schedule_activity("A", "one").await?;
        return ctx.continue_as_new(carried).await;
    }
    let seen = ctx.get_kv_value("seen").unwrap_or_default();
    let kid = ctx.schedule_sub_orchestration("Kid", "k");
    let two = ctx.schedule_activity("A", "two");
    let (kid, two) = ctx.join2(kid, two).await;
    ctx.schedule_timer(Duration::from_secs(1)).await;
    ctx.set_custom_status("done");
    Ok(format!("{input} {seen} {} {}", kid?, two?))
}

const SAGA: &str = "A:one first kid k A:two";

fn cast(world: WorldBuilder) -> WorldBuilder {
    world
        .echo("A")
        .orchestration("Saga", saga)
        .orchestration("Kid", |_ctx, input| async move { Ok(format!("kid {input}")) })
}

/// Runs the saga on a store that stops at one call; then again on what is left. Whether it stopped.
async fn killed_at(call: usize, end: Fault, in_few_commits: bool) -> bool {
    let faults = Faults::default();
    if in_few_commits {
        faults.take_successors(); // R1.39
        faults.take_direct_turns(); // R1.64
        faults.take_timer_turns(); // R1.67
    }
    faults.crash_at(call, end);
    let first = cast(world().through(|store| FaultyProvider::wrap(store, &faults))).start().await;
    let client = Client::new(first.memory.clone());
    client.start_orchestration("i", "Saga", "start").await.unwrap();
    let ended = async || client.get_instance_info("i").await.is_ok_and(|i| i.status == "Completed");
    while !faults.crashed() && !ended().await {
        sleep(Duration::from_millis(5)).await;
    }
    let memory = first.memory.clone();
    first.runtime.shutdown(Some(0)).await;
    let crashed = faults.crashed();

    let second = cast(world_on(memory)).start().await;
    let output =
        second.client.wait_for_orchestration_typed::<String>("i", Duration::from_secs(300));
    assert_eq!(output.await.unwrap().unwrap(), SAGA, "killed at {call}");
    let first = second.execution("i", 1).await;
    assert_eq!(
        kinds(&first),
        [
            "OrchestrationStarted",
            "KeyValueSet",
            "ActivityScheduled",
            "ActivityCompleted",
            "OrchestrationContinuedAsNew"
        ]
    );
    let again = second.history("i").await;
    let once = ["SubOrchestrationCompleted", "ActivityCompleted", "TimerFired"];
    for kind in once {
        assert_eq!(kinds(&again).iter().filter(|k| *k == kind).count(), 1, "killed at {call}");
    }
    second.settled().await;
    assert!(second.memory.snapshot().worker_queue.is_empty());
    second.finish().await;
    crashed
}

#[tokio::test(start_paused = true)]
async fn r7_125_r1_11_r7_127_killed_at_any_call_before_or_after_its_deed() {
    for (end, in_few_commits) in [
        (Fault::Hang, false),
        (Fault::HangAfter, false),
        (Fault::Hang, true),
        (Fault::HangAfter, true),
    ] {
        let mut call = 1;
        while killed_at(call, end.clone(), in_few_commits).await {
            call += 1;
        }
        assert!(12 < call, "only {call} calls");
    }
}

/// Kills a runtime at its first commit; how often the code had run in the end.
async fn runs_when_killed_at_commit(end: Fault) -> usize {
    let runs = Arc::new(AtomicUsize::new(0));
    let cast = |world: WorldBuilder| {
        let runs = runs.clone();
        world.orchestration("Main", move |_ctx, input| {
            runs.fetch_add(1, Ordering::Relaxed);
            async move { Ok(input) }
        })
    };
    let faults = Faults::default();
    faults.next("ack_orchestration_item", [end]);
    let first = cast(world().through(|store| FaultyProvider::wrap(store, &faults))).start().await;
    first.begin("i", "Main", "x").await;
    while faults.calls("ack_orchestration_item") == 0 {
        sleep(Duration::from_millis(1)).await;
    }
    let memory = first.memory.clone();
    first.runtime.shutdown(Some(0)).await;
    let began = Instant::now();
    let second = cast(world_on(memory)).start().await;
    assert_eq!(second.output("i").await, "x");
    assert!(began.elapsed() <= Duration::from_secs(5), "R7.126: once the lock has run out");
    second.finish().await;
    runs.load(Ordering::Relaxed)
}

#[tokio::test(start_paused = true)]
async fn r7_125_a_turn_is_repeated_if_and_only_if_it_was_not_committed() {
    assert_eq!(runs_when_killed_at_commit(Fault::Hang).await, 2);
    assert_eq!(runs_when_killed_at_commit(Fault::HangAfter).await, 1);
}

#[tokio::test(start_paused = true)]
async fn r7_7_r7_24_another_runtime_takes_over_when_the_lock_has_run_out() {
    let faults = Faults::default();
    faults.always("ack_orchestration_item", Fault::Hang);
    let first = cast(world().through(|store| FaultyProvider::wrap(store, &faults))).start().await;
    first.begin("i", "Kid", "x").await;
    sleep(Duration::from_secs(12)).await; // It hangs, and keeps its lock.
    let second = cast(world_on(first.memory.clone())).start().await;
    sleep(Duration::from_secs(12)).await;
    assert!(!second.memory.snapshot().instances.contains_key("i"));
    let killed_at = Instant::now();
    first.runtime.shutdown(Some(0)).await;
    assert_eq!(second.output("i").await, "kid x");
    assert!(killed_at.elapsed() <= Duration::from_secs(5));
    second.finish().await;
}

#[tokio::test(start_paused = true)]
async fn r1_8_r7_127_r4_32_timers_and_waits_outlive_the_runtime() {
    let cast = |world: WorldBuilder| {
        world.orchestration("Main", |ctx, _input| async move {
            let go = ctx.schedule_wait("go");
            ctx.schedule_timer(Duration::from_secs(100)).await;
            Ok(go.await)
        })
    };
    let first = cast(world()).start().await;
    let began = Instant::now();
    first.begin("i", "Main", "").await;
    first.until_kind("i", "TimerCreated").await;
    let memory = first.memory.clone();
    first.runtime.shutdown(Some(0)).await;
    Client::new(memory.clone()).raise_event("i", "go", "went").await.unwrap();
    sleep(Duration::from_secs(60)).await;
    let second = cast(world_on(memory)).start().await;
    second.until_kind("i", "ExternalEvent").await;
    assert!(!has(&second.history("i").await, "TimerFired"));
    let output = second.client.wait_for_orchestration("i", Duration::from_secs(60));
    output.await.unwrap();
    assert_eq!(began.elapsed().as_secs(), 100, "neither sooner nor later");
    assert_eq!(second.output("i").await, "went");
    second.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn r7_127_many_instances_survive_many_kills() {
    const INSTANCES: usize = 40;
    let memory = Arc::new(MemoryProvider::new());
    let cast = |memory: Arc<MemoryProvider>| {
        world_on(memory)
            .options(|options| {
                options.orchestrator_lock_timeout = Duration::from_millis(200);
                options.worker_lock_timeout = Duration::from_millis(200);
                options.worker_lock_renewal_buffer = Duration::from_millis(50);
                // Being killed is not the items' fault here; they must not end as poison.
                options.max_attempts = 1_000;
            })
            .echo("A")
            .orchestration("Steps", |ctx, _input| async move {
                let mut steps = Vec::new();
                for step in 0..5 {
                    steps.push(ctx.schedule_activity("A", step.to_string()).await?);
                }
                Ok(steps.join(" "))
            })
    };
    let client = Client::new(memory.clone());
    for n in 0..INSTANCES {
        client.start_orchestration(n.to_string(), "Steps", "").await.unwrap();
    }
    for kill in 0..20 {
        let world = cast(memory.clone()).start().await;
        // Wherever it happens to be: after some commits of one instance.
        let some = (kill % INSTANCES).to_string();
        let patience = Duration::from_millis(30);
        let _woken = tokio::time::timeout(patience, world.until(&some, |h| h.len() > kill)).await;
        world.runtime.shutdown(Some(0)).await;
    }
    let world = cast(memory).start().await;
    for n in 0..INSTANCES {
        assert_eq!(world.output(&n.to_string()).await, "A:0 A:1 A:2 A:3 A:4");
        assert_eq!(world.history(&n.to_string()).await.len(), 12);
    }
    world.finish().await;
}
