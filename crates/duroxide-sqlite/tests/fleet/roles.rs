//! What a process of the fleet is: read from its environment.

use std::io::BufRead;
use std::path::PathBuf;
use std::sync::Arc;

use duroxide_sqlite::SqliteProvider;

use crate::journal::Journal;
use crate::{client, worker};

pub(crate) const ROLE: &str = "FLEET_ROLE";
pub(crate) const FOLDER: &str = "FLEET_FOLDER";

/// A process of the fleet, seen from within.
pub(crate) struct Stage {
    pub(crate) folder: PathBuf,
    pub(crate) journal: Journal,
}

impl Stage {
    /// Opens the store of the folder.
    pub(crate) async fn store(&self) -> Arc<SqliteProvider> {
        let url = format!("sqlite:{}/store.db?mode=rwc", self.folder.display());
        Arc::new(SqliteProvider::new(&url, None).await.unwrap())
    }

    /// A setting the test gave.
    pub(crate) fn setting(&self, name: &str) -> Option<String> {
        std::env::var(name).ok()
    }
}

/// Plays the role the environment names, if any.
pub(crate) fn play() {
    let (Ok(role), Ok(folder)) = (std::env::var(ROLE), std::env::var(FOLDER)) else { return };
    let folder = PathBuf::from(folder);
    let stage = Stage { journal: Journal::open(&folder), folder };
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        match role.as_str() {
            "worker" => worker::run(&stage).await,
            "client" => client::run(&stage).await,
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
