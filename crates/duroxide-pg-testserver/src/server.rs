//! A server of one's own, which may be stopped, broken and started again.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use crate::cluster::Cluster;
use crate::{installed, programs};

/// Waits until the process that started the server is gone, however that came about, ends it and
/// removes its folder.
const KEEPER: &str = r#"
cat >/dev/null
server=$(head -n 1 "$1/data/postmaster.pid" 2>/dev/null)
if [ -n "$server" ]; then
    kill -QUIT "$server" 2>/dev/null
    while kill -0 "$server" 2>/dev/null; do sleep 0.05; done
fi
rm -rf "$1"
"#;

/// A server that ends, and whose files are removed, when this is dropped or the process is gone.
pub struct Server {
    cluster: Cluster,
    /// Reads from a pipe of this process.
    keeper: Child,
}

/// What a server is to be like.
#[derive(Debug, Clone)]
pub struct Options {
    /// Where its folder is made.
    pub parent: PathBuf,
    /// Whether commits wait for the disk, as they do by default.
    pub durable: bool,
    /// Further lines of `postgresql.conf`.
    pub settings: Vec<String>,
}

/// How a server is told to stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    /// It ends all connections and stops in order.
    Fast,
    /// It stops as if it had crashed, and recovers when started again.
    Immediate,
}

impl Default for Options {
    fn default() -> Self {
        Self { parent: std::env::temp_dir(), durable: true, settings: Vec::new() }
    }
}

impl Server {
    /// Makes a cluster and starts its server. `None` if PostgreSQL is not installed: the test is to
    /// be skipped, which has been said already.
    pub fn start(options: &Options) -> Result<Option<Self>, String> {
        if !installed() {
            return Ok(None);
        }
        let folder = new_folder(&options.parent);
        let keeper = keeper(&folder)?;
        let cluster = Cluster::make(&folder, options.durable, &options.settings)?;
        let server = Self { cluster, keeper };
        server.resume()?;
        Ok(Some(server))
    }

    /// Starts a standby that follows this server.
    pub fn start_standby(&self) -> Result<Self, String> {
        let folder = new_folder(self.cluster.folder.parent().unwrap_or(Path::new("/tmp")));
        let keeper = keeper(&folder)?;
        let standby = Self { cluster: self.cluster.make_standby(&folder)?, keeper };
        standby.resume()?;
        Ok(standby)
    }

    /// Makes a standby a server of its own.
    pub fn promote(&self) -> Result<(), String> {
        programs::run(self.control().args(["promote", "--wait"]))
    }

    /// Where its first database is: `postgres://…`.
    pub fn url(&self) -> String {
        self.url_of("postgres")
    }

    /// Where a database is.
    pub fn url_of(&self, database: &str) -> String {
        self.cluster.url(database)
    }

    /// The loopback port it listens on.
    pub fn port(&self) -> u16 {
        self.cluster.port
    }

    /// The folder with PostgreSQL's programs.
    pub fn bin(&self) -> &Path {
        &self.cluster.bin
    }

    /// The first of its processes, while it runs.
    pub fn pid(&self) -> Option<u32> {
        let file = std::fs::read_to_string(self.cluster.data().join("postmaster.pid")).ok()?;
        file.lines().next()?.parse().ok()
    }

    /// What it has written to its log.
    pub fn log(&self) -> String {
        std::fs::read_to_string(self.cluster.folder.join("log")).unwrap_or_default()
    }

    /// Stops the server; it keeps its port.
    pub fn stop(&self, how: Stop) -> Result<(), String> {
        let mode = match how {
            Stop::Fast => "fast",
            Stop::Immediate => "immediate",
        };
        programs::run(self.control().args(["stop", "--wait", "--mode", mode]))
    }

    /// Starts it again.
    pub fn resume(&self) -> Result<(), String> {
        let log = self.cluster.folder.join("log");
        let mut control = self.control();
        // It must not inherit pipes that another process reads to their end.
        control.arg("--log").arg(log).args(["start", "--wait"]);
        control.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let status = control.status().map_err(|error| format!("{control:?}: {error}"))?;
        if !status.success() {
            return Err(format!("{control:?}: {status}: {}", self.log()));
        }
        self.cluster.await_server()
    }

    /// Runs SQL as the owner of everything; its rows, columns separated by `|`.
    pub fn psql(&self, database: &str, sql: &str) -> Result<String, String> {
        let mut psql = Command::new(self.bin().join("psql"));
        psql.args(["--no-psqlrc", "--quiet", "--tuples-only", "--no-align"]);
        psql.args(["--set", "ON_ERROR_STOP=1", "--dbname", &self.url_of(database)]);
        psql.args(["--command", sql]);
        programs::output(&mut psql)
    }

    fn control(&self) -> Command {
        let mut control = programs::command(&self.bin().join("pg_ctl"));
        control.arg("--pgdata").arg(self.cluster.data()).arg("--silent");
        control.current_dir(&self.cluster.folder);
        control
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.keeper.stdin.take());
        if let Err(error) = self.keeper.wait() {
            eprintln!("the keeper of a PostgreSQL server: {error}");
        }
    }
}

fn new_folder(parent: &Path) -> PathBuf {
    static MADE: AtomicU32 = AtomicU32::new(0);
    let number = MADE.fetch_add(1, Ordering::Relaxed);
    parent.join(format!("duroxide-pg-{}-{number}", std::process::id()))
}

fn keeper(folder: &Path) -> Result<Child, String> {
    let mut keeper = Command::new("setsid");
    keeper.args(["--wait", "sh", "-c", KEEPER, "keeper"]).arg(folder);
    keeper.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    keeper.spawn().map_err(|error| format!("{keeper:?}: {error}"))
}
