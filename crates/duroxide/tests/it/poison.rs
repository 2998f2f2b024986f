//! Items nobody can run: patience, then an end that everybody concerned hears of.

use std::sync::Arc;
use std::time::Duration;

use duroxide::providers::WorkItem;
use duroxide::providers::memory::MemoryProvider;
use duroxide::{
    ClientError, ErrorDetails, EventKind, OrchestrationContext, OrchestrationStatus,
    PoisonMessageType,
};
use tokio::time::Instant;

use crate::support::faults::{Faults, FaultyProvider};
use crate::support::look::{child_start, preload, queued, raised, start};
use crate::support::{WorldBuilder, kinds, world, world_on};

async fn waits(ctx: OrchestrationContext, _input: String) -> Result<String, String> {
    Ok(ctx.schedule_wait("go").await)
}

/// A store where `i` waits for `go` and no runtime runs.
async fn store_with_waiting() -> Arc<MemoryProvider> {
    let world = world().orchestration("Waits", waits).start().await;
    world.begin("i", "Waits", "").await;
    world.until_kind("i", "ExternalSubscribed").await;
    world.close().await
}

/// Every item is one too many.
fn impatient(memory: Arc<MemoryProvider>) -> WorldBuilder {
    world_on(memory).options(|options| options.max_attempts = 0)
}

#[tokio::test(start_paused = true)]
async fn r1_23_r1_29_r7_30_r7_34_an_unknown_orchestration_is_retried_with_growing_waits_then_given_up()
 {
    let world = world().start().await;
    let began = Instant::now();
    world.begin("i", "Nobody", "in").await;
    tokio::time::sleep(Duration::from_secs(200)).await;
    let status = world.client.get_orchestration_status("i").await.unwrap();
    assert!(matches!(status, OrchestrationStatus::NotFound)); // R7.30
    let error = world.error_at_last("i").await;
    // R7.31, R7.32: ten waits of 1, 2, 4 … 32, 60, 60, 60, 60 s; the 11th fetch gives up.
    assert_eq!(began.elapsed().as_secs(), 63 + 4 * 60);
    let ErrorDetails::Poison { attempt_count, max_attempts, message_type, message } = &error else {
        panic!("{error:?}")
    };
    assert_eq!((*attempt_count, *max_attempts), (11, 10)); // R7.33
    let of = PoisonMessageType::Orchestration { instance: "i".into(), execution_id: 1 };
    assert_eq!(*message_type, of);
    let messages: Vec<WorkItem> = serde_json::from_str(message).unwrap();
    assert_eq!(messages, [start("i", "Nobody", "in")]); // R7.74
    let shown = error.display_message();
    let expected = "poison: orchestration i exceeded 11 attempts (max 10): orchestration `Nobody` is \
                    registered on no node that took it; nothing there has a name like it";
    assert_eq!(shown, expected); // R9.62
    // R7.76: it came into being as failed.
    assert_eq!(kinds(&world.history("i").await), ["OrchestrationStarted", "OrchestrationFailed"]);
    let info = world.client.get_instance_info("i").await.unwrap();
    assert_eq!(
        (info.orchestration_name.as_str(), info.orchestration_version.as_str()),
        ("Nobody", "unknown")
    );
    assert_eq!((info.status.as_str(), info.output), ("Failed", Some(shown)));
    world.finish().await;
}

#[tokio::test(start_paused = true)]
async fn r7_30_a_node_that_knows_it_takes_over() {
    let poor = world().start().await;
    poor.begin("i", "Late", "x").await;
    tokio::time::sleep(Duration::from_secs(5)).await;
    let rich = world_on(poor.memory.clone())
        .orchestration("Late", |_ctx, input| async { Ok(input) })
        .start()
        .await;
    poor.finish().await;
    assert_eq!(rich.output("i").await, "x");
    rich.finish().await;
}

#[tokio::test(start_paused = true)]
async fn r7_74_a_running_instance_fails_after_its_history_and_keeps_its_activities() {
    let world = world()
        .options(|options| options.worker_concurrency = 0)
        .orchestration("Waits", |ctx, input| async move {
            let _work = ctx.schedule_activity("A", "");
            let _kid = ctx.schedule_sub_orchestration_with_id("Kid", "kid", "");
            waits(ctx, input).await
        })
        .orchestration("Kid", waits)
        .start()
        .await;
    world.begin("i", "Waits", "").await;
    world.until_kind("kid", "ExternalSubscribed").await;
    let memory = world.close().await;
    preload(&*memory, [raised("i", "go", "")]).await;
    let world = impatient(memory).options(|options| options.worker_concurrency = 0).start().await;
    assert!(matches!(world.error("i").await, ErrorDetails::Poison { attempt_count: 1, .. }));
    // No activity is cancelled; the child is (L7), and would be by word of `parent failed`.
    assert_eq!(kinds(&world.history("i").await)[4..], ["OrchestrationFailed"]);
    assert_eq!(world.memory.snapshot().worker_queue.len(), 1);
    assert!(matches!(world.error("kid").await, ErrorDetails::Poison { message, .. }
        if message.contains("parent failed")));
    world.finish().await;
}

#[tokio::test(start_paused = true)]
async fn r7_77_a_poisoned_childs_parent_fails_with_it() {
    let world = world()
        .options(|options| options.max_attempts = 2)
        .orchestration("Main", |ctx, _input| async move {
            ctx.schedule_sub_orchestration("Nobody", "").await
        })
        .start()
        .await;
    world.begin("m", "Main", "").await;
    let error = world.error_at_last("m").await;
    assert!(matches!(&error, ErrorDetails::Poison {
        message_type: PoisonMessageType::Orchestration { instance, .. }, ..
    } if instance == "m::sub::2"));
    assert_eq!(world.error("m::sub::2").await, error);
    world.finish().await;
}

#[tokio::test(start_paused = true)]
async fn r7_80_one_worn_message_makes_the_batch_poison() {
    let world = world().options(|options| options.max_attempts = 3).start().await;
    world.begin("i", "Nobody", "").await;
    tokio::time::sleep(Duration::from_secs(4)).await; // Fetched at 0, 1 and 3 s; next at 7 s.
    world.client.raise_event("i", "fresh", "").await.unwrap();
    let error = world.error_at_last("i").await;
    let ErrorDetails::Poison { attempt_count: 4, message, .. } = error else { panic!("{error:?}") };
    assert!(message.contains("fresh") && message.contains("StartOrchestration"));
    world.finish().await;
}

#[tokio::test(start_paused = true)]
async fn r7_75_a_successor_without_its_start_message_takes_the_parent_of_its_predecessor() {
    let world = world()
        .orchestration("Main", |ctx, _input| async move {
            ctx.continue_as_new_versioned("2.0.0", "second").await
        })
        .start()
        .await;
    world.send([child_start("i", "Main", ("p", Some(4), 5))]).await;
    world.until_kind("i", "OrchestrationContinuedAsNew").await;
    let memory = world.close().await;
    // The successor's start is hidden by the backoff; only these are visible.
    preload(&*memory, [raised("i", "e", ""), start("i", "Impostor", "x")]).await;
    let world = impatient(memory).start().await;
    world.error("i").await;
    let history = world.history("i").await;
    assert_eq!(kinds(&history), ["OrchestrationStarted", "OrchestrationFailed"]);
    let EventKind::OrchestrationStarted { name, input, parent_instance, parent_id, .. } =
        &history[0].kind
    else {
        panic!()
    };
    assert_eq!((name.as_str(), input.as_str()), ("Main", ""));
    assert_eq!((parent_instance.as_deref(), *parent_id), (Some("p"), Some(5)));
    let store = world.memory.snapshot();
    assert_eq!(store.instances["i"].executions[&1].status, "ContinuedAsNew");
    let told = store.orchestrator_queue.iter().find(|message| message.instance == "p").unwrap();
    assert!(matches!(
        &told.item,
        WorkItem::SubOrchFailed { parent_execution_id: 4, parent_id: 5, .. }
    ));
    world.finish().await;
}

#[tokio::test(start_paused = true)]
async fn r1_24_r7_78_r2_15_an_unreadable_history_is_retried_every_second_then_ends() {
    let memory = store_with_waiting().await;
    memory.corrupt_history("i", "bits rotted");
    let world = world_on(memory).orchestration("Waits", waits).start().await;
    let began = Instant::now();
    world.client.raise_event("i", "go", "").await.unwrap();
    // R6.25: until then nobody can say how it stands.
    let status = world.client.get_orchestration_status("i").await;
    assert!(matches!(status, Err(ClientError::Provider(_))), "{status:?}");
    let store =
        world.until_store(|store| store.instances["i"].executions[&1].status == "Failed").await;
    assert_eq!(began.elapsed().as_secs(), 10);
    let last = store.instances["i"].executions[&1].history.last().unwrap();
    assert_eq!(last.event_id, 99_999);
    let EventKind::OrchestrationFailed {
        details: ErrorDetails::Poison { message_type, message, .. },
    } = &last.kind
    else {
        panic!("{last:?}")
    };
    let error = "bits rotted".to_owned();
    assert_eq!(*message, error);
    let of =
        PoisonMessageType::FailedDeserialization { instance: "i".into(), execution_id: 1, error };
    assert_eq!(*message_type, of);
    world.finish().await;
}

#[tokio::test(start_paused = true)]
async fn r7_78_what_comes_after_an_unreadable_end_is_consumed_too() {
    let memory = store_with_waiting().await;
    memory.corrupt_history("i", "bits rotted");
    let world = world_on(memory).options(|options| options.max_attempts = 2).start().await;
    world.client.raise_event("i", "go", "").await.unwrap();
    world.until_store(|store| store.instances["i"].executions[&1].status == "Failed").await;
    world.client.raise_event("i", "go", "late").await.unwrap();
    world.settled().await;
    assert_eq!(world.memory.snapshot().instances["i"].executions[&1].history.len(), 3);
    world.finish().await;
}

#[tokio::test(start_paused = true)]
async fn r6_67_poisoned_instances_can_be_deleted_and_begin_anew() {
    let world = world()
        .options(|options| options.max_attempts = 1)
        .orchestration("Main", |_ctx, input| async { Ok(input) })
        .start()
        .await;
    world.begin("i", "Nobody", "").await;
    world.error_at_last("i").await;
    world.client.delete_instance("i", false).await.unwrap();
    assert_eq!(world.run("i", "Main", "anew").await, "anew");
    world.finish().await;
}

#[tokio::test(start_paused = true)]
async fn r1_26_r2_28_an_ended_instance_is_never_poisoned() {
    let world = world().orchestration("Main", |_ctx, input| async { Ok(input) }).start().await;
    world.run("i", "Main", "fine").await;
    let world = impatient(world.close().await).start().await;
    world.send([queued("i", "q", "late")]).await;
    world.settled().await;
    assert_eq!(world.output("i").await, "fine");
    let history = world.history("i").await;
    assert_eq!(kinds(&history), ["OrchestrationStarted", "OrchestrationCompleted"]);
    world.finish().await;
}

#[tokio::test(start_paused = true)]
async fn r7_131_r9_22_r9_25_poison_is_counted_once_and_the_gauge_stays_right() {
    let world = impatient(Arc::new(MemoryProvider::new())).start().await;
    world.begin("i", "Nobody", "").await;
    world.error("i").await;
    let counters = world.runtime.metrics_snapshot().unwrap();
    assert_eq!((counters.orch_poison, counters.orch_failures), (1, 1));
    assert_eq!((counters.orch_starts, counters.orch_completions), (1, 1)); // R9.13, R9.20
    let metrics = world.runtime.observability_handle().unwrap().metrics_provider().clone();
    assert_eq!(metrics.get_active_orchestrations(), 0);
    drop(metrics);
    world.finish().await;
}

#[tokio::test(start_paused = true)]
async fn messages_without_a_start_are_dropped_in_the_end() {
    // Some stores serve messages of instances that do not exist (R8.29 forbids it).
    let faults = Faults::default();
    faults.twist(|item| item.messages = vec![raised("ghost", "e", "")]);
    let world = world()
        .through(|store| FaultyProvider::wrap(store, &faults))
        .options(|options| options.max_attempts = 2)
        .start()
        .await;
    world.begin("ghost", "Nobody", "").await;
    world.settled().await;
    let executions = &world.memory.snapshot().instances["ghost"].executions;
    assert!(executions.values().all(|execution| execution.history.is_empty()));
    world.finish().await;
}
