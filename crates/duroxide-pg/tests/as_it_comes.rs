//! What somebody waits for is handed out as it comes, without being queued first: the same as if it had
//! been queued, and never before what is older.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use std::sync::Arc;
use std::time::Duration;

use duroxide::providers::{
    ExecutionMetadata, FetchedTurn, Provider, ProviderError, ScheduledActivityIdentifier,
    TagFilter, TurnCommit, WorkItem,
};
use duroxide::{Event, EventKind};
use duroxide_pg::PostgresProvider;
use support::words::{self, start};
use support::{TestSchema, stranger};
use tokio::task::JoinHandle;
use tokio_postgres::Client;

const LOCK: Duration = Duration::from_secs(600);
const LONG: Duration = Duration::from_secs(110);
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

/// An activity that somebody else has put there, who told nobody.
async fn put_activity(client: &Client, id: u64) {
    let payload = serde_json::to_string(&activity(id)).unwrap();
    let put = "INSERT INTO work (seq, position, instance, execution, activity, attempts, tag_key,
             payload)
         SELECT n, n, 1, 1, $1, 0, 0, $2 FROM nextval('positions') n";
    client.execute(put, &[&(id as i64), &payload]).await.unwrap();
}

// The same for a message.
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
    put_activity(&client, 9).await;
    store.commit_turn(&turn.lock_token, commit(1, None, &[2])).await.unwrap();
    assert_eq!(waiting.await.unwrap().unwrap().unwrap().0, activity(9));
    let next = store.fetch_work_item(LOCK, LONG, None, &PLAIN).await.unwrap().unwrap();
    assert_eq!(next.0, activity(2));
}

/// Locked first turns of `i` and `j`.
async fn two_turns(store: &PostgresProvider) -> [FetchedTurn; 2] {
    for id in ["i", "j"] {
        store.enqueue_for_orchestrator(start(id), None).await.unwrap();
    }
    store.fetch_turns(LOCK, NOW, None, 2).await.unwrap().try_into().unwrap()
}

/// How often it is tried to commit two turns together.
const TRIES: usize = 200;

/// Commits the turns: `i` asks for these activities, `j` for 4. They are one transaction, unless a busy
/// machine lets a connection take the first before the only thread of the test's runtime has asked for both.
async fn commit_both(store: &Arc<PostgresProvider>, turns: &[FetchedTurn; 2], of_i: TurnCommit) {
    let mut of_j = commit(1, None, &[]);
    of_j.worker_items = vec![words::activity("j", 4)];
    let (store, [i, j]) = (Arc::clone(store), turns.each_ref().map(|turn| turn.lock_token.clone()));
    let both = tokio::spawn(async move {
        tokio::join!(store.commit_turn(&i, of_i), store.commit_turn(&j, of_j))
    });
    let (i, j) = both.await.unwrap();
    i.unwrap();
    j.unwrap();
}

/// Somebody who waits for so many activities.
async fn waiting_for_several(
    store: &Arc<PostgresProvider>,
    max: usize,
) -> JoinHandle<Result<Vec<Job>, ProviderError>> {
    assert!(store.fetch_work_item(LOCK, NOW, None, &PLAIN).await.unwrap().is_none());
    let store = Arc::clone(store);
    let waiting =
        tokio::spawn(async move { store.fetch_work_items(LOCK, LONG, None, &PLAIN, max).await });
    tokio::task::yield_now().await;
    waiting
}

/// What somebody gets who waits for so many activities while turns of `i` and `j` are committed in one
/// transaction; before, `prepare` does something to the database.
async fn handed_over(
    max: usize,
    of_i: impl Fn() -> TurnCommit,
    prepare: impl AsyncFn(&Client),
) -> Option<(TestSchema, Arc<PostgresProvider>, Client, Vec<Job>)> {
    for _ in 0..TRIES {
        let (schema, store, client) = opened().await?;
        let turns = two_turns(&store).await;
        let waiting = waiting_for_several(&store, max).await;
        prepare(&client).await;
        commit_both(&store, &turns, of_i()).await;
        let jobs = waiting.await.unwrap().unwrap();
        let transactions = "SELECT count(DISTINCT xmin::text) FROM history";
        if client.query_one(transactions, &[]).await.unwrap().get::<_, i64>(0) == 1 {
            return Some((schema, store, client, jobs));
        }
    }
    panic!("two turns are never committed together");
}

/// Leaves the database as it is.
async fn nothing_else(_: &Client) {}

fn items(jobs: &[Job]) -> Vec<WorkItem> {
    jobs.iter().map(|(item, _, _)| item.clone()).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn r8_72_activities_of_several_turns_are_those_that_others_would_fetch() {
    let of_i = || commit(1, None, &[2, 3]);
    let scene = handed_over(3, of_i, nothing_else).await;
    let Some((_schema, store, client, jobs)) = scene else { return };
    let all = [activity(2), activity(3), words::activity("j", 4)];
    assert_eq!(items(&jobs), all);
    let last = "SELECT max(substring(ctid::text from ',(\\d+)')::bigint) FROM work";
    let last: i64 = client.query_one(last, &[]).await.unwrap().get(0);
    assert_eq!(last, 3, "not queued");
    for (_, token, attempts) in &jobs {
        assert_eq!(*attempts, 1);
        store.renew_work_item_lock(token, LOCK).await.unwrap();
        store.abandon_work_item(token, None, true).await.unwrap();
    }
    let again = store.fetch_work_items(LOCK, NOW, None, &PLAIN, 9).await.unwrap();
    assert_eq!(items(&again), all);
    assert!(again.iter().all(|(_, _, attempts)| *attempts == 1));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn r8_72_of_more_than_are_asked_for_the_oldest_go_first() {
    let of_i = || commit(1, None, &[2, 3]);
    let scene = handed_over(2, of_i, nothing_else).await;
    let Some((_schema, store, _, jobs)) = scene else { return };
    assert_eq!(items(&jobs), [activity(2), activity(3)]);
    let rest = store.fetch_work_items(LOCK, LONG, None, &PLAIN, 9).await.unwrap();
    assert_eq!(items(&rest), [words::activity("j", 4)]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn r8_20_what_is_older_than_several_goes_first() {
    let of_i = || commit(1, None, &[2, 3]);
    let older = async |client: &Client| put_activity(client, 9).await;
    let Some((.., jobs)) = handed_over(3, of_i, older).await else { return };
    assert_eq!(items(&jobs), [activity(9), activity(2), activity(3)]);
}

// Also if it has a tag, and whoever waits takes activities with it as well as those without.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn r8_72_what_is_older_and_has_a_tag_goes_first() {
    let Some((_schema, store, _)) = opened().await else { return };
    let turns = two_turns(&store).await;
    let mut of_i = commit(1, None, &[2]);
    for item in &mut of_i.worker_items {
        if let WorkItem::ActivityExecute { tag, .. } = item {
            *tag = Some("gpu".to_owned());
        }
    }
    let older = of_i.worker_items.clone();
    store.commit_turn(&turns[0].lock_token, of_i).await.unwrap();
    let mut of_j = commit(1, None, &[]);
    of_j.worker_items = vec![words::activity("j", 4)];
    let token = turns[1].lock_token.clone();
    let both = tokio::spawn(async move {
        let tags = TagFilter::DefaultAnd(["gpu".to_owned()].into_iter().collect());
        let fetch = store.fetch_work_items(LOCK, LONG, None, &tags, 1);
        tokio::join!(store.commit_turn(&token, of_j), fetch)
    });
    let (committed, jobs) = both.await.unwrap();
    committed.unwrap();
    assert_eq!(items(&jobs.unwrap()), older);
}

// R8.52: cancellations come after what the same turns ask for.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn r8_52_what_is_cancelled_again_is_handed_to_nobody() {
    let of_i = || {
        let (instance, execution_id, activity_id) = ("i".to_owned(), 1, 2);
        let cancelled = ScheduledActivityIdentifier { instance, execution_id, activity_id };
        TurnCommit { cancelled_activities: vec![cancelled], ..commit(1, None, &[2, 3]) }
    };
    let Some((.., jobs)) = handed_over(9, of_i, nothing_else).await else { return };
    assert_eq!(items(&jobs), [activity(3), words::activity("j", 4)]);
}

/// A turn that continues as new, with the first turn of the next execution.
fn succession() -> TurnCommit {
    let input = "next".to_owned();
    let end =
        Event::with_event_id(2, "i", 1, None, EventKind::OrchestrationContinuedAsNew { input });
    let mut next = commit(1, None, &[]);
    next.execution_id = 2;
    next.history_delta.iter_mut().for_each(|event| event.execution_id = 2);
    let mut first = commit(2, Some("ContinuedAsNew"), &[]);
    (first.history_delta, first.successor) = (vec![end], Some(Box::new(next)));
    first
}

/// Waits until so many statements of these connections wait for a lock.
async fn waiting_for_locks(client: &Client, application: &str, statements: i64) {
    let count = "SELECT count(*) FROM pg_stat_activity
         WHERE application_name = $1 AND wait_event_type = 'Lock'";
    while client.query_one(count, &[&application]).await.unwrap().get::<_, i64>(0) < statements {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

// R8.21: what a turn says is what is there once it is locked, not what was there when it was asked for.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r8_21_a_message_that_waits_for_a_commit_makes_a_turn_of_what_that_left() {
    let Some(schema) = TestSchema::new() else { return };
    let mut config = schema.config();
    schema.name().clone_into(&mut config.application_name);
    let store = Arc::new(PostgresProvider::new_with_config(config).await.unwrap());
    // Within a transaction the server's processes seem to stay as they were.
    let (client, watcher) = (stranger(&schema.config()).await, stranger(&schema.config()).await);
    store.enqueue_for_orchestrator(start("i"), None).await.unwrap();
    let turn = store.fetch_turn(LOCK, LONG, None).await.unwrap().unwrap();
    store.commit_turn(&turn.lock_token, commit(1, None, &[])).await.unwrap();
    store.enqueue_for_orchestrator(outcome(3), None).await.unwrap();
    let turn = store.fetch_turn(LOCK, LONG, None).await.unwrap().unwrap();
    let waiting = waiting_for_turn(&store).await;

    // The commit is before the message in the queue for the lock, and neither has it.
    client.batch_execute("BEGIN; SELECT FROM mailbox FOR UPDATE").await.unwrap();
    let committing = Arc::clone(&store);
    let committed =
        tokio::spawn(async move { committing.commit_turn(&turn.lock_token, succession()).await });
    waiting_for_locks(&watcher, schema.name(), 1).await;
    let sending = Arc::clone(&store);
    let sent =
        tokio::spawn(async move { sending.enqueue_for_orchestrator(outcome(4), None).await });
    waiting_for_locks(&watcher, schema.name(), 2).await;
    client.batch_execute("COMMIT").await.unwrap();
    committed.await.unwrap().unwrap();
    sent.await.unwrap().unwrap();

    let turn = waiting.await.unwrap().unwrap().unwrap();
    assert_eq!((turn.item.execution_id, turn.last_event_id), (2, 1));
    assert_eq!(turn.item.messages, [outcome(4)]);
    assert_same(&turn, &fetched_again(&store, &turn).await);
}
