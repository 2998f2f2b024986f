//! The PostgreSQL server a run works on, seen from outside: its processor time, its transactions,
//! the size of its database.

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use super::Failure;
use super::processes::family_cpu;

/// Transactions of a database.
const TRANSACTIONS: &str = "SELECT xact_commit + xact_rollback FROM pg_stat_database
     WHERE datname = ";
/// A database that every server has; asked there, a question is not counted here.
const ELSEWHERE: &str = "postgres";
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
    /// Reads the counters.
    pub(crate) fn usage(&self) -> Result<ServerUsage, Failure> {
        let cpu = family_cpu(self.pid);
        let (server, database) = self.url.rsplit_once('/').ok_or("a URL without a database")?;
        let question = format!("{TRANSACTIONS} '{}'", database.replace('\'', "''"));
        let answer = self.run(&format!("{server}/{ELSEWHERE}"), &question)?;
        Ok(ServerUsage { cpu, transactions: answer.trim().parse()? })
    }

    /// Bytes of the database beyond those of an empty one.
    pub(crate) fn database_bytes(&self) -> Result<u64, Failure> {
        Ok(self.run(&self.url, BYTES)?.trim().parse()?)
    }

    /// Lets the server vacuum by itself or not. What it does then counts as transactions, too, of
    /// which nobody knows whose they are.
    pub(crate) fn set_autovacuum(&self, on: bool) -> Result<(), Failure> {
        let value = if on { "on" } else { "off" };
        self.run(&self.url, &format!("ALTER SYSTEM SET autovacuum = {value}"))?;
        self.run(&self.url, "SELECT pg_reload_conf()")?;
        Ok(())
    }

    fn run(&self, url: &str, sql: &str) -> Result<String, Failure> {
        let mut psql = Command::new(&self.psql);
        psql.args(["--no-psqlrc", "--tuples-only", "--no-align", "--dbname", url]);
        let output = psql.args(["--command", sql]).output()?;
        if !output.status.success() {
            return Err(String::from_utf8_lossy(&output.stderr).into());
        }
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }
}
