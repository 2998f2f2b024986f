//! The network between nodes and server: answers that get lost, and nodes that are cut off.

use std::sync::Arc;
use std::time::Duration;

use duroxide::providers::{DirectTurn, ExecutionMetadata, Provider, TagFilter, TurnCommit};
use duroxide::{Event, EventKind, StartOutcome};
use duroxide_fleet::takeover::{SHORT, start, time_of, wait_for_end, work};
use duroxide_fleet::{HOLD, alone, now_ms};
use duroxide_pg::PostgresProvider;
use duroxide_pg_testserver::shared;

use crate::contention;
use crate::proxy::{Proxy, Way};
use crate::site::{Site, times};
use crate::store::{SETTINGS, URL};
use crate::support::{TestSchema, stranger};

/// Leases of activities are that long here.
const LEASE_MS: u64 = 2_000;

/// Those of a fleet otherwise have run out by then.
const LONGER_THAN_LEASES: Duration = Duration::from_secs(9);

/// A way to the server of all tests.
pub(crate) fn proxy() -> (Proxy, String) {
    let url = shared().unwrap().url();
    let (_, address) = url.rsplit_once('@').unwrap();
    let port = address.split_once('/').unwrap().0.rsplit_once(':').unwrap().1;
    let proxy = Proxy::start(port.parse().unwrap());
    let url = proxy.url(url);
    (proxy, url)
}

// A commit may have happened although nobody heard of it: then it counts, once.
#[test]
fn answers_that_get_lost_change_nothing() {
    let _turn = alone();
    let Some(site) = Site::shared() else { return };
    let (proxy, url) = proxy();
    let crew = site.start(&[(URL, &url)]);
    for _ in 0..times(30) {
        site.fault("an answer lost");
        proxy.set(Way::AnswerLost);
        std::thread::sleep(Duration::from_millis(100));
    }
    proxy.set(Way::Open);
    site.progress(16);
    assert!(10 <= proxy.cut(), "{} answers lost", proxy.cut());
    site.finish(crew, "answers lost");
}

/// The turn after the one that ended with this event.
fn direct(last: &Event, work_token: String) -> DirectTurn {
    let kind = EventKind::ActivityCompleted { result: String::new() };
    let commit = TurnCommit {
        execution_id: 1,
        history_delta: vec![Event::with_event_id(last.event_id + 1, "i", 1, Some(2), kind)],
        worker_items: vec![contention::work("i")],
        ..TurnCommit::default()
    };
    let (instance, last_event_id) = ("i".to_owned(), last.event_id);
    DirectTurn { work_token, instance, last_event_id, last_event_at_ms: last.timestamp_ms, commit }
}

/// Direct turns one after the other. Some answers get lost: not the first on a connection, where the
/// statement is not known yet and its meaning would be what is lost.
async fn answers_lost(proxy: &Proxy, store: &PostgresProvider, turns: u64) {
    let (lease, long, tags) = (Duration::from_secs(60), Duration::from_secs(10), TagFilter::Any);
    store.enqueue_for_orchestrator(contention::start("i"), None).await.unwrap();
    let (_, turn, _) = store.fetch_orchestration_item(lease, long, None).await.unwrap().unwrap();
    let metadata = ExecutionMetadata {
        orchestration_name: Some("Main".to_owned()),
        orchestration_version: Some("1.0.0".to_owned()),
        ..ExecutionMetadata::default()
    };
    let mut last = Event::with_event_id(1, "i", 1, None, EventKind::KeyValuesCleared);
    let (events, work) = (vec![last.clone()], vec![contention::work("i")]);
    store.ack_orchestration_item(&turn, 1, events, work, vec![], metadata, vec![]).await.unwrap();
    for number in 1..=turns {
        let job = store.fetch_work_item(lease, long, None, &tags).await.unwrap().unwrap();
        let turn = direct(&last, job.1);
        last = turn.commit.history_delta[0].clone();
        proxy.set(if number.is_multiple_of(4) { Way::AnswerLost } else { Way::Open });
        store.commit_direct_turn(turn).await.unwrap();
        proxy.set(Way::Open);
        let history = store.read("i").await.unwrap();
        let ids: Vec<u64> = history.iter().map(|event| event.event_id).collect();
        assert_eq!(ids, (1..=last.event_id).collect::<Vec<_>>());
    }
}

// The same for a turn that comes with its activity, and so leaves no lock that could be asked about.
#[test]
fn a_direct_turn_whose_answer_gets_lost_is_done_once() {
    let _turn = alone();
    let Some(schema) = TestSchema::new() else { return };
    let (proxy, url) = proxy();
    let mut config = schema.config();
    config.url = url;
    let turns = times(80).into();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let store = PostgresProvider::new_with_config(config).await.unwrap();
        answers_lost(&proxy, &store, turns).await;
    });
    println!("{} answers of {turns} turns lost", proxy.cut());
    assert!(turns <= 8 * u64::from(proxy.cut()), "{} answers lost", proxy.cut());
}

/// Whoever queues an activity does not go on while somebody holds the lock with this number.
const WAIT_BEFORE_WORK: &str = "
    CREATE FUNCTION wait_before_work() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        WHILE NOT pg_try_advisory_xact_lock(TG_RELID::bigint) LOOP
            PERFORM pg_sleep(0.005);
        END LOOP;
        RETURN NEW;
    END $$;
    CREATE TRIGGER wait_before_work BEFORE INSERT ON work
    FOR EACH ROW EXECUTE FUNCTION wait_before_work()";

/// Waits until a process of the server waits in the name of a store, for a row or in the trigger; its id.
async fn waits(client: &tokio_postgres::Client, name: &str, but: i32) -> i32 {
    let waiting = "SELECT pid FROM pg_stat_activity WHERE application_name = $1
         AND (wait_event_type = 'Lock' OR wait_event = 'PgSleep') AND pid <> $2";
    let began = std::time::Instant::now();
    loop {
        assert!(began.elapsed() < Duration::from_secs(60), "nobody waits");
        if let Some(row) = client.query(waiting, &[&name, &but]).await.unwrap().first() {
            return row.get(0);
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Commits a turn with an activity that somebody waits for, and cuts the connection meanwhile.
async fn cut_while_committing(proxy: &Proxy, schema: &TestSchema, url: String, is_pooled: bool) {
    let mut config = schema.config();
    config.url = url;
    config.through_pooler = is_pooled;
    schema.name().clone_into(&mut config.application_name);
    let store = Arc::new(PostgresProvider::new_with_config(config).await.unwrap());
    // Within a transaction the server's processes seem to stay as they were.
    let (client, watcher) = (stranger(&schema.config()).await, stranger(&schema.config()).await);
    let (lease, long, tags) = (Duration::from_secs(600), Duration::from_secs(60), TagFilter::Any);
    store.enqueue_for_orchestrator(contention::start("i"), None).await.unwrap();
    let turn = store.fetch_orchestration_item(lease, long, None).await.unwrap().unwrap().1;
    assert!(store.fetch_work_item(lease, Duration::ZERO, None, &tags).await.unwrap().is_none());
    let fetching = Arc::clone(&store);
    let fetched =
        tokio::spawn(
            async move { fetching.fetch_work_item(lease, long, None, &TagFilter::Any).await },
        );
    tokio::task::yield_now().await;
    client.batch_execute(WAIT_BEFORE_WORK).await.unwrap();
    client.batch_execute("SELECT pg_advisory_lock('work'::regclass::oid::bigint)").await.unwrap();
    let committing = Arc::clone(&store);
    let committed = tokio::spawn(async move {
        let metadata = ExecutionMetadata {
            orchestration_name: Some("Main".to_owned()),
            orchestration_version: Some("1.0.0".to_owned()),
            ..ExecutionMetadata::default()
        };
        let kind = EventKind::OrchestrationStarted {
            name: "Main".to_owned(),
            version: "1.0.0".to_owned(),
            input: String::new(),
            parent_instance: None,
            parent_id: None,
            parent_execution_id: None,
            carry_forward_events: None,
            initial_custom_status: None,
        };
        let events = vec![Event::with_event_id(1, "i", 1, None, kind)];
        let work = vec![contention::work("i")];
        committing.ack_orchestration_item(&turn, 1, events, work, vec![], metadata, vec![]).await
    });
    let old = waits(&watcher, schema.name(), 0).await;
    proxy.set(Way::Closed);
    proxy.until_nobody_is_connected().await;
    proxy.set(Way::Open);
    // The repeated commit waits as well, and what was lost has been given back once at least.
    waits(&watcher, schema.name(), old).await;
    tokio::time::sleep(Duration::from_millis(100)).await;
    client.batch_execute("SELECT pg_advisory_unlock('work'::regclass::oid::bigint)").await.unwrap();
    committed.await.unwrap().unwrap();
    let job = fetched.await.unwrap().unwrap().expect("the activity");
    assert_eq!((job.0, job.2), (contention::work("i"), 1));
}

// The server is still at work for a connection that is lost, and takes an activity for it after all
// that was lost has been given back.
#[test]
fn what_is_taken_for_a_lost_connection_is_not_lost_with_it() {
    let Some(schema) = TestSchema::new() else { return };
    let (proxy, url) = proxy();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(cut_while_committing(&proxy, &schema, url, false));
}

// The same where nobody knows who was at work for the connection, so that nobody can be ended.
#[test]
fn what_is_taken_for_a_lost_connection_behind_a_pooler_is_given_back_later() {
    let Some(schema) = TestSchema::new() else { return };
    let (proxy, url) = proxy();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(cut_while_committing(&proxy, &schema, url, true));
}

#[test]
fn work_of_a_node_that_is_cut_off_goes_on_elsewhere_when_its_lease_is_over() {
    let _turn = alone();
    let Some(site) = Site::shared() else { return };
    let (proxy, url) = proxy();
    let stage = &site.stage;
    let settings = [SHORT, (URL, &url), (HOLD, "activities"), (SETTINGS, "timeout_ms=1000")];
    let lost = stage.start_worker(&settings);
    start(stage, &[("activity", "Program", work())]);
    time_of(stage, lost.id(), &["S", "activity"]);
    let heir = stage.start_worker(&[]);
    site.fault("a node cut off");
    proxy.set(Way::Frozen);
    let cut_off = now_ms();
    let taken = time_of(stage, heir.id(), &["S", "activity"]) - cut_off;
    println!("cut off to run elsewhere: {taken} ms, leases of {LEASE_MS} ms");
    wait_for_end(stage, &["activity"]);
    // All that while it was cut off. It comes back, and does as it should.
    proxy.set(Way::Open);
    duroxide_fleet::let_go(&stage.folder, lost.id());
    lost.finish();
    heir.finish();
    duroxide_fleet::assert_sound(stage, "a node cut off");
}

#[test]
fn a_frozen_network_is_given_up_and_found_again() {
    let _turn = alone();
    let Some(site) = Site::shared() else { return };
    let (proxy, url) = proxy();
    let crew = site.start(&[(URL, &url), (SETTINGS, "timeout_ms=2000")]);
    site.fault("frozen");
    proxy.set(Way::Frozen);
    std::thread::sleep(LONGER_THAN_LEASES);
    site.fault("free");
    proxy.set(Way::Open);
    site.progress(8);
    site.finish(crew, "frozen network");
}

/// What a start comes to, asked again while there is no answer.
async fn answer(client: &duroxide::Client, id: &str) -> StartOutcome {
    loop {
        match client.start(id, "Main", "x").await {
            Ok(outcome) => return outcome,
            Err(error) => assert!(error.is_retryable(), "{id}: {error}"),
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

// A start whose answer gets lost may have happened: nobody is told that it has or that it has not, and
// whoever asks again hears the truth (R6.88).
#[test]
fn r6_88_a_start_whose_answer_gets_lost_does_not_lie() {
    let _turn = alone();
    let Some(schema) = TestSchema::new() else { return };
    let (proxy, url) = proxy();
    let mut config = schema.config();
    config.url = url;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let store = Arc::new(PostgresProvider::new_with_config(config).await.unwrap());
        let client = duroxide::Client::new(store.clone());
        let mut lost = 0;
        for number in 0..times(40) {
            let id = format!("i{number}");
            let before = proxy.cut();
            proxy.set(Way::AnswerLost);
            let first = client.start(&id, "Main", "x").await;
            proxy.set(Way::Open);
            let cut = before < proxy.cut();
            match first {
                Ok(outcome) => assert_eq!(outcome, StartOutcome::Started, "{id}"),
                Err(error) => {
                    assert!(cut && error.is_retryable(), "{id}: {error}");
                    lost += 1;
                    // Either it had not begun and does now, or it had.
                    assert_ne!(answer(&client, &id).await, StartOutcome::Ended);
                }
            }
            assert_eq!(answer(&client, &id).await, StartOutcome::Running);
        }
        println!("{lost} answers lost");
        assert!(0 < lost);
        let count = "SELECT count(*), count(DISTINCT instance) FROM message";
        let row = stranger(&schema.config()).await.query_one(count, &[]).await.unwrap();
        let counts: (i64, i64) = (row.get(0), row.get(1));
        assert_eq!(counts, (times(40).into(), times(40).into()), "one start each");
    });
}
