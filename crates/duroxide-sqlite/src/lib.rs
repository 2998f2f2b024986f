//! The embedded store of Duroxide: one SQLite file, one writer, one fsync for many turns.
//!
//! ```
//! # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
//! use duroxide_sqlite::{Durability, SqliteOptions, SqliteProvider};
//!
//! # let folder = std::env::temp_dir().join(format!("duroxide-doc-{}", std::process::id()));
//! # std::fs::create_dir_all(&folder).unwrap();
//! # let url = format!("sqlite:{}/app.db?mode=rwc", folder.display());
//! // let url = "sqlite:app.db?mode=rwc"; // created if it does not exist
//! let store = SqliteProvider::new(&url, None).await?;
//!
//! // Faster on slow disks, still safe against a crash of the process.
//! let options = SqliteOptions { durability: Durability::Process, ..Default::default() };
//! let fast = SqliteProvider::new(&url, Some(options)).await?; // a file may be opened many times
//! # drop((store, fast));
//! # std::fs::remove_dir_all(&folder).unwrap();
//! # Ok::<(), duroxide_sqlite::SqliteError>(())
//! # }).unwrap();
//! ```
//!
//! Reading order: `store.rs` (open and close), `provider.rs` and `admin.rs` (the contract, method by
//! method), `fetch.rs`, then `writer/` (how operations become transactions), `ops/` (what they do),
//! `mailbox.rs` (which instance is served next), `long_text.rs` (texts that are stored apart), `tables/`
//! (statements), `queries/` and `readers.rs` (reads), `owners.rs` (which processes still live),
//! `store_files.rs` (are the files still there), `inspect.rs` (a
//! look at a file before it is opened), `schema.rs` and `migrations/`.

mod url;
mod options;
mod error;
mod store;
mod provider;
mod admin;
mod bulk;
mod fetch;
mod writer;
mod ops;
mod long_text;
mod mailbox;
mod repair;
mod tx;
mod tables;
mod queries;
mod read_gate;
mod readers;
mod commit_board;
mod owners;
mod file_identity;
mod store_files;
mod token;
mod connection;
mod database;
mod schema;
mod inspect;
mod crash_point;
mod faults;

pub use error::SqliteError;
#[cfg(feature = "test-hooks")]
#[doc(hidden)]
pub use faults::{CommitFault, Faults, Seen, set_busy_limit};
pub use options::{Durability, SqliteOptions};
pub use store::SqliteProvider;
