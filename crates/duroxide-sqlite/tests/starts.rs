//! Starts that are read behind a backlog of other messages.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use std::time::Duration;

use duroxide::providers::{ExecutionMetadata, Provider, TurnCommit, WorkItem};
use duroxide::{Event, EventKind};
use duroxide_sqlite::SqliteProvider;
use support::Folder;
use support::files::start;

const LOCK: Duration = Duration::from_secs(600);
const NOW: Duration = Duration::ZERO;

/// The first turn of an instance.
fn first_turn(instance: &str, parent: Option<&str>) -> TurnCommit {
    let kind = EventKind::OrchestrationStarted {
        name: "Main".to_owned(),
        version: "1.0.0".to_owned(),
        input: String::new(),
        parent_instance: parent.map(str::to_owned),
        parent_id: parent.map(|_| 2),
        parent_execution_id: parent.map(|_| 1),
        carry_forward_events: None,
        initial_custom_status: None,
    };
    TurnCommit {
        execution_id: 1,
        history_delta: vec![Event::with_event_id(1, instance, 1, None, kind)],
        metadata: ExecutionMetadata {
            orchestration_name: Some("Main".to_owned()),
            orchestration_version: Some("1.0.0".to_owned()),
            parent_instance_id: parent.map(str::to_owned),
            ..ExecutionMetadata::default()
        },
        ..TurnCommit::default()
    }
}

async fn begin(store: &SqliteProvider, id: &str) {
    store.enqueue_for_orchestrator(start(id, "x"), None).await.unwrap();
    let turn = store.fetch_turn(LOCK, NOW, None).await.unwrap().unwrap();
    store.commit_turn(&turn.lock_token, first_turn(id, None)).await.unwrap();
}

/// The start of `x` as the child of this parent.
fn child_of(parent: &str) -> WorkItem {
    let WorkItem::StartOrchestration { instance, orchestration, input, version, .. } =
        start("x", "child")
    else {
        panic!("a start");
    };
    let (parent_instance, parent_id) = (Some(parent.to_owned()), Some(2));
    WorkItem::StartOrchestration {
        instance,
        orchestration,
        input,
        version,
        parent_instance,
        parent_id,
        parent_execution_id: Some(1),
        execution_id: 1,
    }
}

// R6.68: a turn that has read the start of a child whose parent is deleted meanwhile has no lock any more,
// also if that start came while the instance was locked, and is behind more than a turn reads.
#[tokio::test]
async fn r6_68_a_start_behind_a_backlog_goes_with_its_parent() {
    let folder = Folder::new();
    let store = SqliteProvider::new(&folder.url("a.db"), None).await.unwrap();
    begin(&store, "p1").await;
    begin(&store, "p2").await;
    store.enqueue_for_orchestrator(child_of("p1"), None).await.unwrap();
    assert!(store.fetch_turn(LOCK, NOW, None).await.unwrap().is_some());
    for number in 0..1005 {
        let (instance, name, data) = ("x".to_owned(), "e".to_owned(), number.to_string());
        let event = WorkItem::ExternalRaised { instance, name, data };
        store.enqueue_for_orchestrator(event, None).await.unwrap();
    }
    store.enqueue_for_orchestrator(child_of("p2"), None).await.unwrap();
    store.enqueue_for_orchestrator(start("x", "root"), None).await.unwrap();
    let admin = store.as_management_capability().unwrap();
    admin.delete_instance("p1", true).await.unwrap();
    let turn = store.fetch_turn(LOCK, NOW, None).await.unwrap().unwrap();
    assert_eq!(turn.item.messages.last(), Some(&child_of("p2")));
    admin.delete_instance("p2", true).await.unwrap();
    let committed = store.commit_turn(&turn.lock_token, first_turn("x", Some("p2"))).await;
    assert!(committed.is_err(), "its parent is no more");
}
