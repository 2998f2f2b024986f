//! What waits for the disk, and files that are made by many at once or in two goes (R10.6, R10.7).
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use duroxide::providers::ProviderAdmin;
use duroxide_sqlite::SqliteProvider;
use support::{Folder, stranger};

#[cfg(feature = "test-hooks")]
mod commits {
    use std::time::Duration;

    use duroxide::providers::{FetchedTurn, Provider, StartOutcome, TagFilter, TurnCommit};
    use duroxide_sqlite::{CommitFault, Durability, Seen, SqliteOptions, SqliteProvider};
    use rusqlite::ffi;

    use crate::support::Folder;
    use crate::support::files::start;

    const FULL: i64 = 2;
    const NORMAL: i64 = 1;

    async fn open(folder: &Folder, durability: Durability) -> SqliteProvider {
        let options = SqliteOptions { durability, ..SqliteOptions::default() };
        SqliteProvider::new(&folder.url("a.db"), Some(options)).await.unwrap()
    }

    fn no_change() -> TurnCommit {
        TurnCommit { execution_id: 1, ..TurnCommit::default() }
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
    async fn r6_88_a_caller_told_that_an_id_is_taken_can_rely_on_it() {
        let folder = Folder::new();
        let store = open(&folder, Durability::Full).await;
        store.faults().watch();
        for expected in [StartOutcome::Started, StartOutcome::Running] {
            let outcome = store.start_instance(start("x", "y"), false).await.unwrap();
            assert_eq!(outcome, expected);
        }
        // The second changed nothing of the instance, and waited for the disk: what it relies on, the
        // first start, may have been in the log only.
        assert_eq!(store.faults().seen().commits, [(true, FULL), (true, FULL)]);
    }

    /// A message while a fetch waits for a turn: the turn, and all that was seen until the sender
    /// was answered.
    async fn send_to_waiting(store: &SqliteProvider, instance: &str) -> (FetchedTurn, Seen) {
        let lock = Duration::from_secs(30);
        store.faults().watch();
        let send = async {
            store.enqueue_for_orchestrator(start(instance, "y"), None).await.unwrap();
            store.faults().seen()
        };
        let (turn, seen) = tokio::join!(store.fetch_turn(lock, lock, None), send);
        (turn.unwrap().unwrap(), seen)
    }

    #[tokio::test]
    async fn r10_6_a_message_whose_turn_begins_is_synced_before_its_sender_is_answered() {
        let folder = Folder::new();
        let store = open(&folder, Durability::Full).await;
        for number in 0..20 {
            let (_, seen) = send_to_waiting(&store, &format!("i{number}")).await;
            // The turn did not wait for the disk; the sender did. No turn is committed here.
            assert!(seen.commits.iter().all(|commit| *commit == (false, NORMAL)), "{seen:?}");
            assert_eq!(seen.syncs, 1);
        }
    }

    #[tokio::test]
    async fn r10_6_a_turn_that_is_committed_at_once_syncs_its_message_too() {
        let folder = Folder::new();
        let store = open(&folder, Durability::Full).await;
        let mut together = 0;
        for number in 0..50 {
            let id = format!("i{number}");
            let lock = Duration::from_secs(30);
            store.faults().watch();
            let send = async {
                store.enqueue_for_orchestrator(start(&id, "y"), None).await.unwrap();
                store.faults().seen()
            };
            let turn = async {
                let turn = store.fetch_turn(lock, lock, None).await.unwrap().unwrap();
                store.commit_turn(&turn.lock_token, no_change()).await.unwrap();
            };
            let ((), seen) = tokio::join!(turn, send);
            let synced = seen.commits.iter().filter(|commit| **commit == (true, FULL)).count();
            assert!(synced as u64 + seen.syncs > 0, "answered before the disk had it: {seen:?}");
            together += usize::from(seen.syncs == 0);
        }
        assert!(0 < together, "never one sync for both");
    }

    #[tokio::test]
    async fn r10_6_a_commit_that_changes_nothing_syncs_nothing() {
        let folder = Folder::new();
        let store = open(&folder, Durability::Full).await;
        let lock = Duration::from_secs(30);
        for number in 0..50 {
            let id = format!("i{number}");
            store.faults().watch();
            let send = async {
                store.enqueue_for_orchestrator(start(&id, "y"), None).await.unwrap();
                store.faults().seen()
            };
            // The turn is handed out while its message is not on the disk yet; what is refused then
            // writes nothing, so that SQLite has nothing to sync.
            let refused = async {
                let turn = store.fetch_turn(lock, lock, None).await.unwrap().unwrap();
                let foreign = turn.lock_token.replace("lock_t", "lock_tf");
                store.commit_turn(&foreign, no_change()).await.unwrap_err();
            };
            let ((), seen) = tokio::join!(refused, send);
            assert_eq!(seen.syncs, 1, "answered before the disk had it: {seen:?}");
        }
    }

    #[tokio::test]
    async fn r10_6_a_sync_that_fails_is_answered_from_the_file() {
        let folder = Folder::new();
        let store = open(&folder, Durability::Full).await;
        store.faults().fail_sync();
        let (turn, _) = send_to_waiting(&store, "i").await; // It is in the file, so it was sent.
        assert_eq!((turn.item.instance.as_str(), store.faults().fired()), ("i", 1));
        store.commit_turn(&turn.lock_token, no_change()).await.unwrap();
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
        let mut stores = Vec::new();
        for open in opens {
            stores.push(open.await.unwrap().unwrap());
        }
        for store in &stores {
            assert_eq!(store.list_instances().await.unwrap(), [""; 0]);
        }
    }
}
