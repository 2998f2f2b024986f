//! Positional waits (§3.7, §4.6), under each race policy where they differ.

use std::time::Duration;

use expect_test::expect;

use super::*;

const SECOND: Duration = Duration::from_secs(1);

#[test]
fn r3_81_r3_82_r4_40_waits_take_signals_in_order_of_subscription() {
    check(
        r#"
        1 started O v1.0.0 ""
        2 wait Go
        3 wait Stop
        4 wait Go
        "#,
        r#"
        raised Go "1"
        raised Stop ""
        raised Go "2"
        "#,
        |ctx, _| async move {
            let (go1, stop, go2) =
                (ctx.schedule_wait("Go"), ctx.schedule_wait("Stop"), ctx.schedule_wait("Go"));
            // Which is polled first does not matter.
            let (go2, go1, stop) = ctx.join3(go2, go1, stop).await;
            Ok(format!("{go1:?} {go2:?} {stop:?}"))
        },
        expect![[r#"
            completed "\"1\" \"2\" \"\""
              5 raised Go "1"
              6 raised Stop ""
              7 raised Go "2"
        "#]],
    );
}

#[test]
fn r3_83_r4_38_a_signal_before_the_subscription_is_never_delivered_to_it() {
    check(
        r#"
        1 started O v1.0.0 ""
        2 raised Go "early"
        3 wait Go
        "#,
        "",
        |ctx, _| async move { Ok(ctx.schedule_wait("Go").await) },
        expect![[r#"
            continue
        "#]],
    );
    check(
        r#"
        1 started O v1.0.0 ""
        2 raised Go "early"
        3 wait Go
        "#,
        r#"raised Go "in time""#,
        |ctx, _| async move { Ok(ctx.schedule_wait("Go").await) },
        expect![[r#"
            completed "in time"
              4 raised Go "in time"
        "#]],
    );
}

/// A wait that loses against a timer, then another of the same name.
async fn lost_then_again(ctx: OrchestrationContext, _: String) -> Result<String, String> {
    let (wait, timer) = (ctx.schedule_wait("Go"), ctx.schedule_timer(SECOND));
    ctx.select2(wait, timer).await;
    Ok(ctx.schedule_wait("Go").await)
}

#[test]
fn r3_84_r3_59_a_cancelled_wait_does_not_take_later_signals() {
    for stamp in ["0.1.30", "0.1.31", "0.2.0"] {
        let history = r#"
            1 started O v1.0.0 ""
            2 wait Go
            3 timer 1s
            4 timer-fired 3 1s
            5 wait Go
            6 wait-cancelled 2 dropped_future
        "#;
        let story = Story::read(&format!("stamp {stamp}\n{history}"));
        let (_, result) = run_engine(&story, r#"raised Go "x""#, code(lost_then_again));
        assert_eq!(notation::result(&result), "completed \"x\"", "{stamp}");
    }
}

/// Holds a wait without polling it, gives it up, and waits with another one opened together with it.
async fn give_up_the_first(ctx: OrchestrationContext, _: String) -> Result<String, String> {
    let (first, second) = (ctx.schedule_wait("Go"), ctx.schedule_wait("Go"));
    ctx.schedule_activity("A", "").await?;
    drop(first);
    let second = second.await;
    ctx.schedule_activity(format!("got {second}"), "").await
}

const HELD: &str = r#"
    1 started O v1.0.0 ""
    2 wait Go
    3 wait Go
    4 activity A ""
"#;

#[test]
fn r3_85_new_a_dropped_wait_takes_its_assigned_signal_with_it() {
    for stamp in ["0.1.31", "0.2.0"] {
        let story = Story::read(&format!("stamp {stamp}\n{HELD}"));
        let messages = r#"
            raised Go "for the first"
            activity-completed 4 "a"
            raised Go "for the second"
        "#;
        let (engine, result) = run_engine(&story, messages, code(give_up_the_first));
        assert!(matches!(result, TurnResult::Continue), "{stamp}");
        let new = notation::events(engine.history_delta());
        assert!(new.contains("activity got for the second"), "{stamp}: {new}");
    }
    // The same when the second signal comes a turn later.
    check(
        r#"
        1 started O v1.0.0 ""
        2 wait Go
        3 wait Go
        4 activity A ""
        5 raised Go "for the first"
        6 activity-completed 4 "a"
        7 wait-cancelled 2 dropped_future
        "#,
        r#"raised Go "for the second""#,
        give_up_the_first,
        expect![[r#"
            continue
              8 raised Go "for the second"
              9 activity got for the second ""
            actions: activity 9
        "#]],
    );
}

#[test]
fn r3_86_old_a_dropped_wait_counts_until_its_breadcrumb_and_leaves_its_signal() {
    // In the turn of the drop the second wait keeps the second place ...
    check(
        &format!("stamp 0.1.30\n{HELD}"),
        r#"
        raised Go "for the first"
        activity-completed 4 "a"
        "#,
        give_up_the_first,
        expect![[r#"
            continue
              5 raised Go "for the first"
              6 activity-completed 4 "a"
              7 wait-cancelled 2 dropped_future
        "#]],
    );
    // ... and after the breadcrumb it inherits the signal of the first.
    check_without_replay(
        r#"
        stamp 0.1.30
        1 started O v1.0.0 ""
        2 wait Go
        3 wait Go
        4 activity A ""
        5 raised Go "for the first"
        6 activity-completed 4 "a"
        7 wait-cancelled 2 dropped_future
        "#,
        r#"queue any "something that polls the code""#,
        give_up_the_first,
        expect![[r#"
            continue
              8 queue any "something that polls the code"
              9 activity got for the first ""
            actions: activity 9
        "#]],
    );
}

#[test]
fn r3_87_a_wait_dropped_before_it_was_recorded_holds_its_place_until_its_breadcrumb() {
    let code = |ctx: OrchestrationContext, _| async move {
        drop(ctx.schedule_wait("Go"));
        Ok(ctx.schedule_wait("Go").await)
    };
    check(
        r#"1 started O v1.0.0 """#,
        "",
        code,
        expect![[r#"
            continue
              2 wait Go
              3 wait Go
              4 wait-cancelled 2 dropped_future
            actions: wait 2, wait 3
        "#]],
    );
    // A signal before the breadcrumb would go to its place ...
    check(
        r#"
        1 started O v1.0.0 ""
        2 wait Go
        3 wait Go
        4 raised Go "taken by nobody"
        "#,
        "",
        code,
        expect![[r#"
            continue
              5 wait-cancelled 2 dropped_future
        "#]],
    );
    // ... after it, to the next.
    check(
        r#"
        1 started O v1.0.0 ""
        2 wait Go
        3 wait Go
        4 wait-cancelled 2 dropped_future
        "#,
        r#"raised Go "x""#,
        code,
        expect![[r#"
            completed "x"
              5 raised Go "x"
        "#]],
    );
}

#[test]
fn r3_88_dropping_a_wait_that_returned_changes_nothing() {
    check(
        r#"
        1 started O v1.0.0 ""
        2 wait Go
        3 wait Go
        "#,
        r#"
        raised Go "1"
        raised Go "2"
        "#,
        |ctx, _| async move {
            let (mut first, second) = (ctx.schedule_wait("Go"), ctx.schedule_wait("Go"));
            let one = (&mut first).await;
            drop(first);
            Ok(format!("{one} {}", second.await))
        },
        expect![[r#"
            completed "1 2"
              4 raised Go "1"
              5 raised Go "2"
        "#]],
    );
}

#[test]
fn r3_89_a_signal_of_the_same_batch_does_not_reach_the_replacement() {
    for stamp in ["0.1.31", "0.2.0"] {
        let history = r#"
            1 started O v1.0.0 ""
            2 wait Go
            3 timer 1s
        "#;
        let story = Story::read(&format!("stamp {stamp}\n{history}"));
        let messages = "timer-fired 3 1s\nraised Go lost";
        let (engine, result) = run_engine(&story, messages, code(lost_then_again));
        assert!(matches!(result, TurnResult::Continue), "{stamp}");
        let mut again = engine_for(&story, engine.final_history());
        again.prep_completions(notation::messages("raised Go found", 1));
        let result = execute(&mut again, code(lost_then_again));
        assert_eq!(notation::result(&result), "completed \"found\"", "{stamp}");
    }
}

fn engine_for(story: &Story, history: Vec<Event>) -> ReplayEngine {
    engine(&story.settings, history)
}

#[test]
fn r4_36_a_wait_is_emitted_at_the_call() {
    check(
        r#"1 started O v1.0.0 """#,
        "",
        |ctx, _| async move {
            let wait = ctx.schedule_wait("Go");
            ctx.schedule_activity("A", "").await?;
            Ok(wait.await)
        },
        expect![[r#"
            continue
              2 wait Go
              3 activity A ""
            actions: wait 2, activity 3
        "#]],
    );
}

#[test]
fn r4_37_r2_95_a_typed_signal() {
    let numbers = |ctx: OrchestrationContext, _| async move {
        Ok(ctx.schedule_wait_typed::<Vec<u8>>("Go").await.len().to_string())
    };
    let history = r#"
        1 started O v1.0.0 ""
        2 wait Go
    "#;
    check(
        history,
        r#"raised Go "[1,2,3]""#,
        numbers,
        expect![[r#"
            completed "3"
              3 raised Go "[1,2,3]"
        "#]],
    );
    check(
        history,
        r#"raised Go "no list""#,
        numbers,
        expect![[r#"
            failed panic: event payload 'Go' (event 2) cannot be decoded: expected ident at line 1 column 2
              3 raised Go "no list"
        "#]],
    );
}
