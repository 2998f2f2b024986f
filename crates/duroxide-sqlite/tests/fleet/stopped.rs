//! A process that is stopped while it has the write lock: no other can write until it goes on or is
//! gone, and every caller is told so.

use std::time::Duration;

use duroxide::providers::Provider;
use duroxide_fleet::{Folder, Line, SOON, Stage, alone, on_tokio, told_to_end};
use duroxide_sqlite::{SqliteProvider, set_busy_limit};

use crate::store::SQLITE;
use crate::support::files::start;
use crate::support::stranger;

/// Takes the write lock and keeps it until told to end.
pub(crate) async fn hold_the_write_lock(stage: &Stage) {
    let connection = stranger(&stage.folder.join("store.db"));
    connection.execute_batch("BEGIN IMMEDIATE").unwrap();
    stage.journal.note("HOLDS");
    told_to_end().await;
}

#[test]
fn r10_27_a_stopped_process_that_has_the_write_lock_is_named_and_waited_for() {
    let _turn = alone();
    let folder = Folder::new();
    let stage = Stage::new(&SQLITE, folder.path());
    let url = format!("sqlite:{}?mode=rwc", folder.path().join("store.db").display());
    on_tokio(async {
        let store = SqliteProvider::new(&url, None).await.unwrap();
        store.enqueue_for_orchestrator(start("before", "x"), None).await.unwrap();
        let lease = Duration::from_secs(60);
        let turn = store.fetch_turn(lease, Duration::ZERO, None).await.unwrap().unwrap();
        set_busy_limit(Duration::from_millis(50));
        let mut holder = stage.start("holder", &[]);
        let holds = |lines: &[Line]| lines.iter().any(|line| line.says(&["HOLDS"])).then_some(());
        stage.journal.wait_for("HOLDS", SOON, holds);
        holder.pause();
        for _ in 0..3 {
            let refused = store.enqueue_for_orchestrator(start("x", "y"), None).await.unwrap_err();
            assert!(refused.retryable, "{refused}");
            assert!(refused.message.contains("another process holds"), "{refused}");
            assert!(refused.message.contains("stopped"), "says what to look for: {refused}");
            // A read does not wait.
            assert_eq!(store.read("before").await.unwrap(), []);
        }
        // Killed while stopped: the system releases its lock, and all goes on. Leases are as they were.
        holder.kill();
        store.enqueue_for_orchestrator(start("x", "y"), None).await.unwrap();
        store.renew_orchestration_item_lock(&turn.lock_token, lease).await.unwrap();
    });
}
