//! Runs one side in a process of its own and reads the line it prints.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::Failure;
use crate::args::Args;
use crate::machine;
use crate::postgres::Postgres;
use crate::summary::Run;
use crate::variant::{Side, Variant};

/// A run that takes longer than this is stuck.
const PATIENCE: Duration = Duration::from_secs(900);

/// How the reference is told the size of its pool.
const REFERENCE_POOL: &str = "DUROXIDE_PG_POOL_MAX";

/// Where programs and their databases are.
pub(crate) struct Bench {
    bin: PathBuf,
    dir: PathBuf,
    store: String,
    /// The server, if the store is on one.
    postgres: Option<Postgres>,
}

impl Bench {
    pub(crate) fn new(args: &Args) -> Result<Self, Failure> {
        let dir = args.dir.join(format!("duroxide-bench-{}", std::process::id()));
        let on_server = args.store == "postgres";
        let postgres = if on_server { Some(Postgres::start(&args.dir)?) } else { None };
        Ok(Self { bin: args.bin.clone(), dir, store: args.store.clone(), postgres })
    }

    /// One run of one case.
    pub(crate) fn run(&self, case: &str, variant: &Variant, seconds: f64) -> Result<Run, Failure> {
        let mut command = Command::new(self.bin.join(variant.side.program()));
        command.arg(case).args(["--store", &self.store]).args(variant.settings.options());
        if let (Side::Reference, Some(connections)) = (variant.side, variant.settings.get("pool")) {
            command.env(REFERENCE_POOL, connections);
        }
        let database = self.postgres.as_ref().map(Postgres::database).transpose()?;
        command.args(database.iter().flat_map(|database| database.options()));
        Run::from_json(&self.line(command, seconds)?)
    }

    /// The machine's own limit.
    pub(crate) fn raw(&self, seconds: f64) -> Result<Run, Failure> {
        let bench_raw = self.bin.join("bench-raw");
        match &self.postgres {
            Some(postgres) => postgres.raw(&bench_raw, seconds),
            None => Run::from_json(&self.line(Command::new(bench_raw), seconds)?),
        }
    }

    fn line(&self, mut command: Command, seconds: f64) -> Result<Value, Failure> {
        fs::create_dir_all(&self.dir)?;
        command.arg("--dir").arg(&self.dir).args(["--seconds", &seconds.to_string()]);
        let server = self.postgres.as_ref().map(Postgres::pid);
        let before = machine::Work::now(server)?;
        let output = finish(command);
        let others = machine::Work::now(server)?.of_others_since(&before);
        // Each run begins with an empty folder.
        fs::remove_dir_all(&self.dir)?;
        let output = output?;
        let line = output.lines().rev().find(|line| line.starts_with('{'));
        let mut line: Value = serde_json::from_str(line.ok_or("the program said nothing")?)?;
        line["others_percent"] = json!(others);
        Ok(line)
    }
}

/// What the program prints; it is ended when it takes too long.
pub(crate) fn finish(mut command: Command) -> Result<String, Failure> {
    let program = Path::new(command.get_program()).file_name().unwrap_or_default().to_owned();
    let program = program.to_string_lossy().into_owned();
    // Both sides log through the same filter; a measurement is no place for logs.
    command.env("RUST_LOG", "off").stdout(Stdio::piped()).stderr(Stdio::inherit());
    let mut child = command.spawn()?;
    let mut stdout = child.stdout.take().ok_or("no output to read")?;
    let reader = std::thread::spawn(move || {
        let mut text = String::new();
        stdout.read_to_string(&mut text).map(|_| text)
    });
    let deadline = Instant::now() + PATIENCE;
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        if Instant::now() > deadline {
            child.kill()?;
            child.wait()?;
            return Err(format!("{program}: ended after {} s", PATIENCE.as_secs()).into());
        }
        std::thread::sleep(Duration::from_millis(20));
    };
    let text = reader.join().map_err(|_| "the reader of the output panicked")??;
    if !status.success() {
        return Err(format!("{program}: {status}").into());
    }
    Ok(text)
}
