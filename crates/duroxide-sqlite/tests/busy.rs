//! Others that keep the file locked: waited for, and named when it takes too long (R10.4, R10.12).
#![cfg(feature = "test-hooks")]
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use duroxide::providers::Provider;
use duroxide::{Client, OrchestrationStatus};
use duroxide_sqlite::{SqliteProvider, set_busy_limit};
use support::files::start;
use support::workload::{PATIENCE, answer, runtime};
use support::{Folder, stranger};

/// A thread that has the write lock until told to release it.
struct Holder {
    let_go: Sender<()>,
    thread: JoinHandle<()>,
}

impl Holder {
    /// Takes the lock and releases it after a time, or when told to.
    fn new(folder: &Folder, at_most: Duration) -> Self {
        let connection = stranger(&folder.file("a.db"));
        let (let_go, told) = channel();
        let (has_it, taken) = channel();
        let thread = std::thread::spawn(move || {
            connection.execute_batch("BEGIN IMMEDIATE").unwrap();
            has_it.send(()).unwrap();
            // Being told and time running out come to the same.
            told.recv_timeout(at_most).ok();
            connection.execute_batch("ROLLBACK").unwrap();
        });
        taken.recv().unwrap();
        Self { let_go, thread }
    }

    fn let_go(self) {
        self.let_go.send(()).ok();
        self.thread.join().unwrap();
    }
}

// One test: the limit is that of the whole process.
#[tokio::test(flavor = "multi_thread")]
async fn r10_4_others_are_waited_for_but_not_for_ever() {
    let folder = Folder::new();
    let store = Arc::new(SqliteProvider::new(&folder.url("a.db"), None).await.unwrap());
    let client = Client::new(store.clone());
    let running = runtime(store.clone()).await;
    for (n, ms) in [100, 500, 2000].into_iter().enumerate() {
        let holder = Holder::new(&folder, Duration::from_millis(ms));
        let instance = format!("i{n}");
        // None of these may notice more than a delay; reading does not even wait.
        assert_eq!(store.read(&instance).await.unwrap(), []);
        client.start_orchestration(&instance, "Main", "x").await.unwrap();
        client.enqueue_event(&instance, "Q", "m").await.unwrap();
        let status = client.wait_for_orchestration(&instance, PATIENCE).await.unwrap();
        let expected = answer("x", "m");
        assert!(
            matches!(status, OrchestrationStatus::Completed { output, .. } if output == expected)
        );
        holder.let_go();
    }
    running.shutdown(Some(1000)).await;

    set_busy_limit(Duration::from_millis(50));
    let holder = Holder::new(&folder, PATIENCE);
    let error = store.enqueue_for_orchestrator(start("x", "y"), None).await.unwrap_err();
    assert!(error.message.contains("another process holds"), "{error}");
    assert!(error.message.contains("a.db") && error.retryable, "{error}");
    holder.let_go();
    store.enqueue_for_orchestrator(start("x", "y"), None).await.unwrap();
}
