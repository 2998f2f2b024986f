//! Names and what they stand for.

use rusqlite::{Row, params};

use duroxide_core::model::INITIAL_EXECUTION_ID;

use super::{Sql, all, first, id_in, id_out, ms_in, ms_out, number, optional_text, run, text};
use crate::database::Db;

/// An instance: a name, and from its first commit on an orchestration.
#[derive(Debug, Clone)]
pub(crate) struct Instance {
    pub(crate) key: i64,
    pub(crate) id: String,
    /// `None` until the instance exists for users (R8.11, R8.44).
    pub(crate) identity: Option<Identity>,
    /// Row of `pins` for the current execution; 0 for none.
    pub(crate) pin: i64,
    /// Whether it has just been noted, so that nothing else in the store refers to it.
    pub(crate) is_new: bool,
}

/// What the first commit makes of a name.
#[derive(Debug, Clone)]
pub(crate) struct Identity {
    pub(crate) name: String,
    pub(crate) version: String,
    pub(crate) execution: u64,
    pub(crate) parent: Option<String>,
    pub(crate) created_at: u64,
    pub(crate) updated_at: u64,
}

macro_rules! columns {
    () => {
        "key, id, coalesce(pin, 0), name, version, execution, parent, created_at, updated_at"
    };
}

fn read(row: &Row<'_>) -> Sql<Instance> {
    let identity = match optional_text(row, 3)? {
        None => None,
        Some(name) => Some(Identity {
            name,
            version: text(row, 4)?,
            execution: number(row, 5)?.map_or(INITIAL_EXECUTION_ID, id_out),
            parent: optional_text(row, 6)?,
            created_at: number(row, 7)?.map_or(0, ms_out),
            updated_at: number(row, 8)?.map_or(0, ms_out),
        }),
    };
    let pin = number(row, 2)?.unwrap_or(0);
    Ok(Instance { key: row.get(0)?, id: text(row, 1)?, pin, identity, is_new: false })
}

pub(crate) fn by_id(c: Db<'_>, id: &str) -> Sql<Option<Instance>> {
    first(c, concat!("SELECT ", columns!(), " FROM instances WHERE id = ?1"), [id], read)
}

pub(crate) fn by_key(c: Db<'_>, key: i64) -> Sql<Option<Instance>> {
    first(c, concat!("SELECT ", columns!(), " FROM instances WHERE key = ?1"), [key], read)
}

/// Notes a name under a new key, and whose child it will be.
pub(crate) fn insert_name(c: Db<'_>, key: i64, id: &str, parent: Option<&str>) -> Sql<()> {
    let sql = "INSERT INTO instances (key, id, parent) VALUES (?1, ?2, ?3)";
    run(c, sql, params![key, id, parent])?;
    Ok(())
}

/// Makes a name an instance (R8.43).
pub(crate) fn create(c: Db<'_>, key: i64, identity: &Identity, pin: i64) -> Sql<()> {
    let made = run(
        c,
        "UPDATE instances SET name = ?2, version = ?3, execution = ?4, created_at = ?6,
         updated_at = ?7, pin = ?8 WHERE key = ?1 AND parent IS ?5",
        params![
            key,
            identity.name,
            identity.version,
            id_in(identity.execution),
            identity.parent,
            ms_in(identity.created_at),
            ms_in(identity.updated_at),
            pin
        ],
    )?;
    if made == 0 {
        // Noted with another parent, or with none.
        let sql = "UPDATE instances SET parent = ?2 WHERE key = ?1 AND parent IS NOT ?2";
        if 0 < run(c, sql, params![key, identity.parent])? {
            return create(c, key, identity, pin);
        }
    }
    Ok(())
}

/// Keeps an instance up to date with a commit (R8.43, R8.47).
pub(crate) fn update(c: Db<'_>, key: i64, identity: &Identity, pin: i64) -> Sql<()> {
    run(
        c,
        "UPDATE instances SET name = ?2, version = ?3, execution = ?4, updated_at = ?5, pin = ?6
         WHERE key = ?1",
        params![
            key,
            identity.name,
            identity.version,
            id_in(identity.execution),
            ms_in(identity.updated_at),
            pin
        ],
    )?;
    Ok(())
}

pub(crate) fn delete(c: Db<'_>, key: i64) -> Sql<()> {
    run(c, "DELETE FROM instances WHERE key = ?1", [key])?;
    Ok(())
}

/// Removes a name that nothing refers to any more. Whether it did.
pub(crate) fn delete_if_mere_name(c: Db<'_>, key: i64) -> Sql<bool> {
    let deleted = run(
        c,
        "DELETE FROM instances WHERE key = ?1 AND name IS NULL
         AND NOT EXISTS (SELECT 1 FROM executions WHERE instance = ?1)
         AND NOT EXISTS (SELECT 1 FROM hidden WHERE instance = ?1)
         AND NOT EXISTS (SELECT 1 FROM work WHERE instance = ?1)
         AND NOT EXISTS (SELECT 1 FROM kv WHERE instance = ?1)
         AND NOT EXISTS (SELECT 1 FROM kv_delta WHERE instance = ?1)",
        [key],
    )?;
    Ok(0 < deleted)
}

/// Direct children, oldest first.
pub(crate) fn children(c: Db<'_>, parent: &str) -> Sql<Vec<String>> {
    all(
        c,
        "SELECT id FROM instances WHERE parent = ?1 AND name IS NOT NULL ORDER BY created_at, key",
        [parent],
        |row| text(row, 0),
    )
}

/// Instances, newest first.
pub(crate) fn list(c: Db<'_>) -> Sql<Vec<String>> {
    all(
        c,
        "SELECT id FROM instances WHERE name IS NOT NULL ORDER BY created_at DESC, key DESC",
        [],
        |row| text(row, 0),
    )
}

/// Instances whose current execution has this status, newest first.
pub(crate) fn list_by_status(c: Db<'_>, status: &str) -> Sql<Vec<String>> {
    all(
        c,
        "SELECT i.id FROM instances i
         JOIN executions e ON e.instance = i.key AND e.number = i.execution
         WHERE i.name IS NOT NULL AND e.status = ?1 ORDER BY i.created_at DESC, i.key DESC",
        [status],
        |row| text(row, 0),
    )
}

/// One of those that a bulk call looks at.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Candidate {
    pub(crate) key: i64,
    pub(crate) created_at: u64,
    /// Whether the filter lets it through.
    pub(crate) is_wanted: bool,
}

/// So many instances behind a key, in the order of their keys: wanted are the ones whose current
/// execution ended before a time, or all that exist for users.
pub(crate) fn behind(
    c: Db<'_>,
    key: i64,
    ended_before: Option<u64>,
    limit: i64,
) -> Sql<Vec<Candidate>> {
    all(
        c,
        "SELECT i.key, i.created_at, i.name IS NOT NULL
         AND (?2 IS NULL OR ifnull(e.completed_at < ?2, 0))
         FROM instances i LEFT JOIN executions e ON e.instance = i.key AND e.number = i.execution
         WHERE i.key > ?1 ORDER BY i.key LIMIT ?3",
        params![key, ended_before.map(ms_in), limit],
        |row| {
            let created_at = number(row, 1)?.map_or(0, ms_out);
            Ok(Candidate { key: row.get(0)?, created_at, is_wanted: row.get(2)? })
        },
    )
}

/// The largest key.
pub(crate) fn last_key(c: Db<'_>) -> Sql<i64> {
    let last = first(c, "SELECT max(key) FROM instances", [], |row| row.get::<_, Option<i64>>(0))?;
    Ok(last.flatten().unwrap_or(0))
}
