//! One server for all test processes of a user, gone when they are.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::net::TcpStream;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use crate::cluster::Cluster;
use crate::{URL_VARIABLE, installed, programs};

/// Starts the server, waits until no test process uses it any more, stops it and removes its folder.
/// Users hold a shared lock on `users`; a process that starts or stops a server holds the lock on
/// `door`. Its data is not needed: it stops at once, and the next may start while files are removed.
/// Tests with servers of their own in between do not end it.
const KEEPER: &str = r#"
cd "$1" || exit 1; shift
"$@" >log 2>&1 </dev/null &
server=$!
idle=0
while kill -0 "$server" 2>/dev/null; do
    sleep 1
    if flock --exclusive --nonblock ../users true; then idle=$((idle + 1)); else idle=0; fi
    [ "$idle" -ge 20 ] || continue
    exec 9>../door
    flock --exclusive 9
    if flock --exclusive --nonblock ../users true; then break; fi
    flock --unlock 9
    idle=0
done
folder=$PWD
rm -f ../url
kill -QUIT "$server" 2>/dev/null
wait "$server"
exec 9>&-
cd / && rm -rf "$folder"
"#;

/// A server that lasts as long as this process.
pub struct Shared {
    url: String,
    /// The lock that keeps the server; none for a server that was given by its URL.
    _user: Option<File>,
}

impl Shared {
    /// Where it is: `postgres://…`.
    pub fn url(&self) -> &str {
        &self.url
    }
}

/// The server for tests. `None` if there is none to be had: the test is to be skipped, which has been
/// said already.
///
/// # Panics
/// If a server cannot be started although PostgreSQL is installed, or must not be missing.
#[expect(clippy::panic, reason = "for tests only")]
pub fn shared() -> Option<&'static Shared> {
    static SHARED: OnceLock<Option<Shared>> = OnceLock::new();
    let find = || match find() {
        Ok(shared) => shared,
        Err(why) => panic!("no PostgreSQL server for the tests: {why}"),
    };
    SHARED.get_or_init(find).as_ref()
}

fn find() -> Result<Option<Shared>, String> {
    if let Ok(url) = std::env::var(URL_VARIABLE) {
        return Ok(Some(Shared { url, _user: None }));
    }
    if installed() { own_server().map(Some) } else { Ok(None) }
}

fn own_server() -> Result<Shared, String> {
    let home = home().map_err(|error| error.to_string())?;
    let door = open(&home.join("door")).map_err(|error| error.to_string())?;
    door.lock().map_err(|error| error.to_string())?;
    let user = open(&home.join("users")).map_err(|error| error.to_string())?;
    user.lock_shared().map_err(|error| error.to_string())?;
    let url_file = home.join("url");
    let running = std::fs::read_to_string(&url_file).ok().filter(|url| answers(url));
    let url = match running {
        Some(url) => url,
        None => {
            let url = start(&home)?;
            keep_secret(&url_file, &url).map_err(|error| error.to_string())?;
            url
        }
    };
    Ok(Shared { url, _user: Some(user) }) // the door closes here
}

/// The server ends when no process holds a lock on the file `users` in `home`.
fn start(home: &Path) -> Result<String, String> {
    let folder = home.join(format!("cluster-{}", std::process::id()));
    if folder.exists() {
        std::fs::remove_dir_all(&folder).map_err(|error| error.to_string())?;
    }
    let cluster = Cluster::make(&folder, false, &["max_connections = 400".to_owned()])?;
    let mut server = programs::command(&cluster.bin.join("postgres"));
    server.arg("-D").arg(cluster.data());
    let mut keeper = Command::new("setsid");
    keeper.args(["sh", "-c", KEEPER, "keeper"]).arg(&folder);
    keeper.arg(server.get_program()).args(server.get_args());
    keeper.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    keeper.spawn().map_err(|error| format!("{keeper:?}: {error}"))?;
    cluster.await_server()?;
    Ok(cluster.url("postgres"))
}

/// A folder that only this user can look into. The servant of root must be able to pass.
fn home() -> io::Result<PathBuf> {
    let user = std::env::var("USER").unwrap_or_else(|_| "user".to_owned());
    let word: String = user.chars().filter(char::is_ascii_alphanumeric).collect();
    let home = std::env::temp_dir().join(format!("duroxide-pg-{word}"));
    DirBuilder::new().recursive(true).mode(0o711).create(&home)?;
    Ok(home)
}

fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new().create(true).append(true).open(path)
}

fn keep_secret(path: &Path, secret: &str) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.create(true).write(true).truncate(true).mode(0o600);
    options.open(path)?.write_all(secret.as_bytes())
}

fn answers(url: &str) -> bool {
    let address = url.rsplit_once('@').and_then(|(_, rest)| rest.split_once('/'));
    address.is_some_and(|(address, _)| TcpStream::connect(address).is_ok())
}
