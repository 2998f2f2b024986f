//! Messages and activities, as most tests need them.

use duroxide::providers::WorkItem;

pub(crate) fn start(instance: &str) -> WorkItem {
    WorkItem::StartOrchestration {
        instance: instance.to_owned(),
        orchestration: "Main".to_owned(),
        input: "input".to_owned(),
        version: Some("1.0.0".to_owned()),
        parent_instance: None,
        parent_id: None,
        parent_execution_id: None,
        execution_id: 1,
    }
}

pub(crate) fn activity(instance: &str, id: u64) -> WorkItem {
    WorkItem::ActivityExecute {
        instance: instance.to_owned(),
        execution_id: 1,
        id,
        name: "A".to_owned(),
        input: "input".to_owned(),
        session_id: None,
        tag: None,
    }
}

pub(crate) fn outcome(instance: &str, id: u64) -> WorkItem {
    let (instance, result) = (instance.to_owned(), "result".to_owned());
    WorkItem::ActivityCompleted { instance, execution_id: 1, id, result }
}
