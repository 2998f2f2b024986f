//! Processes that read the database beside the one that is measured: whoever takes a backup, or looks
//! at the tables. They end with the process that started them.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use crate::workloads::Failure;
use crate::workloads::args::{Args, StoreKind};
use crate::workloads::outcome::Outcome;

/// The case that is such a process; after the colon, how many milliseconds each of its transactions
/// lasts, one right after the other. With 0 there is one that lasts to the end.
pub(super) const READER: &str = "reader";
/// What a reader says when its first transaction has begun.
const READING: &str = "reading";

const SNAPSHOT: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ;
    SELECT count(*) FROM pg_class;
    SELECT 'reading';
";

/// A process that has a snapshot; gone when dropped.
pub(super) struct Elsewhere {
    process: Child,
    /// Closed, it tells the process to end.
    stdin: Option<ChildStdin>,
}

impl Elsewhere {
    /// A transaction that lasts until this is dropped.
    pub(super) fn hold_snapshot(args: &Args) -> Result<Self, Failure> {
        match args.store {
            StoreKind::Postgres => Self::spawn(psql(args), SNAPSHOT),
            StoreKind::Sqlite => Self::reader(args, 0),
            StoreKind::Memory => Err("memory has no snapshots".into()),
        }
    }

    /// Transactions one after the other on a SQLite file.
    pub(super) fn reader(args: &Args, hold_ms: u64) -> Result<Self, Failure> {
        let mut command = Command::new(std::env::current_exe()?);
        command.arg(format!("{READER}:{hold_ms}")).arg("--dir").arg(&args.dir);
        Self::spawn(command, "")
    }

    /// Starts it and waits until it reads.
    fn spawn(mut command: Command, input: &str) -> Result<Self, Failure> {
        let mut process = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let mut stdin = process.stdin.take().ok_or("no input")?;
        let stdout = process.stdout.take().ok_or("no output")?;
        stdin.write_all(input.as_bytes())?;
        let this = Self { process, stdin: Some(stdin) };
        let mut lines = BufReader::new(stdout).lines();
        let is_reading =
            |line: &Result<String, _>| line.as_ref().is_ok_and(|line| line.trim() == READING);
        match lines.any(|line| is_reading(&line)) {
            true => Ok(this),
            false => Err("the reader ended before it read".into()),
        }
    }
}

impl Drop for Elsewhere {
    fn drop(&mut self) {
        drop(self.stdin.take());
        if let Err(error) = self.process.wait() {
            eprintln!("the reader: {error}");
        }
    }
}

fn psql(args: &Args) -> Command {
    let mut psql = Command::new(&args.server.psql);
    psql.args(["--no-psqlrc", "--quiet", "--tuples-only", "--no-align"]);
    psql.args(["--dbname", &args.server.url]);
    psql
}

/// Is such a process, on a SQLite file; has no figures.
#[cfg(feature = "sqlite")]
pub(super) fn read(args: &Args, hold_ms: u64) -> Result<Outcome, Failure> {
    let file = args.database().ok_or("only a file can be read from elsewhere")?;
    let connection = rusqlite::Connection::open(file)?;
    let (closed, end) = channel();
    std::thread::spawn(move || {
        let ended = std::io::stdin().read_to_end(&mut Vec::new());
        closed.send(ended.is_ok()).ok();
    });
    let mut said = false;
    loop {
        connection.execute_batch("BEGIN")?;
        connection.query_row("SELECT count(*) FROM sqlite_schema", [], |_| Ok(()))?;
        if !std::mem::replace(&mut said, true) {
            // Nobody listens any more after the first time.
            println!("{READING}");
        }
        let time = if hold_ms == 0 { super::LONG_LEASE } else { Duration::from_millis(hold_ms) };
        let waited = end.recv_timeout(time);
        connection.execute_batch("COMMIT")?;
        if waited != Err(RecvTimeoutError::Timeout) {
            std::process::exit(0);
        }
    }
}

/// Is such a process, on a SQLite file; has no figures.
#[cfg(not(feature = "sqlite"))]
pub(super) fn read(_: &Args, _: u64) -> Result<Outcome, Failure> {
    Err("built without the feature `sqlite`".into())
}
