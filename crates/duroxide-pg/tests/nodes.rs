//! Several nodes on one store: they wake each other, and notice when one is gone.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use std::time::{Duration, Instant};

use duroxide::providers::{
    ExecutionMetadata, Provider, SessionFetchConfig, TagFilter, TurnCommit, WorkItem,
};
use duroxide_pg::{PostgresProvider, ProviderConfig};
use support::TestSchema;

const LOCK: Duration = Duration::from_secs(600);
/// Long enough on any machine, and much shorter than the locks: what goes on within it was not waited for.
const LONG: Duration = Duration::from_secs(110);
const NOW: Duration = Duration::ZERO;
/// How often what depends on the moment is tried.
const ROUNDS: usize = 20;

/// A store that only notifications tell of what others did: no pulse comes, and a parked fetch looks again
/// after fifteen seconds.
fn without_pulse(schema: &TestSchema) -> ProviderConfig {
    let mut config = schema.config();
    config.pulse_interval = Duration::from_secs(3600);
    config
}

/// Each wait was ended by a notification.
fn assert_woken(waits: &[Duration]) {
    assert!(waits.iter().all(|wait| *wait < Duration::from_secs(14)), "{waits:?}");
}

fn start(instance: &str) -> WorkItem {
    WorkItem::StartOrchestration {
        instance: instance.to_owned(),
        orchestration: "Main".to_owned(),
        input: String::new(),
        version: Some("1.0.0".to_owned()),
        parent_instance: None,
        parent_id: None,
        parent_execution_id: None,
        execution_id: 1,
    }
}

fn activity(id: u64, session: Option<&str>) -> WorkItem {
    WorkItem::ActivityExecute {
        instance: "i".to_owned(),
        execution_id: 1,
        id,
        name: "A".to_owned(),
        input: String::new(),
        session_id: session.map(str::to_owned),
        tag: None,
    }
}

fn commit(status: Option<&str>) -> TurnCommit {
    TurnCommit {
        execution_id: 1,
        metadata: ExecutionMetadata {
            status: status.map(str::to_owned),
            orchestration_name: Some("Main".to_owned()),
            orchestration_version: Some("1.0.0".to_owned()),
            ..ExecutionMetadata::default()
        },
        ..TurnCommit::default()
    }
}

async fn open(config: &ProviderConfig) -> PostgresProvider {
    PostgresProvider::new_with_config(config.clone()).await.unwrap()
}

const LIVING: &str = "SELECT count(*) FROM node WHERE gone_at IS NULL";

/// Waits until a node knows that it is not alone.
async fn company(config: &ProviderConfig, nodes: i64) {
    let stranger = support::stranger(config).await;
    let began = Instant::now();
    while began.elapsed() < LONG {
        let row = stranger.query_one(LIVING, &[]).await.unwrap();
        if nodes <= row.get(0) {
            // The pulse after that tells both.
            return tokio::time::sleep(Duration::from_millis(1200)).await;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("{nodes} nodes did not appear");
}

/// Ends the connection that proves that nodes live which call themselves by a name.
const CUT: &str =
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = $1
     AND (query LIKE 'LISTEN%' OR query LIKE '%pulse%' OR query LIKE '%tell%')";

/// Does something on a node of its own, and kills that.
fn on_a_node_that_dies(config: &ProviderConfig, work: impl AsyncFnOnce(&PostgresProvider) + Send) {
    let config = config.clone();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            let runtime = runtime.unwrap();
            let store = runtime.block_on(async {
                let store = open(&config).await;
                work(&store).await;
                store
            });
            // Its tasks end here and now, its connections with them: nobody says good-bye.
            drop(runtime);
            drop(store);
        });
    });
}

#[tokio::test(flavor = "multi_thread")]
async fn r8_22_a_parked_fetch_is_woken_by_another_node() {
    let Some(schema) = TestSchema::new() else { return };
    let config = without_pulse(&schema);
    let (here, there) = (open(&config).await, open(&config).await);
    company(&config, 2).await;
    let mut waits = Vec::new();
    for number in 0..ROUNDS {
        let id = format!("i{number}");
        let began = Instant::now();
        let (turn, sent) = tokio::join!(
            here.fetch_turn(LOCK, LONG, None),
            there.enqueue_for_orchestrator(start(&id), None)
        );
        sent.unwrap();
        waits.push(began.elapsed());
        let turn = turn.unwrap().expect("a turn");
        assert_eq!(turn.item.instance, id);
        here.commit_turn(&turn.lock_token, commit(None)).await.unwrap();
    }
    assert_woken(&waits);
}

#[tokio::test(flavor = "multi_thread")]
async fn r8_134_a_client_is_woken_by_a_commit_of_another_node() {
    let Some(schema) = TestSchema::new() else { return };
    let config = without_pulse(&schema);
    let (here, there) = (open(&config).await, open(&config).await);
    company(&config, 2).await;
    let mut waits = Vec::new();
    for number in 0..ROUNDS {
        let id = format!("i{number}");
        there.enqueue_for_orchestrator(start(&id), None).await.unwrap();
        let turn = there.fetch_turn(LOCK, LONG, None).await.unwrap().expect("a turn");
        let seen = here.wait_for_commit(&id, 0, NOW).await.unwrap();
        let began = Instant::now();
        let (now, committed) = tokio::join!(
            here.wait_for_commit(&id, seen, LONG),
            there.commit_turn(&turn.lock_token, commit(Some("Completed")))
        );
        waits.push(began.elapsed());
        committed.unwrap();
        assert_ne!(now, Some(seen));
    }
    assert_woken(&waits);
}

// R8.22: who sends it has not heard yet that there is anybody to tell.
#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_has_just_opened_wakes_others() {
    let Some(schema) = TestSchema::new() else { return };
    let config = without_pulse(&schema);
    let there = open(&config).await;
    company(&config, 1).await;
    let mut waits = Vec::new();
    for number in 0..ROUNDS {
        let here = open(&config).await;
        let began = Instant::now();
        let (turn, sent) = tokio::join!(
            there.fetch_turn(LOCK, LONG, None),
            here.enqueue_for_orchestrator(start(&format!("i{number}")), None)
        );
        waits.push(began.elapsed());
        sent.unwrap();
        let turn = turn.unwrap().expect("a turn");
        there.commit_turn(&turn.lock_token, commit(None)).await.unwrap();
    }
    assert_woken(&waits);
}

// R8.134: who commits has not heard yet that there is anybody to tell, or who waits not begun to listen.
#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_has_just_opened_is_woken() {
    let Some(schema) = TestSchema::new() else { return };
    let config = without_pulse(&schema);
    let mut waits = Vec::new();
    for number in 0..ROUNDS {
        let id = format!("i{number}");
        let there = open(&config).await;
        there.enqueue_for_orchestrator(start(&id), None).await.unwrap();
        let turn = there.fetch_turn(LOCK, LONG, None).await.unwrap().expect("a turn");
        let here = open(&config).await;
        let seen = here.wait_for_commit(&id, 0, NOW).await.unwrap();
        let began = Instant::now();
        let (now, committed) = tokio::join!(
            here.wait_for_commit(&id, seen, LONG),
            there.commit_turn(&turn.lock_token, commit(Some("Completed")))
        );
        waits.push(began.elapsed());
        committed.unwrap();
        assert_ne!(now, Some(seen));
    }
    assert_woken(&waits);
}

#[tokio::test(flavor = "multi_thread")]
async fn turns_and_activities_of_a_dead_node_go_on() {
    let Some(schema) = TestSchema::new() else { return };
    let config = schema.config();
    let heir = open(&config).await;
    heir.enqueue_for_orchestrator(start("i"), None).await.unwrap();
    heir.enqueue_for_worker(activity(2, None)).await.unwrap();
    heir.enqueue_for_worker(activity(3, Some("s"))).await.unwrap();
    let session =
        |owner: &str| SessionFetchConfig { owner_id: owner.to_owned(), lock_timeout: LOCK };
    on_a_node_that_dies(&config, async |store| {
        company(&config, 2).await;
        assert!(store.fetch_turn(LOCK, LONG, None).await.unwrap().is_some());
        for _ in 0..2 {
            let any = &TagFilter::DefaultOnly;
            let job = store.fetch_work_item(LOCK, LONG, Some(&session("dead")), any).await;
            assert!(job.unwrap().is_some());
        }
    });
    let turn = heir.fetch_turn(LOCK, LONG, None).await.unwrap().expect("the turn");
    // The attempt counts: the node may have died of it.
    assert_eq!((turn.item.instance.as_str(), turn.attempt_count), ("i", 2));
    for _ in 0..2 {
        let job = heir
            .fetch_work_item(LOCK, LONG, Some(&session("heir")), &TagFilter::DefaultOnly)
            .await
            .unwrap();
        assert_eq!(job.expect("the activity").2, 2);
    }
}

// A process may die of the first thing it takes.
#[tokio::test(flavor = "multi_thread")]
async fn what_a_node_takes_as_soon_as_it_is_there_goes_on_too() {
    let Some(schema) = TestSchema::new() else { return };
    let config = schema.config();
    let heir = open(&config).await;
    for number in 0..3 {
        heir.enqueue_for_orchestrator(start(&format!("i{number}")), None).await.unwrap();
        on_a_node_that_dies(&config, async |store| {
            assert!(store.fetch_turn(LOCK, NOW, None).await.unwrap().is_some());
        });
        let turn = heir.fetch_turn(LOCK, LONG, None).await.unwrap().expect("the turn");
        heir.commit_turn(&turn.lock_token, commit(None)).await.unwrap();
    }
}

// The server may be busy with a statement of a client that is no more, and finish it.
#[tokio::test(flavor = "multi_thread")]
async fn what_a_node_takes_after_its_death_goes_on_too() {
    const JOIN: &str = "SELECT join_node(NULL, 'late', NULL)";
    const TAKE: &str = "SELECT key FROM fetch_turns(
        1, 600000, NULL, 0, gen_random_uuid(), $1, NULL, 1000, 0, 0, false, true) WHERE key IS NOT NULL";
    let Some(schema) = TestSchema::new() else { return };
    let config = schema.config();
    let heir = open(&config).await;
    let (life, mut lane) = (support::stranger(&config).await, support::stranger(&config).await);
    let node: i64 = life.query_one(JOIN, &[]).await.unwrap().get(0);
    heir.enqueue_for_orchestrator(start("i"), None).await.unwrap();
    let late = lane.transaction().await.unwrap();
    assert_eq!(late.query(TAKE, &[&node]).await.unwrap().len(), 1);
    drop(life);
    let gone = "SELECT FROM node WHERE id = $1 AND gone_at IS NOT NULL";
    while late.query(gone, &[&node]).await.unwrap().is_empty() {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    late.commit().await.unwrap();
    assert!(heir.fetch_turn(LOCK, LONG, None).await.unwrap().is_some());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_is_long_gone_is_forgotten() {
    const GONE: &str = "INSERT INTO node VALUES (1000, 'gone', 0, now_ms() - $1::bigint)";
    let Some(schema) = TestSchema::new() else { return };
    let config = schema.config();
    let _here = open(&config).await;
    let stranger = support::stranger(&config).await;
    for (gone_for_ms, is_known) in [(0_i64, true), (50_000, true), (61_000, false)] {
        stranger.execute("DELETE FROM node WHERE id = 1000", &[]).await.unwrap();
        stranger.execute(GONE, &[&gone_for_ms]).await.unwrap();
        // As every pulse does, one at a time.
        stranger.execute("SELECT end_node(1000, now_ms())", &[]).await.unwrap();
        let rows = stranger.query("SELECT FROM node WHERE id = 1000", &[]).await.unwrap();
        assert_eq!(!rows.is_empty(), is_known, "{gone_for_ms}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_is_closed_leaves_nothing_behind() {
    let Some(schema) = TestSchema::new() else { return };
    let (here, there) = (open(&schema.config()).await, open(&schema.config()).await);
    company(&schema.config(), 2).await;
    there.enqueue_for_orchestrator(start("i"), None).await.unwrap();
    assert!(there.fetch_turn(LOCK, LONG, None).await.unwrap().is_some());
    drop(there);
    assert!(here.fetch_turn(LOCK, LONG, None).await.unwrap().is_some());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_whose_proof_of_life_is_cut_goes_on() {
    let Some(schema) = TestSchema::new() else { return };
    let mut config = schema.config();
    schema.name().clone_into(&mut config.application_name);
    let (here, there) = (open(&config).await, open(&schema.config()).await);
    company(&config, 2).await;
    let stranger = support::stranger(&config).await;
    for number in 0..3 {
        let id = format!("i{number}");
        here.enqueue_for_orchestrator(start(&id), None).await.unwrap();
        let turn = here.fetch_turn(LOCK, LONG, None).await.unwrap().expect("a turn");
        stranger.execute(CUT, &[&schema.name()]).await.unwrap();
        // Either its lease was taken over by its new life, or it is refused and comes again.
        let committed = here.commit_turn(&turn.lock_token, commit(None)).await;
        if committed.is_err() {
            let again = there.fetch_turn(LOCK, LONG, None).await.unwrap().expect("a turn");
            assert_eq!(again.item.instance, id);
            there.commit_turn(&again.lock_token, commit(None)).await.unwrap();
        }
    }
}

// Others take its leases for those of a dead node only if it took them before.
#[tokio::test(flavor = "multi_thread")]
async fn what_a_node_takes_without_its_proof_of_life_is_its_own() {
    let Some(schema) = TestSchema::new() else { return };
    let mut config = schema.config();
    schema.name().clone_into(&mut config.application_name);
    let (here, there) = (open(&config).await, open(&schema.config()).await);
    company(&config, 2).await;
    let stranger = support::stranger(&config).await;
    let mut turns = 0;
    // A turn that is taken here, and the node it belongs to.
    let mut take = async || {
        turns += 1;
        here.enqueue_for_orchestrator(start(&format!("i{turns}")), None).await.unwrap();
        let turn = here.fetch_turn(LOCK, LONG, None).await.unwrap().expect("a turn");
        let node = "SELECT node FROM mailbox WHERE state = 2";
        let node: Option<i64> = stranger.query_one(node, &[]).await.unwrap().get(0);
        (turn.lock_token, node)
    };
    for _ in 0..3 {
        let mut taken = take().await;
        // Until it has noticed, and is not back yet. What it took before is another node's to end.
        while taken.1.is_some() {
            here.commit_turn(&taken.0, commit(None)).await.unwrap();
            stranger.execute(CUT, &[&schema.name()]).await.unwrap();
            taken = take().await;
        }
        stranger.execute("SELECT pulse(NULL, NULL, 0, 0, 0)", &[]).await.unwrap();
        assert!(there.fetch_turn(LOCK, NOW, None).await.unwrap().is_none());
        here.commit_turn(&taken.0, commit(None)).await.unwrap();
    }
}

/// A node dies in the eyes of others, which end what it holds, and comes back.
const LOSE: &str = "SELECT end_node($1, now_ms())";
const RETURN: &str = "SELECT join_node($1, 'back', NULL)";

// R8.145: what ended with a node that comes back was no attempt, taken up by others or not.
#[tokio::test(flavor = "multi_thread")]
async fn r8_145_what_is_taken_from_a_node_that_comes_back_was_no_attempt() {
    let Some(schema) = TestSchema::new() else { return };
    let store = open(&schema.config()).await;
    let stranger = support::stranger(&schema.config()).await;
    store.enqueue_for_orchestrator(start("i"), None).await.unwrap();
    store.enqueue_for_worker(activity(2, None)).await.unwrap();
    for round in 0..12 {
        let turn = store.fetch_turn(LOCK, LONG, None).await.unwrap().expect("the turn");
        let any = &TagFilter::DefaultOnly;
        let job = store.fetch_work_item(LOCK, LONG, None, any).await.unwrap().expect("work");
        assert_eq!((turn.attempt_count, job.2), (1, 1), "round {round}");
        let node: i64 = stranger.query_one("SELECT node FROM work", &[]).await.unwrap().get(0);
        stranger.execute(LOSE, &[&node]).await.unwrap();
        let mut held = None;
        if round % 3 == 1 {
            // Somebody else has it, and counts it until the first is back.
            let turn = store.fetch_turn(LOCK, LONG, None).await.unwrap().expect("the turn");
            let job = store.fetch_work_item(LOCK, LONG, None, any).await.unwrap().expect("work");
            assert_eq!((turn.attempt_count, job.2), (2, 2), "round {round}");
            held = Some((turn.lock_token, job.1));
        } else if round % 3 == 2 {
            // Others have noticed that it is free.
            stranger.execute("SELECT advance(now_ms(), 0, true, 1000)", &[]).await.unwrap();
        }
        stranger.execute(RETURN, &[&node]).await.unwrap();
        if let Some((turn, work)) = held {
            store.abandon_orchestration_item(&turn, None, true).await.unwrap();
            store.abandon_work_item(&work, None, true).await.unwrap();
        }
        // The store is still the node it was, whatever was said of it.
        stranger.execute("UPDATE node SET gone_at = NULL WHERE id = $1", &[&node]).await.unwrap();
    }
}

// A process that dies of its work does not come back, and its attempts stay.
#[tokio::test(flavor = "multi_thread")]
async fn r8_145_what_is_taken_from_a_node_that_stays_away_was_an_attempt() {
    let Some(schema) = TestSchema::new() else { return };
    let store = open(&schema.config()).await;
    let stranger = support::stranger(&schema.config()).await;
    store.enqueue_for_orchestrator(start("i"), None).await.unwrap();
    store.enqueue_for_worker(activity(2, None)).await.unwrap();
    for attempt in 1..12 {
        let turn = store.fetch_turn(LOCK, LONG, None).await.unwrap().expect("the turn");
        let any = &TagFilter::DefaultOnly;
        let job = store.fetch_work_item(LOCK, LONG, None, any).await.unwrap().expect("work");
        assert_eq!((turn.attempt_count, job.2), (attempt, attempt));
        let node: i64 = stranger.query_one("SELECT node FROM work", &[]).await.unwrap().get(0);
        stranger.execute(LOSE, &[&node]).await.unwrap();
        // Somebody else does come back, who never had it.
        stranger.execute(RETURN, &[&(node + 1_000)]).await.unwrap();
    }
}

// A node whose old connection the server does not know to be dead.
#[tokio::test(flavor = "multi_thread")]
async fn what_a_node_holds_is_its_own_under_its_next_id() {
    let Some(schema) = TestSchema::new() else { return };
    let store = open(&schema.config()).await;
    let stranger = support::stranger(&schema.config()).await;
    store.enqueue_for_orchestrator(start("i"), None).await.unwrap();
    store.enqueue_for_worker(activity(2, None)).await.unwrap();
    assert!(store.fetch_turn(LOCK, LONG, None).await.unwrap().is_some());
    let any = &TagFilter::DefaultOnly;
    assert!(store.fetch_work_item(LOCK, LONG, None, any).await.unwrap().is_some());
    let holders = "SELECT w.node, m.node FROM work w, mailbox m WHERE m.state = 2";
    let row = stranger.query_one(holders, &[]).await.unwrap();
    let (before, same): (i64, i64) = (row.get(0), row.get(1));
    assert_eq!(before, same);
    let next: i64 = stranger.query_one(RETURN, &[&before]).await.unwrap().get(0);
    assert_ne!(next, before);
    let row = stranger.query_one(holders, &[]).await.unwrap();
    assert_eq!((row.get::<_, i64>(0), row.get::<_, i64>(1)), (next, next));
    stranger.execute(LOSE, &[&before]).await.unwrap();
    assert!(store.fetch_turn(LOCK, NOW, None).await.unwrap().is_none());
}

// R8.145: a node that is alone, or whose server was away for all, comes back as who it was. Its locks that
// ran out meanwhile were no attempts either, noticed or not.
#[tokio::test(flavor = "multi_thread")]
async fn r8_145_locks_that_ran_out_while_a_node_was_away_were_no_attempts() {
    let Some(schema) = TestSchema::new() else { return };
    let store = open(&schema.config()).await;
    let stranger = support::stranger(&schema.config()).await;
    let nobody = None::<i64>;
    let node: i64 = stranger.query_one(RETURN, &[&nobody]).await.unwrap().get(0);
    store.enqueue_for_orchestrator(start("i"), None).await.unwrap();
    store.enqueue_for_worker(activity(2, None)).await.unwrap();
    for round in 0..12 {
        let turn = store.fetch_turn(LOCK, LONG, None).await.unwrap().expect("the turn");
        let any = &TagFilter::DefaultOnly;
        let job = store.fetch_work_item(LOCK, LONG, None, any).await.unwrap().expect("work");
        assert_eq!((turn.attempt_count, job.2), (1, 1), "round {round}");
        for table in ["mailbox", "work"] {
            let run_out = format!("UPDATE {table} SET node = $1, wake_at = now_ms() - 1");
            stranger.execute(&run_out, &[&node]).await.unwrap();
        }
        if round % 2 == 1 {
            // It takes it up again itself before it is known to be back.
            let turn = store.fetch_turn(LOCK, LONG, None).await.unwrap().expect("the turn");
            let job = store.fetch_work_item(LOCK, LONG, None, any).await.unwrap().expect("work");
            assert_eq!((turn.attempt_count, job.2), (2, 2), "round {round}");
            store.abandon_orchestration_item(&turn.lock_token, None, true).await.unwrap();
            store.abandon_work_item(&job.1, None, true).await.unwrap();
        }
        let back: i64 = stranger.query_one(RETURN, &[&node]).await.unwrap().get(0);
        assert_eq!(back, node);
    }
}

// R8.145: its tokens stay lost, so that nothing is uncounted twice.
#[tokio::test(flavor = "multi_thread")]
async fn r8_145_what_a_node_lost_it_cannot_give_back() {
    let Some(schema) = TestSchema::new() else { return };
    let store = open(&schema.config()).await;
    let stranger = support::stranger(&schema.config()).await;
    store.enqueue_for_orchestrator(start("i"), None).await.unwrap();
    store.enqueue_for_worker(activity(2, None)).await.unwrap();
    for round in 0..6 {
        let turn = store.fetch_turn(LOCK, LONG, None).await.unwrap().expect("the turn");
        let any = &TagFilter::DefaultOnly;
        let job = store.fetch_work_item(LOCK, LONG, None, any).await.unwrap().expect("work");
        // The first three killed their processes.
        let attempts = (round + 1).min(4);
        assert_eq!((turn.attempt_count, job.2), (attempts, attempts), "round {round}");
        let node: i64 = stranger.query_one("SELECT node FROM work", &[]).await.unwrap().get(0);
        stranger.execute(LOSE, &[&node]).await.unwrap();
        if round % 2 == 1 {
            stranger.execute("SELECT advance(now_ms(), 0, true, 1000)", &[]).await.unwrap();
        }
        if round < 3 {
            let died = "UPDATE {} SET lost = NULL";
            for table in ["message", "work"] {
                stranger.execute(&died.replace("{}", table), &[]).await.unwrap();
            }
        } else {
            stranger.execute(RETURN, &[&node]).await.unwrap();
            let given = store.abandon_orchestration_item(&turn.lock_token, None, true).await;
            assert!(given.is_err(), "round {round}");
            assert!(store.abandon_work_item(&job.1, None, true).await.is_err(), "round {round}");
        }
        // The store is still the node it was, whatever was said of it.
        stranger.execute("UPDATE node SET gone_at = NULL WHERE id = $1", &[&node]).await.unwrap();
    }
}
