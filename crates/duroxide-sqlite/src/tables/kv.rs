//! Key-value data: what ended executions left (`kv`), and what the current one changed (`kv_delta`).

use rusqlite::params;

use duroxide_core::model::KvEntry;

use super::{Sql, all, first, ms_in, ms_out, run};
use crate::database::Db;

/// One change, as history tells it (R8.112).
#[derive(Debug, Clone)]
pub(crate) enum Change {
    /// A key has a value now.
    Set {
        /// The key.
        key: String,
        /// Its value.
        value: String,
        /// When the code set it.
        at: u64,
    },
    /// A key is gone.
    Clear {
        /// The key.
        key: String,
    },
    /// All keys are gone.
    ClearAll,
}

/// Notes a change of the current execution.
pub(crate) fn apply(c: Db<'_>, instance: i64, change: &Change) -> Sql<()> {
    const PUT: &str = "INSERT INTO kv_delta (instance, key, value, updated_at)
         VALUES (?1, ?2, ?3, ?4)
         ON CONFLICT (instance, key) DO UPDATE SET value = excluded.value,
         updated_at = excluded.updated_at";
    match change {
        Change::Set { key, value, at } => {
            run(c, PUT, params![instance, key, value, ms_in(*at)])?;
        }
        Change::Clear { key } => {
            run(c, PUT, params![instance, key, None::<&str>, 0])?;
        }
        Change::ClearAll => {
            run(c, "UPDATE kv_delta SET value = NULL WHERE instance = ?1", [instance])?;
            run(
                c,
                "INSERT INTO kv_delta (instance, key, value, updated_at)
                 SELECT instance, key, NULL, 0 FROM kv WHERE instance = ?1
                 ON CONFLICT (instance, key) DO UPDATE SET value = NULL",
                [instance],
            )?;
        }
    }
    Ok(())
}

/// The execution ended: its changes stay (R8.113).
pub(crate) fn merge(c: Db<'_>, instance: i64) -> Sql<()> {
    let any =
        first(c, "SELECT 1 FROM kv_delta WHERE instance = ?1 LIMIT 1", [instance], |_| Ok(()))?;
    if any.is_none() {
        return Ok(());
    }
    run(
        c,
        "INSERT INTO kv (instance, key, value, updated_at)
         SELECT instance, key, value, updated_at FROM kv_delta
         WHERE instance = ?1 AND value IS NOT NULL
         ON CONFLICT (instance, key) DO UPDATE SET value = excluded.value,
         updated_at = excluded.updated_at",
        [instance],
    )?;
    run(
        c,
        "DELETE FROM kv WHERE instance = ?1 AND key IN
         (SELECT key FROM kv_delta WHERE instance = ?1 AND value IS NULL)",
        [instance],
    )?;
    run(c, "DELETE FROM kv_delta WHERE instance = ?1", [instance])?;
    Ok(())
}

/// What a turn is handed: values of ended executions (R8.111).
pub(crate) fn snapshot(c: Db<'_>, instance: i64) -> Sql<Vec<(String, KvEntry)>> {
    all(c, "SELECT key, value, updated_at FROM kv WHERE instance = ?1", [instance], |row| {
        let entry = KvEntry { value: row.get(1)?, last_updated_at_ms: ms_out(row.get(2)?) };
        Ok((row.get(0)?, entry))
    })
}

/// A value as seen from outside: changes win (R8.110).
pub(crate) fn get(c: Db<'_>, instance: i64, key: &str) -> Sql<Option<String>> {
    let changed: Option<Option<String>> = first(
        c,
        "SELECT value FROM kv_delta WHERE instance = ?1 AND key = ?2",
        params![instance, key],
        |row| row.get(0),
    )?;
    match changed {
        Some(change) => Ok(change),
        None => first(
            c,
            "SELECT value FROM kv WHERE instance = ?1 AND key = ?2",
            params![instance, key],
            |row| row.get(0),
        ),
    }
}

/// All values as seen from outside.
pub(crate) fn merged(c: Db<'_>, instance: i64) -> Sql<Vec<(String, String)>> {
    all(
        c,
        "SELECT key, value FROM kv_delta WHERE instance = ?1 AND value IS NOT NULL
         UNION ALL
         SELECT key, value FROM kv WHERE instance = ?1 AND NOT EXISTS
         (SELECT 1 FROM kv_delta d WHERE d.instance = kv.instance AND d.key = kv.key)",
        [instance],
        |row| Ok((row.get(0)?, row.get(1)?)),
    )
}

pub(crate) fn delete_all(c: Db<'_>, instance: i64) -> Sql<()> {
    run(c, "DELETE FROM kv WHERE instance = ?1", [instance])?;
    run(c, "DELETE FROM kv_delta WHERE instance = ?1", [instance])?;
    Ok(())
}
