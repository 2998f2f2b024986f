//! Signals and queue messages arriving (R3.57, R3.58), typed and untyped.

use expect_test::expect;

use super::*;

#[test]
fn r3_57_early_signal_is_not_delivered() {
    let case = || {
        check(
            r#"
            persisted 1
            1 started O v1.0.0 ""
            2 raised Go "early"
            "#,
            "",
            |ctx, _| async move { Ok(ctx.schedule_wait("Go").await) },
            expect![[r#"
                continue
                  3 wait Go
                actions: wait 3
            "#]],
        );
    };
    // Said once, when it happens, not at each replay.
    expect![[r#"
        WARN duroxide::runtime: external event dropped: no open wait for it instance=i execution_id=1 name=Go
    "#]].assert_eq(&logs::captured(case));
}

#[test]
fn r3_57_a_signal_more_than_there_are_waits_is_skipped() {
    check(
        r#"
        1 started O v1.0.0 ""
        2 wait Go
        3 activity A ""
        4 raised Go "first"
        5 raised Go "second"
        6 wait Go
        "#,
        r#"
        activity-completed 3 "a"
        raised Go "third"
        "#,
        |ctx, _| async move {
            let first = ctx.schedule_wait("Go");
            let activity = ctx.schedule_activity("A", "");
            let first = first.await;
            let second = ctx.schedule_wait("Go");
            let (_, second) = ctx.join2(activity, second).await;
            Ok(format!("{first} {second}"))
        },
        expect![[r#"
            completed "first third"
              7 activity-completed 3 "a"
              8 raised Go "third"
        "#]],
    );
}

#[test]
fn r3_58_r3_151_a_queue_message_is_kept_until_a_dequeue_asks() {
    check(
        r#"
        1 started O v1.0.0 ""
        2 activity A ""
        3 queue q "m"
        "#,
        r#"activity-completed 2 "a""#,
        |ctx, _| async move {
            ctx.schedule_activity("A", "").await?;
            Ok(ctx.dequeue_event("q").await)
        },
        expect![[r#"
            completed "m"
              4 activity-completed 2 "a"
              5 dequeue q
            actions: dequeue 5
        "#]],
    );
}

#[test]
fn r3_159_waits_and_queues_of_one_name_do_not_mix() {
    check(
        r#"
        1 started O v1.0.0 ""
        2 wait x
        3 dequeue x
        "#,
        r#"
        queue x "queued"
        raised x "raised"
        "#,
        |ctx, _| async move {
            let (wait, dequeue) = (ctx.schedule_wait("x"), ctx.dequeue_event("x"));
            Ok(format!("{:?}", ctx.join2(wait, dequeue).await))
        },
        expect![[r#"
            completed "(\"raised\", \"queued\")"
              4 queue x "queued"
              5 raised x "raised"
        "#]],
    );
}

#[test]
#[expect(deprecated)]
fn r4_41_r2_95_typed_messages_and_older_names() {
    let typed = |ctx: OrchestrationContext, _| async move {
        let number: u32 = ctx.dequeue_event_typed("q").await;
        let text = ctx.schedule_wait_persistent("q").await;
        let list: Vec<u8> = ctx.schedule_wait_persistent_typed("q").await;
        Ok(format!("{number} {text} {list:?}"))
    };
    let started = r#"1 started O v1.0.0 """#;
    check(
        started,
        "queue q 7\nqueue q x\nqueue q [1]",
        typed,
        expect![[r#"
            completed "7 x [1]"
              2 queue q "7"
              3 queue q "x"
              4 queue q "[1]"
              5 dequeue q
              6 dequeue q
              7 dequeue q
            actions: dequeue 5, dequeue 6, dequeue 7
        "#]],
    );
    check(
        started,
        "queue q x",
        typed,
        expect![[r#"
            failed panic: queue message 'q' (event 3) cannot be decoded: expected value at line 1 column 1
              2 queue q "x"
              3 dequeue q
            actions: dequeue 3
        "#]],
    );
}

#[test]
fn r4_44_a_message_that_comes_with_the_start_is_delivered() {
    check_turn(
        "",
        r#"
        queue q "before the start"
        start O in
        "#,
        |ctx, _| async move { Ok(ctx.dequeue_event("q").await) },
        expect![[r#"
            ended: completed
              1 started O v1.0.0 "in"
              2 queue q "before the start"
              3 dequeue q
              4 completed "before the start"
        "#]],
    );
}

#[test]
fn r4_39_a_signal_goes_to_whatever_execution_runs() {
    check(
        r#"
        exec 3
        1 started O v1.0.0 ""
        2 wait Go
        "#,
        r#"raised Go "x""#,
        |ctx, _| async move { Ok(ctx.schedule_wait("Go").await) },
        expect![[r#"
            completed "x"
              3 raised Go "x"
        "#]],
    );
}
