//! From a turn that goes on to its messages (§3.10, R1.60, R1.61).

use std::time::Duration;

use expect_test::expect;

use super::*;

#[test]
fn r3_95_r1_60_r1_61_one_message_for_each_piece_of_work() {
    check_turn(
        r#"
        exec 2
        1 started O v1.0.0 ""
        "#,
        "",
        |ctx, _| async move {
            let plain = ctx.schedule_activity("A", "in");
            let routed = ctx.schedule_activity_on_session("B", "in", "s").with_tag("gpu");
            let timer = ctx.schedule_timer(Duration::from_secs(5));
            let child = ctx.schedule_sub_orchestration("C", "in");
            let chosen = ctx.schedule_sub_orchestration_versioned_with_id(
                "C",
                Some("2.0.0".to_owned()),
                "mine",
                "in",
            );
            ctx.schedule_orchestration_versioned("D", Some("3.0.0".to_owned()), "d", "in");
            ctx.set_custom_status("s");
            ctx.set_kv_value("k", "v");
            let (wait, dequeue) = (ctx.schedule_wait("Go"), ctx.dequeue_event("q"));
            let _ = ctx.join2(ctx.join(vec![plain, routed]), ctx.join(vec![child, chosen])).await;
            timer.await;
            Ok(wait.await + &dequeue.await)
        },
        expect![[r#"
            running
              2 activity A "in"
              3 activity B "in" on="s" tag="gpu"
              4 timer 5s
              5 child C sub::2_5 "in"
              6 child C mine "in"
              7 detached D d "in"
              8 status "s"
              9 set k "v" 0s
              10 wait Go
              11 dequeue q
            worker: run 2 A "in"
            worker: run 3 B "in" on="s" tag="gpu"
            orch: timer-fired 4 5s
            orch: start i::sub::2_5 C "in" parent=i/2/5
            orch: start mine C "in" version="2.0.0" parent=i/2/6
            orch: start d D "in" version="3.0.0"
        "#]],
    );
}

#[test]
fn r3_96_dropped_children_are_cancelled_in_order_of_schedule() {
    check_turn(
        r#"
        1 started O v1.0.0 ""
        2 child C sub::2 ""
        3 child C mine ""
        4 timer 1s
        "#,
        "timer-fired 4 1s",
        |ctx, _| async move {
            let first = ctx.schedule_sub_orchestration("C", "");
            let second = ctx.schedule_sub_orchestration_with_id("C", "mine", "");
            ctx.schedule_timer(Duration::from_secs(1)).await;
            drop(second);
            drop(first);
            ctx.schedule_activity("A", "").await
        },
        expect![[r#"
            running
              5 timer-fired 4 1s
              6 activity A ""
              7 child-cancelled 2 dropped_future
              8 child-cancelled 3 dropped_future
            worker: run 6 A ""
            orch: cancel i::sub::2 "parent dropped sub-orchestration future"
            orch: cancel mine "parent dropped sub-orchestration future"
        "#]],
    );
}

#[test]
fn r3_97_r3_98_scheduled_and_dropped_in_one_turn() {
    check_turn(
        r#"1 started O v1.0.0 """#,
        "",
        |ctx, _| async move {
            drop(ctx.schedule_activity("A", ""));
            drop(ctx.schedule_sub_orchestration("C", ""));
            Ok(ctx.schedule_wait("Go").await)
        },
        expect![[r#"
            running
              2 activity A ""
              3 child C sub::3 ""
              4 wait Go
              5 activity-cancelled 2 dropped_future
              6 child-cancelled 3 dropped_future
            worker: run 2 A ""
            orch: start i::sub::3 C "" parent=i/1/3
            orch: cancel i::sub::3 "parent dropped sub-orchestration future"
            cancelled activities: 2
        "#]],
    );
}

#[test]
fn r1_63_a_batch_that_yields_nothing_is_still_a_turn() {
    check_turn(
        super::messages::OPEN,
        r#"exec 1 activity-completed 2 "stale""#,
        super::messages::one_of_each,
        expect![[r#"
            running
        "#]],
    );
}
