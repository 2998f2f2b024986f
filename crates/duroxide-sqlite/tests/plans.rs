//! What an operation costs does not depend on how much else there is in the store.
#![cfg(feature = "test-hooks")]
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use std::collections::{BTreeMap, HashSet};
use std::path::Path;
use std::time::Duration;

use duroxide::providers::{
    DispatcherCapabilityFilter, ExecutionMetadata, FetchedTurn, Provider,
    ScheduledActivityIdentifier, SessionFetchConfig, TagFilter, TurnCommit, WorkItem,
};
use duroxide::{Event, EventKind};
use duroxide_sqlite::SqliteProvider;
use support::files::start;
use support::{Folder, stranger};

const LOCK: Duration = Duration::from_secs(3600);
const NOW: Duration = Duration::ZERO;
/// Tables with a handful of rows, however large the store is.
const SMALL: [&str; 2] = ["pins", "nodes"];

async fn fetch_turn(store: &SqliteProvider) -> FetchedTurn {
    let filter = DispatcherCapabilityFilter::default_for_current_build();
    store.fetch_turn(LOCK, NOW, Some(&filter)).await.unwrap().expect("a turn")
}

fn activity(instance: &str, id: u64, tag: Option<&str>, session: Option<&str>) -> WorkItem {
    WorkItem::ActivityExecute {
        instance: instance.to_owned(),
        execution_id: 1,
        id,
        name: "A".to_owned(),
        input: "x".to_owned(),
        session_id: session.map(str::to_owned),
        tag: tag.map(str::to_owned),
    }
}

fn raise(instance: &str) -> WorkItem {
    WorkItem::ExternalRaised {
        instance: instance.to_owned(),
        name: "e".to_owned(),
        data: "d".to_owned(),
    }
}

fn first_turn(instance: &str) -> TurnCommit {
    let kinds = [
        EventKind::OrchestrationStarted {
            name: "Main".to_owned(),
            version: "1.0.0".to_owned(),
            input: "x".repeat(2000),
            parent_instance: None,
            parent_id: None,
            parent_execution_id: None,
            carry_forward_events: None,
            initial_custom_status: None,
        },
        EventKind::CustomStatusUpdated { status: Some("s".to_owned()) },
        EventKind::KeyValueSet {
            key: "k".to_owned(),
            value: "v".to_owned(),
            last_updated_at_ms: 1,
        },
        EventKind::KeyValueCleared { key: "other".to_owned() },
        EventKind::KeyValuesCleared,
    ];
    let event = |(id, kind)| Event::with_event_id(id, instance, 1, None, kind);
    let timer = |fire_at_ms| WorkItem::TimerFired {
        instance: instance.to_owned(),
        execution_id: 1,
        id: 9,
        fire_at_ms,
    };
    TurnCommit {
        execution_id: 1,
        history_delta: (1..).zip(kinds).map(event).collect(),
        worker_items: vec![
            activity(instance, 2, None, None),
            activity(instance, 3, Some("tag"), None),
            activity(instance, 4, None, Some("session")),
            activity(instance, 5, None, None),
        ],
        orchestrator_items: vec![
            timer(1),
            timer(u64::MAX),
            start(&format!("{instance}-child"), "x"),
        ],
        metadata: ExecutionMetadata {
            orchestration_name: Some("Main".to_owned()),
            orchestration_version: Some("1.0.0".to_owned()),
            pinned_duroxide_version: Some("0.2.0".parse().unwrap()),
            ..ExecutionMetadata::default()
        },
        cancelled_activities: vec![ScheduledActivityIdentifier {
            instance: instance.to_owned(),
            execution_id: 1,
            activity_id: 5,
        }],
        ..TurnCommit::default()
    }
}

fn last_turn(instance: &str) -> TurnCommit {
    let kind = EventKind::OrchestrationCompleted { output: "o".to_owned() };
    TurnCommit {
        execution_id: 1,
        history_delta: vec![Event::with_event_id(6, instance, 1, None, kind)],
        metadata: ExecutionMetadata {
            status: Some("Completed".to_owned()),
            output: Some("o".to_owned()),
            ..ExecutionMetadata::default()
        },
        ..TurnCommit::default()
    }
}

/// Everything that happens all the time, once or more.
async fn hot_operations(store: &SqliteProvider, instance: &str) {
    store.enqueue_for_orchestrator(start(instance, &"x".repeat(2000)), None).await.unwrap();
    store.enqueue_for_orchestrator(raise(instance), Some(Duration::from_millis(1))).await.unwrap();
    store.enqueue_for_orchestrator(raise("nobody"), None).await.unwrap();
    let turn = fetch_turn(store).await;
    store.renew_orchestration_item_lock(&turn.lock_token, LOCK).await.unwrap();
    store.abandon_orchestration_item(&turn.lock_token, None, true).await.unwrap();
    let turn = fetch_turn(store).await;
    let soon = Some(Duration::from_millis(1));
    store.abandon_orchestration_item(&turn.lock_token, soon, false).await.unwrap();
    // Waits inside the writer until the message is due again.
    let turn = store.fetch_turn(LOCK, LOCK, None).await.unwrap().expect("a turn");
    assert_eq!(turn.item.instance, instance);
    store.commit_turn(&turn.lock_token, first_turn(instance)).await.unwrap();

    work(store).await;
    let turn = fetch_turn(store).await; // The activities' outcomes, the timer.
    store.read_history_from(&turn.item.instance, 1, 1, None).await.unwrap();
    let turn = if turn.item.instance == instance { turn } else { fetch_turn(store).await };
    store.commit_turn(&turn.lock_token, last_turn(instance)).await.unwrap();
    store.read_status(instance).await.unwrap();
    store.get_custom_status(instance, 0).await.unwrap();
    store.get_kv_value(instance, "k").await.unwrap();
    // Nothing to be had: waits, looks at the clock, gives up.
    while store.fetch_turn(LOCK, Duration::from_millis(5), None).await.unwrap().is_some() {}
    let (poll, any) = (Duration::from_millis(5), TagFilter::Any);
    assert!(store.fetch_work_item(LOCK, poll, None, &any).await.unwrap().is_none());
}

/// The worker's side: by tag, by session, given back, renewed and done.
async fn work(store: &SqliteProvider) {
    let session = SessionFetchConfig { owner_id: "me".to_owned(), lock_timeout: LOCK };
    let tagged = TagFilter::Tags(HashSet::from(["tag".to_owned()]));
    for filter in [TagFilter::DefaultOnly, tagged, TagFilter::Any] {
        let fetched = store.fetch_work_item(LOCK, NOW, Some(&session), &filter).await.unwrap();
        let (item, token, _) = fetched.expect("work");
        store.renew_work_item_lock(&token, LOCK).await.unwrap();
        store.abandon_work_item(&token, None, true).await.unwrap();
        let fetched = store.fetch_work_item(LOCK, NOW, Some(&session), &filter).await.unwrap();
        let (again, token, _) = fetched.expect("work");
        assert_eq!(item, again);
        let WorkItem::ActivityExecute { instance, execution_id, id, .. } = again else { panic!() };
        let result = "r".to_owned();
        let done = WorkItem::ActivityCompleted { instance, execution_id, id, result };
        store.ack_work_item(&token, Some(done)).await.unwrap();
    }
    store.renew_session_lock(&["me"], LOCK, LOCK).await.unwrap();
    store.cleanup_orphaned_sessions(LOCK).await.unwrap();
}

/// Tables and indexes that a statement reads from one end to the other.
fn scans(path: &Path, sql: &str) -> Vec<String> {
    let connection = stranger(path);
    let mut statement = connection.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
    let (mut steps, mut rows) = (Vec::new(), statement.raw_query());
    while let Some(row) = rows.next().unwrap() {
        steps.push(row.get::<_, String>(3).unwrap());
    }
    let sorts = steps.iter().any(|step| step.contains("TEMP B-TREE"));
    let is_scan = |step: &String| {
        let whole = step.strip_prefix("SCAN ").filter(|what| *what != "CONSTANT ROW");
        // A table or an index read in its order until the first row is as good as a search.
        let is_first_only = sql.trim_end().ends_with("LIMIT 1")
            && (step.contains("USING") || !sql.contains("WHERE"))
            && !sorts;
        let is_first_only = is_first_only || asks_only_for_first_rows(sql) && !sorts;
        whole.is_some_and(|what| {
            let table = what.split_whitespace().next().unwrap_or(what);
            !SMALL.contains(&table) && !is_first_only
        })
    };
    steps.into_iter().filter(is_scan).collect()
}

/// Whether a statement consists of questions that each end with the first row they find.
fn asks_only_for_first_rows(sql: &str) -> bool {
    let count = |text| sql.matches(text).count();
    0 < count("(SELECT ")
        && count("(SELECT ") == count("EXISTS (SELECT ") + count(" LIMIT 1)")
        && count("SELECT") == count("(SELECT ") + 1
}

#[tokio::test]
async fn hot_statements_scan_no_table() {
    let folder = Folder::fast();
    let store = SqliteProvider::new(&folder.url("a.db"), None).await.unwrap();
    store.faults().watch();
    hot_operations(&store, "i").await;
    let seen = store.faults().seen();
    assert!(50 < seen.statements.len(), "only {} statements", seen.statements.len());
    for sql in seen.statements.keys() {
        let scans = scans(&folder.file("a.db"), sql);
        assert!(scans.is_empty(), "{sql}\nreads all of: {scans:?}");
    }
}

/// Instances that wait for a timer in the far future, with all that belongs to them.
fn add_waiting(path: &Path, count: u32) {
    let sql = format!(
        "BEGIN;
         INSERT INTO pins (version) VALUES ('0.2.0');
         CREATE TEMP TABLE n AS WITH RECURSIVE n (i) AS
         (SELECT 1000 UNION ALL SELECT i + 1 FROM n LIMIT {count}) SELECT i FROM n;
         INSERT INTO instances (key, id, name, version, execution, pin, created_at, updated_at)
         SELECT i, 'waiting-' || i, 'Main', '1.0.0', 1, 1, i, i FROM n;
         INSERT INTO executions (instance, number, status, pin, started_at, started)
         SELECT i, 1, 'Running', 1, i, 1 FROM n;
         INSERT INTO history (instance, execution, event, at, stamp, body)
         SELECT i, 1, 1, i, '0.2.0', '{{}}' FROM n;
         INSERT INTO hidden (visible_at, seq, instance, kind, attempts, payload)
         SELECT 1 << 50, i, i, 0, 0, '{{}}' FROM n;
         INSERT INTO work (seq, instance, execution, activity, attempts, wake_at, payload)
         SELECT i, i, 1, 2, 0, 1 << 50, '{{}}' FROM n;
         INSERT INTO mailboxes (instance, state, pin, wake_at)
         SELECT i, 3, 0, 1 << 50 FROM n;
         INSERT INTO messages (instance, seq, kind, attempts, late, since, payload)
         SELECT i, i, 0, 0, 0, 1 << 50, '{{}}' FROM n;
         UPDATE counters SET next_seq = 1000000;
         DROP TABLE n;
         COMMIT;"
    );
    stranger(path).execute_batch(&sql).unwrap();
}

/// Steps of SQLite's machine per statement, with so many others waiting.
async fn steps_with_waiting(count: u32) -> BTreeMap<&'static str, u64> {
    let folder = Folder::fast();
    drop(SqliteProvider::new(&folder.url("a.db"), None).await.unwrap());
    add_waiting(&folder.file("a.db"), count);
    let store = SqliteProvider::new(&folder.url("a.db"), None).await.unwrap();
    // Once before, so that names and versions are known.
    hot_operations(&store, "before").await;
    store.faults().watch();
    hot_operations(&store, "i").await;
    store.faults().seen().statements
}

#[tokio::test]
async fn a_hundred_thousand_waiting_instances_cost_what_a_hundred_do() {
    let few = steps_with_waiting(100).await;
    let many = steps_with_waiting(100_000).await;
    let total = |steps: &BTreeMap<_, u64>| steps.values().sum::<u64>();
    for (sql, steps) in &many {
        // How often the writer looks at the clock varies; what a look costs does not.
        let before = few.get(sql).copied().unwrap_or(*steps);
        assert!(*steps <= before * 3 + 100, "{sql}\n{before} steps with 100, {steps} with 100000");
    }
    assert!(total(&many) <= total(&few) * 3 / 2, "{} steps, then {}", total(&few), total(&many));
}

/// Steps of SQLite's machine per statement for turns of an instance with so many messages.
async fn steps_with_backlog(count: u32) -> BTreeMap<&'static str, u64> {
    let folder = Folder::fast();
    let store = SqliteProvider::new(&folder.url("a.db"), None).await.unwrap();
    store.enqueue_for_orchestrator(start("i", "x"), None).await.unwrap();
    store.enqueue_for_orchestrator(raise("i"), None).await.unwrap();
    drop(store);
    let sql = format!(
        "WITH RECURSIVE n (i) AS (SELECT 1000 UNION ALL SELECT i + 1 FROM n LIMIT {count})
         INSERT INTO messages (instance, seq, kind, attempts, late, since, payload)
         SELECT instance, i, kind, 0, i % 2, since, payload FROM n, messages WHERE kind = 0;
         UPDATE counters SET next_seq = 1000000;"
    );
    stranger(&folder.file("a.db")).execute_batch(&sql).unwrap();
    let store = SqliteProvider::new(&folder.url("a.db"), None).await.unwrap();
    store.faults().watch();
    let turn = fetch_turn(&store).await;
    assert_eq!(turn.item.messages.len(), 1000);
    store.abandon_orchestration_item(&turn.lock_token, None, false).await.unwrap();
    let turn = fetch_turn(&store).await;
    store.enqueue_for_orchestrator(raise("i"), None).await.unwrap();
    store.commit_turn(&turn.lock_token, first_turn("i")).await.unwrap();
    let turn = fetch_turn(&store).await;
    let later = Some(Duration::from_secs(3600));
    store.abandon_orchestration_item(&turn.lock_token, later, false).await.unwrap();
    store.faults().seen().statements
}

#[tokio::test]
async fn r8_147_a_turn_costs_the_same_however_many_messages_wait_behind_it() {
    let few = steps_with_backlog(3_000).await;
    let many = steps_with_backlog(200_000).await;
    for (sql, steps) in &many {
        let before = few.get(sql).copied().unwrap_or(*steps);
        assert!(*steps <= before * 2 + 100, "{sql}\n{before} steps with few, {steps} with many");
    }
}

/// Steps of SQLite's machine for an activity of one's own session, with so many of other owners'.
async fn steps_with_sessions(count: u32) -> BTreeMap<&'static str, u64> {
    let folder = Folder::fast();
    drop(SqliteProvider::new(&folder.url("a.db"), None).await.unwrap());
    let sql = format!(
        "BEGIN;
         CREATE TEMP TABLE n AS WITH RECURSIVE n (i) AS
         (SELECT 1000 UNION ALL SELECT i + 1 FROM n LIMIT {count}) SELECT i FROM n;
         INSERT INTO sessions (id, owner, until, last_activity)
         SELECT 's' || (i % 1000), 'other', 1 << 50, 1 FROM n WHERE i < 2000;
         INSERT INTO work (seq, instance, execution, activity, attempts, session, holder, payload,
         position) SELECT i, i, 1, 2, 0, 's' || (i % 1000), 'other', 'x', i FROM n;
         UPDATE counters SET next_seq = 1000000;
         DROP TABLE n;
         COMMIT;"
    );
    stranger(&folder.file("a.db")).execute_batch(&sql).unwrap();
    let store = SqliteProvider::new(&folder.url("a.db"), None).await.unwrap();
    store.faults().watch();
    let session = SessionFetchConfig { owner_id: "me".to_owned(), lock_timeout: LOCK };
    let lost = Duration::from_millis(1);
    for (id, lock) in [(1, LOCK), (2, LOCK), (3, lost), (4, LOCK)] {
        store.enqueue_for_worker(activity("i", id, None, Some("mine"))).await.unwrap();
        for filter in [TagFilter::Any, TagFilter::DefaultOnly] {
            let fetched = store.fetch_work_item(lock, NOW, Some(&session), &filter).await.unwrap();
            if let Some((_, token, _)) = fetched.filter(|_| lock == LOCK) {
                store.renew_work_item_lock(&token, LOCK).await.unwrap();
                store.ack_work_item(&token, None).await.unwrap();
            }
        }
    }
    store.faults().seen().statements
}

#[tokio::test]
async fn r8_81_work_of_other_owners_sessions_costs_nothing() {
    let few = steps_with_sessions(1_000).await;
    let many = steps_with_sessions(50_000).await;
    for (sql, steps) in &many {
        let before = few.get(sql).copied().unwrap_or(*steps);
        assert!(*steps <= before * 2 + 100, "{sql}\n{before} steps with few, {steps} with many");
    }
    let total = |steps: &BTreeMap<_, u64>| steps.values().sum::<u64>();
    println!("{} steps with 1000 activities of others, {} with 50000", total(&few), total(&many));
}
