//! Before and around the code: shape of the engine, checks, replaying flag (§3.1, §3.2, §3.4, R3.80).

use std::sync::atomic::{AtomicUsize, Ordering};

use expect_test::expect;

use super::*;

#[test]
fn r3_1_r3_2_r12_10_the_engine_before_and_after_a_turn() {
    let story = Story::read("1 started O v1.0.0 in");
    let engine = engine(&story.settings, story.events.clone());
    assert!(!engine.made_progress() && engine.history_delta().is_empty());
    let handler = code(|ctx, _| async move { ctx.schedule_activity("A", "").await });
    let (engine, _) = run_engine(&story, "", handler);
    assert!(engine.made_progress());
    let full: Vec<Event> = story.events.iter().chain(engine.history_delta()).cloned().collect();
    assert_eq!(engine.final_history(), full);
}

#[test]
fn r3_3_r12_11_results_as_debug_text() {
    let unread = Some(vec![("q".to_owned(), "m".to_owned())]);
    let results = [
        TurnResult::Continue,
        TurnResult::Completed("out".into()),
        TurnResult::Failed(ErrorDetails::nondeterminism("x")),
        TurnResult::ContinueAsNew {
            input: "in".into(),
            version: None,
            unconsumed_queue_arrivals: unread,
        },
        TurnResult::Cancelled("why".into()),
    ];
    let text: String = results.iter().map(|result| format!("{result:?}\n")).collect();
    expect![[r#"
        Continue
        Completed("out")
        Failed(Configuration { kind: Nondeterminism, resource: "", message: Some("x") })
        ContinueAsNew { input: "in", version: None, unconsumed_queue_arrivals: Some([("q", "m")]) }
        Cancelled("why")
    "#]]
    .assert_eq(&text);
}

#[test]
fn r3_4_r3_6_the_body_is_entered_once_and_polled_often() {
    static ENTERED: AtomicUsize = AtomicUsize::new(0);
    check(
        r#"
        persisted 1
        1 started O v1.0.0 ""
        2 activity A ""
        3 activity-completed 2 "a"
        4 activity B ""
        5 activity-completed 4 "b"
        "#,
        "",
        |ctx, _| async move {
            ENTERED.fetch_add(1, Ordering::Relaxed);
            let a = ctx.schedule_activity("A", "").await?;
            let b = ctx.schedule_activity("B", "").await?;
            Ok(a + &b)
        },
        expect![[r#"
            completed "ab"
        "#]],
    );
    assert_eq!(ENTERED.load(Ordering::Relaxed), 1);
}

#[test]
fn r3_5_in_older_executions_no_task_is_woken() {
    check(
        r#"
        stamp 0.1.32
        1 started O v1.0.0 ""
        2 activity A ""
        "#,
        "",
        |ctx, _| async move {
            let mut activity = ctx.schedule_activity("A", "");
            std::future::poll_fn(move |cx| {
                cx.waker().wake_by_ref();
                std::pin::Pin::new(&mut activity).poll(cx)
            })
            .await
        },
        expect![[r#"
            continue
        "#]],
    );
}

#[test]
fn r3_10_r3_11_r1_9_actions_are_emitted_at_the_call_in_call_order() {
    check(
        r#"1 started O v1.0.0 """#,
        "",
        |ctx, _| async move {
            let never_polled = ctx.schedule_activity("first", "");
            let timer = ctx.schedule_timer(std::time::Duration::from_secs(60));
            ctx.set_custom_status("third");
            let wait = ctx.schedule_wait("Fourth");
            wait.await;
            drop((never_polled, timer));
            Ok(String::new())
        },
        expect![[r#"
            continue
              2 activity first ""
              3 timer 60s
              4 status "third"
              5 wait Fourth
            actions: activity 2, timer 3, status, wait 5
        "#]],
    );
}

#[test]
fn r3_12_every_action_takes_a_token() {
    // The token shows in the placeholder of a child (R2.103), and that in a mismatch.
    check(
        r#"
        1 started O v1.0.0 ""
        2 set k v 0s
        3 status s
        4 activity A ""
        "#,
        "",
        |ctx, _| async move {
            ctx.set_kv_value("k", "v");
            ctx.set_custom_status("s");
            let refused = ctx.schedule_sub_orchestration_with_id("C", "sub::mine", ""); // R4.53
            let child = ctx.schedule_sub_orchestration("C", "");
            ctx.join(vec![refused, child]).await;
            Ok(String::new())
        },
        expect![[r#"
            failed nondeterminism: schedule mismatch: action=StartSubOrchestration { scheduling_event_id: 0, name: "C", version: None, instance: "sub::pending_4", input: "" } vs event=ActivityScheduled { name: "A", input: "", session_id: None, tag: None }
        "#]],
    );
}

#[test]
fn r3_31_an_abort_error_comes_before_everything() {
    check(
        r#"1 completed "out""#,
        r#"activity-completed 2 "a""#,
        |_, _| async { panic!("the code is not run") },
        expect![[r#"
            failed nondeterminism: no matching schedule for completion id=2
        "#]],
    );
}

#[test]
fn r3_32_an_ended_execution_is_left_alone() {
    check(
        r#"
        1 started O v1.0.0 ""
        2 activity A ""
        3 completed "out"
        4 activity-cancelled 2 orchestration_terminal_completed
        "#,
        r#"activity-completed 2 "late""#,
        |_, _| async { panic!("the code is not run") },
        expect![[r#"
            continue
              5 activity-completed 2 "late"
        "#]],
    );
}

#[test]
fn r3_33_an_empty_history_is_corrupted() {
    check(
        "",
        "",
        |_, _| async { Ok(String::new()) },
        expect![[r#"
            failed nondeterminism: corrupted history: empty
        "#]],
    );
}

#[test]
fn r3_34_a_history_begins_with_its_start() {
    check(
        r#"1 activity A """#,
        "",
        |_, _| async { Ok(String::new()) },
        expect![[r#"
            failed nondeterminism: corrupted history: first event must be OrchestrationStarted
        "#]],
    );
    check(
        "",
        "raised Go x",
        |_, _| async { Ok(String::new()) },
        expect![[r#"
            failed nondeterminism: corrupted history: first event must be OrchestrationStarted
              1 raised Go "x"
        "#]],
    );
}

#[test]
fn r3_36_status_and_values_are_there_before_the_first_poll() {
    check(
        r#"
        kv k "from before" 0s
        1 started O v1.0.0 "" status="50%"
        "#,
        "",
        |ctx, _| async move { Ok(format!("{:?} {:?}", ctx.get_custom_status(), ctx.get_kv_value("k"))) },
        expect![[r#"
            completed "Some(\"50%\") Some(\"from before\")"
        "#]],
    );
}

/// Says at each step whether it is replayed.
async fn tell_replaying(ctx: OrchestrationContext, _: String) -> Result<String, String> {
    let mut said = ctx.is_replaying().to_string();
    for activity in ["A", "B"] {
        ctx.schedule_activity(activity, "").await?;
        said += &format!(" {}", ctx.is_replaying());
    }
    Ok(said)
}

#[test]
fn r3_80_r4_2_replaying_until_the_first_event_that_was_not_persisted() {
    let history = |persisted: usize| {
        format!(
            r#"
            persisted {persisted}
            1 started O v1.0.0 ""
            2 activity A ""
            3 activity-completed 2 "a"
            4 activity B ""
            5 activity-completed 4 "b"
            "#
        )
    };
    check(
        &history(0),
        "",
        tell_replaying,
        expect![[r#"
            completed "false false false"
        "#]],
    );
    check(
        &history(2),
        "",
        tell_replaying,
        expect![[r#"
            completed "true false false"
        "#]],
    );
    check(
        &history(4),
        "",
        tell_replaying,
        expect![[r#"
            completed "true true false"
        "#]],
    );
    // Whatever is polled after the loop is new.
    check(
        &history(5),
        "",
        tell_replaying,
        expect![[r#"
            completed "true true false"
        "#]],
    );
}
