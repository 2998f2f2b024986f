//! Direct turns (R8.142): an activity is done and the turn that has read its outcome committed, both or
//! neither, alone and among others, whatever else happens to the instance.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use duroxide::providers::{
    DirectTurn, ExecutionMetadata, Provider, ProviderError, ScheduledActivityIdentifier,
    SessionFetchConfig, TagFilter, TurnCommit, WorkItem,
};
use duroxide::random::Random;
use duroxide::{Event, EventKind};
use duroxide_pg::PostgresProvider;
use support::words::{activity, outcome, start};
use support::{TestSchema, stranger};
use tokio_postgres::Client;

const LOCK: Duration = Duration::from_secs(60);
const LONG: Duration = Duration::from_secs(30);
const NOW: Duration = Duration::ZERO;
const PLAIN: TagFilter = TagFilter::DefaultOnly;

fn started(instance: &str, execution_id: u64) -> Event {
    let kind = EventKind::OrchestrationStarted {
        name: "Main".to_owned(),
        version: "1.0.0".to_owned(),
        input: "input".to_owned(),
        parent_instance: None,
        parent_id: None,
        parent_execution_id: None,
        carry_forward_events: None,
        initial_custom_status: None,
    };
    Event::with_event_id(1, instance, execution_id, None, kind)
}

/// The event that an activity with this id is done.
fn done(instance: &str, event_id: u64, id: u64) -> Event {
    let kind = EventKind::ActivityCompleted { result: "result".to_owned() };
    Event::with_event_id(event_id, instance, 1, Some(id), kind)
}

fn named() -> ExecutionMetadata {
    ExecutionMetadata {
        orchestration_name: Some("Main".to_owned()),
        orchestration_version: Some("1.0.0".to_owned()),
        ..ExecutionMetadata::default()
    }
}

/// An instance whose first turn has asked for these activities.
async fn begin(store: &PostgresProvider, instance: &str, work: &[u64]) {
    store.enqueue_for_orchestrator(start(instance), None).await.unwrap();
    let turn = store.fetch_turn(LOCK, LONG, None).await.unwrap().unwrap();
    assert_eq!(turn.item.instance, instance);
    let commit = TurnCommit {
        execution_id: 1,
        history_delta: vec![started(instance, 1)],
        worker_items: work.iter().map(|id| activity(instance, *id)).collect(),
        metadata: named(),
        ..TurnCommit::default()
    };
    store.commit_turn(&turn.lock_token, commit).await.unwrap();
}

async fn locked_activity(store: &PostgresProvider) -> String {
    store.fetch_work_item(LOCK, NOW, None, &PLAIN).await.unwrap().unwrap().1
}

/// The turn after the last that is stored: activity `id` is done, `next` are asked for.
async fn direct(
    store: &PostgresProvider,
    (instance, id): (&str, u64),
    work_token: &str,
    next: &[u64],
) -> DirectTurn {
    let history = store.read(instance).await.unwrap();
    let last = history.last().unwrap();
    let commit = TurnCommit {
        execution_id: 1,
        history_delta: vec![done(instance, last.event_id + 1, id)],
        worker_items: next.iter().map(|id| activity(instance, *id)).collect(),
        ..TurnCommit::default()
    };
    DirectTurn {
        work_token: work_token.to_owned(),
        instance: instance.to_owned(),
        last_event_id: last.event_id,
        last_event_at_ms: last.timestamp_ms,
        commit,
    }
}

async fn event_ids(store: &PostgresProvider, instance: &str) -> Vec<u64> {
    store.read(instance).await.unwrap().iter().map(|event| event.event_id).collect()
}

/// Everything that is stored.
async fn everything(client: &Client) -> String {
    let tables = [
        "instance",
        "execution",
        "history",
        "mailbox",
        "message",
        "hidden",
        "work",
        "session",
        "kv",
        "kv_delta",
    ];
    let mut all = String::new();
    for table in tables {
        let sql =
            format!("SELECT coalesce(string_agg(t::text, '\n' ORDER BY t), '') FROM {table} t");
        all += &format!(
            "{table}:\n{}\n",
            client.query_one(&sql, &[]).await.unwrap().get::<_, &str>(0)
        );
    }
    all
}

async fn opened() -> Option<(TestSchema, Arc<PostgresProvider>, Client)> {
    let schema = TestSchema::new()?;
    let store = Arc::new(schema.open().await);
    let client = stranger(&schema.config()).await;
    Some((schema, store, client))
}

#[tokio::test]
async fn r8_142_alone_it_is_done_and_hands_out_the_next() {
    let Some((_schema, store, client)) = opened().await else { return };
    begin(&store, "i", &[2]).await;
    let mut token = locked_activity(&store).await;
    for id in 2..6 {
        let turn = direct(&store, ("i", id), &token, &[id + 1]).await;
        let waiting = Arc::clone(&store);
        let waiting =
            tokio::spawn(async move { waiting.fetch_work_item(LOCK, LONG, None, &PLAIN).await });
        tokio::task::yield_now().await;
        store.commit_direct_turn(turn).await.unwrap();
        let (item, next, attempts) = waiting.await.unwrap().unwrap().unwrap();
        assert_eq!((item, attempts), (activity("i", id + 1), 1));
        assert_eq!(event_ids(&store, "i").await, (1..=id).collect::<Vec<_>>());
        let refused = store.ack_work_item(&token, None).await.unwrap_err();
        assert!(refused.message.contains("Invalid lock token"), "{refused}");
        token = next;
    }
    assert!(store.fetch_turn(LOCK, NOW, None).await.unwrap().is_none());
    let left = "SELECT count(*), (SELECT count(*) FROM work) FROM message";
    let left = client.query_one(left, &[]).await.unwrap();
    assert_eq!((left.get::<_, i64>(0), left.get::<_, i64>(1)), (0, 1));

    // A message finds the instance as usual.
    store.ack_work_item(&token, Some(outcome("i", 6))).await.unwrap();
    let turn = store.fetch_turn(LOCK, NOW, None).await.unwrap().unwrap();
    assert_eq!((turn.last_event_id, turn.item.messages.len()), (5, 1));
}

#[tokio::test]
async fn r8_142_many_at_a_time_are_done_as_each_alone() {
    let Some((_schema, store, _)) = opened().await else { return };
    let ids: Vec<String> = (0..8).map(|number| format!("i{number}")).collect();
    let mut turns = Vec::new();
    for id in &ids {
        begin(&store, id, &[2]).await;
        let token = locked_activity(&store).await;
        let mut turn = direct(&store, (id, 2), &token, &[3]).await;
        turn.commit.orchestrator_items.push(start(&format!("child of {id}")));
        turns.push(turn);
    }
    // One is wrong, which is nothing to the others.
    turns[3].last_event_at_ms += 1;
    let commits = turns.into_iter().map(|turn| {
        let store = Arc::clone(&store);
        tokio::spawn(async move { store.commit_direct_turn(turn).await })
    });
    let commits: Vec<_> = commits.collect();
    for (number, commit) in commits.into_iter().enumerate() {
        assert_eq!(commit.await.unwrap().is_ok(), number != 3, "{number}");
    }
    for (number, id) in ids.iter().enumerate() {
        let events = if number == 3 { vec![1] } else { vec![1, 2] };
        assert_eq!(event_ids(&store, id).await, events);
    }
    let all = store.fetch_work_items(LOCK, NOW, None, &PLAIN, 20).await.unwrap();
    assert_eq!(all.len(), 7, "what they asked for");
    let all = store.fetch_turns(LOCK, NOW, None, 20).await.unwrap();
    assert_eq!(all.len(), 7, "whom they wrote to");
}

// Even where their events would not get into each other's way.
#[tokio::test]
async fn r8_142_of_two_for_one_instance_in_one_transaction_the_second_is_too_late() {
    let Some((_schema, store, _)) = opened().await else { return };
    begin(&store, "i", &[2, 3]).await;
    let jobs = store.fetch_work_items(LOCK, NOW, None, &PLAIN, 2).await.unwrap();
    let one = direct(&store, ("i", 2), &jobs[0].1, &[]).await;
    let mut two = direct(&store, ("i", 3), &jobs[1].1, &[]).await;
    two.commit.history_delta[0].event_id = 7;
    let (one, two) = tokio::join!(store.commit_direct_turn(one), store.commit_direct_turn(two));
    one.unwrap();
    assert!(two.unwrap_err().message.contains(AT_REST));
    assert_eq!(event_ids(&store, "i").await, [1, 2]);
    store.ack_work_item(&jobs[1].1, Some(outcome("i", 3))).await.unwrap();
    assert_eq!(store.fetch_turn(LOCK, NOW, None).await.unwrap().unwrap().item.messages.len(), 1);
}

/// Whether a turn is refused so, alone and among others, and nothing has changed.
async fn refused(store: &PostgresProvider, client: &Client, turn: &DirectTurn, why: &str) {
    let before = everything(client).await;
    let alone = store.commit_direct_turn(turn.clone()).await.unwrap_err();
    assert!(alone.message.contains(why) && !alone.is_retryable(), "{why}: {alone}");
    assert_eq!(everything(client).await, before, "{why}");
    // What others do in the same transaction is to be told from what it does.
    let (one, two) = tokio::join!(
        store.commit_direct_turn(turn.clone()),
        store.renew_work_item_lock("lock_w7fffffff_00000000000000000000000000000000", LOCK)
    );
    assert!(two.is_err());
    assert_eq!(one.unwrap_err().message, alone.message);
    assert_eq!(everything(client).await, before, "{why}, among others");
}

const AT_REST: &str = "is locked, has messages, or has gone on meanwhile";
const UNKNOWN: &str = "Invalid lock token";

#[tokio::test]
async fn r8_142_what_is_refused_changes_nothing() {
    let Some((_schema, store, client)) = opened().await else { return };
    begin(&store, "i", &[2]).await;
    begin(&store, "other", &[]).await;
    let token = locked_activity(&store).await;
    let good = direct(&store, ("i", 2), &token, &[3]).await;
    let changed = |change: fn(&mut DirectTurn)| {
        let mut turn = good.clone();
        change(&mut turn);
        turn
    };
    for wrong in [
        changed(|turn| turn.last_event_id += 1),
        changed(|turn| turn.last_event_id = 0),
        changed(|turn| turn.last_event_at_ms += 1),
        changed(|turn| turn.commit.execution_id = 2),
        changed(|turn| turn.instance = "other".to_owned()),
        changed(|turn| turn.instance = "nobody".to_owned()),
    ] {
        refused(&store, &client, &wrong, AT_REST).await;
    }
    let wrong = changed(|turn| turn.work_token.replace_range(turn.work_token.len() - 4.., "0000"));
    refused(&store, &client, &wrong, UNKNOWN).await;
    let wrong = changed(|turn| turn.commit.history_delta[0].event_id = 1);
    refused(&store, &client, &wrong, "duplicate event id 1 in execution 1").await;
    let wrong = changed(|turn| turn.commit.history_delta[0].event_id = 0);
    refused(&store, &client, &wrong, "event id 0").await;

    // A message that has become due, and that nobody has looked at.
    store.enqueue_for_orchestrator(outcome("i", 9), Some(Duration::from_millis(5))).await.unwrap();
    tokio::time::sleep(Duration::from_millis(20)).await;
    refused(&store, &client, &good, AT_REST).await;
    // The same, locked.
    let turn = store.fetch_turn(LOCK, NOW, None).await.unwrap().unwrap();
    refused(&store, &client, &good, AT_REST).await;
    // The lock has run out, and nobody has looked.
    client.execute("UPDATE mailbox SET wake_at = 1 WHERE state = 2", &[]).await.unwrap();
    refused(&store, &client, &good, AT_REST).await;
    store.abandon_orchestration_item(&turn.lock_token, None, true).await.unwrap();
    refused(&store, &client, &good, AT_REST).await;
    let turn = store.fetch_turn(LOCK, NOW, None).await.unwrap().unwrap();
    let nothing = TurnCommit { execution_id: 1, ..TurnCommit::default() };
    store.commit_turn(&turn.lock_token, nothing).await.unwrap();
    client.execute("UPDATE work SET wake_at = 1", &[]).await.unwrap();
    refused(&store, &client, &good, "the lock has expired").await;
    store.renew_work_item_lock(&token, LOCK).await.unwrap_err();
    client.execute("UPDATE work SET wake_at = 4000000000000", &[]).await.unwrap();
    store.commit_direct_turn(good.clone()).await.unwrap();
    refused(&store, &client, &good, UNKNOWN).await;
}

#[tokio::test]
async fn r8_142_whatever_a_turn_may_hold_a_direct_one_may() {
    let Some((_schema, store, client)) = opened().await else { return };
    begin(&store, "i", &[2, 7]).await;
    store.enqueue_for_orchestrator(outcome("i", 9), Some(LONG)).await.unwrap();
    let token = locked_activity(&store).await;
    let mut turn = direct(&store, ("i", 2), &token, &[3]).await;
    let set = EventKind::KeyValueSet {
        key: "k".to_owned(),
        value: "v".to_owned(),
        last_updated_at_ms: 7,
    };
    turn.commit.history_delta.push(Event::with_event_id(3, "i", 1, None, set));
    turn.commit.cancelled_activities = vec![ScheduledActivityIdentifier {
        instance: "i".to_owned(),
        execution_id: 1,
        activity_id: 7,
    }];
    turn.commit.orchestrator_items = vec![start("child"), outcome("i", 8)];
    turn.commit.metadata.status = Some("ContinuedAsNew".to_owned());
    turn.commit.successor = Some(Box::new(TurnCommit {
        execution_id: 2,
        history_delta: vec![started("i", 2)],
        worker_items: vec![activity("child", 4)],
        metadata: named(),
        ..TurnCommit::default()
    }));

    // The successor's event is taken: neither happens.
    store.append_with_execution("i", 2, vec![started("i", 2)]).await.unwrap();
    refused(&store, &client, &turn, "duplicate event id 1 in execution 2").await;
    client.batch_execute("DELETE FROM history WHERE execution = 2").await.unwrap();
    store.commit_direct_turn(turn).await.unwrap();

    assert_eq!(event_ids(&store, "i").await, [1]);
    let before = store.read_with_execution("i", 1).await.unwrap();
    assert_eq!(before.len(), 3);
    assert_eq!(store.get_kv_value("i", "k").await.unwrap().as_deref(), Some("v"));
    let work = store.fetch_work_items(LOCK, NOW, None, &PLAIN, 9).await.unwrap();
    let work: Vec<WorkItem> = work.into_iter().map(|(item, _, _)| item).collect();
    assert_eq!(work, [activity("i", 3), activity("child", 4)]);
    let turns = store.fetch_turns(LOCK, NOW, None, 9).await.unwrap();
    let ids = turns.iter().map(|turn| (&*turn.item.instance, turn.item.execution_id));
    assert_eq!(ids.collect::<Vec<_>>(), [("child", 1), ("i", 2)]);
}

#[tokio::test]
async fn r8_85_a_session_is_touched() {
    let Some((_schema, store, client)) = opened().await else { return };
    begin(&store, "i", &[]).await;
    let mut work = activity("i", 2);
    if let WorkItem::ActivityExecute { session_id, .. } = &mut work {
        *session_id = Some("s".to_owned());
    }
    store.enqueue_for_worker(work).await.unwrap();
    let session = SessionFetchConfig { owner_id: "me".to_owned(), lock_timeout: LOCK };
    let job = store.fetch_work_item(LOCK, NOW, Some(&session), &PLAIN).await.unwrap().unwrap();
    client.execute("UPDATE session SET last_activity = 1", &[]).await.unwrap();
    let turn = direct(&store, ("i", 2), &job.1, &[]).await;
    store.commit_direct_turn(turn).await.unwrap();
    let touched = client.query_one("SELECT last_activity FROM session", &[]).await.unwrap();
    assert!(1 < touched.get::<_, i64>(0));
}

// Who lost the answer asks whether it was done: by what the turn made up, which nobody else has.
#[tokio::test]
async fn r8_142_a_turn_that_was_done_can_be_told_from_one_that_was_not() {
    let Some((_schema, store, client)) = opened().await else { return };
    begin(&store, "i", &[2, 3]).await;
    // Both activities are fetched with one secret.
    let jobs = store.fetch_work_items(LOCK, NOW, None, &PLAIN, 2).await.unwrap();
    let secret = |token: &str| token.rsplit_once('_').unwrap().1.to_owned();
    assert_eq!(secret(&jobs[0].1), secret(&jobs[1].1));
    let marks = async || {
        let row = client.query_one("SELECT done::text FROM mailbox", &[]).await.unwrap();
        row.get::<_, String>(0).replace('-', "")
    };
    let mut seen = vec![secret(&jobs[0].1), marks().await];
    for (id, (_, token, _)) in (2..).zip(&jobs) {
        let turn = direct(&store, ("i", id), token, &[]).await;
        store.commit_direct_turn(turn).await.unwrap();
        let mark = marks().await;
        let asked = "SELECT was_committed_directly('i', $1::text::uuid)";
        assert!(client.query_one(asked, &[&mark]).await.unwrap().get::<_, bool>(0));
        assert!(!client.query_one(asked, &[&seen[0]]).await.unwrap().get::<_, bool>(0));
        assert!(!seen.contains(&mark));
        seen.push(mark);
    }
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
