//! Child starts that hit an id in use: nothing starts, and the parent is told.

use std::sync::Arc;

use duroxide::providers::WorkItem;
use duroxide::providers::memory::MemoryProvider;
use duroxide::{AppErrorKind, ErrorDetails, OrchestrationContext};

use crate::support::faults::{Faults, FaultyProvider, broken};
use crate::support::look::{child_start, messages_for, preload, raised, start};
use crate::support::{World, WorldBuilder, world, world_on};

const LIVE: &str = "sub-orchestration instance id 'kid' already exists";
const ENDED: &str = "sub-orchestration instance id 'kid' already exists and is terminal";

async fn waits(ctx: OrchestrationContext, _input: String) -> Result<String, String> {
    Ok(ctx.schedule_wait("go").await)
}

/// Starts `kid` and returns what comes of it, as text.
async fn parent(ctx: OrchestrationContext, _input: String) -> Result<String, String> {
    let kid = ctx.schedule_sub_orchestration_with_id("Waits", "kid", "");
    Ok(kid.await.unwrap_or_else(|error| format!("error: {error}")))
}

fn family() -> WorldBuilder {
    family_on(Arc::new(MemoryProvider::new()))
}

fn family_on(memory: Arc<MemoryProvider>) -> WorldBuilder {
    world_on(memory).orchestration("Waits", waits).orchestration("Parent", parent)
}

fn notice(execution: u64, id: u64, text: &str) -> WorkItem {
    WorkItem::SubOrchFailed {
        parent_instance: "p".into(),
        parent_execution_id: execution,
        parent_id: id,
        details: ErrorDetails::application(AppErrorKind::OrchestrationFailed, text),
    }
}

/// A store where `kid` waits for `go` and no runtime runs.
async fn store_with_waiting_kid() -> Arc<MemoryProvider> {
    let world = family().start().await;
    world.begin("kid", "Waits", "").await;
    world.until_kind("kid", "ExternalSubscribed").await;
    world.close().await
}

#[tokio::test(start_paused = true)]
async fn r1_40_r4_57_a_live_id_in_use_is_an_error_for_the_second_parent() {
    let world = family().start().await;
    world.begin("one", "Parent", "").await;
    world.until_kind("kid", "ExternalSubscribed").await;
    assert_eq!(world.run("two", "Parent", "").await, format!("error: {LIVE}"));
    world.client.raise_event("kid", "go", "gone").await.unwrap();
    assert_eq!(world.output("one").await, "gone");
    world.finish().await;
}

#[tokio::test(start_paused = true)]
async fn r1_40_an_ended_id_is_an_error_that_says_so() {
    let world = family().start().await;
    world.begin("kid", "Waits", "").await;
    world.client.cancel_instance("kid", "x").await.unwrap();
    world.error("kid").await;
    assert_eq!(world.run("p", "Parent", "").await, format!("error: {ENDED}"));
    world.finish().await;
}

#[tokio::test(start_paused = true)]
async fn r1_41_a_redelivered_start_of_a_live_child_is_no_collision() {
    let world = family().start().await;
    world.begin("p", "Parent", "").await;
    world.until_kind("kid", "ExternalSubscribed").await;
    world.send([child_start("kid", "Waits", ("p", Some(1), 2))]).await;
    world.settled().await;
    world.client.raise_event("kid", "go", "mine").await.unwrap();
    assert_eq!(world.output("p").await, "mine");
    world.finish().await;
}

#[tokio::test(start_paused = true)]
async fn r1_41_r1_43_without_the_parents_execution_it_counts_as_one() {
    let world = family()
        .orchestration("Twice", |ctx, input| async move {
            if input.is_empty() {
                return ctx.continue_as_new("again").await;
            }
            parent(ctx, input).await
        })
        .start()
        .await;
    world.begin("p", "Twice", "").await;
    world.until_kind("kid", "ExternalSubscribed").await;
    // The parent's current execution, 2, is read from the store.
    world.send([child_start("kid", "Waits", ("p", None, 2))]).await;
    assert_eq!(world.output("p").await, format!("error: {LIVE}"));
    world.client.raise_event("kid", "go", "").await.unwrap();
    world.output("kid").await;
    world.finish().await;
}

#[tokio::test(start_paused = true)]
async fn r1_43_an_unknown_parent_is_addressed_in_its_first_execution() {
    let memory = store_with_waiting_kid().await;
    let world = family_on(memory).start().await;
    world.send([child_start("kid", "Waits", ("p", None, 9))]).await;
    let store = world.until_store(|store| messages_for(store, "p").len() == 1).await;
    assert_eq!(messages_for(&store, "p"), [notice(1, 9, LIVE)]);
    world.finish().await;
}

#[tokio::test(start_paused = true)]
async fn r1_42_starts_without_a_parent_are_dropped_in_silence() {
    let world = family()
        .orchestration("Detacher", |ctx, _input| async move {
            ctx.schedule_orchestration("Waits", "kid", "again");
            Ok("sent".into())
        })
        .start()
        .await;
    world.begin("kid", "Waits", "").await;
    let before = world.until_kind("kid", "ExternalSubscribed").await;
    world.begin("kid", "Parent", "other").await;
    assert_eq!(world.run("d", "Detacher", "").await, "sent"); // R4.63
    world.settled().await;
    assert_eq!(world.history("kid").await, before);
    world.finish().await;
}

/// What `p` is told when `kid` takes a colliding start together with the event it waits for.
async fn told_in_one_batch(world: WorldBuilder, memory: &MemoryProvider, text: &str) -> World {
    preload(memory, [raised("kid", "go", ""), child_start("kid", "Waits", ("p", Some(3), 7))])
        .await;
    let world = world.start().await;
    let store = world.until_store(|store| messages_for(store, "p").len() == 1).await;
    assert_eq!(messages_for(&store, "p"), [notice(3, 7, text)]);
    world
}

#[tokio::test(start_paused = true)]
async fn r1_27_notices_go_out_with_whatever_the_turn_sends() {
    let memory = store_with_waiting_kid().await;
    let world = told_in_one_batch(family_on(memory.clone()), &memory, LIVE).await;
    world.output("kid").await;
    world.finish().await;
}

#[tokio::test(start_paused = true)]
async fn r1_44_notices_survive_a_limit_failure() {
    let memory = store_with_waiting_kid().await;
    let family = world_on(memory.clone()).orchestration("Waits", |ctx, _input| async move {
        ctx.schedule_wait("go").await;
        ctx.set_custom_status("x".repeat(300_000));
        Ok(String::new())
    });
    let world = told_in_one_batch(family, &memory, LIVE).await;
    world.error("kid").await;
    world.finish().await;
}

#[tokio::test(start_paused = true)]
async fn r1_44_notices_survive_the_substitute_failure() {
    let memory = store_with_waiting_kid().await;
    let faults = Faults::default();
    faults.next("ack_orchestration_item", [broken()]);
    let family = family_on(memory.clone()).through(|store| FaultyProvider::wrap(store, &faults));
    let world = told_in_one_batch(family, &memory, LIVE).await;
    assert!(matches!(world.error("kid").await, ErrorDetails::Infrastructure { .. }));
    world.finish().await;
}

#[tokio::test(start_paused = true)]
async fn r1_44_l13_notices_go_out_when_poison_takes_the_batch() {
    let memory = store_with_waiting_kid().await;
    let family = family_on(memory.clone()).options(|options| options.max_attempts = 0);
    let world = told_in_one_batch(family, &memory, LIVE).await;
    assert!(matches!(world.error("kid").await, ErrorDetails::Poison { .. }));
    world.finish().await;
}

#[tokio::test(start_paused = true)]
async fn l13_notices_go_out_when_the_history_in_use_is_unreadable() {
    let memory = store_with_waiting_kid().await;
    memory.corrupt_history("kid", "bits rotted");
    let family = family_on(memory.clone()).options(|options| options.max_attempts = 0);
    let world = told_in_one_batch(family, &memory, ENDED).await;
    assert!(matches!(world.error("kid").await, ErrorDetails::Poison { .. }));
    world.finish().await;
}

#[tokio::test(start_paused = true)]
async fn r1_40_r1_52_the_second_child_start_of_one_batch_collides_with_the_first() {
    for max_attempts in [10, 0] {
        let memory = Arc::new(MemoryProvider::new());
        let starts = [
            start("kid", "Waits", ""),
            child_start("kid", "Waits", ("p", Some(3), 7)),
            child_start("kid", "Waits", ("p", Some(3), 8)),
        ];
        preload(&*memory, starts).await;
        let world =
            family_on(memory).options(|options| options.max_attempts = max_attempts).start().await;
        let store = world.until_store(|store| messages_for(store, "p").len() == 2).await;
        assert_eq!(messages_for(&store, "p"), [notice(3, 7, LIVE), notice(3, 8, LIVE)]);
        world.finish().await;
    }
}

#[tokio::test(start_paused = true)]
async fn r1_41_a_child_start_twice_in_one_batch_is_one_start() {
    let memory = Arc::new(MemoryProvider::new());
    let once = || child_start("kid", "Waits", ("p", Some(1), 2));
    preload(&*memory, [once(), once()]).await;
    let world = family_on(memory).start().await;
    world.until_kind("kid", "ExternalSubscribed").await;
    assert!(world.settled().await.orchestrator_queue.is_empty());
    world.finish().await;
}

#[tokio::test(start_paused = true)]
async fn r4_57_letting_go_of_a_child_that_never_began_spares_who_has_its_id() {
    let world = family()
        .orchestration("Dropper", |ctx, _input| async move {
            drop(ctx.schedule_sub_orchestration_with_id("Waits", "kid", ""));
            Ok(ctx.schedule_wait("end").await)
        })
        .start()
        .await;
    world.begin("one", "Parent", "").await;
    world.until_kind("kid", "ExternalSubscribed").await;
    world.begin("two", "Dropper", "").await;
    world.until_kind("two", "SubOrchestrationFailed").await;
    world.settled().await;
    world.client.raise_event("kid", "go", "mine").await.unwrap();
    assert_eq!(world.output("one").await, "mine");
    world.finish().await;
}

#[tokio::test(start_paused = true)]
async fn r4_57_cancelling_a_parent_spares_who_has_its_childs_id() {
    let memory = store_with_waiting_kid().await;
    // Nobody here can run the kid, so the second parent learns nothing before it is cancelled.
    let world = world_on(memory).orchestration("Parent", parent).start().await;
    world.begin("two", "Parent", "").await;
    world.until_kind("two", "SubOrchestrationScheduled").await;
    world.client.cancel_instance("two", "x").await.unwrap();
    world.error("two").await;
    let world = family_on(world.close().await).start().await;
    world.settled().await;
    world.client.raise_event("kid", "go", "lives").await.unwrap();
    assert_eq!(world.output("kid").await, "lives");
    world.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn r1_40_parents_that_race_for_one_id_all_get_an_answer() {
    let world = world()
        .options(|options| options.orchestration_concurrency = 4)
        .orchestration("Kid", |_ctx, input| async move { Ok(input) })
        .orchestration("Racer", |ctx, id| async move {
            let kid = ctx.schedule_sub_orchestration_with_id("Kid", format!("kid-{id}"), "won");
            Ok(kid.await.unwrap_or_else(|error| error.split(" and ").next().unwrap().into()))
        })
        .start()
        .await;
    for round in 0..20 {
        for racer in 0..4 {
            world.begin(&format!("{round}-{racer}"), "Racer", &round.to_string()).await;
        }
    }
    for round in 0..20 {
        let mut answers = Vec::new();
        for racer in 0..4 {
            answers.push(world.output(&format!("{round}-{racer}")).await);
        }
        answers.sort();
        let lost = format!("sub-orchestration instance id 'kid-{round}' already exists");
        assert_eq!(answers, [lost.clone(), lost.clone(), lost, "won".into()]);
    }
    world.finish().await;
}
