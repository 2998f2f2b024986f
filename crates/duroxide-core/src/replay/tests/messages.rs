//! Messages become events (§3.3).

use expect_test::expect;

use super::*;

/// Schedules one of each and waits for all.
pub(super) async fn one_of_each(ctx: OrchestrationContext, _: String) -> Result<String, String> {
    let activity = ctx.schedule_activity("A", "");
    let timer = ctx.schedule_timer(std::time::Duration::from_secs(1));
    let child = ctx.schedule_sub_orchestration("C", "");
    let (a, (), c) = ctx.join3(activity, timer, child).await;
    Ok(format!("{a:?} {c:?}"))
}

pub(super) const OPEN: &str = r#"
    exec 2
    1 started O v1.0.0 ""
    2 activity A ""
    3 timer 1s
    4 child C sub::2_4 ""
"#;

#[test]
fn r3_20_messages_for_other_executions_are_dropped() {
    let stale = r#"
        exec 1 activity-completed 2 "stale"
        exec 1 activity-failed 2 "stale"
        exec 3 timer-fired 3 1s
        exec 1 child-completed 4 "stale"
        exec 1 child-failed 4 "stale"
        raised Go "now"
        queue q "now"
    "#;
    let case = || {
        check(
            OPEN,
            stale,
            one_of_each,
            expect![[r#"
                continue
                  5 raised Go "now"
                  6 queue q "now"
            "#]],
        );
    };
    expect![[r#"
        WARN duroxide::runtime: ActivityCompleted dropped: it belongs to another execution instance=i execution_id=2 id=2
        WARN duroxide::runtime: ActivityFailed dropped: it belongs to another execution instance=i execution_id=2 id=2
        WARN duroxide::runtime: TimerFired dropped: it belongs to another execution instance=i execution_id=2 id=3
        WARN duroxide::runtime: SubOrchCompleted dropped: it belongs to another execution instance=i execution_id=2 id=4
        WARN duroxide::runtime: SubOrchFailed dropped: it belongs to another execution instance=i execution_id=2 id=4
        WARN duroxide::runtime: external event dropped: no open wait for it instance=i execution_id=2 name=Go
    "#]].assert_eq(&logs::captured(case));
}

#[test]
fn r3_21_duplicates_of_recorded_completions_are_dropped() {
    check(
        r#"
        1 started O v1.0.0 ""
        2 activity A ""
        3 timer 1s
        4 child C sub::4 ""
        5 activity-completed 2 "a"
        6 timer-fired 3 1s
        "#,
        r#"
        activity-completed 2 "again"
        timer-fired 3 1s
        "#,
        one_of_each,
        expect![[r#"
            continue
        "#]],
    );
}

#[test]
fn r3_22_l8_the_first_result_stands() {
    let code = |ctx: OrchestrationContext, _| async move {
        let (ok, failed) = (ctx.schedule_activity("A", ""), ctx.schedule_activity("B", ""));
        let (child, failed_child) =
            (ctx.schedule_sub_orchestration("C", ""), ctx.schedule_sub_orchestration("D", ""));
        let activities = ctx.join(vec![ok, failed]).await;
        let children = ctx.join(vec![child, failed_child]).await;
        Ok(format!("{activities:?} {children:?}"))
    };
    // Failure after success, success after failure, failure after failure; in history and in the
    // batch itself.
    check(
        r#"
        1 started O v1.0.0 ""
        2 activity A ""
        3 activity B ""
        4 child C sub::4 ""
        5 child D sub::5 ""
        6 activity-completed 2 "a"
        7 activity-failed 3 "b"
        "#,
        r#"
        activity-failed 2 "late"
        activity-completed 3 "late"
        activity-failed 3 "late"
        child-completed 4 "c"
        child-failed 4 "late"
        child-failed 5 "d"
        child-failed 5 "late"
        child-completed 5 "late"
        "#,
        code,
        expect![[r#"
            completed "[Ok(\"a\"), Err(\"b\")] [Ok(\"c\"), Err(\"d\")]"
              8 child-completed 4 "c"
              9 child-failed 5 error: d
        "#]],
    );
}

#[test]
fn r3_23_duplicates_inside_the_batch_are_dropped() {
    check(
        OPEN,
        r#"
        activity-completed 2 "first"
        activity-completed 2 "second"
        activity-failed 2 "third"
        timer-fired 3 1s
        timer-fired 3 1s
        child-failed 4 "first"
        child-completed 4 "second"
        "#,
        one_of_each,
        expect![[r#"
            completed "Ok(\"first\") Err(\"first\")"
              5 activity-completed 2 "first"
              6 timer-fired 3 1s
              7 child-failed 4 error: first
        "#]],
    );
}

#[test]
fn r3_24_equal_signals_and_queue_messages_are_separate_arrivals() {
    check(
        r#"1 started O v1.0.0 """#,
        r#"
        raised Go "x"
        raised Go "x"
        queue q "x"
        queue q "x"
        "#,
        |ctx, _| async move {
            let first = ctx.dequeue_event("q").await;
            let second = ctx.dequeue_event("q").await;
            Ok(first + &second)
        },
        expect![[r#"
            completed "xx"
              2 raised Go "x"
              3 raised Go "x"
              4 queue q "x"
              5 queue q "x"
              6 dequeue q
              7 dequeue q
            actions: dequeue 6, dequeue 7
        "#]],
    );
}

#[test]
fn r3_25_completions_of_the_wrong_kind_or_of_nothing() {
    let history = r#"
        1 started O v1.0.0 ""
        2 activity A ""
        3 timer 1s
        4 child C sub::4 ""
        5 wait Go
        6 dequeue q
    "#;
    let mut texts = String::new();
    for message in ["activity-completed", "activity-failed", "timer-fired", "child-completed"] {
        for id in [1, 2, 3, 4, 5, 6, 9] {
            let payload = if message == "timer-fired" { "1s" } else { "x" };
            let message = format!("{message} {id} {payload}");
            let never = code(|_, _| async { panic!("the code is not run") });
            let (engine, result) = run_engine(&Story::read(history), &message, never);
            if matches!(result, TurnResult::Failed(ErrorDetails::Application { .. })) {
                continue; // The right kind: the code was run, and panicked.
            }
            assert!(!engine.made_progress(), "no event is added for {message}");
            writeln!(texts, "{message}: {}", notation::result(&result)).unwrap();
        }
    }
    expect![[r#"
        activity-completed 1 x: failed nondeterminism: no matching schedule for completion id=1
        activity-completed 3 x: failed nondeterminism: completion kind mismatch for id=3, expected 'timer', got 'activity'
        activity-completed 4 x: failed nondeterminism: completion kind mismatch for id=4, expected 'suborchestration', got 'activity'
        activity-completed 5 x: failed nondeterminism: no matching schedule for completion id=5
        activity-completed 6 x: failed nondeterminism: no matching schedule for completion id=6
        activity-completed 9 x: failed nondeterminism: no matching schedule for completion id=9
        activity-failed 1 x: failed nondeterminism: no matching schedule for completion id=1
        activity-failed 3 x: failed nondeterminism: completion kind mismatch for id=3, expected 'timer', got 'activity'
        activity-failed 4 x: failed nondeterminism: completion kind mismatch for id=4, expected 'suborchestration', got 'activity'
        activity-failed 5 x: failed nondeterminism: no matching schedule for completion id=5
        activity-failed 6 x: failed nondeterminism: no matching schedule for completion id=6
        activity-failed 9 x: failed nondeterminism: no matching schedule for completion id=9
        timer-fired 1 1s: failed nondeterminism: no matching schedule for timer id=1
        timer-fired 2 1s: failed nondeterminism: completion kind mismatch for id=2, expected 'activity', got 'timer'
        timer-fired 4 1s: failed nondeterminism: completion kind mismatch for id=4, expected 'suborchestration', got 'timer'
        timer-fired 5 1s: failed nondeterminism: no matching schedule for timer id=5
        timer-fired 6 1s: failed nondeterminism: no matching schedule for timer id=6
        timer-fired 9 1s: failed nondeterminism: no matching schedule for timer id=9
        child-completed 1 x: failed nondeterminism: no matching schedule for sub-orchestration id=1
        child-completed 2 x: failed nondeterminism: completion kind mismatch for id=2, expected 'activity', got 'suborchestration'
        child-completed 3 x: failed nondeterminism: completion kind mismatch for id=3, expected 'timer', got 'suborchestration'
        child-completed 5 x: failed nondeterminism: no matching schedule for sub-orchestration id=5
        child-completed 6 x: failed nondeterminism: no matching schedule for sub-orchestration id=6
        child-completed 9 x: failed nondeterminism: no matching schedule for sub-orchestration id=9
    "#]].assert_eq(&texts);
}

#[test]
fn r3_26_the_last_mismatch_is_told_and_the_other_messages_are_still_taken() {
    check(
        OPEN,
        r#"
        activity-completed 3 "x"
        timer-fired 4 1s
        timer-fired 3 1s
        raised Go "x"
        "#,
        one_of_each,
        expect![[r#"
            failed nondeterminism: completion kind mismatch for id=4, expected 'suborchestration', got 'timer'
              5 timer-fired 3 1s
              6 raised Go "x"
        "#]],
    );
}

#[test]
fn r3_27_accepted_messages_become_events() {
    check(
        OPEN,
        r#"
        child-completed 4 "c"
        timer-fired 3 1s
        raised Go "x"
        queue q "m"
        activity-failed 2 "boom"
        "#,
        one_of_each,
        expect![[r#"
            completed "Err(\"boom\") Ok(\"c\")"
              5 child-completed 4 "c"
              6 timer-fired 3 1s
              7 raised Go "x"
              8 queue q "m"
              9 activity-failed 2 activity error: boom
        "#]],
    );
}

#[test]
fn r3_28_system_errors_end_the_orchestration_without_running_it() {
    for (message, expected) in [
        (
            r#"activity-failed 2 infrastructure "db" "down""#,
            expect![[r#"
                failed infrastructure db: down
                  5 activity-failed 2 infrastructure db: down
            "#]],
        ),
        (
            r#"activity-failed 2 poison A 2"#,
            expect![[r#"
                failed poison: activity A#2 exceeded 11 attempts (max 10)
                  5 activity-failed 2 poison: activity A#2 exceeded 11 attempts (max 10)
            "#]],
        ),
        (
            r#"child-failed 4 nondeterminism "differs""#,
            expect![[r#"
                failed nondeterminism: differs
                  5 child-failed 4 nondeterminism: differs
            "#]],
        ),
        // The first one stays; an application error is none.
        (
            r#"
            activity-failed 2 "boom"
            child-failed 4 poison B 9
            "#,
            expect![[r#"
                failed poison: activity B#9 exceeded 11 attempts (max 10)
                  5 activity-failed 2 activity error: boom
                  6 child-failed 4 poison: activity B#9 exceeded 11 attempts (max 10)
            "#]],
        ),
    ] {
        check(OPEN, message, |_, _| async { panic!("the code is not run") }, expected);
    }
}

#[test]
fn r3_29_the_first_cancel_request_stays() {
    let twice = r#"
        cancel "first"
        cancel "second"
    "#;
    check(
        OPEN,
        twice,
        one_of_each,
        expect![[r#"
            cancelled "first"
              5 cancel-requested "first"
        "#]],
    );
    let requested = r#"
        1 started O v1.0.0 ""
        2 activity A ""
        3 timer 1s
        4 child C sub::4 ""
        5 cancel-requested "recorded"
    "#;
    check(
        requested,
        twice,
        one_of_each,
        expect![[r#"
            cancelled "recorded"
        "#]],
    );
    check(
        r#"
        1 started O v1.0.0 ""
        2 completed "out"
        "#,
        twice,
        one_of_each,
        expect![[r#"
            continue
        "#]],
    );
    check(
        r#"
        1 started O v1.0.0 ""
        2 failed "boom"
        "#,
        twice,
        one_of_each,
        expect![[r#"
            continue
        "#]],
    );
    // Continue-as-new ends the execution, not the instance.
    check(
        r#"
        1 started O v1.0.0 ""
        2 continued "next"
        "#,
        twice,
        one_of_each,
        expect![[r#"
            continue
              3 cancel-requested "first"
        "#]],
    );
}

#[test]
fn r3_30_messages_of_other_kinds_add_nothing() {
    check(
        r#"
        1 started O v1.0.0 ""
        2 wait Go
        "#,
        r#"
        run 2 A "in"
        start O "in"
        continue O "in" carry=q:m
        "#,
        |ctx, _| async move { Ok(ctx.schedule_wait("Go").await) },
        expect![[r#"
            continue
        "#]],
    );
}
