//! What one run found out.

use std::time::{Duration, Instant};

use serde_json::{Map, Value, json};

use super::Failure;
use super::args::{Args, Durability, StoreKind};
use super::lab::Lab;
use super::server::{Server, ServerUsage};
use super::usage::{Usage, peak_resident_bytes};

/// A measurement that goes on.
pub(crate) struct Stopwatch {
    pub(crate) began_at: Instant,
    before: Usage,
    server: Option<(Server, ServerUsage)>,
}

/// What was measured between start and stop of a stopwatch.
pub(crate) struct Measured {
    pub(crate) elapsed: Duration,
    before: Usage,
    after: Usage,
    /// Before and after.
    server: Option<(ServerUsage, ServerUsage)>,
}

/// The answer of a run.
pub(crate) struct Outcome {
    args: Args,
    /// Instances (of the outermost kind) that were finished.
    instances: u64,
    figures: Map<String, Value>,
    /// Notes such as "cut".
    facts: Map<String, Value>,
}

impl Stopwatch {
    pub(crate) fn start(args: &Args) -> Result<Self, Failure> {
        let server = match args.server() {
            Some(server) => Some((server.clone(), server.usage()?)),
            None => None,
        };
        Ok(Self { before: Usage::now()?, server, began_at: Instant::now() })
    }

    pub(crate) fn stop(self) -> Result<Measured, Failure> {
        let elapsed = self.began_at.elapsed();
        let after = Usage::now()?;
        let server = match self.server {
            Some((server, before)) => Some((before, server.usage()?)),
            None => None,
        };
        Ok(Measured { elapsed, before: self.before, after, server })
    }
}

impl Measured {
    /// Processor time used.
    pub(crate) fn cpu(&self) -> Duration {
        self.after.cpu.saturating_sub(self.before.cpu)
    }

    /// Processor time the server used, if there is one.
    pub(crate) fn server_cpu(&self) -> Option<Duration> {
        self.server.map(|(before, after)| after.cpu.saturating_sub(before.cpu))
    }

    /// Transactions of the server, if there is one.
    pub(crate) fn transactions(&self) -> Option<u64> {
        self.server.map(|(before, after)| after.transactions.saturating_sub(before.transactions))
    }

    /// Times a thread went to sleep.
    pub(crate) fn sleeps(&self) -> i64 {
        self.after.sleeps - self.before.sleeps
    }

    /// Bytes written to storage.
    pub(crate) fn written_bytes(&self) -> u64 {
        self.after.written_bytes - self.before.written_bytes
    }

    /// Calls that wrote.
    pub(crate) fn write_calls(&self) -> u64 {
        self.after.write_calls - self.before.write_calls
    }
}

impl Outcome {
    /// Stops the runtime and takes stock.
    pub(crate) async fn new(
        lab: &Lab,
        measured: &Measured,
        instances: u64,
    ) -> Result<Self, Failure> {
        let mut facts = Map::new();
        facts.insert("seconds".into(), json!(measured.elapsed.as_secs_f64()));
        facts.insert("cpu_seconds".into(), json!(measured.cpu().as_secs_f64()));
        facts.insert("written_bytes".into(), json!(measured.written_bytes()));
        facts.insert("start_errors".into(), json!(lab.start_errors()));
        facts.insert("provider_errors".into(), json!(lab.provider_errors()));
        if let (Some(cpu), Some(transactions)) = (measured.server_cpu(), measured.transactions()) {
            facts.insert("server_cpu_seconds".into(), json!(cpu.as_secs_f64()));
            facts.insert("transactions".into(), json!(transactions));
        }
        lab.stop().await;
        facts.insert("peak_rss_bytes".into(), json!(peak_resident_bytes()));
        if let Some(bytes) = lab.database_bytes().await? {
            facts.insert("database_bytes".into(), json!(bytes));
        }
        let outcome = Self { args: lab.args.clone(), instances, figures: Map::new(), facts };
        Ok(outcome.stored(instances))
    }

    /// Says how many instances are in the store, if not just those that were finished.
    pub(crate) fn stored(mut self, instances: u64) -> Self {
        if let Some(bytes) = self.facts.get("database_bytes").and_then(Value::as_u64) {
            self.facts.insert("bytes_per_instance".into(), json!(bytes / instances.max(1)));
        }
        self
    }

    /// Adds a figure.
    pub(crate) fn figure(mut self, name: &str, value: f64) -> Self {
        self.figures.insert(name.to_owned(), json!(value));
        self
    }

    /// Adds something worth knowing beside the figures.
    pub(crate) fn fact(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.facts.insert(name.to_owned(), value.into());
        self
    }

    /// One line for whoever combines the runs.
    pub(crate) fn to_json(&self) -> Value {
        let mut line = self.facts.clone();
        line.insert("case".into(), json!(self.args.case));
        line.insert("side".into(), json!(crate::SIDE));
        line.insert("store".into(), json!(store_name(self.args.store)));
        line.insert("settings".into(), settings(&self.args));
        line.insert("instances".into(), json!(self.instances));
        line.insert("figures".into(), Value::Object(self.figures.clone()));
        Value::Object(line)
    }
}

fn settings(args: &Args) -> Value {
    let durability = args.durability.map(|durability| match durability {
        Durability::Full => "full",
        Durability::Process => "process",
    });
    json!({
        "poll_ms": args.poll_ms,
        "concurrency": args.concurrency,
        "pool": args.pool,
        "client_poll_ms": args.client_poll_ms,
        "durability": durability,
    })
}

fn store_name(store: StoreKind) -> &'static str {
    match store {
        StoreKind::Memory => "memory",
        StoreKind::Sqlite => "sqlite",
        StoreKind::Postgres => "postgres",
    }
}
