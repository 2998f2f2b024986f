//! What reading forgives and what it does not (R2.2, R2.3, R2.70).

use duroxide_core::model::{Event, WorkItem};
use expect_test::expect;

/// The value in one line, or the error without the list of all variants.
fn read<T: serde::de::DeserializeOwned + std::fmt::Debug>(json: &str) -> String {
    match serde_json::from_str::<T>(json) {
        Ok(value) => format!("{value:?}\n"),
        Err(error) => {
            let text = error.to_string();
            let end = text.find(", expected one of").unwrap_or(text.len());
            let place = text.find(" at line").map_or("", |place| &text[place..]);
            let text = if end < text.len() { format!("{}{place}", &text[..end]) } else { text };
            format!("error: {text}\n")
        }
    }
}

/// An event with the usual envelope.
fn event(kind: &str) -> String {
    read::<Event>(&format!(
        r#"{{"event_id":1,"source_event_id":null,"instance_id":"i","execution_id":1,"timestamp_ms":0,"duroxide_version":"0.1.0",{kind}}}"#
    ))
}

#[test]
fn r2_20_r2_48_r2_70_optional_keys_may_be_missing() {
    let text = [
        read::<Event>(
            r#"{"event_id":1,"instance_id":"i","execution_id":1,"timestamp_ms":0,"duroxide_version":"0.1.0","type":"OrchestrationStarted","name":"n","version":"1.0.0","input":""}"#,
        ),
        event(r#""type":"KeyValueSet","key":"k","value":"v""#),
        event(r#""type":"CustomStatusUpdated""#),
        read::<WorkItem>(
            r#"{"StartOrchestration":{"instance":"i","orchestration":"o","input":"","execution_id":1}}"#,
        ),
        read::<WorkItem>(
            r#"{"ContinueAsNew":{"instance":"i","orchestration":"o","input":"","version":null}}"#,
        ),
    ];
    expect![[r#"
        Event { event_id: 1, source_event_id: None, instance_id: "i", execution_id: 1, timestamp_ms: 0, duroxide_version: "0.1.0", kind: OrchestrationStarted { name: "n", version: "1.0.0", input: "", parent_instance: None, parent_id: None, parent_execution_id: None, carry_forward_events: None, initial_custom_status: None } }
        Event { event_id: 1, source_event_id: None, instance_id: "i", execution_id: 1, timestamp_ms: 0, duroxide_version: "0.1.0", kind: KeyValueSet { key: "k", value: "v", last_updated_at_ms: 0 } }
        Event { event_id: 1, source_event_id: None, instance_id: "i", execution_id: 1, timestamp_ms: 0, duroxide_version: "0.1.0", kind: CustomStatusUpdated { status: None } }
        StartOrchestration { instance: "i", orchestration: "o", input: "", version: None, parent_instance: None, parent_id: None, parent_execution_id: None, execution_id: 1 }
        ContinueAsNew { instance: "i", orchestration: "o", input: "", version: None, parent_instance: None, parent_id: None, parent_execution_id: None, carry_forward_events: [], initial_custom_status: None }
    "#]].assert_eq(&text.concat());
}

#[test]
fn r2_70_unknown_keys_and_any_order() {
    let text = [
        event(r#""type":"OrchestrationCompleted","output":"o","new_key":[1]"#),
        read::<Event>(
            r#"{"type":"OrchestrationCompleted","output":"o","duroxide_version":"0.1.0","timestamp_ms":0,"execution_id":1,"instance_id":"i","source_event_id":null,"event_id":1}"#,
        ),
        read::<WorkItem>(r#"{"CancelInstance":{"instance":"i","reason":"r","new_key":1}}"#),
    ];
    expect![[r#"
        Event { event_id: 1, source_event_id: None, instance_id: "i", execution_id: 1, timestamp_ms: 0, duroxide_version: "0.1.0", kind: OrchestrationCompleted { output: "o" } }
        Event { event_id: 1, source_event_id: None, instance_id: "i", execution_id: 1, timestamp_ms: 0, duroxide_version: "0.1.0", kind: OrchestrationCompleted { output: "o" } }
        CancelInstance { instance: "i", reason: "r" }
    "#]].assert_eq(&text.concat());
}

#[test]
fn r2_2_r2_3_everything_else_is_an_error() {
    let text = [
        event(r#""type":"Nope""#),
        event(r#""output":"no type""#),
        read::<Event>(
            r#"{"event_id":1,"source_event_id":null,"instance_id":"i","execution_id":1,"timestamp_ms":0,"type":"KeyValuesCleared"}"#,
        ),
        event(r#""type":"OrchestrationCompleted""#),
        event(r#""type":"OrchestrationCompleted","output":7"#),
        event(r#""type":"OrchestrationCompleted","output":"o""#).replace("0.1.0", "kept"),
        read::<WorkItem>(
            r#"{"StartOrchestration":{"instance":"i","orchestration":"o","input":""}}"#,
        ),
        read::<WorkItem>(r#"{"Foo":{}}"#),
    ];
    expect![[r#"
        error: unknown variant `Nope` at line 1 column 130
        error: missing field `type` at line 1 column 135
        error: missing field `duroxide_version` at line 1 column 115
        error: missing field `output` at line 1 column 148
        error: invalid type: integer `7`, expected a string at line 1 column 159
        Event { event_id: 1, source_event_id: None, instance_id: "i", execution_id: 1, timestamp_ms: 0, duroxide_version: "kept", kind: OrchestrationCompleted { output: "o" } }
        error: missing field `execution_id` at line 1 column 69
        error: unknown variant `Foo` at line 1 column 6
    "#]].assert_eq(&text.concat());
}

#[test]
fn r2_39_r2_40_r2_41_stored_names_of_queue_events_are_the_only_ones() {
    let text = ["QueueSubscribed", "QueueEventDelivered", "QueueSubscriptionCancelled"]
        .map(|name| event(&format!(r#""type":"{name}","name":"q","data":"m","reason":"r""#)));
    expect![[r#"
        error: unknown variant `QueueSubscribed` at line 1 column 176
        error: unknown variant `QueueEventDelivered` at line 1 column 180
        error: unknown variant `QueueSubscriptionCancelled` at line 1 column 187
    "#]]
    .assert_eq(&text.concat());
}
