//! The views for people who like SQL: their columns, and what they show.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use std::sync::Arc;
use std::time::{Duration, Instant};

use duroxide::providers::{Provider, TagFilter, WorkItem};
use duroxide::runtime::registry::ActivityRegistry;
use duroxide::runtime::{Runtime, RuntimeTuning, WarmMode};
use duroxide::{
    ActivityContext, Client, OrchestrationContext, OrchestrationRegistry, RuntimeOptions,
};
use duroxide_pg::PostgresProvider;
use duroxide_pg_testserver::{Options, Server, Stop};
use support::{TestSchema, stranger};
use tokio::task::JoinSet;
use tokio_postgres::Client as Stranger;

/// As documented. People's queries rely on it: columns may be added, not taken away.
const COLUMNS: [(&str, &str); 4] = [
    (
        "executions",
        "instance text, execution bigint, orchestration text, status text, output text, \
         library text, started_at timestamp with time zone, completed_at timestamp with time zone",
    ),
    (
        "instances",
        "id text, orchestration text, version text, status text, execution bigint, parent text, \
         custom_status text, output text, created_at timestamp with time zone, \
         updated_at timestamp with time zone",
    ),
    (
        "queue",
        "kind text, instance text, activity bigint, state text, messages bigint, \
         since timestamp with time zone, locked_until timestamp with time zone, node bigint, \
         attempts bigint, tag text, session text, name text, node_name text",
    ),
    (
        "waiting",
        "instance text, orchestration text, custom_status text, since timestamp with time zone, \
         next_timer timestamp with time zone, activities bigint",
    ),
];

#[tokio::test]
async fn the_columns_are_as_documented() {
    let Some(schema) = TestSchema::new() else { return };
    let _store = schema.open().await;
    let client = stranger(&schema.config()).await;
    let ask = "SELECT string_agg(column_name || ' ' || data_type, ', ' ORDER BY ordinal_position)
         FROM information_schema.columns WHERE table_schema = $1 AND table_name = $2";
    for (view, columns) in COLUMNS {
        let row = client.query_one(ask, &[&schema.name(), &view]).await.unwrap();
        assert_eq!(row.get::<_, &str>(0), columns, "{view}");
    }
    let guide = include_str!("../../../docs/guide/postgres.md");
    for (view, columns) in COLUMNS {
        assert!(guide.contains(&format!("### `{view}`")), "{view}");
        for column in columns.split(", ") {
            let name = column.split_once(' ').unwrap().0;
            assert!(guide.contains(&format!("`{name}`")), "{view}.{name}");
        }
    }
}

async fn runtime(store: Arc<dyn Provider>) -> Arc<Runtime> {
    let orchestrations = OrchestrationRegistry::builder()
        .register("Echo", |_: OrchestrationContext, input: String| async move { Ok(input) })
        .register("Timer", |ctx: OrchestrationContext, input: String| async move {
            ctx.set_custom_status("asleep");
            ctx.schedule_timer(Duration::from_secs(3600)).await;
            Ok(input)
        })
        .register("Loser", |ctx: OrchestrationContext, input: String| async move {
            if ctx.execution_id() > 1 {
                return Ok(ctx.schedule_wait("go").await);
            }
            let timer = ctx.schedule_timer(Duration::from_secs(3600));
            ctx.select2(timer, ctx.schedule_timer(Duration::ZERO)).await;
            ctx.continue_as_new(input).await
        })
        .register("Work", |ctx: OrchestrationContext, input: String| async move {
            let one = ctx.schedule_activity("Nobody", input.clone()).with_tag("gpu");
            let two = ctx.schedule_activity_on_session("Nobody", input, "desk");
            let (one, two) = ctx.join2(one, two).await;
            Ok(one? + &two?)
        })
        .build();
    // Nobody runs activities.
    let options = RuntimeOptions { worker_concurrency: 0, ..RuntimeOptions::default() };
    let activities = ActivityRegistry::builder().build();
    Runtime::start_with_options(store, activities, orchestrations, options).await
}

/// Rows as text, columns separated by bars; waits until there are so many.
async fn rows(client: &Stranger, sql: &str, wanted: usize) -> Vec<String> {
    let began = Instant::now();
    loop {
        let rows = client.query(sql, &[]).await.unwrap();
        if rows.len() == wanted {
            return rows.iter().map(|row| row.get::<_, String>(0)).collect();
        }
        assert!(began.elapsed() < Duration::from_secs(60), "{sql}: {} rows", rows.len());
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_views_show_what_goes_on() {
    let Some(schema) = TestSchema::new() else { return };
    let store = Arc::new(schema.open().await);
    let client = Client::new(store.clone());
    let runtime = runtime(store.clone()).await;
    for (id, name) in
        [("done", "Echo"), ("loser", "Loser"), ("sleeper", "Timer"), ("worker", "Work")]
    {
        client.start_orchestration(id, name, "x").await.unwrap();
    }
    let sql = stranger(&schema.config()).await;
    let waiting = "SELECT concat_ws('|', instance, orchestration, custom_status, activities,
             next_timer > now() + interval '59 minutes', since <= now()) FROM waiting ORDER BY instance";
    // The loser's timer belongs to an execution that has ended.
    rows(
        &sql,
        "SELECT instance FROM waiting JOIN executions USING (instance) WHERE execution = 2",
        1,
    )
    .await;
    let expected = ["loser|Loser|0|t", "sleeper|Timer|asleep|0|t|t", "worker|Work|2|t"];
    assert_eq!(rows(&sql, waiting, 3).await, expected);
    let instances = "SELECT concat_ws('|', id, orchestration, version, status, execution, output,
             created_at <= updated_at) FROM instances ORDER BY id";
    let expected = [
        "done|Echo|1.0.0|Completed|1|x|t",
        "loser|Loser|1.0.0|Running|2|t",
        "sleeper|Timer|1.0.0|Running|1|t",
        "worker|Work|1.0.0|Running|1|t",
    ];
    assert_eq!(rows(&sql, instances, 4).await, expected);
    let executions = "SELECT concat_ws('|', instance, execution, orchestration, status,
             completed_at >= started_at, library)
         FROM executions ORDER BY instance, execution";
    let library = env!("CARGO_PKG_VERSION");
    let expected = [
        format!("done|1|Echo|Completed|t|{library}"),
        format!("loser|1|Loser|ContinuedAsNew|t|{library}"),
        format!("loser|2|Loser|Running|{library}"),
        format!("sleeper|1|Timer|Running|{library}"),
        format!("worker|1|Work|Running|{library}"),
    ];
    assert_eq!(rows(&sql, executions, 5).await, expected);
    runtime.shutdown(None).await;

    let lock = Duration::from_secs(60);
    let tags = TagFilter::tags(["gpu"]);
    let fetched = store.fetch_work_item(lock, Duration::ZERO, None, &tags).await.unwrap();
    assert!(fetched.is_some());
    client.start_orchestration("new", "Echo", "x").await.unwrap();
    let queue = "SELECT concat_ws('|', kind, instance, state, messages, tag, session,
             locked_until > now() + interval '50 seconds', attempts, name, node_name,
             since BETWEEN now() - interval '1 hour' AND now())
         FROM queue ORDER BY kind, instance, state";
    let expected = [
        "activity|worker|locked|1|gpu|t|1|Nobody|duroxide|t",
        "activity|worker|ready|1|desk|0|Nobody|t",
        "turn|new|ready|1|0|t",
    ];
    assert_eq!(rows(&sql, queue, 3).await, expected);

    // Given back for a while it is still to be seen.
    let turn = store.fetch_turn(lock, Duration::ZERO, None).await.unwrap().unwrap();
    store.abandon_orchestration_item(&turn.lock_token, Some(lock), false).await.unwrap();
    let turns = "SELECT concat_ws('|', instance, state, messages, attempts, name, since)
         FROM queue WHERE kind = 'turn'";
    assert_eq!(rows(&sql, turns, 1).await, ["new|delayed|1|1"]);
}

const AN_HOUR: Duration = Duration::from_secs(3600);

/// Races lost by a timer of an hour. Who has a custom status is where it stays.
async fn races(store: Arc<dyn Provider>, mode: WarmMode) -> Arc<Runtime> {
    async fn stay(ctx: OrchestrationContext) -> Result<String, String> {
        ctx.set_custom_status("there");
        Ok(ctx.schedule_wait("go").await)
    }
    let orchestrations = OrchestrationRegistry::builder()
        .register("Activity", |ctx: OrchestrationContext, input: String| async move {
            let timer = ctx.schedule_timer(AN_HOUR);
            ctx.select2(ctx.schedule_activity("Echo", input), timer).await;
            stay(ctx).await
        })
        .register("Another", |ctx: OrchestrationContext, input: String| async move {
            let timer = ctx.schedule_timer(AN_HOUR);
            ctx.select2(ctx.schedule_activity("Echo", input), timer).await;
            let _timer = ctx.schedule_timer(2 * AN_HOUR);
            stay(ctx).await
        })
        .register("At once", |ctx: OrchestrationContext, _input: String| async move {
            drop(ctx.schedule_timer(AN_HOUR));
            stay(ctx).await
        })
        .register("Event", |ctx: OrchestrationContext, _input: String| async move {
            let timer = ctx.schedule_timer(AN_HOUR);
            ctx.select2(ctx.schedule_wait("begin"), timer).await;
            stay(ctx).await
        })
        .register("Kept", |ctx: OrchestrationContext, input: String| async move {
            let _timer = ctx.schedule_timer(AN_HOUR);
            ctx.schedule_activity("Echo", input).await?;
            stay(ctx).await
        })
        .register("Successor", |ctx: OrchestrationContext, input: String| async move {
            if ctx.execution_id() == 1 {
                return ctx.continue_as_new(input).await;
            }
            drop(ctx.schedule_timer(AN_HOUR));
            stay(ctx).await
        })
        .register("Timer", |ctx: OrchestrationContext, _input: String| async move {
            let timer = ctx.schedule_timer(AN_HOUR);
            ctx.select2(ctx.schedule_timer(Duration::from_millis(20)), timer).await;
            stay(ctx).await
        })
        .build();
    let echo = |_: ActivityContext, input: String| async move { Ok(input) };
    let activities = ActivityRegistry::builder().register("Echo", echo).build();
    let mut tuning = RuntimeTuning::default();
    tuning.warm.mode = mode;
    let options = RuntimeOptions::default();
    Runtime::start_with_tuning(store, (activities, orchestrations), options, tuning).await
}

/// What [`races`] has, with the hour of the next timer.
const RACES: [(&str, &str); 7] = [
    ("Activity", "Activity"),
    ("Another", "Another|2"),
    ("At once", "At once"),
    ("Event", "Event"),
    ("Kept", "Kept|1"),
    ("Successor", "Successor"),
    ("Timer", "Timer"),
];

/// The same as it is shown, once so many instances have got there.
async fn next_timers(sql: &Stranger, prefix: &str, wanted: usize) -> Vec<String> {
    let hours = "round(extract(epoch FROM next_timer - since) / 3600)";
    let ask = format!(
        "SELECT concat_ws('|', orchestration, {hours}) FROM waiting
         WHERE instance LIKE '{prefix} %' AND custom_status = 'there' ORDER BY instance"
    );
    rows(sql, &ask, wanted).await
}

/// By whatever way the turn is committed that drops the timer, alone and among others (R8.151).
async fn shows_no_dropped_timer(mode: WarmMode) {
    let Some(schema) = TestSchema::new() else { return };
    let store = Arc::new(schema.open().await);
    let client = Client::new(store.clone());
    let sql = stranger(&schema.config()).await;
    let runtime = races(store.clone(), mode).await;
    for (name, shown) in RACES {
        let id = format!("alone {name}");
        client.start_orchestration(&id, name, "x").await.unwrap();
        if name == "Event" {
            rows(&sql, "SELECT instance FROM waiting WHERE instance = 'alone Event'", 1).await;
            client.raise_event(&id, "begin", "").await.unwrap();
        }
        assert_eq!(next_timers(&sql, "alone", 1).await, [shown]);
        client.cancel_instance(&id, "seen").await.unwrap();
        client.wait_for_orchestration(&id, AN_HOUR).await.unwrap();
    }
    let mut starts = JoinSet::new();
    for number in 0..210 {
        let (client, (name, _)) = (client.clone(), RACES[number % RACES.len()]);
        starts.spawn(async move {
            let id = format!("many {number:03}");
            client.start_orchestration(&id, name, "x").await.unwrap();
        });
    }
    starts.join_all().await;
    rows(&sql, "SELECT instance FROM waiting WHERE instance LIKE 'many %'", 210).await;
    for number in (3..210).step_by(RACES.len()) {
        client.raise_event(format!("many {number:03}"), "begin", "").await.unwrap();
    }
    let shown = next_timers(&sql, "many", 210).await;
    for (number, shown) in shown.iter().enumerate() {
        assert_eq!(shown, RACES[number % RACES.len()].1);
    }
    runtime.shutdown(None).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r8_151_next_timer_is_one_that_something_waits_for() {
    shows_no_dropped_timer(WarmMode::On).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r8_151_next_timer_is_one_that_something_waits_for_after_a_replay() {
    shows_no_dropped_timer(WarmMode::Off).await;
}

/// R8.151, R3.104b: it is delivered at its time like any other.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r8_151_a_timer_that_is_not_shown_fires() {
    let Some(schema) = TestSchema::new() else { return };
    let store = Arc::new(schema.open().await);
    let client = Client::new(store.clone());
    let sql = stranger(&schema.config()).await;
    let orchestrations = OrchestrationRegistry::builder()
        .register("Main", |ctx: OrchestrationContext, _input: String| async move {
            let timer = ctx.schedule_timer(Duration::from_secs(3));
            ctx.select2(ctx.schedule_wait("begin"), timer).await;
            Ok(ctx.schedule_wait("go").await)
        })
        .build();
    let activities = ActivityRegistry::builder().build();
    let runtime = Runtime::start_with_store(store.clone(), activities, orchestrations).await;
    client.start_orchestration("i", "Main", "").await.unwrap();
    rows(&sql, "SELECT instance FROM waiting WHERE next_timer IS NOT NULL", 1).await;
    client.raise_event("i", "begin", "").await.unwrap();
    rows(&sql, "SELECT instance FROM waiting WHERE next_timer IS NULL", 1).await;
    rows(&sql, "SELECT body FROM history WHERE body LIKE '%TimerFired%'", 1).await;
    client.raise_event("i", "go", "on").await.unwrap();
    client.wait_for_orchestration("i", AN_HOUR).await.unwrap();
    runtime.shutdown(None).await;
}

#[tokio::test]
async fn r8_149_a_backlog_given_back_is_to_be_seen_with_all_that_wait() {
    let Some(schema) = TestSchema::new() else { return };
    let store = Arc::new(schema.open().await);
    let client = Client::new(store.clone());
    for event in ["one", "two"] {
        client.raise_event("i", event, "x".repeat(3 << 20)).await.unwrap();
    }
    client.start_orchestration("i", "Echo", "x").await.unwrap();
    let lock = Duration::from_secs(60);
    let turn = store.fetch_turn(lock, Duration::ZERO, None).await.unwrap().unwrap();
    assert_eq!(turn.item.messages.len(), 2, "an event and the start");
    store.abandon_orchestration_item(&turn.lock_token, Some(lock), false).await.unwrap();
    let sql = stranger(&schema.config()).await;
    let turns =
        "SELECT concat_ws('|', kind, instance, state, messages, attempts, since) FROM queue";
    assert_eq!(rows(&sql, turns, 1).await, ["turn|i|delayed|3|1"]);
}

#[tokio::test]
async fn names_of_activities_are_shown_as_they_are() {
    let Some(schema) = TestSchema::new() else { return };
    let store = schema.open().await;
    let names =
        ["a", "\"quoted\\\"", "tab\tand \u{1f980}", "", "with \"name\":\"b\" in it", "nul\0"];
    for (id, name) in (1..).zip(names) {
        let work = WorkItem::ActivityExecute {
            instance: "\"name\":\"x\" \0 \\".to_owned(),
            execution_id: 1,
            id,
            name: name.to_owned(),
            input: "\"name\":\"y\" \0".to_owned(),
            session_id: None,
            tag: None,
        };
        store.enqueue_for_worker(work).await.unwrap();
    }
    let sql = stranger(&schema.config()).await;
    let shown = rows(&sql, "SELECT name FROM queue ORDER BY activity", names.len()).await;
    assert_eq!(shown[..5], names[..5]);
    assert_eq!(shown[5], "nul\\u0000"); // PostgreSQL has no such character.
}

/// R9.64: nobody asks it for anything, and yet it says that its database is gone.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_without_work_counts_a_lost_database() {
    let Some(server) = Server::start(&Options::default()).unwrap() else { return };
    let store = Arc::new(PostgresProvider::new(&server.url()).await.unwrap());
    let runtime = runtime(store.clone()).await;
    let errors = || runtime.metrics_snapshot().unwrap().provider_errors;
    assert_eq!(Client::new(store).list_all_instances().await.unwrap().len(), 0);
    server.stop(Stop::Fast).unwrap();
    let began = Instant::now();
    let before = errors();
    while errors() < before + 2 {
        assert!(began.elapsed() < Duration::from_secs(300), "{} errors", errors());
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    println!("two errors counted after {:?}", began.elapsed());
    runtime.shutdown(None).await;
}

// R8.151: timers that are set together have the same time, and are marked in one pass.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn thousands_of_timers_dropped_in_one_turn_do_not_keep_it_from_being_committed() {
    const TIMERS: usize = 14_000;
    let Some(schema) = TestSchema::new() else { return };
    let mut config = schema.config();
    // Looking for each among all took twenty seconds.
    config.statement_timeout = Duration::from_secs(8);
    let store = Arc::new(PostgresProvider::new_with_config(config).await.unwrap());
    let main = |ctx: OrchestrationContext, _: String| async move {
        let hour = Duration::from_secs(3600);
        let timers: Vec<_> = (0..TIMERS).map(|_| ctx.schedule_timer(hour)).collect();
        ctx.dequeue_event("go").await;
        drop(timers);
        ctx.set_custom_status("dropped");
        ctx.schedule_wait("end").await;
        Ok(String::new())
    };
    let orchestrations = OrchestrationRegistry::builder().register("Main", main).build();
    let activities = ActivityRegistry::builder().build();
    let runtime = Runtime::start_with_store(store.clone(), activities, orchestrations).await;
    let client = Client::new(store);
    client.start_orchestration("m", "Main", "").await.unwrap();
    client.enqueue_event("m", "go", "").await.unwrap();
    let patience = Duration::from_secs(100);
    let pause = Duration::from_millis(10);
    client.wait_for_status_change("m", 0, pause, patience).await.unwrap();
    let stranger = stranger(&schema.config()).await;
    let count = "SELECT count(*) FILTER (WHERE dropped), count(*) FROM hidden";
    let row = stranger.query_one(count, &[]).await.unwrap();
    assert_eq!((row.get(0), row.get(1)), (TIMERS as i64, TIMERS as i64));
    runtime.shutdown(Some(1_000)).await;
}
