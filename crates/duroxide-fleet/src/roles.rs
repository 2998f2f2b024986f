//! What a process of the fleet is: read from its environment.

use std::io::BufRead;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use duroxide::providers::Provider;

use crate::journal::{Journal, Line};
use crate::process::{Process, SOON};
use crate::store::Store;
use crate::{client, company, killers, worker};

pub(crate) const ROLE: &str = "FLEET_ROLE";
pub(crate) const FOLDER: &str = "FLEET_FOLDER";

/// A process of the fleet, seen from within.
pub struct Stage {
    /// The folder that stands for the store.
    pub folder: PathBuf,
    /// What all processes write down.
    pub journal: Journal,
    /// The kind of store.
    pub kind: &'static dyn Store,
}

impl Stage {
    /// A stage of the test's own process.
    pub fn new(kind: &'static dyn Store, folder: &Path) -> Self {
        Self { journal: Journal::open(folder), folder: folder.to_owned(), kind }
    }

    /// Opens the store of the folder.
    pub async fn store(&self) -> Arc<dyn Provider> {
        self.kind.open(&self.folder).await
    }

    /// Starts a process on the same store.
    pub fn start(&self, role: &str, settings: &[(&str, &str)]) -> Process {
        Process::start(&self.folder, role, settings)
    }

    /// Starts a worker, and returns when it works.
    pub fn start_worker(&self, settings: &[(&str, &str)]) -> Process {
        let worker = self.start("worker", settings);
        let (id, began) = (worker.id(), Instant::now());
        let is_up = |line: &Line| line.process == id && line.says(&["UP"]);
        while !self.journal.read().iter().any(is_up) {
            assert!(began.elapsed() < SOON, "a worker does not start: {}", worker.read_log());
            std::thread::sleep(Duration::from_millis(2));
        }
        worker
    }

    /// A setting the test gave.
    pub fn setting(&self, name: &str) -> Option<String> {
        std::env::var(name).ok()
    }
}

/// Plays the role the environment names, if any. `more` plays roles that only one store has.
pub fn play(kind: &'static dyn Store, more: impl AsyncFn(&Stage, &str)) {
    let (Ok(role), Ok(folder)) = (std::env::var(ROLE), std::env::var(FOLDER)) else { return };
    let stage = Stage::new(kind, Path::new(&folder));
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        match role.as_str() {
            "worker" => worker::run(&stage).await,
            "client" => client::run(&stage).await,
            "commander" => company::command(&stage).await,
            "victim" => killers::live(&stage).await,
            other => more(&stage, other).await,
        }
    });
    // Not even a turn that blocks its thread keeps the process.
    runtime.shutdown_background();
}

/// The next line the test tells; `None` when it wants an end.
pub async fn next_line() -> Option<String> {
    let read = || {
        let mut line = String::new();
        let length = std::io::stdin().lock().read_line(&mut line).unwrap();
        (0 < length).then(|| line.trim_end().to_owned())
    };
    tokio::task::spawn_blocking(read).await.unwrap()
}

/// Returns when the test wants an end.
pub async fn told_to_end() {
    while next_line().await.is_some() {}
}

/// Waits for something in a test that is not asynchronous.
pub fn on_tokio<T>(work: impl Future<Output = T>) -> T {
    // Runtimes of this process would log to the terminal; a second call finds it done.
    tracing::subscriber::set_global_default(tracing::subscriber::NoSubscriber::new()).ok();
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(work)
}
