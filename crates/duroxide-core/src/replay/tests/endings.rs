//! How an execution ends: last events and messages (§3.12, R1.32 – R1.35, §7.11, §7.12).

use std::time::Duration;

use expect_test::expect;

use super::*;

const SECOND: Duration = Duration::from_secs(1);

#[test]
fn r3_105_r3_106_what_counts_as_outstanding() {
    // Waits are resolved in order of history, dequeues by count; the rest gets a breadcrumb.
    check_turn(
        r#"
        1 started O v1.0.0 ""
        2 raised Go "early"
        3 wait Go
        4 wait Go
        5 wait Stop
        6 queue q "m"
        7 dequeue q
        8 dequeue q
        9 dequeue r
        10 raised Go "for the first"
        11 activity A ""
        "#,
        r#"activity-completed 11 "a""#,
        |ctx, _| async move {
            let waits = ["Go", "Go", "Stop"].map(|name| ctx.schedule_wait(name));
            let dequeues = ["q", "q", "r"].map(|name| ctx.dequeue_event(name));
            let [first, ..] = waits;
            first.await;
            ctx.schedule_activity("A", "").await?;
            std::mem::forget(dequeues); // Not even dropped: only history tells.
            Ok(String::new())
        },
        expect![[r#"
            ended: completed
              12 activity-completed 11 "a"
              13 wait-cancelled 4 dropped_future
              14 wait-cancelled 5 dropped_future
              15 dequeue-cancelled 8 orchestration_terminal
              16 dequeue-cancelled 9 orchestration_terminal
              17 completed ""
        "#]],
    );
}

#[test]
fn r3_106_open_waits_and_dequeues_are_closed_before_the_terminal_event() {
    check_turn(
        r#"
        1 started O v1.0.0 ""
        2 dequeue q
        3 wait Go
        "#,
        r#"cancel "enough""#,
        |ctx, _| async move {
            let (dequeue, wait) = (ctx.dequeue_event("q"), ctx.schedule_wait("Go"));
            Ok(format!("{:?}", ctx.join2(dequeue, wait).await))
        },
        expect![[r#"
            ended: failed
              4 cancel-requested "enough"
              5 wait-cancelled 3 orchestration_terminal
              6 dequeue-cancelled 2 orchestration_terminal
              7 failed canceled: enough
        "#]],
    );
}

const CHILD_OF_P: &str = r#"
    1 started O v1.0.0 "" parent=p parent-id=5 parent-exec=2
    2 child C sub::2 ""
    3 wait Go
    4 activity A ""
    5 activity B ""
"#;

/// Drops a child and a wait, leaves an activity running, starts something detached, and ends.
async fn end(ctx: OrchestrationContext, ok: bool) -> Result<String, String> {
    let (child, wait) = (ctx.schedule_sub_orchestration("C", ""), ctx.schedule_wait("Go"));
    std::mem::forget(ctx.schedule_activity("A", ""));
    ctx.schedule_activity("B", "").await?;
    ctx.schedule_orchestration("D", "d", "in");
    drop((child, wait));
    if ok { Ok("out".to_owned()) } else { Err("boom".to_owned()) }
}

#[test]
fn r3_107_r3_110_r1_35_completed() {
    check_turn(
        CHILD_OF_P,
        r#"activity-completed 5 "b""#,
        |ctx, _| end(ctx, true),
        expect![[r#"
            ended: completed
              6 activity-completed 5 "b"
              7 detached D d "in"
              8 child-cancelled 2 dropped_future
              9 wait-cancelled 3 dropped_future
              10 completed "out"
              11 activity-cancelled 4 orchestration_terminal_completed
            orch: start d D "in"
            orch: child-completed p/2/5 "out"
            orch: cancel i::sub::2 "parent dropped sub-orchestration future"
            cancelled activities: 4
        "#]],
    );
}

#[test]
fn r3_108_r3_110_r1_35_failed() {
    check_turn(
        CHILD_OF_P,
        r#"activity-completed 5 "b""#,
        |ctx, _| end(ctx, false),
        expect![[r#"
            ended: failed
              6 activity-completed 5 "b"
              7 detached D d "in"
              8 child-cancelled 2 dropped_future
              9 wait-cancelled 3 dropped_future
              10 failed error: boom
              11 activity-cancelled 4 orchestration_terminal_failed
            orch: start d D "in"
            orch: child-failed p/2/5 error: boom
            orch: cancel i::sub::2 "parent dropped sub-orchestration future"
            cancelled activities: 4
        "#]],
    );
}

#[test]
fn r3_109_r4_59_r7_87_l34_cancelled() {
    // Child 2 runs and is cancelled, child 6 has a result, 7 was cancelled before.
    check_turn(
        r#"
        1 started O v1.0.0 "" parent=p parent-id=5 parent-exec=2
        2 child C sub::2 ""
        3 child C mine ""
        4 child C sub::4 ""
        5 activity A ""
        6 child-completed 3 "c"
        7 child-cancelled 4 "some reason"
        "#,
        r#"
        activity-completed 5 "a"
        cancel "enough"
        "#,
        |ctx, _| async move {
            let children = [
                ctx.schedule_sub_orchestration("C", ""),
                ctx.schedule_sub_orchestration_with_id("C", "mine", ""),
                ctx.schedule_sub_orchestration("C", ""),
            ];
            ctx.schedule_activity("A", "").await?;
            ctx.schedule_orchestration("D", "d", "in");
            ctx.join(children.into()).await;
            Ok(String::new())
        },
        expect![[r#"
            ended: failed
              8 activity-completed 5 "a"
              9 cancel-requested "enough"
              10 detached D d "in"
              11 failed canceled: enough
            orch: start d D "in"
            orch: cancel i::sub::2 "parent canceled"
            orch: child-failed p/2/5 canceled: enough
        "#]],
    );
}

#[test]
fn l2_r3_109_r1_62_children_of_the_cancelled_turn_get_neither_start_nor_cancel() {
    check_turn(
        "",
        r#"
        start O in
        cancel "enough"
        "#,
        |ctx, _| async move { ctx.schedule_sub_orchestration("C", "").await },
        expect![[r#"
            ended: failed
              1 started O v1.0.0 "in"
              2 cancel-requested "enough"
              3 child C sub::3 ""
              4 failed canceled: enough
        "#]],
    );
}

#[test]
fn l3_r3_107_r1_62_children_of_the_last_turn_get_neither_start_nor_cancel() {
    check_turn(
        "",
        "start O in",
        |ctx, _| async move {
            drop(ctx.schedule_sub_orchestration("C", ""));
            Ok(String::new())
        },
        expect![[r#"
            ended: completed
              1 started O v1.0.0 "in"
              2 child C sub::2 ""
              3 child-cancelled 2 dropped_future
              4 completed ""
        "#]],
    );
}

#[test]
fn r3_115_r1_61_r1_62_other_work_of_the_last_turn_is_recorded_and_not_sent() {
    check_turn(
        "",
        "start O in",
        |ctx, _| async move {
            let _timer = ctx.schedule_timer(SECOND);
            let _activity = ctx.schedule_activity("A", "");
            let _child = ctx.schedule_sub_orchestration("C", "");
            Ok(String::new())
        },
        expect![[r#"
            ended: completed
              1 started O v1.0.0 "in"
              2 timer 1s
              3 activity A ""
              4 child C sub::4 ""
              5 activity-cancelled 3 dropped_future
              6 child-cancelled 4 dropped_future
              7 completed ""
            cancelled activities: 3
        "#]],
    );
}

#[test]
fn r3_116_the_parent_execution_is_the_one_on_record_or_the_one_handed_in() {
    check_turn(
        r#"1 started O v1.0.0 "" parent=p parent-id=5 parent-exec=2"#,
        "",
        |_, _| async { Ok("out".to_owned()) },
        expect![[r#"
            ended: completed
              2 completed "out"
            orch: child-completed p/2/5 "out"
        "#]],
    );
    check_turn(
        r#"1 started O v1.0.0 "" parent=p parent-id=5"#,
        "",
        |_, _| async { Err("boom".to_owned()) },
        expect![[r#"
            ended: failed
              2 failed error: boom
            orch: child-failed p/7/5 error: boom
        "#]],
    );
}

#[test]
fn r3_117_a_parent_that_moved_on_ignores_the_notification() {
    check_turn(
        r#"
        exec 3
        1 started O v1.0.0 ""
        2 child C sub::3_2 ""
        "#,
        r#"exec 2 child-completed 2 "late""#,
        |ctx, _| async move { ctx.schedule_sub_orchestration("C", "").await },
        expect![[r#"
            running
        "#]],
    );
}

/// Three children: one running and not dropped, one with a result, one dropped and recorded so.
pub(super) const WITH_CHILDREN: &str = r#"
    1 started O v1.0.0 "" parent=p parent-id=5 parent-exec=2
    2 child C sub::2 ""
    3 child C sub::3 ""
    4 child C sub::4 ""
    5 child-completed 3 "c"
    6 timer 1s
    7 child-cancelled 4 dropped_future
"#;

pub(super) async fn with_children(ctx: OrchestrationContext) {
    let (running, done, dropped) = (
        ctx.schedule_sub_orchestration("C", ""),
        ctx.schedule_sub_orchestration("C", ""),
        ctx.schedule_sub_orchestration("C", ""),
    );
    std::mem::forget(running);
    let _ = done.await;
    drop(dropped);
    ctx.schedule_timer(SECOND).await;
    drop(ctx.schedule_sub_orchestration("of this turn", ""));
}

#[test]
fn l7_r3_75_a_panic_cancels_the_children_that_run() {
    check_turn(
        WITH_CHILDREN,
        "timer-fired 6 1s",
        |ctx, _| async move {
            with_children(ctx).await;
            panic!("boom")
        },
        expect![[r#"
            ended: failed
              8 timer-fired 6 1s
              9 failed panic: boom
            orch: child-failed p/2/5 panic: boom
            orch: cancel i::sub::2 "parent failed"
        "#]],
    );
}

#[test]
fn l7_r3_75_nondeterminism_and_system_errors_cancel_the_children_that_run() {
    check_turn(
        WITH_CHILDREN,
        "timer-fired 6 1s",
        |ctx, _| async move { ctx.schedule_activity("something else", "").await },
        expect![[r#"
            ended: failed
              8 timer-fired 6 1s
              9 failed nondeterminism: schedule mismatch: action=CallActivity { scheduling_event_id: 0, name: "something else", input: "", session_id: None, tag: None } vs event=SubOrchestrationScheduled { name: "C", instance: "sub::2", input: "" }
            orch: child-failed p/2/5 nondeterminism: schedule mismatch: action=CallActivity { scheduling_event_id: 0, name: "something else", input: "", session_id: None, tag: None } vs event=SubOrchestrationScheduled { name: "C", instance: "sub::2", input: "" }
            orch: cancel i::sub::2 "parent failed"
        "#]],
    );
    check_turn(
        WITH_CHILDREN,
        r#"child-failed 2 poison A 3"#,
        |_, _| async { Ok(String::new()) },
        expect![[r#"
            ended: failed
              8 child-failed 2 poison: activity A#3 exceeded 11 attempts (max 10)
              9 failed poison: activity A#3 exceeded 11 attempts (max 10)
            orch: child-failed p/2/5 poison: activity A#3 exceeded 11 attempts (max 10)
        "#]],
    );
}

#[test]
fn r3_110_an_error_the_code_returned_cancels_only_what_it_dropped() {
    check_turn(
        WITH_CHILDREN,
        "timer-fired 6 1s",
        |ctx, _| async move {
            with_children(ctx).await;
            Err("boom".to_owned())
        },
        expect![[r#"
            ended: failed
              8 timer-fired 6 1s
              9 child of this turn sub::9 ""
              10 child-cancelled 9 dropped_future
              11 failed error: boom
            orch: child-failed p/2/5 error: boom
        "#]],
    );
}
