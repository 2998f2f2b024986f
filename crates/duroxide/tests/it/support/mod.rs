//! A small vocabulary for runtime tests: a world with a store, handlers and a runtime.

pub mod door;
pub mod faults;
mod faulty_provider;
pub mod look;
pub mod logs;
pub mod numbers;

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use duroxide::providers::Provider;
use duroxide::providers::invariants::check_invariants;
use duroxide::providers::memory::MemoryProvider;
use duroxide::runtime::registry::{
    ActivityRegistry, ActivityRegistryBuilder, OrchestrationRegistryBuilder,
};
use duroxide::runtime::{Runtime, RuntimeTuning};
use duroxide::{
    ActivityContext, Client, ErrorDetails, Event, OrchestrationContext, OrchestrationRegistry,
    OrchestrationStatus, RuntimeOptions,
};

pub use door::Door;

/// Longest a test waits for something that should happen at once.
pub const PATIENCE: Duration = Duration::from_secs(60);
/// Patience of tests on paused time, where a day costs nothing.
pub const DAY: Duration = Duration::from_secs(24 * 3600);

/// Handlers and options of a world that has not begun.
pub struct WorldBuilder {
    store: Arc<dyn Provider>,
    memory: Arc<MemoryProvider>,
    orchestrations: OrchestrationRegistryBuilder,
    activities: ActivityRegistryBuilder,
    options: RuntimeOptions,
    tuning: RuntimeTuning,
    patience: Duration,
}

/// A fresh world on a memory store.
pub fn world() -> WorldBuilder {
    world_on(Arc::new(MemoryProvider::new()))
}

/// A world on an existing memory store.
pub fn world_on(memory: Arc<MemoryProvider>) -> WorldBuilder {
    WorldBuilder {
        store: memory.clone(),
        memory,
        orchestrations: OrchestrationRegistry::builder(),
        activities: ActivityRegistry::builder(),
        options: RuntimeOptions::default(),
        tuning: RuntimeTuning::default(),
        patience: PATIENCE,
    }
}

impl WorldBuilder {
    pub fn orchestration<F, Fut>(mut self, name: &str, f: F) -> Self
    where
        F: Fn(OrchestrationContext, String) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<String, String>> + Send + 'static,
    {
        self.orchestrations = self.orchestrations.register(name, f);
        self
    }

    pub fn orchestration_version<F, Fut>(mut self, name: &str, version: &str, f: F) -> Self
    where
        F: Fn(OrchestrationContext, String) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<String, String>> + Send + 'static,
    {
        self.orchestrations = self.orchestrations.register_versioned(name, version, f);
        self
    }

    pub fn activity<F, Fut>(mut self, name: &str, f: F) -> Self
    where
        F: Fn(ActivityContext, String) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<String, String>> + Send + 'static,
    {
        self.activities = self.activities.register(name, f);
        self
    }

    /// Registers activities in another way.
    pub fn activities(
        mut self,
        register: impl FnOnce(ActivityRegistryBuilder) -> ActivityRegistryBuilder,
    ) -> Self {
        self.activities = register(self.activities);
        self
    }

    /// An activity that answers with its own name and input.
    pub fn echo(self, name: &'static str) -> Self {
        self.activity(name, move |_ctx, input| async move { Ok(format!("{name}:{input}")) })
    }

    /// An activity that answers likewise, once it has been let through a door.
    pub fn behind(self, name: &'static str, door: &Door) -> Self {
        let door = door.clone();
        self.activity(name, move |_ctx, input| {
            let door = door.clone();
            async move {
                door.pass().await;
                Ok(format!("{name}:{input}"))
            }
        })
    }

    pub fn options(mut self, change: impl FnOnce(&mut RuntimeOptions)) -> Self {
        change(&mut self.options);
        self
    }

    pub fn tuning(mut self, change: impl FnOnce(&mut RuntimeTuning)) -> Self {
        change(&mut self.tuning);
        self
    }

    /// Waits for as long as it takes, on paused time.
    pub fn patient(mut self) -> Self {
        self.patience = DAY;
        self
    }

    /// Puts something between the runtime and the store; the client talks to the same.
    pub fn through(mut self, wrap: impl FnOnce(Arc<dyn Provider>) -> Arc<dyn Provider>) -> Self {
        self.store = wrap(self.store);
        self
    }

    pub async fn start(self) -> World {
        let registries = (self.activities.build(), self.orchestrations.build());
        let (options, tuning) = (self.options, self.tuning);
        let runtime =
            Runtime::start_with_tuning(self.store.clone(), registries, options, tuning).await;
        let client = Client::new(self.store);
        World { memory: self.memory, client, runtime, patience: self.patience }
    }
}

/// A store with a running runtime.
pub struct World {
    pub memory: Arc<MemoryProvider>,
    pub client: Client,
    pub runtime: Arc<Runtime>,
    pub patience: Duration,
}

impl World {
    /// Starts an instance.
    pub async fn begin(&self, instance: &str, name: &str, input: &str) {
        self.client.start_orchestration(instance, name, input).await.unwrap();
    }

    /// Waits until an instance ends.
    pub async fn ended(&self, instance: &str) -> OrchestrationStatus {
        match self.client.wait_for_orchestration(instance, self.patience).await {
            Ok(status) => status,
            Err(error) => {
                let history = self.history(instance).await;
                panic!("{instance} did not end: {error}; history: {history:#?}")
            }
        }
    }

    /// Waits until an instance completes; its output.
    pub async fn output(&self, instance: &str) -> String {
        match self.ended(instance).await {
            OrchestrationStatus::Completed { output, .. } => output,
            other => panic!("{instance} should have completed: {other:?}"),
        }
    }

    /// Waits until an instance fails; its error.
    pub async fn error(&self, instance: &str) -> ErrorDetails {
        match self.ended(instance).await {
            OrchestrationStatus::Failed { details, .. } => details,
            other => panic!("{instance} should have failed: {other:?}"),
        }
    }

    /// Starts an instance and waits for its output.
    pub async fn run(&self, instance: &str, name: &str, input: &str) -> String {
        self.begin(instance, name, input).await;
        self.output(instance).await
    }

    /// Starts an instance and waits for its error.
    pub async fn run_to_error(&self, instance: &str, name: &str, input: &str) -> ErrorDetails {
        self.begin(instance, name, input).await;
        self.error(instance).await
    }

    /// Events of the latest execution.
    pub async fn history(&self, instance: &str) -> Vec<Event> {
        self.memory.read(instance).await.unwrap()
    }

    /// Waits, woken by commits, until a condition on an instance's history holds.
    pub async fn until(&self, instance: &str, holds: impl Fn(&[Event]) -> bool) -> Vec<Event> {
        tokio::time::timeout(self.patience, async {
            let mut seen = 0;
            loop {
                let wait = self.memory.wait_for_commit(instance, seen, Duration::ZERO).await;
                seen = wait.unwrap_or(seen);
                let history = self.history(instance).await;
                if holds(&history) {
                    return history;
                }
                let next = self.memory.wait_for_commit(instance, seen, self.patience).await;
                seen = next.unwrap_or(seen);
            }
        })
        .await
        .unwrap_or_else(|_| panic!("{instance} never got there"))
    }

    /// Stops the runtime and checks that what is stored makes sense.
    pub async fn finish(self) {
        let World { memory, client, runtime, .. } = self;
        drop(client);
        runtime.shutdown(None).await;
        check(&memory).await;
    }
}

/// The invariants of stored state, after whatever happened.
pub async fn check(memory: &MemoryProvider) {
    if let Err(mut violations) = check_invariants(memory).await {
        // Some tests damage histories on purpose.
        violations.retain(|violation| !violation.contains("the history is unreadable"));
        if violations.is_empty() {
            return;
        }
        panic!("stored state makes no sense:\n  {}", violations.join("\n  "));
    }
}

/// The kinds of a history, one word each.
pub fn kinds(history: &[Event]) -> Vec<String> {
    history
        .iter()
        .map(|event| {
            let debug = format!("{:?}", event.kind);
            debug.split([' ', '{']).next().unwrap_or_default().to_owned()
        })
        .collect()
}
