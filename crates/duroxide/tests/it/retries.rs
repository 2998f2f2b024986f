//! Activities with a retry policy, live (chapter 4.4). On paused time, so pauses are exact.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use duroxide::{BackoffStrategy, ErrorDetails, EventKind, RetryPolicy};
use tokio::time::Instant;

use crate::support::logs::listen;
use crate::support::{Door, WorldBuilder, kinds, world};

const fn seconds(n: u64) -> Duration {
    Duration::from_secs(n)
}

fn millis_since(began: Instant) -> u128 {
    began.elapsed().as_millis()
}

/// An activity that fails as often as its input says, in all, and then succeeds.
fn flaky() -> WorldBuilder {
    let failures = Arc::new(AtomicU32::new(0));
    world().patient().activity("Flaky", move |_ctx, input| {
        let (so_far, wanted) = (failures.fetch_add(1, Ordering::SeqCst), input.parse().unwrap());
        async move {
            if so_far < wanted { Err(format!("failure {}", so_far + 1)) } else { Ok(input) }
        }
    })
}

fn with_policy(world: WorldBuilder, policy: RetryPolicy) -> WorldBuilder {
    world.orchestration("Main", move |ctx, input| {
        let policy = policy.clone();
        async move { ctx.schedule_activity_with_retry("Flaky", input, policy).await }
    })
}

#[tokio::test(start_paused = true)]
async fn r4_23_r4_28_every_attempt_and_every_pause_is_in_history() {
    let logs = listen();
    let world = with_policy(flaky(), RetryPolicy::default()).start().await;
    let began = Instant::now();
    assert_eq!(world.run("m", "Main", "2").await, "2");
    assert_eq!(millis_since(began), 100 + 200); // R4.20
    let attempt = ["ActivityScheduled", "ActivityFailed", "TimerCreated", "TimerFired"];
    let mut expected = vec!["OrchestrationStarted"];
    expected.extend(attempt.iter().chain(&attempt));
    expected.extend(["ActivityScheduled", "ActivityCompleted", "OrchestrationCompleted"]);
    assert_eq!(kinds(&world.history("m").await), expected);
    // One warning per failed attempt, although every turn ran the code again.
    let warnings = logs.saying("activity Flaky failed");
    assert_eq!(warnings.len(), 2, "{warnings:?}");
    assert!(warnings.iter().all(|record| record.target == "duroxide::orchestration"));
    world.finish().await;
}

#[tokio::test(start_paused = true)]
async fn r4_20_r4_23_after_the_last_attempt_the_last_error_is_returned() {
    let world = with_policy(flaky(), RetryPolicy::default()).start().await;
    let error = world.run_to_error("m", "Main", "9").await;
    assert_eq!(error.display_message(), "failure 3");
    world.finish().await;
}

#[tokio::test(start_paused = true)]
async fn r4_22_pauses_follow_the_strategy() {
    let fixed = BackoffStrategy::Fixed { delay: seconds(2) };
    let linear = BackoffStrategy::Linear { base: seconds(2), max: seconds(5) };
    for (backoff, pauses) in
        [(BackoffStrategy::None, [0, 0, 0]), (fixed, [2, 2, 2]), (linear, [2, 4, 5])]
    {
        let policy = RetryPolicy::new(4).with_backoff(backoff);
        let world = with_policy(flaky(), policy).start().await;
        let began = Instant::now();
        assert_eq!(world.run("m", "Main", "3").await, "3");
        assert_eq!(began.elapsed(), seconds(pauses.iter().sum()));
        let timers = kinds(&world.history("m").await);
        let timers = timers.iter().filter(|kind| *kind == "TimerCreated").count();
        assert_eq!(timers, pauses.iter().filter(|pause| **pause > 0).count());
        world.finish().await;
    }
}

#[tokio::test(start_paused = true)]
async fn r4_24_a_timeout_ends_the_loop_at_once_and_cancels_the_activity() {
    for timeout in [seconds(5), Duration::from_millis(1), Duration::ZERO] {
        let door = Door::default(); // Never opened.
        let policy = RetryPolicy::new(3).with_timeout(timeout);
        let world = with_policy(world().patient().behind("Flaky", &door), policy).start().await;
        let began = Instant::now();
        let error = world.run_to_error("m", "Main", "0").await; // R4.25 for the short ones
        assert_eq!(error.display_message(), "timeout: activity timed out");
        assert_eq!(began.elapsed(), timeout);
        let expected = [
            "OrchestrationStarted",
            "ActivityScheduled",
            "TimerCreated",
            "TimerFired",
            "ActivityCancelRequested",
            "OrchestrationFailed",
        ];
        assert_eq!(kinds(&world.history("m").await), expected);
        world.finish().await;
    }
}

#[tokio::test(start_paused = true)]
async fn r4_24_errors_within_the_timeout_are_retried() {
    let policy = RetryPolicy::new(3).with_timeout(seconds(30)).with_backoff(BackoffStrategy::None);
    let world = flaky()
        .orchestration("Main", move |ctx, input| {
            let policy = policy.clone();
            async move {
                let result = ctx.schedule_activity_with_retry("Flaky", input, policy).await;
                ctx.schedule_timer(seconds(60)).await;
                result
            }
        })
        .start()
        .await;
    assert_eq!(world.run("m", "Main", "2").await, "2");
    // R4.26: the timers of all three attempts fired, and nobody minded.
    let history = kinds(&world.history("m").await);
    let count = |kind: &str| history.iter().filter(|event| *event == kind).count();
    assert_eq!((count("TimerCreated"), count("TimerFired")), (4, 4), "{history:?}");
    assert_eq!((count("ActivityFailed"), count("ActivityCompleted")), (2, 1));
    world.finish().await;
}

#[tokio::test(start_paused = true)]
async fn r4_27_typed_and_on_a_session() {
    let attempts = Arc::new(AtomicU32::new(0));
    let world = world()
        .activities(|activities| {
            activities.register_typed("Add", move |ctx, (a, b): (u32, u32)| {
                let attempt = attempts.fetch_add(1, Ordering::SeqCst);
                async move {
                    if attempt.is_multiple_of(2) {
                        return Err("every other time".to_owned());
                    }
                    Ok((a + b, ctx.session_id().map(str::to_owned)))
                }
            })
        })
        .orchestration("Main", |ctx, _| async move {
            type Sum = (u32, Option<String>);
            let policy = || RetryPolicy::new(2);
            let typed: Sum =
                ctx.schedule_activity_with_retry_typed("Add", &(1, 2), policy()).await?;
            let text =
                ctx.schedule_activity_with_retry_on_session("Add", "[3,4]", policy(), "s").await?;
            let both: Sum = ctx
                .schedule_activity_with_retry_on_session_typed("Add", &(5, 6), policy(), "t")
                .await?;
            Ok(format!("{typed:?} {text} {both:?}"))
        })
        .start()
        .await;
    let expected = r#"(3, None) [7,"s"] (11, Some("t"))"#;
    assert_eq!(world.run("m", "Main", "").await, expected);
    world.finish().await;
}

#[tokio::test(start_paused = true)]
async fn r4_28_errors_of_the_system_are_not_retried() {
    let policy = RetryPolicy::new(3);
    let world = with_policy(world().patient(), policy).start().await; // Nobody knows "Flaky".
    let error = world.run_to_error("m", "Main", "0").await;
    assert!(matches!(error, ErrorDetails::Poison { .. }), "{error:?}");
    let scheduled = kinds(&world.history("m").await);
    assert_eq!(scheduled.iter().filter(|kind| *kind == "ActivityScheduled").count(), 1);
    world.finish().await;
}

#[tokio::test(start_paused = true)]
async fn r4_29_nothing_is_scheduled_until_it_is_polled() {
    let world = flaky()
        .orchestration("Main", |ctx, _| async move {
            let unused = ctx.schedule_activity_with_retry("Flaky", "0", RetryPolicy::new(1));
            let used = ctx.schedule_activity_with_retry("Flaky", "0", RetryPolicy::new(1));
            ctx.schedule_timer(seconds(1)).await;
            let result = used.await;
            drop(unused);
            result
        })
        .start()
        .await;
    assert_eq!(world.run("m", "Main", "").await, "0");
    let history = world.history("m").await;
    let scheduled: Vec<u64> = history
        .iter()
        .filter(|event| matches!(event.kind, EventKind::ActivityScheduled { .. }))
        .map(|event| event.event_id)
        .collect();
    assert_eq!(scheduled, [4]); // After start, timer and its firing.
    world.finish().await;
}
