//! A fresh cluster in a folder: made, started, reachable.

use std::fs::File;
use std::io::Read;
use std::net::{Ipv4Addr, TcpListener};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::programs;

/// How long a server may take to answer.
const PATIENCE: Duration = Duration::from_secs(60);
/// Starts the server, waits until nobody uses it any more, stops it and removes its folder. Users
/// hold a shared lock on `users`; whoever starts or stops a server holds the lock on `door`.
const KEEPER: &str = r#"
cd "$1" || exit 1; shift
"$@" >log 2>&1 </dev/null &
server=$!
idle=0
while kill -0 "$server" 2>/dev/null; do
    sleep 1
    if flock --exclusive --nonblock ../users true; then idle=$((idle + 1)); else idle=0; fi
    [ "$idle" -ge 5 ] || continue
    exec 9>../door
    flock --exclusive 9
    if flock --exclusive --nonblock ../users true; then break; fi
    flock --unlock 9
    idle=0
done
folder=$PWD
rm -f ../url
kill -INT "$server" 2>/dev/null
wait "$server"
cd / && rm -rf "$folder"
"#;

/// Makes a cluster in `folder`, which must exist and be empty, and starts its server; its URL. The
/// server ends when nobody holds a lock on the file `users` beside the folder.
pub(crate) fn start(folder: &Path) -> Result<String, String> {
    let bin = programs::folder().ok_or("PostgreSQL's programs are not installed")?;
    let password = random_word()?;
    let password_file = folder.join("password");
    std::fs::write(&password_file, &password).map_err(|error| error.to_string())?;
    programs::hand_over(folder)?;
    programs::hand_over(&password_file)?;
    let data = folder.join("data");
    let mut initdb = programs::command(&bin.join("initdb"));
    initdb.arg("--pgdata").arg(&data).arg("--pwfile").arg(&password_file);
    initdb.args(["--username=duroxide", "--auth=scram-sha-256", "--encoding=UTF8"]);
    initdb.args(["--no-locale", "--no-sync"]).current_dir(folder);
    programs::run(&mut initdb)?;
    let port = free_port().map_err(|error| error.to_string())?;
    let mut server = programs::command(&bin.join("postgres"));
    server.arg("-D").arg(&data).args(["-p", &port.to_string()]);
    server.arg("-c").arg(format!("unix_socket_directories={}", folder.display()));
    for setting in SETTINGS {
        server.args(["-c", setting]);
    }
    keep(folder, &server)?;
    std::fs::remove_file(&password_file).map_err(|error| error.to_string())?;
    await_server(&bin, port)?;
    Ok(format!("postgres://duroxide:{password}@127.0.0.1:{port}/postgres"))
}

/// Tests lose nothing if the machine does: nothing waits for the disk.
const SETTINGS: &[&str] = &[
    "listen_addresses=127.0.0.1",
    "max_connections=400",
    "shared_buffers=64MB",
    "fsync=off",
    "synchronous_commit=off",
    "full_page_writes=off",
];

fn keep(folder: &Path, server: &Command) -> Result<(), String> {
    let mut keeper = Command::new("setsid");
    keeper.args(["sh", "-c", KEEPER, "keeper"]).arg(folder);
    keeper.arg(server.get_program()).args(server.get_args());
    keeper.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    keeper.spawn().map(|_| ()).map_err(|error| format!("{keeper:?}: {error}"))
}

fn free_port() -> std::io::Result<u16> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port())
}

fn await_server(bin: &Path, port: u16) -> Result<(), String> {
    let began = Instant::now();
    let mut ask = Command::new(bin.join("pg_isready"));
    ask.args(["--quiet", "--host=127.0.0.1", &format!("--port={port}")]);
    while began.elapsed() < PATIENCE {
        if programs::run(&mut ask).is_ok() {
            return Ok(());
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    Err(format!("the server on port {port} was not ready within {PATIENCE:?}"))
}

fn random_word() -> Result<String, String> {
    let mut bytes = [0; 16];
    let read = File::open("/dev/urandom").and_then(|mut file| file.read_exact(&mut bytes));
    read.map_err(|error| error.to_string())?;
    Ok(format!("{:032x}", u128::from_be_bytes(bytes)))
}
