//! Time limits of activities, live (R4.24, R4.102, R4.103, R5.40 – R5.43). On paused time, so that
//! hours cost nothing and seconds are exact.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use duroxide::runtime::ActivityOptions;
use duroxide::{
    ActivityContext, ActivityTimeout, AppErrorKind, BackoffStrategy, ErrorDetails, EventKind,
    OrchestrationContext, RetryPolicy,
};
use tokio::time::{Instant, sleep};

use crate::support::faults::{Faults, FaultyProvider};
use crate::support::logs::listen;
use crate::support::{Door, WorldBuilder, kinds, world};

const fn seconds(n: u64) -> Duration {
    Duration::from_secs(n)
}

fn within(limit: Duration) -> ActivityOptions {
    ActivityOptions::new().with_start_to_close(limit)
}

/// An activity with a limit of 30 s that takes as many seconds as its input says.
fn working(world: WorldBuilder) -> WorldBuilder {
    world.activities(|activities| {
        activities.register_with_options("Work", within(seconds(30)), |_ctx, input| async move {
            sleep(seconds(input.parse().unwrap())).await;
            Ok(input)
        })
    })
}

/// Ten activities of 20 s side by side, each in at most three attempts.
async fn ten(ctx: OrchestrationContext, _: String) -> Result<String, String> {
    let call = |_| ctx.schedule_activity_with_retry("Work", "20", RetryPolicy::new(3));
    let all: Result<Vec<String>, String> =
        ctx.join((0..10).map(call).collect()).await.into_iter().collect();
    Ok(all?.len().to_string())
}

#[tokio::test(start_paused = true)]
async fn r5_40_the_wait_for_a_worker_does_not_count() {
    let world = working(world().patient()).orchestration("Ten", ten).start().await;
    let began = Instant::now();
    assert_eq!(world.run("m", "Ten", "").await, "10");
    assert_eq!(began.elapsed(), seconds(100), "two slots, ten activities of 20 s");
    let kinds = kinds(&world.history("m").await);
    assert!(!kinds.iter().any(|kind| kind == "ActivityFailed"), "{kinds:?}");
    world.finish().await;
}

#[tokio::test(start_paused = true)]
async fn r5_40_an_outage_of_the_store_does_not_count() {
    // Before the activities are fetched, while they run, and while results wait.
    for begins_after in [0, 10, 19] {
        let faults = Faults::default();
        let world = working(world().patient().through(|s| FaultyProvider::wrap(s, &faults)))
            .orchestration("Ten", ten)
            .start()
            .await;
        world.begin("m", "Ten", "").await;
        sleep(seconds(begins_after)).await;
        faults.outage(true);
        sleep(seconds(300)).await;
        assert!(0 < faults.fired(), "there was trouble");
        faults.outage(false);
        assert_eq!(world.output("m").await, "10");
        let kinds = kinds(&world.history("m").await);
        assert!(!kinds.iter().any(|kind| kind == "ActivityFailed"), "{kinds:?}");
        world.finish().await;
    }
}

/// Too slow the first two times.
fn slow_twice(habit: &'static str) -> WorldBuilder {
    let calls = Arc::new(AtomicU32::new(0));
    let charge = move |ctx: ActivityContext, input: String| {
        let call = calls.fetch_add(1, Ordering::SeqCst);
        async move {
            match (call, habit) {
                (2.., _) => Ok(format!("{input} paid")),
                (_, "polite") => {
                    ctx.cancelled().await;
                    Ok("too late".to_owned())
                }
                _ => std::future::pending().await,
            }
        }
    };
    world()
        .patient()
        .activities(|all| all.register_with_options("Charge", within(seconds(7)), charge))
        .orchestration("Pay", |ctx, input| async move {
            let policy = RetryPolicy::new(3).with_backoff(BackoffStrategy::None);
            ctx.schedule_activity_with_retry("Charge", input, policy).await
        })
        .options(|options| options.worker_concurrency = 1)
}

#[tokio::test(start_paused = true)]
async fn r5_41_r5_42_an_attempt_that_runs_too_long_is_told_and_tried_again() {
    // The one ends when it is told, the other is stopped after the grace period of 10 s.
    for (habit, took) in [("polite", 14), ("deaf", 34)] {
        let logs = listen();
        let world = slow_twice(habit).start().await;
        let began = Instant::now();
        assert_eq!(world.run("m", "Pay", "5").await, "5 paid"); // The only slot was free each time.
        assert_eq!(began.elapsed(), seconds(took), "{habit}");
        let history = world.history("m").await;
        let errors: Vec<&ErrorDetails> = history
            .iter()
            .filter_map(|event| match &event.kind {
                EventKind::ActivityFailed { details } => Some(details),
                _ => None,
            })
            .collect();
        let expected = ErrorDetails::Application {
            kind: AppErrorKind::ActivityFailed,
            message: "timeout: start-to-close: activity Charge ran longer than 7s".to_owned(),
            retryable: true,
        };
        assert_eq!(errors, [&expected, &expected]);
        let logged = logs.saying("Activity failed");
        assert_eq!(logged.len(), 2, "{logged:?}");
        assert!(logged.iter().all(|record| record.field("error").contains("activity Charge ran")));
        assert_eq!(logs.saying("grace period").len(), if habit == "deaf" { 2 } else { 0 });
        world.finish().await;
    }
}

#[tokio::test(start_paused = true)]
async fn r5_42_the_last_error_says_which_limit_it_was() {
    let world = working(world().patient())
        .orchestration("Main", |ctx, input| async move {
            let policy = RetryPolicy::new(2);
            let error = ctx.schedule_activity_with_retry("Work", input, policy).await.unwrap_err();
            assert_eq!(ActivityTimeout::of(&error), Some(ActivityTimeout::StartToClose));
            Ok(error)
        })
        .start()
        .await;
    let error = world.run("m", "Main", "31").await;
    assert_eq!(error, "timeout: start-to-close: activity Work ran longer than 30s");
    world.finish().await;
}

#[tokio::test(start_paused = true)]
async fn r5_43_an_activity_nobody_wants_any_more_is_cancelled_not_timed_out() {
    // Its lock is lost in an outage while its code, told by the limit, has its grace period.
    let faults = Faults::default();
    let door = Door::default();
    let (knocks, calls) = (door.clone(), Arc::new(AtomicU32::new(0)));
    let world = world()
        .patient()
        .through(|store| FaultyProvider::wrap(store, &faults))
        .activities(|all| {
            all.register_with_options("Work", within(seconds(29)), move |_ctx, _input| {
                let (door, call) = (knocks.clone(), calls.fetch_add(1, Ordering::SeqCst));
                async move {
                    if call == 0 {
                        door.pass().await;
                    }
                    Ok(call.to_string())
                }
            })
        })
        .orchestration("Main", |ctx, _| async move { ctx.schedule_activity("Work", "").await })
        .start()
        .await;
    world.begin("m", "Main", "").await;
    door.knock().await;
    faults.outage(true);
    sleep(seconds(120)).await;
    faults.outage(false);
    assert_ne!(world.output("m").await, "0"); // It ran again, and nothing says that it failed.
    let kinds = kinds(&world.history("m").await);
    assert!(!kinds.iter().any(|kind| kind == "ActivityFailed"), "{kinds:?}");
    world.finish().await;
}

#[tokio::test(start_paused = true)]
async fn r4_103_schedule_to_close_is_over_all_attempts_and_pauses() {
    let logs = listen();
    let world = working(world().patient())
        .orchestration("Main", |ctx, input| async move {
            let pause = BackoffStrategy::Fixed { delay: seconds(5) };
            ctx.schedule_activity_with_retry("Work", input, RetryPolicy::new(9).with_backoff(pause))
                .with_schedule_to_close(seconds(60))
                .await
        })
        .start()
        .await;
    let began = Instant::now();
    let error = world.run_to_error("m", "Main", "45").await.display_message();
    // The code of the first attempt had its grace period after 30 s.
    assert_eq!(
        error,
        "timeout: schedule-to-close: activity Work did not end within 60s (attempt 2; the one before \
         failed: timeout: start-to-close: activity Work ran longer than 30s)"
    );
    assert_eq!(ActivityTimeout::of(&error), Some(ActivityTimeout::ScheduleToClose));
    assert_eq!(began.elapsed(), seconds(60));
    assert_eq!(logs.saying("did not end within 60s").len(), 1); // And once, however often it replays.
    let history = kinds(&world.history("m").await);
    assert!(history.contains(&"ActivityCancelRequested".to_owned()), "{history:?}");
    // One that ends in time is not disturbed.
    assert_eq!(world.run("n", "Main", "20").await, "20");
    world.finish().await;
}

#[tokio::test(start_paused = true)]
async fn r4_24_what_a_timeout_of_the_policy_struck_is_logged() {
    let logs = listen();
    let door = Door::default(); // Never opened.
    let world = world()
        .patient()
        .behind("Charge", &door)
        .orchestration("Main", |ctx, input| async move {
            let policy = RetryPolicy::new(3).with_timeout(seconds(5));
            ctx.schedule_activity_with_retry("Charge", input, policy).await
        })
        .start()
        .await;
    let error = world.run_to_error("m", "Main", "").await.display_message();
    assert_eq!(error, "timeout: activity timed out"); // To the letter: histories hold it.
    assert_eq!(ActivityTimeout::of(&error), Some(ActivityTimeout::Attempt));
    let logged = logs.one("activity Charge timed out: attempt 1 did not end within 5s");
    assert_eq!(logged.field("instance_id"), "m");
    world.finish().await;
}

#[tokio::test(start_paused = true)]
async fn r4_24_a_timeout_of_the_policy_counts_the_wait_for_a_worker() {
    let world = world()
        .patient()
        .activity("Work", |_ctx, input| async move {
            sleep(seconds(20)).await;
            Ok(input)
        })
        .orchestration("Ten", |ctx, _| async move {
            let policy = RetryPolicy::new(3).with_timeout(seconds(30));
            let call = |_| ctx.schedule_activity_with_retry("Work", "", policy.clone());
            let all = ctx.join((0..10).map(call).collect::<Vec<_>>()).await;
            Ok(all.iter().filter(|result| result.is_ok()).count().to_string())
        })
        .start()
        .await;
    assert_eq!(world.run("m", "Ten", "").await, "2"); // As the guide warns.
    world.finish().await;
}
