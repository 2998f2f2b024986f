//! Several at once: of those that get in each other's way one is first.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use duroxide::providers::{
    DirectTurn, Provider, ProviderError, ScheduledActivityIdentifier, TurnCommit, WorkItem,
};
use duroxide::random::Random;
use duroxide_pg::PostgresProvider;
use tokio_postgres::Client;

use crate::stage::{
    AT_REST, LOCK, LONG, NOW, PLAIN, begin, direct, done, event_ids, everything, locked_activity,
    opened,
};
use crate::support::words::outcome;
use crate::support::{TestSchema, stranger};

// Even where their events would not get into each other's way.
#[tokio::test]
async fn r8_142_of_two_for_one_instance_at_once_the_second_is_too_late() {
    let Some((_schema, store, _)) = opened().await else { return };
    begin(&store, "i", &[2, 3]).await;
    let jobs = store.fetch_work_items(LOCK, NOW, None, &PLAIN, 2).await.unwrap();
    let one = direct(&store, ("i", 2), &jobs[0].1, &[]).await;
    let mut two = direct(&store, ("i", 3), &jobs[1].1, &[]).await;
    two.commit.history_delta[0].event_id = 7;
    let (one, two) = tokio::join!(store.commit_direct_turn(one), store.commit_direct_turn(two));
    let (refused, event, late) = match (one, two) {
        (Ok(()), Err(refused)) => (refused, 2, 1),
        (Err(refused), Ok(())) => (refused, 7, 0),
        both => panic!("{both:?}"),
    };
    assert!(refused.message.contains(AT_REST), "{refused}");
    assert_eq!(event_ids(&store, "i").await, [1, event]);
    let answer = outcome("i", [2, 3][late]);
    store.ack_work_item(&jobs[late].1, Some(answer)).await.unwrap();
    assert_eq!(store.fetch_turn(LOCK, NOW, None).await.unwrap().unwrap().item.messages.len(), 1);
}

/// Commits a turn while somebody else is busy with the instance, in this way.
async fn committed_during(
    store: &Arc<PostgresProvider>,
    client: &mut Client,
    turn: DirectTurn,
    busy: &str,
) -> Result<(), ProviderError> {
    const WAITS: &str = "SELECT count(*) FROM pg_locks WHERE NOT granted
         AND pg_backend_pid() = ANY (pg_blocking_pids(pid))";
    let transaction = client.transaction().await.unwrap();
    transaction.query(busy, &[]).await.unwrap();
    let store = Arc::clone(store);
    let commit = tokio::spawn(async move { store.commit_direct_turn(turn).await });
    while transaction.query_one(WAITS, &[]).await.unwrap().get::<_, i64>(0) == 0 {
        assert!(!commit.is_finished(), "it does not wait");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    transaction.commit().await.unwrap();
    commit.await.unwrap()
}

// It was at rest when the look was taken that knows no locks.
#[tokio::test]
async fn r8_142_what_happens_while_it_waits_counts() {
    let Some((_schema, store, mut client)) = opened().await else { return };
    begin(&store, "i", &[2]).await;
    let token = locked_activity(&store).await;
    let mut turn = direct(&store, ("i", 2), &token, &[]).await;
    turn.commit.history_delta[0].event_id = 7;
    let append =
        "SELECT append_events('i', 1, NULL, NULL, ARRAY[2], ARRAY[1], ARRAY[7], ARRAY['0'],
         ARRAY['{\"type\":\"KeyValuesCleared\"}'], NULL, 0)";
    let refused = committed_during(&store, &mut client, turn, append).await.unwrap_err();
    assert!(refused.message.contains(AT_REST), "{refused}");
    let turn = direct(&store, ("i", 2), &token, &[3]).await;
    assert_eq!(turn.last_event_id, 2);
    let arrive = "SELECT enqueue_messages(ARRAY['i'], ARRAY[0::smallint], ARRAY[0], ARRAY['{}'],
         NULL, 0, false)";
    let refused = committed_during(&store, &mut client, turn.clone(), arrive).await.unwrap_err();
    assert!(refused.message.contains(AT_REST), "{refused}");
    client
        .batch_execute("DELETE FROM message; UPDATE mailbox SET state = 0, head = NULL")
        .await
        .unwrap();
    let nothing = "SELECT FROM mailbox FOR UPDATE";
    committed_during(&store, &mut client, turn, nothing).await.unwrap();
    assert_eq!(event_ids(&store, "i").await, [1, 2, 3]);
}

const INSTANCES: [&str; 4] = ["a", "b", "c", "d"];

/// Counts of what went directly and what did not.
#[derive(Default)]
struct Ways {
    direct: AtomicUsize,
    by_message: AtomicUsize,
    over: AtomicUsize,
}

/// Refusals for good are what the others leave.
fn is_done(result: Result<(), ProviderError>) -> bool {
    match result {
        Ok(()) => true,
        Err(error) => {
            assert!(!error.is_retryable(), "{error}");
            false
        }
    }
}

/// Does activities, directly where that goes; the first of an instance makes the last superfluous.
async fn work_for_all(store: Arc<PostgresProvider>, random: Random, ways: Arc<Ways>) {
    while ways.over.load(Ordering::SeqCst) == 0 {
        let job = store.fetch_work_item(LOCK, NOW, None, &PLAIN).await.unwrap();
        let Some((WorkItem::ActivityExecute { instance, id, .. }, token, _)) = job else {
            continue;
        };
        let mut turn = direct(&store, (&instance, id), &token, &[]).await;
        if id == 2 {
            let (instance, execution_id) = (instance.clone(), 1);
            let last = ScheduledActivityIdentifier { instance, execution_id, activity_id: 9 };
            turn.commit.cancelled_activities.push(last);
        }
        let renewed = async {
            if random.next_u64().is_multiple_of(2) {
                store.renew_work_item_lock(&token, LOCK).await.ok()
            } else {
                None
            }
        };
        let (committed, _) = tokio::join!(store.commit_direct_turn(turn), renewed);
        if is_done(committed) {
            ways.direct.fetch_add(1, Ordering::SeqCst);
        } else if is_done(store.ack_work_item(&token, Some(outcome(&instance, id))).await) {
            ways.by_message.fetch_add(1, Ordering::SeqCst);
        }
    }
}

async fn take_turns(store: Arc<PostgresProvider>, ways: Arc<Ways>) {
    while ways.over.load(Ordering::SeqCst) == 0 {
        let Some(turn) = store.fetch_turn(LOCK, NOW, None).await.unwrap() else { continue };
        let instance = &turn.item.instance;
        let of = |(place, item): (u64, &WorkItem)| match item {
            WorkItem::ActivityCompleted { id, .. } => done(instance, place, *id),
            other => panic!("{other:?}"),
        };
        let commit = TurnCommit {
            execution_id: 1,
            history_delta: (turn.last_event_id + 1..).zip(&turn.item.messages).map(of).collect(),
            ..TurnCommit::default()
        };
        store.commit_turn(&turn.lock_token, commit).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r8_142_whoever_is_first_every_outcome_is_recorded_once() {
    let Some(schema) = TestSchema::new() else { return };
    let nodes = [Arc::new(schema.open().await), Arc::new(schema.open().await)];
    for instance in INSTANCES {
        begin(&nodes[0], instance, &[2, 3, 4, 5, 6, 7, 8, 9]).await;
    }
    let ways = Arc::new(Ways::default());
    let seed = std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap().as_nanos() as u64;
    let mut tasks = Vec::new();
    for number in 0..6 {
        let (store, random) = (nodes[number % 2].clone(), Random::seeded(seed + number as u64));
        tasks.push(tokio::spawn(work_for_all(store, random, ways.clone())));
    }
    tasks.push(tokio::spawn(take_turns(nodes[1].clone(), ways.clone())));
    let client = stranger(&schema.config()).await;
    let left = "SELECT (SELECT count(*) FROM work) + (SELECT count(*) FROM message)";
    let began = std::time::Instant::now();
    while 0 < client.query_one(left, &[]).await.unwrap().get::<_, i64>(0) {
        assert!(began.elapsed() < LONG, "{}", everything(&client).await);
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    ways.over.store(1, Ordering::SeqCst);
    for task in tasks {
        task.await.unwrap();
    }
    println!("{:?} directly, {:?} by message", ways.direct, ways.by_message);
    for instance in INSTANCES {
        let history = nodes[0].read(instance).await.unwrap();
        let ids: Vec<u64> = history.iter().map(|event| event.event_id).collect();
        assert_eq!(ids, (1..=ids.len() as u64).collect::<Vec<_>>());
        let mut sources: Vec<u64> =
            history.iter().filter_map(|event| event.source_event_id).collect();
        sources.sort_unstable();
        let rest = sources.strip_prefix(&[2, 3, 4, 5, 6, 7, 8]).unwrap();
        assert!(rest.is_empty() || rest == [9], "{sources:?}");
    }
}
