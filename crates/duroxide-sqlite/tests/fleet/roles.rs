//! What a process of the fleet is: read from its environment.

use std::io::BufRead;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use duroxide_sqlite::SqliteProvider;

use crate::journal::Journal;
use crate::process::{Process, SOON};
use crate::{client, company, crash_points, fresh_file, worker};

pub(crate) const ROLE: &str = "FLEET_ROLE";
pub(crate) const FOLDER: &str = "FLEET_FOLDER";

/// A process of the fleet, seen from within.
pub(crate) struct Stage {
    pub(crate) folder: PathBuf,
    pub(crate) journal: Journal,
}

impl Stage {
    /// A stage of the test's own process.
    pub(crate) fn new(folder: &Path) -> Self {
        Self { journal: Journal::open(folder), folder: folder.to_owned() }
    }

    /// Opens the store of the folder.
    pub(crate) async fn store(&self) -> Arc<SqliteProvider> {
        let url = format!("sqlite:{}/store.db?mode=rwc", self.folder.display());
        Arc::new(SqliteProvider::new(&url, None).await.unwrap())
    }

    /// Starts a process on the same store.
    pub(crate) fn start(&self, role: &str, settings: &[(&str, &str)]) -> Process {
        Process::start(&self.folder, role, settings)
    }

    /// Starts a worker, and returns when it works.
    pub(crate) fn start_worker(&self, settings: &[(&str, &str)]) -> Process {
        let worker = self.start("worker", settings);
        let id = worker.id();
        self.journal.wait_for("a worker", SOON, |lines| {
            lines.iter().any(|line| line.process == id && line.says(&["UP"])).then_some(())
        });
        worker
    }

    /// A setting the test gave.
    pub(crate) fn setting(&self, name: &str) -> Option<String> {
        std::env::var(name).ok()
    }
}

/// Plays the role the environment names, if any.
pub(crate) fn play() {
    let (Ok(role), Ok(folder)) = (std::env::var(ROLE), std::env::var(FOLDER)) else { return };
    let stage = Stage::new(Path::new(&folder));
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        match role.as_str() {
            "worker" => worker::run(&stage).await,
            "client" => client::run(&stage).await,
            "commander" => company::command(&stage).await,
            "scenario" => crash_points::play_scenario(&stage).await,
            "opener" => fresh_file::open_and_close(&stage).await,
            other => panic!("no such role: {other}"),
        }
    });
}

/// The next line the test tells; `None` when it wants an end.
pub(crate) async fn next_line() -> Option<String> {
    let read = || {
        let mut line = String::new();
        let length = std::io::stdin().lock().read_line(&mut line).unwrap();
        (0 < length).then(|| line.trim_end().to_owned())
    };
    tokio::task::spawn_blocking(read).await.unwrap()
}

/// Returns when the test wants an end.
pub(crate) async fn told_to_end() {
    while next_line().await.is_some() {}
}
