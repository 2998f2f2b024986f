//! Continue-as-new: what goes along, what stays behind, and the time between two executions.

use std::sync::Arc;
use std::time::Duration;

use duroxide::providers::memory::MemoryProvider;
use duroxide::providers::{Provider, WorkItem, current_build_version};
use duroxide::{ErrorDetails, Event, EventKind, OrchestrationContext, OrchestrationStatus};

use crate::support::look::{has, preload, queued, raised, start};
use crate::support::{World, WorldBuilder, kinds, world, world_on};

/// Continues once, then waits for `go`.
async fn twice(ctx: OrchestrationContext, input: String) -> Result<String, String> {
    match input.as_str() {
        "second" => Ok(ctx.schedule_wait("go").await),
        _ => ctx.continue_as_new("second").await,
    }
}

/// Number of the latest execution; 0 if there is none yet.
fn execution_of(history: &[Event]) -> u64 {
    history.first().map_or(0, |event| event.execution_id)
}

#[tokio::test(start_paused = true)]
async fn r4_65_r3_71_the_call_counts_even_if_nobody_awaits_it() {
    let world = world()
        .orchestration("Main", |ctx, input| async move {
            if input == "2" {
                return Ok("second".into());
            }
            let _unawaited = ctx.continue_as_new_typed(&2);
            let _too_late = ctx.continue_as_new("3");
            Ok("first".into())
        })
        .start()
        .await;
    assert_eq!(world.run("i", "Main", "").await, "second");
    assert_eq!(world.client.list_executions("i").await.unwrap(), [1, 2]);
    world.finish().await;
}

#[tokio::test(start_paused = true)]
async fn r4_66_a_newer_version_takes_over_unless_one_is_named() {
    let old = |ctx: OrchestrationContext, input: String| async move {
        match input.as_str() {
            "named" => ctx.continue_as_new_versioned("1.0.0", "end").await,
            "end" => Ok("old".to_owned()),
            _ => ctx.continue_as_new("end").await,
        }
    };
    let world = world()
        .orchestration_version("Main", "1.0.0", old)
        .orchestration_version("Main", "2.0.0", |_ctx, _input| async { Ok("new".into()) })
        .start()
        .await;
    for (input, expected) in [("named", "old"), ("by policy", "new")] {
        let client = &world.client;
        client.start_orchestration_versioned(input, "Main", "1.0.0", input).await.unwrap();
        assert_eq!(world.output(input).await, expected);
    }
    world.finish().await;
}

#[tokio::test(start_paused = true)]
async fn r3_112_r4_67_r4_43_unread_messages_status_and_values_go_along() {
    let memory = Arc::new(MemoryProvider::new());
    let messages = ["1", "2", "3"].map(|data| queued("i", "q", data));
    preload(&*memory, messages.into_iter().chain([start("i", "Main", "")])).await;
    let world = world_on(memory)
        .orchestration("Main", |ctx, input| async move {
            if input.is_empty() {
                ctx.set_custom_status("from the first");
                ctx.set_kv_value("k", "v");
                let first = ctx.dequeue_event("q").await;
                return ctx.continue_as_new(first).await;
            }
            let mut read = vec![input];
            for _ in 0..3 {
                read.push(ctx.dequeue_event("q").await);
            }
            read.push(ctx.get_custom_status().unwrap_or_default());
            read.push(ctx.get_kv_value("k").unwrap_or_default());
            Ok(read.join(" "))
        })
        .start()
        .await;
    world.until("i", |history| execution_of(history) == 2).await;
    world.client.enqueue_event("i", "q", "new").await.unwrap();
    assert_eq!(world.output("i").await, "1 2 3 new from the first v"); // R1.54
    let OrchestrationStatus::Completed { custom_status, custom_status_version, .. } =
        world.ended("i").await
    else {
        panic!()
    };
    assert_eq!((custom_status.as_deref(), custom_status_version), (Some("from the first"), 1));
    // R2.21, R2.22, R6.42: the start event says what came along.
    let EventKind::OrchestrationStarted { carry_forward_events, initial_custom_status, .. } =
        &world.history("i").await[0].kind
    else {
        panic!()
    };
    let carried: Vec<(String, String)> =
        ["2", "3"].map(|data| ("q".to_owned(), data.to_owned())).to_vec();
    assert_eq!(carry_forward_events.as_ref(), Some(&carried));
    assert_eq!(initial_custom_status.as_deref(), Some("from the first"));
    let stats = world.client.get_orchestration_stats("i").await.unwrap().unwrap();
    assert_eq!(stats.queue_pending_count, 2);
    world.finish().await;
}

#[tokio::test(start_paused = true)]
async fn r3_114_r9_56_an_actor_that_reads_one_message_an_execution_reads_them_all() {
    const MESSAGES: usize = 251;
    let memory = Arc::new(MemoryProvider::new());
    let messages = (0..MESSAGES).map(|n| queued("i", "q", &n.to_string()));
    preload(&*memory, messages.chain([start("i", "Main", "")])).await;
    let world = world_on(memory)
        .orchestration("Main", |ctx, mut read| async move {
            read += &format!("{} ", ctx.dequeue_event("q").await);
            match read.split_whitespace().count() {
                MESSAGES => Ok(read),
                _ => ctx.continue_as_new(read).await,
            }
        })
        .start()
        .await;
    let all: String = (0..MESSAGES).map(|n| format!("{n} ")).collect();
    assert_eq!(world.output("i").await, all);
    world.finish().await;
}

#[tokio::test(start_paused = true)]
async fn r4_67_r4_70_signals_timers_and_activities_stay_behind() {
    let world = world()
        .options(|options| options.worker_concurrency = 0)
        .orchestration("Main", |ctx, input| async move {
            let second = ctx.schedule_timer(Duration::from_secs(60));
            let _work = ctx.schedule_activity("A", "");
            let go = ctx.schedule_wait("go");
            match input.as_str() {
                "" => {
                    go.await;
                    ctx.continue_as_new("second").await
                }
                _ => {
                    second.await; // Its own, not that of the first execution.
                    Ok(go.await)
                }
            }
        })
        .start()
        .await;
    world.begin("i", "Main", "").await;
    world.until_kind("i", "ExternalSubscribed").await;
    tokio::time::sleep(Duration::from_secs(30)).await;
    // R4.39: the second signal comes to the first execution and is of no use to anybody.
    world.send([raised("i", "go", "1"), raised("i", "go", "2")]).await;
    world.until("i", |history| execution_of(history) == 2).await;
    tokio::time::sleep(Duration::from_secs(45)).await;
    assert!(!has(&world.history("i").await, "TimerFired"), "the old timer was stale");
    tokio::time::sleep(Duration::from_secs(45)).await;
    assert!(has(&world.history("i").await, "TimerFired"));
    world.client.raise_event("i", "go", "3").await.unwrap();
    assert_eq!(world.output("i").await, "3");
    world.finish().await;
}

#[tokio::test(start_paused = true)]
async fn r1_1_r1_2_r1_3_r1_28_r4_68_r2_14_each_execution_has_a_history_of_its_own() {
    let world = world().orchestration("Main", twice).start().await;
    world.begin("i", "Main", "").await;
    world.until_kind("i", "ExternalSubscribed").await;
    let first = world.client.read_execution_history("i", 1).await.unwrap();
    let second = world.client.read_execution_history("i", 2).await.unwrap();
    assert_eq!(kinds(&first), ["OrchestrationStarted", "OrchestrationContinuedAsNew"]);
    assert_eq!(kinds(&second), ["OrchestrationStarted", "ExternalSubscribed"]);
    let ids = |history: &[Event]| history.iter().map(|event| event.event_id).collect::<Vec<_>>();
    assert_eq!((ids(&first), ids(&second)), (vec![1, 2], vec![1, 2]));
    assert!(second.iter().all(|event| event.execution_id == 2));
    // R7.81: each is pinned by itself.
    let executions = &world.memory.snapshot().instances["i"].executions;
    for number in [1, 2] {
        let pin = executions[&number].pinned_duroxide_version.as_ref();
        assert_eq!(pin, Some(&current_build_version()));
    }
    world.finish().await;
}

/// A store in which `i` has continued as version 2, which nobody registers yet.
async fn between_executions() -> World {
    let world = first_half(world()).start().await;
    world.begin("i", "Main", "").await;
    world.until_kind("i", "OrchestrationContinuedAsNew").await;
    world
}

fn first_half(world: WorldBuilder) -> WorldBuilder {
    world.orchestration("Main", |ctx, _input| async move {
        ctx.continue_as_new_versioned("2.0.0", "second").await
    })
}

fn second_half(memory: Arc<MemoryProvider>) -> WorldBuilder {
    first_half(world_on(memory)).orchestration_version("Main", "2.0.0", |ctx, _input| async move {
        let (queued, raised) = (ctx.dequeue_event("q"), ctx.schedule_wait("go"));
        let (queued, raised) = ctx.join2(queued, raised).await;
        Ok(format!("{queued} {raised}"))
    })
}

#[tokio::test(start_paused = true)]
async fn l17_r1_25_messages_between_two_executions_wait_for_the_second() {
    let world = between_executions().await;
    let status = world.client.get_orchestration_status("i").await.unwrap();
    assert!(matches!(status, OrchestrationStatus::Running { .. })); // R6.22
    world.client.enqueue_event("i", "q", "kept").await.unwrap();
    // R1.51: not even a start may stand in for the successor's.
    world.client.start_orchestration("i", "Main", "impostor").await.unwrap();
    tokio::time::sleep(Duration::from_secs(20)).await;
    let world = second_half(world.close().await).start().await;
    world.until("i", |history| has(history, "ExternalSubscribed")).await;
    world.client.raise_event("i", "go", "went").await.unwrap();
    assert_eq!(world.output("i").await, "kept went");
    assert_eq!(world.client.list_executions("i").await.unwrap(), [1, 2]);
    world.finish().await;
}

#[tokio::test(start_paused = true)]
async fn r7_90_a_cancel_between_two_executions_cancels_the_second() {
    let world = between_executions().await;
    world.client.cancel_instance("i", "in between").await.unwrap();
    tokio::time::sleep(Duration::from_secs(5)).await;
    let status = world.client.get_orchestration_status("i").await.unwrap();
    assert!(matches!(status, OrchestrationStatus::Running { .. }));
    let world = second_half(world.close().await).start().await;
    assert_eq!(world.error("i").await, ErrorDetails::cancelled("in between"));
    let first = world.client.get_execution_info("i", 1).await.unwrap();
    assert_eq!(first.status, "ContinuedAsNew");
    world.finish().await;
}

#[tokio::test(start_paused = true)]
async fn r4_69_r7_75_a_successor_nobody_can_run_fails_as_its_own_execution() {
    let world = between_executions().await;
    let error = world.error_at_last("i").await;
    assert!(matches!(error, ErrorDetails::Poison { attempt_count: 11, .. }), "{error:?}");
    assert_eq!(kinds(&world.history("i").await), ["OrchestrationStarted", "OrchestrationFailed"]);
    let EventKind::OrchestrationStarted { name, version, input, .. } =
        &world.history("i").await[0].kind
    else {
        panic!()
    };
    // The version asked for, not that of the execution before.
    assert_eq!((name.as_str(), version.as_str(), input.as_str()), ("Main", "2.0.0", "second"));
    assert_eq!(
        kinds(&world.execution("i", 1).await).last().unwrap(),
        "OrchestrationContinuedAsNew"
    );
    let first = world.client.get_execution_info("i", 1).await.unwrap();
    assert_eq!(
        (first.status.as_str(), first.output.as_deref()),
        ("ContinuedAsNew", Some("second"))
    );
    world.finish().await;
}

/// A first execution that has just continued, with a parent, as an older runtime left it.
async fn continued_with_parent(memory: &MemoryProvider) {
    let started = EventKind::OrchestrationStarted {
        name: "Main".into(),
        version: "1.0.0".into(),
        input: String::new(),
        parent_instance: Some("p".into()),
        parent_id: Some(5),
        parent_execution_id: Some(1),
        carry_forward_events: None,
        initial_custom_status: None,
    };
    let ended = EventKind::OrchestrationContinuedAsNew { input: "second".into() };
    let events = [started, ended].into_iter().zip(1..);
    let events = events.map(|(kind, id)| Event::with_event_id(id, "i", 1, None, kind)).collect();
    memory.append_with_execution("i", 1, events).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn r1_57_the_parent_link_comes_from_the_message_alone() {
    let memory = Arc::new(MemoryProvider::new());
    continued_with_parent(&memory).await;
    let unlinked = WorkItem::ContinueAsNew {
        instance: "i".into(),
        orchestration: "Main".into(),
        input: "second".into(),
        version: None,
        parent_instance: None,
        parent_id: None,
        parent_execution_id: None,
        carry_forward_events: Vec::new(),
        initial_custom_status: None,
    };
    preload(&*memory, [unlinked]).await;
    let world = world_on(memory).orchestration("Main", twice).start().await;
    world.until_kind("i", "ExternalSubscribed").await;
    world.client.raise_event("i", "go", "end").await.unwrap();
    world.output("i").await;
    assert!(world.settled().await.orchestrator_queue.is_empty(), "nobody is told");
    world.runtime.shutdown(None).await; // Its past was appended, not committed: no check.
}

#[tokio::test(start_paused = true)]
async fn r4_74_a_reset_status_stays_reset() {
    let world = world()
        .orchestration("Main", |ctx, input| async move {
            if input.is_empty() {
                ctx.set_custom_status("x");
                ctx.reset_custom_status();
                return ctx.continue_as_new("second").await;
            }
            Ok(format!("{:?}", ctx.get_custom_status()))
        })
        .start()
        .await;
    assert_eq!(world.run("i", "Main", "").await, "None");
    world.finish().await;
}

#[tokio::test(start_paused = true)]
async fn r4_82_r4_86_values_add_up_over_many_executions() {
    let world = world()
        .orchestration("Sum", |ctx, input| async move {
            let sum: u64 = ctx.get_kv_value_typed("sum").unwrap().unwrap_or(0);
            let n: u64 = input.parse().unwrap();
            ctx.set_kv_value_typed("sum", &(sum + n));
            match n {
                0 => Ok(sum.to_string()),
                n => ctx.continue_as_new_typed(&(n - 1)).await,
            }
        })
        .start()
        .await;
    assert_eq!(world.run("i", "Sum", "60").await, "1830");
    assert_eq!(world.client.list_executions("i").await.unwrap().len(), 61);
    assert_eq!(world.client.get_kv_value("i", "sum").await.unwrap().as_deref(), Some("1830"));
    world.finish().await;
}

#[tokio::test(start_paused = true)]
async fn r4_105_continuing_fits_an_orchestration_of_any_type() {
    let memory = Arc::new(MemoryProvider::new());
    let orchestrations = duroxide::OrchestrationRegistry::builder()
        .register_typed("Count", |ctx: OrchestrationContext, n: u64| async move {
            match n {
                3 => Ok(n),
                1 => ctx.continue_as_new_versioned("1.0.0", "2").returning().await,
                _ => ctx.continue_as_new_typed(&(n + 1)).returning().await,
            }
        })
        .build();
    let activities = duroxide::runtime::registry::ActivityRegistry::builder().build();
    let store: Arc<dyn Provider> = memory.clone();
    let runtime =
        duroxide::runtime::Runtime::start_with_store(store.clone(), activities, orchestrations)
            .await;
    let client = duroxide::Client::new(store);
    client.start_orchestration_typed("c", "Count", 0).await.unwrap();
    let patience = Duration::from_secs(5);
    assert_eq!(client.wait_for_orchestration_typed("c", patience).await.unwrap(), Ok(3_u64));
    assert_eq!(client.list_executions("c").await.unwrap(), [1, 2, 3, 4]);
    runtime.shutdown(None).await;
}
