//! How an activity learns that nobody wants its result any more, and what becomes of it
//! (chapter 5.3). All on paused time: an activity's lock lasts 30 s and is renewed every 25 s.

use std::sync::Arc;
use std::time::Duration;

use duroxide::{ActivityContext, Either2, OrchestrationContext, OrchestrationStatus};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::time::{Instant, sleep};

use crate::support::{Door, World, WorldBuilder, kinds, world, world_on};

const fn seconds(n: u64) -> Duration {
    Duration::from_secs(n)
}

/// Tells what an activity lived through, as it happens.
#[derive(Clone)]
struct Diary(UnboundedSender<&'static str>);

struct Reader {
    entries: UnboundedReceiver<&'static str>,
    began: Instant,
}

/// Writes when dropped.
struct Epitaph(Diary);

fn diary() -> (Diary, Reader) {
    let (sender, entries) = unbounded_channel();
    (Diary(sender), Reader { entries, began: Instant::now() })
}

impl Diary {
    fn write(&self, entry: &'static str) {
        self.0.send(entry).unwrap();
    }
}

impl Drop for Epitaph {
    fn drop(&mut self) {
        self.0.0.send("dropped").ok();
    }
}

impl Reader {
    /// Waits until the activity has begun; times count from there.
    async fn begun(&mut self) {
        assert_eq!(self.entries.recv().await, Some("began"));
        self.began = Instant::now();
    }

    /// The next entry, and how many seconds after the beginning it was written.
    async fn next(&mut self) -> (&'static str, u64) {
        let entry = self.entries.recv().await.unwrap();
        (entry, self.began.elapsed().as_secs())
    }
}

/// What an activity does when told that it is not needed.
async fn live(ctx: ActivityContext, diary: Diary, habit: &str) -> Result<String, String> {
    diary.write("began");
    match habit {
        "polite" => {
            ctx.cancelled().await;
            assert!(ctx.is_cancelled() && ctx.cancellation_token().is_cancelled());
            diary.write("cancelled");
            sleep(seconds(3)).await;
            diary.write("left");
            Ok("too late".to_owned())
        }
        "stubborn" => {
            let _epitaph = Epitaph(diary.clone());
            ctx.cancelled().await;
            diary.write("cancelled");
            std::future::pending().await
        }
        "quick" => {
            sleep(seconds(10)).await;
            diary.write("left");
            Ok("unaware".to_owned())
        }
        other => panic!("no such habit: {other}"),
    }
}

/// Schedules an activity of the given habit and stops caring after 5 s, in the given way.
async fn stop_caring(ctx: OrchestrationContext, input: String) -> Result<String, String> {
    let Some((way, habit)) = input.split_once('/') else { return Ok("successor".to_owned()) };
    let activity = ctx.schedule_activity("A", habit);
    let timer = ctx.schedule_timer(seconds(5));
    match way {
        "drops it" => {
            match ctx.select2(activity, timer).await {
                Either2::First(result) => return result,
                Either2::Second(()) => {}
            }
            Ok(ctx.schedule_wait("Go").await)
        }
        "completes" => {
            timer.await;
            Ok("done".to_owned())
        }
        "fails" => {
            timer.await;
            Err("failed".to_owned())
        }
        "panics" => {
            timer.await;
            panic!("at the orchestration")
        }
        "continues" => {
            timer.await;
            ctx.continue_as_new("").await
        }
        _ => activity.await,
    }
}

fn one_slot(diary: Diary) -> WorldBuilder {
    world()
        .patient()
        .activity("A", move |ctx, habit| {
            let diary = diary.clone();
            async move { live(ctx, diary, &habit).await }
        })
        .echo("Next")
        .orchestration("Main", stop_caring)
        .orchestration(
            "Next",
            |ctx, input| async move { ctx.schedule_activity("Next", input).await },
        )
        .options(|options| options.worker_concurrency = 1)
}

/// Waits until the instance's activity is begun, by the history it leaves.
async fn begin_and_wait(world: &World, reader: &mut Reader, input: &str) {
    world.begin("m", "Main", input).await;
    reader.begun().await;
}

fn is_failed(status: &OrchestrationStatus) -> bool {
    matches!(status, OrchestrationStatus::Failed { .. })
}

#[tokio::test(start_paused = true)]
async fn r5_20_r5_21_r5_28_a_dropped_future_cancels_at_once() {
    let (diary, mut reader) = diary();
    let world = one_slot(diary).start().await;
    begin_and_wait(&world, &mut reader, "drops it/polite").await;
    assert_eq!(reader.next().await, ("cancelled", 5)); // By the process that committed it.
    assert!(world.memory.snapshot().worker_queue.is_empty()); // The row is what was taken away.
    assert_eq!(reader.next().await, ("left", 8));
    assert_eq!(world.run("n", "Next", "x").await, "Next:x"); // R5.23: the slot is free
    // R5.24: the late answer is in nobody's history.
    world.client.raise_event("m", "Go", "on").await.unwrap();
    assert_eq!(world.output("m").await, "on");
    let history = kinds(&world.history("m").await);
    assert!(history.contains(&"ActivityCancelRequested".to_owned()), "{history:?}");
    assert!(!history.contains(&"ActivityCompleted".to_owned()), "{history:?}");
    world.finish().await;
}

#[tokio::test(start_paused = true)]
async fn r5_28_the_end_of_an_execution_cancels_its_activities_however_it_ends() {
    for way in ["completes", "fails", "panics", "continues"] {
        let (diary, mut reader) = diary();
        let world = one_slot(diary).start().await;
        begin_and_wait(&world, &mut reader, &format!("{way}/polite")).await;
        assert_eq!(is_failed(&world.ended("m").await), way == "fails" || way == "panics");
        assert_eq!(reader.began.elapsed(), seconds(5));
        assert_eq!(reader.next().await, ("cancelled", 5), "{way}");
        world.finish().await;
    }
}

#[tokio::test(start_paused = true)]
async fn r5_28_cancelling_the_instance_cancels_its_activities() {
    let (diary, mut reader) = diary();
    let world = one_slot(diary).start().await;
    begin_and_wait(&world, &mut reader, "waits/polite").await;
    world.client.cancel_instance("m", "enough").await.unwrap();
    assert!(is_failed(&world.ended("m").await));
    assert_eq!(reader.next().await, ("cancelled", 0));
    world.finish().await;
}

#[tokio::test(start_paused = true)]
async fn r5_21_an_activity_in_another_process_learns_it_within_a_second() {
    let (diary, mut reader) = diary();
    let world = one_slot(diary).options(|options| options.orchestration_concurrency = 0);
    let world = world.start().await;
    let turns = world_on(Arc::clone(&world.memory)).orchestration("Main", stop_caring);
    let turns = turns.options(|options| options.worker_concurrency = 0).start().await;
    begin_and_wait(&world, &mut reader, "completes/polite").await;
    let (entry, after) = reader.next().await;
    assert_eq!(entry, "cancelled");
    assert!((5..=6).contains(&after), "after {after} s, where a renewal would take 25");
    turns.finish().await;
    world.finish().await;
}

#[tokio::test(start_paused = true)]
async fn r5_29_deleting_the_instance_by_force_cancels_its_activities() {
    let (diary, mut reader) = diary();
    let world = one_slot(diary).start().await;
    begin_and_wait(&world, &mut reader, "waits/polite").await;
    world.client.delete_instance("m", true).await.unwrap();
    let (entry, after) = reader.next().await;
    assert_eq!(entry, "cancelled");
    assert!(after <= 1, "after {after} s, where a renewal would take 25");
    world.finish().await;
}

#[tokio::test(start_paused = true)]
async fn r5_31_an_instance_made_anew_never_hears_of_the_old_ones_activities() {
    let (diary, mut reader) = diary();
    let world = one_slot(diary).start().await;
    begin_and_wait(&world, &mut reader, "waits/quick").await;
    world.client.delete_instance("m", true).await.unwrap();
    world.begin("m", "Main", "drops it/quick").await; // Its activity has the same number.
    assert_eq!(reader.next().await, ("left", 10));
    world.client.raise_event("m", "Go", "again").await.unwrap();
    assert_eq!(world.output("m").await, "again");
    assert!(!kinds(&world.history("m").await).contains(&"ActivityCompleted".to_owned()));
    world.finish().await;
}

#[tokio::test(start_paused = true)]
async fn r5_23_an_activity_that_does_not_listen_is_dropped_after_its_grace_period() {
    for (grace, dropped_at) in [(10, 15), (0, 5)] {
        let (diary, mut reader) = diary();
        let world = one_slot(diary)
            .options(|options| options.activity_cancellation_grace_period = seconds(grace))
            .start()
            .await;
        begin_and_wait(&world, &mut reader, "completes/stubborn").await;
        assert_eq!(reader.next().await, ("cancelled", 5));
        assert_eq!(world.run("n", "Next", "x").await, "Next:x"); // Waits for the one slot.
        assert_eq!(reader.began.elapsed(), seconds(dropped_at));
        assert_eq!(reader.next().await, ("dropped", dropped_at));
        world.finish().await;
    }
}

#[tokio::test(start_paused = true)]
async fn r5_25_a_result_nobody_waits_for_is_dropped() {
    let (diary, mut reader) = diary();
    let world = one_slot(diary).start().await;
    begin_and_wait(&world, &mut reader, "drops it/quick").await;
    assert_eq!(reader.next().await, ("left", 10)); // It does not listen.
    assert_eq!(world.run("n", "Next", "x").await, "Next:x");
    world.client.raise_event("m", "Go", "on").await.unwrap();
    assert_eq!(world.output("m").await, "on");
    assert!(!kinds(&world.history("m").await).contains(&"ActivityCompleted".to_owned()));
    world.finish().await;
}

#[tokio::test(start_paused = true)]
async fn r5_26_an_activity_cancelled_before_it_is_fetched_never_runs() {
    let (diary, mut reader) = diary();
    let door = Door::default();
    let world = one_slot(diary)
        .behind("Busy", &door)
        .orchestration("Busy", |ctx, _| async move { ctx.schedule_activity("Busy", "").await })
        .start()
        .await;
    world.begin("b", "Busy", "").await;
    door.knock().await; // The only slot is taken.
    world.begin("m", "Main", "completes/quick").await;
    world.until("m", |history| kinds(history).len() == 3).await;
    assert_eq!(world.memory.snapshot().worker_queue.len(), 2);
    world.output("m").await;
    assert_eq!(world.memory.snapshot().worker_queue.len(), 1);
    door.open();
    world.output("b").await;
    assert_eq!(world.run("n", "Next", "x").await, "Next:x");
    assert!(reader.entries.try_recv().is_err());
    world.finish().await;
}

#[tokio::test]
async fn r5_27_a_completion_that_came_before_the_cancellation_is_recorded() {
    let call = |ctx: OrchestrationContext, input: String| async move {
        ctx.schedule_activity("A", input).await
    };
    let turns = world().orchestration("Main", call);
    let turns = turns.options(|options| options.worker_concurrency = 0).start().await;
    turns.begin("m", "Main", "x").await;
    turns.until("m", |history| kinds(history).len() == 2).await;
    let memory = Arc::clone(&turns.memory);
    turns.finish().await;

    let activities = world_on(Arc::clone(&memory)).echo("A");
    let activities = activities.options(|options| options.orchestration_concurrency = 0);
    let activities = activities.start().await;
    while !memory.snapshot().worker_queue.is_empty() {
        tokio::task::yield_now().await;
    }
    activities.client.cancel_instance("m", "enough").await.unwrap();
    activities.finish().await;

    let turns = world_on(memory).orchestration("Main", call).start().await;
    assert_eq!(turns.error("m").await.display_message(), "canceled: enough");
    let history = kinds(&turns.history("m").await);
    assert_eq!(
        history[2..],
        ["ActivityCompleted", "OrchestrationCancelRequested", "OrchestrationFailed"]
    );
    turns.finish().await;
}

#[tokio::test(start_paused = true)]
async fn r5_30_a_shutdown_lets_activities_finish_and_does_not_cancel_them() {
    let (diary, mut reader) = diary();
    let world = one_slot(diary).start().await;
    begin_and_wait(&world, &mut reader, "waits/quick").await;
    let memory = Arc::clone(&world.memory);
    world.runtime.shutdown(Some(60_000)).await;
    assert_eq!(reader.next().await, ("left", 10)); // Not told anything, and not aborted.
    let after = memory.snapshot();
    assert!(after.worker_queue.is_empty());
    assert_eq!(after.orchestrator_queue.len(), 2); // The completion, and the unused timer.

    // After its grace the shutdown aborts: the row stays locked, and will be served elsewhere.
    let (diary, mut reader) = self::diary();
    let world = one_slot(diary).start().await;
    begin_and_wait(&world, &mut reader, "waits/stubborn").await;
    let memory = Arc::clone(&world.memory);
    world.runtime.shutdown(Some(40_000)).await;
    assert_eq!(reader.next().await, ("dropped", 40)); // Never "cancelled".
    let row = &memory.snapshot().worker_queue[0];
    // R7.60: renewed at 25 s, while the shutdown was under way.
    let held_until = row.lock.as_ref().and_then(|lock| lock.held_until);
    assert_eq!(held_until, Some(memory.snapshot().taken_at_ms + 15_000));
}
