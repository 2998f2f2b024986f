//! Opens the store a benchmark runs on.

use std::sync::Arc;

use duroxide::providers::Provider;
use duroxide::providers::sqlite::SqliteProvider;
use duroxide_pg::PostgresProvider;

use crate::workloads::Failure;
use crate::workloads::args::{Args, Durability, StoreKind};
use crate::workloads::outcome::Outcome;

/// An open store.
pub(crate) struct Store {
    /// What client and runtime work on.
    pub(crate) provider: Arc<dyn Provider>,
    sqlite: Option<Arc<SqliteProvider>>,
}

/// Opens (and creates) the store the arguments name.
pub(crate) async fn open(args: &Args) -> Result<Store, Failure> {
    if args.durability == Some(Durability::Full) {
        return Err("the reference has no setting for durability".into());
    }
    let sqlite = match args.store {
        StoreKind::Memory => SqliteProvider::new_in_memory().await?,
        StoreKind::Sqlite => SqliteProvider::new(&args.sqlite_url(), None).await?,
        StoreKind::Postgres => {
            let store = PostgresProvider::new_with_schema(&args.server.url, Some("bench")).await?;
            return Ok(Store { provider: Arc::new(store), sqlite: None });
        }
    };
    let sqlite = Arc::new(sqlite);
    Ok(Store { provider: sqlite.clone(), sqlite: Some(sqlite) })
}

/// Copies of an instance in a closed store.
pub(crate) fn copy(_: &Args, _: &str, _: u64) -> Result<(), Failure> {
    Err("the reference's tables are its own affair".into())
}

/// Cases of this side alone.
pub(crate) async fn own_case(args: Args, _: &str, _: Option<u64>) -> Result<Outcome, Failure> {
    Err(format!("no case {}", args.case).into())
}

impl Store {
    /// Moves what is in the write-ahead log to the database file.
    pub(crate) async fn checkpoint(&self) -> Result<(), Failure> {
        match &self.sqlite {
            Some(sqlite) => Ok(sqlite.checkpoint().await?),
            None => Ok(()),
        }
    }
}
