//! Activities, retries, timers (§4.3 – §4.5).

use std::time::Duration;

use expect_test::expect;

use super::*;
use crate::model::{BackoffStrategy, RetryPolicy};

const STARTED: &str = r#"1 started O v1.0.0 """#;

#[test]
fn r4_10_r4_12_activities_with_and_without_a_session() {
    check(
        STARTED,
        "",
        |ctx, _| async move {
            let plain = ctx.schedule_activity("A", "in");
            let session = ctx.schedule_activity_on_session("B", "in", "s");
            ctx.join(vec![plain, session]).await;
            Ok(String::new())
        },
        expect![[r#"
            continue
              2 activity A "in"
              3 activity B "in" on="s"
            actions: activity 2, activity 3
        "#]],
    );
}

#[derive(serde::Serialize)]
struct Order {
    quantity: u32,
    item: &'static str,
}

#[test]
fn r4_11_r4_12_r2_94_typed_activities() {
    let typed = |ctx: OrchestrationContext, _| async move {
        let order = Order { quantity: 2, item: "tea" };
        let list = ctx.schedule_activity_typed::<_, Vec<u8>>("A", &order);
        let text = ctx.schedule_activity_on_session_typed::<_, String>("B", &"text", "s");
        Ok(format!("{:?}", ctx.join2(list, text).await))
    };
    check(
        STARTED,
        "",
        typed,
        expect![[r#"
            continue
              2 activity A "{\"item\":\"tea\",\"quantity\":2}"
              3 activity B "text" on="s"
            actions: activity 2, activity 3
        "#]],
    );
    let history = r#"
        1 started O v1.0.0 ""
        2 activity A "{\"item\":\"tea\",\"quantity\":2}"
        3 activity B text on=s
    "#;
    check(
        history,
        r#"
        activity-completed 2 "[1,2]"
        activity-completed 3 "raw"
        "#,
        typed,
        expect![[r#"
            completed "(Ok([1, 2]), Ok(\"raw\"))"
              4 activity-completed 2 "[1,2]"
              5 activity-completed 3 "raw"
        "#]],
    );
    // A result that does not decode is an error of the call.
    check(
        history,
        r#"
        activity-completed 2 "no list"
        activity-failed 3 "boom"
        "#,
        typed,
        expect![[r#"
            completed "(Err(\"result of activity 'A' (event 2) cannot be decoded: expected ident at line 1 column 2\"), Err(\"boom\"))"
              4 activity-completed 2 "no list"
              5 activity-failed 3 activity error: boom
        "#]],
    );
    // R9.61: in older executions the error has no more words than it had.
    check(
        &format!("stamp 0.1.32\n{history}"),
        r#"
        activity-completed 2 "no list"
        activity-failed 3 "boom"
        "#,
        typed,
        expect![[r#"
            completed "(Err(\"expected ident at line 1 column 2\"), Err(\"boom\"))"
              4 activity-completed 2 "no list"
              5 activity-failed 3 activity error: boom
        "#]],
    );
}

#[test]
fn r4_11_an_input_that_does_not_encode_panics() {
    let keys = |ctx: OrchestrationContext, _| async move {
        let not_json = std::collections::HashMap::from([(vec![1_u8], 1_u8)]);
        ctx.schedule_activity_typed::<_, ()>("A", &not_json).await.map(|()| String::new())
    };
    check(
        STARTED,
        "",
        keys,
        expect![[r#"
            failed panic: payload cannot be encoded: key must be a string
        "#]],
    );
}

#[test]
fn l20_r2_92_a_typed_text_that_looks_like_json_keeps_its_quotes() {
    check(
        STARTED,
        "",
        |ctx, _| async move {
            let calls = ["plain", "\"quoted\"", "{}", "42"]
                .map(|text| ctx.schedule_activity_typed::<_, String>("A", &text));
            ctx.join(calls.into()).await;
            Ok(String::new())
        },
        expect![[r#"
            continue
              2 activity A "plain"
              3 activity A "\"\\\"quoted\\\"\""
              4 activity A "{}"
              5 activity A "42"
            actions: activity 2, activity 3, activity 4, activity 5
        "#]],
    );
}

/// Three attempts, a fixed pause of a second.
pub(super) fn three() -> RetryPolicy {
    RetryPolicy::new(3).with_backoff(BackoffStrategy::Fixed { delay: Duration::from_secs(1) })
}

/// Runs turn after turn, answering each piece of work as told; the whole history at the end.
pub(super) fn played(handler: Code, answers: &[&str]) -> String {
    let mut story = Story::read(STARTED);
    for answer in std::iter::once(&"").chain(answers) {
        let (engine, result) = run_engine(&story, answer, handler.clone());
        story.events = engine.final_history();
        if !matches!(result, TurnResult::Continue) {
            return notation::events(&story.events) + &notation::result(&result);
        }
    }
    notation::events(&story.events) + "goes on"
}

#[test]
fn r4_23_r4_28_attempts_and_pauses_are_recorded() {
    let handler = code(|ctx: OrchestrationContext, _| async move {
        ctx.schedule_activity_with_retry("A", "in", three()).await
    });
    let text = played(
        handler.clone(),
        &[
            "activity-failed 2 first",
            "timer-fired 4 1s",
            "activity-failed 6 second",
            "timer-fired 8 1s",
            "activity-failed 10 third",
        ],
    );
    expect![[r#"
          1 started O v1.0.0 ""
          2 activity A "in"
          3 activity-failed 2 activity error: first
          4 timer 1s
          5 timer-fired 4 1s
          6 activity A "in"
          7 activity-failed 6 activity error: second
          8 timer 1s
          9 timer-fired 8 1s
          10 activity A "in"
          11 activity-failed 10 activity error: third
        failed error: third"#]]
    .assert_eq(&text);
    let text = played(
        handler,
        &["activity-failed 2 first", "timer-fired 4 1s", "activity-completed 6 ok"],
    );
    expect![[r#"
          1 started O v1.0.0 ""
          2 activity A "in"
          3 activity-failed 2 activity error: first
          4 timer 1s
          5 timer-fired 4 1s
          6 activity A "in"
          7 activity-completed 6 "ok"
        completed "ok""#]]
    .assert_eq(&text);
}

#[test]
fn r4_23_without_a_pause_there_is_no_timer() {
    let handler = code(|ctx: OrchestrationContext, _| async move {
        let policy = RetryPolicy::new(2).with_backoff(BackoffStrategy::None);
        ctx.schedule_activity_with_retry("A", "in", policy).await
    });
    expect![[r#"
          1 started O v1.0.0 ""
          2 activity A "in"
          3 activity-failed 2 activity error: first
          4 activity A "in"
        goes on"#]]
    .assert_eq(&played(handler, &["activity-failed 2 first"]));
}

#[test]
fn r4_24_r4_25_a_timeout_ends_the_loop_and_cancels_the_attempt() {
    let handler = code(|ctx: OrchestrationContext, _| async move {
        let policy = three().with_total_timeout(Duration::ZERO);
        ctx.schedule_activity_with_retry("A", "in", policy).await
    });
    expect![[r#"
          1 started O v1.0.0 ""
          2 activity A "in"
          3 timer 0s
          4 timer-fired 3 0s
          5 activity-cancelled 2 dropped_future
        failed error: timeout: activity timed out"#]]
    .assert_eq(&played(handler, &["timer-fired 3 0s"]));
}

#[test]
fn r4_26_the_timer_of_a_won_attempt_is_left_to_fire() {
    let handler = code(|ctx: OrchestrationContext, _| async move {
        let policy = three().with_timeout(Duration::from_secs(60));
        ctx.schedule_activity_with_retry("A", "in", policy).await?;
        Ok(ctx.schedule_wait("Go").await)
    });
    let answers = ["activity-completed 2 ok", "timer-fired 3 60s"];
    expect![[r#"
          1 started O v1.0.0 ""
          2 activity A "in"
          3 timer 60s
          4 activity-completed 2 "ok"
          5 wait Go
          6 timer-fired 3 60s
        goes on"#]]
    .assert_eq(&played(handler, &answers));
}

#[test]
fn r4_27_typed_retries_and_retries_on_a_session() {
    let handler = code(|ctx: OrchestrationContext, _| async move {
        let typed = ctx.schedule_activity_with_retry_typed::<_, u32>("A", &[1], three());
        let session = ctx.schedule_activity_with_retry_on_session("B", "in", three(), "s");
        let both =
            ctx.schedule_activity_with_retry_on_session_typed::<_, u32>("C", &2, three(), "s");
        Ok(format!("{:?}", ctx.join3(typed, session, both).await))
    });
    let answers = ["activity-completed 2 7\nactivity-completed 3 text\nactivity-completed 4 no"];
    expect![[r#"
          1 started O v1.0.0 ""
          2 activity A "[1]"
          3 activity B "in" on="s"
          4 activity C "2" on="s"
          5 activity-completed 2 "7"
          6 activity-completed 3 "text"
          7 activity-completed 4 "no"
        completed "(Ok(7), Ok(\"text\"), Err(\"result of activity 'C' cannot be decoded: expected ident at line 1 column 2\"))""#]]
    .assert_eq(&played(handler, &answers));
}

#[test]
fn r4_28_a_system_error_is_not_retried() {
    let handler = code(|ctx: OrchestrationContext, _| async move {
        ctx.schedule_activity_with_retry("A", "in", three()).await
    });
    expect![[r#"
          1 started O v1.0.0 ""
          2 activity A "in"
          3 activity-failed 2 poison: activity A#2 exceeded 11 attempts (max 10)
        failed poison: activity A#2 exceeded 11 attempts (max 10)"#]]
    .assert_eq(&played(handler, &["activity-failed 2 poison A 2"]));
}

#[test]
fn r4_29_nothing_is_scheduled_before_the_first_poll() {
    check(
        STARTED,
        "",
        |ctx, _| async move {
            let retried = ctx.schedule_activity_with_retry("second", "", three());
            let first = ctx.schedule_activity("first", "");
            let _ = ctx.join2(first, retried).await;
            Ok(String::new())
        },
        expect![[r#"
            continue
              2 activity first ""
              3 activity second ""
            actions: activity 2, activity 3
        "#]],
    );
}

#[test]
fn r4_30_r4_32_due_times_count_from_the_turn() {
    check(
        r#"
        now 5s
        1 started O v1.0.0 ""
        "#,
        "",
        |ctx, _| async move {
            let delays = [Duration::ZERO, Duration::from_micros(1500), Duration::MAX];
            ctx.join(delays.map(|delay| ctx.schedule_timer(delay)).into()).await;
            Ok(String::new())
        },
        expect![[r#"
            continue
              2 timer 5s
              3 timer 5002ms
              4 timer max
            actions: timer 2, timer 3, timer 4
        "#]],
    );
}

#[test]
fn r4_31_r2_35_a_recorded_due_time_stays_in_force() {
    check_turn(
        r#"
        now 50s
        1 started O v1.0.0 ""
        2 timer 1s
        "#,
        "timer-fired 2 1s",
        |ctx, _| async move {
            ctx.schedule_timer(Duration::from_secs(1)).await;
            ctx.schedule_timer(Duration::from_secs(1)).await;
            Ok(String::new())
        },
        expect![[r#"
            running
              3 timer-fired 2 1s
              4 timer 51s
            orch: timer-fired 4 51s
        "#]],
    );
}

#[test]
fn r4_35_a_dropped_timer_fires_unheard() {
    check_turn(
        STARTED,
        "",
        |ctx, _| async move {
            drop(ctx.schedule_timer(Duration::from_secs(1)));
            Ok(ctx.schedule_wait("Go").await)
        },
        expect![[r#"
            running
              2 timer 1s
              3 wait Go
            orch: timer-fired 2 1s
        "#]],
    );
}
