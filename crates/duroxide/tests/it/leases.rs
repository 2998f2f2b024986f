//! Locks are kept while work goes on, and given up only when they are lost (chapter 7.6). On paused
//! time: an activity's lock lasts 30 s and is renewed every 25 s, a turn's 5 s and every 3 s.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use duroxide::OrchestrationContext;
use duroxide::providers::memory::MemoryProvider;
use tokio::time::{Instant, sleep};

use crate::support::faults::{Fault, Faults, FaultyProvider, broken, busy};
use crate::support::logs::listen;
use crate::support::{World, WorldBuilder, world_on};

const fn seconds(n: u64) -> Duration {
    Duration::from_secs(n)
}

/// An activity that takes as many seconds as its input says, and ends early, with an error, when it
/// is cancelled.
fn sleeper(runs: &Arc<AtomicUsize>) -> WorldBuilder {
    sleeper_on(Arc::new(MemoryProvider::new()), runs)
}

fn sleeper_on(memory: Arc<MemoryProvider>, runs: &Arc<AtomicUsize>) -> WorldBuilder {
    let runs = Arc::clone(runs);
    world_on(memory)
        .patient()
        .activity("Sleep", move |ctx, input| {
            runs.fetch_add(1, Ordering::SeqCst);
            async move {
                let began = Instant::now();
                tokio::select! {
                    () = sleep(seconds(input.parse().unwrap())) => Ok("slept".to_owned()),
                    () = ctx.cancelled() => {
                        Err(format!("cancelled after {} s", began.elapsed().as_secs()))
                    }
                }
            }
        })
        .orchestration("Main", |ctx: OrchestrationContext, input| async move {
            ctx.schedule_activity("Sleep", input).await
        })
}

async fn with_faults(faults: &Faults) -> (World, Arc<AtomicUsize>) {
    let runs = Arc::default();
    let world = sleeper(&runs).through(|store| FaultyProvider::wrap(store, faults)).start().await;
    (world, runs)
}

#[tokio::test(start_paused = true)]
async fn r7_60_r7_61_a_long_activity_keeps_its_lock_and_runs_once() {
    let faults = Faults::default();
    let (world, runs) = with_faults(&faults).await;
    let began = Instant::now();
    assert_eq!(world.run("m", "Main", "590").await, "slept");
    assert_eq!(began.elapsed().as_secs(), 590);
    assert_eq!(runs.load(Ordering::SeqCst), 1);
    assert_eq!(faults.calls("renew_work_item_lock"), 590 / 25);
    sleep(seconds(100)).await; // No longer than it takes.
    assert_eq!(faults.calls("renew_work_item_lock"), 590 / 25);
    world.finish().await;
}

#[tokio::test(start_paused = true)]
async fn r7_61_short_locks_are_kept_too() {
    for (lock_ms, buffer_s) in [(200, 0), (1000, 0), (1500, 1), (20_000, 0)] {
        let (faults, runs) = (Faults::default(), Arc::default());
        let world = sleeper(&runs)
            .options(|options| {
                options.worker_lock_timeout = Duration::from_millis(lock_ms);
                options.worker_lock_renewal_buffer = seconds(buffer_s);
            })
            .through(|store| FaultyProvider::wrap(store, &faults))
            .start()
            .await;
        faults.next("renew_work_item_lock", [busy()]); // L18
        assert_eq!(world.run("m", "Main", "60").await, "slept");
        assert_eq!(runs.load(Ordering::SeqCst), 1, "{lock_ms} ms");
        world.finish().await;
    }
}

#[tokio::test(start_paused = true)]
async fn r7_60_a_lock_may_last_for_ever() {
    let runs = Arc::default();
    let world = sleeper(&runs).options(|options| {
        options.worker_lock_timeout = Duration::MAX;
        options.orchestrator_lock_timeout = Duration::MAX;
        options.session_idle_timeout = Duration::MAX;
    });
    let world = world.start().await;
    assert_eq!(world.run("m", "Main", "3600").await, "slept");
    world.finish().await;
}

#[tokio::test(start_paused = true)]
async fn r7_62_a_renewal_extends_the_lock_to_its_full_length() {
    let runs = Arc::default();
    let world = sleeper(&runs).start().await;
    world.begin("m", "Main", "100").await;
    let held_for = || {
        let snapshot = world.memory.snapshot();
        let lock = snapshot.worker_queue[0].lock.clone().unwrap();
        lock.held_until.unwrap() - snapshot.taken_at_ms
    };
    sleep(seconds(24)).await;
    assert_eq!(held_for(), 6_000);
    sleep(seconds(2)).await;
    assert_eq!(held_for(), 29_000);
    assert_eq!(world.output("m").await, "slept");
    world.finish().await;
}

#[tokio::test(start_paused = true)]
async fn l18_r5_22_a_passing_renewal_error_does_not_cancel() {
    let faults = Faults::default();
    let (world, runs) = with_faults(&faults).await;
    faults.next("renew_work_item_lock", std::iter::repeat_n(busy(), 19)); // 4.75 of 5 s
    assert_eq!(world.run("m", "Main", "100").await, "slept");
    assert_eq!((runs.load(Ordering::SeqCst), faults.fired()), (1, 19));
    world.finish().await;
}

#[tokio::test(start_paused = true)]
async fn l18_r7_63_an_error_that_outlasts_the_lock_costs_it() {
    let faults = Faults::default();
    let (world, runs) = with_faults(&faults).await;
    faults.always("renew_work_item_lock", busy());
    world.begin("m", "Main", "100").await;
    sleep(seconds(29)).await;
    assert_eq!(runs.load(Ordering::SeqCst), 1);
    sleep(seconds(2)).await; // Cancelled at 30 s, and fetched again by the other slot.
    assert_eq!(runs.load(Ordering::SeqCst), 2);
    faults.clear();
    assert_eq!(world.output("m").await, "slept");
    assert_eq!(runs.load(Ordering::SeqCst), 2);
    world.finish().await;
}

#[tokio::test(start_paused = true)]
async fn r5_22_a_renewal_refused_for_good_cancels_at_once() {
    let faults = Faults::default();
    let (world, runs) = with_faults(&faults).await;
    faults.next("renew_work_item_lock", [broken()]);
    world.begin("m", "Main", "26").await;
    sleep(seconds(28)).await;
    // R5.24: it has returned, but that counts for nothing.
    assert_eq!((runs.load(Ordering::SeqCst), world.history("m").await.len()), (1, 2));
    let began = Instant::now();
    assert_eq!(world.output("m").await, "slept"); // Again when the lock has run out, 2 s later.
    assert_eq!(began.elapsed().as_secs(), 2 + 26);
    assert_eq!(runs.load(Ordering::SeqCst), 2);
    world.finish().await;
}

#[tokio::test(start_paused = true)]
async fn r7_63_a_renewal_that_never_answers_costs_its_own_lock_and_holds_up_no_other() {
    let faults = Faults::default();
    let (world, runs) = with_faults(&faults).await;
    faults.next("renew_work_item_lock", [Fault::Hang]);
    world.begin("m1", "Main", "50").await;
    world.begin("m2", "Main", "50").await;
    let began = Instant::now();
    world.output("m1").await;
    world.output("m2").await;
    // One was renewed as if nothing were; the other cancelled at 30 s and run again.
    assert_eq!(began.elapsed().as_secs(), 30 + 50);
    assert_eq!(runs.load(Ordering::SeqCst), 3);
    world.finish().await;
}

#[tokio::test(start_paused = true)]
async fn r5_32_an_activity_whose_lock_ran_out_before_it_began_is_not_begun() {
    let runs = Arc::default();
    let turns = sleeper(&runs).options(|options| options.worker_concurrency = 0).start().await;
    turns.begin("m", "Main", "1").await;
    turns.until("m", |history| history.len() == 2).await;
    let memory = turns.close().await;

    // A runtime that knows nothing of the instance reads its history first. It stands still for 40 s
    // then, and cannot renew the lock, which lasts for 30 s.
    let faults = Faults::default();
    faults.next("read_history_from", [Fault::Slow(seconds(40))]);
    faults.next("renew_work_item_lock", [Fault::Hang]);
    let logs = listen();
    let world = sleeper_on(memory, &runs);
    let world = world.through(|store| FaultyProvider::wrap(store, &faults)).start().await;
    let began = Instant::now();
    assert_eq!(world.output("m").await, "slept");
    assert_eq!(began.elapsed().as_secs(), 30 + 1); // By the other slot.
    sleep(seconds(20)).await;
    assert_eq!((faults.fired(), runs.load(Ordering::SeqCst)), (2, 1));
    assert_eq!(logs.saying("the lock was lost before the activity began").len(), 1);
    world.finish().await;
}

/// Turns that take long, with the help of artificial delays. These are process-wide, so one test
/// at a time.
#[cfg(feature = "test-hooks")]
mod turns {
    use duroxide::runtime::test_hooks::{
        clear_orch_processing_delay, get_orch_processing_delay, set_orch_processing_delay,
    };
    use tokio::sync::Mutex;

    use super::*;
    use crate::support::world;

    static ALONE: Mutex<()> = Mutex::const_new(());

    /// A world whose turns are counted.
    async fn slow_turns(faults: &Faults) -> (World, Arc<AtomicUsize>) {
        let turns = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&turns);
        let world = world()
            .patient()
            .orchestration("Main", move |_ctx, input| {
                counted.fetch_add(1, Ordering::SeqCst);
                async move { Ok(input) }
            })
            .through(|store| FaultyProvider::wrap(store, faults))
            .start()
            .await;
        (world, turns)
    }

    #[tokio::test(start_paused = true)]
    async fn r7_60_r7_132_a_slow_turn_keeps_its_lock_and_runs_once() {
        let (_alone, faults) = (ALONE.lock().await, Faults::default());
        let (world, turns) = slow_turns(&faults).await;
        set_orch_processing_delay(seconds(60), Some("slow-"));
        let began = Instant::now();
        assert_eq!(world.run("quick-1", "Main", "q").await, "q");
        assert_eq!((began.elapsed().as_secs(), get_orch_processing_delay("quick-1")), (0, None));
        assert_eq!(world.run("slow-1", "Main", "s").await, "s");
        assert_eq!(began.elapsed().as_secs(), 60);
        assert_eq!(turns.load(Ordering::SeqCst), 2);
        assert_eq!(faults.calls("renew_orchestration_item_lock"), 60 / 3 - 1);
        clear_orch_processing_delay();
        world.finish().await;
    }

    #[tokio::test(start_paused = true)]
    async fn r7_63_a_turn_goes_on_when_its_lock_is_lost() {
        let (_alone, faults) = (ALONE.lock().await, Faults::default());
        let (world, turns) = slow_turns(&faults).await;
        // Refused at 3 s, done at 4 s, and the lock holds until 5 s.
        set_orch_processing_delay(seconds(4), Some("slow-"));
        faults.next("renew_orchestration_item_lock", [broken()]);
        assert_eq!(world.run("slow-1", "Main", "s").await, "s");
        assert_eq!(turns.load(Ordering::SeqCst), 1);
        // Refused at 3 s and done at 10 s, when the other slot has the turn.
        set_orch_processing_delay(seconds(10), Some("slow-"));
        faults.next("renew_orchestration_item_lock", [broken()]);
        let began = Instant::now();
        assert_eq!(world.run("slow-2", "Main", "s").await, "s");
        assert_eq!(began.elapsed().as_secs(), 5 + 10);
        assert_eq!(turns.load(Ordering::SeqCst), 3);
        let history = world.history("slow-2").await;
        assert_eq!(history.len(), 2, "{history:?}"); // Committed once, and nothing failed.
        clear_orch_processing_delay();
        world.finish().await;
    }
}
