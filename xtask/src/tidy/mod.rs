//! `xtask tidy`: what every file of the repository obeys.

mod sizes;
mod arrows;
mod words;
mod sql;
mod descriptors;
mod locks;
mod exceptions;

use crate::Outcome;
use crate::files::{self, File};
use exceptions::Exceptions;

const EXCEPTIONS: &str = "xtask/tidy-exceptions.txt";

/// Something a file does wrong.
#[derive(Debug, PartialEq, Eq)]
struct Finding {
    /// File and line, or file and function.
    place: String,
    message: String,
}

impl Finding {
    fn new(place: impl Into<String>, message: impl Into<String>) -> Self {
        Self { place: place.into(), message: message.into() }
    }
}

/// Checks all files; fails if any finding is not excused.
pub(crate) fn run() -> Outcome {
    let files = files::all()?;
    let mut exceptions = Exceptions::parse(&files::read(EXCEPTIONS)?)?;
    let mut findings = Vec::new();
    for file in &files {
        findings.extend(check(file)?);
    }
    findings.extend(locks::check_all(&files));
    findings.retain(|found| !exceptions.excuse(&found.place));
    findings.extend(exceptions.unused().map(|place| {
        Finding::new(EXCEPTIONS, format!("{place} needs no exception (any more): remove the line"))
    }));
    for Finding { place, message } in &findings {
        println!("{place}: {message}");
    }
    println!("tidy: {} files, {} findings", files.len(), findings.len());
    if findings.is_empty() { Ok(()) } else { Err("tidy: see above".to_owned()) }
}

fn check(file: &File) -> Result<Vec<Finding>, String> {
    let mut findings = words::check(file);
    findings.extend(arrows::check_manifest(file));
    if file.is_rust() {
        let syntax =
            syn::parse_file(&file.text).map_err(|error| format!("{}: {error}", file.path))?;
        findings.extend(sizes::check(file, &syntax));
        findings.extend(arrows::check_modules(file, &syntax));
        findings.extend(sql::check(file, &syntax));
        findings.extend(descriptors::check(file, &syntax));
    }
    Ok(findings)
}
