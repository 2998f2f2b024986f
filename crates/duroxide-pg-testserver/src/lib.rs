//! A throwaway PostgreSQL server for tests and benchmarks of this repository.
//!
//! [`shared`] is what tests use: the first process that asks starts a server in a temporary folder,
//! later ones find it, and a keeper ends it and removes the folder soon after the last of them is
//! gone, however that ended. It listens on loopback only and wants a password.
//!
//! `DUROXIDE_PG_URL` names a server of your own instead, `DUROXIDE_PG_BIN` the folder with
//! PostgreSQL's programs. Without either and without the programs tests are skipped, unless
//! `DUROXIDE_PG_REQUIRED` is set.

mod programs;
mod cluster;
mod shared;

pub use shared::{Shared, shared};

/// Names a server to use instead of an own one.
pub const URL_VARIABLE: &str = "DUROXIDE_PG_URL";
/// Names the folder that PostgreSQL's programs are in.
pub const BIN_VARIABLE: &str = "DUROXIDE_PG_BIN";
/// If set, tests without a server fail instead of being skipped.
pub const REQUIRED_VARIABLE: &str = "DUROXIDE_PG_REQUIRED";
