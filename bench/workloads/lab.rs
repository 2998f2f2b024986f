//! A store, a client and a runtime, and the few things every case does with them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use duroxide::runtime::{ObservabilityConfig, Runtime};
use duroxide::{Client, EventKind, OrchestrationStatus, RuntimeOptions};

use super::Failure;
use super::args::Args;
use super::handlers;
use super::signals::Signals;
use crate::store::{self, Store};

/// How often a start is tried again before the run is given up.
const START_ATTEMPTS: u32 = 200;
const START_PAUSE: Duration = Duration::from_millis(5);

/// Where a case is measured.
pub(crate) struct Lab {
    pub(crate) args: Args,
    pub(crate) client: Client,
    pub(crate) signals: Arc<Signals>,
    pub(crate) store: Store,
    runtime: Option<Arc<Runtime>>,
    start_errors: AtomicU64,
}

/// How a wait for a result ended.
pub(crate) enum Seen {
    Completed,
    Failed(String),
    TimedOut,
}

impl Lab {
    /// Opens the store; nothing runs yet.
    pub(crate) async fn open(args: Args) -> Result<Self, Failure> {
        let store = store::open(&args).await?;
        Ok(Self {
            args,
            client: Client::new(store.provider.clone()),
            signals: Arc::new(Signals::new()),
            store,
            runtime: None,
            start_errors: AtomicU64::new(0),
        })
    }

    /// Starts the runtime with the settings of the arguments.
    pub(crate) async fn start_runtime(&mut self) {
        let mut options = RuntimeOptions {
            observability: ObservabilityConfig {
                log_level: "off".to_owned(),
                ..ObservabilityConfig::default()
            },
            ..RuntimeOptions::default()
        };
        if let Some(interval) = self.args.poll_ms {
            options.dispatcher_min_poll_interval = Duration::from_millis(interval);
        }
        if let Some(concurrency) = self.args.concurrency {
            options.orchestration_concurrency = concurrency;
            options.worker_concurrency = concurrency;
        }
        let activities = handlers::activities(&self.signals);
        let orchestrations = handlers::orchestrations(&self.signals);
        let provider = self.store.provider.clone();
        let runtime =
            Runtime::start_with_options(provider, activities, orchestrations, options).await;
        self.runtime = Some(runtime);
    }

    /// Starts the runtime and runs one instance, so that connections and caches exist.
    pub(crate) async fn warm_up(&mut self) -> Result<(), Failure> {
        self.start_runtime().await;
        self.start("warm-up", "Child", "hello").await?;
        match self.wait("warm-up", Duration::from_secs(30)).await? {
            Seen::Completed => {
                self.signals.take_span();
                Ok(())
            }
            Seen::Failed(why) => Err(format!("warm-up failed: {why}").into()),
            Seen::TimedOut => Err("warm-up did not finish".into()),
        }
    }

    /// Starts an instance; tries again when the store says no, and counts that.
    pub(crate) async fn start(&self, id: &str, name: &str, input: &str) -> Result<(), Failure> {
        for _ in 0..START_ATTEMPTS {
            match self.client.start_orchestration(id, name, input).await {
                Ok(()) => return Ok(()),
                Err(_) => self.start_errors.fetch_add(1, Ordering::Relaxed),
            };
            tokio::time::sleep(START_PAUSE).await;
        }
        Ok(self.client.start_orchestration(id, name, input).await?)
    }

    /// Waits for a result as a client does.
    pub(crate) async fn wait(&self, id: &str, patience: Duration) -> Result<Seen, Failure> {
        let deadline = Instant::now() + patience;
        loop {
            let answer = match self.args.client_poll_ms {
                None => self.client.wait_for_orchestration(id, patience).await,
                Some(_) => self.client.get_orchestration_status(id).await,
            };
            match answer {
                Ok(OrchestrationStatus::Completed { .. }) => return Ok(Seen::Completed),
                Ok(OrchestrationStatus::Failed { details, .. }) => {
                    return Ok(Seen::Failed(details.display_message()));
                }
                Ok(_) | Err(_) if Instant::now() >= deadline => return Ok(Seen::TimedOut),
                Ok(_) => {}
                Err(error) if error.is_retryable() => {}
                Err(error) => return Err(error.into()),
            }
            let pause = self.args.client_poll_ms.unwrap_or(1);
            tokio::time::sleep(Duration::from_millis(pause)).await;
        }
    }

    /// The events of an instance's first execution.
    pub(crate) async fn history(&self, id: &str) -> Result<Vec<EventKind>, Failure> {
        let events = self.client.read_execution_history(id, 1).await?;
        Ok(events.into_iter().map(|event| event.kind).collect())
    }

    /// How often a start had to be tried again.
    pub(crate) fn start_errors(&self) -> u64 {
        self.start_errors.load(Ordering::Relaxed)
    }

    /// How often the runtime says its store failed it.
    pub(crate) fn provider_errors(&self) -> u64 {
        let snapshot = self.runtime.as_ref().and_then(|runtime| runtime.metrics_snapshot());
        snapshot.map_or(0, |metrics| metrics.provider_errors)
    }

    /// Stops the runtime; what is in flight is left as it is.
    pub(crate) async fn stop(&self) {
        if let Some(runtime) = self.runtime.clone() {
            runtime.shutdown(Some(0)).await;
        }
    }

    /// Size of the database with everything in it, if it is on a disk.
    pub(crate) async fn database_bytes(&self) -> Result<Option<u64>, Failure> {
        if let Some(server) = self.args.server() {
            return server.database_bytes().map(Some);
        }
        let Some(file) = self.args.database() else { return Ok(None) };
        // A checkpoint that meets a reader moves what it can: then the log counts, too.
        let complete = self.store.checkpoint().await.is_ok();
        let mut bytes = file.metadata()?.len();
        let log = file.with_extension("db-wal");
        if !complete && let Ok(metadata) = log.metadata() {
            bytes += metadata.len();
        }
        Ok(Some(bytes))
    }
}
