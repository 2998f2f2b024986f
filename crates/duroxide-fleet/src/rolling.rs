//! Rolling upgrades: runtimes that understand different versions of the library on one store. Each
//! function is a scenario of its own, on a store of its own.

use std::sync::Arc;
use std::time::{Duration, Instant};

use duroxide::providers::{
    DispatcherCapabilityFilter, ExecutionMetadata, Provider, SemverRange, TurnCommit, WorkItem,
};
use duroxide::runtime::Runtime;
use duroxide::runtime::registry::ActivityRegistry;
use duroxide::{
    Client, Event, EventKind, OrchestrationContext, OrchestrationRegistry, OrchestrationStatus,
    RuntimeOptions,
};
use semver::Version;

use crate::process::SOON;

const LOCK: Duration = Duration::from_secs(30);
/// The version of this build: all crates have the same.
const CURRENT: &str = env!("CARGO_PKG_VERSION");

/// A version.
fn v(text: &str) -> Version {
    text.parse().unwrap()
}

fn range(min: &str, max: &str) -> SemverRange {
    SemverRange::new(v(min), v(max))
}

/// Instances as runtimes of those versions left them: they wait for the event `go`, which is there.
async fn seed(store: &dyn Provider, pins: &[(&str, Option<&str>)]) {
    for (id, pin) in pins {
        begin(store, id, *pin).await;
    }
    for (id, _) in pins {
        let (instance, name) = ((*id).to_owned(), "go".to_owned());
        let raised = WorkItem::ExternalRaised { instance, name, data: "x".to_owned() };
        store.enqueue_for_orchestrator(raised, None).await.unwrap();
    }
}

async fn begin(store: &dyn Provider, id: &str, pin: Option<&str>) {
    let start = WorkItem::StartOrchestration {
        instance: id.to_owned(),
        orchestration: "Main".to_owned(),
        input: String::new(),
        version: Some("1.0.0".to_owned()),
        parent_instance: None,
        parent_id: None,
        parent_execution_id: None,
        execution_id: 1,
    };
    store.enqueue_for_orchestrator(start, None).await.unwrap();
    let turn = store.fetch_turn(LOCK, Duration::ZERO, None).await.unwrap().expect("a turn");
    assert_eq!(turn.item.instance, id);
    let kinds = [
        EventKind::OrchestrationStarted {
            name: "Main".to_owned(),
            version: "1.0.0".to_owned(),
            input: String::new(),
            parent_instance: None,
            parent_id: None,
            parent_execution_id: None,
            carry_forward_events: None,
            initial_custom_status: None,
        },
        EventKind::ExternalSubscribed { name: "go".to_owned() },
    ];
    let event = |(number, kind)| {
        let mut event = Event::with_event_id(number, id, 1, None, kind);
        pin.unwrap_or(CURRENT).clone_into(&mut event.duroxide_version);
        event
    };
    let commit = TurnCommit {
        execution_id: 1,
        history_delta: (1..).zip(kinds).map(event).collect(),
        metadata: ExecutionMetadata {
            status: Some("Running".to_owned()),
            orchestration_name: Some("Main".to_owned()),
            orchestration_version: Some("1.0.0".to_owned()),
            pinned_duroxide_version: pin.map(v),
            ..ExecutionMetadata::default()
        },
        ..TurnCommit::default()
    };
    store.commit_turn(&turn.lock_token, commit).await.unwrap();
}

/// A runtime of a name for these versions; the default ones if none are named.
async fn runtime(
    store: &Arc<dyn Provider>,
    name: &'static str,
    versions: Option<SemverRange>,
) -> Arc<Runtime> {
    let main = move |ctx: OrchestrationContext, _: String| async move {
        ctx.schedule_wait("go").await;
        Ok(name.to_owned())
    };
    let fresh = move |_: OrchestrationContext, _: String| async move { Ok(name.to_owned()) };
    let orchestrations =
        OrchestrationRegistry::builder().register("Main", main).register("Fresh", fresh).build();
    let options = RuntimeOptions {
        supported_replay_versions: versions,
        max_attempts: 3,
        ..RuntimeOptions::default()
    };
    let activities = ActivityRegistry::builder().build();
    Runtime::start_with_options(Arc::clone(store), activities, orchestrations, options).await
}

/// The runtime that completed an instance.
async fn completed_by(store: &Arc<dyn Provider>, id: &str) -> String {
    let client = Client::new(Arc::clone(store));
    match client.wait_for_orchestration(id, SOON).await.unwrap() {
        OrchestrationStatus::Completed { output, .. } => output,
        other => panic!("{id}: {other:?}"),
    }
}

/// Instances that a runtime does not accept still run, though it looked for work after they came.
async fn assert_left_alone(store: &Arc<dyn Provider>, ids: &[&str]) {
    let client = Client::new(Arc::clone(store));
    client.start_orchestration("fresh", "Fresh", "").await.unwrap();
    completed_by(store, "fresh").await;
    for id in ids {
        let status = client.get_orchestration_status(id).await.unwrap();
        assert!(matches!(status, OrchestrationStatus::Running { .. }), "{id}: {status:?}");
    }
}

async fn stop(runtimes: impl IntoIterator<Item = Arc<Runtime>>) {
    for runtime in runtimes {
        runtime.shutdown(Some(1_000)).await;
    }
}

/// Scenario 16.
pub async fn two_runtimes_different_version_ranges_route_correctly(store: Arc<dyn Provider>) {
    seed(&*store, &[("x", Some("1.4.0")), ("y", Some("2.3.0"))]).await;
    let a = runtime(&store, "a", Some(range("1.0.0", "1.9.999"))).await;
    let b = runtime(&store, "b", Some(range("2.0.0", "2.9.999"))).await;
    assert_eq!(completed_by(&store, "x").await, "a");
    assert_eq!(completed_by(&store, "y").await, "b");
    stop([a, b]).await;
}

/// Scenario 17.
pub async fn overlapping_version_ranges_both_can_process(store: Arc<dyn Provider>) {
    let ids: Vec<String> = (0..20).map(|number| format!("i{number}")).collect();
    let pins: Vec<_> = ids.iter().map(|id| (id.as_str(), Some("2.5.0"))).collect();
    seed(&*store, &pins).await;
    let a = runtime(&store, "a", Some(range("1.0.0", "2.9.999"))).await;
    let b = runtime(&store, "b", Some(range("2.0.0", "3.9.999"))).await;
    for id in &ids {
        let by = completed_by(&store, id).await;
        assert!(["a", "b"].contains(&by.as_str()), "{by}");
        let history = store.read(id).await.unwrap();
        let ends = history.iter().filter(|event| event.event_id == history.len() as u64);
        assert_eq!((ends.count(), history.len()), (1, 4), "{history:?}");
    }
    stop([a, b]).await;
}

/// Scenario 18.
pub async fn mixed_cluster_compatible_and_incompatible_items(store: Arc<dyn Provider>) {
    let pins = ["1.0.0", "2.0.0", "1.5.0", "2.5.0", "1.9.9"].map(Some);
    let pins: Vec<_> = ["i0", "i1", "i2", "i3", "i4"].into_iter().zip(pins).collect();
    seed(&*store, &pins).await;
    let (a, b) = tokio::join!(
        runtime(&store, "a", Some(range("1.0.0", "1.9.999"))),
        runtime(&store, "b", Some(range("2.0.0", "2.9.999"))),
    );
    for (id, pin) in pins {
        let right = if pin < Some("2") { "a" } else { "b" };
        assert_eq!(completed_by(&store, id).await, right, "{id}");
    }
    stop([a, b]).await;
}

/// Scenario 19.
pub async fn execution_metadata_includes_pinned_version_on_new_orchestration(
    store: Arc<dyn Provider>,
) {
    let first = runtime(&store, "first", None).await;
    let client = Client::new(Arc::clone(&store));
    client.start_orchestration("new", "Main", "").await.unwrap();
    while store.read("new").await.unwrap().len() < 2 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    stop([first]).await;
    client.raise_event("new", "go", "x").await.unwrap();
    // A runtime that accepts every version but this one is not given it; one that accepts it, is.
    let current = v(CURRENT);
    let next = Version::new(current.major, current.minor, current.patch + 1);
    let others =
        vec![SemverRange::new(next, v("99.0.0")), SemverRange::new(v("0.0.0"), v("0.1.99"))];
    let others = DispatcherCapabilityFilter { supported_duroxide_versions: others };
    let none = store.fetch_turn(LOCK, Duration::ZERO, Some(&others)).await.unwrap();
    assert!(none.is_none(), "{none:?}");
    let this = vec![SemverRange::new(current.clone(), current)];
    let this = DispatcherCapabilityFilter { supported_duroxide_versions: this };
    let turn = store.fetch_turn(LOCK, Duration::ZERO, Some(&this)).await.unwrap();
    assert_eq!(turn.expect("a turn").item.instance, "new");
}

/// Scenario 20.
pub async fn existing_executions_without_pinned_version_remain_fetchable(store: Arc<dyn Provider>) {
    seed(&*store, &[("old", None)]).await;
    let filter = vec![range("7.0.0", "7.0.0")];
    let filter = DispatcherCapabilityFilter { supported_duroxide_versions: filter };
    let turn = store.fetch_turn(LOCK, Duration::ZERO, Some(&filter)).await.unwrap();
    let turn = turn.expect("a turn");
    assert_eq!(turn.item.instance, "old");
    store.abandon_orchestration_item(&turn.lock_token, None, true).await.unwrap();
    let runtime = runtime(&store, "default", None).await;
    assert_eq!(completed_by(&store, "old").await, "default");
    stop([runtime]).await;
}

/// Scenario 26.
pub async fn default_supported_range_includes_current_and_older_versions(store: Arc<dyn Provider>) {
    let pins = [("a", Some("0.0.1")), ("b", Some("0.1.5")), ("c", Some(CURRENT))];
    seed(&*store, &pins).await;
    let runtime = runtime(&store, "default", None).await;
    for (id, _) in pins {
        assert_eq!(completed_by(&store, id).await, "default");
    }
    stop([runtime]).await;
}

/// Scenario 27.
pub async fn default_supported_range_excludes_future_versions(store: Arc<dyn Provider>) {
    seed(&*store, &[("future", Some("99.0.0"))]).await;
    let runtime = runtime(&store, "default", None).await;
    assert_left_alone(&store, &["future"]).await;
    stop([runtime]).await;
}

/// Scenario 28.
pub async fn custom_supported_replay_versions_narrows_range(store: Arc<dyn Provider>) {
    let pins = [("older", Some("0.9.0")), ("right", Some("1.5.0")), ("newer", Some("2.0.0"))];
    seed(&*store, &pins).await;
    let runtime = runtime(&store, "narrow", Some(range("1.0.0", "1.9.999"))).await;
    assert_eq!(completed_by(&store, "right").await, "narrow");
    let client = Client::new(Arc::clone(&store));
    for id in ["older", "newer"] {
        let status = client.get_orchestration_status(id).await.unwrap();
        assert!(matches!(status, OrchestrationStatus::Running { .. }), "{id}: {status:?}");
    }
    stop([runtime]).await;
}

/// Scenario 29. `damage` makes the stored events of an instance unreadable.
pub async fn wide_supported_range_drains_stuck_items_via_deserialization_error(
    store: Arc<dyn Provider>,
    damage: impl AsyncFn(&str),
) {
    seed(&*store, &[("stuck", Some("99.0.0"))]).await;
    damage("stuck").await;
    let default = runtime(&store, "default", None).await;
    assert_left_alone(&store, &[]).await;
    let client = Client::new(Arc::clone(&store));
    assert_eq!(client.get_instance_info("stuck").await.unwrap().status, "Running");
    stop([default]).await;
    let wide = runtime(&store, "wide", Some(range("0.0.0", "99.0.0"))).await;
    // Its history is still unreadable, so the status is asked for where that does not matter.
    let began = Instant::now();
    let output = loop {
        let info = client.get_instance_info("stuck").await.unwrap();
        if info.status == "Failed" {
            break info.output.unwrap_or_default();
        }
        assert!(began.elapsed() < SOON, "{info:?}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    };
    assert!(output.contains("poison"), "{output}");
    stop([wide]).await;
}

/// The scenarios as tests, each on a store that `$open` yields; skipped where it yields none.
#[macro_export]
macro_rules! rolling_upgrade_tests {
    ($open:expr; $($scenario:ident),* $(,)?) => {
        $(
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $scenario() {
                let Some(store) = $open.await else { return };
                $crate::rolling::$scenario(store).await;
            }
        )*
    };
    ($open:expr) => {
        $crate::rolling_upgrade_tests!($open;
            two_runtimes_different_version_ranges_route_correctly,
            overlapping_version_ranges_both_can_process,
            mixed_cluster_compatible_and_incompatible_items,
            execution_metadata_includes_pinned_version_on_new_orchestration,
            existing_executions_without_pinned_version_remain_fetchable,
            default_supported_range_includes_current_and_older_versions,
            default_supported_range_excludes_future_versions,
            custom_supported_replay_versions_narrows_range,
        );
    };
}
