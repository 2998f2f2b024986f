//! What a fetch costs does not depend on what was done since the oldest snapshot was taken: a dump that runs
//! for an hour keeps all that was done meanwhile from being cleared away.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use duroxide::providers::Provider;
use duroxide::runtime::Runtime;
use duroxide::runtime::registry::ActivityRegistry;
use duroxide::{
    ActivityContext, OrchestrationContext, OrchestrationRegistry, OrchestrationStatus,
    RuntimeOptions,
};
use duroxide_pg::PostgresProvider;
use support::{TestSchema, stranger, told};
use tokio_postgres::Client;

/// The settings of connections that write.
const PLANNING: &str = "SET enable_seqscan = off; SET enable_bitmapscan = off;
    SET enable_material = off; SET enable_hashjoin = off; SET enable_mergejoin = off;
    SET plan_cache_mode = force_generic_plan;";
/// Entries that one of the calls below may read at most. A pulse, one a second, looks for locks that end
/// before the next.
const MOST: i64 = 2_000;
const MOST_OF_PULSE: i64 = 4 * MOST;

/// What somebody who polls, or does a thing alone, asks the server, with the bounds of that node.
const CALLS: &[(&str, &str)] = &[
    (
        "a look for turns",
        "SELECT f.key FROM fetch_turns(1, 30000, NULL, 0, gen_random_uuid(), NULL, NULL, 60000,
         $turns, $due, true, true) f",
    ),
    (
        "a look for activities",
        "SELECT f.seq FROM fetch_work(1, 30000, false, true, '{}', NULL, NULL, gen_random_uuid(), NULL,
         NULL, $work, true, $due) f",
    ),
    (
        "a look for activities with any tag and of sessions",
        "SELECT f.seq FROM fetch_work(1, 30000, true, true, '{}', 'me', 30000, gen_random_uuid(), NULL,
         NULL, $work, true, $due) f",
    ),
    ("a pulse", "SELECT * FROM real_pulse(NULL, NULL, $turns, $work, $due)"),
    (
        "a start that is fetched at once",
        "SELECT result FROM post_one('one more', 1::smallint, '{}', NULL, NULL, false, 1, 30000, NULL, 0,
         gen_random_uuid(), NULL, NULL, 60000, $turns, $due)",
    ),
    (
        "a start, then a look",
        "SELECT enqueue_messages('{one more}', '{1}', '{0}', '{x}', NULL, 60000, false);
         SELECT f.key FROM fetch_turns(1, 30000, NULL, 0, gen_random_uuid(), NULL, NULL, 60000,
         $turns, $due, true, false) f",
    ),
    (
        "an activity, then a look",
        "SELECT enqueue_work('{one more}', '{1}', '{2}', '{NULL}', '{NULL}', '{x}', false);
         SELECT f.seq FROM fetch_work(1, 30000, false, true, '{}', NULL, NULL, gen_random_uuid(), NULL,
         NULL, $work, true, NULL) f",
    ),
    (
        "whether there is another activity",
        "SELECT * FROM next_work(false, NULL, 'me', now_ms(), $work)",
    ),
];

/// Entries of indexes that this connection has read, and rows it has looked through.
async fn entries(client: &Client) -> BTreeMap<String, i64> {
    let sql = "SELECT c.relname::text, pg_stat_get_xact_tuples_returned(c.oid)
         FROM pg_class c WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind IN ('i', 'r')";
    let rows = client.query(sql, &[]).await.unwrap();
    rows.iter().map(|row| (row.get(0), row.get(1))).collect()
}

/// What each call reads, of which index most.
async fn costs(client: &Client) -> Vec<(&'static str, i64, String)> {
    let mut costs = Vec::new();
    let [turns, work, due] = told::bounds(client).await.map(|bound| format!("({bound})"));
    for (what, sql) in CALLS {
        let sql = sql.replace("$turns", &turns).replace("$work", &work).replace("$due", &due);
        client.batch_execute("BEGIN").await.unwrap();
        let before = entries(client).await;
        client.batch_execute(&sql).await.unwrap();
        let after = entries(client).await;
        client.batch_execute("ROLLBACK").await.unwrap();
        let read = |name: &String| after[name] - before.get(name).copied().unwrap_or(0);
        let most = after.keys().max_by_key(|name| read(name)).cloned().unwrap();
        costs.push((*what, after.keys().map(read).sum(), format!("{most}: {}", read(&most))));
    }
    costs
}

async fn hellos(store: &Arc<dyn Provider>, prefix: &str, count: usize, lock: Duration) {
    let hello = |_: ActivityContext, name: String| async move { Ok(format!("Hello, {name}!")) };
    let activities = ActivityRegistry::builder().register("Hello", hello).build();
    let greet = |ctx: OrchestrationContext, name: String| async move {
        ctx.schedule_activity("Hello", name).await
    };
    let orchestrations = OrchestrationRegistry::builder().register("Greet", greet).build();
    let options = RuntimeOptions {
        orchestrator_lock_timeout: lock,
        worker_lock_timeout: lock,
        orchestrator_lock_renewal_buffer: lock / 2,
        worker_lock_renewal_buffer: lock / 2,
        ..RuntimeOptions::default()
    };
    let runtime =
        Runtime::start_with_options(Arc::clone(store), activities, orchestrations, options).await;
    let client = Arc::new(duroxide::Client::new(Arc::clone(store)));
    let mut tasks = tokio::task::JoinSet::new();
    for place in 0..32 {
        let (client, prefix) = (Arc::clone(&client), prefix.to_owned());
        tasks.spawn(async move {
            for number in (place..count).step_by(32) {
                let id = format!("{prefix} {number}");
                client.start_orchestration(&id, "Greet", "Rust").await.unwrap();
                let limit = Duration::from_secs(120);
                let end = client.wait_for_orchestration(&id, limit).await.unwrap();
                assert!(matches!(end, OrchestrationStatus::Completed { .. }), "{end:?}");
            }
        });
    }
    while let Some(done) = tasks.join_next().await {
        done.unwrap();
    }
    runtime.shutdown(Some(1_000)).await;
}

/// Asks until everything is cheap: bounds follow some time after the work was done.
async fn assert_all_become_cheap(client: &Client, after: &str) {
    let began = Instant::now();
    loop {
        let costs = costs(client).await;
        let most = |what: &str| if what == "a pulse" { MOST_OF_PULSE } else { MOST };
        if costs.iter().all(|(what, read, _)| *read < most(what)) {
            println!("{after}: {costs:?}");
            return;
        }
        assert!(began.elapsed() < Duration::from_secs(30), "{after}: {costs:#?}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

async fn polls_read_little(lock: Duration) {
    let Some(schema) = TestSchema::new() else { return };
    told::prepare(&schema).await;
    let mut config = schema.config();
    config.application_name = told::NAME.to_owned();
    let store = PostgresProvider::new_with_config(config).await.unwrap();
    let store: Arc<dyn Provider> = Arc::new(store);
    let (old, client) = (stranger(&schema.config()).await, stranger(&schema.config()).await);
    client.batch_execute(PLANNING).await.unwrap();
    old.batch_execute("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM work")
        .await
        .unwrap();
    hellos(&store, "first", 1_500, lock).await;
    assert_all_become_cheap(&client, "after 1 500").await;
    hellos(&store, "then", 4_500, lock).await;
    assert_all_become_cheap(&client, "after 6 000").await;
    old.batch_execute("COMMIT").await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_poll_reads_little_whatever_was_done_since_a_dump_began() {
    polls_read_little(Duration::from_secs(30)).await;
}

// The ends of locks that were used up are in the past, where looks begin.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_poll_reads_little_when_the_locks_of_what_was_done_have_ended() {
    polls_read_little(Duration::from_secs(2)).await;
}
