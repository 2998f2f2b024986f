//! The PostgreSQL server that both sides are measured on: default durability, a database for each
//! run, and its own limit.

use std::cell::Cell;
use std::path::{Path, PathBuf};
use std::process::Command;

use duroxide_pg_testserver::{Options, Server};
use serde_json::json;

use crate::Failure;
use crate::process::finish;
use crate::summary::Run;

/// Connections and memory as installed, but for room beside the reference's enlarged pool.
const SETTINGS: &[&str] = &["shared_buffers = 128MB", "max_connections = 200"];
/// Database of pgbench.
const LIMIT: &str = "pgbench";
const LIMIT_CLIENTS: &str = "32";

/// A server for the time of a benchmark.
pub(crate) struct Postgres {
    server: Server,
    databases: Cell<u32>,
}

/// A database for one run; gone when dropped.
pub(crate) struct Database<'a> {
    server: &'a Server,
    name: String,
}

impl Postgres {
    /// Starts a server whose files are in `dir`, and prepares pgbench.
    pub(crate) fn start(dir: &Path) -> Result<Self, Failure> {
        let settings = SETTINGS.iter().map(|&setting| setting.to_owned()).collect();
        // The servant that runs it need not be able to look into our folders.
        let dir = if is_open_to_all(dir) { dir.to_owned() } else { std::env::temp_dir() };
        let options = Options { parent: dir, durable: true, settings };
        let server = Server::start(&options)?.ok_or("no server to measure on")?;
        server.psql("postgres", &format!("CREATE DATABASE {LIMIT}"))?;
        let postgres = Self { server, databases: Cell::new(0) };
        finish(postgres.pgbench(&["--initialize", "--quiet", "--scale=10"]))?;
        Ok(postgres)
    }

    /// The first of the server's processes.
    pub(crate) fn pid(&self) -> u32 {
        self.server.pid().unwrap_or(0)
    }

    /// An empty database, on a server that has written down what came before.
    pub(crate) fn database(&self) -> Result<Database<'_>, Failure> {
        let number = self.databases.get();
        self.databases.set(number + 1);
        let name = format!("run_{number}");
        self.server.psql("postgres", &format!("CREATE DATABASE {name}"))?;
        self.server.psql("postgres", "CHECKPOINT")?;
        Ok(Database { server: &self.server, name })
    }

    /// What the server can do: one row per commit by one client (`bench_raw`), and pgbench.
    pub(crate) fn raw(&self, bench_raw: &Path, seconds: f64) -> Result<Run, Failure> {
        let database = self.database()?;
        let mut command = Command::new(bench_raw);
        command.args(["--url", &database.url(), "--seconds", &seconds.to_string()]);
        let said = finish(command)?;
        let mut line: serde_json::Value = serde_json::from_str(said.trim())?;
        let time = format!("--time={}", seconds.ceil());
        let clients = format!("--client={LIMIT_CLIENTS}");
        let args = ["-N", "--no-vacuum", "--protocol=prepared", "--jobs=2", &clients, &time];
        let said = finish(self.pgbench(&args))?;
        line["figures"]["pgbench_per_second"] = json!(tps(&said).ok_or("pgbench gave no rate")?);
        Run::from_json(&line)
    }

    fn pgbench(&self, args: &[&str]) -> Command {
        let mut command = Command::new(self.server.bin().join("pgbench"));
        command.args(args).arg(self.server.url_of(LIMIT)).stderr(std::process::Stdio::null());
        command
    }
}

impl Database<'_> {
    /// How a side is told about it.
    pub(crate) fn options(&self) -> Vec<String> {
        let psql: PathBuf = self.server.bin().join("psql");
        let pid = self.server.pid().unwrap_or(0);
        let words = ["--url", &self.url(), "--server-pid", &pid.to_string(), "--psql"];
        let words = words.map(str::to_owned);
        words.into_iter().chain([psql.display().to_string()]).collect()
    }

    fn url(&self) -> String {
        self.server.url_of(&self.name)
    }
}

impl Drop for Database<'_> {
    fn drop(&mut self) {
        let sql = format!("DROP DATABASE {} WITH (FORCE)", self.name);
        if let Err(failure) = self.server.psql("postgres", &sql) {
            eprintln!("{}: {failure}", self.name);
        }
    }
}

/// The rate in what pgbench says.
fn tps(said: &str) -> Option<f64> {
    let line = said.lines().find_map(|line| line.strip_prefix("tps = "))?;
    line.split_whitespace().next()?.parse().ok()
}

/// Whether every folder on the way can be passed by everybody.
fn is_open_to_all(dir: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    let passable = |folder: &Path| {
        folder.metadata().is_ok_and(|metadata| metadata.permissions().mode() & 0o001 != 0)
    };
    dir.ancestors().filter(|folder| !folder.as_os_str().is_empty()).all(passable)
}

#[cfg(test)]
mod tests {
    use super::tps;

    #[test]
    fn the_rate_of_pgbench_is_found() {
        let said = "latency average = 7.9 ms\ntps = 4012.345678 (without initial connection time)";
        assert_eq!(tps(said), Some(4_012.345_678));
    }
}
