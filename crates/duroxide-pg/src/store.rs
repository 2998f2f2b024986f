//! The store itself: opened, and what its methods share.

use std::fmt;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use duroxide_core::clock::wall_clock_ms;
use tokio::sync::watch;

use crate::config::{MigrationPolicy, ProviderConfig};
use crate::error::{Failure, PgError};
use crate::looks::Looks;
use crate::numbers::{ms_in, ms_out, span_in};
use crate::pins::Pins;
use crate::pool::Pool;

/// A store in a PostgreSQL database.
///
/// Any number of nodes may have one open, and run workflows on it, at the same time.
pub struct PostgresProvider {
    pub(crate) store: Arc<Store>,
}

impl PostgresProvider {
    /// Opens the store in the schema [`DEFAULT_SCHEMA`](crate::DEFAULT_SCHEMA) of a database, made
    /// if there is none: `postgres://user:password@host:port/database`.
    ///
    /// # Errors
    /// If the database cannot be reached, or its schema is not for this version.
    pub async fn new(url: &str) -> Result<Self, PgError> {
        Self::new_with_schema(url, None).await
    }

    /// Opens the store in a schema of a database, made if there is none.
    ///
    /// # Errors
    /// If the database cannot be reached, or its schema is not for this version.
    pub async fn new_with_schema(url: &str, schema: Option<&str>) -> Result<Self, PgError> {
        let mut config = ProviderConfig::new(url);
        if let Some(schema) = schema {
            schema.clone_into(&mut config.schema);
        }
        Self::new_with_config(config).await
    }

    /// Opens a store.
    ///
    /// # Errors
    /// If the database cannot be reached, or its schema is not for this version and is not to be
    /// changed.
    pub async fn new_with_config(config: ProviderConfig) -> Result<Self, PgError> {
        let policy = config.migrations;
        let store = Store::new(config)?;
        store.prepare(policy).await?;
        store.look_at_the_clock().await?;
        Ok(Self { store: Arc::new(store) })
    }

    /// Makes the schema, or brings it up to date, whatever the migration policy.
    ///
    /// # Errors
    /// If the database cannot be reached, or its schema is newer than this version.
    pub async fn initialize_schema(&self) -> Result<(), PgError> {
        self.store.prepare(MigrationPolicy::Apply).await
    }

    /// Removes the schema with everything in it. A schema that holds tables of others stays.
    ///
    /// # Errors
    /// If the database cannot be reached, or the schema is not only ours.
    pub async fn cleanup_schema(&self) -> Result<(), PgError> {
        let mut client = self.store.pool.connect().await?;
        self.store.pool.schema().drop(&mut client).await
    }

    /// Schema that holds the tables.
    pub fn schema_name(&self) -> &str {
        self.store.pool.schema().name()
    }
}

impl fmt::Debug for PostgresProvider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PostgresProvider").field("schema", &self.schema_name()).finish()
    }
}

/// What the methods of a store share.
pub(crate) struct Store {
    pub(crate) pool: Pool,
    /// Rung when there may be turns.
    pub(crate) turns: Bell,
    /// Rung when there may be activities.
    pub(crate) work: Bell,
    pub(crate) looks: Looks,
    pub(crate) pins: Mutex<Arc<Pins>>,
    /// How far the server's clock is ahead of ours.
    ahead_ms: AtomicI64,
}

impl Store {
    fn new(config: ProviderConfig) -> Result<Self, PgError> {
        Ok(Self {
            pool: Pool::new(config)?,
            turns: Bell::new(),
            work: Bell::new(),
            looks: Looks::new(),
            pins: Mutex::default(),
            ahead_ms: AtomicI64::new(0),
        })
    }

    async fn prepare(&self, policy: MigrationPolicy) -> Result<(), PgError> {
        let mut client = self.pool.connect().await?;
        self.pool.schema().prepare(&mut client, policy).await?;
        self.pool.adopt(client);
        Ok(())
    }

    async fn look_at_the_clock(&self) -> Result<(), PgError> {
        let rows = self.pool.query("SELECT duroxide.now_ms()", &[]).await?;
        if let Some(row) = rows.first() {
            self.note_time(row.get(0));
        }
        Ok(())
    }

    /// The time the store is to go by, if that is not the server's.
    pub(crate) fn given_time(&self) -> Option<i64> {
        self.pool.settings().clock.as_ref().map(|clock| ms_in(clock.now_ms()))
    }

    /// The server told its time.
    pub(crate) fn note_time(&self, server_ms: i64) {
        let ahead = server_ms.saturating_sub(ms_in(wall_clock_ms()));
        self.ahead_ms.store(ahead, Ordering::Relaxed);
    }

    /// The time by which the store decides, as well as it is known here.
    pub(crate) fn now_ms(&self) -> u64 {
        let server =
            || ms_in(wall_clock_ms()).saturating_add(self.ahead_ms.load(Ordering::Relaxed));
        ms_out(self.given_time().unwrap_or_else(server))
    }

    /// How long messages for nobody are kept (R8.29).
    pub(crate) fn retention(&self) -> i64 {
        let retention = self.pool.settings().orphan_retention.as_millis();
        span_in(u64::try_from(retention).unwrap_or(u64::MAX))
    }

    /// The pins as they were known last.
    pub(crate) fn known_pins(&self) -> Arc<Pins> {
        Arc::clone(&self.pins.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Reads the pins anew.
    pub(crate) async fn learn_pins(&self) -> Result<(), Failure> {
        let rows = self.pool.query("SELECT id, version FROM duroxide.pin", &[]).await?;
        let pins = Pins::new(rows.iter().map(|row| (row.get(0), row.get::<_, String>(1))));
        *self.pins.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(pins);
        Ok(())
    }
}

/// Calls those who wait. A call between a look and a wait is not missed.
pub(crate) struct Bell(watch::Sender<u64>);

impl Bell {
    fn new() -> Self {
        Self(watch::Sender::new(0))
    }

    pub(crate) fn ring(&self) {
        self.0.send_modify(|rung| *rung = rung.wrapping_add(1));
    }

    /// Hears calls from now on.
    pub(crate) fn listen(&self) -> watch::Receiver<u64> {
        self.0.subscribe()
    }
}
