//! The client against a running runtime: starting, talking, watching, waiting (chapter 6).

use std::sync::Arc;
use std::time::Duration;

use duroxide::providers::Provider;
use duroxide::{Client, ClientError, ErrorDetails, OrchestrationContext, OrchestrationStatus};
use serde::{Deserialize, Serialize};
use tokio::time::Instant;

use crate::support::faults::{Faults, FaultyProvider, broken};
use crate::support::{PATIENCE, World, WorldBuilder, kinds, world, world_on};

const fn seconds(n: u64) -> Duration {
    Duration::from_secs(n)
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Order {
    id: u32,
}

/// An orchestration that answers with its version and input.
fn versions() -> WorldBuilder {
    let tell = |ctx: OrchestrationContext, input: String| async move {
        Ok(format!("{}:{input}", ctx.orchestration_version()))
    };
    world()
        .orchestration_version("Main", "1.0.0", tell)
        .orchestration_version("Main", "1.2.0", tell)
}

/// An orchestration that sets its status, waits for `Go`, and ends as the event says.
async fn wait_for_go(ctx: OrchestrationContext, _: String) -> Result<String, String> {
    ctx.set_custom_status("waiting");
    ctx.set_kv_value("colour", "blue");
    ctx.set_kv_value_typed("order", &Order { id: 7 });
    let word = ctx.schedule_wait("Go").await;
    match word.strip_prefix("fail:") {
        Some(error) => Err(error.to_owned()),
        None => Ok(word),
    }
}

/// A world with one such orchestration, waiting.
async fn waiting() -> World {
    let world = world().orchestration("Main", wait_for_go).start().await;
    world.begin("m", "Main", "").await;
    world.until("m", |history| kinds(history).contains(&"ExternalSubscribed".to_owned())).await;
    world
}

#[tokio::test]
async fn r6_1_r6_5_starts_with_and_without_version_and_types() {
    let world = versions().start().await;
    let client = &world.client;
    client.start_orchestration("a", "Main", "x").await.unwrap();
    client.start_orchestration_versioned("b", "Main", "1.0.0", "x").await.unwrap();
    client.start_orchestration_typed("c", "Main", Order { id: 1 }).await.unwrap();
    let typed = client.start_orchestration_versioned_typed("d", "Main", "1.0.0", Order { id: 2 });
    typed.await.unwrap();
    assert_eq!(world.output("a").await, "1.2.0:x");
    assert_eq!(world.output("b").await, "1.0.0:x");
    assert_eq!(world.output("c").await, r#"1.2.0:{"id":1}"#);
    assert_eq!(world.output("d").await, r#"1.0.0:{"id":2}"#);
    world.finish().await;
}

#[tokio::test(start_paused = true)]
async fn r6_5_a_version_nobody_registers_is_waited_for_and_given_up() {
    let world = versions().patient().options(|options| options.max_attempts = 2).start().await;
    world.client.start_orchestration_versioned("m", "Main", "3.0.0", "").await.unwrap();
    let error = world.error("m").await;
    assert!(matches!(error, ErrorDetails::Poison { attempt_count: 3, .. }), "{error:?}");
    world.finish().await;
}

#[tokio::test]
async fn r6_2_reserved_ids_start_nothing() {
    let world = versions().start().await;
    let error = world.client.start_orchestration("sub::7", "Main", "").await.unwrap_err();
    let expected =
        "Invalid input: instance id 'sub::7' uses the reserved sub-orchestration marker 'sub::'";
    assert_eq!(error.to_string(), expected);
    assert!(world.memory.snapshot().orchestrator_queue.is_empty());
    world.finish().await;
}

#[tokio::test]
async fn r6_4_starting_an_id_in_use_changes_nothing() {
    let world = waiting().await;
    world.begin("m", "Main", "again").await; // While it runs.
    world.client.raise_event("m", "Go", "done").await.unwrap();
    assert_eq!(world.output("m").await, "done");
    let history = world.history("m").await;
    world.begin("m", "Main", "again").await; // After it ended.
    while !world.memory.snapshot().orchestrator_queue.is_empty() {
        tokio::task::yield_now().await;
    }
    assert_eq!(world.history("m").await, history);
    // To use the id again, the instance has to go.
    world.client.delete_instance("m", false).await.unwrap();
    world.begin("m", "Main", "").await;
    world.until("m", |history| kinds(history).contains(&"ExternalSubscribed".to_owned())).await;
    world.client.raise_event("m", "Go", "anew").await.unwrap();
    assert_eq!(world.output("m").await, "anew");
    world.finish().await;
}

#[tokio::test]
async fn r6_10_r6_11_events_and_messages_arrive_typed_and_plain() {
    let world = world()
        .orchestration("Main", |ctx, _| async move {
            let plain = ctx.schedule_wait("Plain");
            let typed = ctx.schedule_wait_typed::<Order>("Typed");
            ctx.set_custom_status("ready");
            let (plain, typed) = (plain.await, typed.await);
            let queued = ctx.dequeue_event("q").await;
            let queued_typed: Order = ctx.dequeue_event_typed("q").await;
            let old_name = ctx.dequeue_event("q").await;
            Ok(format!("{plain} {typed:?} {queued} {queued_typed:?} {old_name}"))
        })
        .start()
        .await;
    world.begin("m", "Main", "").await;
    let client = &world.client;
    client.wait_for_status_change("m", 0, seconds(1), PATIENCE).await.unwrap();
    client.raise_event("m", "Plain", "p").await.unwrap();
    client.raise_event_typed("m", "Typed", &Order { id: 1 }).await.unwrap();
    client.enqueue_event("m", "q", "one").await.unwrap();
    client.enqueue_event_typed("m", "q", &Order { id: 2 }).await.unwrap();
    #[expect(deprecated, reason = "the old name still works")]
    client.raise_event_persistent("m", "q", "three").await.unwrap();
    assert_eq!(world.output("m").await, "p Order { id: 1 } one Order { id: 2 } three");
    world.finish().await;
}

#[tokio::test]
async fn r6_12_cancelling_twice_or_too_late_is_fine() {
    let world = waiting().await;
    world.client.cancel_instance("m", "first").await.unwrap();
    world.client.cancel_instance("m", "second").await.unwrap();
    assert_eq!(world.error("m").await.display_message(), "canceled: first");
    let history = world.history("m").await;
    world.client.cancel_instance("m", "third").await.unwrap();
    while !world.memory.snapshot().orchestrator_queue.is_empty() {
        tokio::task::yield_now().await;
    }
    assert_eq!(world.history("m").await, history);
    world.finish().await;
}

#[tokio::test]
async fn r6_14_words_for_nobody_block_nobody() {
    let world = versions().start().await;
    let client = &world.client;
    client.raise_event("ghost", "Go", "").await.unwrap();
    client.cancel_instance("ghost", "why not").await.unwrap();
    client.enqueue_event("phantom", "q", "boo").await.unwrap();
    assert_eq!(world.run("m", "Main", "x").await, "1.2.0:x");
    let status = client.get_orchestration_status("ghost").await.unwrap();
    assert_eq!(status, OrchestrationStatus::NotFound);
    world.finish().await;
}

#[tokio::test]
async fn r6_20_r6_21_the_status_follows_the_instance() {
    let world = waiting().await;
    let status = async |id: &str| world.client.get_orchestration_status(id).await.unwrap();
    let custom_status = Some("waiting".to_owned());
    let running = OrchestrationStatus::Running {
        custom_status: custom_status.clone(),
        custom_status_version: 1,
    };
    assert_eq!(status("m").await, running);
    world.client.raise_event("m", "Go", "done").await.unwrap();
    let completed = OrchestrationStatus::Completed {
        output: "done".to_owned(),
        custom_status,
        custom_status_version: 1,
    };
    assert_eq!(world.ended("m").await, completed);
    assert_eq!(status("m").await, completed);
    assert_eq!(status("unknown").await, OrchestrationStatus::NotFound);
    world.finish().await;
}

#[tokio::test]
async fn r6_24_an_instance_nobody_picked_up_is_not_found() {
    let idle = versions().options(|options| options.orchestration_concurrency = 0).start().await;
    idle.begin("m", "Main", "").await;
    let status = idle.client.get_orchestration_status("m").await.unwrap();
    assert_eq!(status, OrchestrationStatus::NotFound);
    let wait = idle.client.wait_for_orchestration("m", Duration::from_millis(20)).await;
    assert!(matches!(wait, Err(ClientError::Timeout)));
    idle.finish().await;
}

#[tokio::test]
async fn r6_22_between_two_executions_an_instance_runs() {
    async fn first(ctx: OrchestrationContext, _input: String) -> Result<String, String> {
        ctx.set_custom_status("kept");
        ctx.continue_as_new_versioned("2.0.0", "next").await
    }
    async fn second(_ctx: OrchestrationContext, input: String) -> Result<String, String> {
        Ok(input)
    }
    // The successor cannot run here.
    let before = world().orchestration("Main", first).start().await;
    before.begin("m", "Main", "").await;
    let ends = |history: &[duroxide::Event]| kinds(history).len() == 3;
    assert_eq!(kinds(&before.until("m", ends).await)[2], "OrchestrationContinuedAsNew");
    let status = before.client.get_orchestration_status("m").await.unwrap();
    let OrchestrationStatus::Running { custom_status, .. } = status else { panic!("{status:?}") };
    assert_eq!(custom_status.as_deref(), Some("kept"));
    let memory = Arc::clone(&before.memory);
    before.finish().await;
    let after = world_on(memory)
        .orchestration("Main", first)
        .orchestration_version("Main", "2.0.0", second)
        .start()
        .await;
    assert_eq!(after.output("m").await, "next");
    after.finish().await;
}

#[tokio::test]
async fn r6_23_a_status_without_its_custom_part_is_a_status() {
    let world = waiting().await;
    let faults = Faults::default();
    let store = Arc::clone(&world.memory) as Arc<dyn Provider>;
    let client = Client::new(FaultyProvider::wrap(store, &faults));
    faults.next("get_custom_status", [broken()]);
    let status = client.get_orchestration_status("m").await.unwrap();
    let bare = OrchestrationStatus::Running { custom_status: None, custom_status_version: 0 };
    assert_eq!(status, bare);
    world.finish().await;
}

#[tokio::test]
async fn r6_25_an_unreadable_history_is_an_error_of_the_store() {
    let world = waiting().await;
    world.memory.corrupt_history("m", "bad sector");
    let error = world.client.get_orchestration_status("m").await.unwrap_err();
    assert!(matches!(&error, ClientError::Provider(_)), "{error:?}");
    assert!(error.to_string().contains("bad sector"), "{error}");
    let wait = world.client.wait_for_orchestration("m", PATIENCE).await.unwrap_err();
    assert!(matches!(wait, ClientError::Provider(_)), "{wait:?}");
    world.runtime.shutdown(None).await;
}

/// An orchestration that ends after as many seconds as its input says.
async fn take_time(ctx: OrchestrationContext, input: String) -> Result<String, String> {
    let pause = seconds(input.parse().unwrap());
    ctx.schedule_timer(pause).await;
    ctx.set_custom_status("half");
    ctx.set_kv_value("half", "yes");
    ctx.schedule_timer(pause).await;
    Ok(input)
}

#[tokio::test(start_paused = true)]
async fn r6_30_r6_34_waits_are_woken_by_the_commit_they_wait_for() {
    let world = world().orchestration("Main", take_time).start().await;
    let (client, began) = (&world.client, Instant::now());
    let wait = client.wait_for_orchestration("m", seconds(60)); // It does not exist yet.
    let status = client.wait_for_status_change("m", 0, seconds(30), seconds(60));
    let value = client.wait_for_kv_value("m", "half", seconds(60));
    let start = client.start_orchestration("m", "Main", "5");
    let clocked = async |what: &str| format!("{what} at {:?}", began.elapsed());
    let (end, status, value, _) = tokio::join!(
        async {
            wait.await.map(|_| ()).unwrap();
            clocked("end").await
        },
        async {
            status.await.map(|_| ()).unwrap();
            clocked("status").await
        }, // R6.32
        async {
            value.await.map(|_| ()).unwrap();
            clocked("value").await
        }, // R6.33
        start,
    );
    assert_eq!([end, status, value], ["end at 10s", "status at 5s", "value at 5s"]);
    world.finish().await;
}

#[tokio::test(start_paused = true)]
async fn r6_30_stores_that_cannot_tell_of_commits_are_asked_often_enough() {
    let faults = Faults::default();
    let world = world()
        .orchestration("Main", take_time)
        .through(|store| FaultyProvider::wrap(store, &faults))
        .start()
        .await;
    let began = Instant::now();
    world.begin("m", "Main", "5").await;
    let status = world.client.wait_for_orchestration("m", seconds(60)).await.unwrap();
    assert!(matches!(status, OrchestrationStatus::Completed { .. }));
    let late = began.elapsed() - seconds(10);
    assert!(late <= Duration::from_millis(100), "{late:?}");
    world.finish().await;
}

#[tokio::test(start_paused = true)]
async fn r6_30_waits_end_at_their_deadline() {
    let world = world().orchestration("Main", take_time).start().await;
    world.begin("m", "Main", "60").await;
    let (client, began) = (&world.client, Instant::now());
    let timeout = seconds(7);
    let end = client.wait_for_orchestration("m", timeout).await.unwrap_err();
    let typed = client.wait_for_orchestration_typed::<u32>("m", timeout).await.unwrap_err();
    let status = client.wait_for_status_change("m", 0, seconds(2), timeout).await.unwrap_err();
    let value = client.wait_for_kv_value("m", "half", timeout).await.unwrap_err();
    for error in [end, typed, status, value] {
        assert!(matches!(error, ClientError::Timeout), "{error:?}");
    }
    assert_eq!(began.elapsed(), 4 * timeout);
    world.client.cancel_instance("m", "test is over").await.unwrap();
    world.ended("m").await;
    world.finish().await;
}

#[tokio::test]
async fn r6_31_typed_waits_decode_outputs_and_tell_errors() {
    let world = world()
        .orchestration("Main", |_ctx, input| async move {
            if input == "fail" { Err("no such luck".to_owned()) } else { Ok(input) }
        })
        .start()
        .await;
    let client = &world.client;
    client.start_orchestration_typed("ok", "Main", Order { id: 3 }).await.unwrap();
    world.begin("text", "Main", "plain").await;
    world.begin("bad", "Main", "fail").await;
    let order = client.wait_for_orchestration_typed::<Order>("ok", PATIENCE).await.unwrap();
    assert_eq!(order, Ok(Order { id: 3 }));
    let text = client.wait_for_orchestration_typed::<String>("text", PATIENCE).await.unwrap();
    assert_eq!(text.as_deref(), Ok("plain"));
    let error = client.wait_for_orchestration_typed::<Order>("bad", PATIENCE).await.unwrap();
    assert_eq!(error, Err("no such luck".to_owned()));
    let mismatch = client.wait_for_orchestration_typed::<Order>("text", PATIENCE).await;
    let mismatch = mismatch.unwrap_err().to_string();
    assert!(mismatch.starts_with("Invalid input: decode failed: "), "{mismatch}");
    world.finish().await;
}

#[tokio::test]
async fn r6_32_status_changes_are_seen_one_after_the_other() {
    let world = world()
        .orchestration("Main", |ctx, _| async move {
            for step in ["one", "two", "three"] {
                ctx.set_custom_status(step);
                ctx.schedule_wait("Next").await;
            }
            Ok("end".to_owned())
        })
        .start()
        .await;
    world.begin("m", "Main", "").await;
    let mut seen = 0;
    for step in ["one", "two", "three"] {
        let status = world.client.wait_for_status_change("m", seen, seconds(1), PATIENCE).await;
        let status = status.unwrap();
        let OrchestrationStatus::Running { custom_status, custom_status_version } = status else {
            panic!("{status:?}")
        };
        assert_eq!((custom_status.as_deref(), custom_status_version), (Some(step), seen + 1));
        seen = custom_status_version;
        world.client.raise_event("m", "Next", "").await.unwrap();
    }
    // Nothing newer, but the end.
    let status = world.client.wait_for_status_change("m", seen, seconds(1), PATIENCE).await;
    assert!(matches!(status.unwrap(), OrchestrationStatus::Completed { .. }));
    let nothing = world.client.wait_for_status_change("m", 0, seconds(1), Duration::ZERO).await;
    assert!(matches!(nothing, Err(ClientError::Timeout)));
    world.finish().await;
}

#[tokio::test]
async fn r6_33_r6_40_r4_85_values_of_a_running_instance_are_read_plain_and_typed() {
    let world = waiting().await;
    let client = &world.client;
    assert_eq!(client.wait_for_kv_value("m", "colour", PATIENCE).await.unwrap(), "blue");
    let order: Order = client.wait_for_kv_value_typed("m", "order", PATIENCE).await.unwrap();
    assert_eq!(order, Order { id: 7 });
    assert_eq!(client.get_kv_value("m", "colour").await.unwrap().as_deref(), Some("blue"));
    let order: Option<Order> = client.get_kv_value_typed("m", "order").await.unwrap();
    assert_eq!(order, Some(Order { id: 7 }));
    let mismatch = client.get_kv_value_typed::<Order>("m", "colour").await.unwrap_err();
    let mismatch = mismatch.to_string();
    assert!(mismatch.starts_with("Invalid input: KV deserialization error: "), "{mismatch}");
    assert_eq!(client.get_kv_all_values("m").await.unwrap().len(), 2);
    assert_eq!(client.get_kv_value("m", "shape").await.unwrap(), None);
    assert_eq!(client.get_kv_value("ghost", "colour").await.unwrap(), None);
    assert!(client.get_kv_all_values("ghost").await.unwrap().is_empty());
    world.finish().await;
}

#[tokio::test]
async fn r6_41_r6_42_statistics_of_a_running_instance() {
    let world = world()
        .orchestration("Main", |ctx, input| async move {
            if input == "first" {
                ctx.schedule_wait("Go").await;
                return ctx.continue_as_new("second").await;
            }
            ctx.set_kv_value("k", "12345");
            ctx.dequeue_event("q").await;
            Ok(ctx.schedule_wait("Never").await)
        })
        .start()
        .await;
    let client = &world.client;
    assert!(client.get_orchestration_stats("m").await.unwrap().is_none());
    world.begin("m", "Main", "first").await;
    world.until("m", |history| history.len() == 2).await;
    assert_eq!(client.get_orchestration_stats("m").await.unwrap().unwrap().queue_pending_count, 0);
    for message in ["a", "b", "c"] {
        client.enqueue_event("m", "q", message).await.unwrap();
    }
    client.raise_event("m", "Go", "").await.unwrap();
    client.wait_for_kv_value("m", "k", PATIENCE).await.unwrap();
    let history = world.history("m").await;
    let stats = client.get_orchestration_stats("m").await.unwrap().unwrap();
    let stored = history.iter().map(|event| serde_json::to_string(event).unwrap().len() as u64);
    assert_eq!(stats.history_event_count, history.len() as u64);
    assert_eq!(stats.history_size_bytes, stored.sum::<u64>());
    assert_eq!((stats.kv_user_key_count, stats.kv_total_value_bytes), (1, 5));
    assert_eq!(stats.queue_pending_count, 3); // Carried over, whether or not read since.
    world.finish().await;
}

#[tokio::test]
async fn r6_1_clients_need_no_runtime_and_can_be_cloned() {
    let memory = Arc::new(duroxide::providers::memory::MemoryProvider::new());
    let client = Client::new(Arc::clone(&memory) as Arc<dyn Provider>);
    client.clone().start_orchestration("m", "Main", "x").await.unwrap();
    let world = world_on(memory).orchestration("Main", |_ctx, input| async move { Ok(input) });
    let world = world.start().await;
    assert_eq!(world.output("m").await, "x");
    drop(client);
    world.finish().await;
}
