//! Runs the benchmark's sides in turn, combines what they say and writes it down.

mod args;
mod plan;
mod variant;
mod process;
mod postgres;
mod summary;
mod tune;
mod machine;
mod results;
mod targets;
mod markdown;
mod chart;

use std::process::ExitCode;

use args::Args;
use plan::Case;
use process::Bench;
use results::{CaseResults, Results};
use variant::Variant;

/// How long each part of the raw limit is measured, in every round of every case.
const RAW_SECONDS: f64 = 0.7;

#[path = "../../workloads/processes.rs"]
mod processes;

/// Anything that went wrong.
type Failure = Box<dyn std::error::Error>;

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("bench: {failure}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), Failure> {
    let args = Args::parse(std::env::args().skip(1))?;
    if args.help {
        println!("{}", args::HELP);
        return Ok(());
    }
    let cases = plan::select(&args.cases, args.full, &args.store)?;
    let bench = Bench::new(&args)?;
    let tuned = if args.reference { tune::settings(&args, &bench, &cases)? } else { tune::none() };

    let mut results = Results::new(&args);
    for case in &cases {
        let variants = variants(&args, case, &tuned);
        let measured = measure(&args, &bench, case, &variants)?;
        println!("{}", markdown::progress(&measured));
        results.cases.push(measured);
        // After each case, so that an interrupted run leaves something.
        results.write(&args.out)?;
    }
    println!("\n{}", markdown::page(&results));
    Ok(())
}

/// Who takes part in a case.
fn variants(args: &Args, case: &Case, tuned: &tune::Settings) -> Vec<Variant> {
    let mut variants = Vec::new();
    if args.ours {
        variants.push(Variant::ours());
        if args.full && args.store == "sqlite" {
            variants.push(Variant::ours_without_fsync());
        }
    }
    if args.reference && case.reference {
        variants.push(Variant::reference());
        variants.extend(tuned.get(case.name).cloned().map(Variant::tuned));
    }
    variants.extend(args.extra.iter().cloned());
    variants
}

/// Rounds over all variants, so that a slow minute of the machine hits everyone.
fn measure(
    args: &Args,
    bench: &Bench,
    case: &Case,
    variants: &[Variant],
) -> Result<CaseResults, Failure> {
    let mut measured = CaseResults::new(case, variants);
    for round in 1..=args.rounds {
        if args.store != "memory" {
            measured.raw.add(bench.raw(RAW_SECONDS)?);
        }
        for (variant, summary) in &mut measured.variants {
            eprintln!("{}, round {round}: {}", case.name, variant.name);
            match bench.run(case.name, variant, case.seconds(args.full)) {
                Ok(run) => summary.add(run),
                Err(failure) => summary.fail(failure.to_string()),
            }
        }
    }
    Ok(measured)
}
