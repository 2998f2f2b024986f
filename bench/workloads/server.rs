//! The PostgreSQL server a run works on, seen from outside: its processor time, its transactions,
//! the size of its database.

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use super::Failure;
use super::processes::family_cpu;

/// Transactions of the database, those of asking included.
const TRANSACTIONS: &str = "SELECT xact_commit + xact_rollback FROM pg_stat_database
     WHERE datname = current_database()";
const BYTES: &str = "SELECT pg_database_size(current_database())
     - (SELECT pg_database_size(oid) FROM pg_database WHERE datname = 'template1')";

/// Where the server is.
#[derive(Debug, Clone, Default)]
pub(crate) struct Server {
    /// URL of a database that belongs to this run alone.
    pub(crate) url: String,
    /// The first of its processes.
    pub(crate) pid: u32,
    /// The program `psql`.
    pub(crate) psql: PathBuf,
}

/// Counters of the server since it began.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ServerUsage {
    /// User and system time of all its processes.
    pub(crate) cpu: Duration,
    pub(crate) transactions: u64,
}

impl Server {
    /// Reads the counters. What this itself costs is taken off the transactions.
    pub(crate) fn usage(&self) -> Result<ServerUsage, Failure> {
        let cpu = family_cpu(self.pid);
        let first = self.ask(TRANSACTIONS)?;
        let second = self.ask(TRANSACTIONS)?;
        let of_asking = second.saturating_sub(first);
        Ok(ServerUsage { cpu, transactions: first.saturating_sub(of_asking) })
    }

    /// Bytes of the database beyond those of an empty one.
    pub(crate) fn database_bytes(&self) -> Result<u64, Failure> {
        self.ask(BYTES)
    }

    /// Lets the server vacuum by itself or not. What it does then counts as transactions, too, of
    /// which nobody knows whose they are.
    pub(crate) fn set_autovacuum(&self, on: bool) -> Result<(), Failure> {
        let value = if on { "on" } else { "off" };
        self.run(&format!("ALTER SYSTEM SET autovacuum = {value}"))?;
        self.run("SELECT pg_reload_conf()")?;
        Ok(())
    }

    fn ask(&self, sql: &str) -> Result<u64, Failure> {
        Ok(self.run(sql)?.trim().parse()?)
    }

    fn run(&self, sql: &str) -> Result<String, Failure> {
        let mut psql = Command::new(&self.psql);
        psql.args(["--no-psqlrc", "--tuples-only", "--no-align", "--dbname", &self.url]);
        let output = psql.args(["--command", sql]).output()?;
        if !output.status.success() {
            return Err(String::from_utf8_lossy(&output.stderr).into());
        }
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }
}
