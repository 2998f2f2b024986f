//! What waits for the disk, and files that are made by many at once or in two goes (R10.6, R10.7).
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use std::time::{Duration, Instant};

use duroxide::providers::ProviderAdmin;
use duroxide_sqlite::SqliteProvider;
use support::{Folder, stranger};

#[cfg(feature = "test-hooks")]
mod commits {
    use std::time::Duration;

    use duroxide::providers::{Provider, TagFilter};
    use duroxide_sqlite::{CommitFault, Durability, SqliteOptions, SqliteProvider};
    use rusqlite::ffi;

    use crate::support::Folder;
    use crate::support::files::start;

    const FULL: i64 = 2;
    const NORMAL: i64 = 1;

    async fn open(folder: &Folder, durability: Durability) -> SqliteProvider {
        let options = SqliteOptions { durability, ..SqliteOptions::default() };
        SqliteProvider::new(&folder.url("a.db"), Some(options)).await.unwrap()
    }

    /// One commit of each kind; `PRAGMA synchronous` in each.
    async fn levels(store: &SqliteProvider) -> Vec<(bool, i64)> {
        let (lock, now) = (Duration::from_secs(30), Duration::ZERO);
        store.faults().watch();
        store.enqueue_for_orchestrator(start("x", "y"), None).await.unwrap();
        let turn = store.fetch_turn(lock, now, None).await.unwrap().expect("a turn");
        store.renew_orchestration_item_lock(&turn.lock_token, lock).await.unwrap();
        store.fetch_work_item(lock, now, None, &TagFilter::Any).await.unwrap();
        store.abandon_orchestration_item(&turn.lock_token, None, true).await.unwrap();
        store.append_with_execution("x", 1, Vec::new()).await.unwrap();
        store.faults().seen().commits
    }

    #[tokio::test]
    async fn r10_6_what_is_acknowledged_waits_for_the_disk_and_leases_do_not() {
        let folder = Folder::new();
        let store = open(&folder, Durability::Full).await;
        let (lasting, lease) = ((true, FULL), (false, NORMAL));
        let expected = [lasting, lease, lease, lease, lease, lasting];
        assert_eq!(levels(&store).await, expected);
        // A connection that was replaced is set up like the first.
        store.faults().fail_commit(CommitFault::Before, ffi::SQLITE_IOERR_FSYNC);
        store.enqueue_for_orchestrator(start("x", "y"), None).await.unwrap_err();
        assert_eq!(levels(&store).await, expected);
    }

    #[tokio::test]
    async fn r10_6_what_need_only_survive_the_process_never_waits() {
        let folder = Folder::new();
        let store = open(&folder, Durability::Process).await;
        assert!(levels(&store).await.iter().all(|(_, level)| *level == NORMAL));
    }
}

#[tokio::test]
async fn r10_6_the_file_has_a_log() {
    let folder = Folder::new();
    let store = SqliteProvider::new(&folder.url("a.db"), None).await.unwrap();
    let connection = stranger(&folder.file("a.db"));
    let mode: String = connection.query_row("PRAGMA journal_mode", [], |row| row.get(0)).unwrap();
    assert_eq!(mode, "wal");
    drop((connection, store));
    let files: Vec<_> = std::fs::read_dir(folder.path()).unwrap().collect();
    assert_eq!(files.len(), 1, "closed, only the database is left: {files:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn r10_7_many_may_open_a_fresh_file_at_once() {
    for _ in 0..5 {
        let folder = Folder::fast();
        let opens: Vec<_> = (0..8)
            .map(|_| {
                let url = folder.url("a.db");
                tokio::spawn(async move { SqliteProvider::new(&url, None).await })
            })
            .collect();
        let began = Instant::now();
        let mut stores = Vec::new();
        for open in opens {
            stores.push(open.await.unwrap().unwrap());
        }
        assert!(began.elapsed() < Duration::from_secs(3), "took {:?}", began.elapsed());
        for store in &stores {
            assert_eq!(store.list_instances().await.unwrap(), [""; 0]);
        }
    }
}
