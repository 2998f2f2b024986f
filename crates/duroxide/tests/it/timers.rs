//! Timers: when they fire, by whose clock, and in which order.

use std::sync::Arc;
use std::time::Duration;

use duroxide::clock::{Clock, TokioClock};
use duroxide::providers::memory::{MemoryOptions, MemoryProvider};
use duroxide::runtime::WarmMode;
use duroxide::{Either2, Event, EventKind};
use tokio::time::{Instant, sleep};

use crate::support::faults::{Faults, FaultyProvider};
use crate::support::look::{count, has};
use crate::support::{WorldBuilder, kinds, world, world_on};

fn sleeper(world: WorldBuilder) -> WorldBuilder {
    world.orchestration("Sleep", |ctx, millis| async move {
        ctx.schedule_timer(Duration::from_millis(millis.parse().unwrap())).await;
        Ok("rested".into())
    })
}

fn due_times(history: &[Event]) -> Vec<u64> {
    let timers = history.iter().filter_map(|event| match event.kind {
        EventKind::TimerCreated { fire_at_ms } => Some(fire_at_ms),
        _ => None,
    });
    timers.collect()
}

#[tokio::test(start_paused = true)]
async fn r4_30_r4_34_a_timer_fires_when_it_is_due() {
    let world = sleeper(world()).start().await;
    for millis in [0, 1, 999, 10_000, 3_600_000] {
        let began = Instant::now();
        let id = millis.to_string();
        world.begin(&id, "Sleep", &id).await;
        let patience = Duration::from_secs(100_000);
        world.client.wait_for_orchestration(&id, patience).await.unwrap();
        let took = began.elapsed().as_millis();
        assert!((millis..millis + 2).contains(&took), "{millis} ms took {took} ms");
        let history = world.history(&id).await;
        let due = history[0].timestamp_ms + u64::try_from(millis).unwrap();
        assert_eq!(due_times(&history), [due]);
        assert_eq!(history[2].kind, EventKind::TimerFired { fire_at_ms: due }); // R2.35
    }
    world.finish().await;
}

#[tokio::test(start_paused = true)]
async fn r4_30_l23_timers_follow_the_clock_of_the_store() {
    const SKEW: Duration = Duration::from_secs(3600);
    let clock = Arc::new(TokioClock::ahead_by(SKEW));
    let options = MemoryOptions { clock: clock.clone(), ..MemoryOptions::default() };
    let memory = Arc::new(MemoryProvider::with_options(options));
    let world = sleeper(world_on(memory)).start().await;
    let began = Instant::now();
    world.run("i", "Sleep", "10000").await;
    // By the node's clock it would have fired at once; behind the store's, an hour late.
    assert_eq!(began.elapsed().as_secs(), 10);
    assert_eq!(due_times(&world.history("i").await).len(), 1);
    let age = clock.now_ms() - due_times(&world.history("i").await)[0];
    assert!(age < 2, "{age}");
    world.finish().await;
}

#[tokio::test(start_paused = true)]
async fn r4_30_without_a_clock_of_the_store_the_nodes_is_used() {
    let faults = Faults::default();
    faults.hide_clock();
    let world = sleeper(world())
        .through(|store| FaultyProvider::wrap(store, &faults))
        .tuning(|tuning| tuning.clock = Arc::new(TokioClock::ahead_by(Duration::from_secs(5))))
        .start()
        .await;
    let began = Instant::now();
    world.run("i", "Sleep", "10000").await;
    assert_eq!(began.elapsed().as_secs(), 15, "the node is ahead of the store");
    world.finish().await;
}

#[tokio::test(start_paused = true)]
async fn r4_31_r4_32_replays_do_not_move_a_timer() {
    let world = world()
        .orchestration("Main", |ctx, _input| async move {
            let alarm = ctx.schedule_timer(Duration::from_secs(10));
            let ticks = async {
                loop {
                    ctx.schedule_wait("tick").await;
                }
            };
            match ctx.select2(alarm, ticks).await {
                Either2::First(()) => Ok("woken".into()),
                Either2::Second(never) => never,
            }
        })
        .start()
        .await;
    let began = Instant::now();
    world.begin("i", "Main", "").await;
    for _ in 0..9 {
        sleep(Duration::from_secs(1)).await;
        world.client.raise_event("i", "tick", "").await.unwrap();
    }
    world.output("i").await;
    assert_eq!(began.elapsed().as_secs(), 10);
    world.finish().await;
}

/// A clock that stands still.
struct Stopped(u64);

impl Clock for Stopped {
    fn now_ms(&self) -> u64 {
        self.0
    }
}

/// The node's clock is behind the one by which the timer was found to be due.
#[tokio::test(start_paused = true)]
async fn r4_30_no_timer_fires_early_by_the_clock_that_the_code_sees() {
    let faults = Faults::default();
    faults.hide_clock();
    for in_memory in [true, false] {
        let stopped = Arc::new(Stopped(TokioClock::new().now_ms()));
        let world = world()
            .orchestration("Main", |ctx, _input| async move {
                let delay = Duration::from_micros(1_000_500);
                let before = ctx.utc_now().await?;
                ctx.schedule_timer(delay).await;
                let passed = ctx.utc_now().await?.duration_since(before).unwrap_or_default();
                assert!(delay <= passed, "{passed:?} passed");
                Ok(String::new())
            })
            .through(|store| FaultyProvider::wrap(store, &faults))
            .tuning(|tuning| {
                tuning.clock = stopped;
                if !in_memory {
                    tuning.warm.mode = WarmMode::Off;
                }
            })
            .start()
            .await;
        world.run("i", "Main", "").await;
        world.finish().await;
    }
}

#[tokio::test(start_paused = true)]
async fn r4_33_timers_fire_in_order_of_their_due_times() {
    let world = world()
        .orchestration("Main", |ctx, _input| async move {
            let seconds = [3, 1, 2, 1];
            let timers = seconds.map(|s| ctx.schedule_timer(Duration::from_secs(s)));
            ctx.join(timers.into()).await;
            Ok(String::new())
        })
        .start()
        .await;
    world.run("i", "Main", "").await;
    let history = world.history("i").await;
    let fired = history.iter().filter(|event| matches!(event.kind, EventKind::TimerFired { .. }));
    let order: Vec<u64> = fired.filter_map(|event| event.source_event_id).collect();
    assert_eq!(order, [3, 5, 4, 2]);
    world.finish().await;
}

#[tokio::test(start_paused = true)]
async fn r4_35_r3_104b_a_dropped_timer_fires_and_nobody_minds() {
    let world = world()
        .orchestration("Main", |ctx, _input| async move {
            let alarm = ctx.schedule_timer(Duration::from_secs(5));
            match ctx.select2(ctx.schedule_wait("go"), alarm).await {
                Either2::First(_) => Ok(ctx.schedule_wait("end").await),
                Either2::Second(()) => Err("late".into()),
            }
        })
        .start()
        .await;
    world.begin("i", "Main", "").await;
    world.until_kind("i", "ExternalSubscribed").await;
    world.client.raise_event("i", "go", "").await.unwrap();
    let history = world.until_kind("i", "TimerFired").await;
    assert!(!kinds(&history).iter().any(|kind| kind.contains("Cancel")), "{history:#?}");
    world.client.raise_event("i", "end", "ok").await.unwrap();
    assert_eq!(world.output("i").await, "ok");
    world.finish().await;
}

#[tokio::test(start_paused = true)]
async fn r4_30_the_longest_delay_saturates_and_never_fires() {
    let world = world()
        .orchestration("Main", |ctx, _input| async move {
            let never = ctx.schedule_timer(Duration::MAX);
            match ctx.select2(never, ctx.schedule_timer(Duration::from_secs(1))).await {
                Either2::First(()) => Err("it fired".into()),
                Either2::Second(()) => Ok("not yet".into()),
            }
        })
        .start()
        .await;
    assert_eq!(world.run("i", "Main", "").await, "not yet");
    assert_eq!(due_times(&world.history("i").await)[0], u64::MAX);
    world.finish().await;
}

#[tokio::test(start_paused = true)]
async fn r1_26_a_timer_that_fires_after_the_end_vanishes() {
    let world = world()
        .orchestration("Main", |ctx, _input| async move {
            let _late = ctx.schedule_timer(Duration::from_secs(60));
            ctx.schedule_timer(Duration::from_secs(1)).await;
            Ok(String::new())
        })
        .start()
        .await;
    world.run("i", "Main", "").await;
    assert_eq!(world.memory.snapshot().orchestrator_queue.len(), 1);
    sleep(Duration::from_secs(60)).await;
    world.settled().await;
    let history = world.history("i").await;
    assert!(has(&history, "OrchestrationCompleted") && count(&history, "TimerFired") == 1);
    world.finish().await;
}
