//! What ends up in the texts of inputs, results and values (R2.90 – R2.93), seen on a context that no
//! engine drives.

use duroxide_core::context::OrchestrationContext;
use expect_test::expect;

#[derive(serde::Serialize)]
struct Sample {
    zeta: u32,
    alpha: &'static str,
    opt: Option<u8>,
}

const SAMPLE: Sample = Sample { zeta: 1, alpha: "a", opt: None };

/// Makes every kind of call. The futures must live, or they would be worth nothing.
fn calls(ctx: &OrchestrationContext) {
    drop(ctx.schedule_activity_typed::<_, ()>("A", &SAMPLE));
    drop(ctx.schedule_activity_typed::<_, ()>("A", &"plain \"q\""));
    drop(ctx.schedule_activity_typed::<_, ()>("A", &42));
    drop(ctx.schedule_activity_typed::<_, ()>("A", &()));
    drop(ctx.schedule_activity_typed::<_, ()>("A", &None::<u8>));
    drop(ctx.schedule_activity_typed::<_, ()>("A", &Some("x")));
    drop(ctx.schedule_activity_typed::<_, ()>("A", &["x"]));
    drop(ctx.get_kv_value_from_instance("other", "key"));
    drop(ctx.new_guid());
    drop(ctx.utc_now());
    ctx.set_kv_value_typed("k1", &SAMPLE);
    ctx.set_kv_value_typed("k2", &"str");
    ctx.set_kv_value("k3", "raw");
    drop(ctx.schedule_sub_orchestration("Child", "in"));
    drop(ctx.schedule_sub_orchestration_with_id("Child", "explicit", "in"));
    drop(ctx.schedule_sub_orchestration_versioned("Child", Some("2.0.0".to_owned()), "in"));
    drop(ctx.schedule_wait("E"));
    drop(ctx.dequeue_event("Q"));
    drop(ctx.schedule_activity_on_session("A", "in", "sess").with_tag("gpu"));
    ctx.schedule_orchestration("Det", "det-1", "in");
    ctx.set_custom_status("x");
    ctx.reset_custom_status();
    ctx.clear_kv_value("k3");
    ctx.clear_all_kv_values();
    drop(ctx.continue_as_new("n"));
}

#[test]
fn r2_90_r2_93_r3_10_r4_100_actions_and_their_payloads() {
    let ctx = OrchestrationContext::new(
        Vec::new(),
        1,
        "i".to_owned(),
        "O".to_owned(),
        "1.0.0".to_owned(),
        None,
    );
    calls(&ctx);
    let mut text = String::new();
    for (_, action) in ctx.get_emitted_actions() {
        let line = format!("{action:?}");
        let stamp = line.find("last_updated_at_ms: ").map(|at| at + "last_updated_at_ms: ".len());
        match stamp {
            Some(at) => text += &format!("{}<ms> }}\n", &line[..at]),
            None => text += &format!("{line}\n"),
        }
    }
    expect![[r#"
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
        ContinueAsNew { input: "n", version: None }
    "#]].assert_eq(&text);
}
