//! Histories, statuses and values: one statement each, which sees one state of the store.

use std::collections::HashMap;

use duroxide_core::model::{Event, EventKind, OrchestrationStatus, SystemStats};
use duroxide_core::provider::Refusal;
use tokio_postgres::Row;
use uuid::Uuid;

use crate::error::Failure;
use crate::events::{EventRow, decode};
use crate::numbers::{id_in, id_out, ms_out};
use crate::store::Store;
use crate::text::{pack, unpack};
use crate::token::read_work;

impl Store {
    /// Events of one execution from an id on, at most `limit` (R8.131).
    pub(crate) async fn history(
        &self,
        instance: &str,
        execution: u64,
        from: u64,
        limit: usize,
    ) -> Result<Vec<Event>, Failure> {
        const READ: &str = "SELECT h.event, h.source, h.at, h.stamp, h.body
             FROM duroxide.history h
             WHERE h.instance = (SELECT i.key FROM duroxide.instance i WHERE i.id = $1)
             AND h.execution = $2 AND h.event >= $3 ORDER BY h.event LIMIT $4";
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let (execution_in, from) = (id_in(execution), id_in(from));
        let rows = self.pool.query(READ, &[&pack(instance), &execution_in, &from, &limit]).await?;
        let rows = rows.iter().map(|row| EventRow::read(row, 0));
        Ok(decode(rows, instance, execution)?)
    }

    /// Events of the newest execution; none for an unknown instance (R8.95).
    pub(crate) async fn newest_history(&self, instance: &str) -> Result<Vec<Event>, Failure> {
        const READ: &str = "SELECT e.number, h.event, h.source, h.at, h.stamp, h.body
             FROM duroxide.instance i
             CROSS JOIN LATERAL (SELECT x.number FROM duroxide.execution x
                 WHERE x.instance = i.key ORDER BY x.number DESC LIMIT 1) e
             CROSS JOIN LATERAL (SELECT o.* FROM duroxide.history o
                 WHERE o.instance = i.key AND o.execution = e.number OFFSET 0) h
             WHERE i.id = $1 ORDER BY h.event";
        let rows = self.pool.query(READ, &[&pack(instance)]).await?;
        let execution = rows.first().map_or(0, |row| id_out(row.get(0)));
        let rows = rows.iter().map(|row| EventRow::read(row, 1));
        Ok(decode(rows, instance, execution)?)
    }

    /// The status of an instance, by the event that decides it (R8.133).
    pub(crate) async fn status(&self, instance: &str) -> Result<OrchestrationStatus, Failure> {
        const READ: &str = "SELECT e.number, i.name IS NOT NULL, i.custom_status, i.custom_version,
                 h.event IS NOT NULL, h.event, h.source, h.at, h.stamp, h.body
             FROM duroxide.instance i
             CROSS JOIN LATERAL (
                 SELECT x.number, coalesce(x.outcome, x.started) AS deciding
                 FROM duroxide.execution x
                 WHERE x.instance = i.key ORDER BY x.number DESC LIMIT 1) e
             LEFT JOIN LATERAL (SELECT o.* FROM duroxide.history o
                 WHERE o.instance = i.key AND o.execution = e.number AND o.event = e.deciding
                 LIMIT 1) h ON true
             WHERE i.id = $1";
        let rows = self.pool.query(READ, &[&pack(instance)]).await?;
        let Some(row) = rows.first() else { return Ok(OrchestrationStatus::NotFound) };
        let deciding = row.get::<_, bool>(4).then(|| EventRow::read(row, 5));
        let deciding = decode(deciding.into_iter(), instance, id_out(row.get(0)))?;
        let custom = if row.get(1) {
            (row.get::<_, Option<String>>(2).map(unpack), ms_out(row.get(3)))
        } else {
            (None, 0)
        };
        Ok(OrchestrationStatus::from_history(&deciding, custom))
    }

    /// The key of an instance.
    pub(crate) async fn key_of(&self, instance: &str) -> Result<Option<i64>, Failure> {
        const READ: &str = "SELECT key FROM duroxide.instance WHERE id = $1";
        let rows = self.pool.query(READ, &[&pack(instance)]).await?;
        Ok(rows.first().map(|row| row.get(0)))
    }

    /// Custom status and version, if newer than that (R8.100).
    pub(crate) async fn custom_status(
        &self,
        instance: &str,
        last_seen: u64,
    ) -> Result<Option<(Option<String>, u64)>, Failure> {
        const READ: &str = "SELECT custom_status, custom_version FROM duroxide.instance
             WHERE id = $1 AND name IS NOT NULL";
        let rows = self.pool.query(READ, &[&pack(instance)]).await?;
        let found = rows
            .first()
            .map(|row| (row.get::<_, Option<String>>(0).map(unpack), ms_out(row.get(1))));
        Ok(found.filter(|(_, version)| last_seen < *version))
    }

    /// A value as seen from outside: changes win (R8.110).
    pub(crate) async fn kv_value(
        &self,
        instance: &str,
        key: &str,
    ) -> Result<Option<String>, Failure> {
        const READ: &str = "SELECT CASE WHEN d.key IS NULL THEN k.value ELSE d.value END
             FROM duroxide.instance i
             LEFT JOIN duroxide.kv_delta d ON d.instance = i.key AND d.key = $2
             LEFT JOIN duroxide.kv k ON k.instance = i.key AND k.key = $2
             WHERE i.id = $1";
        let rows = self.pool.query(READ, &[&pack(instance), &pack(key)]).await?;
        Ok(rows.first().and_then(|row| row.get::<_, Option<String>>(0)).map(unpack))
    }

    /// All values as seen from outside.
    pub(crate) async fn kv_values(
        &self,
        instance: &str,
    ) -> Result<HashMap<String, String>, Failure> {
        const READ: &str = "SELECT d.key, d.value
             FROM duroxide.instance i JOIN duroxide.kv_delta d ON d.instance = i.key
             WHERE i.id = $1 AND d.value IS NOT NULL
             UNION ALL
             SELECT k.key, k.value
             FROM duroxide.instance i JOIN duroxide.kv k ON k.instance = i.key
             WHERE i.id = $1 AND NOT EXISTS (SELECT FROM duroxide.kv_delta d
                 WHERE d.instance = k.instance AND d.key = k.key)";
        let rows = self.pool.query(READ, &[&pack(instance)]).await?;
        Ok(rows.iter().map(|row| (unpack(row.get(0)), unpack(row.get(1)))).collect())
    }

    /// Sizes of an instance (R6.41, R6.42).
    pub(crate) async fn stats(&self, instance: &str) -> Result<Option<SystemStats>, Failure> {
        const READ: &str = "SELECT e.number, h.event, h.source, h.at, h.stamp, h.body
             FROM duroxide.instance i
             JOIN duroxide.execution e ON e.instance = i.key AND e.number = i.execution
             LEFT JOIN LATERAL (SELECT o.* FROM duroxide.history o
                 WHERE o.instance = i.key AND o.execution = e.number OFFSET 0) h ON true
             WHERE i.id = $1 AND i.name IS NOT NULL ORDER BY h.event";
        let rows = self.pool.query(READ, &[&pack(instance)]).await?;
        let Some(first) = rows.first() else { return Ok(None) };
        let execution = id_out(first.get(0));
        let mut stats = SystemStats {
            history_event_count: 0,
            history_size_bytes: 0,
            queue_pending_count: 0,
            kv_user_key_count: 0,
            kv_total_value_bytes: 0,
        };
        for row in rows.iter().filter(|row| row.get::<_, Option<i64>>(1).is_some()) {
            let row = EventRow::read(row, 1);
            stats.history_event_count += 1;
            let stored_bytes = row.body.len() as u64;
            let decoded = row.into_event(instance, execution);
            let json = decoded.as_ref().ok().and_then(|event| serde_json::to_string(event).ok());
            stats.history_size_bytes += json.map_or(stored_bytes, |json| json.len() as u64);
            if let Ok(EventKind::OrchestrationStarted {
                carry_forward_events: Some(carried), ..
            }) = decoded.map(|event| event.kind)
            {
                stats.queue_pending_count = carried.len() as u64;
            }
        }
        for value in self.kv_values(instance).await?.values() {
            stats.kv_user_key_count += 1;
            stats.kv_total_value_bytes += value.len() as u64;
        }
        Ok(Some(stats))
    }

    /// Those of these tokens whose activity is gone, or was locked by somebody else since (R8.148).
    pub(crate) async fn lost_work(&self, tokens: &[&str]) -> Result<Vec<String>, Failure> {
        const READ: &str = "SELECT u.n FROM unnest($1::bigint[], $2::uuid[])
                 WITH ORDINALITY u(seq, token, n)
             LEFT JOIN duroxide.work w ON w.seq = u.seq
             WHERE w.token IS DISTINCT FROM u.token";
        // What is no token of an activity is nowhere.
        let read = |token: &&str| read_work(token).unwrap_or((i64::MIN, Uuid::max()));
        let (seqs, secrets): (Vec<i64>, Vec<Uuid>) = tokens.iter().map(read).unzip();
        let rows = self.pool.query(READ, &[&seqs, &secrets]).await?;
        let place = |row: &Row| usize::try_from(row.get::<_, i64>(0) - 1).ok();
        let lost = rows.iter().filter_map(|row| tokens.get(place(row)?));
        Ok(lost.map(|token| (*token).to_owned()).collect())
    }

    /// An instance that is not there.
    pub(crate) fn unknown(instance: &str) -> Failure {
        Refusal::UnknownInstance(instance.to_owned()).into()
    }
}
