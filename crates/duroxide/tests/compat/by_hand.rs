//! A context without an engine: what it emits, and how results reach its futures (R4.100).

use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use duroxide::{Action, CompletionResult, OrchestrationContext};
use serde::Serialize;

fn context() -> OrchestrationContext {
    OrchestrationContext::new(
        Vec::new(),
        1,
        "inst".into(),
        "Orch".into(),
        "1.0.0".into(),
        Some("worker".into()),
    )
}

fn poll<F: Future>(future: F) -> Poll<F::Output> {
    pin!(future).poll(&mut Context::from_waker(Waker::noop()))
}

/// The emitted actions, one a line, with the stamps of key-value writes left out.
fn lines(ctx: &OrchestrationContext) -> Vec<String> {
    let actions = ctx.get_emitted_actions();
    let tokens: Vec<u64> = actions.iter().map(|(token, _)| *token).collect();
    assert_eq!(tokens, (1..=actions.len() as u64).collect::<Vec<_>>());
    let line = |action: Action| match action {
        Action::SetKeyValue { key, value, last_updated_at_ms } => {
            assert!(last_updated_at_ms > 1_700_000_000_000);
            format!("SetKeyValue {{ key: {key:?}, value: {value:?}, last_updated_at_ms: <ms> }}")
        }
        other => format!("{other:?}"),
    };
    actions.into_iter().map(|(_, action)| line(action)).collect()
}

#[derive(Serialize)]
struct Input {
    zeta: u32,
    alpha: String,
    opt: Option<u8>,
}

// R2.90, R2.103, R4.92, R4.95
#[test]
fn emitted_actions() {
    let ctx = context();
    let input = Input { zeta: 1, alpha: "a".into(), opt: None };
    let typed = (
        ctx.schedule_activity_typed::<_, String>("A", &input),
        ctx.schedule_activity_typed::<_, String>("A", &"plain \"q\""),
        ctx.schedule_activity_typed::<_, String>("A", &42),
        ctx.schedule_activity_typed::<_, String>("A", &()),
        ctx.schedule_activity_typed::<_, String>("A", &None::<String>),
        ctx.schedule_activity_typed::<_, String>("A", &Some("x")),
        ctx.schedule_activity_typed::<_, String>("A", &["x"]),
    );
    let system = (ctx.get_kv_value_from_instance("other", "key"), ctx.new_guid(), ctx.utc_now());
    ctx.set_kv_value_typed("k1", &input);
    ctx.set_kv_value_typed("k2", &"str");
    ctx.set_kv_value("k3", "raw");
    let others = (
        ctx.schedule_sub_orchestration("Child", "in"),
        ctx.schedule_sub_orchestration_with_id("Child", "explicit", "in"),
        ctx.schedule_sub_orchestration_versioned("Child", Some("2.0.0".into()), "in"),
        ctx.schedule_wait("E"),
        ctx.dequeue_event("Q"),
        ctx.schedule_activity_on_session("A", "in", "sess").with_tag("gpu"),
    );
    ctx.schedule_orchestration("Det", "det-1", "in");
    ctx.set_custom_status("x");
    ctx.reset_custom_status();
    ctx.clear_kv_value("k3");
    ctx.clear_all_kv_values();
    let next = ctx.continue_as_new("n");

    let expected = r#"
CallActivity { scheduling_event_id: 0, name: "A", input: "{\"alpha\":\"a\",\"opt\":null,\"zeta\":1}", session_id: None, tag: None }
CallActivity { scheduling_event_id: 0, name: "A", input: "plain \"q\"", session_id: None, tag: None }
CallActivity { scheduling_event_id: 0, name: "A", input: "42", session_id: None, tag: None }
CallActivity { scheduling_event_id: 0, name: "A", input: "null", session_id: None, tag: None }
CallActivity { scheduling_event_id: 0, name: "A", input: "null", session_id: None, tag: None }
CallActivity { scheduling_event_id: 0, name: "A", input: "x", session_id: None, tag: None }
CallActivity { scheduling_event_id: 0, name: "A", input: "[\"x\"]", session_id: None, tag: None }
CallActivity { scheduling_event_id: 0, name: "__duroxide_syscall:get_kv_value", input: "{\"instance_id\":\"other\",\"key\":\"key\"}", session_id: None, tag: None }
CallActivity { scheduling_event_id: 0, name: "__duroxide_syscall:new_guid", input: "", session_id: None, tag: None }
CallActivity { scheduling_event_id: 0, name: "__duroxide_syscall:utc_now_ms", input: "", session_id: None, tag: None }
SetKeyValue { key: "k1", value: "{\"zeta\":1,\"alpha\":\"a\",\"opt\":null}", last_updated_at_ms: <ms> }
SetKeyValue { key: "k2", value: "\"str\"", last_updated_at_ms: <ms> }
SetKeyValue { key: "k3", value: "raw", last_updated_at_ms: <ms> }
StartSubOrchestration { scheduling_event_id: 0, name: "Child", version: None, instance: "sub::pending_14", input: "in" }
StartSubOrchestration { scheduling_event_id: 0, name: "Child", version: None, instance: "explicit", input: "in" }
StartSubOrchestration { scheduling_event_id: 0, name: "Child", version: Some("2.0.0"), instance: "sub::pending_16", input: "in" }
WaitExternal { scheduling_event_id: 0, name: "E" }
DequeueEvent { scheduling_event_id: 0, name: "Q" }
CallActivity { scheduling_event_id: 0, name: "A", input: "in", session_id: Some("sess"), tag: Some("gpu") }
StartOrchestrationDetached { scheduling_event_id: 0, name: "Det", version: None, instance: "det-1", input: "in" }
UpdateCustomStatus { status: Some("x") }
UpdateCustomStatus { status: None }
ClearKeyValue { key: "k3" }
ClearKeyValues
ContinueAsNew { input: "n", version: None }"#;
    assert_eq!(lines(&ctx), expected.trim_start().lines().collect::<Vec<_>>());
    assert!(poll(next).is_pending());
    drop((typed, system, others));
    assert_eq!(ctx.drain_emitted_actions().len(), 25);
    assert!(ctx.get_emitted_actions().is_empty());
}

#[test]
fn a_fresh_context() {
    let ctx = context();
    assert!(ctx.is_replaying() && !ctx.is_logging_enabled());
    ctx.set_is_replaying(false);
    assert!(!ctx.is_replaying());
    assert_eq!((ctx.instance_id().as_str(), ctx.execution_id()), ("inst", 1));
    assert_eq!(ctx.orchestration_name() + &ctx.orchestration_version(), "Orch1.0.0");
    assert_eq!(ctx.get_system_stats(), None);
    assert_eq!((ctx.get_custom_status(), ctx.get_kv_length()), (None, 0));
}

#[test]
fn results_reach_bound_futures() {
    let ctx = context();
    let mut ok = ctx.schedule_activity("A", "");
    let mut err = ctx.schedule_activity("A", "");
    let mut timer = ctx.schedule_timer(Duration::from_secs(1));
    let mut child_ok = ctx.schedule_sub_orchestration("C", "");
    let mut child_err = ctx.schedule_sub_orchestration("C", "");
    let results = [
        CompletionResult::ActivityOk("r".into()),
        CompletionResult::ActivityErr("e".into()),
        CompletionResult::TimerFired,
        CompletionResult::SubOrchOk("cr".into()),
        CompletionResult::SubOrchErr("ce".into()),
    ];
    for ((token, _), result) in ctx.drain_emitted_actions().into_iter().zip(results) {
        assert!(poll(&mut ok).is_pending(), "bound and delivered first");
        ctx.bind_token(token, token + 10);
        if token > 1 {
            ctx.deliver_result(token + 10, result);
        }
    }
    assert_eq!(poll(&mut err), Poll::Ready(Err("e".into())));
    assert_eq!(poll(&mut timer), Poll::Ready(()));
    assert_eq!(poll(&mut child_ok), Poll::Ready(Ok("cr".into())));
    assert_eq!(poll(&mut child_err), Poll::Ready(Err("ce".into())));
    ctx.deliver_result(11, CompletionResult::ActivityOk("late".into()));
    assert_eq!(poll(&mut ok), Poll::Ready(Ok("late".into())));
}

#[test]
fn events_and_messages_reach_bound_futures() {
    let ctx = context();
    let mut event = ctx.schedule_wait("E");
    let mut message = pin!(ctx.dequeue_event_typed::<u8>("Q"));
    for (token, action) in ctx.drain_emitted_actions() {
        ctx.bind_token(token, token + 10);
        match action {
            Action::WaitExternal { name, .. } => ctx.bind_external_subscription(token + 10, &name),
            Action::DequeueEvent { name, .. } => ctx.bind_queue_subscription(token + 10, &name),
            other => panic!("{other:?}"),
        }
    }
    assert!(poll(&mut event).is_pending());
    ctx.deliver_external_event("E".into(), "data".into());
    assert_eq!(poll(&mut event), Poll::Ready("data".into()));
    assert!(poll(message.as_mut()).is_pending());
    ctx.deliver_queue_message("Q".into(), "7".into());
    assert_eq!(poll(message.as_mut()), Poll::Ready(7));
}
