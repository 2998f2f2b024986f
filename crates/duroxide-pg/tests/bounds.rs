//! Where looks have bounds, because somebody holds an old snapshot: what comes to stand before them is
//! fetched all the same.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use std::time::Duration;

use duroxide::providers::{Provider, TagFilter, WorkItem};
use duroxide_pg::PostgresProvider;
use support::words::{activity, start};
use support::{TestSchema, stranger, told};
use tokio_postgres::Client;

const LOCK: Duration = Duration::from_secs(3600);
const NOW: Duration = Duration::ZERO;
/// Longer than until the next sweep, however busy the machine is.
const PATIENCE: Duration = Duration::from_secs(60);
const TAGS: TagFilter = TagFilter::DefaultOnly;

/// Entries that were used up, in every queue; an old snapshot keeps them where they are.
const LITTER: &str = "
    INSERT INTO mailbox (instance, known, state, head)
    SELECT -n, true, 1, nextval('positions') FROM generate_series(1, 3000) n;
    INSERT INTO work (seq, position, instance, execution, activity, attempts, tag_key, payload)
    SELECT o.seq, o.seq, -o.n, 1, 2, 0, 0, '{}'
    FROM (SELECT nextval('positions') AS seq, n FROM generate_series(1, 3000) n) o;
    UPDATE mailbox SET head = NULL, state = 2, wake_at = now_ms() - 10 WHERE instance < 0;
    DELETE FROM mailbox WHERE instance < 0;
    DELETE FROM work WHERE instance < 0;";

struct Scene {
    store: PostgresProvider,
    client: Client,
    /// Has a snapshot from before everything.
    old: Client,
    schema: TestSchema,
}

impl Scene {
    async fn open() -> Option<Self> {
        let schema = TestSchema::new()?;
        told::prepare(&schema).await;
        let mut config = schema.config();
        config.application_name = told::NAME.to_owned();
        let store = PostgresProvider::new_with_config(config).await.unwrap();
        let (client, old) = (stranger(&schema.config()).await, stranger(&schema.config()).await);
        let begin = "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM work";
        old.batch_execute(begin).await.unwrap();
        Some(Self { store, client, old, schema })
    }

    async fn queue(&self, ids: &[&str]) {
        for (id, number) in ids.iter().zip(1..) {
            self.store.enqueue_for_orchestrator(start(id), None).await.unwrap();
            self.store.enqueue_for_worker(activity(id, number)).await.unwrap();
        }
    }

    /// Lets much be done, and waits for the bounds to follow.
    async fn move_on(&self) {
        // So that there is somewhere to look.
        assert!(
            turns(&self.store, NOW).await.is_empty() && jobs(&self.store, NOW).await.is_empty()
        );
        let last = "SELECT last_value FROM positions";
        let goal: i64 = self.client.query_one(last, &[]).await.unwrap().get(0);
        self.client.batch_execute(LITTER).await.unwrap();
        told::wait_for(&self.client, goal).await;
    }

    async fn end(self) {
        self.old.batch_execute("COMMIT").await.unwrap();
    }
}

/// Turns that can be fetched: ids and tokens.
async fn turns(store: &PostgresProvider, patience: Duration) -> Vec<(String, String)> {
    let turns = store.fetch_turns(LOCK, patience, None, 10).await.unwrap();
    turns.into_iter().map(|turn| (turn.item.instance, turn.lock_token)).collect()
}

/// Activities that can be fetched: numbers and tokens.
async fn jobs(store: &PostgresProvider, patience: Duration) -> Vec<(u64, String)> {
    let jobs = store.fetch_work_items(LOCK, patience, None, &TAGS, 10).await.unwrap();
    let number = |item: &WorkItem| match item {
        WorkItem::ActivityExecute { id, .. } => *id,
        _ => 0,
    };
    jobs.iter().map(|(item, token, _)| (number(item), token.clone())).collect()
}

fn firsts<T: Clone>(pairs: &[(T, String)]) -> Vec<T> {
    pairs.iter().map(|(first, _)| first.clone()).collect()
}

// R8.20, R8.72.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_node_gives_back_it_finds_at_once_and_in_its_order() {
    let Some(scene) = Scene::open().await else { return };
    let store = &scene.store;
    scene.queue(&["a", "b", "c"]).await;
    let (turns_before, jobs_before) = (turns(store, NOW).await, jobs(store, NOW).await);
    assert_eq!((turns_before.len(), jobs_before.len()), (3, 3));
    scene.move_on().await;
    scene.store.enqueue_for_orchestrator(start("young"), None).await.unwrap();
    for place in [2, 0, 1] {
        let (turn, job) = (&turns_before[place].1, &jobs_before[place].1);
        store.abandon_orchestration_item(turn, None, true).await.unwrap();
        store.abandon_work_item(job, None, true).await.unwrap();
    }
    assert_eq!(firsts(&turns(store, NOW).await), ["a", "b", "c", "young"]);
    assert_eq!(firsts(&jobs(store, NOW).await), [1, 2, 3]);
    scene.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_another_node_gives_back_is_found_by_a_sweep() {
    let Some(scene) = Scene::open().await else { return };
    let other = scene.schema.open().await;
    scene.queue(&["a", "b"]).await;
    let (turns_there, jobs_there) = (turns(&other, NOW).await, jobs(&other, NOW).await);
    assert_eq!((turns_there.len(), jobs_there.len()), (2, 2));
    scene.move_on().await;
    for ((_, turn), (_, job)) in turns_there.iter().zip(&jobs_there) {
        other.abandon_orchestration_item(turn, None, true).await.unwrap();
        other.abandon_work_item(job, None, true).await.unwrap();
    }
    assert_eq!(firsts(&turns(&scene.store, PATIENCE).await), ["a", "b"]);
    assert_eq!(firsts(&jobs(&scene.store, PATIENCE).await), [1, 2]);
    scene.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_transaction_brings_that_took_long_is_found_by_a_sweep() {
    let Some(scene) = Scene::open().await else { return };
    let mut slow = stranger(&scene.schema.config()).await;
    let slow = slow.transaction().await.unwrap();
    let queue =
        "SELECT enqueue_messages('{slow}', '{1}', '{0}', ARRAY[$1::text], NULL, 60000, false)";
    let payload = serde_json::to_string(&start("slow")).unwrap();
    slow.query(queue, &[&payload]).await.unwrap();
    scene.move_on().await;
    slow.commit().await.unwrap();
    assert_eq!(firsts(&turns(&scene.store, PATIENCE).await), ["slow"]);
    scene.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_due_before_the_bound_is_found_by_a_sweep() {
    let Some(scene) = Scene::open().await else { return };
    let hour = Some(Duration::from_secs(3600));
    scene.store.enqueue_for_orchestrator(start("late"), hour).await.unwrap();
    scene.move_on().await;
    let earlier = "UPDATE hidden SET visible_at = (SELECT due - 1000 FROM told)";
    assert_eq!(scene.client.execute(earlier, &[]).await.unwrap(), 1);
    assert_eq!(firsts(&turns(&scene.store, PATIENCE).await), ["late"]);
    scene.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_another_node_has_locked_is_taken_over_when_that_ends() {
    let Some(scene) = Scene::open().await else { return };
    let other = scene.schema.open().await;
    scene.queue(&["a"]).await;
    let lock = Duration::from_millis(1_500);
    let turn = other.fetch_turn(lock, NOW, None).await.unwrap();
    let job = other.fetch_work_item(lock, NOW, None, &TAGS).await.unwrap();
    assert!(turn.is_some() && job.is_some());
    let (turns, jobs) = tokio::join!(turns(&scene.store, PATIENCE), jobs(&scene.store, PATIENCE));
    assert_eq!((firsts(&turns), firsts(&jobs)), (vec!["a".to_owned()], vec![1]));
    // And locks of its own, long after which everything else is believed to be over.
    scene.move_on().await;
    let short = Duration::from_millis(200);
    scene.store.renew_orchestration_item_lock(&turns[0].1, short).await.unwrap();
    scene.store.renew_work_item_lock(&jobs[0].1, short).await.unwrap();
    let turn = scene.store.fetch_turn(LOCK, PATIENCE, None).await.unwrap();
    let job = scene.store.fetch_work_item(LOCK, PATIENCE, None, &TAGS).await.unwrap();
    assert!(turn.is_some() && job.is_some());
    scene.end().await;
}

// Sweeps come with pulses: where these fail, looks begin at the very beginning.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_another_node_gives_back_is_found_while_pulses_fail() {
    let Some(scene) = Scene::open().await else { return };
    let other = scene.schema.open().await;
    scene.queue(&["a"]).await;
    let (turns_there, jobs_there) = (turns(&other, NOW).await, jobs(&other, NOW).await);
    scene.move_on().await;
    let fail = "ALTER FUNCTION pulse(bigint, bigint, bigint, bigint, bigint) RENAME TO gone";
    scene.client.batch_execute(fail).await.unwrap();
    other.abandon_orchestration_item(&turns_there[0].1, None, true).await.unwrap();
    other.abandon_work_item(&jobs_there[0].1, None, true).await.unwrap();
    assert_eq!(firsts(&turns(&scene.store, PATIENCE).await), ["a"]);
    assert_eq!(firsts(&jobs(&scene.store, PATIENCE).await), [1]);
    scene.end().await;
}
