//! Instances, executions and totals, looked at.

use duroxide_core::model::INITIAL_EXECUTION_ID;
use duroxide_core::provider::{
    DeadLetter, ExecutionInfo, InstanceInfo, InstanceTree, QueueDepths, Refusal, SystemMetrics,
};
use tokio_postgres::Row;

use crate::error::Failure;
use crate::numbers::{id_in, id_out, ms_out};
use crate::store::Store;
use crate::text::{pack, unpack};
use crate::value::Values;
use crate::writes::count;

impl Store {
    /// A list of ids.
    pub(crate) async fn ids(
        &self,
        sql: &'static str,
        values: &Values<'_>,
    ) -> Result<Vec<String>, Failure> {
        let rows = self.pool.query(sql, values).await?;
        Ok(rows.iter().map(|row| unpack(row.get(0))).collect())
    }

    /// Execution numbers, ascending.
    pub(crate) async fn executions(&self, instance: &str) -> Result<Vec<u64>, Failure> {
        const READ: &str = "SELECT e.number
             FROM duroxide.instance i JOIN duroxide.execution e ON e.instance = i.key
             WHERE i.id = $1 ORDER BY e.number";
        let rows = self.pool.query(READ, &[&pack(instance)]).await?;
        Ok(rows.iter().map(|row| id_out(row.get(0))).collect())
    }

    /// The highest execution number; 1 for an unknown instance (R8.97).
    pub(crate) async fn newest_execution(&self, instance: &str) -> Result<u64, Failure> {
        Ok(self.executions(instance).await?.pop().unwrap_or(INITIAL_EXECUTION_ID))
    }

    /// An instance as a whole.
    pub(crate) async fn info(&self, instance: &str) -> Result<InstanceInfo, Failure> {
        const READ: &str =
            "SELECT i.name, i.version, i.execution, e.status, e.output, i.created_at,
                 i.updated_at, i.parent
             FROM duroxide.instance i
             JOIN duroxide.execution e ON e.instance = i.key AND e.number = i.execution
             WHERE i.id = $1 AND i.name IS NOT NULL";
        let rows = self.pool.query(READ, &[&pack(instance)]).await?;
        let row = rows.first().ok_or_else(|| Self::unknown(instance))?;
        Ok(InstanceInfo {
            instance_id: instance.to_owned(),
            orchestration_name: unpack(row.get(0)),
            orchestration_version: unpack(row.get(1)),
            current_execution_id: id_out(row.get(2)),
            status: unpack(row.get(3)),
            output: row.get::<_, Option<String>>(4).map(unpack),
            created_at: ms_out(row.get(5)),
            updated_at: ms_out(row.get(6)),
            parent_instance_id: row.get::<_, Option<String>>(7).map(unpack),
        })
    }

    /// One execution.
    pub(crate) async fn execution(
        &self,
        instance: &str,
        number: u64,
    ) -> Result<ExecutionInfo, Failure> {
        const READ: &str = "SELECT e.status, e.output, e.started_at, e.completed_at, (
                 SELECT count(*) FROM duroxide.history h
                 WHERE h.instance = e.instance AND h.execution = e.number)
             FROM duroxide.execution e
             WHERE e.instance = (SELECT i.key FROM duroxide.instance i WHERE i.id = $1)
             AND e.number = $2";
        let rows = self.pool.query(READ, &[&pack(instance), &id_in(number)]).await?;
        let unknown = || Refusal::UnknownExecution(instance.to_owned(), number);
        let row = rows.first().ok_or_else(unknown)?;
        Ok(ExecutionInfo {
            execution_id: number,
            status: unpack(row.get(0)),
            output: row.get::<_, Option<String>>(1).map(unpack),
            started_at: ms_out(row.get(2)),
            completed_at: row.get::<_, Option<i64>>(3).map(ms_out),
            event_count: count(row.get(4)),
        })
    }

    /// The parent of a child; `None` for a root.
    pub(crate) async fn parent(&self, instance: &str) -> Result<Option<String>, Failure> {
        const READ: &str =
            "SELECT parent FROM duroxide.instance WHERE id = $1 AND name IS NOT NULL";
        let rows = self.pool.query(READ, &[&pack(instance)]).await?;
        let row = rows.first().ok_or_else(|| Self::unknown(instance))?;
        Ok(row.get::<_, Option<String>>(0).map(unpack))
    }

    /// An instance and its descendants, level by level; just the id if it is unknown.
    pub(crate) async fn tree(&self, root: &str) -> Result<InstanceTree, Failure> {
        // A path is what decides the order, and keeps a circle from being walked for ever.
        const READ: &str = "WITH RECURSIVE tree(id, path, key) AS (
                 SELECT $1::text COLLATE \"C\", '{}'::bigint[], NULL::bigint
                 UNION ALL
                 SELECT i.id, t.path || i.created_at || i.key, i.key
                 FROM tree t JOIN duroxide.instance i ON i.parent = t.id
                 WHERE i.id <> $1 AND i.key <> ALL (t.path))
             SELECT id FROM tree ORDER BY cardinality(path), path";
        let all_ids = self.ids(READ, &[&pack(root)]).await?;
        Ok(InstanceTree { root_id: root.to_owned(), all_ids })
    }

    /// Instances, executions and events.
    pub(crate) async fn totals(&self) -> Result<SystemMetrics, Failure> {
        const READ: &str = "SELECT * FROM duroxide.totals()";
        let rows = self.pool.query(READ, &[]).await?;
        let number = |column| rows.first().map_or(0, |row| ms_out(row.get(column)));
        Ok(SystemMetrics {
            total_instances: number(0),
            total_executions: number(1),
            total_events: number(2),
            running_instances: number(3),
            completed_instances: number(4),
            failed_instances: number(5),
        })
    }

    /// Instances that run.
    pub(crate) async fn running(&self) -> Result<u64, Failure> {
        let rows = self.pool.query("SELECT duroxide.count_running()", &[]).await?;
        Ok(rows.first().map_or(0, |row| ms_out(row.get(0))))
    }

    /// Rows that no valid lock covers. What sleeps until its time has come does not wait for anybody.
    pub(crate) async fn queue_depths(&self) -> Result<QueueDepths, Failure> {
        const READ: &str = "SELECT * FROM duroxide.queue_depths($1)";
        let rows = self.pool.query(READ, &[&self.given_time()]).await?;
        let depth = |column| rows.first().map_or(0, |row| count(row.get(column)));
        Ok(QueueDepths { orchestrator_queue: depth(0), worker_queue: depth(1), timer_queue: 0 })
    }

    /// Dead letters, oldest first.
    pub(crate) async fn dead_letters(&self) -> Result<Vec<DeadLetter>, Failure> {
        const READ: &str =
            "SELECT instance, payload, reason, at FROM duroxide.dead_letter ORDER BY id";
        let rows = self.pool.query(READ, &[]).await?;
        let letter = |row: &Row| DeadLetter {
            instance: row.get::<_, Option<String>>(0).map(unpack),
            payload: row.get(1),
            reason: unpack(row.get(2)),
            at_ms: ms_out(row.get(3)),
        };
        Ok(rows.iter().map(letter).collect())
    }
}
