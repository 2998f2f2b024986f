//! Activities fetched ahead of the slots that run them: only short ones, and not for long.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use duroxide::OrchestrationContext;
use duroxide::providers::memory::MemoryProvider;
use tokio::time::{Instant, sleep};

use crate::support::logs::listen;
use crate::support::numbers::{Board, Number, Numbers};
use crate::support::{Door, World, WorldBuilder, check, kinds, world, world_on};

const MOMENT: Duration = Duration::from_millis(10);
/// What waits for so long is given back.
const AHEAD: Duration = Duration::from_millis(100);

/// As many activities at once as the input says; how many succeeded.
async fn fan_out(ctx: OrchestrationContext, input: String) -> Result<String, String> {
    let calls = (0..input.parse().unwrap()).map(|n: u64| ctx.schedule_activity("A", n.to_string()));
    let answers = ctx.join(calls.collect()).await;
    Ok(answers.into_iter().filter(Result::is_ok).count().to_string())
}

async fn short(ctx: OrchestrationContext, _: String) -> Result<String, String> {
    ctx.schedule_activity("Short", "").await
}

fn scene(world: WorldBuilder, slots: usize) -> WorldBuilder {
    world
        .patient()
        .echo("Short")
        .orchestration("Main", fan_out)
        .orchestration("Short", short)
        .options(|options| options.worker_concurrency = slots)
}

/// A node with one slot, used to short activities, at the door with the first of so many.
async fn at_the_door(world: WorldBuilder, door: &Door, many: usize) -> World {
    let world = scene(world, 1).behind("A", door).start().await;
    world.run("short", "Short", "").await;
    world.begin("m", "Main", &many.to_string()).await;
    door.knock().await;
    world
}

/// A node that runs activities only.
async fn helper(memory: &Arc<MemoryProvider>, diary: &Diary) -> World {
    let node = world_on(Arc::clone(memory)).options(|options| {
        options.orchestration_concurrency = 0;
        options.worker_concurrency = 1;
    });
    diary.kept_by("helper", node, Duration::ZERO).start().await
}

/// Activities in hand, and how often the others were tried.
fn queue(world: &World) -> (usize, Vec<u32>) {
    let queue = world.memory.snapshot().worker_queue;
    let (locked, free): (Vec<_>, Vec<_>) = queue.iter().partition(|work| work.lock.is_some());
    (locked.len(), free.iter().map(|work| work.attempts).collect())
}

/// Who ran what, and when.
#[derive(Clone, Default)]
struct Diary(Arc<Mutex<Vec<(&'static str, Instant)>>>);

impl Diary {
    /// Activities that take so long and leave a note.
    fn kept_by(&self, node: &'static str, world: WorldBuilder, takes: Duration) -> WorldBuilder {
        let diary = self.clone();
        world.activity("A", move |_ctx, _| {
            diary.0.lock().unwrap().push((node, Instant::now()));
            async move {
                sleep(takes).await;
                Ok(String::new())
            }
        })
    }

    fn of(&self, node: &str) -> Vec<Instant> {
        let all = self.0.lock().unwrap();
        all.iter().filter(|(who, _)| *who == node).map(|(_, when)| *when).collect()
    }
}

#[tokio::test(start_paused = true)]
async fn r7_26_long_activities_are_not_fetched_ahead() {
    let (memory, diary) = (Arc::new(MemoryProvider::new()), Diary::default());
    let long = Duration::from_secs(1);
    let node = diary.kept_by("node", world_on(Arc::clone(&memory)), long);
    let world = scene(node, 2).start().await;
    assert_eq!(world.run("first", "Main", "2").await, "2"); // What is unknown is not, either.
    world.begin("m", "Main", "12").await;
    sleep(MOMENT).await;
    assert_eq!(queue(&world), (2, vec![0; 10]));
    let helper = helper(&memory, &diary).await;
    sleep(MOMENT).await;
    assert_eq!(diary.of("helper").len(), 10, "at once");
    assert_eq!(world.output("m").await, "12");
    assert_eq!(diary.of("node").len(), 4);
    helper.finish().await;
    world.finish().await;
}

#[tokio::test(start_paused = true)]
async fn r7_26_r7_27_short_activities_are_fetched_ahead_and_given_back_if_one_is_not_short() {
    let (memory, diary, door) =
        (Arc::new(MemoryProvider::new()), Diary::default(), Door::default());
    let world = at_the_door(world_on(Arc::clone(&memory)), &door, 10).await;
    let began = Instant::now();
    assert_eq!(queue(&world), (10, vec![]));
    sleep(AHEAD / 2).await;
    let helper = helper(&memory, &diary).await;
    sleep(AHEAD / 2 - MOMENT).await;
    assert_eq!((queue(&world), diary.of("helper").len()), ((10, vec![]), 0));
    sleep(MOMENT * 2).await;
    assert_eq!(diary.of("helper"), [began + AHEAD; 9]);
    assert_eq!(queue(&world), (1, vec![]));
    door.open();
    assert_eq!(world.output("m").await, "10");
    assert!(!door.has_knock());
    helper.finish().await;
    world.finish().await;
}

#[tokio::test(start_paused = true)]
async fn r7_27_what_is_given_back_was_not_tried() {
    let door = Door::default();
    let world = at_the_door(world(), &door, 5).await;
    sleep(AHEAD + MOMENT).await;
    assert_eq!(queue(&world), (1, vec![0; 4]));
    (0..5).for_each(|_| door.open());
    assert_eq!(world.output("m").await, "5");
    world.finish().await;
}

/// How often the store was asked for activities.
fn fetches(numbers: &Numbers) -> usize {
    let fetches = numbers.iter().filter(|(name, _)| {
        name.starts_with("duroxide_provider_operation_duration") && name.contains("fetch_work_item")
    });
    let lengths = fetches.map(|(_, number)| match number {
        Number::Histogram(values) => values.len(),
        other => panic!("no histogram: {other:?}"),
    });
    lengths.sum()
}

#[tokio::test(start_paused = true)]
async fn r7_26_short_activities_need_few_fetches_and_count_once() {
    let board = Board::default();
    let _counting = board.count();
    let world = scene(world(), 2).echo("A").start().await;
    world.run("short", "Short", "").await;
    board.take();
    let began = Instant::now();
    assert_eq!(world.run("m", "Main", "600").await, "600");
    assert_eq!(began.elapsed(), Duration::ZERO);
    let fetches = fetches(&board.take());
    assert!((600 / 256..=600 / 256 + 2).contains(&fetches), "{fetches} fetches");
    let counts = world.runtime.metrics_snapshot().unwrap();
    assert_eq!((counts.activity_success, counts.worker_dispatcher_items_fetched), (601, 601));
    world.finish().await;
}

#[tokio::test(start_paused = true)]
async fn r7_26_under_short_locks_nothing_is_fetched_ahead() {
    let door = Door::default();
    let node = world().options(|options| {
        options.worker_lock_timeout = Duration::from_millis(900);
        options.worker_lock_renewal_buffer = Duration::ZERO;
    });
    let world = at_the_door(node, &door, 5).await;
    assert_eq!(queue(&world), (1, vec![0; 4]));
    (0..5).for_each(|_| door.open());
    assert_eq!(world.output("m").await, "5");
    world.finish().await;
}

#[tokio::test(start_paused = true)]
async fn r7_27_r7_120_a_shutdown_gives_back_at_once_what_has_no_slot() {
    let door = Door::default();
    let world = at_the_door(world(), &door, 8).await;
    assert_eq!(queue(&world), (8, vec![]));
    let end = tokio::spawn(Arc::clone(&world.runtime).shutdown(Some(60_000)));
    sleep(Duration::from_millis(1)).await;
    assert_eq!(queue(&world), (1, vec![0; 7]));
    door.open();
    end.await.unwrap();
    assert_eq!(queue(&world), (0, vec![0; 7]));
    assert!(!door.has_knock());
    world.finish().await;
}

#[tokio::test(start_paused = true)]
async fn r7_127a_nothing_holds_the_store_after_an_abort_with_activities_fetched_ahead() {
    let door = Door::default();
    let world = at_the_door(world(), &door, 8).await;
    let World { memory, client, runtime, .. } = world;
    drop(client);
    runtime.shutdown(Some(0)).await;
    assert_eq!(Arc::strong_count(&memory), 1);
    check(&memory).await;
}

#[tokio::test(start_paused = true)]
async fn r5_25_an_activity_cancelled_while_it_waits_for_a_slot_answers_nobody() {
    let (door, log) = (Door::default(), listen());
    let node = world().orchestration("Impatient", |ctx, _| async move {
        let calls = (0..4).map(|_| ctx.schedule_activity("A", "")).collect();
        ctx.select2(ctx.join(calls), ctx.schedule_wait("enough")).await;
        Ok("enough".to_owned())
    });
    let world = scene(node, 1).behind("A", &door).start().await;
    world.run("short", "Short", "").await;
    world.begin("i", "Impatient", "").await;
    door.knock().await;
    world.client.raise_event("i", "enough", "").await.unwrap();
    assert_eq!(world.output("i").await, "enough");
    assert_eq!(queue(&world), (0, vec![]));
    door.open();
    sleep(Duration::from_secs(60)).await;
    assert!(!door.has_knock()); // The others were in hand, too, and do not begin.
    assert!(!kinds(&world.history("i").await).contains(&"ActivityCompleted".to_owned()));
    assert_eq!(log.saying("storage call failed"), []);
    let passed_on = log.saying("cancelled before it had a slot").len();
    let not_begun = log.saying("the lock was lost before the activity began").len();
    assert_eq!(passed_on + not_begun, 3);
    assert_eq!(world.run("again", "Short", "").await, "Short:");
    world.finish().await;
}

#[tokio::test(start_paused = true)]
async fn l27_panics_of_activities_fetched_ahead_harm_no_other() {
    let node = world().activity("A", |_ctx, input| async move {
        assert!(!input.ends_with('3'), "three is too much");
        Ok(input)
    });
    let world = scene(node, 2).start().await;
    world.run("short", "Short", "").await;
    let began = Instant::now();
    assert_eq!(world.run("m", "Main", "100").await, "90");
    assert_eq!(began.elapsed(), Duration::ZERO);
    world.finish().await;
}

/// Plain activities around one of a session.
async fn mixed(ctx: OrchestrationContext, _: String) -> Result<String, String> {
    let plain = || ctx.schedule_activity("Short", "");
    let bound = ctx.schedule_activity_on_session("Short", "", "s");
    let calls = vec![plain(), plain(), bound, plain(), plain()];
    Ok(ctx.join(calls).await.len().to_string())
}

#[tokio::test(start_paused = true)]
async fn r7_70_slots_with_sessions_of_their_own_fetch_nothing_for_others() {
    let door = Door::default();
    let world = scene(world(), 1).behind("A", &door).orchestration("Mixed", mixed).start().await;
    world.run("short", "Short", "").await;
    let began = Instant::now();
    assert_eq!(world.run("mixed", "Mixed", "").await, "5");
    assert_eq!(began.elapsed(), Duration::ZERO, "nothing was given back");
    world.begin("m", "Main", "5").await;
    door.knock().await;
    assert_eq!(queue(&world), (1, vec![0; 4]));
    (0..5).for_each(|_| door.open());
    assert_eq!(world.output("m").await, "5");
    world.finish().await;
}

#[tokio::test(start_paused = true)]
async fn r7_70_slots_that_share_their_sessions_fetch_ahead() {
    let door = Door::default();
    let node = world().options(|options| options.worker_node_id = Some("n1".to_owned()));
    let world = scene(node, 1).behind("A", &door).orchestration("Mixed", mixed).start().await;
    world.run("short", "Short", "").await;
    let began = Instant::now();
    assert_eq!(world.run("mixed", "Mixed", "").await, "5");
    assert_eq!(began.elapsed(), Duration::ZERO, "nothing was given back");
    world.begin("m", "Main", "5").await;
    door.knock().await;
    assert_eq!(queue(&world), (5, vec![]));
    (0..5).for_each(|_| door.open());
    assert_eq!(world.output("m").await, "5");
    world.finish().await;
}
