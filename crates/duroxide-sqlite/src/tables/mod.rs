//! One file per table: its statements and its row type. No decisions, no transactions.
//!
//! Statements are fixed texts with bound parameters, prepared once per connection. Ids are stored as
//! the same 64 bits, times are cut off at the largest number SQLite has.

pub(crate) mod instances;
pub(crate) mod executions;
pub(crate) mod history;
pub(crate) mod messages;
pub(crate) mod starts;
pub(crate) mod hidden;
pub(crate) mod mailboxes;
pub(crate) mod work;
pub(crate) mod sessions;
pub(crate) mod kv;
pub(crate) mod custom_status;
pub(crate) mod dead_letters;
pub(crate) mod nodes;
pub(crate) mod pins;
pub(crate) mod long_texts;
pub(crate) mod corruption;

use rusqlite::types::ValueRef;
use rusqlite::{OptionalExtension, Params, Row};

use crate::database::Db;
use crate::faults;

/// Result of a statement.
pub(crate) type Sql<T> = Result<T, rusqlite::Error>;

/// Runs a statement; how many rows it changed.
pub(crate) fn run(db: Db<'_>, sql: &'static str, params: impl Params) -> Sql<usize> {
    faults::statement(sql)?;
    db.with(sql, |statement| {
        let changed = statement.execute(params);
        faults::done(sql, statement);
        changed
    })
}

/// The first row of a query, if there is one.
pub(crate) fn first<T>(
    db: Db<'_>,
    sql: &'static str,
    params: impl Params,
    read: impl FnOnce(&Row<'_>) -> Sql<T>,
) -> Sql<Option<T>> {
    faults::statement(sql)?;
    db.with(sql, |statement| {
        let found = statement.query_row(params, read).optional();
        faults::done(sql, statement);
        found
    })
}

/// All rows of a query.
pub(crate) fn all<T>(
    db: Db<'_>,
    sql: &'static str,
    params: impl Params,
    read: impl FnMut(&Row<'_>) -> Sql<T>,
) -> Sql<Vec<T>> {
    faults::statement(sql)?;
    db.with(sql, |statement| {
        let found = statement.query_map(params, read)?.collect();
        faults::done(sql, statement);
        found
    })
}

/// A text, whatever is stored there. What is no text is shown as far as it can be, marked so that it
/// is no JSON either.
pub(crate) fn text(row: &Row<'_>, column: usize) -> Sql<String> {
    Ok(optional_text(row, column)?.unwrap_or_default())
}

/// The same where there may be nothing.
pub(crate) fn optional_text(row: &Row<'_>, column: usize) -> Sql<Option<String>> {
    let marked = |shown: &str| Some(format!("\u{fffd}{shown}"));
    Ok(match row.get_ref(column)? {
        ValueRef::Null => None,
        ValueRef::Integer(number) => marked(&number.to_string()),
        ValueRef::Real(number) => marked(&number.to_string()),
        ValueRef::Text(bytes) => match std::str::from_utf8(bytes) {
            Ok(text) => Some(text.to_owned()),
            Err(_) => marked(&String::from_utf8_lossy(bytes)),
        },
        ValueRef::Blob(bytes) => marked(&String::from_utf8_lossy(bytes)),
    })
}

/// A number, if that is what is stored there.
pub(crate) fn number(row: &Row<'_>, column: usize) -> Sql<Option<i64>> {
    Ok(row.get_ref(column)?.as_i64().ok())
}

/// An id as it is stored: the same bits.
pub(crate) fn id_in(id: u64) -> i64 {
    id as i64
}

/// A stored id.
pub(crate) fn id_out(stored: i64) -> u64 {
    stored as u64
}

/// A time or a count as it is stored.
pub(crate) fn ms_in(ms: u64) -> i64 {
    i64::try_from(ms).unwrap_or(i64::MAX)
}

/// A stored time or count.
pub(crate) fn ms_out(stored: i64) -> u64 {
    u64::try_from(stored).unwrap_or(0)
}
