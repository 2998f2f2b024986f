//! What a fetch costs does not depend on how much else there is in the store.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use duroxide::providers::{
    DispatcherCapabilityFilter, Provider, PruneOptions, TagFilter, WorkItem,
};
use duroxide::runtime::Runtime;
use duroxide::runtime::registry::ActivityRegistry;
use duroxide::{
    ActivityContext, OrchestrationContext, OrchestrationRegistry, OrchestrationStatus,
    RuntimeOptions,
};
use duroxide_pg::PostgresProvider;
use support::{TestSchema, stranger};
use tokio_postgres::Client;

const LOCK: Duration = Duration::from_secs(3600);
const NOW: Duration = Duration::ZERO;
const FEW: i64 = 100;
const MANY: i64 = 40_000;
const ROUNDS: u64 = 20;

/// Instances that wait for an event or a timer, each with its history and its activities waiting for
/// a worker that nobody has.
const FILL: &str = "
    INSERT INTO instance (id, name, version, execution, created_at, updated_at)
    SELECT 'waiting ' || n, 'Main', '1.0.0', 1, n, n FROM generate_series(1, $1::bigint) n;
    INSERT INTO execution (instance, number, status, started_at)
    SELECT key, 1, 'Running', 1 FROM instance WHERE id LIKE 'waiting %';
    INSERT INTO history (instance, execution, event, at, stamp, body)
    SELECT key, 1, e, 1, '0.2.0', '{}' FROM instance, generate_series(1, 3) e
    WHERE id LIKE 'waiting %';
    INSERT INTO mailbox (instance, known) SELECT key, true FROM instance WHERE id LIKE 'waiting %';
    INSERT INTO hidden (visible_at, seq, instance, kind, attempts, payload)
    SELECT 4000000000000 + key, nextval('positions'), key, 0, 0, '{}' FROM instance
    WHERE id LIKE 'waiting %';
    INSERT INTO work (seq, position, instance, execution, activity, attempts, wake_at, tag_key,
        payload)
    SELECT o.seq, o.seq, o.key, 1, 2, 0, 4000000000000, 0, '{}'
    FROM (SELECT nextval('positions') AS seq, key FROM instance WHERE id LIKE 'waiting %') o;";
const ANALYZE: &str = "ANALYZE instance; ANALYZE execution; ANALYZE history; ANALYZE mailbox;
    ANALYZE hidden; ANALYZE work; ANALYZE message; ANALYZE session; ANALYZE kv; ANALYZE kv_delta";

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

fn work(id: u64) -> WorkItem {
    WorkItem::ActivityExecute {
        instance: "busy".to_owned(),
        execution_id: 1,
        id,
        name: "Work".to_owned(),
        input: String::new(),
        session_id: None,
        tag: None,
    }
}

/// A fetch of everything there is, found and not found.
async fn fetch(store: &PostgresProvider, round: u64) {
    let filter = DispatcherCapabilityFilter::default_for_current_build();
    store.enqueue_for_orchestrator(start(&format!("new {round}")), None).await.unwrap();
    store.enqueue_for_worker(work(round)).await.unwrap();
    let turn = store.fetch_turn(LOCK, NOW, Some(&filter)).await.unwrap();
    assert!(turn.is_some());
    assert!(store.fetch_turn(LOCK, NOW, Some(&filter)).await.unwrap().is_none());
    let item = store.fetch_work_item(LOCK, NOW, None, &TagFilter::DefaultOnly).await.unwrap();
    assert!(item.is_some());
    let none = store.fetch_work_item(LOCK, NOW, None, &TagFilter::DefaultOnly).await.unwrap();
    assert!(none.is_none());
}

/// Rows written, rows read by looking through whole tables, and rows found by an index, so far.
async fn counters(client: &Client) -> [i64; 3] {
    let count = "SELECT coalesce(sum(n_tup_ins), 0)::bigint,
             coalesce(sum(seq_tup_read), 0)::bigint, coalesce(sum(idx_tup_fetch), 0)::bigint
         FROM pg_stat_user_tables WHERE schemaname = current_schema()
         AND relname NOT IN ('pin', 'node', 'migration')";
    let row = client.query_one(count, &[]).await.unwrap();
    [row.get(0), row.get(1), row.get(2)]
}

/// The same, when as many rows have been written as somebody knows of: counters of a connection are
/// complete when it has ended.
async fn complete_counters(client: &Client, written: i64) -> [i64; 3] {
    let began = Instant::now();
    loop {
        let counters = counters(client).await;
        if written <= counters[0] {
            return counters;
        }
        assert!(began.elapsed() < Duration::from_secs(60), "{counters:?}, not {written}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// What fetches read: by looking through whole tables, by an index.
async fn measured(instances: i64) -> (i64, i64) {
    let schema = TestSchema::new().unwrap();
    let store = schema.open().await;
    let filler = stranger(&schema.config()).await;
    filler.batch_execute(&FILL.replace("$1", &instances.to_string())).await.unwrap();
    filler.batch_execute(ANALYZE).await.unwrap();
    drop(filler);
    let client = stranger(&schema.config()).await;
    let before = complete_counters(&client, instances * 8).await;
    for round in 0..ROUNDS {
        fetch(&store, round).await;
    }
    drop(store);
    // A start, its message, its mailbox, and an activity in each round.
    let after = complete_counters(&client, before[0] + 4 * ROUNDS as i64).await;
    (after[1] - before[1], after[2] - before[2])
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_fetch_costs_the_same_whoever_else_waits() {
    if !support::has_server() {
        return;
    }
    let few_rows = measured(FEW).await;
    let many_rows = measured(MANY).await;
    println!("rows read beside {FEW} that wait: {few_rows:?}; beside {MANY}: {many_rows:?}");
    assert!(0 < few_rows.1, "nothing was counted");
    assert!(many_rows.0 < MANY / 10, "tables are looked through: {many_rows:?}");
    // A node that leaves looks twice through all that waits for a time, and may be counted. Fetches
    // that did would read many times as much.
    let by_leaving = 2 * MANY;
    assert!(many_rows.1 <= 2 * few_rows.1 + 200 + by_leaving, "{few_rows:?} {many_rows:?}");
}

/// Dead rows where fetches look, and nobody who clears them away.
const LITTER: &str = "
    ALTER TABLE mailbox SET (autovacuum_enabled = off);
    ALTER TABLE message SET (autovacuum_enabled = off);
    ALTER TABLE work SET (autovacuum_enabled = off);
    INSERT INTO mailbox (instance, known, state, head)
    SELECT -n, true, 1, -n FROM generate_series(1, 100000) n;
    INSERT INTO message (instance, seq, kind, attempts, since, payload)
    SELECT -n, -n, 0, 0, 0, '{}' FROM generate_series(1, 100000) n;
    INSERT INTO work (seq, position, instance, execution, activity, attempts, tag_key, payload)
    SELECT -n, -n, -n, 1, 2, 0, 0, '{}' FROM generate_series(1, 100000) n;
    DELETE FROM mailbox WHERE instance < 0;
    DELETE FROM message WHERE instance < 0;
    DELETE FROM work WHERE instance < 0;";

/// Waits until no transaction of another test can see what was deleted: before, it is not dead.
async fn await_death(client: &Client) {
    let now = client.query_one("SELECT pg_current_xact_id()::xid::text", &[]).await.unwrap();
    let now: String = now.get(0);
    let older = "SELECT count(*) FROM pg_stat_activity
         WHERE datname = current_database() AND pid <> pg_backend_pid()
         AND greatest(age(backend_xmin), age(backend_xid)) > age($1::text::xid)";
    let began = Instant::now();
    while 0 < client.query_one(older, &[&now]).await.unwrap().get::<_, i64>(0) {
        assert!(began.elapsed() < Duration::from_secs(110), "an old transaction");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

// The first fetches that meet dead rows have the server forget their entries; later ones do not read them. (A
// transaction of another test may keep them from being forgotten for a moment.)
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn dead_rows_do_not_slow_a_fetch() {
    let Some(schema) = TestSchema::new() else { return };
    let store = schema.open().await;
    let client = stranger(&schema.config()).await;
    let litterer = stranger(&schema.config()).await;
    litterer.batch_execute(LITTER).await.unwrap();
    drop(litterer);
    await_death(&client).await;
    for round in 0..3 {
        fetch(&store, round).await;
    }
    drop(store);
    let written = complete_counters(&client, 300_000 + 3 * 4).await[0];
    let before = looked_through(&client).await;
    let store = schema.open().await;
    // What the first store held it has given back.
    while store.fetch_turn(LOCK, NOW, None).await.unwrap().is_some() {}
    let any = TagFilter::DefaultOnly;
    while store.fetch_work_item(LOCK, NOW, None, &any).await.unwrap().is_some() {}
    for round in 3..ROUNDS {
        fetch(&store, round).await;
    }
    drop(store);
    complete_counters(&client, written + 4 * (ROUNDS as i64 - 3)).await;
    let after = looked_through(&client).await;
    for index in ["mailbox_ready", "work_ready", "message_pkey"] {
        let name = format!("index {index}");
        let entries = after[&name] - before[&name];
        println!("{entries} entries of {index} read beside 300 000 dead rows");
        assert!(entries < 400_000, "{entries} entries of {index}");
    }
}

/// How often a node looks through whole tables in its first minute: it counts what is queued for its
/// gauges, and nothing else.
const GAUGES: [(&str, i64); 2] = [("hidden", 1), ("work", 1)];

/// Rows read by looking through each table, and entries read of each index, so far.
async fn looked_through(client: &Client) -> HashMap<String, i64> {
    let sql = "SELECT relname::text, seq_tup_read FROM pg_stat_user_tables
         WHERE schemaname = current_schema()
         UNION ALL
         SELECT 'index ' || indexrelname, idx_tup_read FROM pg_stat_user_indexes
         WHERE schemaname = current_schema()";
    let rows = client.query(sql, &[]).await.unwrap();
    rows.iter().map(|row| (row.get(0), row.get(1))).collect()
}

/// What the server knows of the tables when a store makes its plans, and when it uses them.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Age {
    /// They were empty, and the server had noticed; then many instances came.
    PlannedWhenEmpty,
    /// There were some, and the server had noticed; then many came.
    PlannedWhenYoung,
    /// There are many, and the server has not noticed.
    Unknown,
    /// There are many, and the server knows.
    Known,
}

// Whatever a node does all day finds its rows by an index, whenever the plans were made.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_looks_through_tables() {
    looks_through_nothing(Age::Known).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_looks_through_tables_of_which_nothing_is_known() {
    looks_through_nothing(Age::Unknown).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_looks_through_tables_that_were_empty() {
    looks_through_nothing(Age::PlannedWhenEmpty).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_looks_through_tables_that_were_small() {
    looks_through_nothing(Age::PlannedWhenYoung).await;
}

/// Waits until a node has looked at the sizes of the tables: plans are made anew when they have grown.
async fn await_pulse(client: &Client) {
    let pulses = "SELECT count(*) FROM pg_stat_activity
         WHERE query LIKE '%pulse($1%' AND position(current_schema() IN query) > 0
         AND state = 'idle' AND query_start > $1";
    let now = client.query_one("SELECT clock_timestamp()", &[]).await.unwrap();
    let now: std::time::SystemTime = now.get(0);
    let began = Instant::now();
    while client.query_one(pulses, &[&now]).await.unwrap().get::<_, i64>(0) == 0 {
        assert!(began.elapsed() < Duration::from_secs(60), "no pulse");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

async fn looks_through_nothing(age: Age) {
    let Some(schema) = TestSchema::new() else { return };
    let mut store: Arc<dyn Provider> = Arc::new(schema.open().await);
    let filler = stranger(&schema.config()).await;
    // Nobody else is to find out anything about the tables.
    for table in ["instance", "execution", "history", "mailbox", "message", "hidden", "work"] {
        let off = format!("ALTER TABLE {table} SET (autovacuum_enabled = off)");
        filler.batch_execute(&off).await.unwrap();
    }
    let fill = |prefix: &str, count: i64| {
        FILL.replace("waiting ", prefix).replace("$1", &count.to_string())
    };
    match age {
        Age::PlannedWhenEmpty => filler.batch_execute("VACUUM ANALYZE").await.unwrap(),
        Age::PlannedWhenYoung => {
            filler.batch_execute(&fill("young ", 50)).await.unwrap();
            filler.batch_execute(ANALYZE).await.unwrap();
        }
        Age::Unknown | Age::Known => {}
    }
    if matches!(age, Age::PlannedWhenEmpty | Age::PlannedWhenYoung) {
        work_all_day(Arc::clone(&store), "before").await;
    }
    filler.batch_execute(&fill("waiting ", MANY)).await.unwrap();
    if age == Age::Known {
        filler.batch_execute(ANALYZE).await.unwrap();
    }
    drop(filler);
    let client = stranger(&schema.config()).await;
    let written = complete_counters(&client, MANY * 8).await[0];
    await_pulse(&client).await;
    let before = looked_through(&client).await;
    if matches!(age, Age::Unknown | Age::Known) {
        store = Arc::new(schema.open().await);
    }
    work_all_day(Arc::clone(&store), "all").await;
    drop(store);
    complete_counters(&client, written + 500).await;
    let mut too_many = Vec::new();
    for (what, after) in looked_through(&client).await {
        let gauges = GAUGES.iter().find(|(name, _)| *name == what).map_or(0, |(_, times)| *times);
        let rows = after - before[&what];
        // Who looks for what a node that has gone held looks through all that waits for a time, once a
        // second; and a node that comes counts.
        if what == "index work_wake" || what == "index mailbox_wake" {
            continue;
        }
        let most = if what.starts_with("index") { 5 * MANY } else { 1_000 };
        if gauges * (MANY + 1_000) + most < rows {
            too_many.push((what, rows));
        }
    }
    assert!(too_many.is_empty(), "{age:?}, looked at: {too_many:?}");
}

/// The settings of connections that write.
const PLANNING: &str = "SET enable_seqscan = off; SET enable_bitmapscan = off;
    SET enable_material = off; SET enable_hashjoin = off; SET enable_mergejoin = off;
    SET plan_cache_mode = force_generic_plan;";
/// Starts that nobody has fetched.
const BACKLOG: &str = "
    INSERT INTO instance (id) SELECT 'queued ' || n FROM generate_series(1, 20000) n;
    INSERT INTO message (instance, seq, kind, attempts, since, payload)
    SELECT key, nextval('positions'), 1, 0, 0, '{}' FROM instance WHERE id LIKE 'queued %';
    INSERT INTO mailbox (instance, state, head)
    SELECT instance, 1, seq FROM message WHERE kind = 1;";

/// Queues some starts, and undoes it; how many rows of messages that has read.
async fn rows_read_by_starts(client: &Client) -> i64 {
    let queue = "SELECT enqueue_messages(array_agg('new ' || n), array_agg(1::smallint),
             array_agg(0::bigint), array_agg('{}'::text), NULL, 60000, false)
         FROM generate_series(1, 30) n";
    let count = "SELECT idx_tup_fetch + seq_tup_read FROM pg_stat_xact_user_tables
         WHERE relname = 'message' AND schemaname = current_schema()";
    client.batch_execute("BEGIN").await.unwrap();
    client.query_one(queue, &[]).await.unwrap();
    let rows = client.query_one(count, &[]).await.unwrap().get(0);
    client.batch_execute("ROLLBACK").await.unwrap();
    rows
}

// EXISTS in an expression may be planned as a table of everybody's rows, built for each call.
#[tokio::test]
async fn starts_read_nothing_of_a_backlog_of_others() {
    let Some(schema) = TestSchema::new() else { return };
    let _store = schema.open().await;
    let (client, filler) = (stranger(&schema.config()).await, stranger(&schema.config()).await);
    client.batch_execute(PLANNING).await.unwrap();
    filler.batch_execute("VACUUM ANALYZE").await.unwrap();
    let before = rows_read_by_starts(&client).await;
    filler.batch_execute(BACKLOG).await.unwrap();
    let after = rows_read_by_starts(&client).await;
    assert!(0 < before && after <= before + 100, "{before}, then {after}");
}

/// Hellos, timers, children, sessions, tags, messages and values.
async fn work_all_day(store: Arc<dyn Provider>, prefix: &str) {
    let echo = |_: ActivityContext, input: String| async move { Ok(input) };
    let activities = ActivityRegistry::builder().register("Echo", echo).build();
    let child = |ctx: OrchestrationContext, input: String| async move {
        ctx.schedule_activity("Echo", input).with_tag("tag").await
    };
    let all = |ctx: OrchestrationContext, input: String| async move {
        if input == "again" {
            ctx.set_kv_value("key", "value");
            return ctx.continue_as_new("done").await;
        }
        ctx.schedule_timer(Duration::from_millis(5)).await;
        ctx.schedule_sub_orchestration("Child", input.clone()).await?;
        ctx.set_custom_status("listens");
        ctx.dequeue_event("mail").await;
        // One for all, which no earlier runtime has a lease of.
        let desk = ctx.instance_id().split(' ').next().unwrap_or_default().to_owned();
        let session = ctx.schedule_activity_on_session("Echo", input.clone(), desk);
        let loser = ctx.schedule_timer(Duration::from_secs(600));
        ctx.select2(session, loser).await;
        ctx.schedule_timer(Duration::from_millis(5)).await;
        Ok(input)
    };
    let orchestrations =
        OrchestrationRegistry::builder().register("Child", child).register("All", all).build();
    let options = RuntimeOptions { worker_tag_filter: TagFilter::Any, ..RuntimeOptions::default() };
    let runtime =
        Runtime::start_with_options(Arc::clone(&store), activities, orchestrations, options).await;
    let caller = duroxide::Client::new(Arc::clone(&store));
    for number in 0..40 {
        let id = format!("{prefix} {number}");
        caller.start_orchestration(&id, "All", "again").await.unwrap();
        caller.enqueue_event(&id, "mail", "m").await.unwrap();
    }
    for number in 0..40 {
        let id = format!("{prefix} {number}");
        let end = caller.wait_for_orchestration(&id, Duration::from_secs(30)).await.unwrap();
        assert!(matches!(end, OrchestrationStatus::Completed { .. }), "{end:?}");
        caller.get_instance_info(&id).await.unwrap();
        caller.get_kv_value(&id, "key").await.unwrap();
        read_everything(store.as_ref(), &id).await;
        caller.delete_instance(&id, false).await.unwrap();
    }
    runtime.shutdown(Some(1_000)).await;
}

/// Whatever can be asked about one instance.
async fn read_everything(store: &dyn Provider, id: &str) {
    store.read(id).await.unwrap();
    store.get_custom_status(id, 0).await.unwrap();
    store.get_kv_all_values(id).await.unwrap();
    store.get_instance_stats(id).await.unwrap();
    let admin = store.as_management_capability().unwrap();
    admin.list_executions(id).await.unwrap();
    admin.get_execution_info(id, 1).await.unwrap();
    admin.get_parent_id(id).await.unwrap();
    admin.get_instance_tree(id).await.unwrap();
    admin.list_children(id).await.unwrap();
    admin.prune_executions(id, PruneOptions::default()).await.unwrap();
}
