//! What each kind of recorded event does to running code (R3.48 – R3.62).

use std::time::Duration;

use expect_test::expect;

use super::*;

#[test]
fn r3_48_a_recorded_child_keeps_its_recorded_id() {
    // The code would compute sub::2 today; cancelling goes to the id on record.
    check(
        r#"
        1 started O v1.0.0 ""
        2 child C sub::17 ""
        3 timer 1s
        "#,
        "timer-fired 3 1s",
        |ctx, _| async move {
            let child = ctx.schedule_sub_orchestration("C", "");
            let timer = ctx.schedule_timer(Duration::from_secs(1));
            ctx.select2(child, timer).await;
            Ok(ctx.schedule_wait("Go").await)
        },
        expect![[r#"
            continue
              4 timer-fired 3 1s
              5 wait Go
              6 child-cancelled 2 dropped_future
            actions: wait 5
            cancelled children: sub::17
        "#]],
    );
}

#[test]
fn r3_49_r4_45_a_recorded_dequeue_is_polled_at_once_a_recorded_wait_is_not() {
    check(
        r#"
        1 started O v1.0.0 ""
        2 queue q "m"
        3 dequeue q
        4 activity A "m"
        5 wait Go
        "#,
        "",
        |ctx, _| async move {
            let message = ctx.dequeue_event("q").await;
            let activity = ctx.schedule_activity("A", message);
            let wait = ctx.schedule_wait("Go");
            let _ = ctx.join2(activity, wait).await;
            Ok(String::new())
        },
        expect![[r#"
            continue
        "#]],
    );
}

#[test]
fn r3_50_notes_must_match_if_an_action_is_waiting() {
    let waits = |ctx: OrchestrationContext, _| async move { Ok(ctx.schedule_wait("Go").await) };
    for (event, expected) in [
        (
            "2 status s",
            expect![[r#"
                failed nondeterminism: custom status mismatch: action=WaitExternal { scheduling_event_id: 0, name: "Go" } vs event=CustomStatusUpdated { status: Some("s") }
            "#]],
        ),
        (
            "2 set k v 0s",
            expect![[r#"
                failed nondeterminism: kv set mismatch: action=WaitExternal { scheduling_event_id: 0, name: "Go" } vs event=KeyValueSet { key: "k", value: "v", last_updated_at_ms: 1000000 }
            "#]],
        ),
        (
            "2 clear k",
            expect![[r#"
                failed nondeterminism: kv clear mismatch: action=WaitExternal { scheduling_event_id: 0, name: "Go" } vs event=KeyValueCleared { key: "k" }
            "#]],
        ),
        (
            "2 clear-all",
            expect![[r#"
                failed nondeterminism: kv clear_all mismatch: action=WaitExternal { scheduling_event_id: 0, name: "Go" } vs event=KeyValuesCleared
            "#]],
        ),
    ] {
        check(&format!("1 started O v1.0.0 \"\"\n{event}"), "", waits, expected);
    }
}

#[test]
fn r3_50_notes_are_accepted_if_no_action_is_waiting() {
    check(
        r#"
        1 started O v1.0.0 ""
        2 wait Go
        3 status s
        4 set k v 0s
        5 clear k
        6 clear-all
        "#,
        r#"raised Go "x""#,
        |ctx, _| async move { Ok(ctx.schedule_wait("Go").await) },
        expect![[r#"
            completed "x"
              7 raised Go "x"
        "#]],
    );
}

#[test]
fn r3_51_clears_match_in_any_order_within_their_run() {
    check(
        r#"
        kv a 1 @1
        kv b 1 @1
        kv c 1 @1
        1 started O v1.0.0 ""
        2 clear c
        3 clear a
        4 clear b
        5 wait Go
        "#,
        "",
        |ctx, _| async move {
            ctx.prune_kv_values_updated_before(2);
            Ok(ctx.schedule_wait("Go").await)
        },
        expect![[r#"
            continue
        "#]],
    );
    // Beyond the run of clears they do not.
    check(
        r#"
        1 started O v1.0.0 ""
        2 clear b
        3 clear a
        "#,
        "",
        |ctx, _| async move {
            ctx.clear_kv_value("a");
            ctx.set_custom_status("between");
            ctx.clear_kv_value("b");
            Ok(ctx.schedule_wait("Go").await)
        },
        expect![[r#"
            failed nondeterminism: kv clear mismatch: action=ClearKeyValue { key: "a" } vs event=KeyValueCleared { key: "b" }
        "#]],
    );
}

#[test]
fn r3_52_status_and_values_change_at_the_call() {
    check(
        r#"1 started O v1.0.0 """#,
        "",
        |ctx, _| async move {
            ctx.set_custom_status("half");
            ctx.set_kv_value("k", "v");
            let seen = format!("{:?} {:?}", ctx.get_custom_status(), ctx.get_kv_value("k"));
            ctx.clear_kv_value("k");
            ctx.reset_custom_status();
            let after = format!("{:?} {:?}", ctx.get_custom_status(), ctx.get_kv_value("k"));
            Ok(format!("{seen}, then {after}"))
        },
        expect![[r#"
            completed "Some(\"half\") Some(\"v\"), then None None"
              2 status "half"
              3 set k "v" 0s
              4 clear k
              5 status-reset
            actions: status, set k, clear k, status
        "#]],
    );
}

async fn a_and_b(ctx: OrchestrationContext, _: String) -> Result<String, String> {
    let (a, b) = (ctx.schedule_activity("A", ""), ctx.schedule_timer(Duration::from_secs(1)));
    let (a, ()) = ctx.join2(a, b).await;
    a
}

#[test]
fn r3_53_a_recorded_completion_of_nothing_open() {
    check(
        r#"
        1 started O v1.0.0 ""
        2 activity A ""
        3 timer 1s
        4 activity-completed 2 "a"
        5 activity-completed 2 "again"
        "#,
        "",
        a_and_b,
        expect![[r#"
            failed nondeterminism: completion without open schedule
        "#]],
    );
    check(
        r#"
        1 started O v1.0.0 ""
        2 activity A ""
        3 timer 1s
        4 timer-fired 9 1s
        "#,
        "",
        a_and_b,
        expect![[r#"
            failed nondeterminism: completion without open schedule
        "#]],
    );
}

#[test]
fn r3_54_a_recorded_completion_of_another_kind() {
    check(
        r#"
        1 started O v1.0.0 ""
        2 activity A ""
        3 timer 1s
        4 activity-completed 3 "a"
        "#,
        "",
        a_and_b,
        expect![[r#"
            failed nondeterminism: completion kind mismatch: expected activity
        "#]],
    );
    // Other kinds are taken, and never seen by the code.
    check(
        r#"
        1 started O v1.0.0 ""
        2 activity A ""
        3 timer 1s
        4 timer-fired 2 1s
        5 timer-fired 3 1s
        "#,
        "",
        a_and_b,
        expect![[r#"
            continue
        "#]],
    );
}

#[test]
fn r3_55_r2_84_a_failure_is_its_display_message() {
    check(
        r#"
        1 started O v1.0.0 ""
        2 activity A ""
        3 child C sub::3 ""
        4 activity-failed 2 "boom"
        5 child-failed 3 cancelled "enough"
        "#,
        "",
        |ctx, _| async move {
            let activity = ctx.schedule_activity("A", "");
            let child = ctx.schedule_sub_orchestration("C", "");
            Ok(format!("{:?}", ctx.join2(activity, child).await))
        },
        expect![[r#"
            completed "(Err(\"boom\"), Err(\"canceled: enough\"))"
        "#]],
    );
}

#[test]
fn r3_56_a_completion_that_names_no_schedule_is_ignored() {
    check(
        r#"
        1 started O v1.0.0 ""
        2 activity A ""
        3 timer 1s
        4 activity-completed - "a"
        5 timer-fired - 1s
        "#,
        "",
        a_and_b,
        expect![[r#"
            continue
        "#]],
    );
}

#[test]
fn r3_60_requests_and_breadcrumbs_on_work_change_nothing_for_the_code() {
    check(
        r#"
        1 started O v1.0.0 ""
        2 activity A ""
        3 child C sub::3 ""
        4 activity-cancelled 2 "not dropped"
        5 child-cancelled 3 "not dropped"
        "#,
        r#"
        activity-completed 2 "a"
        child-completed 3 "c"
        "#,
        |ctx, _| async move {
            let activity = ctx.schedule_activity("A", "");
            let child = ctx.schedule_sub_orchestration("C", "");
            Ok(format!("{:?}", ctx.join2(activity, child).await))
        },
        expect![[r#"
            completed "(Ok(\"a\"), Ok(\"c\"))"
              6 activity-completed 2 "a"
              7 child-completed 3 "c"
        "#]],
    );
}

#[test]
fn r3_61_a_completion_may_follow_a_cancellation() {
    check(
        r#"
        1 started O v1.0.0 ""
        2 activity A ""
        3 timer 1s
        4 timer-fired 3 1s
        5 wait Go
        6 activity-cancelled 2 dropped_future
        "#,
        r#"
        activity-completed 2 "late"
        raised Go "x"
        "#,
        |ctx, _| async move {
            let activity = ctx.schedule_activity("A", "");
            let timer = ctx.schedule_timer(Duration::from_secs(1));
            ctx.select2(activity, timer).await;
            Ok(ctx.schedule_wait("Go").await)
        },
        expect![[r#"
            completed "x"
              7 activity-completed 2 "late"
              8 raised Go "x"
        "#]],
    );
}

#[test]
fn r3_62_a_schedule_recorded_twice_needs_two_actions() {
    check(
        r#"
        1 started O v1.0.0 ""
        2 activity A ""
        2 activity A ""
        "#,
        "",
        |ctx, _| async move { ctx.schedule_activity("A", "").await },
        expect![[r#"
            failed nondeterminism: history schedule but no emitted action
        "#]],
    );
}
