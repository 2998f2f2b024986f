//! Order processing that outlives its worker. Run it with `./demo`.
//!
//! Two orders are processed on a SQLite file by a worker in a process of its own. That process is
//! killed twice (SIGKILL: no farewell, nothing saved) and replaced. Activities write down in a
//! journal, outside of the store, when they begin and end, so we can see at the end what was
//! replayed and what really ran.
//!
//! One executable plays all parts: without arguments it is the narrator, who starts, kills and
//! checks; it starts itself again as worker and as sweeper. Reading order: `workflow.rs` (the
//! orders), `narrator.rs` (the story), `worker.rs`, `journal.rs`, `folder.rs`, `show.rs`, `check.rs`.

mod workflow;
mod narrator;
mod worker;
mod journal;
mod folder;
mod show;
mod check;

use std::path::Path;
use std::process::ExitCode;

type Failure = Box<dyn std::error::Error>;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let (part, outcome) = match arguments[..] {
        [] => ("demo", narrator::tell()),
        ["worker", number, folder] => ("worker", worker::work(number, Path::new(folder))),
        ["sweeper", folder] => ("sweeper", folder::sweep(Path::new(folder))),
        _ => ("demo", Err("takes no arguments".into())),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("{part}: FAILED: {why}");
            ExitCode::FAILURE
        }
    }
}
