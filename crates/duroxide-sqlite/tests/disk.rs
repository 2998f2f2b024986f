//! A disk that is full, a file that is gone or damaged while in use (R10.13, R10.22, R10.23).
#![cfg(feature = "test-hooks")]
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use std::fs::OpenOptions;
use std::io::{Seek, SeekFrom, Write};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use duroxide::providers::invariants::check_invariants;
use duroxide::providers::{Provider, ProviderAdmin, ProviderError, TagFilter};
use duroxide::{Client, OrchestrationStatus};
use duroxide_sqlite::SqliteProvider;
use support::Folder;
use support::again::{inner_folder, on_small_disk};
use support::files::{contents, filled, start};
use support::workload::{answer, begin, insist, runtime};

async fn open(folder: &Folder) -> Arc<SqliteProvider> {
    Arc::new(SqliteProvider::new(&folder.url("a.db"), None).await.unwrap())
}

/// Starts instances until the disk is full; those that were acknowledged.
async fn start_until_full(client: &Client) -> Vec<String> {
    let mut acknowledged = Vec::new();
    for n in 0.. {
        let instance = format!("i{n}");
        match client.start_orchestration(&instance, "Hello", "x".repeat(2000)).await {
            Ok(()) => acknowledged.push(instance),
            Err(error) => {
                assert!(error.to_string().contains("no room left on the disk"), "{error}");
                assert!(error.is_retryable(), "{error}");
                break;
            }
        }
        assert!(n < 100_000, "it never fills up");
    }
    acknowledged
}

/// Everything that was acknowledged is done in the end, by itself.
async fn all_done(store: &SqliteProvider, client: &Client, acknowledged: &[String]) {
    for instance in acknowledged {
        let wait = || client.wait_for_orchestration(instance, Duration::from_secs(60));
        match insist(wait).await {
            OrchestrationStatus::Completed { output, .. } => {
                assert_eq!(output, format!("A:{}", "x".repeat(2000)));
            }
            other => panic!("{instance}: {other:?}"),
        }
    }
    check_invariants(store).await.unwrap();
    assert_eq!(store.list_dead_letters().await.unwrap(), []);
}

#[tokio::test(flavor = "multi_thread")]
async fn r10_13_a_full_database_fills_up_and_goes_on() {
    let folder = Folder::fast();
    let store = open(&folder).await;
    let client = Client::new(store.clone());
    begin(&client, "before").await;
    store.faults().limit_pages(40);
    let acknowledged = start_until_full(&client).await;
    assert!(!acknowledged.is_empty());
    // A runtime that starts while there is no room does not give up.
    let runtime = runtime(store.clone()).await;
    client.start_orchestration("more", "Hello", "x".repeat(20_000)).await.unwrap_err();
    store.faults().limit_pages(u32::MAX - 1);
    let before = client.wait_for_orchestration("before", Duration::from_secs(60)).await.unwrap();
    let expected = answer("x", "m");
    assert!(matches!(before, OrchestrationStatus::Completed { output, .. } if output == expected));
    all_done(&store, &client, &acknowledged).await;
    runtime.shutdown(Some(1000)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn r10_13_a_full_disk_fills_up_and_goes_on() {
    let test = "r10_13_a_full_disk_fills_up_and_goes_on";
    let Some(folder) = inner_folder() else {
        if !on_small_disk(test, 3 << 20) {
            eprintln!("{test}: skipped, no disk of its own can be mounted here");
        }
        return;
    };
    let store = open(&folder).await;
    let client = Client::new(store.clone());
    let runtime = runtime(store.clone()).await;
    let filler = folder.file("filler");
    fill(&filler);
    let acknowledged = start_until_full(&client).await;
    // Still full: a write is refused with the reason, a read is served.
    let refused = client.start_orchestration("late", "Hello", "x".repeat(200_000)).await;
    assert!(refused.unwrap_err().is_retryable());
    store.list_instances().await.unwrap();
    std::fs::remove_file(&filler).unwrap();
    all_done(&store, &client, &acknowledged).await;
    client.start_orchestration("after", "Hello", "x".repeat(2000)).await.unwrap();
    all_done(&store, &client, &["after".to_owned()]).await;
    runtime.shutdown(Some(1000)).await;
}

/// Writes until there is no room.
fn fill(path: &Path) {
    let mut file = std::fs::File::create(path).unwrap();
    for size in [4096, 1] {
        while file.write_all(&vec![0; size]).is_ok() {}
    }
}

/// Waits until a call fails; its error. Deletion may go unnoticed for a moment.
async fn failure<T>(call: impl AsyncFn() -> Result<T, ProviderError>) -> ProviderError {
    let began = Instant::now();
    loop {
        match call().await {
            Err(error) => return error,
            Ok(_) => assert!(began.elapsed() < Duration::from_secs(60), "not noticed"),
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

async fn is_lost(store: &SqliteProvider) {
    let (lock, poll) = (Duration::from_secs(1), Duration::from_secs(5));
    let now = Duration::ZERO;
    let lost = [
        failure(|| store.fetch_turn(lock, poll, None)).await,
        failure(|| store.fetch_work_item(lock, now, None, &TagFilter::Any)).await,
        failure(|| store.enqueue_for_orchestrator(start("x", "y"), None)).await,
        failure(|| store.read("x")).await,
        failure(|| store.list_instances()).await,
    ];
    for error in lost {
        assert!(error.message.contains("was deleted or replaced while in use"), "{error}");
        assert!(error.message.contains("a.db"), "{error}");
        assert!(!error.retryable, "{error}");
    }
}

#[tokio::test]
async fn r10_22_a_file_deleted_while_in_use() {
    let folder = Folder::new();
    let store = open(&folder).await;
    store.read("x").await.unwrap();
    std::fs::remove_file(folder.file("a.db")).unwrap();
    is_lost(&store).await;
    drop(store);
    assert!(!folder.file("a.db").exists(), "nothing was made in its place");
}

#[tokio::test]
async fn r10_22_a_file_replaced_while_in_use() {
    let (folder, elsewhere) = (Folder::new(), Folder::new());
    let store = open(&folder).await;
    store.enqueue_for_orchestrator(start("x", "y"), None).await.unwrap();
    let other = filled(&elsewhere, "b.db").await;
    let content = std::fs::read(&other).unwrap();
    std::fs::rename(&other, folder.file("a.db")).unwrap();
    is_lost(&store).await;
    drop(store);
    assert!(contents(folder.path())[&folder.file("a.db")] == content, "the new file was written");
}

#[tokio::test(flavor = "multi_thread")]
async fn r10_23_pages_damaged_while_in_use() {
    let folder = Folder::new();
    let path = filled(&folder, "a.db").await;
    let store = open(&folder).await;
    let pages = std::fs::metadata(&path).unwrap().len() / 4096;
    let mut file = OpenOptions::new().write(true).open(&path).unwrap();
    for page in 1..pages {
        file.seek(SeekFrom::Start(page * 4096)).unwrap();
        file.write_all(&[0xa5; 4096]).unwrap();
    }
    let runtime = runtime(store.clone()).await;
    let (lock, now) = (Duration::from_secs(1), Duration::ZERO);
    let damaged = [
        failure(|| store.fetch_turn(lock, now, None)).await,
        failure(|| store.read("a.db-7")).await,
        failure(|| store.enqueue_for_orchestrator(start("a.db-7", "y"), None)).await,
    ];
    for error in damaged {
        assert!(error.message.contains("a.db is damaged"), "{error}");
        assert!(!error.retryable, "{error}");
    }
    runtime.shutdown(Some(1000)).await;
}
