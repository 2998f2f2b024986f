//! Continue-as-new (R3.111 – R3.114, §4.10): what is carried over, what is started.

use expect_test::expect;

use super::*;
use crate::model::version::BUILD_VERSION;

#[test]
fn r3_111_r4_67_the_successor_gets_name_parent_status_and_unread_messages() {
    check_turn(
        r#"
        exec 2
        1 started O v1.0.0 "in" parent=p parent-id=5 parent-exec=3 status="from before"
        2 queue q "read"
        3 queue r "unread 1"
        4 queue q "unread 2"
        5 dequeue q
        6 status "now"
        7 activity A ""
        "#,
        r#"
        queue r "unread 3"
        activity-completed 7 "a"
        "#,
        |ctx, _| async move {
            ctx.dequeue_event("q").await;
            ctx.set_custom_status("now");
            ctx.schedule_activity("A", "").await?;
            ctx.continue_as_new_versioned("2.0.0", "next").await
        },
        expect![[r#"
            ended: continued as new
              8 queue r "unread 3"
              9 activity-completed 7 "a"
              10 continued "next"
            orch: continue O "next" version="2.0.0" parent=p/3/5 carry=r:unread 1 carry=q:unread 2 carry=r:unread 3 status="now"
        "#]],
    );
}

#[test]
fn r3_111_r4_74_a_status_that_was_not_touched_is_carried_and_a_reset_too() {
    check_turn(
        r#"1 started O v1.0.0 "" status="from before""#,
        "",
        |ctx, _| async move { ctx.continue_as_new_typed(&[1, 2]).await },
        expect![[r#"
            ended: continued as new
              2 continued "[1,2]"
            orch: continue O "[1,2]" status="from before"
        "#]],
    );
    check_turn(
        r#"1 started O v1.0.0 "" status="from before""#,
        "",
        |ctx, _| async move {
            ctx.reset_custom_status();
            ctx.continue_as_new("next").await
        },
        expect![[r#"
            ended: continued as new
              2 status-reset
              3 continued "next"
            orch: continue O "next"
        "#]],
    );
}

#[test]
fn r3_111_r1_57_a_parent_execution_that_is_not_on_record_is_not_made_up() {
    check_turn(
        r#"1 started O v1.0.0 "" parent=p parent-id=5"#,
        "",
        |ctx, _| async move { ctx.continue_as_new("next").await },
        expect![[r#"
            ended: continued as new
              2 continued "next"
            orch: continue O "next" parent=p/?/5
        "#]],
    );
}

#[test]
fn l34_r3_111_r1_62_detached_starts_and_children_of_the_turn_are_started() {
    check_turn(
        r#"1 started O v1.0.0 """#,
        "",
        |ctx, _| async move {
            ctx.schedule_orchestration("D", "d", "");
            let _kept = ctx.schedule_sub_orchestration("C", "kept");
            drop(ctx.schedule_sub_orchestration("C", "dropped"));
            let _activity = ctx.schedule_activity("A", "");
            let _timer = ctx.schedule_timer(std::time::Duration::from_secs(1));
            ctx.continue_as_new("next").await
        },
        expect![[r#"
            ended: continued as new
              2 detached D d ""
              3 child C sub::3 "kept"
              4 child C sub::4 "dropped"
              5 activity A ""
              6 timer 1s
              7 continued "next"
              8 activity-cancelled 5 orchestration_terminal_continued_as_new
            orch: start d D ""
            orch: start i::sub::3 C "kept" parent=i/1/3
            orch: continue O "next"
            cancelled activities: 5
        "#]],
    );
}

/// Holds one dequeue, reads behind it, gives up another.
async fn reads_some(ctx: OrchestrationContext, _: String) -> Result<String, String> {
    let held = ctx.dequeue_event("q");
    ctx.dequeue_event("q").await;
    drop(ctx.dequeue_event("r"));
    let next = ctx.continue_as_new("next");
    next.await?;
    Ok(held.await)
}

const SOME: &str = r#"
    queue q "1"
    queue r "2"
    queue q "3"
    queue r "4"
    queue q "5"
"#;

#[test]
fn r3_112_new_what_no_dequeue_returned_is_carried_in_order_of_arrival() {
    for stamp in ["0.1.31", "0.2.0"] {
        let story = Story::read(&format!("stamp {stamp}\n1 started O v1.0.0 \"\""));
        let (_, result) = run_engine(&story, SOME, code(reads_some));
        assert_eq!(
            notation::result(&result),
            "continue-as-new \"next\" unread=q:1 unread=r:2 unread=r:4 unread=q:5",
            "{stamp}"
        );
    }
}

#[test]
fn r3_113_old_as_many_as_there_are_dequeues_count_as_read() {
    check_turn(
        r#"
        stamp 0.1.30
        1 started O v1.0.0 ""
        "#,
        SOME,
        reads_some,
        expect![[r#"
            ended: continued as new
              2 queue q "1"
              3 queue r "2"
              4 queue q "3"
              5 queue r "4"
              6 queue q "5"
              7 dequeue q
              8 dequeue q
              9 dequeue r
              10 continued "next"
            orch: continue O "next" carry=r:4 carry=q:5
        "#]],
    );
}

#[test]
fn r3_112_r4_43_messages_behind_an_early_return_are_carried_too() {
    // The code returns while messages of the batch are still to come; none may be lost.
    check_turn(
        r#"
        1 started O v1.0.0 ""
        2 activity A ""
        "#,
        r#"
        queue q "before"
        activity-completed 2 "a"
        queue q "after"
        raised Go "x"
        queue r "after that"
        "#,
        |ctx, _| async move {
            ctx.schedule_activity("A", "").await?;
            drop(ctx.continue_as_new("next"));
            Ok("ignored".to_owned())
        },
        expect![[r#"
            ended: continued as new
              3 queue q "before"
              4 activity-completed 2 "a"
              5 queue q "after"
              6 raised Go "x"
              7 queue r "after that"
              8 continued "next"
            orch: continue O "next" carry=q:before carry=q:after carry=r:after that
        "#]],
    );
}

#[test]
fn l35_r3_114_r4_43_all_unread_messages_go_along_under_every_policy() {
    let messages: String = (0..251).map(|n| format!("queue q m{n}\n")).collect();
    for stamp in ["0.1.30", "0.1.32", BUILD_VERSION] {
        let story = Story::read(&format!("stamp {stamp}\n1 started O v1.0.0 \"\""));
        let continues =
            code(|ctx: OrchestrationContext, _| async move { ctx.continue_as_new("next").await });
        let mut outcome = run_turn(turn(&story, &messages, continues));
        let expected: Vec<_> = (0..251).map(|n| ("q".to_owned(), format!("m{n}"))).collect();
        match outcome.messages.pop() {
            Some(WorkItem::ContinueAsNew { carry_forward_events, .. }) => {
                assert_eq!(carry_forward_events, expected, "{stamp}");
            }
            other => panic!("{stamp}: {other:?}"),
        }
    }
}

#[test]
fn r4_43_r4_70_r1_54_r2_21_r2_22_carried_messages_come_before_new_ones() {
    check_turn(
        r#"
        1 started O v1.0.0 ""
        2 continued "next"
        "#,
        r#"
        queue q "new"
        continue O "next" carry=q:old carry=r:old status="50%" parent=p parent-id=5
        exec 1 activity-completed 9 "stale"
        "#,
        |ctx, input| async move {
            let (first, second) = (ctx.dequeue_event("q").await, ctx.dequeue_event("q").await);
            let status = ctx.get_custom_status();
            ctx.schedule_activity(format!("{first} {second} {status:?} {input}"), "").await
        },
        expect![[r#"
            running
              1 started O v1.0.0 "next" parent=p/?/5 carry=q:old carry=r:old status="50%"
              2 queue q "old"
              3 queue r "old"
              4 queue q "new"
              5 dequeue q
              6 dequeue q
              7 activity old new Some("50%") next ""
            worker: run 7 old new Some("50%") next ""
        "#]],
    );
}

#[test]
fn r4_66_r4_68_r2_14_a_successor_begins_at_event_1() {
    check_turn(
        r#"
        exec 4
        1 started O v1.0.0 ""
        2 continued "next"
        "#,
        r#"continue O "next" version=2.0.0"#,
        |ctx, _| async move {
            let child = ctx.schedule_sub_orchestration("C", "");
            let me = format!("{} {}", ctx.execution_id(), ctx.orchestration_version());
            ctx.set_custom_status(me);
            child.await
        },
        expect![[r#"
            running
              1 started O v2.0.0 "next"
              2 child C sub::5_2 ""
              3 status "5 2.0.0"
            orch: start i::sub::5_2 C "" parent=i/5/2
        "#]],
    );
}
