//! The schema: its name in statements, its versions, how one becomes the next.

use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Client, GenericClient, IsolationLevel, Row, Transaction};

use crate::config::MigrationPolicy;
use crate::error::PgError;
use crate::store::number_of;

/// Files of `migrations/`, in order. What has been released is never changed, only added to.
const MIGRATIONS: &[(&str, &str)] = &[
    ("tables", include_str!("../migrations/0001_tables.sql")),
    ("mailboxes", include_str!("../migrations/0002_mailboxes.sql")),
    ("turns", include_str!("../migrations/0003_turns.sql")),
    ("commit", include_str!("../migrations/0004_commit.sql")),
    ("work", include_str!("../migrations/0005_work.sql")),
    ("admin", include_str!("../migrations/0006_admin.sql")),
    ("views", include_str!("../migrations/0007_views.sql")),
    ("nodes", include_str!("../migrations/0008_nodes.sql")),
    ("alone", include_str!("../migrations/0009_alone.sql")),
    ("gauges", include_str!("../migrations/0010_gauges.sql")),
    ("bounds", include_str!("../migrations/0011_bounds.sql")),
];

/// Longest name PostgreSQL keeps whole.
const MAX_NAME_BYTES: usize = 63;

/// The schema of a store.
#[derive(Debug, Clone)]
pub(crate) struct Schema {
    name: String,
    quoted: String,
}

impl Schema {
    /// Any name that PostgreSQL accepts. Control characters are not: nobody could see them.
    pub(crate) fn new(name: &str) -> Result<Self, PgError> {
        let wrong = if name.is_empty() || MAX_NAME_BYTES < name.len() {
            Some("has to have 1 to 63 bytes")
        } else if name.contains(char::is_control) {
            Some("must not contain control characters")
        } else if name.starts_with("pg_") || name == "information_schema" {
            Some("belongs to PostgreSQL")
        } else {
            None
        };
        if let Some(wrong) = wrong {
            return Err(PgError::InvalidConfig { reason: format!("schema name {name:?} {wrong}") });
        }
        Ok(Self { name: name.to_owned(), quoted: format!("\"{}\"", name.replace('"', "\"\"")) })
    }

    /// The name as it was given.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// The statement with its own schema in place of `duroxide`.
    pub(crate) fn qualify(&self, sql: &str) -> String {
        let in_literal = format!("'{}.", self.quoted.replace('\'', "''"));
        // In two steps over the pieces: what was put in is not looked at again.
        let pieces = sql.split("'duroxide.").map(|piece| {
            piece.split("duroxide.").collect::<Vec<_>>().join(&format!("{}.", self.quoted))
        });
        pieces.collect::<Vec<_>>().join(&in_literal)
    }

    /// A migration, ready to run: bodies are quoted so that no name can end them.
    fn migration(&self, sql: &str) -> String {
        let mut mark = "$body$".to_owned();
        while self.quoted.contains(&mark) {
            mark.insert(1, 'x');
        }
        self.qualify(&sql.replace("$body$", &mark))
    }

    /// Makes the schema what this version of the library needs, or finds out that it is.
    pub(crate) async fn prepare(
        &self,
        client: &mut Client,
        policy: MigrationPolicy,
    ) -> Result<(), PgError> {
        let encoding = one(client, "SELECT current_setting('server_encoding')", &[]).await?;
        let encoding: String = encoding.get(0);
        if encoding != "UTF8" {
            return Err(PgError::Encoding { found: encoding });
        }
        match (self.version(client).await?, policy) {
            (found, _) if found == newest() => self.verify(client).await,
            (found, _) if found > newest() => Err(self.newer(found)),
            (_, MigrationPolicy::Apply) => self.migrate(client).await,
            (found, MigrationPolicy::Verify) => {
                let (schema, needed) = (self.name.clone(), newest());
                Err(PgError::OldSchema { schema, found, needed })
            }
        }
    }

    /// Removes the schema with everything in it, unless there is something that is not ours.
    pub(crate) async fn drop(&self, client: &mut Client) -> Result<(), PgError> {
        let transaction = begin(client).await?;
        transaction.query_typed(LOCK, &[(&self.name, Type::TEXT)]).await?;
        if let Some(row) = self.foreign(&transaction).await? {
            return Err(PgError::ForeignSchema { schema: self.name.clone(), found: row.get(0) });
        }
        let drop = format!("DROP SCHEMA IF EXISTS {} CASCADE", self.quoted);
        transaction.batch_execute(&drop).await?;
        Ok(transaction.commit().await?)
    }

    /// The version of the stored schema; 0 if there is none.
    async fn version(&self, client: &impl GenericClient) -> Result<i32, PgError> {
        let row = one(client, HAS_VERSIONS, &[(&self.name, Type::TEXT)]).await?;
        if !row.get::<_, bool>(0) {
            return Ok(0);
        }
        let sql = self.qualify("SELECT coalesce(max(version), 0) FROM duroxide.migration");
        Ok(one(client, &sql, &[]).await?.get(0))
    }

    /// Runs what is missing, all of it or nothing. Of many nodes that start at once one does it, the
    /// others wait and find it done.
    async fn migrate(&self, client: &mut Client) -> Result<(), PgError> {
        let transaction = begin(client).await?;
        transaction.query_typed(LOCK, &[(&self.name, Type::TEXT)]).await?;
        let found = self.version(&transaction).await?;
        if found > newest() {
            return Err(self.newer(found));
        }
        if found == 0 {
            let foreign = self.foreign(&transaction).await?;
            // Tables of others may stay where they are, unless they stand in the way.
            tracing::debug!(target: "duroxide::providers::postgres", has_other_tables = foreign.is_some(), "new schema");
            let make = format!("CREATE SCHEMA IF NOT EXISTS {}", self.quoted);
            transaction.batch_execute(&make).await?;
            transaction.batch_execute(&self.qualify(MIGRATION_TABLE)).await?;
        }
        if found != 0 {
            self.verify(&transaction).await?;
        }
        for (version, (name, sql)) in (1..).zip(MIGRATIONS).filter(|(version, _)| found < *version)
        {
            transaction.batch_execute(&self.migration(sql)).await?;
            let note = self.qualify(
                "INSERT INTO duroxide.migration (version, name, digest) VALUES ($1, $2, $3)",
            );
            let digest = number_of(sql);
            let values: [(&(dyn ToSql + Sync), Type); 3] =
                [(&version, Type::INT4), (name, Type::TEXT), (&digest, Type::TEXT)];
            transaction.query_typed(&note, &values).await?;
        }
        Ok(transaction.commit().await?)
    }

    /// Finds out whether the migrations that were applied are those of this build: only their numbers would
    /// not tell, and the first call that has changed would fail.
    async fn verify(&self, client: &impl GenericClient) -> Result<(), PgError> {
        let has = one(client, HAS_DIGESTS, &[(&self.name, Type::TEXT)]).await?;
        let sql = self.qualify(match has.get(0) {
            true => "SELECT version, digest FROM duroxide.migration ORDER BY version",
            false => "SELECT version, NULL::text FROM duroxide.migration ORDER BY version",
        });
        for row in client.query_typed(&sql, &[]).await? {
            let (version, found): (i32, Option<String>) = (row.get(0), row.get(1));
            let place = usize::try_from(version - 1).unwrap_or(usize::MAX);
            let known = MIGRATIONS.get(place).map(|(_, sql)| number_of(sql));
            if found != known {
                return Err(PgError::OtherSchema { schema: self.name.clone(), version });
            }
        }
        Ok(())
    }

    /// Something in the schema that is not ours.
    async fn foreign(&self, client: &impl GenericClient) -> Result<Option<Row>, PgError> {
        let values: [(&(dyn ToSql + Sync), Type); 2] =
            [(&self.name, Type::TEXT), (&TABLES, Type::TEXT_ARRAY)];
        Ok(client.query_typed(FOREIGN, &values).await?.pop())
    }

    fn newer(&self, found: i32) -> PgError {
        PgError::NewerSchema { schema: self.name.clone(), found, known: newest() }
    }
}

const MIGRATION_TABLE: &str = "CREATE TABLE duroxide.migration (
    version     integer PRIMARY KEY,
    name        text NOT NULL,
    applied_at  timestamptz NOT NULL DEFAULT now(),
    digest      text
)";
const HAS_VERSIONS: &str = "SELECT EXISTS (SELECT FROM pg_catalog.pg_class c
     JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
     WHERE n.nspname = $1 AND c.relname = 'migration' AND c.relkind = 'r')";
const HAS_DIGESTS: &str = "SELECT EXISTS (SELECT FROM pg_catalog.pg_attribute a
     JOIN pg_catalog.pg_class c ON c.oid = a.attrelid
     JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
     WHERE n.nspname = $1 AND c.relname = 'migration' AND a.attname = 'digest')";
/// Held to the end of the transaction by whoever changes a schema.
const LOCK: &str = "SELECT pg_advisory_xact_lock(hashtextextended('duroxide schema ' || $1, 0))";
/// A table of the schema that is not among those given.
const FOREIGN: &str = "SELECT c.relname::text FROM pg_catalog.pg_class c
     JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
     WHERE n.nspname = $1 AND c.relkind IN ('r', 'p', 'v', 'm', 'f')
     AND c.relname::text <> ALL ($2) LIMIT 1";
/// What is ours.
const TABLES: &[&str] = &[
    "instances",
    "executions",
    "queue",
    "waiting",
    "migration",
    "pin",
    "instance",
    "execution",
    "history",
    "mailbox",
    "message",
    "hidden",
    "work",
    "session",
    "kv",
    "kv_delta",
    "dead_letter",
    "node",
];

/// The row of a statement that has one. Types are said and nothing is prepared, so that this works
/// behind a pooler, too.
async fn one(
    client: &impl GenericClient,
    sql: &str,
    values: &[(&(dyn ToSql + Sync), Type)],
) -> Result<Row, PgError> {
    let row = client.query_typed(sql, values).await?.pop();
    row.ok_or_else(|| PgError::Connection { reason: format!("no answer to {sql}") })
}

/// A transaction in which each statement means the same, and sees what is there when it begins, whatever
/// the database says; and in which nobody gives up waiting for another node that migrates.
async fn begin(client: &mut Client) -> Result<Transaction<'_>, PgError> {
    const PINNED: &str = "SET LOCAL standard_conforming_strings = on;
         SET LOCAL search_path = pg_catalog, public;
         SET LOCAL statement_timeout = 0; SET LOCAL lock_timeout = 0;
         SET LOCAL idle_in_transaction_session_timeout = 0";
    let isolation = IsolationLevel::ReadCommitted;
    let transaction = client.build_transaction().isolation_level(isolation).start().await?;
    transaction.batch_execute(PINNED).await?;
    Ok(transaction)
}

/// The version this library makes.
fn newest() -> i32 {
    i32::try_from(MIGRATIONS.len()).unwrap_or(i32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_quoted_wherever_they_are_put() {
        let plain = Schema::new("plain").unwrap();
        assert_eq!(plain.qualify("a duroxide.b 'duroxide.c'"), "a \"plain\".b '\"plain\".c'");
        let odd = Schema::new("o'dd \"one\"; $body$ duroxide.").unwrap();
        assert_eq!(
            odd.qualify("duroxide.b 'duroxide.c'"),
            "\"o'dd \"\"one\"\"; $body$ duroxide.\".b '\"o''dd \"\"one\"\"; $body$ duroxide.\".c'"
        );
        assert!(odd.migration("AS $body$ x $body$").starts_with("AS $xbody$ x $xbody$"));
    }

    #[test]
    fn some_names_are_refused() {
        for name in ["", "pg_mine", "information_schema", "two\nlines", &"x".repeat(64)] {
            assert!(Schema::new(name).is_err(), "{name:?}");
        }
        assert!(Schema::new(&"x".repeat(63)).is_ok());
    }

    #[test]
    fn migrations_name_the_schema_everywhere() {
        for (name, sql) in MIGRATIONS {
            for line in sql.lines().filter(|line| line.contains("CREATE ")) {
                let made = line.contains("duroxide.") || line.trim_start().starts_with("--");
                assert!(made, "{name}: {line}");
            }
        }
    }
}
