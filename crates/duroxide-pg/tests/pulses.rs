//! What a node is told by its pulse, and what it finds out without one.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use std::time::{Duration, Instant};

use duroxide::providers::{Provider, TagFilter, WorkItem};
use duroxide_pg::PostgresProvider;
use support::words::activity;
use support::{TestSchema, stranger};

const LOCK: Duration = Duration::from_secs(3600);
const LONG: Duration = Duration::from_secs(60);
/// A parked fetch looks again after fifteen seconds, whatever it was told.
const BY_ITSELF: Duration = Duration::from_secs(14);
const TAGS: TagFilter = TagFilter::DefaultOnly;

async fn take(store: &PostgresProvider, lock: Duration) -> (u64, String) {
    let (item, token, _) =
        store.fetch_work_item(lock, LONG, None, &TAGS).await.unwrap().expect("an activity");
    match item {
        WorkItem::ActivityExecute { id, .. } => (id, token),
        other => panic!("{other:?}"),
    }
}

// The look that ends the first lock tells of the second: a pulse tells of the first one only.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn locks_of_another_node_that_end_one_after_the_other_are_taken_over() {
    let Some(schema) = TestSchema::new() else { return };
    let other = schema.open().await;
    let mut config = schema.config();
    config.pulse_interval = Duration::from_secs(3600);
    let store = PostgresProvider::new_with_config(config).await.unwrap();
    let first_lock = Duration::from_millis(500);
    for (number, lock) in [(1, first_lock), (2, 3 * first_lock)] {
        other.enqueue_for_worker(activity("i", number)).await.unwrap();
        assert_eq!(take(&other, lock).await.0, number);
    }
    // From here on only this store looks.
    tokio::time::sleep(first_lock).await;
    let began = Instant::now();
    assert_eq!(take(&store, LOCK).await.0, 1);
    assert_eq!(take(&store, LOCK).await.0, 2);
    assert!(began.elapsed() < BY_ITSELF, "{:?}", began.elapsed());
}

// R8.22: a pulse does not wait for a table that is locked as a whole, as VACUUM FULL does it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_table_that_is_locked_as_a_whole_keeps_no_node_from_being_woken() {
    let Some(schema) = TestSchema::new() else { return };
    let (here, there) = (schema.open().await, schema.open().await);
    let locker = stranger(&schema.config()).await;
    let lock = "BEGIN; LOCK TABLE kv_delta IN ACCESS EXCLUSIVE MODE";
    locker.batch_execute(lock).await.unwrap();
    let mut waits = Vec::new();
    for number in 1..=4 {
        let began = Instant::now();
        let (taken, sent) = tokio::join!(take(&here, LOCK), async {
            tokio::time::sleep(Duration::from_secs(1)).await; // The fetch waits, and a pulse has come.
            there.enqueue_for_worker(activity("i", number)).await
        });
        sent.unwrap();
        assert_eq!(taken.0, number);
        waits.push(began.elapsed());
    }
    assert!(waits.iter().sum::<Duration>() < BY_ITSELF, "{waits:?}");
    locker.batch_execute("COMMIT").await.unwrap();
}
