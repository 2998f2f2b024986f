//! The stage of these checks: a store, code for the instance `a`, runtimes where a check wants one,
//! and a cold look at what is stored.
//!
//! Messages sent while no runtime runs arrive in one batch, in the order they were sent. Timers of
//! the code are an hour long and fired by hand, so nothing here depends on how fast anything is.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use duroxide_core::model::{Event, EventKind, WorkItem};
use semver::Version;
use tokio::runtime::Handle;
use tokio::time::{Instant, sleep};

use crate::provider_validation::ProviderFactory;
use crate::provider_validation::lab::{Lab, Promise, lab};
use crate::provider_validation::words::*;
use crate::runtime::registry::ActivityRegistry;
use crate::runtime::replay_engine::ReplayEngine;
use crate::runtime::{Runtime, UnregisteredBackoffConfig};
use crate::{
    Client, OrchestrationContext, OrchestrationRegistry, OrchestrationStatus, RuntimeOptions,
};

pub(super) const SECTION: &str = "replay";
/// A timer that never fires by itself.
pub(super) const HOUR: Duration = Duration::from_secs(3600);
/// Longest wait, besides lock times, for what a runtime should do at once.
const PATIENCE: Duration = Duration::from_secs(15);
const LOOK_AGAIN: Duration = Duration::from_millis(10);

/// A store and the code that runtimes on it know.
pub(super) struct Scene {
    pub(super) lab: Lab,
    pub(super) options: RuntimeOptions,
    code: OrchestrationRegistry,
}

/// A fresh store, and runtimes that know `code` as version 1.0.0 of `Orch`.
pub(super) async fn scene<F, Fut>(
    factory: &dyn ProviderFactory,
    (rule, says): (&'static str, &'static str),
    code: F,
) -> Scene
where
    F: Fn(OrchestrationContext, String) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<String, String>> + Send + 'static,
{
    let lab = lab(factory, Promise { rule, says, section: SECTION }).await;
    let backoff =
        UnregisteredBackoffConfig { base_delay: LOOK_AGAIN, max_delay: Duration::from_millis(40) };
    let options = RuntimeOptions {
        dispatcher_min_poll_interval: LOOK_AGAIN,
        dispatcher_long_poll_timeout: Duration::from_millis(100),
        orchestrator_lock_timeout: lab.lock,
        worker_concurrency: 0,
        unregistered_backoff: backoff,
        max_attempts: 10_000,
        ..RuntimeOptions::default()
    };
    Scene { lab, options, code: OrchestrationRegistry::builder().register("Orch", code).build() }
}

/// A runtime that runs until the check is done with it, or has failed.
pub(super) struct Running(Option<Arc<Runtime>>);

impl Running {
    /// How many turns it has taken.
    pub(super) fn turns_taken(&self) -> u64 {
        let counts = self.0.as_ref().and_then(|runtime| runtime.metrics_snapshot());
        counts.map_or(0, |counts| counts.orch_dispatcher_items_fetched)
    }

    pub(super) async fn stop(mut self) {
        if let Some(runtime) = self.0.take() {
            runtime.shutdown(None).await;
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let (Some(runtime), Ok(tokio)) = (self.0.take(), Handle::try_current()) {
            tokio.spawn(runtime.shutdown(Some(0)));
        }
    }
}

impl Scene {
    /// Registers more code.
    pub(super) fn knows<F, Fut>(mut self, name: &str, version: &str, code: F) -> Self
    where
        F: Fn(OrchestrationContext, String) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<String, String>> + Send + 'static,
    {
        let known = OrchestrationRegistry::builder_from(&self.code);
        self.code = known.register_versioned(name, version, code).build();
        self
    }

    /// A runtime that knows nothing but the code and the store.
    pub(super) async fn run(&self) -> Running {
        let activities = ActivityRegistry::builder().build();
        let (store, code) = (Arc::clone(&self.lab.store), self.code.clone());
        let options = self.options.clone();
        Running(Some(Runtime::start_with_options(store, activities, code, options).await))
    }

    pub(super) async fn send(&self, messages: impl IntoIterator<Item = WorkItem>) {
        for message in messages {
            self.lab.send(message).await;
        }
    }

    /// Lets `a` take these messages in one batch.
    pub(super) async fn batch(&self, messages: impl IntoIterator<Item = WorkItem>) {
        let before = self.history("a").await;
        self.send(messages).await;
        let running = self.run().await;
        self.until("the messages to make a turn", async || self.history("a").await != before).await;
        running.stop().await;
    }

    /// Waits until what a runtime should do has happened.
    pub(super) async fn until(&self, what: &str, happened: impl AsyncFn() -> bool) {
        let deadline = Instant::now() + self.patience();
        while !happened().await {
            if deadline <= Instant::now() {
                self.lab.broken(what, self.history("a").await);
            }
            sleep(LOOK_AGAIN).await;
        }
    }

    /// Lets a runtime work until an instance has ended: its output, or the text of its error.
    pub(super) async fn outcome(&self, instance: &str) -> Result<String, String> {
        let running = self.run().await;
        let outcome = self.ended(instance).await;
        running.stop().await;
        outcome
    }

    /// Waits until an instance has ended, while a runtime runs.
    pub(super) async fn ended(&self, instance: &str) -> Result<String, String> {
        let client = Client::new(Arc::clone(&self.lab.store));
        match client.wait_for_orchestration(instance, self.patience()).await {
            Ok(OrchestrationStatus::Completed { output, .. }) => Ok(output),
            Ok(OrchestrationStatus::Failed { details, .. }) => Err(details.display_message()),
            other => {
                let expected = format!("`{instance}` to end, while a runtime works on it");
                self.lab.broken(&expected, (other, self.history(instance).await))
            }
        }
    }

    /// Events of the latest execution.
    pub(super) async fn history(&self, instance: &str) -> Vec<Event> {
        self.lab.ok("read", self.lab.read(instance).await)
    }

    /// Events of one execution of `a`.
    pub(super) async fn execution(&self, number: u64) -> Vec<Event> {
        self.lab.ok("read_with_execution", self.lab.read_with_execution("a", number).await)
    }

    /// Replays an ended execution of `a` from what is stored, as a node would that has just come up.
    /// It must come to this end again, and want nothing that is not there.
    pub(super) async fn replays(&self, number: u64, end: &str) {
        let mut events = self.execution(number).await;
        let Some((name, version, input)) = events.first().and_then(begun) else {
            self.lab.broken("a stored history that begins with its start", events)
        };
        let version = version.parse().unwrap_or_else(|_| Version::new(1, 0, 0));
        let Some(code) = self.code.resolve_handler_exact(&name, &version) else {
            self.lab.broken("the stored start to name the code that ran", (name, version));
        };
        let ended_at = events.iter().position(Event::is_terminal).unwrap_or(events.len());
        events.truncate(ended_at);
        let mut engine = ReplayEngine::new("a".into(), number, events);
        let result =
            engine.execute_orchestration(code, input, name, version.to_string(), "validation");
        self.lab.same("the result of a replay of the stored history", format!("{result:?}"), end);
        self.lab.same("what that replay would add", engine.history_delta(), &[][..]);
    }

    /// Brings `a` to the gap between two executions: the first has continued as new, the message
    /// that starts the second is not there.
    pub(super) async fn between_executions(&self, stamp: &str) {
        let end = event(2, EventKind::OrchestrationContinuedAsNew { input: "next".into() });
        let mut turn = first_commit("a").event(end).ends("ContinuedAsNew", "next");
        turn.metadata.pinned_duroxide_version = Version::parse(stamp).ok();
        for event in &mut turn.history_delta {
            event.duroxide_version = stamp.into();
        }
        self.lab.begin_as("a", turn).await;
    }

    fn patience(&self) -> Duration {
        PATIENCE + self.lab.lock * 3
    }
}

pub(super) fn fired(timer: u64) -> WorkItem {
    WorkItem::TimerFired { instance: "a".into(), execution_id: 1, id: timer, fire_at_ms: 1 }
}

pub(super) fn signal(name: &str, data: &str) -> WorkItem {
    WorkItem::ExternalRaised { instance: "a".into(), name: name.into(), data: data.into() }
}

/// A second start of `a`.
pub(super) fn start_as(name: &str, version: &str, input: &str) -> WorkItem {
    WorkItem::StartOrchestration {
        instance: "a".into(),
        orchestration: name.into(),
        input: input.into(),
        version: Some(version.into()),
        parent_instance: None,
        parent_id: None,
        parent_execution_id: None,
        execution_id: 1,
    }
}

/// A start of `a` as the child that event 2 of `p` asks for.
pub(super) fn start_as_child() -> WorkItem {
    let mut start = start_as("Orch", "1.0.0", "child");
    if let WorkItem::StartOrchestration {
        parent_instance, parent_id, parent_execution_id, ..
    } = &mut start
    {
        (*parent_instance, *parent_id) = (Some("p".into()), Some(2));
        *parent_execution_id = Some(1);
    }
    start
}

/// Name, version and input of a start event.
pub(super) fn begun(event: &Event) -> Option<(String, String, String)> {
    match &event.kind {
        EventKind::OrchestrationStarted { name, version, input, .. } => {
            Some((name.clone(), version.clone(), input.clone()))
        }
        _ => None,
    }
}
