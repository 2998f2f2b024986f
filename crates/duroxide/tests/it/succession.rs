//! The last turn of an execution and the first of the next, in one commit (R1.39).

use std::sync::Arc;
use std::time::Duration;

use duroxide::OrchestrationContext;
use duroxide::providers::memory::MemoryProvider;
use duroxide::providers::{Provider, ProviderError};
use duroxide::runtime::WarmMode;

use crate::support::faults::{Fault, Faults, FaultyProvider, broken, busy};
use crate::support::look::{messages_for, preload, start};
use crate::support::{WorldBuilder, kinds, world, world_on};

/// Commits of two turns, and of one.
fn commits(faults: &Faults) -> (usize, usize) {
    (faults.calls("commit_turn"), faults.calls("ack_orchestration_item"))
}

fn on_store(memory: Arc<MemoryProvider>, faults: &Faults) -> WorldBuilder {
    faults.take_successors();
    world_on(memory)
        .through(|store| FaultyProvider::wrap(store, faults))
        .echo("A")
        .orchestration("Count", count)
        .orchestration("Diary", diary)
}

/// Three executions with an activity in each: the echo, `A:x`, is longer every time.
async fn count(ctx: OrchestrationContext, input: String) -> Result<String, String> {
    let n = ctx.schedule_activity("A", input).await?.len();
    if n < 5 { ctx.continue_as_new("x".repeat(n - 1)).await } else { Ok(n.to_string()) }
}

/// Every execution reads what those before it left, changes it, and waits.
async fn diary(ctx: OrchestrationContext, input: String) -> Result<String, String> {
    let mut seen: Vec<String> = ctx.get_kv_all_values().into_keys().collect();
    seen.sort();
    let seen = format!("{input}[{}]", seen.join(","));
    match input.matches('[').count() {
        0 => ["a", "b"].map(|key| ctx.set_kv_value(key, "1")),
        1 => [ctx.clear_kv_value("a"), ctx.set_kv_value("c", "1")],
        2 => [ctx.clear_all_kv_values(), ctx.set_kv_value("d", "1")],
        _ => return Ok(seen),
    };
    if input.contains("[a,b]") {
        ctx.schedule_wait("go").await;
    }
    ctx.continue_as_new(seen).await
}

#[tokio::test(start_paused = true)]
async fn r1_39_continue_as_new_is_one_commit() {
    let faults = Faults::default();
    let world = on_store(Arc::default(), &faults).start().await;
    assert_eq!(world.run("i", "Count", "x").await, "5");
    assert_eq!(world.client.list_executions("i").await.unwrap(), [1, 2, 3]);
    assert_eq!(commits(&faults), (2, 2), "only the very first and the very last turn are alone");
    for number in [1, 2] {
        assert_eq!(
            kinds(&world.execution("i", number).await),
            [
                "OrchestrationStarted",
                "ActivityScheduled",
                "ActivityCompleted",
                "OrchestrationContinuedAsNew"
            ]
        );
    }
    world.finish().await;
}

#[tokio::test(start_paused = true)]
async fn r1_39_a_successor_begins_with_what_its_predecessors_left() {
    for warm in [WarmMode::On, WarmMode::Off] {
        let faults = Faults::default();
        let memory = Arc::new(MemoryProvider::new());
        let world = on_store(memory, &faults).tuning(|tuning| tuning.warm.mode = warm);
        let world = world.start().await;
        world.begin("i", "Diary", "").await;
        world.until_kind("i", "ExternalSubscribed").await;
        world.client.raise_event("i", "go", "").await.unwrap();
        assert_eq!(world.output("i").await, "[][a,b][b,c][d]");
        assert_eq!(commits(&faults).0, 2);
        world.finish().await;
    }
}

#[tokio::test(start_paused = true)]
async fn r1_39_refused_together_the_turns_are_stored_one_by_one() {
    let faults = Faults::default();
    faults.next("commit_turn", [broken()]);
    let world = on_store(Arc::default(), &faults).start().await;
    assert_eq!(world.run("i", "Count", "x").await, "5");
    // First, its end alone, the second's beginning, both ends with what follows.
    assert_eq!(commits(&faults), (2, 4));
    assert_eq!(world.client.list_executions("i").await.unwrap(), [1, 2, 3]);
    world.finish().await;
}

#[tokio::test(start_paused = true)]
async fn r1_39_r7_50_what_passes_is_tried_again() {
    let lost = Fault::After(ProviderError::retryable("fault", "answer lost"));
    for trouble in [vec![busy(), busy()], vec![lost], vec![Fault::Slow(Duration::from_secs(9))]] {
        let faults = Faults::default();
        faults.next("commit_turn", trouble);
        let world = on_store(Arc::default(), &faults).start().await;
        assert_eq!(world.run("i", "Count", "x").await, "5");
        assert_eq!(world.client.list_executions("i").await.unwrap(), [1, 2, 3]);
        world.finish().await;
    }
}

#[tokio::test(start_paused = true)]
async fn r1_39_a_second_attempt_goes_alone() {
    let (faults, memory) = (Faults::default(), Arc::new(MemoryProvider::new()));
    preload(&*memory, [start("i", "Diary", "")]).await;
    let lock = Duration::from_secs(5);
    let (_, token, _) =
        memory.fetch_orchestration_item(lock, Duration::ZERO, None).await.unwrap().unwrap();
    memory.abandon_orchestration_item(&token, None, false).await.unwrap();
    let world = on_store(memory, &faults).start().await;
    world.until_kind("i", "ExternalSubscribed").await;
    // The second execution begins by a message, fetched for the first time: it takes the third along.
    assert_eq!(commits(&faults), (1, 1));
    world.finish().await;
}

#[tokio::test(start_paused = true)]
async fn r1_39_r1_29_a_successor_nobody_here_knows_waits_as_a_message() {
    let faults = Faults::default();
    let world = on_store(Arc::default(), &faults)
        .orchestration("Leave", |ctx, _input| async move {
            ctx.continue_as_new_versioned("9.9.9", "").await
        })
        .start()
        .await;
    world.begin("i", "Leave", "").await;
    world.until_kind("i", "OrchestrationContinuedAsNew").await;
    assert_eq!(commits(&faults), (0, 1));
    assert_eq!(messages_for(&world.memory.snapshot(), "i").len(), 1);
    world.finish().await;
}

#[tokio::test(start_paused = true)]
async fn r1_39_a_successor_may_end_at_once_or_continue_again() {
    let faults = Faults::default();
    let world = world()
        .through(|store| {
            faults.take_successors();
            FaultyProvider::wrap(store, &faults)
        })
        .orchestration("Down", |ctx, input| async move {
            match input.parse::<u32>().unwrap_or_default() {
                0 => Err("bottom".to_owned()),
                n => ctx.continue_as_new((n - 1).to_string()).await,
            }
        })
        .start()
        .await;
    let error = world.run_to_error("i", "Down", "4").await;
    assert_eq!(error.display_message(), "bottom");
    assert_eq!(world.client.list_executions("i").await.unwrap(), [1, 2, 3, 4, 5]);
    assert_eq!(commits(&faults), (2, 1));
    world.finish().await;
}
