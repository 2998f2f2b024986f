//! Messages that are not waited for by themselves: nobody hears that they are there before they are on
//! the disk.

use std::sync::Arc;
use std::time::Duration;

use duroxide::providers::{ExecutionMetadata, Provider, ProviderError, TagFilter, WorkItem};
use duroxide_fleet::alone;
use duroxide_pg::PostgresProvider;
use duroxide_pg_testserver::Stop;

use crate::contention::{start, work};
use crate::site::Site;
use crate::store::config;

const LONG: Duration = Duration::from_secs(60);

/// Sends what makes a turn to somebody who waits for one; the turn's token.
async fn turn_made_by(
    store: &Arc<PostgresProvider>,
    sent: impl Future<Output = Result<(), ProviderError>>,
) -> String {
    // Who has looked, and is ready to wait, waits from the first poll on.
    let none = store.fetch_orchestration_item(LONG, Duration::ZERO, None).await.unwrap();
    assert!(none.is_none());
    let fetching = Arc::clone(store);
    let turn =
        tokio::spawn(async move { fetching.fetch_orchestration_item(LONG, LONG, None).await });
    tokio::task::yield_now().await;
    sent.await.unwrap();
    turn.await.unwrap().unwrap().unwrap().1
}

async fn send(store: &PostgresProvider, instance: &str) -> Result<(), ProviderError> {
    store.enqueue_for_orchestrator(start(instance), None).await
}

/// An instance whose activity is in work; its token.
async fn begin_activity(store: &Arc<PostgresProvider>, instance: &str) -> String {
    let turn = turn_made_by(store, send(store, instance)).await;
    let metadata = ExecutionMetadata {
        orchestration_name: Some("Main".to_owned()),
        orchestration_version: Some("1.0.0".to_owned()),
        ..ExecutionMetadata::default()
    };
    let queued = vec![work(instance)];
    let commit = store.ack_orchestration_item(&turn, 1, vec![], queued, vec![], metadata, vec![]);
    commit.await.unwrap();
    let tags = TagFilter::DefaultOnly;
    store.fetch_work_item(LONG, LONG, None, &tags).await.unwrap().unwrap().1
}

/// Messages and activities there are after a crash of the server. Its own writer sleeps, so that only
/// what was waited for is on the disk; and no turn is committed that would take anything along.
fn left_after_a_crash(act: impl AsyncFnOnce(Arc<PostgresProvider>)) -> Option<[String; 2]> {
    let _turn = alone();
    let site = Site::own(&["wal_writer_delay = 10s"])?;
    let config = config(&site.stage.folder);
    let count = |what: &str| {
        let sql = format!("SELECT count(*) FROM \"{}\".{what}", config.schema);
        site.server().psql("postgres", &sql).unwrap()
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let store = PostgresProvider::new_with_config(config.clone()).await.unwrap();
        act(Arc::new(store)).await;
        site.server().stop(Stop::Immediate).unwrap();
    });
    site.server().resume().unwrap();
    Some([count("message"), count("work")])
}

#[test]
fn a_start_that_was_confirmed_survives_a_crash() {
    let left = left_after_a_crash(async |store| {
        turn_made_by(&store, send(&store, "started")).await;
    });
    assert!(left.is_none_or(|left| left == ["1", "0"]));
}

#[test]
fn an_outcome_that_was_confirmed_survives_a_crash() {
    let left = left_after_a_crash(async |store| {
        let activity = begin_activity(&store, "busy").await;
        let outcome = WorkItem::ActivityCompleted {
            instance: "busy".to_owned(),
            execution_id: 1,
            id: 2,
            result: String::new(),
        };
        turn_made_by(&store, store.ack_work_item(&activity, Some(outcome))).await;
    });
    assert!(left.is_none_or(|left| left == ["1", "0"]));
}
