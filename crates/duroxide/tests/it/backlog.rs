//! More messages than a turn holds (R8.147): nothing is lost, overtaken or stuck.

use std::sync::Arc;

use duroxide::OrchestrationContext;
use duroxide::providers::WorkItem;
use duroxide::providers::memory::MemoryProvider;

use crate::support::faults::{Faults, FaultyProvider};

use crate::support::look::{preload, queued, raised, start};
use crate::support::{World, WorldBuilder, world_on};

/// Two turns and a half.
const MANY: usize = 2500;

/// Reads so many messages, which must come in the order of their numbers.
async fn read(ctx: &OrchestrationContext, numbers: std::ops::Range<usize>) -> Result<(), String> {
    for number in numbers {
        let message = ctx.dequeue_event("q").await;
        if message != number.to_string() {
            return Err(format!("{message} instead of {number}"));
        }
    }
    Ok(())
}

/// Reads all, in two executions if it is told to.
async fn reader(ctx: OrchestrationContext, input: String) -> Result<String, String> {
    match input.as_str() {
        "once" => read(&ctx, 0..MANY).await?,
        "twice" => {
            read(&ctx, 0..3).await?;
            return ctx.continue_as_new("rest").await;
        }
        _ => read(&ctx, 3..MANY).await?,
    }
    Ok("all".to_owned())
}

async fn never(ctx: OrchestrationContext, _input: String) -> Result<String, String> {
    Ok(ctx.schedule_wait("never").await)
}

fn cast(memory: &Arc<MemoryProvider>) -> WorldBuilder {
    world_on(Arc::clone(memory))
        .orchestration("Reader", reader)
        .orchestration("Never", never)
        .orchestration("Brief", |_, _| async { Ok("done".to_owned()) })
}

fn backlog() -> impl Iterator<Item = WorkItem> {
    (0..MANY).map(|number| queued("i", "q", &number.to_string()))
}

async fn store(items: impl IntoIterator<Item = WorkItem>) -> Arc<MemoryProvider> {
    let memory = Arc::new(MemoryProvider::new());
    preload(memory.as_ref(), items).await;
    memory
}

async fn assert_nothing_left(world: World) {
    let left = world.settled().await;
    assert!(left.orchestrator_queue.is_empty(), "{}", left.orchestrator_queue.len());
    assert!(left.dead_letters.is_empty());
    world.finish().await;
}

#[tokio::test(start_paused = true)]
async fn r8_147_a_backlog_is_read_in_order() {
    let memory = store([start("i", "Reader", "once")].into_iter().chain(backlog())).await;
    let world = cast(&memory).start().await;
    assert_eq!(world.output("i").await, "all");
    assert_nothing_left(world).await;
}

#[tokio::test(start_paused = true)]
async fn r8_147_a_start_is_found_behind_a_backlog() {
    let early = (0..MANY).map(|number| raised("i", "early", &number.to_string()));
    let memory = store(early.chain([start("i", "Brief", "")])).await;
    let world = cast(&memory).start().await;
    assert_eq!(world.output("i").await, "done");
    assert_nothing_left(world).await; // R1.26: in several batches
}

#[tokio::test(start_paused = true)]
async fn r8_147_continue_as_new_takes_a_backlog_along() {
    // With the next execution in the same commit, and with a message that is behind the backlog.
    for takes_successors in [true, false] {
        let memory = store([start("i", "Reader", "twice")].into_iter().chain(backlog())).await;
        let faults = Faults::default();
        if takes_successors {
            faults.take_successors();
        }
        let wrap = |inner| FaultyProvider::wrap(inner, &faults);
        let world = cast(&memory).through(wrap).start().await;
        assert_eq!(world.output("i").await, "all");
        assert_nothing_left(world).await;
    }
}

#[tokio::test(start_paused = true)]
async fn r8_147_who_is_flooded_can_be_cancelled() {
    let memory = store([start("i", "Never", "")].into_iter().chain(backlog())).await;
    let world = cast(&memory).start().await;
    world.client.cancel_instance("i", "enough").await.unwrap();
    assert_eq!(world.error("i").await.display_message(), "canceled: enough");
    assert_nothing_left(world).await;
}

#[tokio::test(start_paused = true)]
async fn r8_149_a_backlog_that_nobody_could_run_is_read_in_order() {
    // Begun by one runtime, given back for a while again and again by one that lacks the code.
    let memory = store([start("i", "Reader", "once")]).await;
    let begins = cast(&memory).start().await;
    begins.until_kind("i", "QueueSubscribed").await;
    let memory = begins.close().await;
    preload(memory.as_ref(), backlog()).await;
    let lacks = world_on(Arc::clone(&memory)).orchestration("Other", never).start().await;
    lacks.until_store(|store| store.orchestrator_queue.iter().any(|row| 3 < row.attempts)).await;
    let memory = lacks.close().await;
    let world = cast(&memory).start().await;
    assert_eq!(world.output("i").await, "all");
    assert_nothing_left(world).await;
}
