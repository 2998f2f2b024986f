//! W9: what a runtime costs that has nothing to do.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::workloads::Failure;
use crate::workloads::args::Args;
use crate::workloads::lab::Lab;
use crate::workloads::outcome::{Outcome, Stopwatch};
use crate::workloads::starters::{Herd, Limits};

/// Finished and sleeping instances that lie about.
const BYSTANDERS: u64 = 20;
/// Time for the last work to settle.
const SETTLE: Duration = Duration::from_secs(2);
/// PostgreSQL's counters are complete when a connection has been idle for ten seconds.
const SETTLE_SERVER: Duration = Duration::from_secs(12);

pub(super) async fn run(args: Args) -> Result<Outcome, Failure> {
    let mut lab = Lab::open(args).await?;
    lab.warm_up().await?;
    let lab = Arc::new(lab);
    let deadline = Instant::now() + Duration::from_secs(30);
    let limits = Limits { count: BYSTANDERS, window: None, deadline };
    let finished = Herd { prefix: "done", orchestration: "Hello", input: "hello" };
    finished.start(&lab, limits).await?;
    let asleep = Herd { prefix: "asleep", orchestration: "Sleeper", input: "" };
    asleep.start(&lab, limits).await?;
    let all_done = |done: u64| (done >= 2 * BYSTANDERS).then_some(());
    lab.signals.until(deadline, |signals| all_done(signals.done_count())).await;
    let server = lab.args.server().cloned();
    if let Some(server) = &server {
        server.set_autovacuum(false)?;
    }
    tokio::time::sleep(if server.is_some() { SETTLE_SERVER } else { SETTLE }).await;

    let watch = Stopwatch::start(&lab.args)?;
    tokio::time::sleep(lab.args.budget()).await;
    let measured = watch.stop()?;
    if let Some(server) = &server {
        server.set_autovacuum(true)?;
    }

    let seconds = measured.elapsed.as_secs_f64();
    let figures = [
        ("cpu_percent", measured.cpu().as_secs_f64() / seconds * 100.0),
        ("written_bytes_per_second", measured.written_bytes() as f64 / seconds),
        ("write_calls_per_second", measured.write_calls() as f64 / seconds),
        ("sleeps_per_second", measured.sleeps() as f64 / seconds),
    ];
    let transactions = measured.transactions().map(|count| count as f64 / seconds);
    let outcome = Outcome::new(&lab, &measured, 2 * BYSTANDERS).await?;
    let on_server = transactions.map(|rate| ("transactions_per_second", rate));
    let figures = figures.into_iter().chain(on_server);
    Ok(figures.fold(outcome, |outcome, (name, value)| outcome.figure(name, value)))
}
