//! A throwaway PostgreSQL server for tests and benchmarks of this repository.
//!
//! [`shared`] is what most tests use: the first process that asks starts a server in a temporary
//! folder, later ones find it, and a keeper ends it and removes the folder soon after the last of
//! them is gone, however that ended. [`Server`] is one that a test may stop and break, [`Pooler`]
//! stands in front of one. Both listen
//! on loopback only and want a password.
//!
//! `DUROXIDE_PG_URL` names a server of your own instead of the shared one, `DUROXIDE_PG_BIN` the
//! folder with PostgreSQL's programs. Without the programs tests are skipped, unless
//! `DUROXIDE_PG_REQUIRED` is set.

mod programs;
mod cluster;
mod shared;
mod server;
mod pooler;

use std::io::Write;
use std::sync::{Mutex, PoisonError};

pub use pooler::Pooler;
pub use server::{Options, Server, Stop};
pub use shared::{Shared, shared};

/// Names a server to use instead of an own one.
pub const URL_VARIABLE: &str = "DUROXIDE_PG_URL";
/// Names the folder that PostgreSQL's programs are in.
pub const BIN_VARIABLE: &str = "DUROXIDE_PG_BIN";
/// If set, tests without a server fail instead of being skipped.
pub const REQUIRED_VARIABLE: &str = "DUROXIDE_PG_REQUIRED";

/// Whether PostgreSQL's programs are there. If not, says that something is skipped.
///
/// # Panics
/// If they are not, although they are required.
#[expect(clippy::panic, reason = "for tests only")]
pub fn installed() -> bool {
    if programs::folder().is_some() {
        return true;
    }
    let missing = "PostgreSQL's programs are not installed (Debian: apt-get install postgresql)";
    if std::env::var_os(REQUIRED_VARIABLE).is_some() {
        panic!("{missing}, and must not be missing: {REQUIRED_VARIABLE} is set");
    }
    say_skipped(missing);
    false
}

/// Says once on stderr that something is skipped: what a test that passes prints is not shown,
/// so this goes past that.
fn say_skipped(why: &str) {
    static SAID: Mutex<Vec<String>> = Mutex::new(Vec::new());
    let mut said = SAID.lock().unwrap_or_else(PoisonError::into_inner);
    if !said.iter().any(|known| known == why) {
        said.push(why.to_owned());
        let line = format!("SKIPPED: {why}\n");
        drop(std::io::stderr().write_all(line.as_bytes())); // Fails if the output is closed.
    }
}
