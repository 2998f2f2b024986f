//! A store around a store, as callers write them for logging or fault injection: it forwards the
//! listed methods and knows nothing of newer ones. It must see every message all the same (R8.130,
//! R8.132).

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use duroxide::providers::memory::MemoryProvider;
use duroxide::providers::*;
use duroxide::runtime::Runtime;
use duroxide::runtime::registry::ActivityRegistry;
use duroxide::{
    Client, Event, OrchestrationContext, OrchestrationRegistry, OrchestrationStatus, SystemStats,
};

struct Spy {
    inner: Arc<dyn Provider>,
    calls: Arc<Mutex<BTreeSet<&'static str>>>,
}

impl Spy {
    fn note(&self, call: &'static str) -> &dyn Provider {
        self.calls.lock().unwrap().insert(call);
        &*self.inner
    }
}

/// Forwards the listed methods; the trait's own defaults stand for all others.
macro_rules! forward {
    ($(fn $name:ident(&self $(, $arg:ident: $type:ty)*) -> $result:ty;)+) => {
        #[async_trait]
        impl Provider for Spy {
            fn name(&self) -> &str {
                self.inner.name()
            }
            fn version(&self) -> &str {
                self.inner.version()
            }
            fn as_management_capability(&self) -> Option<&dyn ProviderAdmin> {
                self.inner.as_management_capability()
            }
            $(
                #[allow(clippy::too_many_arguments)]
                async fn $name(&self $(, $arg: $type)*) -> Result<$result, ProviderError> {
                    self.note(stringify!($name)).$name($($arg),*).await
                }
            )+
        }
    };
}

forward! {
    fn fetch_orchestration_item(
        &self, lock: Duration, poll: Duration, filter: Option<&DispatcherCapabilityFilter>
    ) -> Option<(OrchestrationItem, String, u32)>;
    fn ack_orchestration_item(
        &self, token: &str, execution_id: u64, delta: Vec<Event>, worker: Vec<WorkItem>,
        orchestrator: Vec<WorkItem>, metadata: ExecutionMetadata,
        cancelled: Vec<ScheduledActivityIdentifier>
    ) -> ();
    fn abandon_orchestration_item(
        &self, token: &str, delay: Option<Duration>, ignore_attempt: bool
    ) -> ();
    fn read(&self, instance: &str) -> Vec<Event>;
    fn read_with_execution(&self, instance: &str, execution_id: u64) -> Vec<Event>;
    fn append_with_execution(&self, instance: &str, execution_id: u64, new: Vec<Event>) -> ();
    fn enqueue_for_worker(&self, item: WorkItem) -> ();
    fn fetch_work_item(
        &self, lock: Duration, poll: Duration, session: Option<&SessionFetchConfig>,
        tags: &TagFilter
    ) -> Option<(WorkItem, String, u32)>;
    fn ack_work_item(&self, token: &str, completion: Option<WorkItem>) -> ();
    fn renew_work_item_lock(&self, token: &str, extend_for: Duration) -> ();
    fn renew_session_lock(
        &self, owners: &[&str], extend_for: Duration, idle_timeout: Duration
    ) -> usize;
    fn cleanup_orphaned_sessions(&self, idle_timeout: Duration) -> usize;
    fn abandon_work_item(&self, token: &str, delay: Option<Duration>, ignore: bool) -> ();
    fn renew_orchestration_item_lock(&self, token: &str, extend_for: Duration) -> ();
    fn enqueue_for_orchestrator(&self, item: WorkItem, delay: Option<Duration>) -> ();
    fn get_custom_status(&self, instance: &str, seen: u64) -> Option<(Option<String>, u64)>;
    fn get_kv_value(&self, instance: &str, key: &str) -> Option<String>;
    fn get_kv_all_values(&self, instance: &str) -> HashMap<String, String>;
    fn get_instance_stats(&self, instance: &str) -> Option<SystemStats>;
}

#[tokio::test]
async fn a_runtime_works_through_it() {
    let calls = Arc::new(Mutex::new(BTreeSet::new()));
    let inner: Arc<dyn Provider> = Arc::new(MemoryProvider::new());
    let store: Arc<dyn Provider> = Arc::new(Spy { inner, calls: Arc::clone(&calls) });
    let activities = ActivityRegistry::builder()
        .register("Echo", |_ctx, input: String| async move { Ok(input) })
        .build();
    let orchestrations = OrchestrationRegistry::builder()
        .register("Hello", |ctx: OrchestrationContext, input: String| async move {
            ctx.schedule_activity("Echo", input).await
        })
        .build();
    let runtime = Runtime::start_with_store(store.clone(), activities, orchestrations).await;
    let client = Client::new(store);
    client.start_orchestration("i", "Hello", "x").await.unwrap();
    let status = client.wait_for_orchestration("i", Duration::from_secs(20)).await.unwrap();
    assert!(matches!(status, OrchestrationStatus::Completed { output, .. } if output == "x"));
    assert_eq!(client.list_all_instances().await.unwrap(), ["i"]);
    runtime.shutdown(None).await;

    let seen = calls.lock().unwrap();
    for call in [
        "enqueue_for_orchestrator",
        "fetch_orchestration_item",
        "ack_orchestration_item",
        "fetch_work_item",
        "ack_work_item",
        "read",
        "get_custom_status",
    ] {
        assert!(seen.contains(call), "{call} went past the decorator: {seen:?}");
    }
}
