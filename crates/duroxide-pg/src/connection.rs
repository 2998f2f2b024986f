//! One connection: made, set up, asked.

use std::collections::HashMap;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::Poll;
use std::time::Duration;

use tokio::sync::{Mutex, mpsc};
use tokio_postgres::{AsyncMessage, Client, Config, NoTls, Notification, Row, Statement};

use crate::config::ProviderConfig;
use crate::error::PgError;
use crate::lanes::Call;
use crate::schema::Schema;
use crate::target::Target;
use crate::value::{Values, typed, untyped};

/// Where notifications go.
pub(crate) type Ear = mpsc::UnboundedSender<Notification>;

/// How much longer than the server a client waits before it gives the connection up.
pub(crate) const GRACE: Duration = Duration::from_secs(5);

/// How many connections this process has opened.
static OPENED: AtomicU64 = AtomicU64::new(0);

/// A connection with the statements it has prepared.
pub(crate) struct Connection {
    client: Client,
    number: u64,
    /// `None` behind a pooler, where nothing outlives a transaction.
    prepared: Option<Mutex<HashMap<&'static str, Statement>>>,
    /// The generation of its plans.
    plans: AtomicU64,
}

impl Connection {
    /// Connects. Without an ear, notifications are not heard.
    pub(crate) async fn open(
        target: &Target,
        mut config: Config,
        settings: &ProviderConfig,
        ear: Option<Ear>,
    ) -> Result<Client, PgError> {
        let connect = async {
            if let Some(source) = &settings.password {
                let password = source.password().await;
                config.password(password.map_err(|reason| PgError::Refused {
                    code: "28P01".to_owned(),
                    reason: format!("no password: {reason}"),
                })?);
            }
            match &target.tls {
                Some(tls) => {
                    let (client, connection) = config.connect(tls.clone()).await?;
                    drive(connection, ear);
                    Ok(client)
                }
                None => {
                    let (client, connection) = config.connect(NoTls).await?;
                    drive(connection, ear);
                    Ok(client)
                }
            }
        };
        // The driver's own limit is for one address, and for the connection only.
        let limit = settings.connect_timeout * 2;
        let connected = tokio::time::timeout(limit, connect).await;
        connected.unwrap_or(Err(PgError::Timeout)).map_err(|error| error.at(&target.place()))
    }

    pub(crate) fn new(client: Client, through_pooler: bool, generation: u64) -> Self {
        let number = OPENED.fetch_add(1, Ordering::SeqCst);
        let prepared = (!through_pooler).then(Mutex::default);
        Self { client, number, prepared, plans: AtomicU64::new(generation) }
    }

    /// Those opened later have higher ones.
    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// How many there have been.
    pub(crate) fn count() -> u64 {
        OPENED.load(Ordering::SeqCst)
    }

    /// Whether it is of use.
    pub(crate) fn is_open(&self) -> bool {
        !self.client.is_closed()
    }

    /// Has the server make plans anew if they are of an earlier generation. Behind a pooler the next
    /// statement may have another connection of the server: there plans last as long as the pooler lets them.
    pub(crate) async fn renew_plans(&self, generation: u64) -> Result<(), PgError> {
        if self.prepared.is_some() && self.plans.swap(generation, Ordering::AcqRel) < generation {
            return self.execute("DISCARD PLANS", Duration::ZERO).await;
        }
        Ok(())
    }

    /// Runs a statement, as a transaction that starts with `begin` if there is one; its rows. How long that
    /// may take is up to the caller.
    pub(crate) async fn query(
        &self,
        schema: &Schema,
        begin: Option<&str>,
        sql: &'static str,
        values: &Values<'_>,
    ) -> Result<Vec<Row>, PgError> {
        let statement = self.prepare(schema, sql).await?;
        let Some(begin) = begin else { return Ok(self.ask(&statement, values).await?) };
        let answers: Vec<Answer<'_>> = vec![
            Box::pin(self.command(begin)),
            Box::pin(self.ask(&statement, values)),
            Box::pin(self.command("COMMIT")),
        ];
        Ok(in_order(answers).await?.swap_remove(1))
    }

    /// Runs statements that give no rows.
    pub(crate) async fn execute(&self, sql: &str, limit: Duration) -> Result<(), PgError> {
        let ask = async { Ok(self.client.batch_execute(sql).await?) };
        tokio::time::timeout(limit + GRACE, ask).await.unwrap_or(Err(PgError::Timeout))
    }

    /// Sends calls one after the other without waiting for answers, as a transaction that starts with
    /// `begin` if there is one; the rows of each. After an error none of them has happened.
    pub(crate) async fn pipeline(
        &self,
        schema: &Schema,
        begin: Option<&str>,
        calls: &[Call<'_>],
        limit: Duration,
    ) -> Result<Vec<Vec<Row>>, PgError> {
        let ask = async {
            let mut statements = Vec::with_capacity(calls.len());
            for call in calls {
                statements.push(self.prepare(schema, call.sql).await?);
            }
            let mut answers: Vec<Answer<'_>> = Vec::with_capacity(calls.len() + 2);
            if let Some(begin) = begin {
                answers.push(Box::pin(self.command(begin)));
            }
            for (call, statement) in calls.iter().zip(&statements) {
                let rows = async move { self.ask(statement, &call.values()).await };
                answers.push(Box::pin(rows));
            }
            if begin.is_some() {
                answers.push(Box::pin(self.command("COMMIT")));
            }
            let mut rows = in_order(answers).await?;
            if begin.is_some() {
                rows.remove(0);
            }
            Ok(rows)
        };
        tokio::time::timeout(limit + GRACE, ask).await.unwrap_or(Err(PgError::Timeout))
    }

    async fn command(&self, sql: &str) -> Result<Vec<Row>, tokio_postgres::Error> {
        self.client.batch_execute(sql).await?;
        Ok(Vec::new())
    }

    async fn ask(
        &self,
        statement: &Prepared,
        values: &Values<'_>,
    ) -> Result<Vec<Row>, tokio_postgres::Error> {
        match statement {
            Prepared::Here(statement) => self.client.query(statement, &untyped(values)).await,
            Prepared::Nowhere(sql) => self.client.query_typed(sql, &typed(values)).await,
        }
    }

    async fn prepare(&self, schema: &Schema, sql: &'static str) -> Result<Prepared, PgError> {
        let Some(prepared) = &self.prepared else {
            return Ok(Prepared::Nowhere(schema.qualify(sql)));
        };
        let mut prepared = prepared.lock().await;
        if let Some(statement) = prepared.get(sql) {
            return Ok(Prepared::Here(statement.clone()));
        }
        let statement = self.client.prepare(&schema.qualify(sql)).await?;
        prepared.insert(sql, statement.clone());
        Ok(Prepared::Here(statement))
    }
}

/// A statement ready to be sent.
enum Prepared {
    /// Known to this connection.
    Here(Statement),
    /// In full, whenever it is sent.
    Nowhere(String),
}

type Answer<'a> =
    Pin<Box<dyn Future<Output = Result<Vec<Row>, tokio_postgres::Error>> + Send + 'a>>;

/// Waits for all. They are asked in their order, again and again: each sends what it has to send when
/// it is asked first. The first error in that order is the one that made the others fail.
async fn in_order(answers: Vec<Answer<'_>>) -> Result<Vec<Vec<Row>>, tokio_postgres::Error> {
    let mut waiting: Vec<Option<Answer<'_>>> = answers.into_iter().map(Some).collect();
    let mut done: Vec<Option<Result<_, _>>> = waiting.iter().map(|_| None).collect();
    poll_fn(|context| {
        let mut is_over = true;
        for (answer, done) in waiting.iter_mut().zip(&mut done) {
            if let Some(future) = answer {
                match future.as_mut().poll(context) {
                    Poll::Ready(result) => {
                        *done = Some(result);
                        *answer = None;
                    }
                    Poll::Pending => is_over = false,
                }
            }
        }
        if is_over { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
    done.into_iter().flatten().collect()
}

/// Keeps a connection going until it ends, logs what the server says, passes on notifications.
fn drive<S, T>(mut connection: tokio_postgres::Connection<S, T>, ear: Option<Ear>)
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
                Ok(AsyncMessage::Notification(notification)) => {
                    if let Some(ear) = &ear {
                        drop(ear.send(notification)); // Nobody listens any more.
                    }
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
