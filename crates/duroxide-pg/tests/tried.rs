//! Whose lock ended without its holder is handed out alone, and behind what could be fetched then.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use duroxide::clock::Clock;
use duroxide::providers::{Provider, SessionFetchConfig, TagFilter, WorkItem};
use duroxide_pg::PostgresProvider;
use support::words::{activity, start};
use support::{TestSchema, stranger};

const LOCK: Duration = Duration::from_secs(60);
const NOW: Duration = Duration::ZERO;
const ANY: TagFilter = TagFilter::Any;

/// A clock that a test moves.
struct Hands(AtomicU64);

impl Clock for Hands {
    fn now_ms(&self) -> u64 {
        self.0.load(Ordering::SeqCst)
    }
}

struct Scene {
    store: PostgresProvider,
    clock: Arc<Hands>,
    schema: TestSchema,
}

impl Scene {
    async fn open() -> Option<Self> {
        let schema = TestSchema::new()?;
        let clock = Arc::new(Hands(AtomicU64::new(1_700_000_000_000)));
        let mut config = schema.config();
        config.clock = Some(clock.clone());
        let store = PostgresProvider::new_with_config(config).await.unwrap();
        Some(Self { store, clock, schema })
    }

    fn locks_run_out(&self) {
        self.clock.0.fetch_add(LOCK.as_millis() as u64 + 1, Ordering::SeqCst);
    }

    async fn start(&self, ids: &[&str]) {
        for id in ids {
            self.store.enqueue_for_orchestrator(start(id), None).await.unwrap();
        }
    }

    /// A fetch of turns: instances and attempts.
    async fn turns(&self) -> Vec<(String, u32)> {
        let turns = self.store.fetch_turns(LOCK, NOW, None, 10).await.unwrap();
        turns.into_iter().map(|turn| (turn.item.instance, turn.attempt_count)).collect()
    }

    async fn give_back_turn(&self, id: &str) {
        let turn = self.store.fetch_turn(LOCK, NOW, None).await.unwrap().unwrap();
        assert_eq!(turn.item.instance, id);
        self.store.abandon_orchestration_item(&turn.lock_token, None, false).await.unwrap();
    }

    async fn queue(&self, items: &[WorkItem]) {
        for item in items {
            self.store.enqueue_for_worker(item.clone()).await.unwrap();
        }
    }

    /// A fetch of activities: ids, attempts and tokens.
    async fn jobs(&self, owner: Option<&str>, max: usize) -> Vec<(u64, u32, String)> {
        let session = owner.map(|owner| SessionFetchConfig {
            owner_id: owner.to_owned(),
            lock_timeout: Duration::from_secs(600),
        });
        let fetched = self.store.fetch_work_items(LOCK, NOW, session.as_ref(), &ANY, max).await;
        fetched.unwrap().into_iter().map(|(item, token, n)| (id_of(&item), n, token)).collect()
    }

    async fn numbers(&self, owner: Option<&str>) -> Vec<(u64, u32)> {
        self.jobs(owner, 10).await.into_iter().map(|(id, attempt, _)| (id, attempt)).collect()
    }

    async fn give_back_job(&self, owner: Option<&str>, id: u64) {
        let jobs = self.jobs(owner, 1).await;
        let (found, _, token) = jobs.first().unwrap();
        assert_eq!(*found, id);
        self.store.abandon_work_item(token, None, false).await.unwrap();
    }
}

fn id_of(item: &WorkItem) -> u64 {
    match item {
        WorkItem::ActivityExecute { id, .. } => *id,
        other => panic!("{other:?}"),
    }
}

fn bound(number: u64, session: &str) -> WorkItem {
    let mut item = activity("i", number);
    if let WorkItem::ActivityExecute { session_id, .. } = &mut item {
        *session_id = Some(session.to_owned());
    }
    item
}

fn tagged(number: u64, name: &str) -> WorkItem {
    let mut item = activity("i", number);
    if let WorkItem::ActivityExecute { tag, .. } = &mut item {
        *tag = Some(name.to_owned());
    }
    item
}

fn named(turns: &[(&str, u32)]) -> Vec<(String, u32)> {
    turns.iter().map(|(id, attempt)| ((*id).to_owned(), *attempt)).collect()
}

#[tokio::test]
async fn r8_146_turns_given_back_are_in_a_batch_with_others() {
    let Some(scene) = Scene::open().await else { return };
    scene.start(&["a"]).await;
    scene.give_back_turn("a").await;
    scene.start(&["b", "c"]).await;
    assert_eq!(scene.turns().await, named(&[("a", 2), ("b", 1), ("c", 1)]));
}

#[tokio::test]
async fn r8_146_a_turn_given_back_for_a_while_is_alone_if_its_lock_ended_before() {
    let Some(scene) = Scene::open().await else { return };
    scene.start(&["a"]).await;
    assert_eq!(scene.turns().await.len(), 1);
    scene.locks_run_out();
    let turn = scene.store.fetch_turn(LOCK, NOW, None).await.unwrap().unwrap();
    let later = Some(Duration::from_secs(1));
    scene.store.abandon_orchestration_item(&turn.lock_token, later, false).await.unwrap();
    scene.start(&["b", "c"]).await;
    assert_eq!(scene.turns().await, named(&[("b", 1), ("c", 1)]));
    scene.clock.0.fetch_add(1_001, Ordering::SeqCst);
    scene.start(&["d"]).await;
    assert_eq!(scene.turns().await, named(&[("a", 3)]));
    assert_eq!(scene.turns().await, named(&[("d", 1)]));
}

/// So many items that no code is there for, each given back twice, and a new one behind them all.
#[tokio::test]
async fn r8_146_thousands_that_were_given_back_hold_up_nobody() {
    const COUNT: usize = 3_000;
    const AT_ONCE: usize = 100;
    let Some(scene) = Scene::open().await else { return };
    let store = &scene.store;
    for number in 0..COUNT {
        store.enqueue_for_orchestrator(start(&format!("i{number}")), None).await.unwrap();
        store.enqueue_for_worker(activity("i", number as u64)).await.unwrap();
    }
    for _ in 0..2 {
        let (mut turns, mut jobs) = (Vec::new(), Vec::new());
        while turns.len() < COUNT {
            turns.extend(store.fetch_turns(LOCK, NOW, None, AT_ONCE).await.unwrap());
        }
        while jobs.len() < COUNT {
            jobs.extend(store.fetch_work_items(LOCK, NOW, None, &ANY, AT_ONCE).await.unwrap());
        }
        for (turn, (_, token, _)) in turns.iter().zip(&jobs) {
            store.abandon_orchestration_item(&turn.lock_token, None, false).await.unwrap();
            store.abandon_work_item(token, None, false).await.unwrap();
        }
    }
    scene.start(&["probe"]).await;
    scene.queue(&[activity("probe", 1)]).await;
    let mut fetches = 1;
    while !store
        .fetch_turns(LOCK, NOW, None, AT_ONCE)
        .await
        .unwrap()
        .iter()
        .any(|turn| turn.item.instance == "probe")
    {
        fetches += 1;
        assert!(fetches <= COUNT / AT_ONCE + 1, "{fetches} fetches, and no turn of the probe");
    }
    let is_probe = |item: &WorkItem| matches!(item, WorkItem::ActivityExecute { instance, .. } if instance == "probe");
    let mut fetches = 1;
    while !store
        .fetch_work_items(LOCK, NOW, None, &ANY, AT_ONCE)
        .await
        .unwrap()
        .iter()
        .any(|(item, _, _)| is_probe(item))
    {
        fetches += 1;
        assert!(fetches <= COUNT / AT_ONCE + 1, "{fetches} fetches, and no activity of the probe");
    }
}

#[tokio::test]
async fn r8_146_turns_whose_locks_ran_out_go_behind_and_stay_there() {
    let Some(scene) = Scene::open().await else { return };
    scene.start(&["a", "b"]).await;
    assert_eq!(scene.turns().await.len(), 2);
    scene.start(&["c", "d"]).await;
    scene.locks_run_out();
    assert_eq!(scene.turns().await, named(&[("c", 1), ("d", 1)]));
    // More for them changes nothing, nor does giving them back.
    scene.start(&["e"]).await;
    let event = WorkItem::ExternalRaised {
        instance: "a".to_owned(),
        name: "late".to_owned(),
        data: String::new(),
    };
    scene.store.enqueue_for_orchestrator(event, None).await.unwrap();
    scene.give_back_turn("a").await;
    assert_eq!(scene.turns().await, named(&[("a", 3)]));
    assert_eq!(scene.turns().await, named(&[("b", 2)]));
    assert_eq!(scene.turns().await, named(&[("e", 1)]));
}

#[tokio::test]
async fn r8_146_what_a_dead_node_held_is_behind_and_each_alone() {
    let Some(scene) = Scene::open().await else { return };
    scene.start(&["a", "b"]).await;
    scene.queue(&[activity("i", 1), activity("i", 2)]).await;
    assert_eq!(scene.turns().await.len(), 2);
    assert_eq!(scene.numbers(None).await.len(), 2);
    scene.start(&["c", "d"]).await;
    scene.queue(&[activity("i", 3), activity("i", 4)]).await;
    let db = stranger(&scene.schema.config()).await;
    let now = scene.clock.now_ms() as i64;
    // As if another node had held them.
    db.batch_execute("UPDATE mailbox SET node = 77 WHERE state = 2").await.unwrap();
    db.batch_execute("UPDATE work SET node = 77 WHERE token IS NOT NULL").await.unwrap();
    let ended: bool = db.query_one("SELECT end_node(77, $1)", &[&now]).await.unwrap().get(0);
    assert!(ended);
    assert_eq!(scene.turns().await, named(&[("c", 1), ("d", 1)]));
    assert_eq!(scene.turns().await, named(&[("a", 2)]));
    assert_eq!(scene.turns().await, named(&[("b", 2)]));
    assert_eq!(scene.numbers(None).await, [(3, 1), (4, 1)]);
    assert_eq!(scene.numbers(None).await, [(1, 2)]);
    assert_eq!(scene.numbers(None).await, [(2, 2)]);
}

#[tokio::test]
async fn r8_146_a_batch_of_activities_ends_before_one_whose_lock_ended() {
    let Some(scene) = Scene::open().await else { return };
    scene.queue(&[activity("i", 1)]).await;
    scene.give_back_job(None, 1).await;
    scene.queue(&[tagged(2, "x"), activity("i", 3)]).await;
    assert_eq!(scene.numbers(None).await, [(1, 2), (2, 1), (3, 1)]);
    scene.locks_run_out();
    scene.queue(&[activity("i", 4), tagged(5, "x")]).await;
    assert_eq!(scene.numbers(None).await, [(4, 1), (5, 1)]);
    for expected in [(1, 3), (2, 2), (3, 2)] {
        assert_eq!(scene.numbers(None).await, [expected]);
    }
    assert!(scene.numbers(None).await.is_empty());
}

#[tokio::test]
async fn r8_146_a_tried_activity_of_a_session_is_alone_and_claims_nothing_before() {
    let Some(scene) = Scene::open().await else { return };
    scene.queue(&[bound(1, "s")]).await;
    scene.give_back_job(Some("w"), 1).await;
    assert_eq!(scene.numbers(Some("w")).await, [(1, 2)]);
    scene.queue(&[activity("i", 2)]).await;
    scene.clock.0.fetch_add(700_000, Ordering::SeqCst); // The lease is over, too.
    scene.queue(&[activity("i", 3)]).await;
    assert_eq!(scene.numbers(Some("v")).await, [(2, 1), (3, 1)], "the batch ends before it");
    let db = stranger(&scene.schema.config()).await;
    let owner: String = db.query_one("SELECT owner FROM session", &[]).await.unwrap().get(0);
    assert_eq!(owner, "w", "a session is claimed with its activity only");
    scene.queue(&[activity("i", 4), bound(5, "t")]).await;
    assert_eq!(scene.numbers(Some("v")).await, [(1, 3)]);
    assert_eq!(scene.numbers(Some("v")).await, [(4, 1), (5, 1)]);
}

#[tokio::test]
async fn r8_146_who_held_what_was_moved_may_still_give_it_back() {
    let Some(scene) = Scene::open().await else { return };
    scene.start(&["a", "b"]).await;
    scene.queue(&[activity("i", 1), activity("i", 2)]).await;
    let turn = scene.store.fetch_turn(LOCK, NOW, None).await.unwrap().unwrap();
    let job = scene.jobs(None, 1).await.remove(0);
    scene.locks_run_out();
    assert_eq!(scene.turns().await, named(&[("b", 1)]));
    assert_eq!(scene.numbers(None).await, [(2, 1)]);
    scene.store.abandon_orchestration_item(&turn.lock_token, None, true).await.unwrap();
    scene.store.abandon_work_item(&job.2, None, true).await.unwrap();
    assert_eq!(scene.turns().await, named(&[("a", 1)]));
    assert_eq!(scene.numbers(None).await, [(1, 1)]);
}
