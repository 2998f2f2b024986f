//! The benchmark program. Each side includes this folder as a module and brings its own `duroxide`
//! and its own `store::open`; everything that is measured is measured by the same source.

pub(crate) mod args;
mod usage;
mod processes;
mod server;
pub(crate) mod percentiles;
mod signals;
mod handlers;
pub(crate) mod lab;
pub(crate) mod starters;
pub(crate) mod outcome;
mod cases;

use std::process::ExitCode;

use args::Args;
use outcome::Outcome;

/// Anything that went wrong; a run ends with it.
pub(crate) type Failure = Box<dyn std::error::Error + Send + Sync>;

/// Runs the case named on the command line and prints one line of JSON.
pub(crate) fn main() -> ExitCode {
    match run() {
        Ok(outcome) => {
            println!("{}", outcome.to_json());
            ExitCode::SUCCESS
        }
        Err(failure) => {
            eprintln!("{}: {failure}", crate::SIDE);
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<Outcome, Failure> {
    let args = Args::parse(std::env::args().skip(1))?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(cases::run(args))
}
