//! Cancelling instances.

use std::sync::Arc;
use std::time::Duration;

use duroxide::providers::WorkItem;
use duroxide::providers::memory::MemoryProvider;
use duroxide::{ErrorDetails, EventKind, OrchestrationContext};

use crate::support::look::{cancellations, has, preload, raised, start};
use crate::support::{kinds, world, world_on};

fn cancel(instance: &str, reason: &str) -> WorkItem {
    WorkItem::CancelInstance { instance: instance.into(), reason: reason.into() }
}

async fn waits(ctx: OrchestrationContext, _input: String) -> Result<String, String> {
    Ok(ctx.schedule_wait("go").await)
}

#[tokio::test(start_paused = true)]
async fn r7_87_r3_106_the_last_turn_records_everything_and_starts_only_what_is_detached() {
    let world = world()
        .options(|options| options.worker_concurrency = 0)
        .orchestration("Apart", |_ctx, _input| async { Ok("lives".into()) })
        .orchestration("Main", |ctx, _input| async move {
            let _open = (ctx.schedule_activity("A", ""), ctx.dequeue_event("q"));
            ctx.schedule_wait("go").await;
            ctx.schedule_orchestration("Apart", "apart", "");
            ctx.schedule_activity("A", "never runs").await
        })
        .start()
        .await;
    world.begin("i", "Main", "").await;
    world.until_kind("i", "ExternalSubscribed").await;
    world.send([raised("i", "go", ""), cancel("i", "enough")]).await;
    let error = world.error("i").await;
    assert_eq!(error, ErrorDetails::cancelled("enough")); // R2.86
    assert_eq!(error.display_message(), "canceled: enough");
    assert_eq!(world.output("apart").await, "lives");
    let history = world.history("i").await;
    assert_eq!(
        kinds(&history)[4..],
        [
            "ExternalEvent",
            "OrchestrationCancelRequested",
            "OrchestrationChained",
            "ActivityScheduled",
            "QueueSubscriptionCancelled",
            "OrchestrationFailed",
            "ActivityCancelRequested",
            "ActivityCancelRequested",
        ]
    );
    let reason = "orchestration_terminal_failed".to_owned();
    assert_eq!(
        cancellations(&history, "ActivityCancelRequested"),
        [(2, reason.clone()), (8, reason)]
    );
    assert!(world.settled().await.worker_queue.is_empty());
    world.finish().await;
}

#[tokio::test(start_paused = true)]
async fn r7_88_a_cancel_with_the_start_still_runs_one_turn() {
    let memory = Arc::new(MemoryProvider::new());
    preload(&*memory, [cancel("i", "early"), start("i", "Main", "")]).await;
    let world = world_on(memory)
        .orchestration("Main", |ctx, input| async move {
            ctx.set_kv_value("ran", "yes");
            waits(ctx, input).await
        })
        .start()
        .await;
    assert_eq!(world.error("i").await, ErrorDetails::cancelled("early"));
    assert_eq!(world.client.get_kv_value("i", "ran").await.unwrap().as_deref(), Some("yes"));
    world.finish().await;
}

#[tokio::test(start_paused = true)]
async fn l29_r7_89_r3_70_neither_a_result_nor_a_successor_escapes_a_cancel() {
    let world = world()
        .orchestration("Main", |ctx, input| async move {
            ctx.schedule_wait("go").await;
            if input == "return" { Ok(input) } else { ctx.continue_as_new("on").await }
        })
        .start()
        .await;
    for input in ["return", "continue"] {
        world.begin(input, "Main", input).await;
        world.until_kind(input, "ExternalSubscribed").await;
        world.send([raised(input, "go", ""), cancel(input, "no")]).await;
        assert_eq!(world.error(input).await, ErrorDetails::cancelled("no"));
        assert_eq!(world.client.list_executions(input).await.unwrap(), [1]);
    }
    assert!(world.settled().await.orchestrator_queue.is_empty());
    world.finish().await;
}

#[tokio::test(start_paused = true)]
async fn r6_12_r2_26_the_first_reason_stays() {
    let world = world().orchestration("Main", waits).start().await;
    world.begin("i", "Main", "").await;
    world.until_kind("i", "ExternalSubscribed").await;
    world.send([cancel("i", "first"), cancel("i", "second")]).await;
    assert_eq!(world.error("i").await, ErrorDetails::cancelled("first"));
    world.client.cancel_instance("i", "third").await.unwrap();
    world.settled().await;
    assert_eq!(world.error("i").await, ErrorDetails::cancelled("first"));
    let requests = world.history("i").await;
    let requests = requests
        .iter()
        .filter(|e| matches!(e.kind, EventKind::OrchestrationCancelRequested { .. }));
    assert_eq!(requests.count(), 1);
    world.finish().await;
}

#[tokio::test(start_paused = true)]
async fn r1_26_an_ended_instance_cannot_be_cancelled() {
    let world = world().orchestration("Main", |_ctx, input| async { Ok(input) }).start().await;
    world.run("i", "Main", "x").await;
    world.client.cancel_instance("i", "late").await.unwrap();
    world.settled().await;
    assert_eq!(world.output("i").await, "x");
    world.finish().await;
}

#[tokio::test(start_paused = true)]
async fn r3_109_children_already_let_go_are_not_cancelled_again() {
    let world = world()
        .orchestration("Waits", waits)
        .orchestration("Main", |ctx, input| async move {
            let dropped = ctx.schedule_sub_orchestration_with_id("Waits", "dropped", "");
            let _open = ctx.schedule_sub_orchestration_with_id("Waits", "open", "");
            ctx.schedule_timer(Duration::from_secs(1)).await;
            drop(dropped);
            waits(ctx, input).await
        })
        .start()
        .await;
    world.begin("i", "Main", "").await;
    world.until_kind("i", "ExternalSubscribed").await;
    world.client.cancel_instance("i", "stop").await.unwrap();
    let dropped = "parent dropped sub-orchestration future";
    assert_eq!(world.error("dropped").await, ErrorDetails::cancelled(dropped));
    assert_eq!(world.error("open").await, ErrorDetails::cancelled("parent canceled"));
    assert!(!has(&world.history("dropped").await, "ExternalEvent"));
    world.settled().await;
    world.finish().await;
}
