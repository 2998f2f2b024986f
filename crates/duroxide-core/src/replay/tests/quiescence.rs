//! New work and the rounds that follow it (R3.63 – R3.68), system calls answered in the turn (R4.95).

use std::time::Duration;

use expect_test::expect;

use super::*;

#[test]
fn r3_63_the_last_completion_is_polled_too() {
    check(
        r#"
        1 started O v1.0.0 ""
        2 activity A ""
        3 activity-completed 2 "a"
        "#,
        "",
        |ctx, _| async move { ctx.schedule_activity("A", "").await },
        expect![[r#"
            completed "a"
        "#]],
    );
}

#[test]
fn r3_65_r2_16_new_actions_get_the_next_ids() {
    check(
        r#"
        exec 3
        1 started O v1.0.0 ""
        "#,
        "",
        |ctx, _| async move {
            let activity = ctx.schedule_activity("A", "in");
            let child = ctx.schedule_sub_orchestration("C", "in");
            let chosen = ctx.schedule_sub_orchestration_with_id("C", "mine", "in");
            ctx.schedule_orchestration("D", "d", "in");
            let wait = ctx.schedule_wait("Go");
            let dequeue = ctx.dequeue_event("q");
            let results = ctx.join3(activity, child, chosen);
            let _ = ctx.join3(results, wait, dequeue).await;
            Ok(String::new())
        },
        expect![[r#"
            continue
              2 activity A "in"
              3 child C sub::3_3 "in"
              4 child C mine "in"
              5 detached D d "in"
              6 wait Go
              7 dequeue q
            actions: activity 2, child 3 sub::3_3, child 4 mine, detached 5, wait 6, dequeue 7
        "#]],
    );
}

#[test]
fn r3_65_a_continue_as_new_action_is_no_event() {
    check(
        r#"1 started O v1.0.0 """#,
        "",
        |ctx, _| async move {
            let next = ctx.continue_as_new("next");
            ctx.set_custom_status("after");
            next.await
        },
        expect![[r#"
            continue-as-new "next"
              2 status "after"
            actions: continue-as-new, status
        "#]],
    );
}

#[test]
fn r3_66_r4_45_a_buffered_message_is_read_in_the_turn_that_asks() {
    check(
        r#"1 started O v1.0.0 """#,
        r#"
        queue q "m1"
        queue q "m2"
        "#,
        |ctx, _| async move {
            let first = ctx.dequeue_event("q").await;
            ctx.set_custom_status(&first);
            let second = ctx.dequeue_event("q").await;
            ctx.schedule_activity("A", first + &second).await
        },
        expect![[r#"
            continue
              2 queue q "m1"
              3 queue q "m2"
              4 dequeue q
              5 status "m1"
              6 dequeue q
              7 activity A "m1m2"
            actions: dequeue 4, status, dequeue 6, activity 7
        "#]],
    );
}

#[test]
fn r3_67_l10_rounds_that_read_messages_are_not_limited() {
    let messages: String = (0..500).map(|n| format!("queue q m{n}\n")).collect();
    let reads_all = code(|ctx: OrchestrationContext, _| async move {
        let mut read = 0;
        while read < 500 {
            assert_eq!(ctx.dequeue_event("q").await, format!("m{read}"));
            read += 1;
        }
        Ok(read.to_string())
    });
    let story = Story::read("1 started O v1.0.0 \"\"");
    let (engine, result) = run_engine(&story, &messages, reads_all);
    assert_eq!(notation::result(&result), "completed \"500\"");
    assert_eq!(engine.history_delta().len(), 1000);
}

#[test]
fn r3_67_l10_rounds_that_read_beside_a_held_dequeue_are_not_limited() {
    // Each round gives up a dequeue while `held` could read: the engine polls once more in case.
    let messages: String = (0..300).map(|n| format!("queue q m{n}\n")).collect();
    let reads_all = code(|ctx: OrchestrationContext, _| async move {
        let held = ctx.dequeue_event("held");
        for n in 0..300 {
            let read = ctx.select2(ctx.dequeue_event("q"), ctx.dequeue_event("other")).await;
            assert_eq!(read.into_tuple(), (0, format!("m{n}")));
        }
        Ok(held.await)
    });
    let story = Story::read("1 started O v1.0.0 \"\"");
    let (_, result) = run_engine(&story, &format!("queue held h\n{messages}"), reads_all);
    assert_eq!(notation::result(&result), "completed \"h\"");
}

#[test]
fn r3_67_work_without_end_fails() {
    let greedy = |ctx: OrchestrationContext, _| {
        let mut futures = Vec::new();
        std::future::poll_fn(move |_| {
            futures.push(ctx.schedule_activity("A", ""));
            std::task::Poll::Pending
        })
    };
    let story = Story::read("stamp 0.1.32\n1 started O v1.0.0 \"\"");
    let (engine, result) = run_engine(&story, "", code(greedy));
    assert_eq!(engine.pending_actions().len(), 101);
    expect!["failed infrastructure quiescence_loop: orchestration scheduled new work in 100 polls without any of it resolving"].assert_eq(&notation::result(&result));
}

#[test]
fn r3_67_dequeues_without_end_fail() {
    // `held` could be read but is not; giving up dequeues that hold no place frees none.
    let greedy = |ctx: OrchestrationContext, _| {
        let held = ctx.dequeue_event("held");
        std::future::poll_fn(move |_| {
            let _ = &held;
            drop(ctx.dequeue_event("q"));
            std::task::Poll::Pending
        })
    };
    let story = Story::read("stamp 0.1.32\n1 started O v1.0.0 \"\"");
    let (_, result) = run_engine(&story, "queue held h", code(greedy));
    expect!["failed infrastructure quiescence_loop: orchestration scheduled new work in 100 polls without any of it resolving"].assert_eq(&notation::result(&result));
}

#[test]
fn r3_67_code_that_wakes_itself_without_end_fails() {
    // Whether or not it asks for more each time.
    for asks in [false, true] {
        let restless = move |ctx: OrchestrationContext, _| {
            let mut futures = vec![ctx.schedule_activity("A", "")];
            std::future::poll_fn(move |cx| {
                if asks && futures.len() < 1000 {
                    futures.push(ctx.schedule_activity("A", ""));
                }
                cx.waker().wake_by_ref();
                std::task::Poll::Pending
            })
        };
        let story = Story::read("1 started O v1.0.0 \"\"");
        let (_, result) = run_engine(&story, "", code(restless));
        expect!["failed infrastructure quiescence_loop: orchestration woke itself in 100000 polls without any durable result"].assert_eq(&notation::result(&result));
    }
}

#[test]
fn r3_68_code_is_polled_when_it_was_woken_and_not_else() {
    assert_eq!(polls_of_a_first_turn("0.2.0"), 1);
    assert_eq!(polls_of_a_first_turn("0.1.32"), 2, "older executions: once more after scheduling");
}

fn polls_of_a_first_turn(stamp: &str) -> usize {
    let polls = Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let counted = polls.clone();
    let counts = code(move |ctx: OrchestrationContext, _| {
        let (counted, mut activity) = (counted.clone(), ctx.schedule_activity("A", ""));
        std::future::poll_fn(move |cx| {
            counted.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            std::pin::Pin::new(&mut activity).poll(cx)
        })
    });
    run_engine(&Story::read(&format!("stamp {stamp}\n1 started O v1.0.0 \"\"")), "", counts);
    polls.load(std::sync::atomic::Ordering::Relaxed)
}

#[test]
fn r4_95_system_calls_are_answered_in_the_turn() {
    check_turn(
        "system-calls",
        "start O in",
        |ctx, _| async move {
            let guid = ctx.new_guid().await?;
            let now = ctx.utc_now().await?.duration_since(std::time::UNIX_EPOCH).unwrap();
            ctx.schedule_activity(guid, now.as_millis().to_string()).await
        },
        expect![[r#"
            running
              1 started O v1.0.0 "in"
              2 activity __duroxide_syscall:new_guid ""
              3 activity-completed 2 "guid-1"
              4 activity __duroxide_syscall:utc_now_ms ""
              5 activity-completed 4 "1000000"
              6 activity guid-1 "1000000"
            worker: run 6 guid-1 "1000000"
        "#]],
    );
}

#[test]
fn r4_95_each_answer_is_seen_alone() {
    // As in replay: the code is polled after every completion, in order of the calls.
    check_turn(
        "system-calls",
        "start O in",
        |ctx, _| async move {
            let (first, second) = (ctx.new_guid(), ctx.new_guid());
            ctx.select2(second, first).await;
            ctx.schedule_activity("after the race", "").await
        },
        expect![[r#"
            running
              1 started O v1.0.0 "in"
              2 activity __duroxide_syscall:new_guid ""
              3 activity __duroxide_syscall:new_guid ""
              4 activity-completed 2 "guid-1"
              5 activity after the race ""
              6 activity-completed 3 "guid-2"
              7 activity-cancelled 3 dropped_future
            worker: run 5 after the race ""
            cancelled activities: 3
        "#]],
    );
}

#[test]
fn r4_95_a_dequeue_recorded_before_an_answer_is_read_before_it() {
    check_turn(
        "system-calls",
        r#"
        start O in
        queue q "m"
        "#,
        |ctx, _| async move {
            let guid = async {
                ctx.new_guid().await?;
                ctx.schedule_activity("after the guid", "").await
            };
            let message = async {
                ctx.dequeue_event("q").await;
                ctx.schedule_activity("after the message", "").await
            };
            let (a, b) = ctx.join2(guid, message).await;
            Ok(a? + &b?)
        },
        expect![[r#"
            running
              1 started O v1.0.0 "in"
              2 queue q "m"
              3 activity __duroxide_syscall:new_guid ""
              4 dequeue q
              5 activity after the message ""
              6 activity-completed 3 "guid-1"
              7 activity after the guid ""
            worker: run 5 after the message ""
            worker: run 7 after the guid ""
        "#]],
    );
}

#[test]
fn r4_95_a_dequeue_between_two_answers_is_read_between_them() {
    check_turn(
        "system-calls",
        r#"
        start O in
        queue q "m"
        "#,
        |ctx, _| async move {
            let (first, second) = (ctx.new_guid(), ctx.new_guid());
            first.await?;
            let winner = ctx.select2(second, ctx.dequeue_event("q")).await;
            ctx.schedule_activity(format!("{winner:?}"), "").await
        },
        expect![[r#"
            running
              1 started O v1.0.0 "in"
              2 queue q "m"
              3 activity __duroxide_syscall:new_guid ""
              4 activity __duroxide_syscall:new_guid ""
              5 activity-completed 3 "guid-1"
              6 dequeue q
              7 activity Second("m") ""
              8 activity-completed 4 "guid-2"
              9 activity-cancelled 4 dropped_future
            worker: run 7 Second("m") ""
            cancelled activities: 4
        "#]],
    );
}

#[test]
fn r4_95_no_more_than_a_thousand_answers_a_turn() {
    let story = Story::read("system-calls\n1 started O v1.0.0 \"\"");
    let loops = code(|ctx: OrchestrationContext, _| async move {
        for _ in 0..1001 {
            ctx.new_guid().await?;
        }
        Ok(String::new())
    });
    let (engine, result) = run_engine(&story, "", loops);
    assert!(matches!(result, TurnResult::Continue));
    assert_eq!(engine.history_delta().len(), 2001);
    let left: Vec<String> = engine.pending_actions().iter().map(notation::action).collect();
    assert_eq!(left, ["activity 2002"]);
}

#[test]
fn r4_95_without_a_source_and_for_other_instances_values_a_worker_answers() {
    check_turn(
        "system-calls",
        "start O in",
        |ctx, _| async move {
            let value = ctx.get_kv_value_from_instance("other", "k").await?;
            Ok(value.unwrap_or_default())
        },
        expect![[r#"
            running
              1 started O v1.0.0 "in"
              2 activity __duroxide_syscall:get_kv_value "{\"instance_id\":\"other\",\"key\":\"k\"}"
            worker: run 2 __duroxide_syscall:get_kv_value "{\"instance_id\":\"other\",\"key\":\"k\"}"
        "#]],
    );
    check_turn(
        "",
        "start O in",
        |ctx, _| async move { ctx.new_guid().await },
        expect![[r#"
            running
              1 started O v1.0.0 "in"
              2 activity __duroxide_syscall:new_guid ""
            worker: run 2 __duroxide_syscall:new_guid ""
        "#]],
    );
}

#[test]
fn r4_95_an_unheard_answer_is_recorded_all_the_same() {
    check_turn(
        "system-calls",
        "start O in",
        |ctx, _| async move {
            let (first, second) = (ctx.new_guid(), ctx.new_guid());
            first.await?;
            drop(second);
            ctx.schedule_timer(Duration::from_secs(1)).await;
            Ok(String::new())
        },
        expect![[r#"
            running
              1 started O v1.0.0 "in"
              2 activity __duroxide_syscall:new_guid ""
              3 activity __duroxide_syscall:new_guid ""
              4 activity-completed 2 "guid-1"
              5 timer 1s
              6 activity-completed 3 "guid-2"
              7 activity-cancelled 3 dropped_future
            orch: timer-fired 5 1s
            cancelled activities: 3
        "#]],
    );
}
