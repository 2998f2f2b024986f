//! Limits and tags of activities with retries (R4.103, R4.104).

use std::time::Duration;

use expect_test::expect;

use super::activities::{played, three};
use super::*;

fn limited() -> Code {
    code(|ctx: OrchestrationContext, _| async move {
        ctx.schedule_activity_with_retry("A", "in", three())
            .with_schedule_to_close(Duration::from_secs(60))
            .await
    })
}

#[test]
fn r4_103_the_deadline_cancels_the_attempt_under_way() {
    expect![[r#"
          1 started O v1.0.0 ""
          2 timer 60s
          3 activity A "in"
          4 activity-failed 3 activity error: first
          5 timer 1s
          6 timer-fired 5 1s
          7 activity A "in"
          8 timer-fired 2 60s
          9 activity-cancelled 7 dropped_future
        failed error: timeout: schedule-to-close: activity A did not end within 60s (attempt 2; the one before failed: first)"#]]
    .assert_eq(&played(
        limited(),
        &["activity-failed 3 first", "timer-fired 5 1s", "timer-fired 2 60s"],
    ));
}

#[test]
fn r4_103_the_deadline_ends_a_pause() {
    expect![[r#"
          1 started O v1.0.0 ""
          2 timer 60s
          3 activity A "in"
          4 activity-failed 3 activity error: first
          5 timer 1s
          6 timer-fired 2 60s
        failed error: timeout: schedule-to-close: activity A did not end within 60s (attempt 2; the one before failed: first)"#]]
    .assert_eq(&played(limited(), &["activity-failed 3 first", "timer-fired 2 60s"]));
}

#[test]
fn r4_103_a_result_that_comes_with_the_deadline_counts() {
    expect![[r#"
          1 started O v1.0.0 ""
          2 timer 60s
          3 activity A "in"
          4 activity-completed 3 "ok"
          5 timer-fired 2 60s
        completed "ok""#]]
    .assert_eq(&played(limited(), &["activity-completed 3 ok\ntimer-fired 2 60s"]));
}

#[test]
fn r4_103_both_limits_at_once() {
    let handler = code(|ctx: OrchestrationContext, _| async move {
        let policy = three().with_timeout(Duration::from_secs(10));
        ctx.schedule_activity_with_retry("A", "in", policy)
            .with_schedule_to_close(Duration::from_secs(60))
            .await
    });
    expect![[r#"
          1 started O v1.0.0 ""
          2 timer 60s
          3 activity A "in"
          4 timer 10s
          5 timer-fired 4 10s
          6 activity-cancelled 3 dropped_future
        failed error: timeout: activity timed out"#]]
    .assert_eq(&played(handler, &["timer-fired 4 10s"]));
}

#[test]
fn r4_104_every_attempt_has_the_tag() {
    let handler = code(|ctx: OrchestrationContext, _| async move {
        ctx.schedule_activity_with_retry("A", "in", three()).with_tag("gpu").await
    });
    expect![[r#"
          1 started O v1.0.0 ""
          2 activity A "in" tag="gpu"
          3 activity-failed 2 activity error: first
          4 timer 1s
          5 timer-fired 4 1s
          6 activity A "in" tag="gpu"
          7 activity-completed 6 "ok"
        completed "ok""#]]
    .assert_eq(&played(
        handler,
        &["activity-failed 2 first", "timer-fired 4 1s", "activity-completed 6 ok"],
    ));
}

#[test]
#[should_panic(expected = "with_tag() can only be called before the activity is first polled")]
fn r4_104_too_late_for_a_tag() {
    let ctx = bare_context();
    let mut retried = ctx.schedule_activity_with_retry("A", "in", three());
    assert!(polled(&mut retried).is_none());
    drop(retried.with_tag("gpu"));
}

#[test]
#[should_panic(expected = "with_schedule_to_close() can only be called before")]
fn r4_103_too_late_for_a_deadline() {
    let ctx = bare_context();
    let mut retried = ctx.schedule_activity_with_retry("A", "in", three());
    assert!(polled(&mut retried).is_none());
    drop(retried.with_schedule_to_close(Duration::ZERO));
}
