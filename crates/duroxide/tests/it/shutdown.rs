//! How a runtime ends: politely, by force, many times, from anywhere.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake};
use std::time::Duration;

use duroxide::providers::Provider;
use duroxide::providers::memory::MemoryProvider;
use duroxide::runtime::Runtime;
use duroxide::runtime::registry::ActivityRegistry;
use duroxide::{
    ActivityContext, Client, OrchestrationRegistry, OrchestrationStatus, RuntimeOptions,
};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep, timeout};

use crate::support::faults::{Fault, Faults, FaultyProvider, busy};
use crate::support::{PATIENCE, World, check, world};

/// Whether something is still there.
struct Alive(Arc<AtomicBool>);

impl Drop for Alive {
    fn drop(&mut self) {
        self.0.store(false, Ordering::SeqCst);
    }
}

/// A store, a runtime on it, and an activity that never ends by itself.
struct Scene {
    memory: Arc<MemoryProvider>,
    store: Arc<dyn Provider>,
    runtime: Arc<Runtime>,
    faults: Faults,
    /// Set while an activity runs.
    alive: Arc<AtomicBool>,
    entered: Arc<Notify>,
    release: Arc<Notify>,
}

impl Scene {
    async fn new() -> Self {
        Self::with_options(RuntimeOptions::default()).await
    }

    async fn with_options(options: RuntimeOptions) -> Self {
        let (faults, memory) = (Faults::default(), Arc::new(MemoryProvider::new()));
        let store = FaultyProvider::wrap(memory.clone(), &faults);
        let alive = Arc::new(AtomicBool::new(false));
        let (entered, release) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
        let endless = {
            let (alive, entered, release) = (alive.clone(), entered.clone(), release.clone());
            move |_ctx: ActivityContext, _input: String| {
                let (alive, entered, release) = (alive.clone(), entered.clone(), release.clone());
                async move {
                    alive.store(true, Ordering::SeqCst);
                    let _alive = Alive(alive);
                    entered.notify_one();
                    release.notified().await;
                    Ok("released".to_owned())
                }
            }
        };
        let activities = ActivityRegistry::builder().register("Endless", endless).build();
        let orchestrations = OrchestrationRegistry::builder()
            .register("Main", |ctx, _input: String| async move {
                ctx.schedule_activity("Endless", "").await
            })
            .register("Quick", |_ctx, input: String| async move { Ok(input) })
            .build();
        let runtime =
            Runtime::start_with_options(store.clone(), activities, orchestrations, options).await;
        Self { memory, store, runtime, faults, alive, entered, release }
    }

    fn client(&self) -> Client {
        Client::new(self.memory.clone())
    }

    /// Begins an instance whose activity runs when this returns.
    async fn work(&self) {
        self.client().start_orchestration("i", "Main", "").await.unwrap();
        timeout(PATIENCE, self.entered.notified()).await.unwrap();
    }

    /// R7.127a, R7.124: nothing is left of the runtime.
    #[track_caller]
    fn assert_gone(&self) {
        assert_eq!(Arc::strong_count(&self.store), 1, "somebody still holds the store");
        assert!(!self.alive.load(Ordering::SeqCst), "an activity still runs");
    }
}

#[tokio::test(start_paused = true)]
async fn r7_120_an_idle_runtime_ends_at_once() {
    for grace in [None, Some(0), Some(60_000)] {
        let scene = Scene::new().await;
        sleep(Duration::from_secs(1)).await;
        let began = Instant::now();
        scene.runtime.clone().shutdown(grace).await;
        assert_eq!(began.elapsed(), Duration::ZERO);
        scene.assert_gone();
        scene.runtime.clone().shutdown(grace).await; // R7.123: again is fine.
        assert!(scene.runtime.get_orchestration_descriptor("i").await.is_none());
    }
}

#[tokio::test(start_paused = true)]
async fn r7_120_what_does_not_end_within_the_grace_is_aborted() {
    for (grace, millis) in [(None, 1_000), (Some(0), 0), (Some(5_000), 5_000)] {
        let scene = Scene::new().await;
        scene.work().await;
        let began = Instant::now();
        scene.runtime.clone().shutdown(grace).await;
        assert_eq!(began.elapsed().as_millis(), millis);
        scene.assert_gone();
        // R7.126: its lock stays until it expires.
        let row = &scene.memory.snapshot().worker_queue[0];
        assert!(row.lock.as_ref().is_some_and(|lock| lock.held_until.is_some()));
    }
}

#[tokio::test(start_paused = true)]
async fn r7_120_r5_30_what_ends_within_the_grace_is_kept() {
    let scene = Scene::new().await;
    scene.work().await;
    let shutdown = tokio::spawn(scene.runtime.clone().shutdown(Some(10_000)));
    sleep(Duration::from_secs(3)).await;
    assert!(scene.alive.load(Ordering::SeqCst), "not even cancelled");
    scene.release.notify_one();
    let began = Instant::now();
    shutdown.await.unwrap();
    assert_eq!(began.elapsed(), Duration::ZERO);
    scene.assert_gone();
    assert!(scene.memory.snapshot().worker_queue.is_empty(), "the result is stored");
}

#[tokio::test(start_paused = true)]
async fn r7_20_a_turn_in_hand_is_committed() {
    let scene = Scene::new().await;
    scene.faults.next("ack_orchestration_item", [Fault::Slow(Duration::from_millis(800))]);
    scene.client().start_orchestration("i", "Quick", "x").await.unwrap();
    sleep(Duration::from_millis(100)).await;
    scene.runtime.clone().shutdown(None).await;
    scene.assert_gone();
    let info = scene.client().get_instance_info("i").await.unwrap();
    assert_eq!(info.status, "Completed");
}

#[tokio::test(start_paused = true)]
async fn r7_127a_nothing_holds_the_store_after_a_turn_was_aborted_in_its_commit() {
    let scene = Scene::new().await;
    scene.faults.always("ack_orchestration_item", Fault::Hang);
    scene.faults.always("renew_orchestration_item_lock", Fault::Hang);
    scene.client().start_orchestration("i", "Quick", "").await.unwrap();
    sleep(Duration::from_secs(4)).await; // The commit hangs, and a renewal, too.
    scene.runtime.clone().shutdown(Some(100)).await;
    scene.assert_gone();
}

#[tokio::test(start_paused = true)]
async fn r7_60_locks_are_renewed_through_a_shutdown() {
    let scene = Scene::new().await;
    scene.work().await;
    let shutdown = tokio::spawn(scene.runtime.clone().shutdown(Some(100_000)));
    sleep(Duration::from_secs(60)).await;
    scene.release.notify_one();
    shutdown.await.unwrap();
    assert!(2 <= scene.faults.calls("renew_work_item_lock"));
    assert!(scene.memory.snapshot().worker_queue.is_empty(), "the result is stored");
    scene.assert_gone();
}

#[tokio::test(start_paused = true)]
async fn r7_127a_nothing_holds_the_store_after_a_shutdown_amid_fetch_errors() {
    let scene = Scene::new().await;
    scene.faults.outage(true);
    sleep(Duration::from_secs(60)).await;
    let began = Instant::now();
    scene.runtime.clone().shutdown(None).await;
    assert_eq!(began.elapsed(), Duration::ZERO, "pauses end, too");
    scene.assert_gone();
}

#[tokio::test(start_paused = true)]
async fn r7_123_concurrent_calls_all_wait_and_the_shortest_grace_counts() {
    let scene = Scene::new().await;
    scene.work().await;
    let began = Instant::now();
    let calls = [Some(60_000), Some(2_000), None, Some(30_000)];
    let calls = calls.map(|grace| tokio::spawn(scene.runtime.clone().shutdown(grace)));
    for call in calls {
        call.await.unwrap();
        scene.assert_gone();
    }
    assert_eq!(began.elapsed().as_millis(), 1_000);
}

#[tokio::test(start_paused = true)]
async fn r7_123_a_call_that_was_dropped_is_finished_by_the_next() {
    let scene = Scene::new().await;
    scene.work().await;
    let dropped = timeout(Duration::from_secs(1), scene.runtime.clone().shutdown(Some(60_000)));
    assert!(dropped.await.is_err());
    assert!(scene.alive.load(Ordering::SeqCst));
    scene.runtime.clone().shutdown(Some(0)).await;
    scene.assert_gone();
}

#[tokio::test(start_paused = true)]
async fn r7_123_a_dropped_call_still_stops_the_fetching() {
    let scene = Scene::new().await;
    scene.work().await;
    let dropped = timeout(Duration::from_millis(1), scene.runtime.clone().shutdown(Some(60_000)));
    assert!(dropped.await.is_err());
    scene.client().start_orchestration("late", "Quick", "").await.unwrap();
    sleep(Duration::from_secs(60)).await;
    assert_eq!(scene.memory.max_attempt_count("late"), 0);
    scene.runtime.clone().shutdown(Some(0)).await;
    scene.assert_gone();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r7_127a_nothing_holds_the_store_after_concurrent_shutdowns_under_load() {
    for round in 0..10 {
        let scene = Scene::with_options(RuntimeOptions {
            orchestration_concurrency: 4,
            worker_concurrency: 4,
            ..RuntimeOptions::default()
        })
        .await;
        for n in 0..20 {
            scene.client().start_orchestration(format!("q{n}"), "Quick", "").await.unwrap();
            scene.client().start_orchestration(format!("m{n}"), "Main", "").await.unwrap();
        }
        if round % 2 == 0 {
            scene.entered.notified().await;
        }
        let calls =
            [Some(0), Some(5), None].map(|g| tokio::spawn(scene.runtime.clone().shutdown(g)));
        for call in calls {
            call.await.unwrap();
            scene.assert_gone();
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r7_121_code_that_never_yields_delays_the_end() {
    let (entered, is_entered) = std::sync::mpsc::channel();
    let (release, is_released) = std::sync::mpsc::channel::<()>();
    let ends = std::sync::Mutex::new((entered, is_released));
    let orchestrations = OrchestrationRegistry::builder()
        .register("Blocks", move |_ctx, input: String| {
            let ends = ends.lock().unwrap();
            ends.0.send(()).unwrap();
            ends.1.recv().unwrap();
            async move { Ok(input) }
        })
        .build();
    let store = Arc::new(MemoryProvider::new());
    let activities = ActivityRegistry::builder().build();
    let runtime = Runtime::start_with_store(store.clone(), activities, orchestrations).await;
    Client::new(store.clone()).start_orchestration("i", "Blocks", "").await.unwrap();
    tokio::task::block_in_place(|| is_entered.recv().unwrap());
    let mut shutdown = tokio::spawn(runtime.shutdown(Some(0)));
    assert!(timeout(Duration::from_millis(50), &mut shutdown).await.is_err());
    release.send(()).unwrap();
    shutdown.await.unwrap();
    assert_eq!(Arc::strong_count(&store), 1);
}

#[test]
fn r7_122_without_grace_no_async_runtime_is_needed() {
    let tokio =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let scene = tokio.block_on(async {
        let scene = Scene::new().await;
        scene.work().await;
        scene
    });
    block_on_this_thread(scene.runtime.clone().shutdown(Some(0)));
    scene.assert_gone();
}

#[test]
fn r7_8_everything_works_on_a_single_thread() {
    let tokio = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    tokio.block_on(async {
        let scene = Scene::new().await;
        scene.work().await;
        scene.release.notify_one();
        scene.client().wait_for_orchestration("i", PATIENCE).await.unwrap();
        scene.runtime.clone().shutdown(None).await;
        scene.assert_gone();
    });
}

/// R7.1: the dispatchers belong to nobody. People start a runtime and let go of the handle.
#[tokio::test]
async fn r7_1_a_runtime_whose_handle_is_dropped_goes_on() {
    let World { memory, client, runtime, .. } = world()
        .echo("A")
        .orchestration("Main", |ctx, input| async move { ctx.schedule_activity("A", input).await })
        .start()
        .await;
    drop(runtime);
    client.start_orchestration("i", "Main", "x").await.unwrap();
    let status = client.wait_for_orchestration("i", PATIENCE).await.unwrap();
    assert!(matches!(status, OrchestrationStatus::Completed { output, .. } if output == "A:x"));
    check(&memory).await;
}

#[tokio::test(start_paused = true)]
async fn r7_120_shutdown_amid_commit_retries_abandons_nothing_it_cannot() {
    let scene = Scene::new().await;
    scene.faults.always("ack_orchestration_item", busy());
    scene.client().start_orchestration("i", "Quick", "x").await.unwrap();
    sleep(Duration::from_secs(2)).await;
    scene.runtime.clone().shutdown(None).await;
    scene.assert_gone();
    assert_eq!(scene.memory.snapshot().orchestrator_queue.len(), 1, "the turn can be repeated");
}

/// Drives a future with nothing but a thread.
fn block_on_this_thread<F: Future>(future: F) -> F::Output {
    struct Unpark(std::thread::Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Arc::new(Unpark(std::thread::current())).into();
    let mut future = std::pin::pin!(future);
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(output) => return output,
            Poll::Pending => std::thread::park(),
        }
    }
}
