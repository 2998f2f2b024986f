//! A fresh cluster in a folder: files, settings, a port and a password.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use crate::programs;

/// How long a server may take to answer.
const PATIENCE: Duration = Duration::from_secs(60);

/// A cluster whose server does not run yet.
pub(crate) struct Cluster {
    pub(crate) folder: PathBuf,
    /// Where PostgreSQL's programs are.
    pub(crate) bin: PathBuf,
    pub(crate) port: u16,
    password: String,
}

/// What every server here is told.
const SETTINGS: &[&str] = &["listen_addresses = '127.0.0.1'", "shared_buffers = 64MB"];
/// Nothing waits for the disk: a machine that fails takes the tests along as well.
const IN_A_HURRY: &[&str] = &["fsync = off", "synchronous_commit = off", "full_page_writes = off"];

impl Cluster {
    /// Makes a cluster in `folder`, which must not exist. `settings` are lines of
    /// `postgresql.conf`.
    pub(crate) fn make(folder: &Path, durable: bool, settings: &[String]) -> Result<Self, String> {
        let bin = programs::folder().ok_or("PostgreSQL's programs are not installed")?;
        let password = random_word().map_err(|error| error.to_string())?;
        make_folder(folder).map_err(|error| error.to_string())?;
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
        std::fs::remove_file(&password_file).map_err(|error| error.to_string())?;
        let port = free_port().map_err(|error| error.to_string())?;
        let own = [format!("port = {port}"), socket_folder(folder)];
        let mut all: Vec<&str> = SETTINGS.to_vec();
        all.extend(if durable { &[] } else { IN_A_HURRY });
        all.extend(own.iter().chain(settings).map(String::as_str)); // The last of two wins.
        let file = data.join("postgresql.conf");
        configure(&file, &all).map_err(|error| error.to_string())?;
        Ok(Self { folder: folder.to_owned(), bin, port, password })
    }

    /// Makes a standby of the cluster in `folder`, which must not exist; its server has to run.
    pub(crate) fn make_standby(&self, folder: &Path) -> Result<Self, String> {
        make_folder(folder).map_err(|error| error.to_string())?;
        programs::hand_over(folder)?;
        let data = folder.join("data");
        let mut backup = programs::command(&self.bin.join("pg_basebackup"));
        backup.arg("--pgdata").arg(&data).args(["--dbname", &self.url("postgres")]);
        backup.args(["--write-recovery-conf", "--checkpoint=fast", "--no-sync"]);
        programs::run(backup.current_dir(folder))?;
        let port = free_port().map_err(|error| error.to_string())?;
        let settings = [format!("port = {port}"), socket_folder(folder)];
        let settings: Vec<&str> = settings.iter().map(String::as_str).collect();
        let file = data.join("postgresql.conf");
        configure(&file, &settings).map_err(|error| error.to_string())?;
        let (bin, password) = (self.bin.clone(), self.password.clone());
        Ok(Self { folder: folder.to_owned(), bin, port, password })
    }

    pub(crate) fn data(&self) -> PathBuf {
        self.folder.join("data")
    }

    /// Where one of its databases is.
    pub(crate) fn url(&self, database: &str) -> String {
        let Self { password, port, .. } = self;
        format!("postgres://duroxide:{password}@127.0.0.1:{port}/{database}")
    }

    /// Waits until the server takes connections.
    pub(crate) fn await_server(&self) -> Result<(), String> {
        let began = Instant::now();
        let mut ask = Command::new(self.bin.join("pg_isready"));
        ask.args(["--quiet", "--host=127.0.0.1", &format!("--port={}", self.port)]);
        while began.elapsed() < PATIENCE {
            if programs::run(&mut ask).is_ok() {
                return Ok(());
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        let log = std::fs::read_to_string(self.folder.join("log")).unwrap_or_default();
        Err(format!("the server on port {} was not ready in {PATIENCE:?}:\n{log}", self.port))
    }
}

/// A folder that others cannot look into.
pub(crate) fn make_folder(folder: &Path) -> io::Result<()> {
    DirBuilder::new().mode(0o700).create(folder)
}

fn socket_folder(folder: &Path) -> String {
    format!("unix_socket_directories = '{}'", folder.display())
}

fn configure(file: &Path, settings: &[&str]) -> io::Result<()> {
    let mut file = OpenOptions::new().append(true).open(file)?;
    settings.iter().try_for_each(|setting| writeln!(file, "{setting}"))
}

/// A port of loopback that no program uses at the moment.
pub(crate) fn free_port() -> io::Result<u16> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port())
}

fn random_word() -> io::Result<String> {
    let mut bytes = [0; 16];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(format!("{:032x}", u128::from_be_bytes(bytes)))
}
