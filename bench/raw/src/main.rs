//! The machine's own limit: what a bare loop over SQLite does with the same rows, or how long
//! PostgreSQL takes for a commit.
//!
//! `bench-raw [--dir DIR | --url URL] [--seconds N]` prints one line of JSON.

mod hello;
mod postgres;

use std::error::Error;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rusqlite::Connection;
use serde_json::json;

/// Instances written by one transaction of the batched loop.
const BATCH: u64 = 100;
/// Commits that fill the log once; SQLite begins anew after 1000 pages.
const FILLING: u32 = 1_500;

fn main() -> Result<(), Box<dyn Error>> {
    let Args { dir, url, budget } = args()?;
    if let Some(url) = url {
        let commit = median(postgres::commits(&url, budget)?);
        println!("{}", json!({ "side": "raw", "figures": { "commit_p50_ms": commit } }));
        return Ok(());
    }
    let file = dir.join("raw.db");
    let connection = open(&file)?;
    fill_log(&connection)?;
    connection.pragma_update(None, "synchronous", "FULL")?;
    let full = commits(&connection, budget)?;
    connection.pragma_update(None, "synchronous", "NORMAL")?;
    let process = commits(&connection, budget / 4)?;
    connection.pragma_update(None, "synchronous", "FULL")?;
    let per_second = batched(&connection, budget)?;
    let line = json!({
        "side": "raw",
        "figures": {
            "instances_per_second": per_second,
            "rows_per_instance": hello::ROWS,
            "instances_per_commit": BATCH,
            "commit_p50_ms": median(full),
            "commit_without_fsync_p50_ms": median(process),
        },
    });
    println!("{line}");
    Ok(())
}

struct Args {
    dir: PathBuf,
    /// A database of PostgreSQL, if that is meant.
    url: Option<String>,
    budget: Duration,
}

fn args() -> Result<Args, Box<dyn Error>> {
    let (mut dir, mut url, mut seconds) = (PathBuf::from("."), None, 2.0);
    let mut words = std::env::args().skip(1);
    while let Some(name) = words.next() {
        let value = words.next().ok_or_else(|| format!("{name}: value missing"))?;
        match name.as_str() {
            "--dir" => dir = PathBuf::from(value),
            "--url" => url = Some(value),
            "--seconds" => seconds = value.parse()?,
            _ => return Err(format!("{name}?").into()),
        }
    }
    Ok(Args { dir, url, budget: Duration::from_secs_f64(seconds) })
}

fn open(file: &Path) -> rusqlite::Result<Connection> {
    let connection = Connection::open(file)?;
    connection.pragma_update(None, "journal_mode", "WAL")?;
    connection.execute_batch("CREATE TABLE one (id INTEGER PRIMARY KEY, text TEXT)")?;
    hello::create(&connection)?;
    Ok(connection)
}

/// Lets the write-ahead log grow to its usual size: from then on it is written over, not extended.
fn fill_log(connection: &Connection) -> rusqlite::Result<()> {
    connection.pragma_update(None, "synchronous", "OFF")?;
    for _ in 0..FILLING {
        connection.execute("INSERT INTO one (text) VALUES ('one row')", [])?;
    }
    Ok(())
}

/// Milliseconds of transactions that write one row.
fn commits(connection: &Connection, budget: Duration) -> rusqlite::Result<Vec<f64>> {
    let mut samples = Vec::new();
    let end = Instant::now() + budget;
    while Instant::now() < end {
        let began_at = Instant::now();
        connection.prepare_cached("INSERT INTO one (text) VALUES ('one row')")?.execute([])?;
        samples.push(began_at.elapsed().as_secs_f64() * 1e3);
    }
    Ok(samples)
}

/// Instances per second when their rows are written many instances at a time.
fn batched(connection: &Connection, budget: Duration) -> rusqlite::Result<f64> {
    let began_at = Instant::now();
    let mut written = 0;
    while began_at.elapsed() < budget {
        connection.execute_batch("BEGIN IMMEDIATE")?;
        for number in written..written + BATCH {
            hello::write(connection, number)?;
        }
        connection.execute_batch("COMMIT")?;
        written += BATCH;
    }
    Ok(written as f64 / began_at.elapsed().as_secs_f64())
}

fn median(mut samples: Vec<f64>) -> f64 {
    samples.sort_by(f64::total_cmp);
    samples.get(samples.len() / 2).copied().unwrap_or(0.0)
}
