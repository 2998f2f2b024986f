//! Recorded events against what the code does (§3.5).

use std::time::Duration;

use expect_test::expect;

use super::*;

#[test]
fn r3_40_r3_41_r3_42_the_code_is_polled_before_the_event_that_follows_a_completion() {
    // Had it been polled later, the second schedule would find no action.
    check(
        r#"
        1 started O v1.0.0 ""
        2 activity A ""
        3 activity-completed 2 "a"
        4 activity B "a"
        "#,
        r#"activity-completed 4 "b""#,
        |ctx, _| async move {
            let a = ctx.schedule_activity("A", "").await?;
            ctx.schedule_activity("B", a).await
        },
        expect![[r#"
            completed "b"
              5 activity-completed 4 "b"
        "#]],
    );
}

#[test]
fn r3_41_events_after_the_return_are_not_applied() {
    check(
        r#"
        1 started O v1.0.0 ""
        2 activity A ""
        "#,
        r#"
        activity-completed 2 "a"
        raised Go "x"
        "#,
        |ctx, _| async move { ctx.schedule_activity("A", "").await },
        expect![[r#"
            completed "a"
              3 activity-completed 2 "a"
              4 raised Go "x"
        "#]],
    );
}

const WENT_ON: &str = r#"
    1 started O v1.0.0 ""
    2 activity A ""
    3 activity-completed 2 "a"
    4 status "after a"
    5 activity B ""
"#;

async fn only_a(ctx: OrchestrationContext, _: String) -> Result<String, String> {
    ctx.schedule_activity("A", "").await
}

#[test]
fn r3_43_l22_returning_before_recorded_work_is_nondeterminism() {
    check(
        WENT_ON,
        "",
        only_a,
        expect![[r#"
            failed nondeterminism: code returned before history was consumed: next event=ActivityScheduled { name: "B", input: "", session_id: None, tag: None }
        "#]],
    );
    check(
        r#"
        1 started O v1.0.0 ""
        2 activity A ""
        3 activity-completed 2 "a"
        4 detached D d ""
        "#,
        "",
        only_a,
        expect![[r#"
            failed nondeterminism: code returned before history was consumed: next event=OrchestrationChained { name: "D", instance: "d", input: "" }
        "#]],
    );
}

#[test]
fn r3_43_l22_completions_and_notes_may_be_left_over() {
    check(
        r#"
        1 started O v1.0.0 ""
        2 activity A ""
        3 timer 1s
        4 activity-completed 2 "a"
        5 timer-fired 3 1s
        6 status "after a"
        7 raised Go "x"
        "#,
        "",
        |ctx, _| async move {
            let activity = ctx.schedule_activity("A", "");
            let _timer = ctx.schedule_timer(Duration::from_secs(1));
            activity.await
        },
        expect![[r#"
            completed "a"
        "#]],
    );
}

#[test]
fn r3_43_l22_older_executions_accept_an_early_return() {
    check(
        &format!("stamp 0.1.32\n{WENT_ON}"),
        "",
        only_a,
        expect![[r#"
            completed "a"
        "#]],
    );
}

#[test]
fn r3_43_l22_what_came_in_this_turn_is_no_early_return() {
    check(
        r#"
        persisted 2
        1 started O v1.0.0 ""
        2 activity A ""
        3 activity-completed 2 "a"
        4 activity B ""
        "#,
        "",
        only_a,
        expect![[r#"
            completed "a"
        "#]],
    );
}

#[test]
fn r3_44_a_recorded_schedule_without_an_action() {
    check(
        r#"
        1 started O v1.0.0 ""
        2 activity A ""
        3 timer 1s
        "#,
        "",
        only_a,
        expect![[r#"
            failed nondeterminism: history schedule but no emitted action
        "#]],
    );
}

#[test]
fn r3_45_a_recorded_detached_start_without_an_action() {
    check(
        r#"
        1 started O v1.0.0 ""
        2 activity A ""
        3 detached D d ""
        "#,
        "",
        only_a,
        expect![[r#"
            failed nondeterminism: history OrchestrationChained but no emitted action
        "#]],
    );
}

#[test]
fn r3_46_another_action_than_recorded() {
    check(
        r#"
        1 started O v1.0.0 ""
        2 timer 1s
        "#,
        "",
        only_a,
        expect![[r#"
            failed nondeterminism: schedule mismatch: action=CallActivity { scheduling_event_id: 0, name: "A", input: "", session_id: None, tag: None } vs event=TimerCreated { fire_at_ms: 1001000 }
        "#]],
    );
    check(
        r#"
        1 started O v1.0.0 ""
        2 detached D d ""
        "#,
        "",
        only_a,
        expect![[r#"
            failed nondeterminism: schedule mismatch: action=CallActivity { scheduling_event_id: 0, name: "A", input: "", session_id: None, tag: None } vs event=OrchestrationChained { name: "D", instance: "d", input: "" }
        "#]],
    );
}

/// One line per event: whether the code still fits a history of it alone.
fn compared<F, Fut>(stamp: &str, handler: F, events: &[&str]) -> String
where
    F: Fn(OrchestrationContext, String) -> Fut + Send + Sync + Copy + 'static,
    Fut: Future<Output = Result<String, String>> + Send + 'static,
{
    let mut text = String::new();
    for event in events {
        let story = format!("stamp {stamp}\n1 started O v1.0.0 \"\"\n2 {event}");
        let (_, result) = run_engine(&Story::read(&story), "", code(handler));
        let fits = if matches!(result, TurnResult::Continue) { "fits" } else { "differs" };
        writeln!(text, "{fits:<7} {event}").unwrap();
    }
    text
}

#[test]
fn r3_47_what_is_compared_activities_and_timers() {
    let text = compared(
        "0.2.0",
        |ctx, _| async move { ctx.schedule_activity_on_session("A", "in", "s").with_tag("t").await },
        &[
            "activity A in on=s tag=t",
            "activity B in on=s tag=t",
            "activity A on on=s tag=t",
            "activity A in on=x tag=t",
            "activity A in tag=t",
            "activity A in on=s tag=x",
            "activity A in on=s",
        ],
    );
    expect![[r#"
        fits    activity A in on=s tag=t
        differs activity B in on=s tag=t
        differs activity A on on=s tag=t
        differs activity A in on=x tag=t
        differs activity A in tag=t
        differs activity A in on=s tag=x
        differs activity A in on=s
    "#]]
    .assert_eq(&text);
    let text = compared(
        "0.2.0",
        |ctx, _| async move {
            ctx.schedule_timer(Duration::from_secs(1)).await;
            Ok(String::new())
        },
        &["timer 1s", "timer 99s"],
    );
    expect![[r#"
        fits    timer 1s
        fits    timer 99s
    "#]]
    .assert_eq(&text);
}

#[test]
fn r3_47_what_is_compared_waits_and_dequeues() {
    let waits = |ctx: OrchestrationContext, _| async move { Ok(ctx.schedule_wait("Go").await) };
    let text = compared("0.2.0", waits, &["wait Go", "wait Stop", "dequeue Go"]);
    expect![[r#"
        fits    wait Go
        differs wait Stop
        differs dequeue Go
    "#]]
    .assert_eq(&text);
    let dequeues = |ctx: OrchestrationContext, _| async move { Ok(ctx.dequeue_event("q").await) };
    let text = compared("0.2.0", dequeues, &["dequeue q", "dequeue r", "wait q"]);
    expect![[r#"
        fits    dequeue q
        differs dequeue r
        differs wait q
    "#]]
    .assert_eq(&text);
}

#[test]
fn r3_47_l22_what_is_compared_children() {
    let auto = |ctx: OrchestrationContext, _| async move {
        ctx.schedule_sub_orchestration_versioned("C", Some("2.0.0".into()), "in").await
    };
    let events = [
        "child C sub::2 in",
        "child C sub::9 in",
        "child D sub::2 in",
        "child C sub::2 on",
        "child C mine in",
    ];
    expect![[r#"
        fits    child C sub::2 in
        fits    child C sub::9 in
        differs child D sub::2 in
        differs child C sub::2 on
        differs child C mine in
    "#]]
    .assert_eq(&compared("0.2.0", auto, &events));
    expect![[r#"
        fits    child C sub::2 in
        fits    child C sub::9 in
        differs child D sub::2 in
        differs child C sub::2 on
        fits    child C mine in
    "#]]
    .assert_eq(&compared("0.1.32", auto, &events));
    let chosen = |ctx: OrchestrationContext, _| async move {
        ctx.schedule_sub_orchestration_with_id("C", "mine", "in").await
    };
    let events = ["child C mine in", "child C other in", "child C sub::2 in"];
    expect![[r#"
        fits    child C mine in
        differs child C other in
        differs child C sub::2 in
    "#]]
    .assert_eq(&compared("0.2.0", chosen, &events));
    expect![[r#"
        fits    child C mine in
        fits    child C other in
        fits    child C sub::2 in
    "#]]
    .assert_eq(&compared("0.1.32", chosen, &events));
}

#[test]
fn r3_47_what_is_compared_notes() {
    let text = compared(
        "0.2.0",
        |ctx, _| async move {
            ctx.schedule_orchestration_versioned("D", Some("2.0.0".into()), "d", "in");
            Ok(ctx.schedule_wait("Go").await)
        },
        &["detached D d in", "detached E d in", "detached D e in", "detached D d on"],
    );
    expect![[r#"
        fits    detached D d in
        differs detached E d in
        differs detached D e in
        differs detached D d on
    "#]]
    .assert_eq(&text);
    let notes = |ctx: OrchestrationContext, _| async move {
        ctx.set_custom_status("1%");
        Ok(ctx.schedule_wait("Go").await)
    };
    let text = compared("0.2.0", notes, &["status 1%", "status 2%", "status-reset", "set k v 0s"]);
    expect![[r#"
        fits    status 1%
        fits    status 2%
        fits    status-reset
        differs set k v 0s
    "#]]
    .assert_eq(&text);
    let sets = |ctx: OrchestrationContext, _| async move {
        ctx.set_kv_value("k", "v");
        Ok(ctx.schedule_wait("Go").await)
    };
    let text = compared("0.2.0", sets, &["set k v 0s", "set k v 9s", "set l v 0s", "set k w 0s"]);
    expect![[r#"
        fits    set k v 0s
        fits    set k v 9s
        differs set l v 0s
        differs set k w 0s
    "#]]
    .assert_eq(&text);
    let clears = |ctx: OrchestrationContext, _| async move {
        ctx.clear_kv_value("k");
        Ok(ctx.schedule_wait("Go").await)
    };
    let text = compared("0.2.0", clears, &["clear k", "clear l", "clear-all"]);
    expect![[r#"
        fits    clear k
        differs clear l
        differs clear-all
    "#]]
    .assert_eq(&text);
    let clears_all = |ctx: OrchestrationContext, _| async move {
        ctx.clear_all_kv_values();
        Ok(ctx.schedule_wait("Go").await)
    };
    let text = compared("0.2.0", clears_all, &["clear-all", "clear k", "status x"]);
    expect![[r#"
        fits    clear-all
        differs clear k
        differs status x
    "#]]
    .assert_eq(&text);
}
