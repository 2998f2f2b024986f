//! One instance after the other, each from its start to the result at the client.

use std::time::{Duration, Instant};

use crate::workloads::Failure;
use crate::workloads::args::Args;
use crate::workloads::lab::{Lab, Seen};
use crate::workloads::outcome::{Outcome, Stopwatch};
use crate::workloads::percentiles::percentile;
use crate::workloads::signals::Span;

/// More samples than this say nothing new.
const SAMPLES_MAX: usize = 5_000;
/// A single instance may take this many times the budget before it is cut off.
const CUT_AFTER_BUDGETS: u32 = 4;

/// One instance, from start to result.
struct Sample {
    ms: f64,
    span: Span,
    /// The result did not come in time.
    cut: bool,
}

/// W1: hello, one at a time.
pub(super) async fn latency(args: Args) -> Result<Outcome, Failure> {
    let (samples, outcome) = repeat(args, "Hello", "hello").await?;
    let ms: Vec<f64> = samples.iter().map(|sample| sample.ms).collect();
    Ok(outcome.figure("p50_ms", percentile(&ms, 50.0)).figure("p99_ms", percentile(&ms, 99.0)))
}

/// W2: activities one after the other.
pub(super) async fn chain(args: Args, length: u64) -> Result<Outcome, Failure> {
    let (samples, outcome) = repeat(args, "Chain", &length.to_string()).await?;
    let step: Vec<f64> = samples.iter().filter_map(|sample| sample.span.ms_per_step()).collect();
    let total: Vec<f64> = samples.iter().map(|sample| sample.ms).collect();
    Ok(outcome
        .figure("ms_per_step", percentile(&step, 50.0))
        .figure("total_ms", percentile(&total, 50.0)))
}

/// W3: activities side by side.
pub(super) async fn fan_out(args: Args, width: u64) -> Result<Outcome, Failure> {
    let (samples, outcome) = repeat(args, "FanOut", &width.to_string()).await?;
    let total: Vec<f64> = samples.iter().map(|sample| sample.ms).collect();
    let total = percentile(&total, 50.0);
    Ok(outcome
        .figure("total_ms", total)
        .figure("activities_per_second", width as f64 * 1e3 / total))
}

/// W8: executions one after the other, one activity in each.
pub(super) async fn continue_as_new(args: Args, executions: u64) -> Result<Outcome, Failure> {
    let (samples, outcome) = repeat(args, "Eternal", &executions.to_string()).await?;
    let step: Vec<f64> = samples.iter().filter_map(|sample| sample.span.ms_per_step()).collect();
    Ok(outcome.figure("ms_per_iteration", percentile(&step, 50.0)))
}

async fn repeat(args: Args, name: &str, input: &str) -> Result<(Vec<Sample>, Outcome), Failure> {
    let mut lab = Lab::open(args).await?;
    lab.warm_up().await?;
    let patience = lab.args.budget() * CUT_AFTER_BUDGETS;

    let watch = Stopwatch::start(&lab.args)?;
    let end = watch.began_at + lab.args.budget();
    let mut samples = Vec::new();
    let mut failed = 0;
    while samples.is_empty() || (Instant::now() < end && samples.len() < SAMPLES_MAX) {
        let id = format!("i-{}", samples.len());
        match sample(&lab, (&id, name, input), patience).await? {
            Some(sample) => samples.push(sample),
            None => failed += 1,
        }
        if samples.last().is_some_and(|sample| sample.cut) || failed > SAMPLES_MAX {
            break;
        }
    }
    let measured = watch.stop()?;
    let cut = samples.iter().any(|sample| sample.cut);
    let outcome = Outcome::new(&lab, &measured, samples.len() as u64).await?;
    Ok((samples, outcome.fact("cut", cut).fact("failed", failed)))
}

/// One instance; none if it failed.
async fn sample(
    lab: &Lab,
    work: (&str, &str, &str),
    patience: Duration,
) -> Result<Option<Sample>, Failure> {
    lab.signals.take_span();
    let began_at = Instant::now();
    lab.start(work.0, work.1, work.2).await?;
    let seen = lab.wait(work.0, patience).await?;
    let ms = began_at.elapsed().as_secs_f64() * 1e3;
    let cut = match seen {
        Seen::Completed => false,
        Seen::TimedOut => true,
        Seen::Failed(why) => {
            eprintln!("failed: {why}");
            return Ok(None);
        }
    };
    Ok(Some(Sample { ms, span: lab.signals.take_span(), cut }))
}
