//! Code and history part: texts (§3.14) and reports (R3.171).

use std::time::Duration;

use expect_test::expect;

use super::*;

/// The report of a turn that diverged, line numbers of this file taken out.
fn report<F, Fut>(history: &str, messages: &str, handler: F) -> DivergenceReport
where
    F: Fn(OrchestrationContext, String) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<String, String>> + Send + 'static,
{
    let outcome = run_turn(turn(&Story::read(history), messages, code(handler)));
    *outcome.divergence.expect("a report")
}

fn without_lines(report: &DivergenceReport) -> String {
    let mut report = report.clone();
    for row in &mut report.rows {
        if let Some(location) = &mut row.location {
            (location.line, location.column) = (0, 0);
        }
    }
    report.to_string()
}

#[test]
fn r3_171_a_report_marks_the_row_and_names_the_line() {
    let line = line!() + 3;
    let report = report(LONG, "", |ctx, _| async move {
        ctx.schedule_activity("A", "").await?;
        let (b, timer) = (ctx.schedule_activity("C", ""), ctx.schedule_timer(Duration::ZERO));
        ctx.select2(b, timer).await;
        Ok(String::new())
    });
    let [agreed, marked] = &report.rows[..] else { panic!("{report:?}") };
    assert!(!agreed.diverges && marked.diverges);
    assert_eq!((agreed.event_id, marked.event_id), (Some(2), Some(4)));
    let location = marked.location.as_ref().unwrap();
    assert_eq!((location.file.as_str(), location.line), (file!(), line));
    assert_eq!(agreed.location.as_ref().unwrap().line, line - 1);
    expect![[r#"
        O 1.0.0 (instance i, execution 1) no longer does what its history says: schedule mismatch: action=CallActivity { scheduling_event_id: 0, name: "C", input: "", session_id: None, tag: None } vs event=ActivityScheduled { name: "B", input: "", session_id: None, tag: None }
              event  history                                                                  code
                  2  ActivityScheduled { name: "A", input: "", session_id: None, tag: None }  the same  at crates/duroxide-core/src/replay/tests/divergences.rs:0:0
          >>>     4  ActivityScheduled { name: "B", input: "", session_id: None, tag: None }  CallActivity { scheduling_event_id: 0, name: "C", input: "", session_id: None, tag: None }  at crates/duroxide-core/src/replay/tests/divergences.rs:0:0
    "#]].assert_eq(&without_lines(&report));
}

const LONG: &str = r#"
    1 started O v1.0.0 ""
    2 activity A ""
    3 activity-completed 2 "a"
    4 activity B ""
    5 timer 1s
"#;

#[test]
fn r3_171_code_that_does_less_than_history() {
    let report = report(LONG, "", |ctx, _| async move {
        ctx.schedule_activity("A", "").await?;
        ctx.schedule_activity("B", "").await
    });
    expect![[r#"
        O 1.0.0 (instance i, execution 1) no longer does what its history says: history schedule but no emitted action
              event  history                                                                  code
                  2  ActivityScheduled { name: "A", input: "", session_id: None, tag: None }  the same  at crates/duroxide-core/src/replay/tests/divergences.rs:0:0
                  4  ActivityScheduled { name: "B", input: "", session_id: None, tag: None }  the same  at crates/duroxide-core/src/replay/tests/divergences.rs:0:0
          >>>     5  TimerCreated { fire_at_ms: 1001000 }                                     (nothing)
    "#]].assert_eq(&without_lines(&report));
}

#[test]
fn r3_171_l22_code_that_returns_early() {
    let report = report(LONG, "", |ctx, _| async move { ctx.schedule_activity("A", "").await });
    expect![[r#"
        O 1.0.0 (instance i, execution 1) no longer does what its history says: code returned before history was consumed: next event=ActivityScheduled { name: "B", input: "", session_id: None, tag: None }
              event  history                                                                  code
                  2  ActivityScheduled { name: "A", input: "", session_id: None, tag: None }  the same  at crates/duroxide-core/src/replay/tests/divergences.rs:0:0
          >>>     4  ActivityScheduled { name: "B", input: "", session_id: None, tag: None }  (nothing)
    "#]].assert_eq(&without_lines(&report));
}

#[test]
fn r3_171_a_drop_that_is_not_repeated() {
    let report = report(
        r#"
        1 started O v1.0.0 ""
        2 activity A ""
        3 timer 1s
        4 timer-fired 3 1s
        5 wait Go
        6 activity-cancelled 2 dropped_future
        "#,
        "",
        |ctx, _| async move {
            let _kept = ctx.schedule_activity("A", "");
            ctx.schedule_timer(Duration::from_secs(1)).await;
            Ok(ctx.schedule_wait("Go").await)
        },
    );
    expect![[r#"
        O 1.0.0 (instance i, execution 1) no longer does what its history says: cancellation mismatch (activities): baseline_dropped_future_cancel_requests={2} ctx_cancelled_in_replayed_segment={}
              event  history                                                                  code
                  2  ActivityScheduled { name: "A", input: "", session_id: None, tag: None }  the same  at crates/duroxide-core/src/replay/tests/divergences.rs:0:0
                  3  TimerCreated { fire_at_ms: 1001000 }                                     the same  at crates/duroxide-core/src/replay/tests/divergences.rs:0:0
                  5  ExternalSubscribed { name: "Go" }                                        the same  at crates/duroxide-core/src/replay/tests/divergences.rs:0:0
          >>>     6  ActivityCancelRequested { reason: "dropped_future" }                     (nothing)
    "#]].assert_eq(&without_lines(&report));
}

#[test]
fn r3_171_only_the_last_steps_are_shown_notes_among_them() {
    let mut history = "kv a 1 @1\n1 started O v1.0.0 \"\"\n2 clear a\n3 status s\n".to_owned();
    for id in 4..20 {
        writeln!(history, "{id} activity A{id} \"\"").unwrap();
    }
    writeln!(history, "20 wait Go").unwrap();
    let report = report(&history, "", |ctx, _| async move {
        ctx.prune_kv_values_updated_before(2);
        ctx.set_custom_status("s");
        let activities: Vec<_> =
            (4..20).map(|n| ctx.schedule_activity(format!("A{n}"), "")).collect();
        ctx.schedule_orchestration("D", "d", "");
        ctx.join(activities).await;
        Ok(String::new())
    });
    let ids: Vec<_> = report.rows.iter().map(|row| row.event_id.unwrap()).collect();
    assert_eq!(ids, [12, 13, 14, 15, 16, 17, 18, 19, 20]);
    // Fewer steps: all are there.
    let report = self::report(
        "kv a 1 @1\n1 started O v1.0.0 \"\"\n2 clear a\n3 status s\n4 wait Go",
        "",
        |ctx, _| async move {
            ctx.prune_kv_values_updated_before(2);
            ctx.set_custom_status("s");
            Ok(ctx.schedule_wait("Stop").await)
        },
    );
    expect![[r#"
        O 1.0.0 (instance i, execution 1) no longer does what its history says: schedule mismatch: action=WaitExternal { scheduling_event_id: 0, name: "Stop" } vs event=ExternalSubscribed { name: "Go" }
              event  history                                    code
                  2  KeyValueCleared { key: "a" }               the same  at crates/duroxide-core/src/replay/tests/divergences.rs:0:0
                  3  CustomStatusUpdated { status: Some("s") }  the same  at crates/duroxide-core/src/replay/tests/divergences.rs:0:0
          >>>     4  ExternalSubscribed { name: "Go" }          WaitExternal { scheduling_event_id: 0, name: "Stop" }  at crates/duroxide-core/src/replay/tests/divergences.rs:0:0
    "#]].assert_eq(&without_lines(&report));
}

/// One situation of the table in §3.14: history, messages.
type Situation = (&'static str, &'static str);

/// Every situation the table names, against code that schedules A and B and waits for both, unless
/// told otherwise by its input.
const TABLE: &[Situation] = &[
    (r#"1 started O v1.0.0 """#, "activity-completed 9 x"),
    ("1 started O v1.0.0 \"\"\n2 activity A \"\"\n3 activity B \"\"", "timer-fired 2 1s"),
    ("1 started O v1.0.0 \"\"\n2 activity A \"\"\n3 activity B \"\"\n4 timer 1s", ""),
    ("1 started O v1.0.0 \"\"\n2 activity A \"\"\n3 activity C \"\"", ""),
    ("1 started O v1.0.0 \"\"\n2 activity A \"\"\n3 activity B \"\"\n4 detached D d \"\"", ""),
    ("1 started O v1.0.0 \"\"\n2 status s", ""),
    ("1 started O v1.0.0 \"\"\n2 set k v 0s", ""),
    ("1 started O v1.0.0 \"\"\n2 clear k", ""),
    ("1 started O v1.0.0 \"\"\n2 clear-all", ""),
    ("1 started O v1.0.0 \"\"\n2 activity A \"\"\n3 activity B \"\"\n4 timer-fired 7 1s", ""),
    ("1 started O v1.0.0 timer\n2 timer 1s\n3 activity-completed 2 x", ""),
    (
        "1 started O v1.0.0 \"\"\n2 activity A \"\"\n3 activity B \"\"\n4 activity-cancelled 3 dropped_future",
        "",
    ),
    (
        "1 started O v1.0.0 \"\"\n2 activity A \"\"\n3 activity B \"\"\n4 child-cancelled 3 dropped_future",
        "",
    ),
    (
        "1 started O v1.0.0 \"\"\n2 activity A \"\"\n3 activity B \"\"\n4 wait-cancelled 3 dropped_future",
        "",
    ),
    (
        "1 started O v1.0.0 \"\"\n2 activity A \"\"\n3 activity B \"\"\n4 dequeue-cancelled 3 dropped_future",
        "",
    ),
    ("", ""),
    ("2 activity A \"\"", ""),
    ("1 started O v1.0.0 return\n2 activity A \"\"", ""),
    // No nondeterminism: more work than history, an early return of an older execution, an event for
    // another execution.
    ("1 started O v1.0.0 \"\"\n2 activity A \"\"", ""),
    ("stamp 0.1.32\n1 started O v1.0.0 return\n2 activity A \"\"", ""),
    (
        "1 started O v1.0.0 \"\"\n2 activity A \"\"\n3 activity B \"\"",
        "exec 2 activity-completed 9 x",
    ),
];

#[test]
fn r3_140_every_text_of_the_table() {
    let handler = code(|ctx: OrchestrationContext, input: String| async move {
        match input.as_str() {
            "return" => return Ok(String::new()),
            "timer" => ctx.schedule_timer(Duration::from_secs(1)).await,
            _ => {}
        }
        let calls = ["A", "B"].map(|name| ctx.schedule_activity(name, ""));
        Ok(format!("{:?}", ctx.join(calls.into()).await))
    });
    let mut text = String::new();
    for (history, messages) in TABLE {
        let outcome = run_turn(turn(&Story::read(history), messages, handler.clone()));
        let line = match &outcome.status {
            TurnStatus::Failed(details) => {
                assert_eq!(details.category(), "configuration"); // R2.85
                assert!(
                    matches!(details, ErrorDetails::Configuration { resource, .. } if resource.is_empty())
                );
                details.display_message()
            }
            other => format!("{other:?}"),
        };
        writeln!(text, "{line}").unwrap();
    }
    expect![[r#"
        nondeterministic: no matching schedule for completion id=9
        nondeterministic: completion kind mismatch for id=2, expected 'activity', got 'timer'
        nondeterministic: history schedule but no emitted action
        nondeterministic: schedule mismatch: action=CallActivity { scheduling_event_id: 0, name: "B", input: "", session_id: None, tag: None } vs event=ActivityScheduled { name: "C", input: "", session_id: None, tag: None }
        nondeterministic: history OrchestrationChained but no emitted action
        nondeterministic: custom status mismatch: action=CallActivity { scheduling_event_id: 0, name: "A", input: "", session_id: None, tag: None } vs event=CustomStatusUpdated { status: Some("s") }
        nondeterministic: kv set mismatch: action=CallActivity { scheduling_event_id: 0, name: "A", input: "", session_id: None, tag: None } vs event=KeyValueSet { key: "k", value: "v", last_updated_at_ms: 1000000 }
        nondeterministic: kv clear mismatch: action=CallActivity { scheduling_event_id: 0, name: "A", input: "", session_id: None, tag: None } vs event=KeyValueCleared { key: "k" }
        nondeterministic: kv clear_all mismatch: action=CallActivity { scheduling_event_id: 0, name: "A", input: "", session_id: None, tag: None } vs event=KeyValuesCleared
        nondeterministic: completion without open schedule
        nondeterministic: completion kind mismatch: expected activity
        nondeterministic: cancellation mismatch (activities): baseline_dropped_future_cancel_requests={3} ctx_cancelled_in_replayed_segment={}
        nondeterministic: cancellation mismatch (sub-orchestrations): baseline_dropped_future_cancel_requests={3} ctx_cancelled_in_replayed_segment={}
        nondeterministic: cancellation mismatch (external waits): baseline_dropped_future_cancel_requests={3} ctx_cancelled_in_replayed_segment={}
        nondeterministic: cancellation mismatch (persistent waits): baseline_dropped_future_cancel_requests={3} ctx_cancelled_in_replayed_segment={}
        nondeterministic: corrupted history: empty
        nondeterministic: corrupted history: first event must be OrchestrationStarted
        nondeterministic: code returned before history was consumed: next event=ActivityScheduled { name: "A", input: "", session_id: None, tag: None }
        Running
        Completed("")
        Running
    "#]].assert_eq(&text);
}

/// A result that code of today cannot read any more, in the middle of a history.
const RESULT_OF_ANOTHER_TYPE: &str = r#"
    1 started O v1.0.0 ""
    2 activity A ""
    3 activity-completed 2 "many"
    4 activity B ""
"#;

#[test]
fn r9_60_a_result_that_no_longer_decodes_is_named() {
    let report = report(RESULT_OF_ANOTHER_TYPE, "", |ctx, _| async move {
        let count: u32 = ctx.schedule_activity_typed("A", &"").await?;
        ctx.schedule_activity("B", count.to_string()).await
    });
    let undecoded = "result of activity 'A' (event 2) of instance 'i' cannot be decoded as u32: \
                     expected value at line 1 column 1";
    assert_eq!(report.undecoded.as_deref(), Some(undecoded));
    let message = report.message.strip_prefix(undecoded).unwrap();
    assert!(message.starts_with("; so code returned before history was consumed: "), "{message}");
}

#[test]
fn r9_60_also_if_the_code_goes_another_way_then() {
    let report = report(RESULT_OF_ANOTHER_TYPE, "", |ctx, _| async move {
        match ctx.schedule_activity_typed::<_, u32>("A", &"").await {
            Ok(count) => ctx.schedule_activity("B", count.to_string()).await,
            Err(_) => ctx.schedule_activity("Apologise", "").await,
        }
    });
    assert!(report.undecoded.is_some());
    assert!(report.message.contains("; so schedule mismatch: "), "{}", report.message);
}

#[test]
fn r9_60_an_input_that_no_longer_decodes_is_named() {
    let report = report(
        r#"
        1 started O v1.0.0 "many"
        2 activity B ""
        "#,
        "",
        |ctx, input| async move {
            let count: u32 = ctx.decode_input(&input)?;
            ctx.schedule_activity("B", count.to_string()).await
        },
    );
    let undecoded = "input of orchestration 'O' of instance 'i' cannot be decoded as u32: \
                     expected value at line 1 column 1";
    assert_eq!(report.undecoded.as_deref(), Some(undecoded));
}

#[test]
fn r9_60_an_error_that_the_code_has_dealt_with_is_not_blamed() {
    let history =
        format!("{RESULT_OF_ANOTHER_TYPE}    5 activity-completed 4 \"b\"\n    6 timer 1s\n");
    let report = report(&history, "", |ctx, _| async move {
        let _ = ctx.schedule_activity_typed::<_, u32>("A", &"").await;
        ctx.schedule_activity("B", "").await
    });
    assert_eq!(report.undecoded, None);
    assert!(report.message.starts_with("code returned before"), "{}", report.message);
}

/// One of two results is there, and was there in an earlier turn.
const ONE_OF_TWO: &str = r#"
    1 started O v1.0.0 ""
    2 activity A ""
    3 activity B ""
    4 activity-completed 2 "many"
"#;

async fn both(ctx: OrchestrationContext, _input: String) -> Result<String, String> {
    let a = ctx.schedule_activity_typed::<_, u32>("A", &"");
    let b = ctx.schedule_activity_typed::<_, u32>("B", &"");
    let (a, b) = ctx.join2(a, b).await;
    Ok((a? + b?).to_string())
}

#[test]
fn r9_60_a_result_that_no_longer_decodes_is_named_where_history_had_not_gone_on() {
    let outcome =
        run_turn(turn(&Story::read(ONE_OF_TWO), "activity-completed 3 \"1\"", code(both)));
    assert!(matches!(&outcome.status, TurnStatus::Failed(ErrorDetails::Application { .. })));
    let report = outcome.divergence.expect("a report");
    assert!(report.undecoded.as_ref().is_some_and(|text| text.contains("'A' (event 2)")));
    assert!(report.message.contains("; so the code failed: result of activity 'A'"), "{report}");
    // One that was never handed out before has been of that type all the time.
    let outcome = run_turn(turn(
        &Story::read(ONE_OF_TWO.rsplit_once("4 ").unwrap().0),
        "activity-completed 2 \"many\"\nactivity-completed 3 \"1\"",
        code(both),
    ));
    assert!(matches!(&outcome.status, TurnStatus::Failed(ErrorDetails::Application { .. })));
    assert!(outcome.divergence.is_none(), "{:?}", outcome.divergence);
}

#[test]
fn r3_171_a_panic_over_stored_events_is_reported_with_its_place() {
    let outcome = run_turn(turn(
        &Story::read(LONG),
        "",
        code(|ctx: OrchestrationContext, _| async move {
            ctx.schedule_activity("A", "").await?;
            panic!("out of cheese")
        }),
    ));
    // The failure is the code's own all the same (R3.74).
    assert!(matches!(&outcome.status, TurnStatus::Failed(ErrorDetails::Application { .. })));
    let report = outcome.divergence.expect("a report");
    assert_eq!(report.message, "orchestration panicked: out of cheese (after event 3)");
    let [agreed, marked] = &report.rows[..] else { panic!("{report:?}") };
    assert_eq!((agreed.event_id, marked.event_id), (Some(2), Some(4)));
    assert!(marked.diverges);
    assert_eq!(marked.emitted.as_deref(), Some("orchestration panicked: out of cheese"));
}

#[test]
fn r3_171_a_panic_at_the_end_of_what_is_stored_is_reported_too() {
    let panics = |ctx: OrchestrationContext, _: String| async move {
        ctx.schedule_activity("A", "").await?;
        panic!("out of cheese")
    };
    let stored = Story::read(
        r#"
        1 started O v1.0.0 ""
        2 activity A ""
        3 activity-completed 2 "a"
    "#,
    );
    let report = *run_turn(turn(&stored, "", code(panics))).divergence.expect("a report");
    assert_eq!(report.message, "orchestration panicked: out of cheese (after event 3)");
    assert_eq!(report.rows.last().unwrap().event_id, None);
    // What the code makes of something new is its own affair.
    let fresh = Story::read(
        r#"
        1 started O v1.0.0 ""
        2 activity A ""
    "#,
    );
    let outcome = run_turn(turn(&fresh, "activity-completed 2 \"a\"", code(panics)));
    assert!(matches!(outcome.status, TurnStatus::Failed(_)), "{:?}", outcome.status);
    assert!(outcome.divergence.is_none(), "{:?}", outcome.divergence);
}
