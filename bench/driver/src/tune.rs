//! Looks for the reference's best settings, case by case, and remembers them.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::Failure;
use crate::args::Args;
use crate::plan::{Better, CASES, Case};
use crate::process::Bench;
use crate::variant::{self, Variant};

/// The best settings found, by case.
pub(crate) type Settings = BTreeMap<String, variant::Settings>;

/// Tried in every run; the first are the defaults.
const QUICK: &[&str] =
    &["", "poll-ms=1,concurrency=2", "poll-ms=1,concurrency=8", "poll-ms=10,concurrency=8"];
/// Tried in full runs as well.
const FULL: &[&str] = &[
    "poll-ms=1,concurrency=1",
    "poll-ms=1,concurrency=4",
    "poll-ms=1,concurrency=32",
    "poll-ms=10,concurrency=2",
    "poll-ms=10,concurrency=32",
    "concurrency=8",
    "concurrency=32",
];
/// Tried in every run on PostgreSQL, in place of the others.
const POSTGRES: &[&str] =
    &["", "pool=32,concurrency=16", "poll-ms=1,concurrency=8,pool=32", "concurrency=32,pool=64"];
/// Tried in full runs on PostgreSQL as well.
const POSTGRES_FULL: &[&str] = &[
    "poll-ms=1,concurrency=2",
    "poll-ms=10,concurrency=8,pool=32",
    "poll-ms=10,concurrency=32,pool=64",
    "concurrency=64,pool=96",
];
/// Tried on top of the best where a client waits for each result.
const CLIENT: &str = "client-poll-ms=1";
const SECONDS: f64 = 2.5;

/// No settings: the reference does not take part.
pub(crate) fn none() -> Settings {
    Settings::new()
}

/// The best settings for these cases: remembered ones, or found now.
pub(crate) fn settings(args: &Args, bench: &Bench, cases: &[Case]) -> Result<Settings, Failure> {
    let file = file(args);
    let mut known = read(&file)?;
    if args.retune {
        known.retain(|name, _| !cases.iter().any(|case| case.tuned_by == Some(name)));
    }
    let mut found = Settings::new();
    for case in cases {
        let Some(by) = case.tuned_by else { continue };
        let best = match known.get(by) {
            Some(best) => best.clone(),
            None => {
                let by = CASES.iter().find(|case| case.name == by).unwrap_or(case);
                let best = best_for(args, bench, by)?;
                known.insert(by.name.to_owned(), best.clone());
                write(&file, &known)?;
                best
            }
        };
        found.insert(case.name.to_owned(), best);
    }
    Ok(found)
}

fn best_for(args: &Args, bench: &Bench, case: &Case) -> Result<variant::Settings, Failure> {
    let figure = case.figures[0];
    let (quick, full) =
        if args.store == "postgres" { (POSTGRES, POSTGRES_FULL) } else { (QUICK, FULL) };
    let candidates = quick.iter().chain(if args.full { full } else { &[] });
    let mut best: Option<(f64, String)> = None;
    let mut attempt = |text: String| -> Result<Option<String>, Failure> {
        let settings = variant::Settings::parse(&text)?;
        let run = bench.run(case.name, &Variant::tuned(settings), SECONDS);
        let value = run.ok().and_then(|run| run.get(figure.key));
        eprintln!("tuning {}: {text}: {value:?} {}", case.name, figure.unit);
        let Some(value) = value else { return Ok(best.as_ref().map(|best| best.1.clone())) };
        let is_better = best.as_ref().is_none_or(|(so_far, _)| match figure.better {
            Better::Higher => value > *so_far,
            Better::Lower => value < *so_far,
        });
        if is_better {
            best = Some((value, text));
        }
        Ok(best.as_ref().map(|best| best.1.clone()))
    };
    let mut winner = None;
    for candidate in candidates {
        winner = attempt((*candidate).to_owned())?;
    }
    if let (Some(so_far), true) = (&winner, waits_for_results(case)) {
        winner = attempt(format!("{so_far},{CLIENT}"))?;
    }
    let winner = winner.ok_or_else(|| format!("{}: no settings work", case.name))?;
    variant::Settings::parse(&winner)
}

/// Whether the figure is what a client sees that waits for a result.
fn waits_for_results(case: &Case) -> bool {
    case.name == "w1-latency" || case.figures[0].key == "total_ms"
}

fn file(args: &Args) -> PathBuf {
    args.out.join(format!("tuned-{}.json", args.store))
}

fn read(file: &PathBuf) -> Result<Settings, Failure> {
    let Ok(text) = fs::read_to_string(file) else { return Ok(Settings::new()) };
    let known: BTreeMap<String, String> = serde_json::from_str(&text)?;
    known.into_iter().map(|(case, text)| Ok((case, variant::Settings::parse(&text)?))).collect()
}

fn write(file: &PathBuf, settings: &Settings) -> Result<(), Failure> {
    if let Some(folder) = file.parent() {
        fs::create_dir_all(folder)?;
    }
    let all = settings.iter().map(|(case, settings)| (case.clone(), json!(settings.text())));
    let all = Value::Object(all.collect());
    Ok(fs::write(file, format!("{all:#}\n"))?)
}
