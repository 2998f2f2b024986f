//! Somebody has a row locked: whoever wants that row waits for it, and nobody else does.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use std::sync::Arc;
use std::time::{Duration, Instant};

use duroxide::providers::{
    ExecutionMetadata, FetchedTurn, InstanceFilter, Provider, ProviderAdmin, ProviderError,
    PruneOptions, TagFilter, TurnCommit, WorkItem,
};
use duroxide::{Event, EventKind};
use duroxide_pg::PostgresProvider;
use support::words::{activity, outcome, start};
use support::{TestSchema, stranger};
use tokio::task::JoinHandle;
use tokio_postgres::Client;

const LOCK: Duration = Duration::from_secs(60);
const LONG: Duration = Duration::from_secs(60);
/// Before whoever waits looks again in any case.
const SOON: Duration = Duration::from_secs(10);
/// A lease that has to be renewed.
const LEASE: Duration = Duration::from_secs(8);

type Store = Arc<PostgresProvider>;

fn message(instance: &str, data: &str) -> WorkItem {
    let (instance, name) = (instance.to_owned(), "q".to_owned());
    WorkItem::QueueMessage { instance, name, data: data.to_owned() }
}

fn started(id: &str, execution: u64) -> Event {
    let kind = EventKind::OrchestrationStarted {
        name: "Main".into(),
        version: "1.0.0".into(),
        input: "input".into(),
        parent_instance: None,
        parent_id: None,
        parent_execution_id: None,
        carry_forward_events: None,
        initial_custom_status: None,
    };
    Event::with_event_id(1, id, execution, None, kind)
}

fn named(status: Option<&str>) -> ExecutionMetadata {
    ExecutionMetadata {
        orchestration_name: Some("Main".into()),
        orchestration_version: Some("1.0.0".into()),
        status: status.map(str::to_owned),
        ..ExecutionMetadata::default()
    }
}

async fn next_turn(store: &Store, lease: Duration) -> FetchedTurn {
    store.fetch_turn(lease, LONG, None).await.unwrap().unwrap()
}

/// The first turn of an execution.
fn first_turn(id: &str, execution: u64, status: Option<&str>) -> TurnCommit {
    TurnCommit {
        execution_id: execution,
        history_delta: vec![started(id, execution)],
        metadata: named(status),
        ..TurnCommit::default()
    }
}

async fn commit(store: &Store, turn: &FetchedTurn, commit: TurnCommit) {
    store.commit_turn(&turn.lock_token, commit).await.map_err(|refused| refused.error).unwrap();
}

/// Makes an instance that rests.
async fn make(store: &Store, id: &str) {
    store.enqueue_for_orchestrator(start(id), None).await.unwrap();
    let turn = next_turn(store, LOCK).await;
    assert_eq!(turn.item.instance, id);
    commit(store, &turn, first_turn(id, 1, None)).await;
}

/// Locks the row of an instance until told otherwise.
async fn seize(db: &Client, id: &str) {
    db.batch_execute("BEGIN").await.unwrap();
    let lock = "SELECT FROM mailbox m JOIN instance i ON i.key = m.instance WHERE i.id = $1
         FOR UPDATE OF m";
    db.execute(lock, &[&id]).await.unwrap();
}

/// Waits until somebody but this process of the server waits for the row; who that is.
async fn who_waits(db: &Client, but: i32) -> i32 {
    let waiting = "SELECT pid FROM pg_locks WHERE NOT granted AND pid <> $1
         AND pg_backend_pid() = ANY (pg_blocking_pids(pid))";
    let began = Instant::now();
    loop {
        if let Some(row) = db.query(waiting, &[&but]).await.unwrap().first() {
            return row.get(0);
        }
        assert!(began.elapsed() < LONG, "nobody waits");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

/// Waits until one of the store's transactions waits for a row.
async fn until_blocked(db: &Client) {
    let waiting = "SELECT count(*) FROM pg_locks WHERE NOT granted
         AND pg_backend_pid() = ANY (pg_blocking_pids(pid))";
    let began = Instant::now();
    while db.query_one(waiting, &[]).await.unwrap().get::<_, i64>(0) == 0 {
        assert!(began.elapsed() < LONG, "nobody waits");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

fn send(store: &Store, item: WorkItem) -> JoinHandle<Result<(), ProviderError>> {
    let store = Arc::clone(store);
    tokio::spawn(async move { store.enqueue_for_orchestrator(item, None).await })
}

// R8.170.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r8_170_a_locked_row_holds_up_its_own_instance_only() {
    let Some(schema) = TestSchema::new() else { return };
    let store = Arc::new(schema.open().await);
    let db = stranger(&schema.config()).await;
    for id in ["x", "y"] {
        make(&store, id).await;
    }
    store.enqueue_for_worker(activity("y", 2)).await.unwrap();
    let tags = TagFilter::Any;
    let (_, work, _) = store.fetch_work_item(LEASE, LONG, None, &tags).await.unwrap().unwrap();
    store.enqueue_for_orchestrator(message("y", "1"), None).await.unwrap();
    let turn = next_turn(&store, LEASE).await;
    seize(&db, "x").await;
    // More than there are connections to write with.
    let mut blocked = Vec::new();
    for number in 0..6 {
        blocked.push(send(&store, message("x", &number.to_string())));
        until_blocked(&db).await;
    }
    let (began, mut done) = (Instant::now(), 0);
    while began.elapsed() < LEASE + Duration::from_secs(1) || done < 20 {
        store.renew_orchestration_item_lock(&turn.lock_token, LEASE).await.unwrap();
        store.renew_work_item_lock(&work, LEASE).await.unwrap();
        make(&store, &format!("z{done}")).await;
        assert!(began.elapsed() < LONG, "{done} done");
        done += 1;
    }
    println!("{done} instances in {:?}", began.elapsed());
    assert!(blocked.iter().all(|sent| !sent.is_finished()), "somebody has their row");
    let rest = TurnCommit { execution_id: 1, metadata: named(None), ..TurnCommit::default() };
    commit(&store, &turn, rest).await;
    store.ack_work_item(&work, Some(outcome("y", 2))).await.unwrap();
    db.batch_execute("COMMIT").await.unwrap();
    for sent in blocked {
        sent.await.unwrap().unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r8_170_what_waits_for_a_row_keeps_its_order() {
    let Some(schema) = TestSchema::new() else { return };
    let store = Arc::new(schema.open().await);
    let db = stranger(&schema.config()).await;
    make(&store, "x").await;
    seize(&db, "x").await;
    let mut sent = vec![send(&store, message("x", "0"))];
    // It waits with others first, and by itself once it was set apart.
    let shared = who_waits(&db, 0).await;
    who_waits(&db, shared).await;
    let behind = Arc::clone(&store);
    sent.push(tokio::spawn(async move {
        let send =
            |number: u32| behind.enqueue_for_orchestrator(message("x", &number.to_string()), None);
        // Asked for one after the other, and not waited for.
        let (first, second, third) = tokio::join!(biased; send(1), send(2), send(3));
        first.and(second).and(third)
    }));
    make(&store, "other").await;
    db.batch_execute("COMMIT").await.unwrap();
    for sent in sent {
        sent.await.unwrap().unwrap();
    }
    let turn = next_turn(&store, LOCK).await;
    let data = |item: &WorkItem| match item {
        WorkItem::QueueMessage { data, .. } => data.clone(),
        other => panic!("{other:?}"),
    };
    let order: Vec<String> = turn.item.messages.iter().map(data).collect();
    assert_eq!(order, ["0", "1", "2", "3"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r8_170_a_commit_that_waited_is_done_once() {
    let Some(schema) = TestSchema::new() else { return };
    let store = Arc::new(schema.open().await);
    let db = stranger(&schema.config()).await;
    store.enqueue_for_orchestrator(start("x"), None).await.unwrap();
    let turn = next_turn(&store, LOCK).await;
    seize(&db, "x").await;
    let (committing, token) = (Arc::clone(&store), turn.lock_token.clone());
    let waiting = tokio::spawn(async move {
        let mut first = first_turn("x", 1, None);
        first.worker_items = vec![activity("x", 2)];
        committing.commit_turn(&token, first).await.map_err(|refused| refused.error)
    });
    until_blocked(&db).await;
    for number in 0..5 {
        make(&store, &format!("z{number}")).await;
    }
    assert!(!waiting.is_finished());
    db.batch_execute("COMMIT").await.unwrap();
    waiting.await.unwrap().unwrap();
    let tags = TagFilter::Any;
    assert!(store.fetch_work_item(LOCK, LONG, None, &tags).await.unwrap().is_some());
    assert!(store.fetch_work_item(LOCK, Duration::ZERO, None, &tags).await.unwrap().is_none());
    assert_eq!(store.read("x").await.unwrap().len(), 1);
}

// Nobody tells when a row is free again, and the look that comes every second anyway is switched off here.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_look_had_to_leave_is_fetched_when_it_is_free() {
    let Some(schema) = TestSchema::new() else { return };
    let store = Arc::new(schema.open().await);
    let db = stranger(&schema.config()).await;
    make(&store, "x").await;
    store.enqueue_for_worker(activity("x", 2)).await.unwrap();
    db.batch_execute("DROP FUNCTION pulse").await.unwrap();
    for round in 0..3 {
        store.enqueue_for_orchestrator(message("x", &round.to_string()), None).await.unwrap();
        seize(&db, "x").await;
        db.batch_execute("SELECT FROM work FOR UPDATE").await.unwrap();
        let now = Duration::ZERO;
        assert!(store.fetch_turn(LOCK, now, None).await.unwrap().is_none());
        let fetching = Arc::clone(&store);
        let turn = tokio::spawn(async move { fetching.fetch_turn(LOCK, SOON, None).await });
        let fetching = Arc::clone(&store);
        let job = tokio::spawn(async move {
            fetching.fetch_work_item(LOCK, SOON, None, &TagFilter::DefaultOnly).await
        });
        tokio::time::sleep(Duration::from_millis(50)).await;
        assert!(!turn.is_finished() && !job.is_finished());
        db.batch_execute("COMMIT").await.unwrap();
        let turn = turn.await.unwrap().unwrap().expect("the turn");
        let rest = TurnCommit { execution_id: 1, metadata: named(None), ..TurnCommit::default() };
        commit(&store, &turn, rest).await;
        let (_, token, _) = job.await.unwrap().unwrap().expect("the activity");
        store.abandon_work_item(&token, None, true).await.unwrap();
    }
}

/// An instance with an old execution.
async fn make_old(store: &Store, id: &str, ends: bool) {
    store.enqueue_for_orchestrator(start(id), None).await.unwrap();
    let turn = next_turn(store, LOCK).await;
    let again = EventKind::OrchestrationContinuedAsNew { input: "x".into() };
    let mut old = first_turn(id, 1, Some("ContinuedAsNew"));
    old.history_delta.push(Event::with_event_id(2, id, 1, None, again));
    let mut next = first_turn(id, 2, None);
    if ends {
        next.metadata.status = Some("Completed".to_owned());
        let end = EventKind::OrchestrationCompleted { output: "x".into() };
        next.history_delta.push(Event::with_event_id(2, id, 2, None, end));
    }
    old.successor = Some(Box::new(next));
    commit(store, &turn, old).await;
}

// R6.75, R6.85.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r6_85_pruning_leaves_what_is_locked_for_the_end() {
    let Some(schema) = TestSchema::new() else { return };
    let store = Arc::new(schema.open().await);
    let db = stranger(&schema.config()).await;
    for number in 0..20 {
        make_old(&store, &format!("i{number}"), false).await;
    }
    seize(&db, "i5").await;
    let pruning = Arc::clone(&store);
    let pruned = tokio::spawn(async move {
        pruning.prune_executions_bulk(InstanceFilter::default(), PruneOptions::default()).await
    });
    until_blocked(&db).await;
    // All others are pruned by now, and nobody has them locked.
    let left = "SELECT count(*) FROM execution WHERE number = 1";
    let other = stranger(&schema.config()).await;
    assert_eq!(other.query_one(left, &[]).await.unwrap().get::<_, i64>(0), 1);
    let free = "SELECT count(*) FROM (SELECT FROM mailbox FOR UPDATE SKIP LOCKED) m";
    assert_eq!(other.query_one(free, &[]).await.unwrap().get::<_, i64>(0), 19);
    assert!(!pruned.is_finished());
    db.batch_execute("COMMIT").await.unwrap();
    let result = pruned.await.unwrap().unwrap();
    assert_eq!((result.instances_processed, result.executions_deleted), (20, 20));
    assert_eq!(result.events_deleted, 40);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r6_75_bulk_deletion_leaves_what_is_locked_for_the_end() {
    let Some(schema) = TestSchema::new() else { return };
    let store = Arc::new(schema.open().await);
    let db = stranger(&schema.config()).await;
    for number in 0..40 {
        make_old(&store, &format!("i{number}"), number != 7).await;
    }
    seize(&db, "i20").await;
    let deleting = Arc::clone(&store);
    let deleted =
        tokio::spawn(async move { deleting.delete_instance_bulk(InstanceFilter::default()).await });
    let other = stranger(&schema.config()).await;
    let left = "SELECT count(*) FROM instance";
    let began = Instant::now();
    // Those that came after the one that is locked go as well.
    while other.query_one(left, &[]).await.unwrap().get::<_, i64>(0) > 17 {
        assert!(began.elapsed() < LONG, "all wait for one");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert!(!deleted.is_finished());
    db.batch_execute("COMMIT").await.unwrap();
    assert_eq!(deleted.await.unwrap().unwrap().instances_deleted, 39);
    assert_eq!(store.list_instances().await.unwrap(), ["i7"]);
}

// R8.170: as many as one step of time looks at are of one instance, whose row is locked.
#[tokio::test(flavor = "multi_thread")]
async fn r8_170_messages_of_others_become_due_behind_a_locked_row() {
    let Some(schema) = TestSchema::new() else { return };
    let store = Arc::new(schema.open().await);
    let db = stranger(&schema.config()).await;
    for id in ["a", "b"] {
        make(&store, id).await;
    }
    let later = Some(Duration::from_secs(2));
    for _ in 0..1_000 {
        store.enqueue_for_orchestrator(message("a", "t"), later).await.unwrap();
    }
    seize(&db, "a").await;
    store.enqueue_for_orchestrator(message("b", "t"), later).await.unwrap();
    assert_eq!(next_turn(&store, LOCK).await.item.instance, "b");
    db.batch_execute("COMMIT").await.unwrap();
    assert_eq!(next_turn(&store, LOCK).await.item.instance, "a");
}
