//! Every kind of message.

use duroxide_core::model::{WorkItem, kind_of};

use super::events::boom;
use super::{assert_complete, assert_golden, variants};

variants! { WorkItem:
    StartOrchestration,
    ActivityExecute,
    ActivityCompleted,
    ActivityFailed,
    TimerFired,
    ExternalRaised,
    SubOrchCompleted,
    SubOrchFailed,
    CancelInstance,
    ContinueAsNew,
    QueueMessage,
    #[cfg(feature = "replay-version-test")]
    ExternalRaised2,
}

fn s(text: &str) -> String {
    text.to_owned()
}

/// The messages of `work_items.jsonl`.
fn items() -> Vec<WorkItem> {
    let instance = s("i");
    let completed =
        |instance| WorkItem::ActivityCompleted { instance, execution_id: 1, id: 2, result: s("r") };
    vec![
        start(false),
        start(true),
        execute(None, None),
        execute(Some("sess-1"), Some("gpu")),
        completed(instance.clone()),
        WorkItem::ActivityFailed {
            instance: instance.clone(),
            execution_id: 1,
            id: 2,
            details: boom(),
        },
        WorkItem::TimerFired {
            instance: instance.clone(),
            execution_id: 1,
            id: 3,
            fire_at_ms: 1_700_000_005_000,
        },
        WorkItem::ExternalRaised { instance: instance.clone(), name: s("Approve"), data: s("yes") },
        WorkItem::SubOrchCompleted {
            parent_instance: s("p"),
            parent_execution_id: 1,
            parent_id: 2,
            result: s("r"),
        },
        WorkItem::SubOrchFailed {
            parent_instance: s("p"),
            parent_execution_id: 1,
            parent_id: 2,
            details: boom(),
        },
        WorkItem::CancelInstance { instance: instance.clone(), reason: s("user asked") },
        continues(false),
        continues(true),
        WorkItem::QueueMessage { instance, name: s("q"), data: s("m") },
    ]
}

fn start(child: bool) -> WorkItem {
    WorkItem::StartOrchestration {
        instance: s(if child { "p::sub::2" } else { "i" }),
        orchestration: s(if child { "Child" } else { "Hello" }),
        input: s("in"),
        version: child.then(|| s("1.0.0")),
        parent_instance: child.then(|| s("p")),
        parent_id: child.then_some(2),
        parent_execution_id: child.then_some(1),
        execution_id: 1,
    }
}

fn execute(session_id: Option<&str>, tag: Option<&str>) -> WorkItem {
    WorkItem::ActivityExecute {
        instance: s("i"),
        execution_id: 1,
        id: 2,
        name: s("A"),
        input: s("in"),
        session_id: session_id.map(s),
        tag: tag.map(s),
    }
}

fn continues(all: bool) -> WorkItem {
    WorkItem::ContinueAsNew {
        instance: s("i"),
        orchestration: s("Hello"),
        input: s("next"),
        version: all.then(|| s("2.0.0")),
        parent_instance: all.then(|| s("p")),
        parent_id: all.then_some(2),
        parent_execution_id: all.then_some(1),
        carry_forward_events: if all { vec![(s("q"), s("m1"))] } else { Vec::new() },
        initial_custom_status: all.then(|| s("50%")),
    }
}

#[test]
fn r2_70_r2_72_r2_73_work_items() {
    assert_golden(include_str!("work_items.jsonl"), &items());
}

#[cfg(feature = "replay-version-test")]
fn second_generation() -> WorkItem {
    WorkItem::ExternalRaised2 {
        instance: s("i"),
        name: s("Approve"),
        topic: s("orders"),
        data: s("yes"),
    }
}

#[cfg(feature = "replay-version-test")]
#[test]
fn r2_60_second_generation_work_items() {
    assert_golden(include_str!("second_generation_work_items.jsonl"), &[second_generation()]);
}

#[test]
fn every_variant_has_a_golden_line() {
    #[cfg_attr(not(feature = "replay-version-test"), expect(unused_mut))]
    let mut found = items();
    #[cfg(feature = "replay-version-test")]
    found.push(second_generation());
    assert_complete(VARIANTS, found.iter().map(variant));
}

#[test]
fn r2_71_labels_are_the_variants_names_but_for_one() {
    for item in items() {
        let label = match variant(&item) {
            "QueueMessage" => "ExternalRaisedPersistent",
            name => name,
        };
        assert_eq!(kind_of(&item), label);
    }
}
