//! Opens the store a benchmark runs on.

use std::sync::Arc;

use duroxide::providers::Provider;
use duroxide::providers::memory::MemoryProvider;
use duroxide_pg::{PostgresProvider, ProviderConfig};

use crate::workloads::Failure;
use crate::workloads::args::{Args, StoreKind};

/// An open store.
pub(crate) struct Store {
    /// What client and runtime work on.
    pub(crate) provider: Arc<dyn Provider>,
    #[cfg(feature = "sqlite")]
    sqlite: Option<Arc<duroxide::providers::sqlite::SqliteProvider>>,
}

/// Opens (and creates) the store the arguments name.
pub(crate) async fn open(args: &Args) -> Result<Store, Failure> {
    match args.store {
        StoreKind::Memory => Ok(Store {
            provider: Arc::new(MemoryProvider::new()),
            #[cfg(feature = "sqlite")]
            sqlite: None,
        }),
        StoreKind::Sqlite => open_sqlite(args).await,
        StoreKind::Postgres => {
            let mut config = ProviderConfig::new(&args.server.url);
            config.pool_size = args.pool.unwrap_or(config.pool_size);
            let store = PostgresProvider::new_with_config(config).await?;
            Ok(Store {
                provider: Arc::new(store),
                #[cfg(feature = "sqlite")]
                sqlite: None,
            })
        }
    }
}

#[cfg(feature = "sqlite")]
async fn open_sqlite(args: &Args) -> Result<Store, Failure> {
    use crate::workloads::args::Durability as Wanted;
    use duroxide::providers::sqlite::{Durability, SqliteOptions, SqliteProvider};

    let durability = match args.durability {
        None | Some(Wanted::Full) => Durability::Full,
        Some(Wanted::Process) => Durability::Process,
    };
    let options = SqliteOptions { durability, ..SqliteOptions::default() };
    let sqlite = Arc::new(SqliteProvider::new(&args.sqlite_url(), Some(options)).await?);
    Ok(Store { provider: sqlite.clone(), sqlite: Some(sqlite) })
}

#[cfg(not(feature = "sqlite"))]
async fn open_sqlite(_: &Args) -> Result<Store, Failure> {
    Err("built without the feature `sqlite`".into())
}

#[cfg(feature = "sqlite")]
pub(crate) use crate::copies::copy;

/// Copies of an instance in a closed store.
#[cfg(not(feature = "sqlite"))]
pub(crate) fn copy(_: &Args, _: &str, _: u64) -> Result<(), Failure> {
    Err("only a file can be filled".into())
}

/// Cases of this side alone.
pub(crate) use crate::growth::run as own_case;

impl Store {
    /// Moves what is in the write-ahead log to the database file.
    pub(crate) async fn checkpoint(&self) -> Result<(), Failure> {
        #[cfg(feature = "sqlite")]
        if let Some(sqlite) = &self.sqlite {
            sqlite.checkpoint().await?;
        }
        Ok(())
    }
}
