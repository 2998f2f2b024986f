//! Queue messages: kept for whoever reads next.

use std::time::Duration;

use duroxide::providers::ProviderAdmin;
use duroxide::{Either2, OrchestrationContext};
use tokio::time::sleep;

use crate::support::look::{count, queued};
use crate::support::world;

async fn reads_two(ctx: OrchestrationContext, _input: String) -> Result<String, String> {
    let first = ctx.dequeue_event("q").await;
    Ok(first + &ctx.dequeue_event("q").await)
}

#[tokio::test(start_paused = true)]
async fn r4_41_r4_42_messages_are_read_in_the_order_they_came() {
    let world = world().orchestration("Main", reads_two).start().await;
    world.begin("i", "Main", "").await;
    world.until_kind("i", "QueueSubscribed").await;
    for letter in ["a", "b", "c"] {
        world.client.enqueue_event("i", "q", letter).await.unwrap();
    }
    assert_eq!(world.output("i").await, "ab");
    world.settled().await; // R4.44: the third one is discarded.
    assert!(world.memory.snapshot().dead_letters.is_empty());
    world.finish().await;
}

#[tokio::test(start_paused = true)]
async fn r4_42_r3_151_messages_wait_until_they_are_read() {
    let world = world()
        .orchestration("Main", |ctx, input| async move {
            ctx.schedule_wait("go").await;
            reads_two(ctx, input).await
        })
        .start()
        .await;
    world.begin("i", "Main", "").await;
    world.until_kind("i", "ExternalSubscribed").await;
    world.client.enqueue_event("i", "q", "a").await.unwrap();
    world.client.enqueue_event("i", "q", "b").await.unwrap();
    world.until("i", |history| count(history, "QueueEventDelivered") == 2).await;
    world.client.raise_event("i", "go", "").await.unwrap();
    assert_eq!(world.output("i").await, "ab");
    world.finish().await;
}

#[tokio::test(start_paused = true)]
async fn r3_159_queues_and_waits_of_one_name_are_apart() {
    let world = world()
        .orchestration("Main", |ctx, _input| async move {
            let waited = ctx.schedule_wait("x");
            let (x, y) = ctx.join2(ctx.dequeue_event("x"), ctx.dequeue_event("y")).await;
            Ok(format!("{x} {y} {}", waited.await))
        })
        .start()
        .await;
    world.begin("i", "Main", "").await;
    world.until_kind("i", "ExternalSubscribed").await;
    world.client.enqueue_event("i", "y", "for y").await.unwrap();
    world.client.raise_event("i", "x", "raised").await.unwrap();
    world.client.enqueue_event("i", "x", "queued").await.unwrap();
    assert_eq!(world.output("i").await, "queued for y raised");
    world.finish().await;
}

#[tokio::test(start_paused = true)]
async fn r4_41_r6_11_typed_messages() {
    let world = world()
        .orchestration("Main", |ctx, _input| async move {
            let (n, text): (u32, String) = ctx.dequeue_event_typed("q").await;
            Ok(format!("{n} {text}"))
        })
        .start()
        .await;
    world.begin("i", "Main", "").await;
    world.until_kind("i", "QueueSubscribed").await;
    world.client.enqueue_event_typed("i", "q", &(7, "seven")).await.unwrap();
    assert_eq!(world.output("i").await, "7 seven");
    world.begin("bad", "Main", "").await;
    world.until_kind("bad", "QueueSubscribed").await;
    world.client.enqueue_event("bad", "q", "no tuple").await.unwrap();
    let error = world.error("bad").await.display_message();
    assert!(error.starts_with("orchestration panicked: "), "{error}"); // R2.95
    world.finish().await;
}

#[tokio::test(start_paused = true)]
async fn r4_46_r3_160_a_reader_that_gave_up_leaves_the_message_to_the_next() {
    let world = world()
        .orchestration("Main", |ctx, _input| async move {
            let mut read = Vec::new();
            let mut timeouts = 0;
            while read.len() < 5 {
                let pause = ctx.schedule_timer(Duration::from_secs(2));
                match ctx.select2(ctx.dequeue_event("q"), pause).await {
                    Either2::First(message) => read.push(message),
                    Either2::Second(()) => timeouts += 1,
                }
            }
            Ok(format!("{} after {timeouts}", read.join("")))
        })
        .start()
        .await;
    world.begin("i", "Main", "").await;
    for letter in ["a", "b", "c", "d", "e"] {
        sleep(Duration::from_millis(2_500)).await;
        world.client.enqueue_event("i", "q", letter).await.unwrap();
    }
    assert_eq!(world.output("i").await, "abcde after 5");
    world.finish().await;
}

#[tokio::test(start_paused = true)]
async fn r4_44_r6_14_messages_for_nobody_become_dead_letters_at_once() {
    let world = world().orchestration("Main", reads_two).start().await;
    world.client.enqueue_event("nobody", "q", "a").await.unwrap();
    world.settled().await;
    let letters = world.memory.list_dead_letters().await.unwrap();
    assert_eq!(letters.len(), 1);
    assert_eq!(letters[0].instance.as_deref(), Some("nobody"));
    world.begin("nobody", "Main", "").await;
    world.until_kind("nobody", "QueueSubscribed").await;
    world.send([queued("nobody", "q", "b"), queued("nobody", "q", "c")]).await;
    assert_eq!(world.output("nobody").await, "bc");
    world.finish().await;
}
