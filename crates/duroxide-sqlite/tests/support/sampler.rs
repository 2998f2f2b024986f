//! A store with rows in every table, closed in the middle of its work; and its end.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use duroxide::providers::{Provider, SessionFetchConfig, TagFilter};
use duroxide::runtime::Runtime;
use duroxide::runtime::registry::ActivityRegistry;
use duroxide::{
    ActivityContext, Client, OrchestrationContext, OrchestrationRegistry, OrchestrationStatus,
    RuntimeOptions,
};
use duroxide_sqlite::SqliteProvider;
use tokio::task::JoinSet;

use super::workload::{self, insist};
use super::{Folder, stranger};

/// The instances, and what each of them answers in the end.
pub(crate) const INSTANCES: [(&str, &str); 8] = [
    ("kv-1", "kept:2+m"),
    ("kv-2", "kept:2+m"),
    ("work-1", "A:x+A:s+m"),
    ("work-2", "A:x+A:s+m"),
    ("timer-1", "fired"),
    ("timer-2", "fired"),
    ("new-1", "A:x+A:s+m"),
    ("new-2", "A:x+A:s+m"),
];

/// A text that is stored apart; answers have `x` instead.
fn long() -> String {
    "x".repeat(5000)
}

/// How long until timers fire after the store was made.
const TIMERS: Duration = Duration::from_millis(400);

/// A runtime for the sampler's workflows, quick to lose patience.
pub(crate) async fn runtime(store: Arc<dyn Provider>, workers: usize) -> Arc<Runtime> {
    let activities = ActivityRegistry::builder()
        .register(
            "A",
            |_ctx: ActivityContext, input: String| async move { Ok(format!("A:{input}")) },
        )
        .build();
    let orchestrations = OrchestrationRegistry::builder()
        .register("Work", |ctx: OrchestrationContext, input: String| async move {
            ctx.set_custom_status("at work");
            ctx.set_kv_value("input", input.clone());
            let tagged = ctx.schedule_activity("A", input).with_tag("tag");
            let session = ctx.schedule_activity_on_session("A", "s", ctx.instance_id());
            let (tagged, session) = ctx.join2(tagged, session).await;
            let message = ctx.dequeue_event("Q").await;
            Ok(format!("{}+{}+{message}", tagged?.replace(&long(), "x"), session?))
        })
        .register("Kv", |ctx: OrchestrationContext, input: String| async move {
            if input == "1" {
                ctx.set_kv_value("kept", "2");
                return ctx.continue_as_new("2").await;
            }
            ctx.set_kv_value("more", "3");
            let message = ctx.dequeue_event("Q").await;
            Ok(format!("kept:{}+{message}", ctx.get_kv_value("kept").unwrap_or_default()))
        })
        .register("Timer", |ctx: OrchestrationContext, _input: String| async move {
            ctx.schedule_timer(TIMERS).await;
            Ok("fired".to_owned())
        })
        .build();
    let mut options = RuntimeOptions {
        worker_concurrency: workers,
        max_attempts: 3,
        orchestrator_lock_timeout: Duration::from_secs(5),
        worker_lock_timeout: Duration::from_secs(5),
        worker_lock_renewal_buffer: Duration::from_secs(2),
        ..workload::options()
    };
    options.unregistered_backoff.base_delay = Duration::from_millis(20);
    options.unregistered_backoff.max_delay = Duration::from_millis(20);
    Runtime::start_with_options(store, activities, orchestrations, options).await
}

/// Makes the store; its bytes.
pub(crate) async fn make() -> Vec<u8> {
    let folder = Folder::fast();
    let store = Arc::new(SqliteProvider::new(&folder.url("a.db"), None).await.unwrap());
    let client = Client::new(store.clone());
    let begun = runtime(store.clone(), 0).await;
    for (instance, name) in [
        ("kv-1", "Kv"),
        ("kv-2", "Kv"),
        ("work-1", "Work"),
        ("work-2", "Work"),
        ("timer-1", "Timer"),
        ("timer-2", "Timer"),
    ] {
        let input = if name == "Kv" { "1".to_owned() } else { long() };
        client.start_orchestration(instance, name, input).await.unwrap();
    }
    let connection = stranger(&folder.file("a.db"));
    let is_there = |sql: &str, wanted: i64| {
        let found = connection.query_row(sql, [], |row| row.get::<_, i64>(0)).unwrap();
        if found == wanted { Ok(()) } else { Err(format!("{sql}: {found}")) }
    };
    insist(async || is_there("SELECT count(*) FROM work", 4)).await;
    insist(async || is_there("SELECT count(*) FROM hidden", 2)).await;
    insist(async || is_there("SELECT count(*) FROM executions", 8)).await;
    begun.shutdown(Some(1000)).await;

    for (instance, _) in INSTANCES {
        if !instance.starts_with("timer") && !instance.starts_with("new") {
            client.enqueue_event(instance, "Q", "m").await.unwrap();
        }
    }
    for instance in ["new-1", "new-2"] {
        client.start_orchestration(instance, "Work", long()).await.unwrap();
        client.enqueue_event(instance, "Q", "m").await.unwrap();
    }
    // Sessions whose lease is over, locks that are not, and dead letters.
    let session =
        SessionFetchConfig { owner_id: "gone".to_owned(), lock_timeout: Duration::from_millis(1) };
    for _ in 0..2 {
        let (lock, now) = (Duration::from_millis(1), Duration::ZERO);
        let filter = TagFilter::DefaultOnly;
        store.fetch_work_item(lock, now, Some(&session), &filter).await.unwrap().expect("work");
    }
    for instance in ["nobody-1", "nobody-2"] {
        client.enqueue_event(instance, "Q", "m").await.unwrap();
    }
    let lock = Duration::from_millis(900);
    store.fetch_turn(lock, Duration::ZERO, None).await.unwrap().expect("a turn");
    // As a killed process leaves it: its leases and its place are still there.
    for ending in ["", "-wal"] {
        let copy = folder.file(&format!("copy.db{ending}"));
        std::fs::copy(folder.file(&format!("a.db{ending}")), copy).unwrap();
    }
    let copy = stranger(&folder.file("copy.db"));
    copy.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
    drop(copy);
    std::fs::read(folder.file("copy.db")).unwrap()
}

/// Where an instance stands.
#[derive(Debug, PartialEq)]
pub(crate) enum End {
    Right,
    Wrong(String),
    Open(String),
}

/// Runs everything to its end; where each instance stands then. The only one left is not waited
/// for longer than `last`.
pub(crate) async fn finish(store: Arc<SqliteProvider>, last: Duration) -> Vec<(&'static str, End)> {
    const ALL: Duration = Duration::from_secs(60);
    let runtime = runtime(store.clone(), 4).await;
    let mut waits = JoinSet::new();
    for (instance, expected) in INSTANCES {
        let client = Client::new(store.clone());
        waits.spawn(async move {
            let end = match client.wait_for_orchestration(instance, ALL).await {
                Ok(OrchestrationStatus::Completed { output, .. }) if output == expected => {
                    End::Right
                }
                Ok(status) => End::Wrong(format!("{status:?}")),
                Err(error) => End::Open(error.to_string()),
            };
            (instance, end)
        });
    }
    let mut ends = Vec::new();
    while 1 < waits.len() {
        ends.extend(waits.join_next().await.map(Result::unwrap));
    }
    let client = Client::new(store.clone());
    match tokio::time::timeout(last, waits.join_next()).await {
        Ok(end) => ends.extend(end.map(Result::unwrap)),
        Err(_) => {
            let is_open =
                |(instance, _): &(&str, _)| ends.iter().all(|(ended, _)| ended != instance);
            let (last, _) = INSTANCES.into_iter().find(is_open).unwrap();
            let status = client.get_orchestration_status(last).await;
            ends.push((last, End::Open(format!("{status:?}"))));
        }
    }
    runtime.shutdown(Some(500)).await;
    ends
}

/// Tables and their columns, without SQLite's own.
pub(crate) fn columns(path: &Path) -> Vec<(String, String)> {
    let connection = stranger(path);
    let sql = "SELECT t.name, c.name FROM sqlite_schema t JOIN pragma_table_info(t.name) c
         WHERE t.type = 'table' AND t.name NOT LIKE 'sqlite_%' ORDER BY t.name, c.cid";
    let mut statement = connection.prepare(sql).unwrap();
    let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
    rows.collect::<Result<_, _>>().unwrap()
}
