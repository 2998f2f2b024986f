//! The runtime: fetches turns and activities, runs them, commits what they did.

mod options;
mod node;
mod company;
mod facts;
mod reasons;
mod warm;
mod tasks;
mod long_turns;
mod upkeep;
pub(crate) mod catch_panic;
mod builtin;
mod activity;
mod handlers;
pub mod registry;
pub(crate) mod dispatchers;
pub mod execution;
pub mod observability;
#[cfg(feature = "test-hooks")]
pub mod test_hooks;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

pub use activity::ActivityContext;
pub use duroxide_core::context::{FnOrchestration, OrchestrationHandler};
pub use duroxide_core::model::{OrchestrationDescriptor, OrchestrationStatus, kind_of, limits};
pub use duroxide_core::replay as replay_engine;
pub use duroxide_core::replay::{HistoryManager, WorkItemReader};
pub use handlers::{ActivityHandler, ActivityOptions, FnActivity};
pub use observability::{LogFormat, ObservabilityConfig};
pub use options::{
    ForeignWait, RuntimeOptions, RuntimeTuning, UnregisteredBackoffConfig, WarmMode, WarmOptions,
};
pub use registry::{OrchestrationRegistry, OrchestrationRegistryBuilder, VersionPolicy};

use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use self::dispatchers::lease::{LeaseKeeper, LockKind};
use self::dispatchers::orchestration;
use self::dispatchers::worker::{self, SessionLeases, Slot, pass_on_in_time};
use self::node::Node;
use self::observability::{MetricsProvider, MetricsSnapshot, ObservabilityHandle, gauges, targets};
use self::registry::ActivityRegistry;
use self::tasks::Tasks;
use self::upkeep::{Upkeep, Watch};
use crate::EventKind;
use crate::providers::instrumented::InstrumentedProvider;
use crate::providers::{Provider, current_build_version};

/// Grace period of a shutdown that names none.
const DEFAULT_GRACE: Duration = Duration::from_millis(1_000);

/// A running node: its dispatchers take work from a store and do it.
///
/// Any number of runtimes, in any number of processes, may share a store. What one leaves undone,
/// another takes up.
///
/// ```
/// # use std::{sync::Arc, time::Duration};
/// # use duroxide::{*, providers::memory::MemoryProvider};
/// # use duroxide::runtime::{Runtime, registry::ActivityRegistry};
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let activities = ActivityRegistry::builder().build();
/// let orchestrations = OrchestrationRegistry::builder()
///     .register("Ask", |ctx: OrchestrationContext, question: String| async move {
///         ctx.set_custom_status(question);
///         Ok(ctx.schedule_wait("Answer").await)
///     })
///     .build();
/// let store = Arc::new(MemoryProvider::new());
/// let client = Client::new(store.clone());
/// let patience = Duration::from_secs(5);
///
/// let first =
///     Runtime::start_with_store(store.clone(), activities.clone(), orchestrations.clone()).await;
/// client.start_orchestration("ask-1", "Ask", "tea?").await?;
/// client.wait_for_status_change("ask-1", 0, patience, patience).await?;
/// first.shutdown(Some(0)).await;
///
/// // Nothing runs now, but nothing is lost either.
/// client.raise_event("ask-1", "Answer", "yes, please").await?;
/// let second = Runtime::start_with_store(store, activities, orchestrations).await;
/// let answer: String = client.wait_for_orchestration_typed("ask-1", patience).await??;
/// assert_eq!(answer, "yes, please");
/// second.shutdown(None).await;
/// # Ok(())
/// # }
/// ```
pub struct Runtime {
    observability: Option<ObservabilityHandle>,
    tasks: Tasks,
    /// Gone after a shutdown, and with it this runtime's hold on the store (R7.127a).
    node: Mutex<Option<Arc<Node>>>,
}

impl Runtime {
    /// Starts a runtime on a SQLite store in memory, which is gone with it (R7.1).
    ///
    /// ```
    /// # use duroxide::OrchestrationRegistry;
    /// # use duroxide::runtime::{Runtime, registry::ActivityRegistry};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// let (activities, orchestrations) =
    ///     (ActivityRegistry::builder().build(), OrchestrationRegistry::builder().build());
    /// let runtime = Runtime::start(activities, orchestrations).await;
    /// runtime.shutdown(None).await;
    /// # }
    /// ```
    ///
    /// # Panics
    /// If there is no memory for it, or a name and version was registered twice.
    #[cfg(feature = "sqlite")]
    pub async fn start(
        activity_registry: ActivityRegistry,
        orchestration_registry: OrchestrationRegistry,
    ) -> Arc<Self> {
        let store = crate::providers::sqlite::SqliteProvider::new_in_memory().await;
        #[expect(clippy::expect_used, reason = "inherited signature without an error")]
        let store = store.expect("a store in memory can be made");
        Self::start_with_store(Arc::new(store), activity_registry, orchestration_registry).await
    }

    /// Starts a runtime on a store with default options.
    ///
    /// # Panics
    /// If a name and version was registered twice.
    pub async fn start_with_store(
        history_store: Arc<dyn Provider>,
        activity_registry: ActivityRegistry,
        orchestration_registry: OrchestrationRegistry,
    ) -> Arc<Self> {
        let options = RuntimeOptions::default();
        Self::start_with_options(history_store, activity_registry, orchestration_registry, options)
            .await
    }

    /// Starts a runtime on a store.
    ///
    /// ```
    /// # use std::{sync::Arc, time::Duration};
    /// # use duroxide::{OrchestrationRegistry, providers::memory::MemoryProvider};
    /// # use duroxide::runtime::registry::ActivityRegistry;
    /// use duroxide::RuntimeOptions;
    /// use duroxide::runtime::Runtime;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// # let store = Arc::new(MemoryProvider::new());
    /// # let (activities, orchestrations) =
    /// #     (ActivityRegistry::builder().build(), OrchestrationRegistry::builder().build());
    /// let options = RuntimeOptions {
    ///     worker_concurrency: 16,
    ///     max_attempts: 5,
    ///     worker_lock_timeout: Duration::from_secs(60),
    ///     ..RuntimeOptions::default()
    /// };
    /// let runtime = Runtime::start_with_options(store, activities, orchestrations, options).await;
    ///
    /// // Whatever is in hand has five seconds to end; the rest is repeated by the next runtime.
    /// runtime.shutdown(Some(5_000)).await;
    /// # }
    /// ```
    ///
    /// # Panics
    /// If the options contradict each other; see [`RuntimeOptions`]. If a name and version was
    /// registered twice; [`RegistryBuilder::build_result`](registry::RegistryBuilder::build_result)
    /// returns that as an error instead.
    pub async fn start_with_options(
        history_store: Arc<dyn Provider>,
        activity_registry: ActivityRegistry,
        orchestration_registry: OrchestrationRegistry,
        options: RuntimeOptions,
    ) -> Arc<Self> {
        let registries = (activity_registry, orchestration_registry);
        Self::start_with_tuning(history_store, registries, options, RuntimeTuning::default()).await
    }

    /// Starts a runtime on a store, with settings beyond the inherited options.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use duroxide::{*, providers::memory::MemoryProvider};
    /// # use duroxide::runtime::{ForeignWait, Runtime, RuntimeTuning, registry::ActivityRegistry};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// # let store = Arc::new(MemoryProvider::new());
    /// # let (activities, orchestrations) =
    /// #     (ActivityRegistry::builder().build(), OrchestrationRegistry::builder().build());
    /// let tuning = RuntimeTuning { foreign_wait: ForeignWait::Fail, ..RuntimeTuning::default() };
    /// let (registries, options) = ((activities, orchestrations), RuntimeOptions::default());
    /// let runtime = Runtime::start_with_tuning(store, registries, options, tuning).await;
    /// # runtime.shutdown(None).await;
    /// # }
    /// ```
    ///
    /// # Panics
    /// If the options contradict each other; see [`RuntimeOptions`]. If a name and version was
    /// registered twice; [`RegistryBuilder::build_result`](registry::RegistryBuilder::build_result)
    /// returns that as an error instead.
    pub async fn start_with_tuning(
        history_store: Arc<dyn Provider>,
        registries: (ActivityRegistry, OrchestrationRegistry),
        options: RuntimeOptions,
        tuning: RuntimeTuning,
    ) -> Arc<Self> {
        options.check();
        registries.0.check();
        registries.1.check();
        let observability = ObservabilityHandle::init(&options.observability).ok();
        let metrics = match &observability {
            Some(handle) => Arc::clone(handle.metrics_provider()),
            None => Arc::new(MetricsProvider::default()),
        };
        let measured = InstrumentedProvider::new(history_store, Some(Arc::clone(&metrics)));
        let watched = (Arc::clone(measured.health()), metrics);
        let node = Node::new(Arc::new(measured), registries, (options, tuning), watched);
        log_start(&node);
        let runtime =
            Self { observability, tasks: Tasks::default(), node: Mutex::new(Some(Arc::new(node))) };
        runtime.spawn_all();
        Arc::new(runtime)
    }

    /// Stops: takes nothing more, lets what is in hand end for `timeout_ms` (a second if not said),
    /// then aborts it; its locks expire and it is repeated elsewhere. Nothing of this runtime holds
    /// the store afterwards.
    pub async fn shutdown(self: Arc<Self>, timeout_ms: Option<u64>) {
        let grace = timeout_ms.map_or(DEFAULT_GRACE, Duration::from_millis);
        self.tasks.end(grace).await;
        self.node.lock().unwrap_or_else(PoisonError::into_inner).take();
    }

    /// Counters since the start.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use duroxide::{*, providers::memory::MemoryProvider};
    /// # use duroxide::runtime::{Runtime, registry::ActivityRegistry};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// # let store = Arc::new(MemoryProvider::new());
    /// # let (activities, orchestrations) =
    /// #     (ActivityRegistry::builder().build(), OrchestrationRegistry::builder().build());
    /// # let runtime = Runtime::start_with_store(store, activities, orchestrations).await;
    /// if let Some(so_far) = runtime.metrics_snapshot() {
    ///     println!("{} of {} executions failed", so_far.orch_failures, so_far.orch_starts);
    /// }
    /// # runtime.shutdown(None).await;
    /// # }
    /// ```
    pub fn metrics_snapshot(&self) -> Option<MetricsSnapshot> {
        self.observability.as_ref().map(ObservabilityHandle::metrics_snapshot)
    }

    /// Logs and metrics of this runtime.
    pub fn observability_handle(&self) -> Option<&ObservabilityHandle> {
        self.observability.as_ref()
    }

    /// Name, version and parent of an instance, from its latest start event.
    pub async fn get_orchestration_descriptor(
        &self,
        instance: &str,
    ) -> Option<OrchestrationDescriptor> {
        let node = self.node()?;
        let history = node::log_storage_error(instance, node.store.read(instance).await)?;
        history.iter().rev().find_map(|event| match &event.kind {
            EventKind::OrchestrationStarted {
                name, version, parent_instance, parent_id, ..
            } => Some(OrchestrationDescriptor {
                name: name.clone(),
                version: version.clone(),
                parent_instance: parent_instance.clone(),
                parent_id: *parent_id,
            }),
            _ => None,
        })
    }

    fn node(&self) -> Option<Arc<Node>> {
        self.node.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn spawn_all(&self) {
        let Some(node) = self.node() else { return };
        let turn_leases = self.spawn_keeper(
            &node,
            LockKind::Turn,
            node.options.orchestrator_lock_timeout,
            node.options.orchestrator_lock_renewal_buffer,
        );
        let activity_leases = self.spawn_keeper(
            &node,
            LockKind::Activity,
            node.options.worker_lock_timeout,
            node.options.worker_lock_renewal_buffer,
        );
        let mut upkeep: Vec<Arc<dyn Upkeep>> =
            vec![Arc::clone(&turn_leases) as _, Arc::clone(&activity_leases) as _];
        let leases = (turn_leases, Arc::clone(&activity_leases));
        let turns = self.spawn_orchestration_dispatcher(&node, leases);
        let sessions = self.spawn_worker_slots(&node, activity_leases, turns);
        upkeep.extend(sessions.map(|sessions| sessions as _));
        self.spawn_watch(&node, upkeep);
        let told = (Arc::clone(&node.health), Arc::clone(&node.metrics));
        let (store, longest) = (&node.store, node.options.observability.gauge_poll_interval);
        let refresh = gauges::refresh_until(self.tasks.stop(), Arc::clone(store), told, longest);
        self.tasks.spawn_servant(refresh);
    }

    fn spawn_orchestration_dispatcher(
        &self,
        node: &Arc<Node>,
        leases: (Arc<LeaseKeeper>, Arc<LeaseKeeper>),
    ) -> Option<Arc<orchestration::Dispatcher>> {
        let concurrency = node.options.orchestration_concurrency.min(Semaphore::MAX_PERMITS);
        if concurrency == 0 {
            return None;
        }
        let dispatcher = orchestration::Dispatcher::new(Arc::clone(node), leases, concurrency);
        let dispatcher = Arc::new(dispatcher);
        let run = Arc::clone(&dispatcher).run(self.tasks.slot_tracker(), self.tasks.stop());
        self.tasks.spawn_slot(run);
        Some(dispatcher)
    }

    fn spawn_worker_slots(
        &self,
        node: &Arc<Node>,
        leases: Arc<LeaseKeeper>,
        turns: Option<Arc<orchestration::Dispatcher>>,
    ) -> Option<Arc<SessionLeases>> {
        let options = &node.options;
        let dispatcher = worker::Dispatcher::new(Arc::clone(node), leases, turns);
        let suffix = options.worker_node_id.as_ref().unwrap_or(&node.runtime_id);
        let worker_ids: Vec<String> =
            (0..options.worker_concurrency).map(|index| format!("work-{index}-{suffix}")).collect();
        for worker_id in &worker_ids {
            let slot = Slot::new(Arc::clone(&dispatcher), worker_id.clone());
            self.tasks.spawn_slot(slot.run(self.tasks.slot_tracker(), self.tasks.stop()));
        }
        if worker_ids.is_empty() {
            return None;
        }
        let owners = options.worker_node_id.clone().map_or(worker_ids, |node_id| vec![node_id]);
        let (tracker, stop) = (self.tasks.slot_tracker(), self.tasks.stop());
        self.tasks.spawn_slot(pass_on_in_time(Arc::clone(&dispatcher), tracker, stop));
        let sessions = SessionLeases::new(&dispatcher, owners);
        let (store, sweep_every) = (Arc::clone(&node.store), options.session_cleanup_interval);
        let keep = Arc::clone(&sessions).keep(store, sweep_every, self.tasks.stop());
        self.tasks.spawn_servant(keep);
        Some(sessions)
    }

    /// Starts the thread that helps when tasks are late. It ends with the servants, however these do.
    fn spawn_watch(&self, node: &Arc<Node>, upkeep: Vec<Arc<dyn Upkeep>>) {
        let (dismissed, ended) = (self.tasks.dismissed(), CancellationToken::new());
        upkeep::start(Watch {
            upkeep,
            turns: Arc::clone(&node.turns),
            company: Arc::clone(&node.company),
            store: Arc::downgrade(&node.store),
            tracker: self.tasks.servant_tracker(),
            ended: ended.clone(),
        });
        let ended = ended.drop_guard(); // Also if the task is never run.
        self.tasks.spawn_servant(async move {
            dismissed.cancelled().await;
            drop(ended);
        });
    }

    fn spawn_keeper(
        &self,
        node: &Arc<Node>,
        kind: LockKind,
        timeout: Duration,
        buffer: Duration,
    ) -> Arc<LeaseKeeper> {
        let keeper = LeaseKeeper::new(kind, timeout, buffer);
        let (store, tracker) = (Arc::clone(&node.store), self.tasks.servant_tracker());
        self.tasks.spawn_servant(Arc::clone(&keeper).run(store, tracker, self.tasks.dismissed()));
        keeper
    }
}

/// R9.50, R9.51.
fn log_start(node: &Node) {
    tracing::info!(target: targets::RUNTIME, "duroxide runtime ({}) starting with provider {} ({})",
        current_build_version(), node.store.name(), node.store.version());
    let range = node.options.supported_range();
    let supported_range = format!(">={}, <={}", range.min, range.max);
    tracing::info!(target: targets::RUNTIME, %supported_range,
        "Orchestration dispatcher capability filter configured");
}
