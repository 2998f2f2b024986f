//! External events: for whoever waits when they come.

use std::time::Duration;

use duroxide::providers::{Provider, ProviderAdmin};
use duroxide::{Either2, ErrorDetails, OrchestrationContext};
use tokio::time::sleep;

use crate::support::look::{cancellations, count, raised};
use crate::support::{kinds, world};

async fn waits(ctx: OrchestrationContext, _input: String) -> Result<String, String> {
    Ok(ctx.schedule_wait("go").await)
}

#[tokio::test(start_paused = true)]
async fn r4_36_r4_40_waits_of_one_name_take_signals_in_the_order_they_were_made() {
    let world = world()
        .orchestration("Main", |ctx, _input| async move {
            let (first, second) = (ctx.schedule_wait("go"), ctx.schedule_wait("go"));
            let second = second.await;
            Ok(format!("{}/{second}", first.await))
        })
        .start()
        .await;
    world.begin("i", "Main", "").await;
    world.until_kind("i", "ExternalSubscribed").await;
    world.client.raise_event("i", "go", "").await.unwrap(); // An empty payload is one, too.
    world.until_kind("i", "ExternalEvent").await;
    world.client.raise_event("i", "go", "2").await.unwrap();
    assert_eq!(world.output("i").await, "/2");
    world.finish().await;
}

#[tokio::test(start_paused = true)]
async fn r4_37_r6_10_typed_events() {
    let world = world()
        .orchestration("Main", |ctx, _input| async move {
            let numbers: Vec<u32> = ctx.schedule_wait_typed("numbers").await;
            Ok(numbers.iter().sum::<u32>().to_string())
        })
        .start()
        .await;
    world.begin("i", "Main", "").await;
    world.until_kind("i", "ExternalSubscribed").await;
    world.client.raise_event_typed("i", "numbers", &[1, 2, 3]).await.unwrap();
    assert_eq!(world.output("i").await, "6");
    world.begin("bad", "Main", "").await;
    world.until_kind("bad", "ExternalSubscribed").await;
    world.client.raise_event("bad", "numbers", "many").await.unwrap();
    let error = world.error("bad").await.display_message();
    assert!(error.starts_with("orchestration panicked: "), "{error}"); // R2.95
    world.finish().await;
}

#[tokio::test(start_paused = true)]
async fn r4_38_l21_an_event_nobody_waits_for_is_recorded_and_lost() {
    let world = world()
        .orchestration("Main", |ctx, input| async move {
            ctx.schedule_wait("first").await;
            waits(ctx, input).await
        })
        .start()
        .await;
    world.begin("i", "Main", "").await;
    world.until_kind("i", "ExternalSubscribed").await;
    world.send([raised("i", "go", "early"), raised("i", "first", "")]).await;
    world.until("i", |history| count(history, "ExternalSubscribed") == 2).await;
    world.client.raise_event("i", "go", "again").await.unwrap();
    assert_eq!(world.output("i").await, "again");
    assert_eq!(count(&world.history("i").await, "ExternalEvent"), 3); // R2.37
    world.finish().await;
}

#[tokio::test(start_paused = true)]
async fn r4_39_after_continue_as_new_events_go_to_the_current_execution() {
    let world = world()
        .orchestration("Main", |ctx, input| async move {
            let go = ctx.schedule_wait("go").await;
            if input.is_empty() { ctx.continue_as_new(go).await } else { Ok(input + &go) }
        })
        .start()
        .await;
    world.begin("i", "Main", "").await;
    world.until_kind("i", "ExternalSubscribed").await;
    world.client.raise_event("i", "go", "1").await.unwrap();
    world
        .until("i", |history| history.iter().any(|e| e.execution_id == 2 && e.event_id == 2))
        .await;
    world.client.raise_event("i", "go", "2").await.unwrap();
    assert_eq!(world.output("i").await, "12");
    world.finish().await;
}

#[tokio::test(start_paused = true)]
async fn r3_84_r2_38_a_wait_that_lost_a_race_takes_no_signal() {
    let world = world()
        .orchestration("Main", |ctx, input| async move {
            let alarm = ctx.schedule_timer(Duration::from_secs(1));
            match ctx.select2(ctx.schedule_wait("go"), alarm).await {
                Either2::First(_) => Err("too early".into()),
                Either2::Second(()) => waits(ctx, input).await,
            }
        })
        .start()
        .await;
    world.begin("i", "Main", "").await;
    let history = world.until_kind("i", "ExternalSubscribedCancelled").await;
    assert_eq!(
        cancellations(&history, "ExternalSubscribedCancelled"),
        [(3, "dropped_future".to_owned())]
    );
    world.client.raise_event("i", "go", "mine").await.unwrap();
    assert_eq!(world.output("i").await, "mine");
    world.finish().await;
}

#[tokio::test(start_paused = true)]
async fn r3_106_open_waits_are_closed_at_the_end() {
    let world = world()
        .orchestration("Main", |ctx, _input| async move {
            std::mem::forget((ctx.schedule_wait("a"), ctx.dequeue_event("q")));
            ctx.schedule_timer(Duration::from_secs(1)).await;
            Ok(String::new())
        })
        .start()
        .await;
    world.run("i", "Main", "").await;
    let history = world.history("i").await;
    let reason = "orchestration_terminal".to_owned();
    assert_eq!(cancellations(&history, "ExternalSubscribedCancelled"), [(2, reason.clone())]);
    assert_eq!(cancellations(&history, "QueueSubscriptionCancelled"), [(3, reason)]);
    assert_eq!(kinds(&history).last().unwrap(), "OrchestrationCompleted");
    world.finish().await;
}

#[tokio::test(start_paused = true)]
async fn l1_r6_12_r6_14_messages_for_nobody_block_nobody() {
    let world = world().orchestration("Waits", waits).start().await;
    for n in 0..100 {
        let nobody = format!("nobody-{n}");
        world.client.raise_event(&nobody, "go", "").await.unwrap();
        world.client.cancel_instance(&nobody, "x").await.unwrap();
    }
    world.begin("i", "Waits", "").await;
    world.until_kind("i", "ExternalSubscribed").await;
    world.client.raise_event("i", "go", "on").await.unwrap();
    assert_eq!(world.output("i").await, "on");
    // R8.29: they wait for a start that may yet come,
    world.begin("nobody-7", "Waits", "").await;
    assert_eq!(world.error("nobody-7").await, ErrorDetails::cancelled("x"));
    // and are given up in the end.
    sleep(Duration::from_secs(3601)).await;
    let letters = world.memory.list_dead_letters().await.unwrap();
    assert_eq!(letters.len(), 198);
    assert!(world.memory.snapshot().orchestrator_queue.is_empty());
    assert!(world.memory.read("nobody-8").await.unwrap().is_empty());
    world.finish().await;
}
