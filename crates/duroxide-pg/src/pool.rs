//! Connections to the server: as many as are needed at a time, up to a limit.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::Semaphore;
use tokio_postgres::{Client, Row};

use crate::config::ProviderConfig;
use crate::connection::{Connection, Params};
use crate::error::PgError;
use crate::schema::Schema;
use crate::target::Target;

/// How often a transaction that others made fail is tried again.
const TRIES: u32 = 10;

/// Connections, and the schema they work in.
pub(crate) struct Pool {
    target: Target,
    settings: ProviderConfig,
    schema: Schema,
    idle: Mutex<Vec<Connection>>,
    permits: Semaphore,
}

impl Pool {
    /// No connection is made yet.
    pub(crate) fn new(settings: ProviderConfig) -> Result<Self, PgError> {
        if settings.pool_size == 0 {
            let reason = "the pool has to have one connection at least".to_owned();
            return Err(PgError::InvalidConfig { reason });
        }
        Ok(Self {
            target: Target::of(&settings)?,
            schema: Schema::new(&settings.schema)?,
            permits: Semaphore::new(settings.pool_size),
            idle: Mutex::default(),
            settings,
        })
    }

    /// The schema of the store.
    pub(crate) fn schema(&self) -> &Schema {
        &self.schema
    }

    /// The settings of the store.
    pub(crate) fn settings(&self) -> &ProviderConfig {
        &self.settings
    }

    /// A connection that is not part of the pool.
    pub(crate) async fn connect(&self) -> Result<Client, PgError> {
        Connection::open(&self.target, &self.settings).await
    }

    /// Runs a statement as a transaction of its own; its rows.
    pub(crate) async fn query(
        &self,
        sql: &'static str,
        params: &Params<'_>,
    ) -> Result<Vec<Row>, PgError> {
        let mut tries = 0;
        loop {
            tries += 1;
            match self.query_once(sql, params).await {
                // It was undone for the sake of others: nothing has happened.
                Err(error) if error.is_contention() && tries < TRIES => {
                    tokio::time::sleep(Duration::from_millis(u64::from(tries) * 3)).await;
                }
                result => return result,
            }
        }
    }

    async fn query_once(
        &self,
        sql: &'static str,
        params: &Params<'_>,
    ) -> Result<Vec<Row>, PgError> {
        let closed = |_| PgError::Connection { reason: "the store is closed".to_owned() };
        let _permit = self.permits.acquire().await.map_err(closed)?;
        let connection = match self.take() {
            Some(connection) => connection,
            None => Connection::new(self.connect().await?),
        };
        let limit = self.settings.statement_timeout;
        let result = connection.query(&self.schema, sql, params, limit).await;
        if !result.as_ref().is_err_and(PgError::spoils_connection) {
            self.put(connection);
        }
        result
    }

    /// Makes a connection part of the pool.
    pub(crate) fn adopt(&self, client: Client) {
        self.put(Connection::new(client));
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
