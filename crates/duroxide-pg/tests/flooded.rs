//! One instance with more messages than anybody could read at once: it is served bit by bit, and the
//! others do not notice.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use std::collections::HashSet;
use std::time::{Duration, Instant};

use duroxide::providers::{
    ExecutionMetadata, FetchedTurn, Provider, TagFilter, TurnCommit, WorkItem,
};
use duroxide::{Event, EventKind};
use duroxide_core::model::limits::{MAX_FETCH_BYTES, MAX_TURN_BYTES, MAX_TURN_MESSAGES};
use duroxide_pg::PostgresProvider;
use support::words::{activity, start};
use support::{TestSchema, stranger};
use tokio_postgres::Client;

const LOCK: Duration = Duration::from_secs(60);
const NOW: Duration = Duration::ZERO;
const MIB: usize = 1 << 20;

/// Events for an instance, numbered, each with so many bytes of data, put into the tables directly.
const FLOOD: &str = "
    INSERT INTO message (instance, seq, kind, attempts, since, payload)
    SELECT i.key, nextval('positions'), 0, 0, 1,
        replace(replace($2, 'NAME', n::text), 'DATA', repeat('x', $4::integer))
    FROM instance i, generate_series(1, $3::bigint) n WHERE i.id = $1";

async fn flood(db: &Client, id: &str, count: i64, bytes: i32) {
    let (instance, name, data) = (id.to_owned(), "NAME".to_owned(), "DATA".to_owned());
    let event = WorkItem::ExternalRaised { instance, name, data };
    let event = serde_json::to_string(&event).unwrap();
    db.execute(FLOOD, &[&id, &event, &count, &bytes]).await.unwrap();
}

/// An event by the usual way: it makes the mailbox ready.
async fn raise(store: &PostgresProvider, id: &str, name: &str) {
    let event = WorkItem::ExternalRaised {
        instance: id.to_owned(),
        name: name.to_owned(),
        data: String::new(),
    };
    store.enqueue_for_orchestrator(event, None).await.unwrap();
}

fn first_commit(id: &str) -> TurnCommit {
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
    TurnCommit {
        execution_id: 1,
        history_delta: vec![Event::with_event_id(1, id, 1, None, kind)],
        metadata: ExecutionMetadata {
            orchestration_name: Some("Main".to_owned()),
            orchestration_version: Some("1.0.0".to_owned()),
            ..ExecutionMetadata::default()
        },
        ..TurnCommit::default()
    }
}

/// Instances that rest, and the database.
async fn opened(ids: &[&str]) -> Option<(TestSchema, PostgresProvider, Client)> {
    let schema = TestSchema::new()?;
    let store = schema.open().await;
    for id in ids {
        store.enqueue_for_orchestrator(start(id), None).await.unwrap();
        let turn = turn_of(&store, id).await;
        store.commit_turn(&turn.lock_token, first_commit(id)).await.unwrap();
    }
    let db = stranger(&schema.config()).await;
    Some((schema, store, db))
}

async fn turn_of(store: &PostgresProvider, id: &str) -> FetchedTurn {
    let turn = store.fetch_turn(LOCK, NOW, None).await.unwrap().unwrap();
    assert_eq!(turn.item.instance, id);
    turn
}

/// A commit that reads the messages and does nothing else.
async fn consume(store: &PostgresProvider, turn: &FetchedTurn) {
    let commit = TurnCommit { execution_id: 1, ..TurnCommit::default() };
    store.commit_turn(&turn.lock_token, commit).await.unwrap();
}

fn names(turn: &FetchedTurn) -> Vec<&str> {
    turn.item
        .messages
        .iter()
        .filter_map(|item| match item {
            WorkItem::ExternalRaised { name, .. } => Some(name.as_str()),
            _ => None,
        })
        .collect()
}

fn numbers(range: std::ops::RangeInclusive<usize>) -> Vec<String> {
    range.map(|number| number.to_string()).collect()
}

#[tokio::test]
async fn r8_147_the_limits_are_those_of_the_library() {
    let Some((_schema, _store, db)) = opened(&[]).await else { return };
    let row = db.query_one("SELECT turn_messages(), turn_bytes(), fetch_bytes()", &[]).await;
    let row = row.unwrap();
    assert_eq!(row.get::<_, i32>(0), MAX_TURN_MESSAGES as i32);
    assert_eq!(row.get::<_, i64>(1), MAX_TURN_BYTES as i64);
    assert_eq!(row.get::<_, i64>(2), MAX_FETCH_BYTES as i64);
}

#[tokio::test]
async fn r8_147_a_turn_holds_the_oldest_messages_and_the_rest_makes_the_next() {
    let Some((_schema, store, db)) = opened(&["i"]).await else { return };
    flood(&db, "i", 2_499, 1).await;
    raise(&store, "i", "2500").await;
    for range in [1..=1000, 1001..=2000, 2001..=2500] {
        let turn = turn_of(&store, "i").await;
        assert_eq!(names(&turn), numbers(range));
        assert_eq!(turn.attempt_count, 1);
        consume(&store, &turn).await;
    }
    assert!(store.fetch_turn(LOCK, NOW, None).await.unwrap().is_none());
    let left: i64 = db.query_one("SELECT count(*) FROM message", &[]).await.unwrap().get(0);
    assert_eq!(left, 0);
}

#[tokio::test]
async fn r8_147_what_was_given_back_comes_again_with_what_is_beside_it() {
    let Some((_schema, store, db)) = opened(&["i"]).await else { return };
    flood(&db, "i", 1_499, 1).await;
    raise(&store, "i", "1500").await;
    let turn = turn_of(&store, "i").await;
    store.abandon_orchestration_item(&turn.lock_token, None, false).await.unwrap();
    let turn = turn_of(&store, "i").await;
    assert_eq!((names(&turn).len(), turn.attempt_count), (1000, 2));
    consume(&store, &turn).await;
    let turn = turn_of(&store, "i").await;
    assert_eq!(
        (names(&turn), turn.attempt_count),
        (numbers(1001..=1500).iter().map(String::as_str).collect(), 1)
    );
}

#[tokio::test]
async fn r8_147_a_turn_holds_so_many_bytes_or_one_message() {
    let Some((_schema, store, db)) = opened(&["i"]).await else { return };
    flood(&db, "i", 5, MIB as i32).await;
    flood(&db, "i", 1, 6 * MIB as i32).await;
    flood(&db, "i", 2, 1).await;
    raise(&store, "i", "last").await;
    let mut batches = Vec::new();
    while let Some(turn) = store.fetch_turn(LOCK, NOW, None).await.unwrap() {
        batches.push(turn.item.messages.len());
        consume(&store, &turn).await;
    }
    assert_eq!(batches, [3, 2, 1, 3]);
}

#[tokio::test]
async fn r8_147_the_start_of_an_unknown_instance_is_in_its_first_batch() {
    let Some((_schema, store, db)) = opened(&[]).await else { return };
    raise(&store, "i", "0").await;
    flood(&db, "i", 1_500, 1).await;
    assert!(store.fetch_turn(LOCK, NOW, None).await.unwrap().is_none());
    store.enqueue_for_orchestrator(start("i"), None).await.unwrap();
    let turn = turn_of(&store, "i").await;
    assert_eq!(turn.item.orchestration_name, "Main");
    assert_eq!(turn.item.messages.len(), 1000);
    assert_eq!(turn.item.messages.last(), Some(&start("i")));
    store.commit_turn(&turn.lock_token, first_commit("i")).await.unwrap();
    let turn = turn_of(&store, "i").await;
    assert_eq!(names(&turn), numbers(999..=1500));
}

#[tokio::test]
async fn r8_147_what_begins_the_next_execution_is_in_the_first_batch() {
    let Some((_schema, store, db)) = opened(&["i"]).await else { return };
    flood(&db, "i", 1_500, 1).await;
    let next = WorkItem::ContinueAsNew {
        instance: "i".to_owned(),
        orchestration: "Main".to_owned(),
        input: String::new(),
        version: None,
        carry_forward_events: Vec::new(),
        initial_custom_status: None,
        parent_instance: None,
        parent_id: None,
        parent_execution_id: None,
    };
    store.enqueue_for_orchestrator(next.clone(), None).await.unwrap();
    let turn = turn_of(&store, "i").await;
    assert_eq!(turn.item.messages.len(), 1000);
    assert_eq!(turn.item.messages.last(), Some(&next));
}

#[tokio::test]
async fn r8_147_a_fetch_of_several_holds_so_many_bytes_beyond_the_first() {
    let ids: Vec<String> = (0..7).map(|number| format!("i{number}")).collect();
    let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
    let Some((_schema, store, db)) = opened(&ids).await else { return };
    for id in &ids {
        flood(&db, id, 1, 5 * MIB as i32).await;
        raise(&store, id, "small").await;
    }
    let mut batches = Vec::new();
    loop {
        let turns = store.fetch_turns(LOCK, NOW, None, 10).await.unwrap();
        if turns.is_empty() {
            break;
        }
        batches.push(turns.len());
    }
    assert_eq!(batches, [4, 3]);
    for number in 0..10 {
        let mut item = activity("i0", number);
        if let WorkItem::ActivityExecute { input, .. } = &mut item {
            *input = "x".repeat(5 * MIB);
        }
        store.enqueue_for_worker(item).await.unwrap();
    }
    let mut batches = Vec::new();
    loop {
        let tags = TagFilter::DefaultOnly;
        let jobs = store.fetch_work_items(LOCK, NOW, None, &tags, 10).await.unwrap();
        if jobs.is_empty() {
            break;
        }
        batches.push(jobs.len());
    }
    assert_eq!(batches, [4, 4, 2]);
}

/// Rows found by an index in the tables of messages, when all that was done has been counted.
async fn rows_read(db: &Client) -> i64 {
    let sql = "SELECT sum(idx_tup_fetch + seq_tup_read)::bigint FROM pg_stat_user_tables
         WHERE schemaname = current_schema() AND relname IN ('message', 'hidden')";
    db.query_one(sql, &[]).await.unwrap().get(0)
}

// Reading, settling, committing: each is about the batch, not about all that waits.
#[tokio::test]
async fn r8_147_a_flooded_mailbox_is_never_read_as_a_whole() {
    for analyzed in [false, true] {
        let Some((schema, store, db)) = opened(&["i"]).await else { return };
        const MANY: i64 = 50_000;
        flood(&db, "i", MANY, 1).await;
        if analyzed {
            db.batch_execute("ANALYZE").await.unwrap();
        }
        drop(db);
        let db = stranger(&schema.config()).await;
        let began = Instant::now();
        // What the filler has read is counted when it has ended.
        while rows_written(&db).await < MANY {
            assert!(began.elapsed() < Duration::from_secs(60), "no counters");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        let before = rows_read(&db).await;
        raise(&store, "i", "last").await;
        for _ in 0..3 {
            let turn = turn_of(&store, "i").await;
            consume(&store, &turn).await;
        }
        let turn = turn_of(&store, "i").await;
        store.abandon_orchestration_item(&turn.lock_token, None, false).await.unwrap();
        raise(&store, "i", "later").await;
        drop(turn_of(&store, "i").await);
        drop(store);
        let began = Instant::now();
        while rows_deleted(&db).await < 3_000 {
            assert!(began.elapsed() < Duration::from_secs(60), "no counters");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        let read = rows_read(&db).await - before;
        assert!(read < MANY, "analyzed: {analyzed}, {read} rows were read");
    }
}

async fn rows_written(db: &Client) -> i64 {
    let sql = "SELECT n_tup_ins FROM pg_stat_user_tables
         WHERE schemaname = current_schema() AND relname = 'message'";
    db.query_one(sql, &[]).await.unwrap().get(0)
}

async fn rows_deleted(db: &Client) -> i64 {
    let sql = "SELECT n_tup_del FROM pg_stat_user_tables
         WHERE schemaname = current_schema() AND relname = 'message'";
    db.query_one(sql, &[]).await.unwrap().get(0)
}

// R8.28: those for nobody go bit by bit, too.
#[tokio::test]
async fn r8_147_many_queue_messages_for_nobody_become_dead_letters() {
    let Some((_schema, store, db)) = opened(&[]).await else { return };
    for number in 0..3 {
        let message = WorkItem::QueueMessage {
            instance: "nobody".to_owned(),
            name: "q".to_owned(),
            data: number.to_string(),
        };
        store.enqueue_for_orchestrator(message, None).await.unwrap();
    }
    let more = "INSERT INTO message (instance, seq, kind, attempts, since, payload)
         SELECT instance, nextval('positions'), 2, 0, 1, payload
         FROM (SELECT * FROM message LIMIT 1) q, generate_series(1, 2500)";
    db.execute(more, &[]).await.unwrap();
    let began = Instant::now();
    loop {
        assert!(store.fetch_turn(LOCK, NOW, None).await.unwrap().is_none());
        let left: i64 = db.query_one("SELECT count(*) FROM message", &[]).await.unwrap().get(0);
        if left == 0 {
            break;
        }
        assert!(began.elapsed() < Duration::from_secs(60), "{left} left");
    }
    let dead: i64 = db.query_one("SELECT count(*) FROM dead_letter", &[]).await.unwrap().get(0);
    assert_eq!(dead, 2503);
    let known: i64 = db.query_one("SELECT count(*) FROM instance", &[]).await.unwrap().get(0);
    assert_eq!(known, 0);
}

/// Whoever takes this instance, or this activity, fails: as if a page of it could not be read.
const DAMAGE: &str = "
    CREATE FUNCTION damage() RETURNS trigger LANGUAGE plpgsql AS
        'BEGIN RAISE data_corrupted USING MESSAGE = ''a page cannot be read''; END';
    CREATE TRIGGER damaged BEFORE UPDATE ON mailbox FOR EACH ROW
        WHEN (NEW.state = 2 AND NEW.instance = 2) EXECUTE FUNCTION damage();
    CREATE TRIGGER damaged BEFORE UPDATE ON work FOR EACH ROW
        WHEN (NEW.token IS NOT NULL AND NEW.activity = 2) EXECUTE FUNCTION damage();";

#[tokio::test]
async fn r8_147_what_cannot_be_read_is_set_apart_and_the_others_are_served() {
    let Some((_schema, store, db)) = opened(&["a", "b", "c", "d"]).await else { return };
    db.batch_execute(DAMAGE).await.unwrap();
    for (number, id) in (1..).zip(["a", "b", "c", "d"]) {
        raise(&store, id, "x").await;
        store.enqueue_for_worker(activity(id, number)).await.unwrap();
    }
    let (mut turns, mut jobs) = (HashSet::new(), HashSet::new());
    for _ in 0..5 {
        let fetched = store.fetch_turns(LOCK, NOW, None, 10).await.unwrap();
        turns.extend(fetched.into_iter().map(|turn| turn.item.instance));
        let tags = TagFilter::DefaultOnly;
        let fetched = store.fetch_work_items(LOCK, NOW, None, &tags, 10).await.unwrap();
        jobs.extend(fetched.into_iter().map(|(item, _, _)| match item {
            WorkItem::ActivityExecute { id, .. } => id,
            other => panic!("{other:?}"),
        }));
    }
    assert_eq!(turns, HashSet::from(["a", "c", "d"].map(str::to_owned)));
    assert_eq!(jobs, HashSet::from([1, 3, 4]));
    // When it can be read again it goes on by itself.
    db.batch_execute("DROP TRIGGER damaged ON mailbox; DROP TRIGGER damaged ON work")
        .await
        .unwrap();
    db.batch_execute(
        "UPDATE mailbox SET wake_at = 1 WHERE state = 5;
        UPDATE work SET wake_at = 1 WHERE wake_at IS NOT NULL AND token IS NULL",
    )
    .await
    .unwrap();
    drop(turn_of(&store, "b").await);
    let job = store.fetch_work_item(LOCK, NOW, None, &TagFilter::DefaultOnly).await.unwrap();
    assert_eq!(job.unwrap().2, 1);
}

// More than an array of the server can hold. Run it by name, it takes a minute.
#[tokio::test]
#[ignore = "handles more than a gigabyte"]
async fn r8_147_more_than_a_gigabyte_for_one_instance_holds_up_nobody() {
    let Some((_schema, store, db)) = opened(&["flooded", "innocent"]).await else { return };
    flood(&db, "flooded", 1_100, MIB as i32).await;
    raise(&store, "flooded", "last").await;
    raise(&store, "innocent", "x").await;
    let began = Instant::now();
    let turns = store.fetch_turns(LOCK, NOW, None, 10).await.unwrap();
    println!("a fetch of {} turns: {:.1?}", turns.len(), began.elapsed());
    let ids: Vec<&str> = turns.iter().map(|turn| turn.item.instance.as_str()).collect();
    assert_eq!(ids, ["flooded", "innocent"]);
    consume(&store, &turns[0]).await;
    let (mut read, mut longest) = (turns[0].item.messages.len(), Duration::ZERO);
    loop {
        let began = Instant::now();
        let Some(turn) = store.fetch_turn(LOCK, NOW, None).await.unwrap() else { break };
        longest = longest.max(began.elapsed());
        read += turn.item.messages.len();
        consume(&store, &turn).await;
    }
    println!("{read} messages in {:.1?}, the longest fetch {longest:.1?}", began.elapsed());
    assert_eq!(read, 1_101);
}
