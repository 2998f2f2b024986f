//! Activities of other owners' sessions, however many, do not slow a fetch, and none of them is lost.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use duroxide::clock::Clock;
use duroxide::providers::{Provider, SessionFetchConfig, TagFilter, WorkItem};
use duroxide_pg::PostgresProvider;
use support::words::activity;
use support::{TestSchema, stranger};
use tokio_postgres::Client;

const LOCK: Duration = Duration::from_secs(60);
const LEASE: Duration = Duration::from_secs(600);
const NOW: Duration = Duration::ZERO;
const MANY: i64 = 3_000;

struct Hands(AtomicU64);

impl Clock for Hands {
    fn now_ms(&self) -> u64 {
        self.0.load(Ordering::SeqCst)
    }
}

struct Scene {
    store: PostgresProvider,
    clock: Arc<Hands>,
    db: Client,
    _schema: TestSchema,
}

impl Scene {
    /// A session with many activities, whose first one its owner has, so that others have parked them.
    async fn open() -> Option<Self> {
        let schema = TestSchema::new()?;
        let clock = Arc::new(Hands(AtomicU64::new(1_700_000_000_000)));
        let mut config = schema.config();
        config.clock = Some(clock.clone());
        let store = PostgresProvider::new_with_config(config).await.unwrap();
        let db = stranger(&schema.config()).await;
        let scene = Self { store, clock, db, _schema: schema };
        scene.store.enqueue_for_worker(bound(1, "s", None)).await.unwrap();
        assert_eq!(scene.next("owner").await, Some(1));
        let payload = serde_json::to_string(&bound(7_654_321, "s", None)).unwrap();
        let fill = "INSERT INTO work (seq, position, instance, execution, activity, attempts,
                 tag_key, session, payload)
             SELECT o.seq, o.seq, 1, 1, o.n, 0, 0, 's', replace($1, '7654321', o.n::text)
             FROM (SELECT nextval('positions') AS seq, n FROM generate_series(2, $2::bigint) n) o";
        scene.db.execute(fill, &[&payload, &MANY]).await.unwrap();
        Some(scene)
    }

    async fn next(&self, owner: &str) -> Option<u64> {
        self.next_with(owner, &TagFilter::DefaultOnly).await
    }

    async fn next_with(&self, owner: &str, tags: &TagFilter) -> Option<u64> {
        let session = SessionFetchConfig { owner_id: owner.to_owned(), lock_timeout: LEASE };
        let fetched = self.store.fetch_work_item(LOCK, NOW, Some(&session), tags).await.unwrap();
        fetched.map(|(item, _, _)| match item {
            WorkItem::ActivityExecute { id, .. } => id,
            other => panic!("{other:?}"),
        })
    }

    /// A fetch that gets there in the end: what is in the way is put out of it some at a time.
    async fn next_soon(&self, owner: &str) -> u64 {
        let began = Instant::now();
        loop {
            if let Some(id) = self.next(owner).await {
                return id;
            }
            assert!(began.elapsed() < Duration::from_secs(60), "nothing for {owner}");
        }
    }

    async fn count(&self, of: &str) -> i64 {
        self.db.query_one(&format!("SELECT count(*) FROM {of}"), &[]).await.unwrap().get(0)
    }

    async fn queue(&self, item: WorkItem) {
        self.store.enqueue_for_worker(item).await.unwrap();
    }
}

fn bound(number: u64, session: &str, with_tag: Option<&str>) -> WorkItem {
    let mut item = activity("i", number);
    if let WorkItem::ActivityExecute { session_id, tag, .. } = &mut item {
        *session_id = Some(session.to_owned());
        *tag = with_tag.map(str::to_owned);
    }
    item
}

#[tokio::test]
async fn r8_81_what_is_behind_many_of_another_owner_is_fetched_and_their_owner_has_them_in_order() {
    let Some(scene) = Scene::open().await else { return };
    scene.queue(bound(9_001, "free", None)).await;
    assert_eq!(scene.next_soon("me").await, 9_001);
    assert!(MANY - 200 < scene.count("work WHERE parked").await);
    scene.queue(bound(9_002, "s", None)).await;
    assert_eq!(scene.next("me").await, None);
    for id in 2..=30 {
        assert_eq!(scene.next("owner").await, Some(id));
    }
    // Given back it is the first again, parked or not.
    let session = SessionFetchConfig { owner_id: "owner".to_owned(), lock_timeout: LEASE };
    let tags = TagFilter::DefaultOnly;
    let (_, token, _) =
        scene.store.fetch_work_item(LOCK, NOW, Some(&session), &tags).await.unwrap().unwrap();
    scene.store.abandon_work_item(&token, None, true).await.unwrap();
    assert_eq!(scene.next("owner").await, Some(31));
}

#[tokio::test]
async fn r8_83_what_was_parked_is_anybodys_when_the_lease_has_ended() {
    let Some(scene) = Scene::open().await else { return };
    scene.queue(bound(9_001, "free", None)).await;
    assert_eq!(scene.next_soon("me").await, 9_001);
    scene.clock.0.fetch_add(LEASE.as_millis() as u64 + 1, Ordering::SeqCst);
    for id in 2..=5 {
        assert_eq!(scene.next("heir").await, Some(id), "the oldest come back first");
    }
    assert_eq!(scene.next("owner").await, None, "it is not the owner's any more");
    // All of them, the last ones, too: what was not back when the session was claimed is its new
    // owner's where it is.
    let mut ids = Vec::new();
    for _ in 6..=MANY {
        ids.push(scene.next_soon("heir").await);
    }
    ids.sort_unstable();
    assert_eq!(ids, (6..=MANY as u64).collect::<Vec<_>>());
    assert_eq!(scene.count("work WHERE parked").await, 0);
    scene.store.cleanup_orphaned_sessions(Duration::ZERO).await.unwrap();
    assert_eq!(scene.count("session WHERE parked").await, 0);
}

#[tokio::test]
async fn r8_79_parked_activities_keep_their_tags() {
    let Some(scene) = Scene::open().await else { return };
    scene.queue(bound(9_001, "s", Some("x"))).await;
    scene.queue(bound(9_002, "free", Some("x"))).await;
    scene.queue(bound(9_003, "free", None)).await;
    assert_eq!(scene.next_soon("me").await, 9_003);
    assert_eq!(scene.next_with("me", &TagFilter::tags(["x"])).await, Some(9_002));
    assert_eq!(scene.next_with("owner", &TagFilter::tags(["x"])).await, Some(9_001));
    assert_eq!(scene.next_with("owner", &TagFilter::Any).await, Some(2));
}

#[tokio::test]
async fn what_is_parked_is_not_read_again() {
    const PLANNING: &str = "SET enable_seqscan = off; SET enable_bitmapscan = off;
         SET enable_hashjoin = off; SET enable_mergejoin = off;
         SET plan_cache_mode = force_generic_plan; BEGIN";
    const FETCH: &str = "SELECT count(seq) FROM fetch_work(1, 1000, true, true, '{}', 'me', 1000,
         gen_random_uuid(), NULL, 1700000000000, 0, true, 0)";
    const READ: &str = "SELECT sum(idx_tup_fetch + seq_tup_read)::bigint
         FROM pg_stat_xact_user_tables
         WHERE schemaname = current_schema() AND relname IN ('work', 'session')";
    for analyzed in [false, true] {
        let Some(scene) = Scene::open().await else { return };
        scene.queue(bound(9_001, "free", None)).await;
        assert_eq!(scene.next_soon("me").await, 9_001);
        if analyzed {
            scene.db.batch_execute("ANALYZE").await.unwrap();
        }
        scene.db.batch_execute(PLANNING).await.unwrap();
        for _ in 0..5 {
            let found: i64 = scene.db.query_one(FETCH, &[]).await.unwrap().get(0);
            assert_eq!(found, 0);
        }
        let read: i64 = scene.db.query_one(READ, &[]).await.unwrap().get(0);
        assert!(read < MANY, "analyzed: {analyzed}, {read} rows were read");
    }
}

// R8.81: whose session is locked for a moment, by an answer or a renewal, is looked for again soon.
#[tokio::test]
async fn r8_81_a_session_that_is_locked_for_a_moment_is_looked_for_again() {
    let Some(schema) = TestSchema::new() else { return };
    let store = schema.open().await;
    let (other, client) = (stranger(&schema.config()).await, stranger(&schema.config()).await);
    let me = SessionFetchConfig { owner_id: "me".to_owned(), lock_timeout: LEASE };
    store.enqueue_for_worker(bound(1, "s", None)).await.unwrap();
    let first = store.fetch_work_item(LOCK, NOW, Some(&me), &TagFilter::DefaultOnly).await.unwrap();
    store.ack_work_item(&first.unwrap().1, None).await.unwrap();
    store.enqueue_for_worker(bound(2, "s", None)).await.unwrap();
    let fetch = "SELECT seq IS NOT NULL, coalesce(next_due <= now_ms, false)
         FROM fetch_work(1, 60000, false, true, '{}', 'me', 60000, gen_random_uuid(), NULL, NULL, 0,
         true, 0)";
    other.batch_execute("BEGIN; SELECT FROM session FOR UPDATE").await.unwrap();
    let row = client.query_one(fetch, &[]).await.unwrap();
    assert_eq!((row.get(0), row.get(1)), (false, true), "it is there, and can be had soon");
    other.batch_execute("COMMIT").await.unwrap();
    let row = client.query_one(fetch, &[]).await.unwrap();
    assert!(row.get::<_, bool>(0));
}
