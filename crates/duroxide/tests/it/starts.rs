//! Starts that are answered (R6.86 – R6.89).

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use duroxide::providers::memory::MemoryProvider;
use duroxide::providers::sqlite::SqliteProvider;
use duroxide::providers::{ExecutionMetadata, Provider};
use duroxide::runtime::Runtime;
use duroxide::runtime::registry::ActivityRegistry;
use duroxide::{
    Client, ClientError, Event, EventKind, IfEnded, OrchestrationContext, OrchestrationRegistry,
    StartOutcome,
};
use tokio::task::JoinSet;

use crate::support::faults::{Faults, FaultyProvider};
use crate::support::logs::listen;
use crate::support::look::{preload, start};
use crate::support::{PATIENCE, WorldBuilder, world};

fn waiting() -> WorldBuilder {
    world().orchestration("Wait", |ctx, input| async move {
        let go = ctx.schedule_wait("Go").await;
        Ok(format!("{input} {go}"))
    })
}

#[tokio::test]
async fn r6_86_a_start_says_whether_it_was_one() {
    let logs = listen();
    let world = waiting().start().await;
    let start = |input: &str| world.client.start("i", "Wait", input);
    assert_eq!(start("one").await.unwrap(), StartOutcome::Started);
    assert_eq!(start("two").await.unwrap(), StartOutcome::Running); // Perhaps not begun.
    world.until_kind("i", "ExternalSubscribed").await;
    assert_eq!(start("three").await.unwrap(), StartOutcome::Running);
    world.client.raise_event("i", "Go", "on").await.unwrap();
    assert_eq!(world.output("i").await, "one on");
    assert_eq!(start("four").await.unwrap(), StartOutcome::Ended);
    assert_eq!(world.output("i").await, "one on");
    assert!(logs.records().iter().all(|record| record.level > tracing::Level::WARN));
    world.finish().await;
}

#[tokio::test]
async fn r6_86_versions_and_typed_inputs() {
    let world =
        world()
            .orchestration_version("Add", "1.0.0", |_ctx, input| async move {
                Ok(format!("{input} v1"))
            })
            .orchestration_version("Add", "2.0.0", |_ctx, input| async move {
                Ok(format!("{input} v2"))
            })
            .start()
            .await;
    let first = world.client.start_typed("a", "Add", [1, 2]).with_version("1.0.0").await;
    assert_eq!(first.unwrap(), StartOutcome::Started);
    assert_eq!(world.output("a").await, "[1,2] v1");
    assert_eq!(world.client.start("b", "Add", "").await.unwrap(), StartOutcome::Started);
    assert_eq!(world.output("b").await, " v2");
    let reserved = world.client.start("sub::1", "Add", "").await;
    assert!(matches!(reserved, Err(ClientError::InvalidInput { .. })));
    world.finish().await;
}

#[tokio::test]
async fn r6_87_an_ended_one_is_kept_refused_or_replaced() {
    let logs = listen();
    let world = waiting()
        .orchestration("Parent", |ctx, _| async move {
            ctx.schedule_sub_orchestration_with_id("Wait", "child", "c").await
        })
        .start()
        .await;
    assert_eq!(world.client.start("i", "Wait", "one").await.unwrap(), StartOutcome::Started);
    let replace = || world.client.start("i", "Wait", "two").if_ended(IfEnded::Replace);
    assert_eq!(replace().await.unwrap(), StartOutcome::Running);
    world.until_kind("i", "ExternalSubscribed").await;
    world.client.raise_event("i", "Go", "on").await.unwrap();
    assert_eq!(world.output("i").await, "one on");

    let refused = world.client.start("i", "Wait", "two").if_ended(IfEnded::Refuse).await;
    let text = refused.unwrap_err().to_string();
    assert_eq!(text, "Invalid input: instance 'i' has ended already; it was not started again");
    assert_eq!(replace().await.unwrap(), StartOutcome::Started);
    world.until_kind("i", "ExternalSubscribed").await;
    world.client.raise_event("i", "Go", "again").await.unwrap();
    assert_eq!(world.output("i").await, "two again");

    // A child belongs to its parent.
    world.begin("p", "Parent", "").await;
    world.until_kind("child", "ExternalSubscribed").await;
    world.client.raise_event("child", "Go", "up").await.unwrap();
    assert_eq!(world.output("p").await, "c up");
    let child = world.client.start("child", "Wait", "").if_ended(IfEnded::Replace).await;
    assert!(child.unwrap_err().to_string().contains("Cannot delete sub-orchestration child"));
    assert!(logs.records().iter().all(|record| record.level > tracing::Level::WARN));
    world.finish().await;
}

/// Many clients start one id at once, again and again; it runs once each time.
async fn race(store: Arc<dyn Provider>) {
    let runs = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&runs);
    let orchestrations = OrchestrationRegistry::builder()
        .register("Count", move |ctx: OrchestrationContext, _input: String| {
            let counted = Arc::clone(&counted);
            async move {
                if !ctx.is_replaying() {
                    counted.fetch_add(1, Ordering::SeqCst);
                }
                Ok(String::new())
            }
        })
        .build();
    let activities = ActivityRegistry::builder().build();
    let runtime = Runtime::start_with_store(store.clone(), activities, orchestrations).await;
    let client = Client::new(store);
    for round in 0..20 {
        let id = format!("i{round}");
        let mut clients = JoinSet::new();
        for n in 0..8 {
            let (client, id) = (client.clone(), id.clone());
            clients.spawn(async move { client.start(id, "Count", n.to_string()).await.unwrap() });
        }
        let answers = clients.join_all().await;
        let started = answers.iter().filter(|answer| **answer == StartOutcome::Started).count();
        assert_eq!(started, 1, "{answers:?}");
        client.wait_for_orchestration(&id, PATIENCE).await.unwrap();
    }
    assert_eq!(runs.load(Ordering::SeqCst), 20);
    runtime.shutdown(None).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn r6_88_of_many_who_start_an_id_one_has_started_it_in_memory() {
    race(Arc::new(MemoryProvider::new())).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn r6_88_of_many_who_start_an_id_one_has_started_it_in_sqlite() {
    race(Arc::new(SqliteProvider::new_in_memory().await.unwrap())).await;
}

#[tokio::test]
async fn r6_89_a_store_that_does_not_decide_is_asked_first() {
    let faults = Faults::default();
    let world = waiting().through(|store| FaultyProvider::wrap(store, &faults)).start().await;
    assert_eq!(world.client.start("i", "Wait", "one").await.unwrap(), StartOutcome::Started);
    world.until_kind("i", "ExternalSubscribed").await;
    let replace = || world.client.start("i", "Wait", "two").if_ended(IfEnded::Replace);
    assert_eq!(replace().await.unwrap(), StartOutcome::Running);
    world.client.raise_event("i", "Go", "on").await.unwrap();
    assert_eq!(world.output("i").await, "one on");
    let keep = world.client.start("i", "Wait", "two").await;
    assert_eq!(keep.unwrap(), StartOutcome::Ended);
    assert_eq!(replace().await.unwrap(), StartOutcome::Started);
    world.until_kind("i", "ExternalSubscribed").await;
    world.client.raise_event("i", "Go", "again").await.unwrap();
    assert_eq!(world.output("i").await, "two again");
    world.finish().await;
}

/// A turn of an instance: its first, after which it runs, or its first and last.
async fn turn(store: &MemoryProvider, parent: Option<&str>, status: Option<&str>) {
    let fetched = store.fetch_orchestration_item(PATIENCE, Duration::ZERO, None).await.unwrap();
    let (item, token, _) = fetched.unwrap();
    let started = EventKind::OrchestrationStarted {
        name: "Wait".to_owned(),
        version: "1.0.0".to_owned(),
        input: String::new(),
        parent_instance: parent.map(str::to_owned),
        parent_id: parent.map(|_| 2),
        parent_execution_id: None,
        carry_forward_events: None,
        initial_custom_status: None,
    };
    let mut events = vec![Event::with_event_id(1, &item.instance, 1, None, started)];
    if status.is_some() {
        let kind = EventKind::OrchestrationCompleted { output: String::new() };
        events.push(Event::with_event_id(2, &item.instance, 1, None, kind));
    }
    let metadata = ExecutionMetadata {
        orchestration_name: Some("Wait".to_owned()),
        orchestration_version: Some("1.0.0".to_owned()),
        parent_instance_id: parent.map(str::to_owned),
        status: status.map(str::to_owned),
        ..ExecutionMetadata::default()
    };
    let acked = store.ack_orchestration_item(&token, 1, events, vec![], vec![], metadata, vec![]);
    acked.await.unwrap();
}

#[tokio::test]
async fn r6_87_who_runs_and_keeps_the_id_is_named() {
    for decides in [true, false] {
        let memory = Arc::new(MemoryProvider::new());
        preload(memory.as_ref(), [start("root", "Wait", "")]).await;
        turn(&memory, None, Some("Completed")).await;
        preload(memory.as_ref(), [start("offspring", "Wait", "")]).await;
        turn(&memory, Some("root"), None).await;
        let faults = Faults::default();
        let store: Arc<dyn Provider> = match decides {
            true => memory.clone(),
            false => FaultyProvider::wrap(memory.clone(), &faults),
        };
        assert_eq!(store.decides_starts(), decides);
        let client = Client::new(store);
        let refused = client.start("root", "Wait", "").if_ended(IfEnded::Replace).await;
        let text = refused.unwrap_err().to_string();
        assert!(text.contains("root has ended, but offspring"), "{text}");
        assert!(text.contains("still running"), "{text}");
        assert_eq!(client.start("root", "Wait", "").await.unwrap(), StartOutcome::Ended);
    }
}
