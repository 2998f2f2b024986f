//! Where PostgreSQL's programs are, and as which user they are run.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::BIN_VARIABLE;

/// PostgreSQL refuses to run as root; Debian's package brings this user.
const SERVANT: &str = "postgres";

/// The folder with `initdb` and `postgres`, if there is one.
pub(crate) fn folder() -> Option<PathBuf> {
    let named = std::env::var_os(BIN_VARIABLE).map(PathBuf::from);
    let searched = std::env::var_os("PATH").unwrap_or_default();
    let mut folders: Vec<PathBuf> = named.into_iter().collect();
    folders.extend(installed_by_debian());
    folders.extend(std::env::split_paths(&searched));
    folders.into_iter().find(|folder| folder.join("initdb").is_file())
}

/// A program to be run as a user it accepts, which is not root.
pub(crate) fn command(program: &Path) -> Command {
    if !is_root() {
        return Command::new(program);
    }
    let mut command = Command::new("setpriv");
    command.args(["--reuid", SERVANT, "--regid", SERVANT, "--clear-groups", "--"]).arg(program);
    command
}

/// Gives a folder to the user that runs the programs.
pub(crate) fn hand_over(folder: &Path) -> Result<(), String> {
    if !is_root() {
        return Ok(());
    }
    run(Command::new("chown").arg(SERVANT).arg(folder))
}

/// Runs a command to its end; what it said if it failed.
pub(crate) fn run(command: &mut Command) -> Result<(), String> {
    output(command).map(|_| ())
}

/// Runs a command to its end; what it printed.
pub(crate) fn output(command: &mut Command) -> Result<String, String> {
    let output = command.output().map_err(|error| format!("{command:?}: {error}"))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(format!("{command:?}: {}: {}", output.status, said.trim()))
}

/// Debian keeps versions side by side: the newest counts.
fn installed_by_debian() -> Option<PathBuf> {
    let versions = std::fs::read_dir("/usr/lib/postgresql").ok()?;
    let number = |path: &PathBuf| path.file_name()?.to_str()?.parse::<u32>().ok();
    let versions = versions.filter_map(|entry| entry.ok().map(|entry| entry.path()));
    versions.max_by_key(|path| number(path)).map(|path| path.join("bin"))
}

fn is_root() -> bool {
    let output = Command::new("id").arg("-u").output();
    output.is_ok_and(|output| output.stdout.trim_ascii() == b"0")
}
