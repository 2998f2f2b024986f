//! Timers of instances that are kept, fired by the runtime that keeps them (R1.67).

use std::sync::Arc;
use std::time::Duration;

use duroxide::providers::memory::MemoryProvider;
use duroxide::providers::{Provider, ProviderError};
use duroxide::runtime::WarmMode;
use duroxide::{Either2, OrchestrationContext};
use tokio::sync::Semaphore;
use tokio::time::sleep;

use crate::support::faults::{Fault, Faults, FaultyProvider, broken, busy};
use crate::support::look::count;
use crate::support::{WorldBuilder, kinds, world_on};

/// How late a timer may be that another runtime meant to fire.
const GRACE: Duration = Duration::from_millis(50);

/// Timers stored with their turns, turns stored with a lock.
fn calls(faults: &Faults) -> (usize, usize) {
    (faults.calls("commit_timer_turn"), faults.calls("ack_orchestration_item"))
}

fn on_store(memory: &Arc<MemoryProvider>, faults: &Faults) -> WorldBuilder {
    faults.take_timer_turns();
    world_on(memory.clone())
        .through(|store| FaultyProvider::wrap(store, faults))
        .echo("A")
        .orchestration("Naps", naps)
        .orchestration("Race", |ctx, input| async move {
            let nap = ctx.schedule_timer(Duration::from_secs(2));
            match ctx.select2(nap, ctx.schedule_wait("go")).await {
                Either2::First(()) => Ok(input + " rested"),
                Either2::Second(data) => Ok(input + &data),
            }
        })
}

async fn naps(ctx: OrchestrationContext, input: String) -> Result<String, String> {
    for _ in 0..3 {
        ctx.schedule_timer(Duration::from_secs(2)).await;
    }
    Ok(input)
}

/// How long it took from its first event to its last.
async fn took(memory: &MemoryProvider, instance: &str) -> Duration {
    let history = memory.read(instance).await.unwrap();
    let ends = history.first().zip(history.last()).unwrap();
    Duration::from_millis(ends.1.timestamp_ms - ends.0.timestamp_ms)
}

async fn fired(memory: &MemoryProvider, instance: &str) -> usize {
    count(&memory.read(instance).await.unwrap(), "TimerFired")
}

#[tokio::test(start_paused = true)]
async fn r1_67_a_timer_and_its_turn_are_one_commit() {
    for mode in [WarmMode::On, WarmMode::Compare] {
        let (memory, faults) = (Arc::default(), Faults::default());
        let world = on_store(&memory, &faults).tuning(|tuning| tuning.warm.mode = mode);
        let world = world.start().await;
        assert_eq!(world.run("i", "Naps", "x").await, "x");
        assert_eq!(took(&memory, "i").await, Duration::from_secs(6));
        assert_eq!(calls(&faults), (3, 1), "only the first turn begins with a message");
        let nap = ["TimerCreated", "TimerFired"];
        let expected =
            [&["OrchestrationStarted"][..], &nap, &nap, &nap, &["OrchestrationCompleted"]];
        assert_eq!(kinds(&world.history("i").await), expected.concat());
        world.finish().await;
    }
}

#[tokio::test(start_paused = true)]
async fn r1_67_timers_of_one_instance_that_are_due_share_a_turn() {
    let (memory, faults) = (Arc::default(), Faults::default());
    let world = on_store(&memory, &faults)
        .orchestration("Many", |ctx, _input| async move {
            let nap = |seconds| ctx.schedule_timer(Duration::from_secs(seconds));
            ctx.join((0..30).map(|number| nap(1 + number % 2)).collect::<Vec<_>>()).await;
            ctx.schedule_timer(Duration::ZERO).await;
            Ok(String::new())
        })
        .start()
        .await;
    world.run("i", "Many", "").await;
    assert_eq!(calls(&faults), (3, 1));
    assert_eq!(fired(&memory, "i").await, 31);
    world.finish().await;
}

#[tokio::test(start_paused = true)]
async fn r1_67_refused_the_timer_is_fetched() {
    for refused in [broken(), busy(), Fault::Before(ProviderError::permanent("fault", "no"))] {
        let (memory, faults) = (Arc::default(), Faults::default());
        faults.next("commit_timer_turn", [refused]);
        let world = on_store(&memory, &faults).start().await;
        assert_eq!(world.run("i", "Naps", "x").await, "x");
        let late = took(&memory, "i").await - Duration::from_secs(6);
        assert_eq!(late, GRACE);
        assert_eq!(calls(&faults), (3, 2));
        assert_eq!(fired(&memory, "i").await, 3);
        world.finish().await;
    }
}

#[tokio::test(start_paused = true)]
async fn r1_67_an_answer_that_is_lost_fires_nothing_twice() {
    let (memory, faults) = (Arc::default(), Faults::default());
    let lost = Fault::After(ProviderError::retryable("fault", "answer lost"));
    faults.next("commit_timer_turn", [lost]);
    let world = on_store(&memory, &faults).start().await;
    assert_eq!(world.run("i", "Naps", "x").await, "x");
    assert_eq!(fired(&memory, "i").await, 3);
    world.finish().await;
}

/// The process that meant to fire it is gone between the turn and its commit.
#[tokio::test(start_paused = true)]
async fn r1_67_what_a_dead_process_meant_to_fire_is_fired_by_another() {
    for end in [Fault::Hang, Fault::HangAfter] {
        let (memory, faults) = (Arc::default(), Faults::default());
        faults.always("commit_timer_turn", end);
        let first = on_store(&memory, &faults).start().await;
        first.begin("i", "Naps", "x").await;
        while faults.calls("commit_timer_turn") == 0 {
            sleep(Duration::from_millis(1)).await;
        }
        first.runtime.shutdown(Some(0)).await;
        let second = on_store(&memory, &Faults::default()).start().await;
        assert_eq!(second.output("i").await, "x");
        let late = took(&memory, "i").await - Duration::from_secs(6);
        assert!(late <= GRACE, "{late:?}");
        assert_eq!(fired(&memory, "i").await, 3);
        second.finish().await;
    }
}

/// What has happened meanwhile comes first, and the timer does not count.
#[tokio::test(start_paused = true)]
async fn r1_67_a_turn_that_has_not_seen_everything_is_not_stored() {
    let (memory, faults) = (Arc::default(), Faults::default());
    let gate = Arc::new(Semaphore::new(0));
    faults.next("commit_timer_turn", [Fault::Gate(gate.clone())]);
    let world = on_store(&memory, &faults).start().await;
    world.begin("i", "Race", "").await;
    while faults.calls("commit_timer_turn") == 0 {
        sleep(Duration::from_millis(1)).await;
    }
    world.client.raise_event("i", "go", "event").await.unwrap();
    assert_eq!(world.output("i").await, "event");
    gate.add_permits(1);
    sleep(Duration::from_secs(1)).await;
    assert_eq!(fired(&memory, "i").await, 0);
    world.finish().await;
}

/// A timer that nobody waits for any more changes nothing.
#[tokio::test(start_paused = true)]
async fn r1_67_a_timer_that_lost_its_race_is_fired_in_vain() {
    let (memory, faults) = (Arc::default(), Faults::default());
    let world = on_store(&memory, &faults)
        .orchestration("Goes on", |ctx, _input| async move {
            let nap = ctx.schedule_timer(Duration::from_secs(1));
            let winner = match ctx.select2(nap, ctx.schedule_activity("A", "x")).await {
                Either2::First(()) => "nap".to_owned(),
                Either2::Second(result) => result?,
            };
            ctx.schedule_timer(Duration::from_secs(2)).await;
            Ok(winner)
        })
        .start()
        .await;
    assert_eq!(world.run("i", "Goes on", "").await, "A:x");
    assert_eq!(took(&memory, "i").await, Duration::from_secs(2));
    world.finish().await;
}

#[tokio::test(start_paused = true)]
async fn r1_67_what_is_not_kept_is_fetched() {
    let (memory, faults) = (Arc::default(), Faults::default());
    let world = on_store(&memory, &faults).tuning(|tuning| tuning.warm.max_instances = 2);
    let world = world.start().await;
    let ids: Vec<String> = (0..10).map(|number| format!("i{number}")).collect();
    for id in &ids {
        world.begin(id, "Naps", "x").await;
    }
    for id in &ids {
        assert_eq!(world.output(id).await, "x");
        assert_eq!(fired(&memory, id).await, 3);
        let late = took(&memory, id).await - Duration::from_secs(6);
        assert!(late <= 3 * GRACE, "{late:?}");
    }
    world.finish().await;
}

#[tokio::test(start_paused = true)]
async fn r1_67_without_warm_instances_or_such_a_store_nothing_is_held_back() {
    for (mode, takes) in [(WarmMode::Off, true), (WarmMode::On, false)] {
        let (memory, faults) = (Arc::default(), Faults::default());
        let world = on_store(&memory, &faults).tuning(|tuning| tuning.warm.mode = mode);
        if !takes {
            faults.take_no_timer_turns();
        }
        let world = world.start().await;
        assert_eq!(world.run("i", "Naps", "x").await, "x");
        assert_eq!(took(&memory, "i").await, Duration::from_secs(6));
        assert_eq!(calls(&faults), (0, 4));
        world.finish().await;
    }
}

/// A name that is used again within the same moment.
#[tokio::test(start_paused = true)]
async fn r1_67_r1_65_a_timer_of_a_deleted_instance_does_not_reach_the_next() {
    let (memory, faults) = (Arc::default(), Faults::default());
    let gate = Arc::new(Semaphore::new(0));
    let first = on_store(&memory, &faults).start().await;
    first.begin("i", "Race", "old").await;
    first.until("i", |history| history.len() == 3).await;
    first.client.delete_instance("i", true).await.unwrap();
    // No time has passed: the next looks the same.
    first.begin("i", "Race", "new").await;
    first.until("i", |history| history.len() == 3).await;
    faults.always("commit_timer_turn", Fault::Gate(gate.clone()));
    while faults.calls("commit_timer_turn") == 0 {
        sleep(Duration::from_millis(1)).await;
    }
    first.client.delete_instance("i", true).await.unwrap();
    first.begin("i", "Race", "newest").await;
    first.until("i", |history| history.len() == 3).await;
    gate.add_permits(1_000);
    assert_eq!(first.output("i").await, "newest rested");
    assert_eq!(fired(&memory, "i").await, 1);
    first.finish().await;
}

#[tokio::test(start_paused = true)]
async fn r1_67_r1_39_values_and_successors_go_along() {
    for mode in [WarmMode::On, WarmMode::Compare] {
        let (memory, faults) = (Arc::default(), Faults::default());
        faults.take_successors();
        let world = on_store(&memory, &faults)
            .orchestration("Count", |ctx, input| async move {
                let n = ctx.get_kv_value("n").unwrap_or_default() + "n";
                ctx.schedule_timer(Duration::from_secs(1)).await;
                ctx.set_kv_value("n", n.clone());
                if n.len() < 4 { ctx.continue_as_new(input).await } else { Ok(n) }
            })
            .tuning(|tuning| tuning.warm.mode = mode)
            .start()
            .await;
        assert_eq!(world.run("i", "Count", "").await, "nnnn");
        assert_eq!(took(&memory, "i").await, Duration::from_secs(1), "the last execution");
        assert_eq!(world.client.list_executions("i").await.unwrap(), [1, 2, 3, 4]);
        assert_eq!(calls(&faults), (4, 1));
        world.finish().await;
    }
}

#[tokio::test(start_paused = true)]
async fn r1_67_a_cancelled_instance_fires_nothing() {
    let (memory, faults) = (Arc::default(), Faults::default());
    let world = on_store(&memory, &faults).start().await;
    world.begin("i", "Naps", "").await;
    world.until("i", |history| history.len() == 2).await;
    world.client.cancel_instance("i", "enough").await.unwrap();
    world.error("i").await;
    sleep(Duration::from_secs(60)).await;
    assert_eq!(calls(&faults).0, 0);
    assert_eq!(fired(&memory, "i").await, 0);
    world.finish().await;
}

// R1.67: where there is no room, nothing is promised, and so nothing is held back.
#[tokio::test(start_paused = true)]
async fn r1_67_timers_are_on_time_where_there_is_no_room_for_their_instances() {
    for (max_instances, max_bytes) in [(10, usize::MAX), (usize::MAX, 40_000), (usize::MAX, 2_000)]
    {
        let (memory, faults) = (Arc::default(), Faults::default());
        let world = on_store(&memory, &faults).tuning(|tuning| {
            tuning.warm.max_instances = max_instances;
            tuning.warm.max_bytes = max_bytes;
        });
        let world = world.start().await;
        let ids: Vec<String> = (0..200).map(|number| format!("i{number}")).collect();
        for id in &ids {
            world.begin(id, "Naps", &"x".repeat(2_000)).await;
        }
        let mut on_time = 0;
        for id in &ids {
            world.output(id).await;
            on_time += usize::from(took(&memory, id).await == Duration::from_secs(6));
        }
        // Those for which there was room, and then was not, are late once.
        assert!(150 < on_time, "{on_time} with {max_instances} instances, {max_bytes} bytes");
        world.finish().await;
    }
}
