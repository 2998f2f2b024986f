//! An activity's outcome straight into the turn that waits for it (R1.64).

use std::sync::Arc;
use std::time::Duration;

use duroxide::providers::ProviderError;
use duroxide::providers::memory::MemoryProvider;
use duroxide::runtime::WarmMode;
use duroxide::{Either2, OrchestrationContext};
use tokio::sync::Semaphore;

use crate::support::faults::{Fault, Faults, FaultyProvider, broken, busy};
use crate::support::{Door, WorldBuilder, kinds, world_on};

/// Outcomes stored with their turns, outcomes stored as messages, turns stored alone.
fn calls(faults: &Faults) -> (usize, usize, usize) {
    let calls = |method| faults.calls(method);
    (calls("commit_direct_turn"), calls("ack_work_item"), calls("ack_orchestration_item"))
}

fn on_store(memory: &Arc<MemoryProvider>, faults: &Faults) -> WorldBuilder {
    faults.take_direct_turns();
    world_on(memory.clone())
        .through(|store| FaultyProvider::wrap(store, faults))
        .echo("A")
        .orchestration("Chain", chain)
        .orchestration("Echo", |ctx, input| async move {
            ctx.schedule_wait("go").await;
            Ok(input)
        })
}

async fn chain(ctx: OrchestrationContext, input: String) -> Result<String, String> {
    let mut text = input;
    for _ in 0..3 {
        text = ctx.schedule_activity("A", text).await?;
    }
    Ok(text)
}

const CHAINED: &str = "A:A:A:x";

#[tokio::test(start_paused = true)]
async fn r1_64_a_step_is_one_commit() {
    let (memory, faults) = (Arc::default(), Faults::default());
    let world = on_store(&memory, &faults).start().await;
    assert_eq!(world.run("i", "Chain", "x").await, CHAINED);
    assert_eq!(calls(&faults), (3, 0, 1), "only the first turn begins with a message");
    let step = ["ActivityScheduled", "ActivityCompleted"];
    let expected =
        [&["OrchestrationStarted"][..], &step, &step, &step, &["OrchestrationCompleted"]];
    assert_eq!(kinds(&world.history("i").await), expected.concat());
    world.finish().await;
}

#[tokio::test(start_paused = true)]
async fn r1_64_a_failure_goes_the_same_way() {
    let (memory, faults) = (Arc::default(), Faults::default());
    let world = on_store(&memory, &faults)
        .activity("Fails", |_ctx, _input| async { Err("no".to_owned()) })
        .orchestration("Try", |ctx, _input| async move {
            let tried = ctx.schedule_activity("Fails", "").await;
            Ok(format!("{tried:?}"))
        })
        .start()
        .await;
    assert_eq!(world.run("i", "Try", "").await, r#"Err("no")"#);
    assert_eq!(calls(&faults), (1, 0, 1));
    world.finish().await;
}

#[tokio::test(start_paused = true)]
async fn r1_64_refused_the_outcome_becomes_a_message() {
    for refused in
        [broken(), busy(), Fault::Before(ProviderError::permanent("fault", "not at rest"))]
    {
        let (memory, faults) = (Arc::default(), Faults::default());
        faults.next("commit_direct_turn", [refused]);
        let world = on_store(&memory, &faults).start().await;
        assert_eq!(world.run("i", "Chain", "x").await, CHAINED);
        assert_eq!(calls(&faults), (3, 1, 2));
        world.finish().await;
    }
}

#[tokio::test(start_paused = true)]
async fn r1_64_an_answer_that_is_lost_does_nothing_twice() {
    let (memory, faults) = (Arc::default(), Faults::default());
    let lost = Fault::After(ProviderError::retryable("fault", "answer lost"));
    faults.next("commit_direct_turn", [lost]);
    let world = on_store(&memory, &faults).start().await;
    assert_eq!(world.run("i", "Chain", "x").await, CHAINED);
    let history = kinds(&world.history("i").await);
    assert_eq!(history.iter().filter(|kind| *kind == "ActivityCompleted").count(), 3);
    world.finish().await;
}

#[tokio::test(start_paused = true)]
async fn r1_64_outcomes_that_may_have_company_become_messages() {
    let (memory, faults) = (Arc::default(), Faults::default());
    let world = on_store(&memory, &faults)
        .orchestration("Both", |ctx, _input| async move {
            let (one, two) =
                ctx.join2(ctx.schedule_activity("A", "1"), ctx.schedule_activity("A", "2")).await;
            Ok(one? + &two?)
        })
        .orchestration("Child", |ctx, _input| async move {
            let child = ctx.schedule_sub_orchestration("Echo", "");
            let one = ctx.schedule_activity("A", "1").await?;
            ctx.select2(child, ctx.schedule_timer(Duration::from_secs(1))).await;
            Ok(one)
        })
        .start()
        .await;
    assert_eq!(world.run("i", "Both", "").await, "A:1A:2");
    assert!(1 <= faults.calls("ack_work_item"), "the first of two");
    let before = faults.calls("commit_direct_turn");
    assert_eq!(world.run("j", "Child", "").await, "A:1");
    assert_eq!(faults.calls("commit_direct_turn"), before);
    world.finish().await;
}

#[tokio::test(start_paused = true)]
async fn r1_64_sessions_and_second_attempts_go_the_usual_way() {
    let (memory, faults) = (Arc::default(), Faults::default());
    let world = on_store(&memory, &faults)
        .orchestration("Bound", |ctx, input| async move {
            ctx.schedule_activity_on_session("A", input, "desk").await
        })
        .patient()
        .start()
        .await;
    assert_eq!(world.run("i", "Bound", "x").await, "A:x");
    assert_eq!(calls(&faults), (0, 1, 2));
    // Fetched, but nobody heard of it: the next fetch is the second attempt.
    let lost = Fault::After(ProviderError::retryable("fault", "answer lost"));
    faults.always("fetch_work_item", lost);
    world.begin("j", "Chain", "x").await;
    world.until("j", |history| kinds(history).contains(&"ActivityScheduled".to_owned())).await;
    tokio::time::sleep(Duration::from_millis(10)).await;
    faults.clear();
    assert_eq!(world.output("j").await, CHAINED);
    assert_eq!(calls(&faults).0, 2, "the other two steps");
    world.finish().await;
}

/// What has happened meanwhile comes first, and the outcome after it.
#[tokio::test(start_paused = true)]
async fn r1_64_a_turn_that_has_not_seen_everything_is_not_stored() {
    let (memory, faults) = (Arc::default(), Faults::default());
    let gate = Arc::new(Semaphore::new(0));
    faults.next("commit_direct_turn", [Fault::Gate(gate.clone())]);
    let world = on_store(&memory, &faults)
        .orchestration("Race", |ctx, _input| async move {
            let work = ctx.schedule_activity("A", "x");
            match ctx.select2(work, ctx.schedule_wait("go")).await {
                Either2::First(result) => result,
                Either2::Second(data) => Ok(data),
            }
        })
        .start()
        .await;
    world.begin("i", "Race", "").await;
    world.until("i", |history| kinds(history).contains(&"ExternalSubscribed".to_owned())).await;
    while faults.calls("commit_direct_turn") == 0 {
        tokio::task::yield_now().await;
    }
    world.client.raise_event("i", "go", "event").await.unwrap();
    assert_eq!(world.output("i").await, "event");
    gate.add_permits(1);
    let history = kinds(&world.history("i").await);
    assert!(!history.contains(&"ActivityCompleted".to_owned()), "{history:?}");
    world.finish().await;
}

#[tokio::test(start_paused = true)]
async fn r1_64_r1_39_values_and_successors_go_along() {
    for mode in [WarmMode::On, WarmMode::Compare] {
        let (memory, faults) = (Arc::default(), Faults::default());
        faults.take_successors();
        let world = on_store(&memory, &faults)
            .orchestration("Count", |ctx, input| async move {
                let seen = ctx.get_kv_value("n").unwrap_or_default();
                let n = ctx.schedule_activity("A", seen.clone()).await?;
                ctx.set_kv_value("n", n.clone());
                if n.len() < 8 { ctx.continue_as_new(input).await } else { Ok(seen + " " + &n) }
            })
            .tuning(|tuning| tuning.warm.mode = mode)
            .start()
            .await;
        assert_eq!(world.run("i", "Count", "").await, "A:A:A: A:A:A:A:");
        assert_eq!(world.client.list_executions("i").await.unwrap(), [1, 2, 3, 4]);
        assert_eq!(calls(&faults), (4, 0, 1));
        assert_eq!(faults.calls("commit_turn"), 0);
        world.finish().await;
    }
}

#[tokio::test(start_paused = true)]
async fn r1_64_without_warm_instances_there_are_none() {
    let (memory, faults) = (Arc::default(), Faults::default());
    let world = on_store(&memory, &faults);
    let world = world.tuning(|tuning| tuning.warm.mode = WarmMode::Off).start().await;
    assert_eq!(world.run("i", "Chain", "x").await, CHAINED);
    assert_eq!(calls(&faults), (0, 3, 4));
    world.finish().await;
}

#[tokio::test(start_paused = true)]
async fn r1_64_a_cancelled_instance_does_not_hear_of_its_activity() {
    let (memory, faults, door) = (Arc::default(), Faults::default(), Door::default());
    let world = on_store(&memory, &faults)
        .behind("Slow", &door)
        .orchestration("Wait", |ctx, _input| async move { ctx.schedule_activity("Slow", "").await })
        .start()
        .await;
    world.begin("i", "Wait", "").await;
    door.knock().await;
    world.client.cancel_instance("i", "enough").await.unwrap();
    world.error("i").await;
    door.open();
    world.finish().await;
    let history = kinds(&duroxide::providers::Provider::read(&*memory, "i").await.unwrap());
    assert!(!history.contains(&"ActivityCompleted".to_owned()), "{history:?}");
}

/// A name that is used again may have a history that looks the same so far.
#[tokio::test(start_paused = true)]
async fn r1_65_what_was_kept_of_an_instance_ends_with_it() {
    let memory: Arc<MemoryProvider> = Arc::default();
    let (faults, gate) = (Faults::default(), Arc::new(Semaphore::new(0)));
    let first = on_store(&memory, &faults).start().await;
    first.begin("x", "Echo", "old").await;
    first.until("x", |history| history.len() == 2).await;
    // Its next fetch is under way already; that one is for another instance.
    faults.always("fetch_orchestration_item", Fault::Gate(gate.clone()));
    first.begin("y", "Echo", "").await;
    first.until("y", |history| history.len() == 2).await;

    let second = on_store(&memory, &Faults::default()).start().await;
    second.client.raise_event("x", "go", "").await.unwrap();
    assert_eq!(second.output("x").await, "old");
    second.client.delete_instance("x", false).await.unwrap();
    tokio::time::sleep(Duration::from_millis(5)).await;
    second.begin("x", "Echo", "new").await;
    second.until("x", |history| history.len() == 2).await;
    second.runtime.shutdown(None).await;

    gate.add_permits(1_000);
    first.client.raise_event("x", "go", "").await.unwrap();
    assert_eq!(first.output("x").await, "new");
    first.finish().await;
}
