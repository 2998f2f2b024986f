//! Bulk calls do not hold others up, however much there is to choose from.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use duroxide::providers::{InstanceFilter, Provider, ProviderAdmin, PruneOptions};
use duroxide_sqlite::{Durability, SqliteOptions, SqliteProvider};
use support::files::start;
use support::{Folder, stranger};

/// Ended instances; `DUROXIDE_BULK` says how many.
fn count() -> usize {
    std::env::var("DUROXIDE_BULK").map_or(3_000, |count| count.parse().unwrap())
}

async fn open(folder: &Folder) -> Arc<SqliteProvider> {
    let options = SqliteOptions { durability: Durability::Process, ..SqliteOptions::default() };
    Arc::new(SqliteProvider::new(&folder.url("a.db"), Some(options)).await.unwrap())
}

/// Ended instances with two executions each; every tenth runs again.
fn fill(path: &Path, count: usize) {
    let sql = format!(
        "BEGIN;
         CREATE TEMP TABLE n AS WITH RECURSIVE n (i) AS
         (SELECT 1000 UNION ALL SELECT i + 1 FROM n LIMIT {count}) SELECT i FROM n;
         INSERT INTO instances (key, id, name, version, execution, pin, created_at, updated_at)
         SELECT i, 'old-' || i, 'Main', '1.0.0', 2, 0, i, i FROM n;
         INSERT INTO executions (instance, number, status, started_at, completed_at, started)
         SELECT i, 1, 'ContinuedAsNew', i, i, 1 FROM n;
         INSERT INTO executions (instance, number, status, started_at, completed_at, started)
         SELECT i, 2, iif(i % 10, 'Completed', 'Running'), i, iif(i % 10, i, NULL), 1 FROM n;
         INSERT INTO history (instance, execution, event, at, stamp, body)
         SELECT i, 1, 1, i, '0.2.0', '{{}}' FROM n UNION ALL
         SELECT i, 2, 1, i, '0.2.0', '{{}}' FROM n;
         UPDATE counters SET next_seq = 1000000;
         DROP TABLE n;
         COMMIT;"
    );
    stranger(path).execute_batch(&sql).unwrap();
}

/// Sends messages one after another until the call has ended: how many, and the longest wait.
async fn send_during<T>(
    store: &Arc<SqliteProvider>,
    call: tokio::task::JoinHandle<T>,
) -> (T, usize, Duration) {
    let (mut sent, mut longest) = (0, Duration::ZERO);
    while !call.is_finished() {
        let began = Instant::now();
        let message = start(&format!("new-{}-{sent}", store.store_time_ms().unwrap()), "x");
        store.enqueue_for_orchestrator(message, None).await.unwrap();
        longest = longest.max(began.elapsed());
        sent += 1;
    }
    (call.await.unwrap(), sent, longest)
}

#[tokio::test(flavor = "multi_thread")]
async fn others_go_on_during_bulk_calls() {
    let folder = Folder::new();
    drop(open(&folder).await);
    fill(&folder.file("a.db"), count());
    let store = open(&folder).await;
    let before = store.get_system_metrics().await.unwrap();

    let limit = Some(u32::try_from(count()).unwrap());
    let filter = InstanceFilter { limit, ..InstanceFilter::default() };
    let (pruning, all) = (Arc::clone(&store), filter.clone());
    let call = tokio::spawn(async move {
        let options = PruneOptions { keep_last: Some(1), ..PruneOptions::default() };
        pruning.prune_executions_bulk(all, options).await.unwrap()
    });
    let (pruned, sent, longest) = send_during(&store, call).await;
    println!("pruned {}: {sent} messages meanwhile, one waited {longest:?}", count());
    let executions = (pruned.instances_processed, pruned.executions_deleted, pruned.events_deleted);
    let all = count() as u64;
    assert_eq!(executions, (all, all, all));
    assert!(5 < sent, "only {sent} messages were sent meanwhile");

    let deleting = Arc::clone(&store);
    let call = tokio::spawn(async move { deleting.delete_instance_bulk(filter).await.unwrap() });
    let (deleted, sent, longest) = send_during(&store, call).await;
    println!("deleted {}: {sent} messages meanwhile, one waited {longest:?}", count());
    let ended = all - all / 10;
    assert_eq!((deleted.instances_deleted, deleted.events_deleted), (ended, ended));
    assert!(5 < sent, "only {sent} messages were sent meanwhile");
    let after = store.get_system_metrics().await.unwrap();
    assert_eq!(before.total_instances - after.total_instances, ended);
}

/// What a bulk call does in one read and in one transaction does not depend on how much there is. A
/// read needs the state it began with, and while it lasts the log cannot be cut off.
#[cfg(feature = "test-hooks")]
#[tokio::test(flavor = "multi_thread")]
async fn r6_75_bulk_calls_are_made_of_small_steps() {
    let folder = Folder::new();
    drop(open(&folder).await);
    fill(&folder.file("a.db"), 3_000);
    // Some have long histories, and some are trees.
    let more = "WITH RECURSIVE n (i) AS (SELECT 2 UNION ALL SELECT i + 1 FROM n LIMIT 400)
                INSERT INTO history (instance, execution, event, at, stamp, body)
                SELECT k.key, e.number, n.i, 1, '0.2.0', '{}'
                FROM n, instances k, (SELECT 1 AS number UNION ALL SELECT 2) e
                WHERE k.key % 100 = 7;
                UPDATE instances SET parent = 'old-' || (key - 1) WHERE key % 100 IN (43, 44, 45);";
    stranger(&folder.file("a.db")).execute_batch(more).unwrap();
    let store = open(&folder).await;
    let filter = InstanceFilter { limit: Some(3_000), ..InstanceFilter::default() };
    let largest = |seen: &duroxide_sqlite::Seen| {
        let steps = seen.rows_changed.windows(2).map(|two| two[1] - two[0]).max();
        println!("{} commits, {} reads", seen.commits.len(), seen.reads.len());
        (steps.unwrap(), *seen.reads.iter().max().unwrap())
    };

    store.faults().watch();
    let options = PruneOptions { keep_last: Some(1), ..PruneOptions::default() };
    let pruned = store.prune_executions_bulk(filter.clone(), options).await.unwrap();
    assert_eq!((pruned.executions_deleted, pruned.events_deleted), (3_000, 3_000 + 30 * 400));
    let (rows, steps) = largest(&store.faults().seen());
    println!("pruning: {rows} rows in a transaction, {steps} steps in a read");
    assert!(rows <= 1_200, "{rows} rows in a transaction");
    assert!(steps <= 200_000, "{steps} steps in a read");

    store.faults().watch();
    let deleted = store.delete_instance_bulk(filter).await.unwrap();
    assert_eq!(deleted.instances_deleted, 2_700);
    let (rows, steps) = largest(&store.faults().seen());
    println!("deleting: {rows} rows in a transaction, {steps} steps in a read");
    assert!(rows <= 1_600, "{rows} rows in a transaction");
    assert!(steps <= 200_000, "{steps} steps in a read");
}
