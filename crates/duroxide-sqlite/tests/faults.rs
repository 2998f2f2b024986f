//! Statements and commits that fail: which caller is told, and what is left (R10.12, R10.13).
#![cfg(feature = "test-hooks")]
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use std::sync::Arc;
use std::time::Duration;

use duroxide::providers::invariants::check_invariants;
use duroxide::providers::{Provider, ProviderAdmin};
use duroxide::{Client, OrchestrationStatus};
use duroxide_sqlite::{CommitFault, SqliteProvider};
use rusqlite::ffi;
use support::Folder;
use support::files::start;
use support::workload::{PATIENCE, answer, begin, ended, insist, runtime};

async fn open(folder: &Folder) -> Arc<SqliteProvider> {
    Arc::new(SqliteProvider::new(&folder.url("a.db"), None).await.unwrap())
}

async fn queued(store: &SqliteProvider) -> usize {
    store.get_queue_depths().await.unwrap().orchestrator_queue
}

#[tokio::test]
async fn r10_13_a_commit_that_failed_and_did_not_happen() {
    for code in [ffi::SQLITE_IOERR_FSYNC, ffi::SQLITE_IOERR_WRITE, ffi::SQLITE_CORRUPT] {
        let folder = Folder::fast();
        let store = open(&folder).await;
        store.faults().fail_commit(CommitFault::Before, code);
        let error = store.enqueue_for_orchestrator(start("x", "y"), None).await.unwrap_err();
        assert!(error.message.contains("a.db"), "{error}");
        assert_eq!(error.retryable, code != ffi::SQLITE_CORRUPT, "{error}");
        assert_eq!(queued(&store).await, 0);
        store.enqueue_for_orchestrator(start("x", "y"), None).await.unwrap();
        assert_eq!((queued(&store).await, store.faults().fired()), (1, 1));
    }
}

#[tokio::test]
async fn r10_13_a_commit_that_failed_but_happened_is_acknowledged() {
    for code in [ffi::SQLITE_IOERR_FSYNC, ffi::SQLITE_IOERR_WRITE, ffi::SQLITE_CORRUPT] {
        let folder = Folder::fast();
        let store = open(&folder).await;
        store.faults().fail_commit(CommitFault::After, code);
        store.enqueue_for_orchestrator(start("x", "y"), None).await.unwrap();
        assert_eq!((queued(&store).await, store.faults().fired()), (1, 1));
        // A fetch has something to hand out that was read before the failure.
        store.faults().fail_commit(CommitFault::After, code);
        let (lock, now) = (Duration::from_secs(30), Duration::ZERO);
        let turn = store.fetch_turn(lock, now, None).await.unwrap().expect("a turn");
        assert_eq!(store.faults().fired(), 2);
        store.renew_orchestration_item_lock(&turn.lock_token, lock).await.unwrap();
    }
}

#[tokio::test]
async fn r10_13_the_mark_of_one_transaction_is_not_taken_for_that_of_another() {
    let folder = Folder::fast();
    let store = open(&folder).await;
    // The first is in the file, but its caller cannot be told: looking fails, too.
    store.faults().fail_commit(CommitFault::After, ffi::SQLITE_IOERR_FSYNC);
    store.faults().fail_commit(CommitFault::Before, ffi::SQLITE_IOERR_FSYNC);
    store.faults().fail_reopening();
    let error = store.enqueue_for_orchestrator(start("x", "y"), None).await.unwrap_err();
    assert!(error.message.contains("whether it happened is not known"), "{error}");
    assert!(error.retryable);
    // The second is not in the file, and must not be acknowledged for the sake of the first.
    store.enqueue_for_orchestrator(start("z", "y"), None).await.unwrap_err();
    assert_eq!((queued(&store).await, store.faults().fired()), (1, 3));
}

#[tokio::test]
async fn r10_13_the_same_in_memory_leaves_a_store_that_works() {
    let store = SqliteProvider::new_in_memory().await.unwrap();
    store.faults().fail_commit(CommitFault::Before, ffi::SQLITE_IOERR_WRITE);
    store.enqueue_for_orchestrator(start("x", "y"), None).await.unwrap_err();
    store.enqueue_for_orchestrator(start("x", "y"), None).await.unwrap();
    assert_eq!(queued(&store).await, 1);
}

#[tokio::test]
async fn r8_21_a_turn_that_could_not_be_handed_out_is_not_locked() {
    let folder = Folder::fast();
    let store = open(&folder).await;
    store.enqueue_for_orchestrator(start("x", "y"), None).await.unwrap();
    let (hour, now) = (Duration::from_secs(3600), Duration::ZERO);
    // It has a history, to be read apart from the fetch.
    let event = duroxide::Event::with_event_id(
        1,
        "x",
        1,
        None,
        duroxide::EventKind::ExternalEvent { name: "e".to_owned(), data: "d".to_owned() },
    );
    store.append_with_execution("x", 1, vec![event]).await.unwrap();
    let mut failures = 0;
    for n in 1.. {
        // What was given back by the try before is done when the writer has done more.
        store.cleanup_orphaned_sessions(hour).await.unwrap();
        store.faults().fail_statement(n, ffi::SQLITE_IOERR_READ);
        let fetched = store.fetch_orchestration_item(hour, now, None).await;
        if store.faults().fired() == failures {
            let (_, _, attempts) = fetched.unwrap().expect("not locked by any try");
            assert_eq!(attempts, 1, "tries that came to nothing do not count");
            break;
        }
        fetched.unwrap_err();
        failures += 1;
    }
    assert!(10 < failures, "only {failures} statements");
}

/// Lets the n-th statement of an enqueue fail while a fetch waits. Which call was told of it: the
/// enqueue or the fetch; `None` if there is no such statement.
async fn who_hears(n: u64) -> Option<&'static str> {
    let store = Arc::new(SqliteProvider::new_in_memory().await.unwrap());
    let waiting = tokio::spawn({
        let store = Arc::clone(&store);
        let hour = Duration::from_secs(3600);
        async move { store.fetch_turn(hour, hour, None).await }
    });
    tokio::task::yield_now().await;
    // Done behind the fetch, which is parked then.
    store.cleanup_orphaned_sessions(Duration::ZERO).await.unwrap();
    store.faults().fail_statement(n, ffi::SQLITE_CORRUPT);
    let enqueued = store.enqueue_for_orchestrator(start("x", "y"), None).await;
    let fired = store.faults().fired() == 1;
    if enqueued.is_err() {
        assert!(fired && !waiting.is_finished(), "statement {n}");
        store.enqueue_for_orchestrator(start("x", "y"), None).await.unwrap();
        waiting.await.unwrap().unwrap().expect("the turn");
        return Some("who enqueues");
    }
    match waiting.await.unwrap() {
        Ok(turn) => assert_eq!(turn.expect("the turn").item.instance, "x"),
        Err(error) => assert!(fired && error.message.contains("damaged"), "statement {n}: {error}"),
    }
    fired.then_some("who waits")
}

#[tokio::test]
async fn r8_20_a_fetch_that_fails_while_parked_fails_alone() {
    let mut heard = std::collections::BTreeMap::<_, u32>::new();
    for n in 1.. {
        match who_hears(n).await {
            Some(who) => *heard.entry(who).or_default() += 1,
            None => break,
        }
    }
    assert!(3 < heard["who enqueues"] && 3 < heard["who waits"], "{heard:?}");
}

/// Runs `Main` with a fault at the n-th statement; whether it happened.
async fn run_with_fault(n: u64, code: i32, on_file: bool) -> bool {
    let folder = Folder::fast();
    let store = match on_file {
        true => open(&folder).await,
        false => Arc::new(SqliteProvider::new_in_memory().await.unwrap()),
    };
    let runtime = runtime(store.clone()).await;
    let client = Client::new(store.clone());
    store.faults().fail_statement(n, code);
    begin(&client, "i").await;
    let status = ended(&client, "i").await;
    let fired = store.faults().fired() == 1;
    match status {
        OrchestrationStatus::Completed { output, .. } => assert_eq!(output, answer("x", "m")),
        // Damage is for ever: a turn that cannot be committed may fail its instance.
        OrchestrationStatus::Failed { .. } if code == ffi::SQLITE_CORRUPT && fired => {}
        other => panic!("statement {n}, code {code}: {other:?}"),
    }
    let letters = insist(|| store.list_dead_letters()).await;
    assert_eq!(letters, [], "statement {n}, code {code}");
    runtime.shutdown(Some(1000)).await;
    if code != ffi::SQLITE_CORRUPT {
        check_invariants(store.as_ref()).await.unwrap_or_else(|wrong| panic!("{n}: {wrong:?}"));
        assert_eq!(queued(&store).await, 0, "statement {n}, code {code}");
    }
    fired
}

/// Lets every `stride`-th statement of a run fail, one per run, until none does. With
/// `DUROXIDE_ALL_STATEMENTS` set, lets every one of them.
async fn sweep(code: i32, stride: usize, on_file: bool) {
    let stride = if std::env::var_os("DUROXIDE_ALL_STATEMENTS").is_some() { 1 } else { stride };
    const AT_ONCE: usize = 16;
    let mut runs = 0;
    let mut n = 1..;
    loop {
        let batch = n.by_ref().step_by(stride).take(AT_ONCE);
        let batch: Vec<_> = batch.map(|n| tokio::spawn(run_with_fault(n, code, on_file))).collect();
        let mut fired = 0;
        for run in batch {
            fired += usize::from(run.await.unwrap());
        }
        runs += fired;
        if fired == 0 {
            assert!(AT_ONCE < runs, "only {runs} statements failed");
            return;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn r10_13_every_statement_may_fail_with_an_io_error() {
    sweep(ffi::SQLITE_IOERR_WRITE, 5, true).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn r10_13_statements_may_find_the_disk_full() {
    sweep(ffi::SQLITE_FULL, 11, true).await;
    sweep(ffi::SQLITE_FULL, 13, false).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn r10_13_statements_may_find_damage() {
    sweep(ffi::SQLITE_CORRUPT, 11, true).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn r10_13_commits_may_fail_all_the_time() {
    let folder = Folder::fast();
    let store = open(&folder).await;
    let runtime = runtime(store.clone()).await;
    let client = Client::new(store.clone());
    for round in 0..10 {
        for n in 0..10 {
            let fault = if (n + round) % 3 == 0 { CommitFault::Before } else { CommitFault::After };
            store.faults().fail_commit(fault, ffi::SQLITE_IOERR_FSYNC);
        }
        let instance = format!("i{round}");
        begin(&client, &instance).await;
        match ended(&client, &instance).await {
            OrchestrationStatus::Completed { output, .. } => assert_eq!(output, answer("x", "m")),
            other => panic!("{other:?}"),
        }
    }
    assert!(50 < store.faults().fired());
    runtime.shutdown(Some(1000)).await;
    check_invariants(store.as_ref()).await.unwrap();
}

#[tokio::test]
async fn r8_33_work_that_comes_in_the_same_batch_as_a_fetch_is_served() {
    let store = SqliteProvider::new_in_memory().await.unwrap();
    let hour = Duration::from_secs(3600);
    for n in 0..200 {
        let instance = format!("i{n}");
        // Sent one after the other without a pause: often in one batch, in either order.
        let fetch = store.fetch_turn(hour, hour, None);
        let enqueue = store.enqueue_for_orchestrator(start(&instance, "x"), None);
        let (turn, enqueued) = tokio::time::timeout(PATIENCE, async {
            if n % 2 == 0 {
                tokio::join!(fetch, enqueue)
            } else {
                swap(tokio::join!(enqueue, fetch))
            }
        })
        .await
        .expect("served at once");
        enqueued.unwrap();
        assert_eq!(turn.unwrap().unwrap().item.instance, instance);
    }
}

fn swap<A, B>((a, b): (A, B)) -> (B, A) {
    (b, a)
}
