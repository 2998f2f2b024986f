//! The options of a SQLite store.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use duroxide_core::clock::Clock;

/// What survives which accident.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Durability {
    /// What was acknowledged survives a crash of the process, of the system, and loss of power:
    /// every commit waits for the disk, many callers share one wait.
    #[default]
    Full,
    /// What was acknowledged survives a crash of the process. The system decides when it reaches the
    /// disk: after a power loss the newest commits may be missing, but never only parts of one.
    Process,
}

/// Options of a SQLite store. Build with `..Default::default()`: fields may be added.
#[derive(Clone, Default)]
pub struct SqliteOptions {
    /// What survives which accident.
    pub durability: Durability,
    /// How long messages for an instance that does not exist wait for it before they become dead
    /// letters (R8.29); one hour if not given.
    pub orphan_retention: Option<Duration>,
    /// The time by which messages become visible and locks end; the wall clock if not given. All
    /// processes that share a file must agree on it. For tests.
    pub clock: Option<Arc<dyn Clock>>,
}

impl SqliteOptions {
    pub(crate) fn orphan_retention_ms(&self) -> u64 {
        let retention = self.orphan_retention.unwrap_or(Duration::from_secs(3600));
        u64::try_from(retention.as_millis()).unwrap_or(u64::MAX)
    }
}

impl fmt::Debug for SqliteOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SqliteOptions")
            .field("durability", &self.durability)
            .field("orphan_retention", &self.orphan_retention)
            .field("clock", &self.clock.as_ref().map_or("wall clock", |_| "given"))
            .finish()
    }
}
