//! Every kind of event.

use duroxide_core::model::{AppErrorKind, ErrorDetails, Event, EventKind};

use super::{assert_complete, assert_golden, variants};

variants! { EventKind:
    OrchestrationStarted,
    OrchestrationCompleted,
    OrchestrationFailed,
    ActivityScheduled,
    ActivityCompleted,
    ActivityFailed,
    ActivityCancelRequested,
    TimerCreated,
    TimerFired,
    ExternalSubscribed,
    ExternalEvent,
    OrchestrationChained,
    SubOrchestrationScheduled,
    SubOrchestrationCompleted,
    SubOrchestrationFailed,
    SubOrchestrationCancelRequested,
    OrchestrationContinuedAsNew,
    OrchestrationCancelRequested,
    ExternalSubscribedCancelled,
    QueueSubscribed,
    QueueEventDelivered,
    QueueSubscriptionCancelled,
    CustomStatusUpdated,
    #[cfg(feature = "replay-version-test")]
    ExternalSubscribed2,
    #[cfg(feature = "replay-version-test")]
    ExternalEvent2,
    KeyValueSet,
    KeyValueCleared,
    KeyValuesCleared,
}

fn s(text: &str) -> String {
    text.to_owned()
}

pub(crate) fn boom() -> ErrorDetails {
    ErrorDetails::application(AppErrorKind::ActivityFailed, "boom")
}

/// The kinds of `events.jsonl`, with their sources.
fn kinds() -> Vec<(Option<u64>, EventKind)> {
    let mut kinds = vec![
        (None, started(false)),
        (None, started(true)),
        (None, EventKind::OrchestrationCompleted { output: s("out") }),
        (None, EventKind::OrchestrationFailed { details: boom() }),
        (None, activity(None, None)),
        (None, activity(Some("sess-1"), Some("gpu"))),
        (Some(2), EventKind::ActivityCompleted { result: s("r") }),
        (Some(2), EventKind::ActivityFailed { details: boom() }),
        (Some(2), EventKind::ActivityCancelRequested { reason: s("dropped_future") }),
        (None, EventKind::TimerCreated { fire_at_ms: 1_700_000_005_000 }),
        (Some(3), EventKind::TimerFired { fire_at_ms: 1_700_000_005_000 }),
        (None, EventKind::ExternalSubscribed { name: s("Approve") }),
        (None, EventKind::ExternalEvent { name: s("Approve"), data: s("yes") }),
        (
            None,
            EventKind::OrchestrationChained {
                name: s("Other"),
                instance: s("other-1"),
                input: s("in"),
            },
        ),
        (
            None,
            EventKind::SubOrchestrationScheduled {
                name: s("Child"),
                instance: s("sub::2"),
                input: s("in"),
            },
        ),
        (Some(4), EventKind::SubOrchestrationCompleted { result: s("r") }),
        (Some(4), EventKind::SubOrchestrationFailed { details: boom() }),
        (Some(4), EventKind::SubOrchestrationCancelRequested { reason: s("dropped_future") }),
        (None, EventKind::OrchestrationContinuedAsNew { input: s("next") }),
        (None, EventKind::OrchestrationCancelRequested { reason: s("user asked") }),
    ];
    kinds.extend(later_kinds());
    kinds
}

fn later_kinds() -> Vec<(Option<u64>, EventKind)> {
    vec![
        (Some(6), EventKind::ExternalSubscribedCancelled { reason: s("dropped_future") }),
        (None, EventKind::QueueSubscribed { name: s("q") }),
        (None, EventKind::QueueEventDelivered { name: s("q"), data: s("m") }),
        (Some(6), EventKind::QueueSubscriptionCancelled { reason: s("dropped_future") }),
        (None, EventKind::CustomStatusUpdated { status: Some(s("50%")) }),
        (None, EventKind::CustomStatusUpdated { status: None }),
        (
            None,
            EventKind::KeyValueSet {
                key: s("k"),
                value: s("v"),
                last_updated_at_ms: 1_700_000_000_001,
            },
        ),
        (None, EventKind::KeyValueCleared { key: s("k") }),
        (None, EventKind::KeyValuesCleared),
    ]
}

fn started(all: bool) -> EventKind {
    let carried = vec![(s("q"), s("m1")), (s("q"), s("m2"))];
    EventKind::OrchestrationStarted {
        name: s(if all { "Child" } else { "Hello" }),
        version: s("1.0.0"),
        input: s("in"),
        parent_instance: all.then(|| s("parent-1")),
        parent_id: all.then_some(5),
        parent_execution_id: all.then_some(2),
        carry_forward_events: all.then_some(carried),
        initial_custom_status: all.then(|| s("50%")),
    }
}

fn activity(session_id: Option<&str>, tag: Option<&str>) -> EventKind {
    EventKind::ActivityScheduled {
        name: s("A"),
        input: s("in"),
        session_id: session_id.map(s),
        tag: tag.map(s),
    }
}

fn event((source_event_id, kind): (Option<u64>, EventKind)) -> Event {
    Event {
        event_id: 7,
        source_event_id,
        instance_id: s("inst-1"),
        execution_id: 1,
        timestamp_ms: 1_700_000_000_000,
        duroxide_version: s("0.1.32"),
        kind,
    }
}

#[test]
fn r2_1_r2_20_to_r2_51_r2_73_events() {
    let events: Vec<Event> = kinds().into_iter().map(event).collect();
    assert_golden(include_str!("events.jsonl"), &events);
}

#[test]
fn r2_1_kinds_alone() {
    // An event without its envelope is the kind on its own.
    for (line, (_, kind)) in include_str!("events.jsonl").lines().zip(kinds()) {
        let alone = format!("{{{}", &line[line.find("\"type\"").unwrap()..]);
        assert_golden(&alone, &[kind]);
    }
}

#[test]
fn every_kind_has_a_golden_line() {
    #[cfg_attr(not(feature = "replay-version-test"), expect(unused_mut))]
    let mut found: Vec<EventKind> = kinds().into_iter().map(|(_, kind)| kind).collect();
    #[cfg(feature = "replay-version-test")]
    found.extend(second_generation().map(|event| event.kind));
    assert_complete(VARIANTS, found.iter().map(variant));
}

#[cfg(feature = "replay-version-test")]
fn second_generation() -> [Event; 2] {
    let (name, topic) = (s("Approve"), s("orders"));
    let data = s("yes");
    [
        (None, EventKind::ExternalSubscribed2 { name: name.clone(), topic: topic.clone() }),
        (None, EventKind::ExternalEvent2 { name, topic, data }),
    ]
    .map(event)
}

#[cfg(feature = "replay-version-test")]
#[test]
fn r2_60_second_generation_events() {
    assert_golden(include_str!("second_generation_events.jsonl"), &second_generation());
}

#[test]
fn r2_4_r2_5_stamps_are_kept_as_they_are() {
    for stamp in ["", "banana", "0.1.31-rc.1+build"] {
        let mut event = event((None, EventKind::KeyValuesCleared));
        event.duroxide_version = s(stamp);
        let json = serde_json::to_string(&event).unwrap();
        assert_eq!(serde_json::from_str::<Event>(&json).unwrap(), event);
    }
}
