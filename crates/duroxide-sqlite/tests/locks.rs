//! The system's locks on the file: kept whatever the process does with the store, and what happens
//! when they, or the log they protect, are lost all the same (R10.25, R10.26).
#![cfg(unix)]
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use duroxide::providers::{Provider, ProviderAdmin, ProviderError, TagFilter};
use duroxide_sqlite::{SqliteError, SqliteProvider};
use support::files::{contents, filled, start};
use support::{Folder, stranger};

/// Set in the process that runs a test again: the database, and what to do.
const FILE: &str = "DUROXIDE_TEST_FILE";

async fn open(folder: &Folder) -> Arc<SqliteProvider> {
    Arc::new(SqliteProvider::new(&folder.url("a.db"), None).await.unwrap())
}

async fn enqueue(store: &SqliteProvider, instance: &str) -> Result<(), ProviderError> {
    store.enqueue_for_orchestrator(start(instance, "y"), None).await
}

/// Messages in a file, as a store that is opened for it sees them.
async fn found(folder: &Folder) -> usize {
    let store = open(folder).await;
    store.get_queue_depths().await.unwrap().orchestrator_queue
}

/// This process's POSIX locks on a file, as the kernel lists them; `None` if it lists none at all.
fn locks_on(path: &Path) -> Option<usize> {
    let table = std::fs::read_to_string("/proc/locks").ok()?;
    let (process, inode) = (std::process::id().to_string(), path.metadata().ok()?.ino());
    let own = table.lines().filter(|line| line.contains(" POSIX "));
    let own = own.filter(|line| line.split_whitespace().nth(4) == Some(&process));
    let file = format!(":{inode}");
    Some(
        own.filter(|line| line.split_whitespace().nth(5).is_some_and(|on| on.ends_with(&file)))
            .count(),
    )
}

/// Runs one test of this binary again, as a process of its own; whether it ended well.
fn run_again(test: &str, file: &Path) -> bool {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", test, "--nocapture", "--include-ignored"]).env(FILE, file);
    let done = command.output().unwrap();
    eprintln!("{}{}", String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
    done.status.success()
}

/// Another process opens the database, reads it, and closes it, as a backup does: that of SQLite's own
/// command, if it is installed. Its older versions believe the locks; newer ones look a second time.
fn opened_by_another(file: &Path) {
    let mut command = Command::new("sqlite3");
    match command.arg(file).arg("SELECT count(*) FROM messages").output() {
        Ok(done) => assert!(done.status.success(), "{done:?}"),
        Err(_) => assert!(run_again("as_another_process_that_reads", file)),
    }
}

#[test]
#[ignore = "run by others, in a process of its own"]
fn as_another_process_that_reads() {
    let Some(file) = std::env::var_os(FILE) else { return };
    let connection = stranger(Path::new(&file));
    let count = |sql| connection.query_row(sql, [], |row| row.get::<_, i64>(0)).unwrap();
    count("SELECT count(*) FROM messages");
    connection.close().unwrap();
}

/// What a process does that closes a database and takes itself for the last one.
#[test]
#[ignore = "run by others, in a process of its own"]
fn as_another_process_that_closes_last() {
    let Some(file) = std::env::var_os(FILE) else { return };
    let connection = stranger(Path::new(&file));
    connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(())).unwrap();
    connection.close().unwrap();
    for ending in ["-shm", "-wal"] {
        let mut name = file.clone();
        name.push(ending);
        std::fs::remove_file(name).unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn r10_25_locks_are_kept_whatever_is_done_with_the_store() {
    let folder = Folder::new();
    let store = open(&folder).await;
    enqueue(&store, "x").await.unwrap();
    let file = folder.file("a.db");
    if (0..100).all(|_| locks_on(&file).is_none_or(|locks| locks == 0)) {
        eprintln!("skipped: the kernel lists no locks here");
        return;
    }
    // The list is not read in one piece: a line may be missed while others lock and unlock. A lock that
    // was released is missing every time.
    let has_locks = |name: &str| (0..100).any(|_| locks_on(&folder.file(name)) != Some(0));
    let holds = |after: &str| {
        assert!(has_locks("a.db"), "no lock is left after {after}");
        assert!(has_locks("a.db-shm"), "none on the index after {after}");
    };
    let again = open(&folder).await;
    holds("opening it again");
    enqueue(&again, "y").await.unwrap();
    again.list_instances().await.unwrap();
    drop(again);
    holds("closing it again");
    std::os::unix::fs::symlink(&file, folder.file("link.db")).unwrap();
    drop(SqliteProvider::new(&folder.url("link.db"), None).await.unwrap());
    holds("opening it by a symbolic link");
    store.checkpoint().await.unwrap();
    holds("a checkpoint");
    drop(open(&folder).await);
    holds("opening it with an empty log");
    store.read("x").await.unwrap();
    store.debug_dump().await;
    store.fetch_turn(Duration::from_secs(60), Duration::ZERO, None).await.unwrap();
    holds("reading and fetching");
    std::fs::hard_link(&file, folder.file("hard.db")).unwrap();
    SqliteProvider::new(&folder.url("hard.db"), None).await.unwrap_err();
    holds("a refusal");
}

/// Opens a store twice, is looked at by another process, goes on, and dies.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "run by others, in a process of its own"]
async fn as_a_process_that_opens_twice_and_dies() {
    let Some(file) = std::env::var_os(FILE) else { return };
    let url = format!("sqlite:{}?mode=rwc", Path::new(&file).display());
    let store = SqliteProvider::new(&url, None).await.unwrap();
    enqueue(&store, "before").await.unwrap();
    let _twice = SqliteProvider::new(&url, None).await.unwrap();
    opened_by_another(Path::new(&file));
    for n in 0..100 {
        enqueue(&store, &format!("i{n}")).await.unwrap();
    }
    std::process::abort();
}

#[tokio::test(flavor = "multi_thread")]
async fn r10_25_what_was_acknowledged_beside_a_second_opener_is_found() {
    let folder = Folder::new();
    assert!(!run_again("as_a_process_that_opens_twice_and_dies", &folder.file("a.db")));
    assert_eq!(found(&folder).await, 101);
    let verdict: String = stranger(&folder.file("a.db"))
        .query_row("PRAGMA integrity_check", [], |row| row.get(0))
        .unwrap();
    assert_eq!(verdict, "ok");
}

#[tokio::test]
async fn r10_25_names_of_one_file_are_one_store() {
    let (folder, elsewhere) = (Folder::new(), Folder::new());
    let file = folder.file("a.db");
    let link = elsewhere.file("link.db");
    // A link that leads nowhere yet: the file is made where it leads.
    std::os::unix::fs::symlink(&file, &link).unwrap();
    let by_link = SqliteProvider::new(&elsewhere.url("link.db"), None).await.unwrap();
    enqueue(&by_link, "x").await.unwrap();
    by_link.fetch_turn(Duration::from_secs(3600), Duration::ZERO, None).await.unwrap().unwrap();
    // A store opened by the other name knows that the first one lives.
    let by_name = open(&folder).await;
    enqueue(&by_name, "y").await.unwrap();
    let lock = Duration::from_secs(3600);
    let turn = by_name.fetch_turn(lock, Duration::from_secs(1), None).await.unwrap().unwrap();
    assert_eq!(turn.item.instance, "y", "the living keep their leases");
    assert!(by_name.fetch_turn(lock, Duration::from_secs(1), None).await.unwrap().is_none());
    let beside_link = contents(elsewhere.path()).into_keys().collect::<Vec<_>>();
    assert_eq!(beside_link, [link], "everything is beside the file");
}

#[tokio::test]
async fn r10_12_a_file_with_two_names_is_refused() {
    let folder = Folder::new();
    let file = filled(&folder, "a.db").await;
    std::fs::hard_link(&file, folder.file("b.db")).unwrap();
    for name in ["a.db", "b.db"] {
        let error = support::files::refusal(&folder, &folder.url(name)).await;
        assert!(matches!(error, SqliteError::HardLinked { .. }), "{error}");
        assert!(error.to_string().contains("hard link") && !error.is_retryable(), "{error}");
    }
    std::fs::remove_file(folder.file("b.db")).unwrap();
    open(&folder).await;
}

/// Waits until the loss is noticed: of any file but the log that takes a moment.
async fn until_lost(store: &SqliteProvider) {
    let began = Instant::now();
    while enqueue(store, "before").await.is_ok() {
        assert!(began.elapsed() < Duration::from_secs(60), "not noticed");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// Every call is refused from now on, at once, and says which file is gone.
async fn is_lost(store: &SqliteProvider, which: &str) {
    let (lock, now) = (Duration::from_secs(60), Duration::ZERO);
    for _ in 0..3 {
        let errors = [
            enqueue(store, "lost").await.unwrap_err(),
            store.fetch_turn(lock, now, None).await.unwrap_err(),
            store.fetch_work_item(lock, now, None, &TagFilter::Any).await.unwrap_err(),
            store.read("x").await.unwrap_err(),
            store.list_instances().await.unwrap_err(),
        ];
        for error in errors {
            assert!(error.message.contains("was deleted or replaced while in use"), "{error}");
            assert!(error.message.contains(which) && !error.retryable, "{error}");
        }
    }
    let error = store.checkpoint().await.unwrap_err();
    assert!(matches!(error, SqliteError::Lost { .. }), "{error}");
}

#[tokio::test]
async fn r10_26_a_log_that_is_removed_takes_no_further_commit() {
    for kind in ["removed", "moved", "replaced"] {
        let folder = Folder::new();
        filled(&folder, "a.db").await;
        let store = open(&folder).await;
        enqueue(&store, "x").await.unwrap();
        store.read("x").await.unwrap();
        let log = folder.file("a.db-wal");
        match kind {
            "removed" => std::fs::remove_file(&log).unwrap(),
            "moved" => std::fs::rename(&log, folder.file("moved")).unwrap(),
            _ => {
                std::fs::write(folder.file("new"), "").unwrap();
                std::fs::rename(folder.file("new"), &log).unwrap();
            }
        }
        let before = std::fs::read(folder.file("a.db")).unwrap();
        // The first commit is refused already.
        is_lost(&store, "a.db-wal").await;
        drop(store);
        assert!(before == std::fs::read(folder.file("a.db")).unwrap(), "{kind}: it was written");
        if kind != "moved" {
            assert_eq!(found(&folder).await, 200, "what was in the file is still there");
        }
    }
}

#[tokio::test]
async fn r10_26_an_index_that_is_removed_is_noticed() {
    let folder = Folder::new();
    let store = open(&folder).await;
    enqueue(&store, "x").await.unwrap();
    std::fs::remove_file(folder.file("a.db-shm")).unwrap();
    until_lost(&store).await;
    is_lost(&store, "a.db-shm").await;
    drop(store);
    assert!(1 <= found(&folder).await, "the log was left for the next");
}

#[tokio::test(flavor = "multi_thread")]
async fn r10_26_a_copy_made_by_the_process_itself_loses_nothing_acknowledged() {
    let folder = Folder::new();
    let (store, other) = (open(&folder).await, open(&folder).await);
    for n in 0..10 {
        enqueue(&store, &format!("i{n}")).await.unwrap();
    }
    other.list_instances().await.unwrap();
    // What a program must not do: closing the file releases the locks of the whole process.
    std::fs::copy(folder.file("a.db"), folder.file("copy.db")).unwrap();
    assert!(run_again("as_another_process_that_closes_last", &folder.file("a.db")));
    is_lost(&store, "a.db-wal").await;
    is_lost(&other, "a.db-wal").await;
    drop((store, other));
    assert_eq!(found(&folder).await, 10);
}
