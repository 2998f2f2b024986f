//! Long texts are stored once per instance, read back byte by byte, and gone when nothing has them
//! (R10.24).
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use duroxide::providers::{
    ExecutionMetadata, InstanceFilter, Provider, ProviderAdmin, PruneOptions, TagFilter,
    TurnCommit, WorkItem,
};
use duroxide::runtime::Runtime;
use duroxide::runtime::registry::ActivityRegistry;
use duroxide::{
    ActivityContext, Client, Event, EventKind, OrchestrationContext, OrchestrationRegistry,
    OrchestrationStatus,
};
use duroxide_sqlite::SqliteProvider;
use support::files::{set_pragma, start};
use support::workload::{self, PATIENCE};
use support::{Folder, stranger};

const LOCK: Duration = Duration::from_secs(3600);
const NOW: Duration = Duration::ZERO;
const SOON: Option<Duration> = Some(Duration::from_millis(1));
/// From so many bytes on a text is long.
const LONG: usize = 1024;

/// A text of about 64 KiB, with everything that is hard to store.
fn long(name: &str) -> String {
    format!("{name}\0\"🦀\"\n\\").repeat(64 * 1024 / (name.len() + 10))
}

fn count(path: &Path, sql: &str) -> i64 {
    stranger(path).query_row(sql, [], |row| row.get(0)).unwrap()
}

fn texts(path: &Path) -> i64 {
    count(path, "SELECT count(*) FROM long_texts")
}

fn activity(instance: &str, input: &str) -> WorkItem {
    WorkItem::ActivityExecute {
        instance: instance.to_owned(),
        execution_id: 1,
        id: 2,
        name: "A".to_owned(),
        input: input.to_owned(),
        session_id: None,
        tag: None,
    }
}

fn started(input: &str) -> EventKind {
    EventKind::OrchestrationStarted {
        name: "Main".to_owned(),
        version: "1.0.0".to_owned(),
        input: input.to_owned(),
        parent_instance: None,
        parent_id: None,
        parent_execution_id: None,
        carry_forward_events: None,
        initial_custom_status: None,
    }
}

fn commit(instance: &str, kinds: Vec<EventKind>, work: Vec<WorkItem>) -> TurnCommit {
    let event = |(id, kind)| Event::with_event_id(id, instance, 1, None, kind);
    TurnCommit {
        execution_id: 1,
        history_delta: (1..).zip(kinds).map(event).collect(),
        worker_items: work,
        metadata: ExecutionMetadata {
            orchestration_name: Some("Main".to_owned()),
            orchestration_version: Some("1.0.0".to_owned()),
            ..ExecutionMetadata::default()
        },
        ..TurnCommit::default()
    }
}

/// The next turn, its messages, and its token.
async fn take(store: &SqliteProvider) -> (Vec<WorkItem>, String) {
    let turn = store.fetch_turn(LOCK, PATIENCE, None).await.unwrap().expect("a turn");
    (turn.item.messages, turn.lock_token)
}

async fn take_work(store: &SqliteProvider) -> (WorkItem, String) {
    let work = store.fetch_work_item(LOCK, PATIENCE, None, &TagFilter::Any).await.unwrap();
    let (item, token, _) = work.expect("work");
    (item, token)
}

/// An instance that has begun with an input and waits for an activity with the same.
async fn begin(store: &SqliteProvider, instance: &str, input: &str) {
    store.enqueue_for_orchestrator(start(instance, input), None).await.unwrap();
    let (_, token) = take(store).await;
    let work = vec![activity(instance, input)];
    store.commit_turn(&token, commit(instance, vec![started(input)], work)).await.unwrap();
}

async fn runtime(store: Arc<SqliteProvider>) -> Arc<Runtime> {
    let activities = ActivityRegistry::builder()
        .register("A", |_: ActivityContext, input: String| async move { Ok(format!("A:{input}")) })
        .build();
    let orchestrations = OrchestrationRegistry::builder()
        .register("Hello", |ctx: OrchestrationContext, input: String| async move {
            ctx.schedule_activity("A", input).await
        })
        .register("Twice", |ctx: OrchestrationContext, input: String| async move {
            if ctx.get_kv_value("again").is_some() {
                return Ok("done".to_owned());
            }
            ctx.set_kv_value("again", "yes");
            ctx.schedule_activity("A", input.clone()).await?;
            ctx.continue_as_new(input).await
        })
        .build();
    Runtime::start_with_options(store, activities, orchestrations, workload::options()).await
}

/// Runs one workflow to its end.
async fn run(store: &Arc<SqliteProvider>, name: &str, input: &str) -> OrchestrationStatus {
    let runtime = runtime(Arc::clone(store)).await;
    let client = Client::new(store.clone());
    client.start_orchestration("i", name, input).await.unwrap();
    let status = client.wait_for_orchestration("i", PATIENCE).await.unwrap();
    runtime.shutdown(Some(1000)).await;
    status
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r10_24_a_long_text_is_stored_once_and_read_everywhere() {
    let folder = Folder::fast();
    let file = folder.file("a.db");
    let store = Arc::new(SqliteProvider::new(&folder.url("a.db"), None).await.unwrap());
    let input = long("input");
    let output = format!("A:{input}");
    match run(&store, "Hello", &input).await {
        OrchestrationStatus::Completed { output: found, .. } => assert!(found == output),
        status => panic!("{status:?}"),
    }
    // The input was in four rows, the output in four others.
    assert_eq!(texts(&file), 2);
    assert_eq!(count(&file, "SELECT count(long_text) FROM history"), 4);
    let rest = "SELECT (SELECT sum(length(body)) FROM history) +
         (SELECT sum(ifnull(length(output), 0)) FROM executions)";
    assert!(count(&file, rest) < 2000);

    let history = store.read("i").await.unwrap();
    let found: Vec<&String> = history.iter().filter_map(|event| event.kind.payload()).collect();
    assert!(found == [&input, &input, &output, &output]);
    assert!(store.read_with_execution("i", 1).await.unwrap() == history);
    assert!(store.read_history_from("i", 1, 2, Some(1)).await.unwrap() == history[1..2]);
    let info = store.get_instance_info("i").await.unwrap();
    assert!(info.output.as_ref() == Some(&output));
    let info = store.get_execution_info("i", 1).await.unwrap();
    assert!(info.output.as_ref() == Some(&output));
    let stats = store.get_instance_stats("i").await.unwrap().expect("an instance");
    assert!(4 * 64 * 1000 < stats.history_size_bytes);

    store.delete_instance("i", false).await.unwrap();
    assert_eq!(texts(&file), 0);
}

#[tokio::test]
async fn r10_24_messages_and_work_that_are_given_back_keep_their_texts() {
    let folder = Folder::fast();
    let store = SqliteProvider::new(&folder.url("a.db"), None).await.unwrap();
    let begin = start("i", &long("input"));
    store.enqueue_for_orchestrator(begin.clone(), SOON).await.unwrap();
    for delay in [None, SOON, Some(NOW)] {
        let (messages, token) = take(&store).await;
        assert!(messages == std::slice::from_ref(&begin));
        store.abandon_orchestration_item(&token, delay, false).await.unwrap();
    }
    let (messages, token) = take(&store).await;
    assert!(messages == [begin]);
    let work = activity("i", &long("input"));
    let turn = commit("i", vec![started(&long("input"))], vec![work.clone()]);
    store.commit_turn(&token, turn).await.unwrap();
    for delay in [None, SOON] {
        let (item, token) = take_work(&store).await;
        assert!(item == work);
        store.abandon_work_item(&token, delay, false).await.unwrap();
    }
    assert!(take_work(&store).await.0 == work);
    assert_eq!(texts(&folder.file("a.db")), 1);
}

#[tokio::test]
async fn r10_24_what_is_long() {
    let folder = Folder::fast();
    let store = SqliteProvider::new(&folder.url("a.db"), None).await.unwrap();
    // The last one stands for texts that are elsewhere.
    let inputs = ["x".repeat(LONG - 1), "x".repeat(LONG), "\u{fffd}elsewhere".to_owned()];
    for (input, expected) in inputs.iter().zip([0, 1, 2]) {
        begin(&store, input, input).await;
        assert_eq!(texts(&folder.file("a.db")), expected);
        let history = store.read(input).await.unwrap();
        assert_eq!(history[0].kind.payload(), Some(input));
        let work = take_work(&store).await.0;
        assert_eq!(work.payload(), Some(input));
    }
}

#[tokio::test]
async fn r10_24_texts_go_with_their_instances() {
    let folder = Folder::fast();
    let store = SqliteProvider::new(&folder.url("a.db"), None).await.unwrap();
    for instance in ["a", "b"] {
        begin(&store, instance, &long("the same")).await;
    }
    assert_eq!(texts(&folder.file("a.db")), 2);
    store.delete_instance("a", true).await.unwrap();
    assert_eq!(texts(&folder.file("a.db")), 1);
    assert!(store.read("b").await.unwrap()[0].kind.payload() == Some(&long("the same")));
    store.delete_instances_atomic(&["b".to_owned()], true).await.unwrap();
    assert_eq!(texts(&folder.file("a.db")), 0);

    begin(&store, "c", &long("c")).await;
    let (_, token) = take_work(&store).await;
    store.ack_work_item(&token, None).await.unwrap();
    store.enqueue_for_orchestrator(start("c", "again"), None).await.unwrap();
    let (_, token) = take(&store).await;
    let mut end = commit("c", Vec::new(), Vec::new());
    end.metadata.status = Some("Completed".to_owned());
    store.commit_turn(&token, end).await.unwrap();
    let deleted = store.delete_instance_bulk(InstanceFilter::default()).await.unwrap();
    assert_eq!((deleted.instances_deleted, texts(&folder.file("a.db"))), (1, 0));
}

#[tokio::test]
async fn r10_24_texts_of_messages_without_effect_go_with_them() {
    let folder = Folder::fast();
    let file = folder.file("a.db");
    let store = SqliteProvider::new(&folder.url("a.db"), None).await.unwrap();
    let message = |instance: &str, data| {
        let (instance, name) = (instance.to_owned(), "Q".to_owned());
        WorkItem::QueueMessage { instance, name, data }
    };
    // For an instance that does not exist: a dead letter has all of it.
    let lost = message("nobody", long("lost"));
    store.enqueue_for_orchestrator(lost.clone(), None).await.unwrap();
    assert_eq!(texts(&file), 1);
    assert!(store.fetch_turn(LOCK, NOW, None).await.unwrap().is_none());
    let letters = store.list_dead_letters().await.unwrap();
    assert!(letters[0].payload == serde_json::to_string(&lost).unwrap());
    assert_eq!(texts(&file), 0);
    // For an instance whose turn records no event of it.
    begin(&store, "i", &long("input")).await;
    store.enqueue_for_orchestrator(message("i", long("more")), None).await.unwrap();
    assert_eq!(texts(&file), 2);
    let (_, token) = take(&store).await;
    store.commit_turn(&token, commit("i", Vec::new(), Vec::new())).await.unwrap();
    assert_eq!(texts(&file), 1);
    assert!(store.read("i").await.unwrap()[0].kind.payload() == Some(&long("input")));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r10_24_pruning_removes_what_only_old_executions_have() {
    let folder = Folder::fast();
    let file = folder.file("a.db");
    let store = Arc::new(SqliteProvider::new(&folder.url("a.db"), None).await.unwrap());
    run(&store, "Twice", &long("input")).await;
    assert_eq!(texts(&file), 2);
    let keep_two = PruneOptions { keep_last: Some(2), ..PruneOptions::default() };
    store.prune_executions("i", keep_two).await.unwrap();
    assert_eq!(texts(&file), 2);
    let pruned = store.prune_executions("i", PruneOptions::default()).await.unwrap();
    assert_eq!((pruned.executions_deleted, texts(&file)), (1, 1));
    assert!(store.read("i").await.unwrap()[0].kind.payload() == Some(&long("input")));
}

#[tokio::test]
async fn r10_7_a_file_of_version_1_is_upgraded() {
    let folder = Folder::new();
    let file = folder.file("a.db");
    let input = long("input");
    let connection = stranger(&file);
    connection.pragma_update(None, "journal_mode", "WAL").unwrap();
    connection.execute_batch(include_str!("../migrations/0001_initial.sql")).unwrap();
    let rows = "INSERT INTO instances (key, id) VALUES (1, 'new');
         INSERT INTO instances (key, id, name, version, execution, created_at, updated_at)
         VALUES (2, 'old', 'Main', '1.0.0', 1, 5, 5);
         INSERT INTO executions (instance, number, status, started_at, started)
         VALUES (2, 1, 'Running', 5, 1);
         INSERT INTO mailboxes (instance, state, pin, head) VALUES (1, 1, 0, 1);
         UPDATE counters SET next_seq = 3;";
    connection.execute_batch(rows).unwrap();
    let message = "INSERT INTO messages (instance, seq, kind, attempts, late, since, payload)
         VALUES (1, 1, 1, 0, 0, 5, ?1)";
    let begin = start("new", &input);
    connection.execute(message, [serde_json::to_string(&begin).unwrap()]).unwrap();
    let event = "INSERT INTO history (instance, execution, event, at, stamp, body)
         VALUES (2, 1, 1, 5, '0.2.0', ?1)";
    connection.execute(event, [serde_json::to_string(&started(&input)).unwrap()]).unwrap();
    let work = "INSERT INTO work (seq, instance, execution, activity, attempts, payload)
         VALUES (2, 2, 1, 2, 0, ?1)";
    connection.execute(work, [serde_json::to_string(&activity("old", &input)).unwrap()]).unwrap();
    drop(connection);
    set_pragma(&file, "application_id", 0x6478_7264);
    set_pragma(&file, "user_version", 1);

    let store = SqliteProvider::new(&folder.url("a.db"), None).await.unwrap();
    assert!(store.read("old").await.unwrap()[0].kind == started(&input));
    assert!(take_work(&store).await.0 == activity("old", &input));
    let (messages, token) = take(&store).await;
    assert!(messages == [begin]);
    store.commit_turn(&token, commit("new", vec![started(&input)], Vec::new())).await.unwrap();
    assert!(store.read("new").await.unwrap()[0].kind == started(&input));
    assert_eq!(texts(&file), 1);
    drop(store);
    SqliteProvider::new(&folder.url("a.db"), None).await.unwrap();
    assert_eq!(count(&file, "PRAGMA user_version"), 8);
}

#[tokio::test]
async fn r10_18_a_text_that_is_missing_is_said_to_be() {
    let folder = Folder::fast();
    let store = SqliteProvider::new(&folder.url("a.db"), None).await.unwrap();
    begin(&store, "i", &long("input")).await;
    store.enqueue_for_orchestrator(start("j", &long("input")), None).await.unwrap();
    let (_, token) = take(&store).await;
    let mut end = commit("j", vec![started("x")], Vec::new());
    end.metadata.status = Some("Completed".to_owned());
    end.metadata.output = Some(long("output"));
    store.commit_turn(&token, end).await.unwrap();
    store.enqueue_for_orchestrator(start("k", &long("input")), None).await.unwrap();
    stranger(&folder.file("a.db")).execute("DELETE FROM long_texts", []).unwrap();

    let says = |error: &str, wanted: &[&str]| {
        assert!(wanted.iter().all(|part| error.contains(part)), "{error}");
    };
    let missing = ["event 1 of execution 1 of i:", "is missing"];
    says(&store.read("i").await.unwrap_err().message, &missing);
    says(&store.read_status("i").await.unwrap_err().message, &missing);
    let missing = ["output of execution 1 of j:", "is missing"];
    says(&store.get_instance_info("j").await.unwrap_err().message, &missing);
    says(&store.get_execution_info("j", 1).await.unwrap_err().message, &missing);
    // What lies in a queue becomes a dead letter.
    assert!(store.fetch_turn(LOCK, NOW, None).await.unwrap().is_none());
    assert!(store.fetch_work_item(LOCK, NOW, None, &TagFilter::Any).await.unwrap().is_none());
    let letters = store.list_dead_letters().await.unwrap();
    assert_eq!(letters.len(), 2);
    says(&letters[0].reason, &["message cannot be decoded", "is missing"]);
    assert_eq!(letters[0].instance.as_deref(), Some("k"));
    says(&letters[1].reason, &["activity cannot be decoded", "is missing"]);
    assert_eq!(letters[1].instance.as_deref(), Some("i"));
}
