//! What one run is told: which case, on which store, for how long, with which settings.

use std::path::PathBuf;
use std::time::Duration;

use super::Failure;
use super::server::Server;

/// Where state is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StoreKind {
    Memory,
    Sqlite,
    Postgres,
}

/// What a commit promises.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Durability {
    /// Survives power loss.
    Full,
    /// Survives the death of the process.
    Process,
}

/// The arguments of one run. A setting that is `None` stays at the side's default.
#[derive(Debug, Clone)]
pub(crate) struct Args {
    pub(crate) case: String,
    pub(crate) store: StoreKind,
    /// Folder for the database file; it must exist.
    pub(crate) dir: PathBuf,
    /// The server, if the store is on one.
    pub(crate) server: Server,
    /// How long to measure, where a case can go on for any time.
    pub(crate) seconds: f64,
    /// `dispatcher_min_poll_interval`.
    pub(crate) poll_ms: Option<u64>,
    /// `orchestration_concurrency` and `worker_concurrency`.
    pub(crate) concurrency: Option<usize>,
    /// Most connections of the store.
    pub(crate) pool: Option<usize>,
    /// Ask for the status at this interval instead of calling `wait_for_orchestration`.
    pub(crate) client_poll_ms: Option<u64>,
    pub(crate) durability: Option<Durability>,
}

impl Args {
    /// Reads `<case> [--name value]…`.
    pub(crate) fn parse(words: impl IntoIterator<Item = String>) -> Result<Self, Failure> {
        let mut words = words.into_iter();
        let mut args = Self {
            case: words.next().ok_or("which case?")?,
            store: StoreKind::Sqlite,
            dir: PathBuf::from("."),
            server: Server::default(),
            seconds: 3.0,
            poll_ms: None,
            concurrency: None,
            pool: None,
            client_poll_ms: None,
            durability: None,
        };
        while let Some(name) = words.next() {
            let value = words.next().ok_or_else(|| format!("{name}: value missing"))?;
            args.set(&name, &value)?;
        }
        Ok(args)
    }

    fn set(&mut self, name: &str, value: &str) -> Result<(), Failure> {
        match name {
            "--store" => {
                self.store = match value {
                    "memory" => StoreKind::Memory,
                    "sqlite" => StoreKind::Sqlite,
                    "postgres" | "pg" => StoreKind::Postgres,
                    _ => return Err(format!("--store: {value}?").into()),
                }
            }
            "--durability" => {
                self.durability = Some(match value {
                    "full" => Durability::Full,
                    "process" => Durability::Process,
                    _ => return Err(format!("--durability: {value}?").into()),
                })
            }
            "--url" => self.server.url = value.to_owned(),
            "--server-pid" => self.server.pid = value.parse()?,
            "--psql" => self.server.psql = PathBuf::from(value),
            "--dir" => self.dir = PathBuf::from(value),
            "--seconds" => self.seconds = value.parse()?,
            "--poll-ms" => self.poll_ms = Some(value.parse()?),
            "--concurrency" => self.concurrency = Some(value.parse()?),
            "--pool" => self.pool = Some(value.parse()?),
            "--client-poll-ms" => self.client_poll_ms = Some(value.parse()?),
            _ => return Err(format!("{name}?").into()),
        }
        Ok(())
    }

    /// How long to measure.
    pub(crate) fn budget(&self) -> Duration {
        Duration::from_secs_f64(self.seconds)
    }

    /// The database file, if the store has one.
    pub(crate) fn database(&self) -> Option<PathBuf> {
        (self.store == StoreKind::Sqlite).then(|| self.dir.join("bench.db"))
    }

    /// The server, if the store is on one.
    pub(crate) fn server(&self) -> Option<&Server> {
        (self.store == StoreKind::Postgres).then_some(&self.server)
    }

    /// The URL of the database file.
    pub(crate) fn sqlite_url(&self) -> String {
        format!("sqlite:{}?mode=rwc", self.dir.join("bench.db").display())
    }
}
