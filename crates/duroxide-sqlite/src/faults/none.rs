//! No faults, nothing watched.

use std::time::Duration;

use rusqlite::{Connection, Statement};

use crate::tables::Sql;

/// Nothing planned.
#[derive(Debug, Clone, Default)]
pub(crate) struct Plan(());

/// Makes a store's plan that of this thread.
pub(crate) fn enter(_plan: &Plan) {}

/// Called before each statement.
pub(crate) fn statement(_sql: &'static str) -> Sql<()> {
    Ok(())
}

/// Called after each statement.
pub(crate) fn done(_sql: &'static str, _statement: &Statement<'_>) {}

/// Called after each read.
pub(crate) fn read_ended() {}

/// Called before each transaction of the writer.
pub(crate) fn before_begin(_connection: &Connection) -> Sql<()> {
    Ok(())
}

/// Called before a file is opened again.
pub(crate) fn reopen() -> Sql<()> {
    Ok(())
}

/// Called before the log is synced.
pub(crate) fn sync() -> std::io::Result<()> {
    Ok(())
}

/// Commits a transaction of the writer.
pub(crate) fn commit(
    _connection: &Connection,
    _is_synced: bool,
    commit: impl FnOnce() -> Sql<()>,
) -> Sql<()> {
    commit()
}

/// How long others may keep a file.
pub(crate) fn busy_limit(usual: Duration) -> Duration {
    usual
}
