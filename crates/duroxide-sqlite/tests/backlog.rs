//! What a bounded turn leaves behind, and a lease that ends while no fetch looks.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used)]

mod support;

use std::sync::Arc;
use std::time::Duration;

use duroxide::providers::{Provider, SessionFetchConfig, TagFilter, WorkItem};
use duroxide_sqlite::SqliteProvider;
use support::files::start;
use support::{Folder, stranger};

const LOCK: Duration = Duration::from_secs(600);
const NOW: Duration = Duration::ZERO;

async fn open(folder: &Folder) -> Arc<SqliteProvider> {
    Arc::new(SqliteProvider::new(&folder.url("a.db"), None).await.unwrap())
}

// R8.147: what is left is not part of the lock.
#[tokio::test(flavor = "multi_thread")]
async fn r8_147_what_a_bounded_turn_leaves_counts_as_waiting() {
    let folder = Folder::fast();
    let store = open(&folder).await;
    store.enqueue_for_orchestrator(start("a", "x"), None).await.unwrap();
    for _ in 0..1_200 {
        let (instance, reason) = ("a".to_owned(), "r".to_owned());
        let cancel = WorkItem::CancelInstance { instance, reason };
        store.enqueue_for_orchestrator(cancel, None).await.unwrap();
    }
    let turn = store.fetch_turn(LOCK, NOW, None).await.unwrap().expect("a turn");
    let left = 1_201 - turn.item.messages.len() as u64;
    assert_ne!(left, 0);
    let admin = store.as_management_capability().unwrap();
    assert_eq!(admin.get_queue_depths().await.unwrap().orchestrator_queue as u64, left);
}

fn of(owner: &str, lasts: Duration) -> SessionFetchConfig {
    SessionFetchConfig { owner_id: owner.to_owned(), lock_timeout: lasts }
}

// R8.81: the lease ends while a transaction that looks for no activities waits for the file.
#[tokio::test(flavor = "multi_thread")]
async fn r8_81_a_lease_that_ends_while_something_else_is_written_is_noticed() {
    let folder = Folder::fast();
    let store = open(&folder).await;
    for id in 1..=2 {
        let activity = WorkItem::ActivityExecute {
            instance: "a".to_owned(),
            execution_id: 1,
            id,
            name: "n".to_owned(),
            input: String::new(),
            session_id: Some("s".to_owned()),
            tag: None,
        };
        store.enqueue_for_worker(activity).await.unwrap();
    }
    let lease = Duration::from_millis(600);
    let first = store.fetch_work_item(LOCK, NOW, Some(&of("a", lease)), &TagFilter::Any).await;
    assert!(first.unwrap().is_some());
    let waits = tokio::spawn({
        let store = Arc::clone(&store);
        async move {
            let poll = Duration::from_secs(100);
            store.fetch_work_item(LOCK, poll, Some(&of("b", lease)), &TagFilter::Any).await
        }
    });
    // Whatever the machine does meanwhile: the lease ends before the write lock is released.
    let (held, holds) = tokio::sync::oneshot::channel();
    let path = folder.file("a.db");
    let holder = std::thread::spawn(move || {
        let connection = stranger(&path);
        connection.execute_batch("BEGIN IMMEDIATE").unwrap();
        held.send(()).unwrap();
        std::thread::sleep(2 * lease);
        connection.execute_batch("ROLLBACK").unwrap();
    });
    holds.await.unwrap();
    store.enqueue_for_orchestrator(start("b", "x"), None).await.unwrap();
    holder.join().unwrap();
    let taken = tokio::time::timeout(Duration::from_secs(60), waits).await;
    assert!(taken.expect("woken").unwrap().unwrap().is_some());
}
