//! A slot runs code; what the code returned waits for the store without it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use duroxide::OrchestrationContext;
use duroxide::providers::WorkItem;
use duroxide::providers::memory::MemorySnapshot;
use tokio::sync::Semaphore;
use tokio::time::{Instant, sleep};

use crate::support::faults::{Fault, Faults, FaultyProvider};
use crate::support::{Door, WorldBuilder, check, world};

const MOMENT: Duration = Duration::from_secs(1);

/// As many activities at once as the input says.
async fn fan_out(ctx: OrchestrationContext, input: String) -> Result<String, String> {
    let calls = (0..input.parse().unwrap()).map(|_: u64| ctx.schedule_activity("A", ""));
    let answers = ctx.join(calls.collect()).await;
    Ok(answers.into_iter().filter(Result::is_ok).count().to_string())
}

/// A store in which results wait at a gate, and a count of the activities that ran.
struct Scene {
    faults: Faults,
    gate: Arc<Semaphore>,
    runs: Arc<AtomicUsize>,
}

impl Scene {
    fn new() -> Self {
        let (faults, gate) = (Faults::default(), Arc::new(Semaphore::new(0)));
        faults.always("ack_work_item", Fault::Gate(Arc::clone(&gate)));
        Self { faults, gate, runs: Arc::default() }
    }

    fn world(&self, slots: usize) -> WorldBuilder {
        let runs = Arc::clone(&self.runs);
        self.empty_world(slots).activity("A", move |_ctx, _| {
            runs.fetch_add(1, Ordering::SeqCst);
            async { Ok(String::new()) }
        })
    }

    fn empty_world(&self, slots: usize) -> WorldBuilder {
        world()
            .patient()
            .through(|store| FaultyProvider::wrap(store, &self.faults))
            .orchestration("Main", fan_out)
            .options(|options| options.worker_concurrency = slots)
    }

    fn runs(&self) -> usize {
        self.runs.load(Ordering::SeqCst)
    }
}

fn answers(store: &MemorySnapshot) -> usize {
    let all = store.orchestrator_queue.iter();
    all.filter(|message| matches!(message.item, WorkItem::ActivityCompleted { .. })).count()
}

#[tokio::test(start_paused = true)]
async fn r5_10_a_result_on_its_way_keeps_no_slot() {
    let scene = Scene::new();
    let world = scene.world(1).start().await;
    world.begin("m", "Main", "5").await;
    sleep(MOMENT).await;
    assert_eq!((scene.runs(), scene.faults.calls("ack_work_item")), (5, 5));
    scene.gate.add_permits(5);
    assert_eq!(world.output("m").await, "5");
    world.finish().await;
}

#[tokio::test(start_paused = true)]
async fn r5_10_results_on_their_way_are_not_too_many() {
    let scene = Scene::new();
    let world = scene.world(2).start().await;
    world.begin("m", "Main", "700").await;
    sleep(MOMENT).await;
    // Two more have ended and keep their slots.
    assert_eq!((scene.runs(), scene.faults.calls("ack_work_item")), (514, 512));
    scene.gate.add_permits(1);
    sleep(MOMENT).await;
    assert_eq!((scene.runs(), scene.faults.calls("ack_work_item")), (515, 513));
    scene.gate.add_permits(700);
    assert_eq!(world.output("m").await, "700");
    assert_eq!(scene.runs(), 700);
    world.finish().await;
}

#[tokio::test(start_paused = true)]
async fn r7_60_a_result_on_its_way_keeps_its_lock() {
    let scene = Scene::new();
    let world = scene.world(1).start().await;
    world.begin("m", "Main", "3").await;
    sleep(Duration::from_secs(600)).await; // A lock lasts 30 s.
    scene.gate.add_permits(3);
    assert_eq!(world.output("m").await, "3");
    assert_eq!(scene.runs(), 3);
    world.finish().await;
}

#[tokio::test(start_paused = true)]
async fn r7_70_an_activity_of_a_session_keeps_its_slot_until_its_result_is_stored() {
    let scene = Scene::new();
    let world = scene
        .world(2)
        .orchestration("Bound", |ctx, _| async move {
            let calls = (0..3).map(|_| ctx.schedule_activity_on_session("A", "", "s"));
            Ok(ctx.join(calls.collect()).await.len().to_string())
        })
        .start()
        .await;
    world.begin("m", "Bound", "").await;
    for so_far in 1..=3 {
        sleep(MOMENT).await;
        assert_eq!(scene.runs(), so_far);
        scene.gate.add_permits(1);
    }
    assert_eq!(world.output("m").await, "3");
    world.finish().await;
}

#[tokio::test(start_paused = true)]
async fn r7_8_so_many_activities_run_at_a_time_whatever_becomes_of_their_results() {
    let (scene, door) = (Scene::new(), Door::default());
    let world = scene.empty_world(3).behind("A", &door).start().await;
    world.begin("m", "Main", "7").await;
    for _ in 0..3 {
        door.knock().await;
    }
    for _ in 3..7 {
        sleep(MOMENT).await;
        assert!(!door.has_knock(), "a fourth one runs");
        door.open();
        door.knock().await; // Its slot is free, its result is not stored.
    }
    (0..3).for_each(|_| door.open());
    scene.gate.add_permits(7);
    assert_eq!(world.output("m").await, "7");
    world.finish().await;
}

#[tokio::test(start_paused = true)]
async fn r7_120_r7_125_a_shutdown_waits_for_results_on_their_way() {
    let scene = Scene::new();
    let world = scene.world(1).start().await;
    world.begin("m", "Main", "4").await;
    sleep(MOMENT).await;
    let began = Instant::now();
    let end = tokio::spawn(world.runtime.shutdown(Some(60_000)));
    sleep(MOMENT * 10).await;
    assert!(!end.is_finished());
    scene.gate.add_permits(4);
    end.await.unwrap();
    assert_eq!(began.elapsed(), MOMENT * 10);
    let left = world.memory.snapshot();
    assert_eq!((left.worker_queue.len(), answers(&left)), (0, 4));
    check(&world.memory).await;
}

#[tokio::test(start_paused = true)]
async fn r7_120_r7_127a_results_that_outlast_the_grace_are_left_to_others() {
    let scene = Scene::new();
    let world = scene.world(1).start().await;
    world.begin("m", "Main", "4").await;
    sleep(MOMENT).await;
    let began = Instant::now();
    drop(world.client);
    world.runtime.shutdown(Some(2_000)).await;
    assert_eq!(began.elapsed(), Duration::from_secs(2));
    assert_eq!(Arc::strong_count(&world.memory), 1);
    let left = world.memory.snapshot();
    assert_eq!((left.worker_queue.len(), answers(&left)), (4, 0));
    check(&world.memory).await;
}

#[tokio::test(start_paused = true)]
async fn r5_14_a_store_that_panics_at_a_result_costs_a_run() {
    let scene = Scene::new();
    scene.faults.next("ack_work_item", [Fault::Panic]);
    let world = scene.world(1).start().await;
    scene.gate.add_permits(9);
    world.begin("m", "Main", "2").await;
    assert_eq!(world.output("m").await, "2");
    assert_eq!(scene.runs(), 3);
    world.finish().await;
}
