//! What somebody waits for is handed out as it comes, without being queued first: the same as if it had
//! been queued, and never before what is older.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use std::sync::Arc;
use std::time::Duration;

use duroxide::providers::{
    ExecutionMetadata, FetchedTurn, Provider, ProviderError, TagFilter, TurnCommit, WorkItem,
};
use duroxide::{Event, EventKind};
use duroxide_pg::PostgresProvider;
use support::words::{self, start};
use support::{TestSchema, stranger};
use tokio::task::JoinHandle;
use tokio_postgres::Client;

const LOCK: Duration = Duration::from_secs(60);
const LONG: Duration = Duration::from_secs(30);
const NOW: Duration = Duration::ZERO;
const PLAIN: TagFilter = TagFilter::DefaultOnly;

type Job = (WorkItem, String, u32);

fn activity(id: u64) -> WorkItem {
    words::activity("i", id)
}

fn outcome(id: u64) -> WorkItem {
    words::outcome("i", id)
}

/// The first turn of an instance, which leaves key-value data behind, or a later one.
fn commit(event_id: u64, status: Option<&str>, work: &[u64]) -> TurnCommit {
    let kind = match event_id {
        1 => EventKind::OrchestrationStarted {
            name: "Main".to_owned(),
            version: "1.0.0".to_owned(),
            input: "input".to_owned(),
            parent_instance: None,
            parent_id: None,
            parent_execution_id: None,
            carry_forward_events: None,
            initial_custom_status: None,
        },
        _ => EventKind::KeyValueSet {
            key: "k".to_owned(),
            value: "v".to_owned(),
            last_updated_at_ms: 7,
        },
    };
    TurnCommit {
        execution_id: 1,
        history_delta: vec![Event::with_event_id(event_id, "i", 1, None, kind)],
        worker_items: work.iter().map(|id| activity(*id)).collect(),
        metadata: ExecutionMetadata {
            status: status.map(str::to_owned),
            orchestration_name: (event_id == 1).then(|| "Main".to_owned()),
            orchestration_version: (event_id == 1).then(|| "1.0.0".to_owned()),
            ..ExecutionMetadata::default()
        },
        ..TurnCommit::default()
    }
}

/// Somebody who waits for a turn: who has looked and is ready to wait waits from the first poll on.
async fn waiting_for_turn(
    store: &Arc<PostgresProvider>,
) -> JoinHandle<Result<Option<FetchedTurn>, ProviderError>> {
    assert!(store.fetch_turn(LOCK, NOW, None).await.unwrap().is_none());
    let store = Arc::clone(store);
    let waiting = tokio::spawn(async move { store.fetch_turn(LOCK, LONG, None).await });
    tokio::task::yield_now().await;
    waiting
}

async fn waiting_for_work(
    store: &Arc<PostgresProvider>,
) -> JoinHandle<Result<Option<Job>, ProviderError>> {
    assert!(store.fetch_work_item(LOCK, NOW, None, &PLAIN).await.unwrap().is_none());
    let store = Arc::clone(store);
    let waiting =
        tokio::spawn(async move { store.fetch_work_item(LOCK, LONG, None, &PLAIN).await });
    tokio::task::yield_now().await;
    waiting
}

/// Gives a turn back and fetches it once more: what it is to everybody else.
async fn fetched_again(store: &PostgresProvider, turn: &FetchedTurn) -> FetchedTurn {
    store.abandon_orchestration_item(&turn.lock_token, None, true).await.unwrap();
    store.fetch_turn(LOCK, NOW, None).await.unwrap().unwrap()
}

fn assert_same(turn: &FetchedTurn, again: &FetchedTurn) {
    assert_ne!(turn.lock_token, again.lock_token);
    let all = |turn: &FetchedTurn| {
        let item = format!("{:?}", turn.item);
        let last = (turn.last_event_id, turn.last_event_at_ms);
        (item, turn.attempt_count, last, turn.history_included)
    };
    assert_eq!(all(turn), all(again));
}

/// How many versions of its row a table's only one has had: two if it was queued before it was taken.
async fn versions(client: &Client, table: &str) -> i64 {
    let sql = format!("SELECT substring(ctid::text from ',(\\d+)')::bigint FROM {table}");
    client.query_one(&sql, &[]).await.unwrap().get(0)
}

async fn opened() -> Option<(TestSchema, Arc<PostgresProvider>, Client)> {
    let schema = TestSchema::new()?;
    let store = Arc::new(schema.open().await);
    let client = stranger(&schema.config()).await;
    Some((schema, store, client))
}

#[tokio::test]
async fn r8_21_a_start_is_the_turn_that_others_would_fetch() {
    let Some((_schema, store, client)) = opened().await else { return };
    let waiting = waiting_for_turn(&store).await;
    store.enqueue_for_orchestrator(start("i"), None).await.unwrap();
    let turn = waiting.await.unwrap().unwrap().unwrap();
    assert_eq!(versions(&client, "mailbox").await, 1, "not queued");
    assert_eq!((turn.attempt_count, turn.item.messages.len()), (1, 1));
    let again = fetched_again(&store, &turn).await;
    assert_same(&turn, &again);
    let mut end = commit(1, Some("Completed"), &[]);
    end.history_delta.extend(commit(2, None, &[]).history_delta);
    store.commit_turn(&again.lock_token, end).await.unwrap();

    // The next is of an instance with history and key-value data.
    let waiting = waiting_for_turn(&store).await;
    store.enqueue_for_orchestrator(outcome(3), None).await.unwrap();
    let turn = waiting.await.unwrap().unwrap().unwrap();
    assert_eq!((turn.last_event_id, turn.item.kv_snapshot.len()), (2, 1));
    assert_eq!(turn.last_event_at_ms, store.read("i").await.unwrap()[1].timestamp_ms);
    assert_same(&turn, &fetched_again(&store, &turn).await);
}

#[tokio::test]
async fn r8_72_an_activity_is_the_one_that_others_would_fetch() {
    let Some((_schema, store, client)) = opened().await else { return };
    store.enqueue_for_orchestrator(start("i"), None).await.unwrap();
    let turn = store.fetch_turn(LOCK, NOW, None).await.unwrap().unwrap();
    let waiting = waiting_for_work(&store).await;
    store.commit_turn(&turn.lock_token, commit(1, None, &[2])).await.unwrap();
    let (item, token, attempts) = waiting.await.unwrap().unwrap().unwrap();
    assert_eq!(versions(&client, "work").await, 1, "not queued");
    assert_eq!((&item, attempts), (&activity(2), 1));
    store.renew_work_item_lock(&token, LOCK).await.unwrap();
    store.abandon_work_item(&token, None, false).await.unwrap();
    let (item, token, attempts) =
        store.fetch_work_item(LOCK, NOW, None, &PLAIN).await.unwrap().unwrap();
    assert_eq!((item, attempts), (activity(2), 2));

    let waiting = waiting_for_turn(&store).await;
    store.ack_work_item(&token, Some(outcome(2))).await.unwrap();
    let turn = waiting.await.unwrap().unwrap().unwrap();
    assert_eq!((turn.last_event_id, &turn.item.messages), (1, &vec![outcome(2)]));
    assert_same(&turn, &fetched_again(&store, &turn).await);
}

// Somebody else has put it there, and told nobody.
#[tokio::test]
async fn r8_20_what_is_older_goes_first() {
    let Some((_schema, store, client)) = opened().await else { return };
    let waiting = waiting_for_turn(&store).await;
    let payload = serde_json::to_string(&start("older")).unwrap();
    let put = "SELECT enqueue_messages(ARRAY['older'], ARRAY[1::smallint], ARRAY[0::bigint],
         ARRAY[$1], NULL, 0, false)";
    client.query_one(put, &[&payload]).await.unwrap();
    store.enqueue_for_orchestrator(start("i"), None).await.unwrap();
    let first = waiting.await.unwrap().unwrap().unwrap();
    assert_eq!(first.item.instance, "older");
    let turn = store.fetch_turn(LOCK, LONG, None).await.unwrap().unwrap();
    assert_eq!(turn.item.instance, "i");

    let waiting = waiting_for_work(&store).await;
    let payload = serde_json::to_string(&activity(9)).unwrap();
    let put = "INSERT INTO work (seq, instance, execution, activity, attempts, tag_key, payload)
         VALUES (nextval('positions'), 1, 1, 9, 0, 0, $1)";
    client.execute(put, &[&payload]).await.unwrap();
    store.commit_turn(&turn.lock_token, commit(1, None, &[2])).await.unwrap();
    assert_eq!(waiting.await.unwrap().unwrap().unwrap().0, activity(9));
    let next = store.fetch_work_item(LOCK, LONG, None, &PLAIN).await.unwrap().unwrap();
    assert_eq!(next.0, activity(2));
}
