//! Handler versions, and library versions that executions are pinned to.

use std::sync::Arc;
use std::time::Duration;

use duroxide::providers::memory::MemoryProvider;
use duroxide::providers::{ExecutionMetadata, Provider, SemverRange, current_build_version};
use duroxide::runtime::registry::ActivityRegistry;
use duroxide::runtime::{Runtime, VersionPolicy};
use duroxide::{
    Client, ErrorDetails, Event, EventKind, OrchestrationContext, OrchestrationRegistry,
    OrchestrationStatus,
};
use semver::Version;
use tokio::time::{Instant, sleep};

use crate::support::faults::{Faults, FaultyProvider};
use crate::support::look::{preload, raised, start};
use crate::support::{PATIENCE, WorldBuilder, kinds, world, world_on};

async fn waits(ctx: OrchestrationContext, _input: String) -> Result<String, String> {
    let go = ctx.schedule_wait("go").await;
    Ok(format!("{} {go}", ctx.orchestration_version()))
}

fn range(min: &str, max: &str) -> SemverRange {
    SemverRange::new(Version::parse(min).unwrap(), Version::parse(max).unwrap())
}

#[tokio::test(start_paused = true)]
async fn r7_110_r4_1_a_running_execution_keeps_its_version() {
    let old = world().orchestration_version("Main", "1.0.0", waits).start().await;
    old.begin("i", "Main", "").await;
    old.until_kind("i", "ExternalSubscribed").await;
    let new = world_on(old.close().await)
        .orchestration_version("Main", "1.0.0", waits)
        .orchestration_version("Main", "2.0.0", |_ctx, _input| async { Err("not this".into()) })
        .start()
        .await;
    new.client.raise_event("i", "go", "on").await.unwrap();
    assert_eq!(new.output("i").await, "1.0.0 on");
    new.finish().await;
}

#[tokio::test(start_paused = true)]
async fn r7_110_a_version_that_is_gone_is_waited_for() {
    let old = world().orchestration_version("Main", "1.0.0", waits).start().await;
    old.begin("i", "Main", "").await;
    old.until_kind("i", "ExternalSubscribed").await;
    let new =
        world_on(old.close().await).orchestration_version("Main", "2.0.0", waits).start().await;
    new.client.raise_event("i", "go", "on").await.unwrap();
    sleep(Duration::from_secs(20)).await;
    let status = new.client.get_orchestration_status("i").await.unwrap();
    assert!(matches!(status, OrchestrationStatus::Running { .. }));
    let old =
        world_on(new.memory.clone()).orchestration_version("Main", "1.0.0", waits).start().await;
    new.finish().await;
    assert_eq!(old.output("i").await, "1.0.0 on");
    old.finish().await;
}

#[tokio::test(start_paused = true)]
async fn r6_5_a_start_gets_exactly_the_version_it_names() {
    let world = world()
        .options(|options| options.max_attempts = 1)
        .orchestration_version("Main", "1.0.0", |_ctx, _input| async { Ok("1".into()) })
        .orchestration_version("Main", "2.0.0", |_ctx, _input| async { Ok("2".into()) })
        .start()
        .await;
    let client = &world.client;
    client.start_orchestration_versioned("a", "Main", "1.0.0", "").await.unwrap();
    client.start_orchestration_versioned_typed("b", "Main", "2.0.0", 7).await.unwrap();
    client.start_orchestration_versioned("c", "Main", "3.0.0", "").await.unwrap();
    client.start_orchestration_versioned("d", "Main", "newest", "").await.unwrap();
    assert_eq!((world.output("a").await, world.output("b").await), ("1".into(), "2".into()));
    for (id, version) in [("c", "3.0.0"), ("d", "newest")] {
        assert!(matches!(world.error_at_last(id).await, ErrorDetails::Poison { .. }));
        let info = world.client.get_instance_info(id).await.unwrap();
        assert_eq!(info.orchestration_version, version);
    }
    world.finish().await;
}

#[tokio::test(start_paused = true)]
async fn r7_108_r7_111_the_policy_can_change_while_a_runtime_runs() {
    let registry = OrchestrationRegistry::builder()
        .register_versioned("Main", "1.0.0", |_ctx, _input: String| async { Ok("1".into()) })
        .register_versioned("Main", "2.0.0", |_ctx, _input: String| async { Ok("2".into()) })
        .build();
    let store = Arc::new(MemoryProvider::new());
    let activities = ActivityRegistry::builder().build();
    let runtime = Runtime::start_with_store(store.clone(), activities, registry.clone()).await;
    let client = Client::new(store.clone());
    let run = async |id: &str| {
        client.start_orchestration(id, "Main", "").await.unwrap();
        client.wait_for_orchestration_typed::<String>(id, PATIENCE).await.unwrap().unwrap()
    };
    assert_eq!(run("a").await, "2"); // R7.100: the latest, unless told otherwise.
    registry.set_version_policy("Main", VersionPolicy::Exact(Version::new(1, 0, 0)));
    assert_eq!(run("b").await, "1");
    registry.set_version_policy("Main", VersionPolicy::Latest);
    assert_eq!(run("c").await, "2");
    runtime.shutdown(None).await;
}

/// A store where `i`, started by this build, waits for `go`.
async fn store_with_waiting() -> Arc<MemoryProvider> {
    let world = world().orchestration("Main", waits).start().await;
    world.begin("i", "Main", "").await;
    world.until_kind("i", "ExternalSubscribed").await;
    world.close().await
}

fn supporting(memory: Arc<MemoryProvider>, versions: SemverRange) -> WorldBuilder {
    world_on(memory)
        .options(|options| options.supported_replay_versions = Some(versions))
        .orchestration("Main", waits)
}

#[tokio::test(start_paused = true)]
async fn r7_81_r7_83_executions_of_other_versions_are_left_alone() {
    let memory = store_with_waiting().await;
    let pin = memory.snapshot().instances["i"].executions[&1].pinned_duroxide_version.clone();
    assert_eq!(pin, Some(current_build_version()));
    let old = supporting(memory.clone(), range("0.0.0", "0.1.99")).start().await;
    old.client.raise_event("i", "go", "on").await.unwrap();
    sleep(Duration::from_secs(3600)).await;
    let store = old.memory.snapshot();
    assert!(store.instance_locks.is_empty());
    assert_eq!(old.memory.max_attempt_count("i"), 0);
    // R7.84: what has no pin yet, it takes.
    old.begin("new", "Main", "").await;
    old.until_kind("new", "ExternalSubscribed").await;
    old.finish().await;
    let new = world_on(memory).orchestration("Main", waits).start().await; // R7.82: up to its own.
    assert_eq!(new.output("i").await, "1.0.0 on");
    new.finish().await;
}

/// A store whose instance `i` was started by another version of the library.
async fn started_by(stamp: &str) -> Arc<MemoryProvider> {
    let memory = Arc::new(MemoryProvider::new());
    preload(&*memory, [start("i", "Main", "")]).await;
    let (_, token, _) = memory
        .fetch_orchestration_item(Duration::from_secs(5), Duration::ZERO, None)
        .await
        .unwrap()
        .unwrap();
    let kind = EventKind::OrchestrationStarted {
        name: "Main".into(),
        version: "1.0.0".into(),
        input: String::new(),
        parent_instance: None,
        parent_id: None,
        parent_execution_id: None,
        carry_forward_events: None,
        initial_custom_status: None,
    };
    let started =
        Event { duroxide_version: stamp.into(), ..Event::with_event_id(1, "i", 1, None, kind) };
    let metadata = ExecutionMetadata {
        orchestration_name: Some("Main".into()),
        orchestration_version: Some("1.0.0".into()),
        pinned_duroxide_version: Version::parse(stamp).ok(),
        ..ExecutionMetadata::default()
    };
    memory
        .ack_orchestration_item(&token, 1, vec![started], vec![], vec![], metadata, vec![])
        .await
        .unwrap();
    preload(&*memory, [raised("i", "go", "early")]).await;
    memory
}

#[tokio::test(start_paused = true)]
async fn r7_86_a_wider_range_takes_executions_of_newer_versions() {
    let memory = started_by("5.0.0").await;
    let normal = world_on(memory.clone()).orchestration("Main", waits).start().await;
    sleep(Duration::from_secs(60)).await;
    assert_eq!(normal.memory.max_attempt_count("i"), 0);
    normal.finish().await;
    let wide = supporting(memory, range("0.0.0", "99.0.0")).start().await;
    wide.until_kind("i", "ExternalSubscribed").await;
    wide.client.raise_event("i", "go", "on").await.unwrap();
    assert_eq!(wide.output("i").await, "1.0.0 on");
    wide.finish().await;
}

#[tokio::test(start_paused = true)]
async fn r1_21_r7_84_an_unreadable_stamp_fits_every_node() {
    let memory = started_by("long ago").await;
    let world = supporting(memory, range("3.0.0", "4.0.0")).start().await;
    world.until_kind("i", "ExternalSubscribed").await;
    world.finish().await;
}

#[tokio::test(start_paused = true)]
async fn r1_21_l33_r7_85_where_the_store_ignores_the_filter_incompatible_items_end_as_poison() {
    let memory = store_with_waiting().await;
    let faults = Faults::default();
    faults.blind();
    let world = supporting(memory, range("0.0.0", "0.1.99"))
        .through(|store| FaultyProvider::wrap(store, &faults))
        .start()
        .await;
    let began = Instant::now();
    world.client.raise_event("i", "go", "").await.unwrap();
    let error = world.error_at_last("i").await;
    assert!(matches!(error, ErrorDetails::Poison { attempt_count: 11, .. }), "{error:?}");
    assert_eq!(began.elapsed().as_secs(), 10); // Ten attempts, a second apart.
    assert_eq!(kinds(&world.history("i").await)[2..], ["OrchestrationFailed"]);
    world.finish().await;
}

#[tokio::test(start_paused = true)]
async fn r1_21_a_compatible_node_takes_it_before_that() {
    let memory = store_with_waiting().await;
    let faults = Faults::default();
    faults.blind();
    let old = supporting(memory.clone(), range("0.0.0", "0.1.99"))
        .through(|store| FaultyProvider::wrap(store, &faults))
        .start()
        .await;
    old.client.raise_event("i", "go", "on").await.unwrap();
    sleep(Duration::from_secs(3)).await;
    old.finish().await;
    let new = world_on(memory).orchestration("Main", waits).start().await;
    assert_eq!(new.output("i").await, "1.0.0 on");
    new.finish().await;
}
