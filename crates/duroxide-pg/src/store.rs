//! The store itself: opened, and what its methods share.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use tokio::runtime::Handle;
use tokio::sync::Notify;

use crate::commit_board::CommitBoard;
use crate::config::{MigrationPolicy, ProviderConfig};
use crate::connection::Connection;
use crate::error::PgError;
use crate::lanes::{self, Floor, Queue};
use crate::membership::Membership;
use crate::news::{News, Outbox};
use crate::numbers::{ms_in, ms_out, span_in};
use crate::pins::Pins;
use crate::pool::Pool;
use crate::server_clock::ServerClock;
use crate::watch::watch;

/// A store in a PostgreSQL database.
///
/// Any number of nodes may have one open, and run workflows on it, at the same time. Dropped, it gives
/// back what it still holds.
///
/// ```no_run
/// use std::sync::Arc;
///
/// use duroxide_pg::{PgError, PostgresProvider, ProviderConfig};
///
/// # async fn open() -> Result<(), PgError> {
/// let mut config = ProviderConfig::new("postgres://app:secret@db.example/app");
/// config.application_name = "orders".to_owned();
/// let store = Arc::new(PostgresProvider::new_with_config(config).await?);
/// // Hand it to a runtime, a client, or both.
/// # Ok(())
/// # }
/// ```
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
        let store = Arc::new(Store::new(config)?);
        store.prepare(policy).await?;
        store.look_at_the_clock().await?;
        store.start_if_needed();
        Ok(Self { store })
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

impl Drop for PostgresProvider {
    fn drop(&mut self) {
        self.store.floor.close();
        self.store.closing.notify_one();
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
    /// Where ops and fetches wait for a lane.
    pub(crate) floor: Arc<Floor>,
    /// Where commits are announced to clients.
    pub(crate) board: CommitBoard,
    /// What other nodes are to hear.
    pub(crate) outbox: Outbox,
    /// Whether this is a node, and which.
    pub(crate) membership: Membership,
    /// Whether there are other nodes, as far as is known.
    company: AtomicBool,
    /// Rung when the store is closed.
    pub(crate) closing: Notify,
    /// What is beside the lanes has been started.
    is_started: AtomicBool,
    /// Whether the lanes run.
    running: Running,
    pins: Mutex<Arc<Pins>>,
    server_clock: ServerClock,
}

impl Store {
    fn new(config: ProviderConfig) -> Result<Self, PgError> {
        Ok(Self {
            pool: Pool::new(config)?,
            floor: Floor::new(),
            board: CommitBoard::new(),
            outbox: Outbox::default(),
            membership: Membership::new(),
            company: AtomicBool::new(false),
            closing: Notify::new(),
            is_started: AtomicBool::new(false),
            running: Running::default(),
            pins: Mutex::default(),
            server_clock: ServerClock::starting_at(0),
        })
    }

    /// Starts the tasks of the store.
    pub(crate) fn start_if_needed(self: &Arc<Self>) {
        if !self.is_started.swap(true, Ordering::AcqRel) {
            self.membership.begin();
            lanes::start_beside(self);
            self.pool.driver().handle().spawn(watch(Arc::clone(self)));
        }
        self.start_lanes(|| self.pool.driver().home());
    }

    fn start_lanes(self: &Arc<Self>, home: impl FnOnce() -> Handle) {
        if self.running.begin() {
            let guard = RunningGuard { store: Arc::downgrade(self) };
            lanes::start(self, &Arc::new(guard), &home());
        }
    }

    /// The lanes are gone. If the store is not closed, the runtime they were on has ended, and they go on
    /// on the store's own thread: there may be somebody who waits elsewhere.
    fn lanes_ended(self: &Arc<Self>) {
        self.running.end();
        if !self.floor.is_closed() {
            self.start_lanes(|| self.pool.driver().handle().clone());
        }
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
        self.server_clock.note(server_ms);
    }

    /// The time by which the store decides, as well as it is known here.
    pub(crate) fn now_ms(&self) -> u64 {
        ms_out(self.given_time().unwrap_or_else(|| self.server_clock.now_ms()))
    }

    /// How long messages for nobody are kept (R8.29).
    pub(crate) fn retention(&self) -> i64 {
        let retention = self.pool.settings().orphan_retention.as_millis();
        span_in(u64::try_from(retention).unwrap_or(u64::MAX))
    }

    /// Whether there are other nodes, to be told what happens here.
    pub(crate) fn has_company(&self) -> bool {
        self.company.load(Ordering::Acquire)
    }

    /// There are other nodes, or none. Until a node knows of others it tells nothing, and until it
    /// listens it hears nothing: those who meet have to look, both of them.
    pub(crate) fn note_company(&self, is_there: bool) {
        if !self.company.swap(is_there, Ordering::AcqRel) && is_there {
            self.ring_everything();
            self.outbox.add(News::add_everything);
        }
    }

    /// The channel of this store's notifications, as a name and as an identifier.
    pub(crate) fn channel_name(&self) -> String {
        format!("duroxide {}", number_of(self.pool.schema().name()))
    }

    /// The same, quoted.
    pub(crate) fn channel(&self) -> String {
        format!("\"{}\"", self.channel_name())
    }

    /// There may be something for everybody.
    pub(crate) fn ring_everything(&self) {
        self.look_properly(Queue::Turns);
        self.look_properly(Queue::Work);
        self.board.ring_all();
    }

    /// There may be something to fetch, ends of locks included.
    pub(crate) fn look_properly(&self, queue: Queue) {
        self.floor.expect(queue, tokio::time::Instant::now());
    }

    /// The pins as they were known last.
    pub(crate) fn known_pins(&self) -> Arc<Pins> {
        Arc::clone(&self.pins.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Reads the pins anew.
    pub(crate) async fn learn_pins(&self, connection: &Connection) -> Result<(), PgError> {
        const READ: &str = "SELECT id, version FROM duroxide.pin";
        let rows = self.pool.ask(connection, READ, &[]).await?;
        let pins = Pins::new(rows.iter().map(|row| (row.get(0), row.get::<_, String>(1))));
        *self.pins.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(pins);
        Ok(())
    }
}

/// A number for any name, as text. Should two schemas share one, their nodes look once too often.
pub(crate) fn number_of(name: &str) -> String {
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    format!("{:016x}", name.bytes().fold(0xcbf2_9ce4_8422_2325, step))
}

/// Whether the lanes of a store run.
#[derive(Default)]
struct Running(AtomicBool);

impl Running {
    /// Whether they do not, and are to be started by the caller.
    fn begin(&self) -> bool {
        !self.0.swap(true, Ordering::AcqRel)
    }

    fn end(&self) {
        self.0.store(false, Ordering::Release);
    }
}

/// Part of every lane.
pub(crate) struct RunningGuard {
    store: Weak<Store>,
}

impl Drop for RunningGuard {
    fn drop(&mut self) {
        if let Some(store) = self.store.upgrade() {
            store.lanes_ended();
        }
    }
}
