//! G5: how long the log of a SQLite file becomes while other processes read, so many that there may
//! be no moment without a reader.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::elsewhere::Elsewhere;
use super::hellos::Hellos;
use crate::workloads::Failure;
use crate::workloads::args::Args;
use crate::workloads::lab::Lab;
use crate::workloads::outcome::{Outcome, Stopwatch};

/// Clients that say hello meanwhile.
const CLIENTS: usize = 64;
/// How long each reader keeps a transaction open.
const HOLD_MS: u64 = 250;
/// How often the log is looked at.
const LOOK: Duration = Duration::from_millis(5);

pub(super) async fn run(args: Args, readers: u64) -> Result<Outcome, Failure> {
    let mut lab = Lab::open(args).await?;
    lab.warm_up().await?;
    let lab = Arc::new(lab);
    log_bytes(&lab.args).ok_or("only a SQLite file has such a log")?;
    let mut elsewhere = Vec::new();
    for _ in 0..readers {
        elsewhere.push(Elsewhere::reader(&lab.args, HOLD_MS)?);
        // One after the other, so that they overlap.
        tokio::time::sleep(Duration::from_millis(HOLD_MS / readers)).await;
    }

    let watch = Stopwatch::start(&lab.args)?;
    let (from, end) = (watch.began_at, watch.began_at + lab.args.budget());
    let hellos = Hellos::start(&lab, "h", CLIENTS);
    let mut peak = 0;
    while Instant::now() < end {
        peak = peak.max(log_bytes(&lab.args).unwrap_or(0));
        tokio::time::sleep(LOOK).await;
    }
    let hellos = hellos.stop().await?;
    let measured = watch.stop()?;
    drop(elsewhere);

    let outcome = Outcome::new(&lab, &measured, hellos.count()).await?;
    Ok(outcome
        .figure("log_mib", peak as f64 / f64::from(1 << 20))
        .figure("per_second", hellos.per_second(from, end))
        .figure("max_ms", hellos.max_ms()))
}

/// Size of the write-ahead log, if the store has one.
pub(super) fn log_bytes(args: &Args) -> Option<u64> {
    let log = args.database()?.with_extension("db-wal");
    log.metadata().ok().map(|metadata| metadata.len())
}
