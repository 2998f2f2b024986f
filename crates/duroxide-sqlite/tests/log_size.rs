//! The log is bounded while reads always overlap.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use duroxide::providers::{Provider, ProviderAdmin, WorkItem};
use duroxide_sqlite::{Durability, SqliteOptions, SqliteProvider};
use support::{Folder, stranger};

/// What is written, and what the log may have of it: the limit, what a transaction adds, and what is
/// written while the reads under way end.
const WRITTEN_MIB: usize = 200;
const LOG_MIB_MAX: u64 = 130;

async fn open(folder: &Folder) -> Arc<SqliteProvider> {
    let options = SqliteOptions { durability: Durability::Process, ..SqliteOptions::default() };
    Arc::new(SqliteProvider::new(&folder.url("a.db"), Some(options)).await.unwrap())
}

/// Instances that take a while to be listed.
fn fill(path: &Path) {
    let sql = "WITH RECURSIVE n (i) AS (SELECT 1000 UNION ALL SELECT i + 1 FROM n LIMIT 50000)
               INSERT INTO instances (key, id, name, version, execution, pin, created_at, updated_at)
               SELECT i, 'old-' || i, 'Main', '1.0.0', 1, 0, i, i FROM n;
               UPDATE counters SET next_seq = 1000000;";
    stranger(path).execute_batch(sql).unwrap();
}

fn log_mib(path: &Path) -> u64 {
    let log = PathBuf::from(format!("{}-wal", path.display()));
    std::fs::metadata(log).map_or(0, |found| found.len() >> 20)
}

/// Lists all instances again and again, in so many tasks that reads overlap; how often.
fn keep_reading(store: &Arc<SqliteProvider>, stop: &Arc<AtomicBool>) -> Arc<AtomicUsize> {
    let reads = Arc::new(AtomicUsize::new(0));
    for _ in 0..4 {
        let (store, stop, reads) = (Arc::clone(store), Arc::clone(stop), Arc::clone(&reads));
        tokio::spawn(async move {
            while !stop.load(Ordering::Relaxed) {
                assert!(50_000 <= store.list_instances().await.unwrap().len());
                reads.fetch_add(1, Ordering::Relaxed);
            }
        });
    }
    reads
}

/// Sends large messages until so much was written; the longest log that was seen.
async fn write(store: &Arc<SqliteProvider>, path: &Path) -> u64 {
    let mut longest = 0;
    for number in 0..WRITTEN_MIB {
        let data = format!("{number:07}").repeat((1 << 20) / 7); // Each another text.
        let (instance, name) = ("old-1000".to_owned(), "e".to_owned());
        let event = WorkItem::ExternalRaised { instance, name, data };
        store.enqueue_for_orchestrator(event, None).await.unwrap();
        longest = longest.max(log_mib(path));
    }
    longest
}

#[tokio::test(flavor = "multi_thread")]
async fn the_log_is_cut_off_though_reads_always_overlap() {
    let folder = Folder::new();
    let path = folder.file("a.db");
    drop(open(&folder).await);
    fill(&path);
    let store = open(&folder).await;
    let stop = Arc::new(AtomicBool::new(false));
    let reads = keep_reading(&store, &stop);
    let longest = write(&store, &path).await;
    let so_far = reads.load(Ordering::Relaxed);
    println!("{WRITTEN_MIB} MiB written, {so_far} reads, the log had {longest} MiB at most");
    // Reads go on.
    while reads.load(Ordering::Relaxed) < so_far + 4 {
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    stop.store(true, Ordering::Relaxed);
    assert!(longest <= LOG_MIB_MAX, "the log had {longest} MiB");
}
