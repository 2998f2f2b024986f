//! Connections to the server: those that read, as many as are needed at a time up to a limit, and those
//! that others keep.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::Semaphore;
use tokio_postgres::{Client, Row};

use crate::config::ProviderConfig;
use crate::connection::{Connection, Ear, GRACE};
use crate::door::Door;
use crate::driver::Driver;
use crate::error::PgError;
use crate::lanes::Call;
use crate::plans::Plans;
use crate::schema::Schema;
use crate::target::{LANE_SETTINGS, Target, lock_wait, pinned};
use crate::value::Values;

/// How often a transaction that others made fail is tried again.
const TRIES: u32 = 10;

/// How every transaction begins. What a function sees depends on the isolation, which the database or the
/// role may have set otherwise.
const BEGIN: &str = "BEGIN ISOLATION LEVEL READ COMMITTED";

/// Connections, and the schema they work in.
pub(crate) struct Pool {
    target: Target,
    settings: ProviderConfig,
    driver: Driver,
    schema: Schema,
    door: Door,
    /// How transactions on lanes begin: those that wait for the disk, and those that need not.
    begin: String,
    begin_brief: String,
    /// How one of a single statement begins where nothing outlives a transaction.
    begin_alone: String,
    idle: Mutex<Vec<Connection>>,
    plans: Plans,
    permits: Semaphore,
    /// Those who change things wait for rows, and are not to keep the readers waiting.
    admin_permits: Semaphore,
}

impl Pool {
    /// No connection is made yet.
    pub(crate) fn new(settings: ProviderConfig) -> Result<Self, PgError> {
        if settings.pool_size == 0 {
            let reason = "the pool has to have one connection at least".to_owned();
            return Err(PgError::InvalidConfig { reason });
        }
        let mut begin = BEGIN.to_owned();
        let mut begin_alone = BEGIN.to_owned();
        if settings.through_pooler {
            for (name, value) in pinned(&settings) {
                begin.push_str(&format!("; SET LOCAL {name} = {value}"));
            }
            let (name, value) = lock_wait(false);
            begin_alone = format!("{begin}; SET LOCAL {name} = {value}");
            let (name, value) = lock_wait(true);
            begin.push_str(&format!("; SET LOCAL {name} = {value}"));
            for (name, value) in LANE_SETTINGS.iter().filter(|(name, _)| !name.starts_with("tcp")) {
                begin.push_str(&format!("; SET LOCAL {name} = {value}"));
            }
        }
        // Beside the lanes, the one that renews, the one that sees to what was set apart, and the one
        // that listens.
        let readers = settings.pool_size.saturating_sub(settings.lanes + 3).max(2);
        Ok(Self {
            target: Target::of(&settings)?,
            driver: Driver::start()?,
            schema: Schema::new(&settings.schema)?,
            door: Door::new(),
            begin_brief: format!("{begin}; SET LOCAL synchronous_commit = off"),
            begin,
            begin_alone,
            permits: Semaphore::new(readers),
            admin_permits: Semaphore::new(readers - 1),
            idle: Mutex::default(),
            plans: Plans::default(),
            settings,
        })
    }

    /// The schema of the store.
    pub(crate) fn schema(&self) -> &Schema {
        &self.schema
    }

    /// The store's own thread.
    pub(crate) fn driver(&self) -> &Driver {
        &self.driver
    }

    /// Whether plans are still good.
    pub(crate) fn plans(&self) -> &Plans {
        &self.plans
    }

    /// The settings of the store.
    pub(crate) fn settings(&self) -> &ProviderConfig {
        &self.settings
    }

    /// A connection that is not part of the pool, at once or not at all. It is kept going by the store's
    /// own thread.
    pub(crate) async fn connect(&self) -> Result<Client, PgError> {
        let (target, settings) = (self.target.clone(), self.settings.clone());
        let open = async move {
            let config = target.config.clone();
            Connection::open(&target, config, &settings, None).await
        };
        self.door.enter(false, || self.driver.run(open)).await
    }

    /// A connection that calls the functions of the schema, kept going where it is asked for. While the
    /// server is away this waits between tries.
    pub(crate) async fn connect_lane(&self) -> Result<Connection, PgError> {
        let open = || self.open(self.target.lane_config.clone(), None);
        Ok(self.connection(self.door.enter(true, open).await?))
    }

    /// The same with an ear for notifications.
    pub(crate) async fn connect_listener(&self, ear: Ear) -> Result<Connection, PgError> {
        let open = || self.open(self.target.listener_config.clone(), Some(ear));
        Ok(self.connection(self.door.enter(true, open).await?))
    }

    /// How a transaction begins; `None` for a single statement that needs no more.
    pub(crate) fn begin(&self, is_brief: bool, is_bare: bool) -> Option<&str> {
        match (is_brief, is_bare && !self.settings.through_pooler) {
            (_, true) => None,
            (true, false) => Some(&self.begin_brief),
            (false, false) => Some(&self.begin),
        }
    }

    /// Runs calls as one transaction in one round trip.
    pub(crate) async fn pipeline(
        &self,
        connection: &Connection,
        begin: Option<&str>,
        calls: &[Call<'_>],
    ) -> Result<Vec<Vec<Row>>, PgError> {
        connection.renew_plans(self.plans.generation()).await?;
        connection.pipeline(&self.schema, begin, calls, self.settings.statement_timeout).await
    }

    /// Runs a statement on a connection.
    pub(crate) async fn ask(
        &self,
        connection: &Connection,
        sql: &'static str,
        values: &Values<'_>,
    ) -> Result<Vec<Row>, PgError> {
        let begin = self.settings.through_pooler.then_some(self.begin_alone.as_str());
        let asked = async {
            connection.renew_plans(self.plans.generation()).await?;
            connection.query(&self.schema, begin, sql, values).await
        };
        let limit = self.settings.statement_timeout + GRACE;
        tokio::time::timeout(limit, asked).await.unwrap_or(Err(PgError::Timeout))
    }

    /// The same for what changes something and may have to wait for rows.
    pub(crate) async fn change(
        &self,
        sql: &'static str,
        values: &Values<'_>,
    ) -> Result<Vec<Row>, PgError> {
        let closed = |_| PgError::Connection { reason: "the store is closed".to_owned() };
        let _permit = self.admin_permits.acquire().await.map_err(closed)?;
        self.query(sql, values).await
    }

    /// Runs a statement as a transaction of its own; its rows.
    pub(crate) async fn query(
        &self,
        sql: &'static str,
        values: &Values<'_>,
    ) -> Result<Vec<Row>, PgError> {
        let mut tries = 0;
        loop {
            tries += 1;
            match self.query_once(sql, values).await {
                // It was undone for the sake of others: nothing has happened.
                Err(error) if error.is_undone_for_others() && tries < TRIES => {
                    tokio::time::sleep(Duration::from_millis(u64::from(tries) * 3)).await;
                }
                result => return result,
            }
        }
    }

    async fn open(
        &self,
        config: tokio_postgres::Config,
        ear: Option<Ear>,
    ) -> Result<Client, PgError> {
        Connection::open(&self.target, config, &self.settings, ear).await
    }

    async fn query_once(
        &self,
        sql: &'static str,
        values: &Values<'_>,
    ) -> Result<Vec<Row>, PgError> {
        let closed = |_| PgError::Connection { reason: "the store is closed".to_owned() };
        let _permit = self.permits.acquire().await.map_err(closed)?;
        let connection = match self.take() {
            Some(connection) => connection,
            None => self.connection(self.connect().await?),
        };
        let result = self.ask(&connection, sql, values).await;
        if !result.as_ref().is_err_and(PgError::spoils_connection) {
            self.put(connection);
        }
        result
    }

    /// Makes a connection part of the pool.
    pub(crate) fn adopt(&self, client: Client) {
        self.put(self.connection(client));
    }

    fn connection(&self, client: Client) -> Connection {
        Connection::new(client, self.settings.through_pooler, self.plans.generation())
    }

    fn put(&self, connection: Connection) {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(connection);
    }

    /// The connection used last: those that are needed seldom get old and are few.
    fn take(&self) -> Option<Connection> {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        while let Some(connection) = idle.pop() {
            if connection.is_open() {
                return Some(connection);
            }
        }
        None
    }
}
