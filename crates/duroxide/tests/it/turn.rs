//! The life of a turn: what a batch becomes, and what one commit contains.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use duroxide::providers::memory::MemoryProvider;
use duroxide::providers::{Provider, WorkItem};
use duroxide::runtime::{ForeignWait, WarmMode};
use duroxide::{ErrorDetails, Event, EventKind, OrchestrationContext, OrchestrationStatus};
use tokio::sync::Semaphore;

use crate::support::faults::{Fault, Faults, FaultyProvider};
use crate::support::look::{cancellations, has, preload, queued, raised, start};
use crate::support::{WorldBuilder, kinds, world, world_on};

/// A world whose activities stay in the queue.
fn without_workers() -> WorldBuilder {
    world().options(|options| options.worker_concurrency = 0)
}

async fn two_letters(ctx: OrchestrationContext, _input: String) -> Result<String, String> {
    let a = ctx.dequeue_event("q").await;
    let b = ctx.dequeue_event("q").await;
    Ok(a + &b)
}

#[tokio::test(start_paused = true)]
async fn r1_6_r1_20_r1_30_r1_31_r1_50_r2_13_a_turn_takes_all_visible_messages_in_queue_order() {
    let memory = Arc::new(MemoryProvider::new());
    let messages = [
        queued("i", "q", "a"),
        start("i", "Letters", ""),
        raised("i", "Nobody", "x"),
        queued("i", "q", "b"),
    ];
    preload(&*memory, messages).await;
    let world = world_on(memory).orchestration("Letters", two_letters).start().await;
    // R4.44, R1.53: what came before the start is not lost if it is fetched with it.
    assert_eq!(world.output("i").await, "ab");
    let history = world.history("i").await;
    assert_eq!(
        kinds(&history),
        [
            "OrchestrationStarted",
            "QueueEventDelivered",
            "ExternalEvent",
            "QueueEventDelivered",
            "QueueSubscribed",
            "QueueSubscribed",
            "OrchestrationCompleted",
        ]
    );
    let ids: Vec<u64> = history.iter().map(|event| event.event_id).collect();
    assert_eq!(ids, [1, 2, 3, 4, 5, 6, 7]); // R2.10, R2.11
    assert!(history.iter().all(|event| event.timestamp_ms == history[0].timestamp_ms));
    world.finish().await;
}

#[tokio::test(start_paused = true)]
async fn r1_26_what_comes_after_the_end_vanishes() {
    let world =
        world().orchestration("Done", |_ctx, _input| async { Ok("x".into()) }).start().await;
    world.run("i", "Done", "").await;
    let before = world.history("i").await;
    world
        .send([
            raised("i", "e", ""),
            queued("i", "q", ""),
            WorkItem::CancelInstance { instance: "i".into(), reason: "late".into() },
            WorkItem::ActivityCompleted {
                instance: "i".into(),
                execution_id: 1,
                id: 2,
                result: String::new(),
            },
            start("i", "Done", "again"),
        ])
        .await;
    world.settled().await;
    assert_eq!(world.history("i").await, before);
    assert_eq!(world.output("i").await, "x");
    world.finish().await;
}

#[tokio::test(start_paused = true)]
async fn r1_32_r1_33_r6_51_metadata_says_what_the_events_mean() {
    let world = world()
        .orchestration_version("Main", "1.2.3", |ctx, input| async move {
            match input.as_str() {
                "fail" => Err("no".into()),
                "again" => ctx.continue_as_new("wait").await,
                "wait" => Ok(ctx.schedule_wait("e").await),
                _ => Ok(input),
            }
        })
        .start()
        .await;
    world.run("ok", "Main", "yes").await;
    world.run_to_error("bad", "Main", "fail").await;
    world.begin("on", "Main", "again").await;
    world.until_kind("on", "ExternalSubscribed").await;
    let info = world.client.get_instance_info("ok").await.unwrap();
    assert_eq!(
        (info.orchestration_name.as_str(), info.orchestration_version.as_str()),
        ("Main", "1.2.3")
    );
    assert_eq!((info.status.as_str(), info.output.as_deref()), ("Completed", Some("yes")));
    let info = world.client.get_instance_info("bad").await.unwrap();
    assert_eq!((info.status.as_str(), info.output.as_deref()), ("Failed", Some("no")));
    let ended = world.client.get_execution_info("on", 1).await.unwrap();
    assert_eq!((ended.status.as_str(), ended.output.as_deref()), ("ContinuedAsNew", Some("wait")));
    // R1.60: a turn that goes on says nothing about the status.
    let running = world.client.get_execution_info("on", 2).await.unwrap();
    assert_eq!((running.status.as_str(), running.output), ("Running", None));
    world.finish().await;
}

#[tokio::test(start_paused = true)]
async fn r1_35_r2_42_work_in_flight_is_cancelled_after_the_terminal_event() {
    let world = without_workers()
        .orchestration("Main", |ctx, input| async move {
            let a = ctx.schedule_activity("A", "1");
            let b = ctx.schedule_activity("A", "2");
            ctx.schedule_wait("go").await;
            let result = match input.as_str() {
                "completed" => Ok(String::new()),
                "failed" => Err(String::new()),
                _ => ctx.continue_as_new("completed").await,
            };
            std::mem::forget((a, b)); // Alive to the end: not dropped futures, but work in flight.
            result
        })
        .start()
        .await;
    for word in ["completed", "failed", "continued_as_new"] {
        world.begin(word, "Main", word).await;
        world.until_kind(word, "ExternalSubscribed").await;
        assert_eq!(world.memory.snapshot().worker_queue.len(), 2);
        world.client.raise_event(word, "go", "").await.unwrap();
        world
            .until_store(|store| store.worker_queue.is_empty() || word == "continued_as_new")
            .await;
        world
            .until_store(|store| store.instances[word].executions[&1].completed_at.is_some())
            .await;
        let history = world.execution(word, 1).await;
        let reason = format!("orchestration_terminal_{word}");
        assert_eq!(
            cancellations(&history, "ActivityCancelRequested"),
            [(2, reason.clone()), (3, reason)]
        );
        assert_eq!(kinds(&history)[6..8], ["ActivityCancelRequested", "ActivityCancelRequested"]);
        assert!(history[5].is_terminal(), "{history:#?}");
    }
    // The successor has two of its own; the queue holds no others.
    world.until_kind("continued_as_new", "ExternalSubscribed").await;
    assert_eq!(world.memory.snapshot().worker_queue.len(), 2);
    world.finish().await;
}

#[tokio::test(start_paused = true)]
async fn r1_61_r1_62_r3_115_the_last_turn_starts_only_what_is_detached() {
    let world = without_workers()
        .orchestration("Apart", |_ctx, input| async move { Ok(input) })
        .orchestration("Main", |ctx, input| async move {
            let work = (
                ctx.schedule_activity("A", ""),
                ctx.schedule_timer(Duration::from_secs(1)),
                ctx.schedule_sub_orchestration("Apart", "child"),
            );
            ctx.schedule_orchestration("Apart", format!("apart-{input}"), "detached");
            std::mem::forget(work);
            if input == "ok" { Ok(input) } else { Err(input) }
        })
        .start()
        .await;
    for id in ["ok", "err"] {
        world.begin(id, "Main", id).await;
        world.ended(id).await;
        assert_eq!(world.output(&format!("apart-{id}")).await, "detached");
        let history = world.history(id).await;
        for kind in ["ActivityScheduled", "TimerCreated", "SubOrchestrationScheduled"] {
            assert!(has(&history, kind), "{kind} is recorded");
        }
    }
    let store = world.settled().await;
    assert!(store.worker_queue.is_empty());
    let ids: Vec<&String> = store.instances.keys().collect();
    assert_eq!(ids, ["apart-err", "apart-ok", "err", "ok"]);
    assert!(store.dead_letters.is_empty());
    world.finish().await;
}

#[tokio::test(start_paused = true)]
async fn r1_63_a_batch_without_news_is_still_consumed() {
    let world = world()
        .orchestration("Main", |ctx, _input| async move { Ok(ctx.schedule_wait("e").await) })
        .start()
        .await;
    world.begin("i", "Main", "").await;
    let before = world.until_kind("i", "ExternalSubscribed").await;
    let stale =
        WorkItem::TimerFired { instance: "i".into(), execution_id: 7, id: 2, fire_at_ms: 0 };
    world.send([stale]).await;
    world.settled().await;
    assert_eq!(world.history("i").await, before);
    world.client.raise_event("i", "e", "end").await.unwrap();
    assert_eq!(world.output("i").await, "end");
    world.finish().await;
}

#[tokio::test(start_paused = true)]
async fn r1_51_r1_52_the_first_start_counts_and_later_ones_never_do() {
    let memory = Arc::new(MemoryProvider::new());
    preload(&*memory, [start("i", "One", "1"), start("i", "Two", "2")]).await;
    let world = world_on(memory)
        .orchestration("One", |ctx, input| async move { Ok(input + &ctx.schedule_wait("e").await) })
        .orchestration("Two", |_ctx, _input| async { Ok("two".into()) })
        .start()
        .await;
    world.until_kind("i", "ExternalSubscribed").await;
    // R1.42, R6.4: nor does a start in a batch with something that counts.
    world.send([start("i", "Two", "3"), raised("i", "e", "!")]).await;
    assert_eq!(world.output("i").await, "1!");
    assert_eq!(
        kinds(&world.history("i").await)[0..2],
        ["OrchestrationStarted", "ExternalSubscribed"]
    );
    world.finish().await;
}

/// A start event as an older runtime may have written it.
fn stored_start(instance: &str, name: &str, version: &str) -> Event {
    let kind = EventKind::OrchestrationStarted {
        name: name.into(),
        version: version.into(),
        input: "stored".into(),
        parent_instance: None,
        parent_id: None,
        parent_execution_id: None,
        carry_forward_events: None,
        initial_custom_status: None,
    };
    Event::with_event_id(1, instance, 1, None, kind)
}

#[tokio::test(start_paused = true)]
async fn r1_55_r1_56_name_and_input_come_from_history_and_version_0_means_none() {
    let memory = Arc::new(MemoryProvider::new());
    memory.append_with_execution("i", 1, vec![stored_start("i", "Main", "0.0.0")]).await.unwrap();
    preload(&*memory, [queued("i", "q", "m")]).await;
    let world = world_on(memory)
        .orchestration_version("Main", "1.0.0", |_ctx, _input| async { Ok("old".into()) })
        .orchestration_version("Main", "2.0.0", |ctx, input| async move {
            Ok(format!("{input} {}", ctx.dequeue_event("q").await))
        })
        .start()
        .await;
    assert_eq!(world.output("i").await, "stored m");
    world.finish().await;
}

#[tokio::test(start_paused = true)]
async fn r1_22_r7_60_the_lock_is_held_until_the_commit_has_ended() {
    let faults = Faults::default();
    let world = world()
        .orchestration("Main", |_ctx, input| async move { Ok(input) })
        .through(|store| FaultyProvider::wrap(store, &faults))
        .start()
        .await;
    let gate = Arc::new(Semaphore::new(0));
    faults.next("ack_orchestration_item", [Fault::Gate(gate.clone())]);
    world.begin("i", "Main", "x").await;
    tokio::time::sleep(Duration::from_secs(3600)).await;
    assert_eq!(world.memory.max_attempt_count("i"), 1); // R1.13: nobody else took it.
    gate.add_permits(1);
    assert_eq!(world.output("i").await, "x");
    assert!(faults.calls("renew_orchestration_item_lock") >= 3600 / 5); // R7.62
    world.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn r1_13_r7_4_r7_7_one_turn_of_an_instance_at_a_time_over_two_runtimes() {
    static INSIDE: AtomicUsize = AtomicUsize::new(0);
    const LETTERS: usize = 200;
    async fn count(ctx: OrchestrationContext, _input: String) -> Result<String, String> {
        assert_eq!(INSIDE.fetch_add(1, Ordering::SeqCst), 0, "two turns at a time");
        let guard = scopeguard(|| {
            INSIDE.fetch_sub(1, Ordering::SeqCst);
        });
        let mut sum = 0;
        for _ in 0..LETTERS {
            sum += ctx.dequeue_event("q").await.parse::<usize>().unwrap();
        }
        drop(guard);
        Ok(sum.to_string())
    }
    let first = world()
        .options(|options| options.orchestration_concurrency = 4)
        .tuning(|tuning| tuning.warm.mode = WarmMode::Off) // The guard has to end with each turn.
        .orchestration("Count", count)
        .start()
        .await;
    let second = world_on(first.memory.clone())
        .tuning(|tuning| tuning.warm.mode = WarmMode::Off)
        .orchestration("Count", count)
        .start()
        .await;
    first.begin("i", "Count", "").await;
    first.until_kind("i", "QueueSubscribed").await;
    for letter in 0..LETTERS {
        first.client.enqueue_event("i", "q", letter.to_string()).await.unwrap();
        tokio::task::yield_now().await;
    }
    assert_eq!(first.output("i").await, (LETTERS * (LETTERS - 1) / 2).to_string()); // R1.11
    second.finish().await;
    first.finish().await;
}

/// Runs something when it goes out of scope.
fn scopeguard(f: impl FnMut()) -> impl Drop {
    struct Guard<F: FnMut()>(F);
    impl<F: FnMut()> Drop for Guard<F> {
        fn drop(&mut self) {
            (self.0)();
        }
    }
    Guard(f)
}

#[tokio::test(start_paused = true)]
async fn r3_170_a_foreign_wait_stays_running_or_fails_as_told() {
    for (told, fails) in [(ForeignWait::Warn, false), (ForeignWait::Fail, true)] {
        let world = world()
            .orchestration("Foreign", |_ctx, _input| async {
                std::future::pending::<()>().await;
                Ok(String::new())
            })
            .tuning(|tuning| tuning.foreign_wait = told)
            .start()
            .await;
        world.begin("i", "Foreign", "").await;
        world.until_kind("i", "OrchestrationStarted").await;
        let status = world.client.get_orchestration_status("i").await.unwrap();
        match status {
            OrchestrationStatus::Failed { details, .. } => {
                assert!(fails && matches!(details, ErrorDetails::Configuration { .. }));
            }
            status => assert!(!fails && matches!(status, OrchestrationStatus::Running { .. })),
        }
        world.finish().await;
    }
}

#[tokio::test(start_paused = true)]
async fn r7_130_the_descriptor_tells_the_latest_start() {
    let world = world()
        .orchestration_version("Child", "1.1.0", |_ctx, _input| async { Ok(String::new()) })
        .orchestration("Main", |ctx, _input| async move {
            ctx.schedule_sub_orchestration_with_id("Child", "kid", "").await
        })
        .start()
        .await;
    assert!(world.runtime.get_orchestration_descriptor("kid").await.is_none());
    world.run("m", "Main", "").await;
    let kid = world.runtime.get_orchestration_descriptor("kid").await.unwrap();
    assert_eq!((kid.name.as_str(), kid.version.as_str()), ("Child", "1.1.0"));
    assert_eq!((kid.parent_instance.as_deref(), kid.parent_id), (Some("m"), Some(2)));
    world.finish().await;
}

#[cfg(feature = "test-hooks")]
#[tokio::test(start_paused = true)]
async fn r7_132_an_artificial_delay_falls_under_the_lock() {
    use duroxide::runtime::test_hooks::{clear_orch_processing_delay, set_orch_processing_delay};
    set_orch_processing_delay(Duration::from_secs(60), Some("slow-"));
    let world = world().orchestration("Main", |_ctx, input| async { Ok(input) }).start().await;
    let began = tokio::time::Instant::now();
    world.begin("slow-1", "Main", "x").await;
    tokio::time::sleep(Duration::from_secs(59)).await;
    assert_eq!(world.memory.max_attempt_count("slow-1"), 1); // R1.22
    assert_eq!(world.output("slow-1").await, "x");
    assert_eq!(began.elapsed().as_secs(), 60);
    clear_orch_processing_delay();
    world.finish().await;
}
