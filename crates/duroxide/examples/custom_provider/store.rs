//! The tables, and the little that every other file needs: one lock, one clock, rows as text.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use duroxide::clock::{Clock, WallClock};
use duroxide::providers::{DeadLetter, ProviderError};
use semver::Version;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::kv::Values;
use super::sessions::Session;
use super::turns::Message;
use super::work::Job;

/// How long messages for an instance that does not exist wait for it.
const ORPHAN_RETENTION: Duration = Duration::from_secs(60 * 60);
/// Older dead letters make room for newer ones.
const DEAD_LETTERS_MAX: usize = 1000;

/// A store of plain tables under one lock.
pub(crate) struct TableStore {
    tables: Mutex<Tables>,
    clock: Arc<dyn Clock>,
}

impl TableStore {
    pub(crate) fn new() -> Self {
        Self::with_orphan_retention(ORPHAN_RETENTION)
    }

    pub(crate) fn with_orphan_retention(orphan_retention: Duration) -> Self {
        let orphan_retention_ms = millis(orphan_retention);
        let tables = Mutex::new(Tables { orphan_retention_ms, ..Tables::default() });
        Self { tables, clock: Arc::new(WallClock) }
    }

    /// A store that goes by another clock than the wall's, for tests.
    #[allow(dead_code)] // Not used by the example itself.
    pub(crate) fn with_clock(clock: Arc<dyn Clock>) -> Self {
        Self { clock, ..Self::new() }
    }

    /// One transaction: nobody else sees or changes a table meanwhile, and all of it happens at the
    /// same time of day. With a database this is `BEGIN … COMMIT`, and `now` is the database's.
    pub(crate) fn transaction<T>(&self, work: impl FnOnce(&mut Tables, u64) -> T) -> T {
        let mut tables = self.tables.lock().unwrap_or_else(PoisonError::into_inner);
        work(&mut tables, self.clock.now_ms())
    }
}

/// Everything that is stored. A field would be a table of a database.
#[derive(Default)]
pub(crate) struct Tables {
    /// Instances that have had a commit, by id.
    pub(crate) instances: HashMap<String, Instance>,
    /// Executions by instance and number, with their histories.
    pub(crate) executions: HashMap<String, BTreeMap<u64, Execution>>,
    /// The orchestrator queue, oldest first.
    pub(crate) messages: Vec<Message>,
    /// Where instances stand in that queue that were moved behind others (R8.146).
    pub(crate) moved_to: HashMap<String, u64>,
    /// Until when instances wait whose turn was given back for a while and had left messages behind
    /// (R8.149).
    pub(crate) waits_until: HashMap<String, u64>,
    /// Locks on instances, by id. Not part of `instances`: a first turn is locked before it has one.
    pub(crate) turn_locks: HashMap<String, Lock>,
    /// The worker queue, oldest first.
    pub(crate) jobs: Vec<Job>,
    /// Leases on sessions, by id.
    pub(crate) sessions: HashMap<String, Session>,
    /// Key-value data, by instance.
    pub(crate) values: HashMap<String, Values>,
    /// What could not be delivered.
    pub(crate) dead_letters: Vec<DeadLetter>,
    pub(crate) orphan_retention_ms: u64,
    last_number: u64,
}

/// An instance, as of its last commit.
pub(crate) struct Instance {
    pub(crate) name: String,
    pub(crate) version: String,
    pub(crate) parent: Option<String>,
    pub(crate) custom_status: Option<String>,
    pub(crate) custom_status_version: u64,
    pub(crate) created_at_ms: u64,
    pub(crate) updated_at_ms: u64,
    /// Rises from instance to instance: two can be created in one millisecond.
    pub(crate) number: u64,
}

/// One run of an instance.
pub(crate) struct Execution {
    pub(crate) status: String,
    pub(crate) output: Option<String>,
    pub(crate) started_at_ms: u64,
    pub(crate) completed_at_ms: Option<u64>,
    /// The library version that began it.
    pub(crate) pin: Option<Version>,
    /// Its history: events as text, by event id.
    pub(crate) events: BTreeMap<u64, String>,
}

impl Execution {
    pub(crate) fn begun(now: u64) -> Self {
        Self {
            status: "Running".to_owned(),
            output: None,
            started_at_ms: now,
            completed_at_ms: None,
            pin: None,
            events: BTreeMap::new(),
        }
    }
}

/// The right to answer for something, for a time.
pub(crate) struct Lock {
    pub(crate) token: String,
    pub(crate) until_ms: u64,
    /// Whether a fetch has seen that it ran out.
    pub(crate) is_over: bool,
    /// Of a turn: whether there were more messages than it may have (R8.147).
    pub(crate) leaves_some: bool,
}

impl Lock {
    pub(crate) fn is_valid(&self, now: u64) -> bool {
        now < self.until_ms
    }

    /// Whether it ran out and no fetch has seen that yet.
    pub(crate) fn just_ran_out(&self, now: u64) -> bool {
        !self.is_valid(now) && !self.is_over
    }
}

impl Tables {
    /// A number that was never given out before.
    pub(crate) fn fresh_number(&mut self) -> u64 {
        self.last_number += 1;
        self.last_number
    }

    /// A lock with a token of its own.
    pub(crate) fn fresh_lock(&mut self, now: u64, timeout: Duration) -> Lock {
        let token = format!("lock-{}", self.fresh_number());
        Lock { token, until_ms: later(now, timeout), is_over: false, leaves_some: false }
    }

    /// Keeps what cannot be delivered for somebody to look at.
    pub(crate) fn bury(&mut self, instance: String, payload: String, reason: &str, now: u64) {
        tracing::warn!(instance, reason, "message given up");
        let reason = reason.to_owned();
        self.dead_letters.push(DeadLetter {
            instance: Some(instance),
            payload,
            reason,
            at_ms: now,
        });
        let too_many = self.dead_letters.len().saturating_sub(DEAD_LETTERS_MAX);
        self.dead_letters.drain(..too_many);
    }
}

/// When `delay` will have passed.
pub(crate) fn later(now: u64, delay: Duration) -> u64 {
    now.saturating_add(millis(delay))
}

/// What is written to a row.
pub(crate) fn encode<T: Serialize>(operation: &str, value: &T) -> Result<String, ProviderError> {
    serde_json::to_string(value)
        .map_err(|error| ProviderError::permanent(operation, error.to_string()))
}

/// What a row says.
pub(crate) fn decode<T: DeserializeOwned>(operation: &str, row: &str) -> Result<T, ProviderError> {
    serde_json::from_str(row)
        .map_err(|error| ProviderError::permanent(operation, format!("unreadable row: {error}")))
}

pub(crate) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
