//! `xtask licences`: whether the licence of every crate that we build with is one of those `deny.toml`
//! allows. cargo-deny checks more, and is not on every machine.

use std::collections::BTreeSet;
use std::process::Command;

use serde_json::Value;
use spdx::{Expression, ParseMode};

use crate::Outcome;
use crate::files;

/// Has the list of licences, for cargo-deny as well.
const LIST: &str = "deny.toml";

/// A crate of the dependency tree.
struct Dependency {
    name: String,
    version: String,
    licence: Option<String>,
}

/// Fails if a crate has another licence, or none, or if the list allows what no crate needs.
pub(crate) fn run() -> Outcome {
    let allowed = allowed_in(&files::read(LIST)?)?;
    let dependencies = dependencies()?;
    let mut needed = BTreeSet::new();
    let mut findings = Vec::new();
    for dependency in &dependencies {
        match check(dependency, &allowed) {
            Ok(used) => needed.extend(used),
            Err(finding) => findings.push(finding),
        }
    }
    for licence in allowed.iter().filter(|licence| !needed.contains(*licence)) {
        findings.push(format!("{LIST}: no crate needs {licence}: remove it from `allow`"));
    }
    for finding in &findings {
        println!("{finding}");
    }
    println!("licences: {} crates, {} findings", dependencies.len(), findings.len());
    if findings.is_empty() { Ok(()) } else { Err("licences: see above".to_owned()) }
}

/// The allowed licences that a crate counts as, or why it counts as none. Where a choice is offered, those
/// count that the crate names and the list allows.
fn check(dependency: &Dependency, allowed: &BTreeSet<String>) -> Result<BTreeSet<String>, String> {
    let Dependency { name, version, licence } = dependency;
    let Some(licence) = licence else {
        return Err(format!("{name} {version}: its manifest names no licence"));
    };
    let expression = Expression::parse_mode(licence, ParseMode::LAX)
        .map_err(|error| format!("{name} {version}: {licence}: {}", error.reason))?;
    let mut used = BTreeSet::new();
    let is_allowed = expression.evaluate(|asked| {
        let licence = asked.to_string();
        let is_allowed = allowed.contains(&licence);
        if is_allowed {
            used.insert(licence);
        }
        is_allowed
    });
    if is_allowed {
        Ok(used)
    } else {
        Err(format!("{name} {version}: {licence} is not allowed by {LIST}"))
    }
}

/// What `allow` of the section `[licenses]` lists.
fn allowed_in(text: &str) -> Result<BTreeSet<String>, String> {
    let bad = || format!("{LIST}: no list `allow` in the section [licenses]");
    let (_, section) = text.split_once("[licenses]").ok_or_else(bad)?;
    let (_, list) = section.split_once("\nallow = [").ok_or_else(bad)?;
    let (list, _) = list.split_once(']').ok_or_else(bad)?;
    Ok(list
        .split(',')
        .map(|licence| licence.trim().trim_matches('"').to_owned())
        .filter(|licence| !licence.is_empty())
        .collect())
}

/// All crates that are not ours, of all features, for the machine that this runs on.
fn dependencies() -> Result<Vec<Dependency>, String> {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    let output = Command::new(cargo)
        .current_dir(files::root())
        .args(["metadata", "--format-version", "1", "--locked", "--all-features"])
        .args(["--filter-platform", &host()?])
        .output()
        .map_err(|error| format!("cargo metadata: {error}"))?;
    if !output.status.success() {
        return Err(format!("cargo metadata: {}", String::from_utf8_lossy(&output.stderr)));
    }
    let metadata: Value = serde_json::from_slice(&output.stdout)
        .map_err(|error| format!("cargo metadata: {error}"))?;
    Ok(dependencies_in(&metadata))
}

fn dependencies_in(metadata: &Value) -> Vec<Dependency> {
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let used: BTreeSet<String> =
        list(&metadata["resolve"]["nodes"]).iter().filter_map(|node| text(&node["id"])).collect();
    list(&metadata["packages"])
        .iter()
        .filter(|package| !package["source"].is_null())
        .filter(|package| text(&package["id"]).is_some_and(|id| used.contains(&id)))
        .map(|package| Dependency {
            name: text(&package["name"]).unwrap_or_default(),
            version: text(&package["version"]).unwrap_or_default(),
            licence: text(&package["license"]),
        })
        .collect()
}

/// The name of this machine's kind, as cargo knows it.
fn host() -> Result<String, String> {
    let rustc = std::env::var("RUSTC").unwrap_or_else(|_| "rustc".to_owned());
    let output =
        Command::new(rustc).arg("-vV").output().map_err(|error| format!("rustc: {error}"))?;
    String::from_utf8_lossy(&output.stdout)
        .lines()
        .find_map(|line| line.strip_prefix("host: ").map(str::to_owned))
        .ok_or_else(|| "rustc -vV names no host".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allowed() -> BTreeSet<String> {
        allowed_in("[graph]\n[licenses]\n# why\nallow = [\"MIT\", \"Unicode-3.0\",\n \"ISC\"]\n")
            .unwrap()
    }

    fn checked(licence: Option<&str>) -> Result<BTreeSet<String>, String> {
        let licence = licence.map(str::to_owned);
        check(&Dependency { name: "a".into(), version: "1.0.0".into(), licence }, &allowed())
    }

    #[test]
    fn a_choice_counts_as_what_is_allowed() {
        assert_eq!(checked(Some("GPL-2.0-only OR MIT")), Ok(["MIT".to_owned()].into()));
        assert_eq!(checked(Some("MIT/Apache-2.0")), Ok(["MIT".to_owned()].into()));
        let both = checked(Some("(MIT OR Apache-2.0) AND Unicode-3.0")).unwrap();
        assert_eq!(both, ["MIT".to_owned(), "Unicode-3.0".to_owned()].into());
    }

    #[test]
    fn what_is_not_allowed_is_named() {
        let message = checked(Some("MIT AND GPL-3.0-only")).unwrap_err();
        assert_eq!(message, "a 1.0.0: MIT AND GPL-3.0-only is not allowed by deny.toml");
        assert!(checked(Some("Whatever")).unwrap_err().starts_with("a 1.0.0: Whatever: "));
        assert_eq!(checked(None).unwrap_err(), "a 1.0.0: its manifest names no licence");
    }

    #[test]
    fn a_list_that_is_not_there_is_an_error() {
        assert!(allowed_in("allow = [\"MIT\"]").is_err());
    }
}
