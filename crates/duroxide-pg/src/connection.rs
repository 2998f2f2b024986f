//! One connection: made, set up, asked.

use std::collections::HashMap;
use std::future::poll_fn;
use std::time::Duration;

use tokio::sync::Mutex;
use tokio_postgres::types::ToSql;
use tokio_postgres::{AsyncMessage, Client, NoTls, Row, Statement};

use crate::config::ProviderConfig;
use crate::error::PgError;
use crate::schema::Schema;
use crate::target::Target;

/// Values of a statement.
pub(crate) type Params<'a> = [&'a (dyn ToSql + Sync)];

/// How much longer than the server a client waits before it gives the connection up.
const GRACE: Duration = Duration::from_secs(5);

/// A connection with the statements it has prepared.
pub(crate) struct Connection {
    client: Client,
    prepared: Mutex<HashMap<&'static str, Statement>>,
}

impl Connection {
    /// Connects.
    pub(crate) async fn open(
        target: &Target,
        settings: &ProviderConfig,
    ) -> Result<Client, PgError> {
        let mut config = target.config.clone();
        if let Some(source) = &settings.password {
            let password = source.password().await;
            config.password(password.map_err(|reason| PgError::Refused {
                code: "28P01".to_owned(),
                reason: format!("no password: {reason}"),
            })?);
        }
        let connect = async {
            match &target.tls {
                Some(tls) => {
                    let (client, connection) = config.connect(tls.clone()).await?;
                    drive(connection);
                    Ok(client)
                }
                None => {
                    let (client, connection) = config.connect(NoTls).await?;
                    drive(connection);
                    Ok(client)
                }
            }
        };
        // The driver's own limit is for one address, and for the connection only.
        let limit = settings.connect_timeout * 2;
        tokio::time::timeout(limit, connect).await.unwrap_or(Err(PgError::Timeout))
    }

    pub(crate) fn new(client: Client) -> Self {
        Self { client, prepared: Mutex::default() }
    }

    /// Whether it is of use.
    pub(crate) fn is_open(&self) -> bool {
        !self.client.is_closed()
    }

    /// Runs a statement; its rows.
    pub(crate) async fn query(
        &self,
        schema: &Schema,
        sql: &'static str,
        params: &Params<'_>,
        limit: Duration,
    ) -> Result<Vec<Row>, PgError> {
        let ask = async {
            let statement = self.prepare(schema, sql).await?;
            Ok(self.client.query(&statement, params).await?)
        };
        tokio::time::timeout(limit + GRACE, ask).await.unwrap_or(Err(PgError::Timeout))
    }

    async fn prepare(&self, schema: &Schema, sql: &'static str) -> Result<Statement, PgError> {
        let mut prepared = self.prepared.lock().await;
        if let Some(statement) = prepared.get(sql) {
            return Ok(statement.clone());
        }
        let statement = self.client.prepare(&schema.qualify(sql)).await?;
        prepared.insert(sql, statement.clone());
        Ok(statement)
    }
}

/// Keeps a connection going until it ends, and logs what the server says.
fn drive<S, T>(mut connection: tokio_postgres::Connection<S, T>)
where
    S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin + Send + 'static,
    T: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin + Send + 'static,
{
    tokio::spawn(async move {
        while let Some(message) = poll_fn(|context| connection.poll_message(context)).await {
            match message {
                Ok(AsyncMessage::Notice(notice)) if notice.severity() == "WARNING" => {
                    tracing::warn!(target: "duroxide::providers::postgres", "{}", notice.message());
                }
                Ok(_) => {}
                Err(error) => {
                    tracing::debug!(target: "duroxide::providers::postgres", %error, "connection ended");
                    return;
                }
            }
        }
    });
}
