//! A pooler in front of a server: pgbouncer, which gives connections away after each transaction.

use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use crate::{REQUIRED_VARIABLE, cluster, programs, say_skipped};

/// Where Debian's package puts it.
const PROGRAMS: [&str; 3] =
    ["/usr/sbin/pgbouncer", "/usr/bin/pgbouncer", "/usr/local/bin/pgbouncer"];
const PATIENCE: Duration = Duration::from_secs(60);
/// Runs the pooler until the process that started it is gone, and removes its folder.
const KEEPER: &str = r#"
folder=$1; shift
"$@" >"$folder/log" 2>&1 </dev/null &
pooler=$!
cat >/dev/null
kill -TERM "$pooler" 2>/dev/null
wait "$pooler"
rm -rf "$folder"
"#;

/// A pooler that ends when this is dropped or the process is gone.
pub struct Pooler {
    url: String,
    /// Reads from a pipe of this process.
    keeper: Child,
}

impl Pooler {
    /// Starts one in front of the server at a URL, with so many connections to that. `None` if
    /// pgbouncer is not installed: the test is to be skipped, which has been said already.
    pub fn start(url: &str, connections: u32) -> Result<Option<Self>, String> {
        let Some(program) = PROGRAMS.iter().map(Path::new).find(|path| path.is_file()) else {
            let missing = "pgbouncer is not installed (Debian: apt-get install pgbouncer)";
            if std::env::var_os(REQUIRED_VARIABLE).is_some() {
                return Err(missing.to_owned());
            }
            say_skipped(missing);
            return Ok(None);
        };
        let parts = Parts::of(url).ok_or("a URL with user, password, host and port")?;
        let port = cluster::free_port().map_err(|error| error.to_string())?;
        let folder = make_folder(&parts, port, connections)?;
        let mut pooler = programs::command(program);
        pooler.arg(folder.join("pgbouncer.ini"));
        let mut keeper = Command::new("setsid");
        keeper.args(["--wait", "sh", "-c", KEEPER, "keeper"]).arg(&folder);
        keeper.arg(pooler.get_program()).args(pooler.get_args());
        keeper.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        let keeper = keeper.spawn().map_err(|error| format!("{keeper:?}: {error}"))?;
        let Parts { user, password, database, .. } = parts;
        let url = format!("postgres://{user}:{password}@127.0.0.1:{port}/{database}");
        let pooler = Self { url, keeper };
        await_port(port, &folder.join("log"))?;
        Ok(Some(pooler))
    }

    /// The server, by way of the pooler.
    pub fn url(&self) -> &str {
        &self.url
    }
}

impl Drop for Pooler {
    fn drop(&mut self) {
        drop(self.keeper.stdin.take());
        if let Err(error) = self.keeper.wait() {
            eprintln!("the keeper of a pooler: {error}");
        }
    }
}

/// `postgres://user:password@host:port/database`.
struct Parts<'a> {
    user: &'a str,
    password: &'a str,
    host: &'a str,
    port: &'a str,
    database: &'a str,
}

impl<'a> Parts<'a> {
    fn of(url: &'a str) -> Option<Self> {
        let (who, whither) = url.split_once("://")?.1.rsplit_once('@')?;
        let (user, password) = who.split_once(':')?;
        let (address, database) = whither.split_once('/')?;
        let (host, port) = address.rsplit_once(':')?;
        Some(Self { user, password, host, port, database })
    }
}

fn make_folder(parts: &Parts<'_>, port: u16, connections: u32) -> Result<PathBuf, String> {
    static MADE: AtomicU32 = AtomicU32::new(0);
    let number = MADE.fetch_add(1, Ordering::Relaxed);
    let name = format!("duroxide-pooler-{}-{number}", std::process::id());
    let folder = std::env::temp_dir().join(name);
    cluster::make_folder(&folder).map_err(|error| error.to_string())?;
    let Parts { user, password, host, port: server, .. } = parts;
    let users = folder.join("users");
    let settings = format!(
        "[databases]\n* = host={host} port={server}\n[pgbouncer]\nlisten_addr = 127.0.0.1\n\
         listen_port = {port}\nunix_socket_dir =\nauth_type = plain\nauth_file = {}\n\
         pool_mode = transaction\ndefault_pool_size = {connections}\nmax_client_conn = 400\n",
        users.display(),
    );
    let file = folder.join("pgbouncer.ini");
    let write = |path: &Path, text: &str| {
        std::fs::write(path, text).map_err(|error| error.to_string())?;
        programs::hand_over(path)
    };
    write(&users, &format!("\"{user}\" \"{password}\"\n"))?;
    write(&file, &settings)?;
    programs::hand_over(&folder)?;
    Ok(folder)
}

fn await_port(port: u16, log: &Path) -> Result<(), String> {
    let began = Instant::now();
    while began.elapsed() < PATIENCE {
        if TcpStream::connect(("127.0.0.1", port)).is_ok() {
            return Ok(());
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    Err(format!("no pooler: {}", std::fs::read_to_string(log).unwrap_or_default()))
}
