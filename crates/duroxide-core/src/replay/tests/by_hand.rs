//! A context driven without an engine (R4.100).

use std::time::Duration;

use expect_test::expect;

use super::*;
use crate::context::CompletionResult;
use crate::model::Action;

#[test]
fn r4_100_r4_1_r4_2_what_a_bare_context_says() {
    let ctx = bare_context();
    assert!(ctx.is_replaying());
    ctx.set_is_replaying(false);
    assert!(!ctx.is_replaying());
    let who = (ctx.instance_id(), ctx.execution_id(), ctx.orchestration_name());
    assert_eq!(who, ("i".to_owned(), 1, "O".to_owned()));
}

#[test]
fn r4_100_r3_10_r3_12_r2_103_actions_as_emitted_with_their_tokens() {
    let ctx = bare_context();
    let activity = ctx.schedule_activity_on_session("A", "in", "sess").with_tag("gpu");
    let refused = ctx.schedule_sub_orchestration_with_id("C", "sub::x", "in");
    let child = ctx.schedule_sub_orchestration("C", "in");
    let chosen = ctx.schedule_sub_orchestration_versioned_with_id(
        "C",
        Some("2.0.0".to_owned()),
        "explicit",
        "in",
    );
    let (wait, dequeue) = (ctx.schedule_wait("E"), ctx.dequeue_event("Q"));
    let guid = ctx.new_guid();
    ctx.schedule_orchestration("D", "det-1", "in");
    ctx.set_custom_status("x");
    ctx.reset_custom_status();
    ctx.clear_kv_value("k");
    ctx.clear_all_kv_values();
    let next = ctx.continue_as_new("n");
    let text: String = ctx
        .get_emitted_actions()
        .iter()
        .map(|(token, action)| format!("{token} {action:?}\n"))
        .collect();
    expect![[r#"
        1 CallActivity { scheduling_event_id: 0, name: "A", input: "in", session_id: Some("sess"), tag: Some("gpu") }
        3 StartSubOrchestration { scheduling_event_id: 0, name: "C", version: None, instance: "sub::pending_3", input: "in" }
        4 StartSubOrchestration { scheduling_event_id: 0, name: "C", version: Some("2.0.0"), instance: "explicit", input: "in" }
        5 WaitExternal { scheduling_event_id: 0, name: "E" }
        6 DequeueEvent { scheduling_event_id: 0, name: "Q" }
        7 CallActivity { scheduling_event_id: 0, name: "__duroxide_syscall:new_guid", input: "", session_id: None, tag: None }
        8 StartOrchestrationDetached { scheduling_event_id: 0, name: "D", version: None, instance: "det-1", input: "in" }
        9 UpdateCustomStatus { status: Some("x") }
        10 UpdateCustomStatus { status: None }
        11 ClearKeyValue { key: "k" }
        12 ClearKeyValues
        13 ContinueAsNew { input: "n", version: None }
    "#]].assert_eq(&text);
    assert_eq!(ctx.drain_emitted_actions().len(), 12);
    assert!(ctx.get_emitted_actions().is_empty());
    drop((activity, refused, child, chosen, wait, dequeue, guid, next));
}

#[test]
fn r4_30_r4_89_a_bare_context_reads_the_clock() {
    let ctx = bare_context();
    let before = crate::clock::wall_clock_ms();
    ctx.set_kv_value("k", "v");
    let timer = ctx.schedule_timer(Duration::from_secs(1));
    let after = crate::clock::wall_clock_ms();
    let emitted = ctx.drain_emitted_actions();
    let [
        (1, Action::SetKeyValue { last_updated_at_ms, .. }),
        (2, Action::CreateTimer { fire_at_ms, .. }),
    ] = &emitted[..]
    else {
        panic!("{emitted:?}");
    };
    assert!((before..=after).contains(last_updated_at_ms));
    assert!((before + 1000..=after + 1000).contains(fire_at_ms));
    drop(timer);
}

#[test]
fn r4_100_results_are_delivered_by_schedule_event() {
    let ctx = bare_context();
    let activities = ["A", "B"].map(|name| ctx.schedule_activity(name, ""));
    let timer = ctx.schedule_timer(Duration::ZERO);
    let children = ["C", "D"].map(|name| ctx.schedule_sub_orchestration(name, ""));
    let [ok, err] = activities;
    let [child_ok, child_err] = children;
    ctx.deliver_result(11, CompletionResult::ActivityOk("unbound".to_owned())); // Of no future.
    for token in 1..=5 {
        ctx.bind_token(token, token + 10);
    }
    assert_eq!(polled(async { ctx.schedule_activity("E", "").await }), None);
    ctx.deliver_result(11, CompletionResult::ActivityOk("a".to_owned()));
    ctx.deliver_result(12, CompletionResult::TimerFired); // Of the wrong kind: never seen (R3.54).
    ctx.deliver_result(12, CompletionResult::ActivityErr("b".to_owned()));
    ctx.deliver_result(13, CompletionResult::TimerFired);
    ctx.deliver_result(14, CompletionResult::SubOrchOk("c".to_owned()));
    ctx.deliver_result(15, CompletionResult::SubOrchErr("d".to_owned()));
    assert_eq!(polled(ok), Some(Ok("a".to_owned())));
    assert_eq!(polled(err), Some(Err("b".to_owned())));
    assert_eq!(polled(timer), Some(()));
    assert_eq!(polled(child_ok), Some(Ok("c".to_owned())));
    assert_eq!(polled(child_err), Some(Err("d".to_owned())));
}

#[test]
fn r4_100_r3_93_waits_and_dequeues_by_hand() {
    let ctx = bare_context();
    let (wait, dequeue) = (ctx.schedule_wait("E"), ctx.dequeue_event("Q"));
    ctx.deliver_external_event("E".into(), "early".into());
    ctx.deliver_queue_message("Q".into(), "kept".into());
    ctx.bind_token(1, 2);
    ctx.bind_external_subscription(2, "E");
    ctx.bind_token(2, 3);
    ctx.bind_queue_subscription(3, "Q");
    let mut wait = Box::pin(wait);
    assert_eq!(polled(wait.as_mut()), None);
    ctx.deliver_external_event("E".into(), "in time".into());
    assert_eq!(polled(wait), Some("in time".to_owned()));
    assert_eq!(polled(dequeue), Some("kept".to_owned()));
}
