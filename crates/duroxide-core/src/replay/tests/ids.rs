//! Event ids (§2.2).

use expect_test::expect;

use super::*;

#[test]
fn r2_10_r2_13_r2_42_order_of_the_ids_of_a_turn() {
    check_turn(
        "system-calls",
        r#"
        start O in
        queue q "m"
        raised Go "x"
        "#,
        |ctx, _| async move {
            let left = ctx.schedule_activity("left running", "");
            drop(ctx.schedule_activity("dropped", ""));
            ctx.new_guid().await?;
            std::mem::forget((left, ctx.schedule_wait("left open")));
            ctx.schedule_orchestration("D", "d", "");
            ctx.dequeue_event("q").await;
            Ok("out".to_owned())
        },
        expect![[r#"
            ended: completed
              1 started O v1.0.0 "in"
              2 queue q "m"
              3 raised Go "x"
              4 activity left running ""
              5 activity dropped ""
              6 activity __duroxide_syscall:new_guid ""
              7 activity-completed 6 "guid-1"
              8 wait left open
              9 detached D d ""
              10 dequeue q
              11 activity-cancelled 5 dropped_future
              12 wait-cancelled 8 orchestration_terminal
              13 completed "out"
              14 activity-cancelled 4 orchestration_terminal_completed
            orch: start d D ""
            cancelled activities: 5 4
        "#]],
    );
}

#[test]
fn r2_11_r2_17_ids_go_on_after_the_last_one_whatever_came_before() {
    let waits = |ctx: OrchestrationContext, _| async move {
        let activity = ctx.schedule_activity("A", "");
        let wait = ctx.schedule_wait("Go");
        Ok(format!("{:?}", ctx.join2(activity, wait).await))
    };
    for history in [
        "1 started O v1.0.0 \"\"\n40 activity A \"\"",
        "0 started O v1.0.0 \"\"\n0 activity A \"\"",
        "9 started O v1.0.0 \"\"\n3 activity A \"\"",
    ] {
        let (engine, result) = run_engine(&Story::read(history), "raised Go x", code(waits));
        assert!(matches!(result, TurnResult::Continue), "{history}");
        let last = Story::read(history).events[1].event_id;
        let ids: Vec<u64> = engine.history_delta().iter().map(|event| event.event_id).collect();
        assert_eq!(ids, [last + 1, last + 2], "{history}");
    }
    check(
        "",
        "queue q m",
        waits,
        expect![[r#"
            failed nondeterminism: corrupted history: first event must be OrchestrationStarted
              1 queue q "m"
        "#]],
    );
}

#[test]
fn r2_12_continue_as_new_leaves_no_gap() {
    check_turn(
        "",
        "start O in",
        |ctx, _| async move {
            ctx.set_custom_status("before");
            drop(ctx.continue_as_new("next"));
            ctx.set_custom_status("after");
            let _open = ctx.schedule_wait("Go");
            ctx.schedule_activity("A", "").await
        },
        expect![[r#"
            ended: continued as new
              1 started O v1.0.0 "in"
              2 status "before"
              3 status "after"
              4 wait Go
              5 activity A ""
              6 wait-cancelled 4 orchestration_terminal
              7 continued "next"
              8 activity-cancelled 5 orchestration_terminal_continued_as_new
            orch: continue O "next" status="after"
            cancelled activities: 5
        "#]],
    );
}

#[test]
fn r2_13_r2_14_a_cancelled_turn_and_a_continued_one() {
    check_turn(
        r#"
        exec 2
        1 started O v1.0.0 ""
        2 wait Go
        3 activity A ""
        "#,
        r#"cancel "enough""#,
        |ctx, _| async move {
            let (wait, activity) = (ctx.schedule_wait("Go"), ctx.schedule_activity("A", ""));
            Ok(format!("{:?}", ctx.join2(wait, activity).await))
        },
        expect![[r#"
            ended: failed
              4 cancel-requested "enough"
              5 wait-cancelled 2 orchestration_terminal
              6 failed canceled: enough
              7 activity-cancelled 3 orchestration_terminal_failed
            cancelled activities: 3
        "#]],
    );
}

#[test]
fn r2_5_r2_6_r2_8_every_event_of_a_turn_has_its_time_and_the_librarys_stamp() {
    let outcome = run_turn(turn(
        &Story::read("now 7s\nexec 3\nsystem-calls"),
        "start O in\nqueue q m",
        code(|ctx, _| async move {
            ctx.new_guid().await?;
            drop(ctx.schedule_activity("A", ""));
            Err("boom".to_owned())
        }),
    ));
    assert_eq!(outcome.events.len(), 7);
    for event in &outcome.events {
        assert_eq!(event.timestamp_ms, notation::NOW_MS + 7000);
        assert_eq!(event.duroxide_version, crate::model::version::BUILD_VERSION);
        assert_eq!((event.instance_id.as_str(), event.execution_id), (INSTANCE, 3));
        assert_ne!(event.event_id, 0);
    }
}

#[test]
fn r2_17_the_last_possible_id_does_not_overflow() {
    let story = Story::read("system-calls\nmax started O v1.0.0 \"\"");
    let greedy = code(|ctx: OrchestrationContext, _| async move {
        let guids = [ctx.new_guid(), ctx.new_guid(), ctx.new_guid()];
        for guid in guids {
            guid.await?;
        }
        ctx.schedule_activity("A", "").await
    });
    let (engine, _) = run_engine(&story, "queue q m", greedy);
    assert!(engine.history_delta().iter().all(|event| event.event_id == u64::MAX));
}
