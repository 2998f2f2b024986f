//! Smaller promises of the provider, one test each.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use std::sync::Arc;
use std::time::Duration;

use duroxide::providers::{
    ExecutionMetadata, Provider, ProviderAdmin, ScheduledActivityIdentifier, TagFilter, TurnCommit,
    WorkItem,
};
use duroxide_sqlite::{Durability, SqliteOptions, SqliteProvider};
use support::files::start;
use support::workload::PATIENCE;
use support::{Folder, stranger};

const LOCK: Duration = Duration::from_secs(3600);
const NOW: Duration = Duration::ZERO;

fn activity(instance: &str, id: u64) -> WorkItem {
    WorkItem::ActivityExecute {
        instance: instance.to_owned(),
        execution_id: 1,
        id,
        name: "A".to_owned(),
        input: String::new(),
        session_id: None,
        tag: None,
    }
}

fn commit(parent: Option<&str>) -> TurnCommit {
    TurnCommit {
        execution_id: 1,
        metadata: ExecutionMetadata {
            orchestration_name: Some("Main".to_owned()),
            orchestration_version: Some("1.0.0".to_owned()),
            parent_instance_id: parent.map(str::to_owned),
            ..ExecutionMetadata::default()
        },
        ..TurnCommit::default()
    }
}

async fn take(store: &SqliteProvider) -> String {
    store.fetch_turn(LOCK, NOW, None).await.unwrap().expect("a turn").lock_token
}

#[tokio::test]
async fn r10_1_constructors() {
    let folder = Folder::new();
    let options = SqliteOptions {
        durability: Durability::Process,
        orphan_retention: Some(Duration::from_secs(1)),
        clock: None,
    };
    SqliteProvider::new(&folder.url("a.db"), None).await.unwrap();
    SqliteProvider::new(&folder.url("a.db"), Some(options.clone())).await.unwrap();
    SqliteProvider::new_in_memory_with_options(Some(options)).await.unwrap();
    let store = SqliteProvider::new_in_memory().await.unwrap();
    assert!(format!("{store:?}").contains("Memory"));
    assert_eq!(store.name(), "sqlite"); // R10.14
    assert_eq!(store.version(), env!("CARGO_PKG_VERSION"));
}

#[tokio::test]
async fn r10_3_stores_in_memory_are_strangers_to_each_other() {
    for url in ["sqlite::memory:", "sqlite:shared?mode=memory&cache=shared"] {
        let (one, other) =
            (SqliteProvider::new(url, None).await, SqliteProvider::new(url, None).await);
        one.unwrap().enqueue_for_orchestrator(start("x", "y"), None).await.unwrap();
        assert_eq!(other.unwrap().get_queue_depths().await.unwrap().orchestrator_queue, 0);
    }
}

#[tokio::test]
async fn r10_8_times_are_milliseconds() {
    let folder = Folder::new();
    let store = SqliteProvider::new(&folder.url("a.db"), None).await.unwrap();
    let before = store.store_time_ms().unwrap();
    store.enqueue_for_orchestrator(start("x", "y"), None).await.unwrap();
    let token = take(&store).await;
    store.commit_turn(&token, commit(None)).await.unwrap();
    let info = store.get_instance_info("x").await.unwrap();
    let after = store.store_time_ms().unwrap();
    assert!((before..=after).contains(&info.created_at), "{before} {info:?} {after}");
}

#[tokio::test]
async fn r10_9_a_child_may_come_before_its_parent() {
    let store = SqliteProvider::new_in_memory().await.unwrap();
    for (instance, parent) in [("child", Some("root")), ("root", None)] {
        store.enqueue_for_orchestrator(start(instance, "y"), None).await.unwrap();
        let token = take(&store).await;
        store.commit_turn(&token, commit(parent)).await.unwrap();
    }
    assert_eq!(store.list_children("root").await.unwrap(), ["child"]);
    store.delete_instances_atomic(&["root".to_owned()], true).await.unwrap_err();
    assert_eq!(store.delete_instance("root", true).await.unwrap().instances_deleted, 2);
}

#[tokio::test]
async fn r10_11_a_waiting_fetch_is_served_by_another_providers_commit() {
    let folder = Folder::new();
    let here = Arc::new(SqliteProvider::new(&folder.url("a.db"), None).await.unwrap());
    let there = SqliteProvider::new(&folder.url("a.db"), None).await.unwrap();
    let turn = tokio::spawn({
        let here = Arc::clone(&here);
        async move { here.fetch_turn(LOCK, LOCK, None).await }
    });
    let work = tokio::spawn({
        let here = Arc::clone(&here);
        async move { here.fetch_work_item(LOCK, LOCK, None, &TagFilter::Any).await }
    });
    there.enqueue_for_orchestrator(start("x", "y"), None).await.unwrap();
    there.enqueue_for_worker(activity("x", 1)).await.unwrap();
    let turn = tokio::time::timeout(PATIENCE, turn).await.expect("served").unwrap();
    assert_eq!(turn.unwrap().expect("a turn").item.instance, "x");
    let work = tokio::time::timeout(PATIENCE, work).await.expect("served").unwrap();
    assert_eq!(work.unwrap().expect("work").0, activity("x", 1));
}

#[tokio::test]
async fn r10_15_a_checkpoint_empties_the_log_and_a_dump_is_for_people() {
    let folder = Folder::new();
    let store = SqliteProvider::new(&folder.url("a.db"), None).await.unwrap();
    store.enqueue_for_orchestrator(start("x", "y"), None).await.unwrap();
    let log = folder.file("a.db-wal");
    assert!(0 < std::fs::metadata(&log).unwrap().len());
    store.checkpoint().await.unwrap();
    assert_eq!(std::fs::metadata(&log).unwrap().len(), 0);
    // What was copied alone is whole.
    std::fs::copy(folder.file("a.db"), folder.file("copy.db")).unwrap();
    let copy = SqliteProvider::new(&folder.url("copy.db"), None).await.unwrap();
    assert_eq!(copy.get_queue_depths().await.unwrap().orchestrator_queue, 1);
    assert!(store.debug_dump().await.contains("orchestrator queue: 1 unlocked"));
    let memory = SqliteProvider::new_in_memory().await.unwrap();
    memory.checkpoint().await.unwrap(); // Nothing to do, and nothing wrong.
}

#[tokio::test]
async fn r10_16_thousands_of_activities_cancelled_at_once() {
    const MANY: u64 = 40_000; // More than SQLite binds to one statement.
    let store = SqliteProvider::new_in_memory().await.unwrap();
    store.enqueue_for_orchestrator(start("x", "y"), None).await.unwrap();
    let token = take(&store).await;
    let mut turn = commit(None);
    turn.worker_items = (1..=MANY).map(|id| activity("x", id)).collect();
    let cancelled = |activity_id| ScheduledActivityIdentifier {
        instance: "x".to_owned(),
        execution_id: 1,
        activity_id,
    };
    turn.cancelled_activities = (1..MANY).map(cancelled).collect();
    store.commit_turn(&token, turn).await.unwrap();
    let left = store.fetch_work_item(LOCK, NOW, None, &TagFilter::Any).await.unwrap();
    assert_eq!(left.expect("one is left").0, activity("x", MANY));
    assert_eq!(store.get_queue_depths().await.unwrap().worker_queue, 0);
}

#[tokio::test]
async fn r10_17_depths_count_what_no_lock_covers_and_is_due() {
    let store = SqliteProvider::new_in_memory().await.unwrap();
    let depths = async || {
        let depths = store.get_queue_depths().await.unwrap();
        (depths.orchestrator_queue, depths.worker_queue)
    };
    store.enqueue_for_orchestrator(start("x", "y"), None).await.unwrap();
    store.enqueue_for_orchestrator(start("later", "y"), Some(LOCK)).await.unwrap();
    store.enqueue_for_worker(activity("x", 1)).await.unwrap();
    assert_eq!(depths().await, (1, 1));
    let turn = take(&store).await;
    let work = store.fetch_work_item(LOCK, NOW, None, &TagFilter::Any).await.unwrap().unwrap().1;
    assert_eq!(depths().await, (0, 0));
    store.abandon_orchestration_item(&turn, Some(LOCK), false).await.unwrap();
    store.abandon_work_item(&work, Some(LOCK), true).await.unwrap();
    assert_eq!(depths().await, (1, 1));
}

#[tokio::test]
async fn r10_21_leases_of_the_dead_are_free_at_once() {
    let (folder, grave) = (Folder::new(), Folder::new());
    let store = SqliteProvider::new(&folder.url("a.db"), None).await.unwrap();
    store.enqueue_for_orchestrator(start("x", "y"), None).await.unwrap();
    store.enqueue_for_worker(activity("x", 1)).await.unwrap();
    let token = take(&store).await;
    store.fetch_work_item(LOCK, NOW, None, &TagFilter::Any).await.unwrap().expect("work");
    // As a new process finds it after its predecessor was killed: locked, with no process that renews.
    for ending in ["", "-wal"] {
        let name = format!("a.db{ending}");
        std::fs::copy(folder.file(&name), grave.file(&name)).unwrap();
    }
    let heir = SqliteProvider::new(&grave.url("a.db"), None).await.unwrap();
    // Their locks would last for an hour.
    let poll = Duration::from_secs(60);
    let turn = heir.fetch_turn(LOCK, poll, None).await.unwrap().expect("the same turn");
    let work = heir.fetch_work_item(LOCK, poll, None, &TagFilter::Any).await.unwrap();
    assert_eq!((turn.attempt_count, work.expect("the same work").2), (2, 2));
    let error = heir.commit_turn(&token, commit(None)).await.unwrap_err().error;
    assert!(error.message.contains("Invalid lock token"), "the dead are fenced off: {error}");
    // Living processes keep theirs when another process opens the file.
    let guest = SqliteProvider::new(&folder.url("a.db"), None).await.unwrap();
    assert!(guest.fetch_turn(LOCK, NOW, None).await.unwrap().is_none());
    drop(guest);
    store.commit_turn(&token, commit(None)).await.unwrap();
}

#[tokio::test]
async fn r10_5_reading_does_not_wait_for_the_writer() {
    let folder = Folder::new();
    let store = SqliteProvider::new(&folder.url("a.db"), None).await.unwrap();
    let holder = stranger(&folder.file("a.db"));
    holder.execute_batch("BEGIN IMMEDIATE").unwrap();
    let enqueue = store.enqueue_for_orchestrator(start("x", "y"), None);
    tokio::pin!(enqueue);
    assert!(tokio::time::timeout(Duration::from_millis(50), &mut enqueue).await.is_err());
    // The writer waits for the lock; reads are served meanwhile.
    assert_eq!(store.get_queue_depths().await.unwrap().orchestrator_queue, 0);
    holder.execute_batch("ROLLBACK").unwrap();
    enqueue.await.unwrap();
    assert_eq!(store.get_queue_depths().await.unwrap().orchestrator_queue, 1);
}

/// R6.68, R8.147: only starts that are not the first message of a new instance need an index.
#[tokio::test]
async fn starts_are_known_by_their_place_or_by_an_index() {
    let folder = Folder::new();
    let store = SqliteProvider::new(&folder.url("a.db"), None).await.unwrap();
    let event = WorkItem::ExternalRaised {
        instance: "later".to_owned(),
        name: "e".to_owned(),
        data: "d".to_owned(),
    };
    for message in [start("first", "x"), start("first", "y"), event, start("later", "x")] {
        store.enqueue_for_orchestrator(message, None).await.unwrap();
    }
    let sql = "SELECT group_concat(kind) FROM (SELECT kind FROM messages ORDER BY instance, seq)";
    let kinds = || -> String {
        stranger(&folder.file("a.db")).query_row(sql, [], |row| row.get(0)).unwrap()
    };
    assert_eq!(kinds(), "1,3,0,3");
    // Given back for later, it is one among others when it comes back.
    let turn = store.fetch_turn(LOCK, NOW, None).await.unwrap().expect("a turn");
    assert_eq!(turn.item.instance, "first");
    let soon = Some(Duration::from_millis(1));
    store.abandon_orchestration_item(&turn.lock_token, soon, false).await.unwrap();
    let mut again = Vec::new();
    while again.len() < 2 {
        let turn = store.fetch_turn(LOCK, LOCK, None).await.unwrap().expect("a turn");
        again.push(turn.item.instance);
    }
    again.sort();
    assert_eq!(again, ["first", "later"]);
    assert_eq!(kinds(), "3,3,0,3");
}
