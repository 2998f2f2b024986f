//! Growth and stalls: what a hello costs beside something large, at two sizes of it. Cases of this
//! side alone; each is told its size after the colon.

mod hellos;
mod elsewhere;
mod flooded;
mod removal;
mod snapshot;
mod sessions;
mod readers;

use std::time::{Duration, Instant};

use crate::workloads::Failure;
use crate::workloads::args::Args;
use crate::workloads::outcome::Outcome;

/// How long filling the store may take.
const FILLING: Duration = Duration::from_secs(300);
/// Leases that outlast every run.
const LONG_LEASE: Duration = Duration::from_secs(3_600);
/// A look without waiting.
const NOW: Duration = Duration::ZERO;

/// Runs the case of this name.
pub(crate) async fn run(args: Args, name: &str, size: Option<u64>) -> Result<Outcome, Failure> {
    match (name, size) {
        ("g1-flooded", Some(mib)) => flooded::run(args, mib).await,
        ("g2-prune", Some(executions)) => removal::prune(args, executions).await,
        ("g3-snapshot", Some(hellos)) => snapshot::run(args, hellos).await,
        ("g4-sessions", Some(activities)) => sessions::run(args, activities).await,
        ("g5-readers", Some(readers)) => readers::run(args, readers).await,
        ("g6-delete", Some(instances)) => removal::delete(args, instances).await,
        (elsewhere::READER, Some(hold_ms)) => elsewhere::read(&args, hold_ms),
        _ => Err(format!("no case {}", args.case).into()),
    }
}

fn ms_since(began_at: Instant) -> f64 {
    began_at.elapsed().as_secs_f64() * 1e3
}
