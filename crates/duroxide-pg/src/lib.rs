//! The shared store of Duroxide: one PostgreSQL database, any number of nodes.
//!
//! ```no_run
//! # async fn open() -> Result<(), duroxide_pg::PgError> {
//! use duroxide_pg::PostgresProvider;
//!
//! let store = PostgresProvider::new("postgres://app:secret@db.example/app").await?;
//! # Ok(())
//! # }
//! ```
//!
//! Any number of processes may have the same store open and run workflows on it. They wake each other
//! (`LISTEN`), take over the work of one that died within two seconds, and go on by themselves after the
//! database was away.
//!
//! Reading order: `store.rs` (open), `provider.rs` and `admin.rs` (the contract, method by method),
//! `fetch.rs`, `writes.rs`, `reads.rs`, `manage.rs`, `cleanup.rs` (what they do), `lanes/` (how everything that writes
//! leaves together), `watch.rs` (other nodes), `driver.rs`, `pool.rs`, `door.rs` and `connection.rs`, `sqlstate.rs`
//! (what errors mean), and `migrations/` (the schema, where the rules are).

mod config;
mod error;
mod sqlstate;
mod store;
mod sweep;
mod server_clock;
mod provider;
mod admin;
mod fetch;
mod turn;
mod writes;
mod start;
mod lanes;
mod watch;
mod membership;
mod news;
mod commit_board;
mod reads;
mod manage;
mod cleanup;
mod drafts;
mod events;
mod pins;
mod token;
mod text;
mod numbers;
mod schema;
mod pool;
mod plans;
mod connection;
mod value;
mod door;
mod driver;
mod target;
mod tls;

/// The guide, so that its examples are compiled.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/guide/postgres.md")]
mod guide {}

pub use config::{
    DEFAULT_SCHEMA, MigrationPolicy, PasswordSource, ProviderConfig, TlsMode, TlsRoots,
};
pub use error::PgError;
pub use store::PostgresProvider;
