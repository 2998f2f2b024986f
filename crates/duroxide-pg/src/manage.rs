//! Instances, executions and totals, looked at and removed.

use duroxide_core::model::INITIAL_EXECUTION_ID;
use duroxide_core::provider::{
    DeadLetter, DeleteInstanceResult, DeleteRefused, ExecutionInfo, InstanceFilter, InstanceInfo,
    InstanceTree, PruneOptions, PruneResult, QueueDepths, Refusal, SystemMetrics,
};
use tokio_postgres::Row;

use crate::error::Failure;
use crate::numbers::{id_in, id_out, ms_in, ms_out};
use crate::store::Store;
use crate::text::{pack, unpack};
use crate::value::Values;
use crate::writes::{count, value};

/// How many instances a bulk call touches if it does not say (R6.70).
const DEFAULT_LIMIT: u32 = 1000;
/// How often a bulk deletion chooses anew, if what it chose has begun to run meanwhile.
const CHOICES: usize = 10;

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
             FROM duroxide.instance i JOIN duroxide.execution e ON e.instance = i.key
             WHERE i.id = $1 AND e.number = $2";
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
        const READ: &str = "SELECT
                 (SELECT count(*) FROM duroxide.instance WHERE name IS NOT NULL),
                 (SELECT count(*) FROM duroxide.execution),
                 (SELECT count(*) FROM duroxide.history),
                 count(*) FILTER (WHERE e.status = 'Running'),
                 count(*) FILTER (WHERE e.status = 'Completed'),
                 count(*) FILTER (WHERE e.status = 'Failed')
             FROM duroxide.instance i
             JOIN duroxide.execution e ON e.instance = i.key AND e.number = i.execution
             WHERE i.name IS NOT NULL";
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
        const READ: &str = "SELECT
                 (SELECT count(*) FROM duroxide.hidden h WHERE h.visible_at <= t.now) + (
                     SELECT count(*) FROM duroxide.hidden h
                     WHERE h.visible_at > t.now AND h.attempts > 0) + (
                     SELECT count(*) FROM duroxide.message q
                     LEFT JOIN duroxide.mailbox m ON m.instance = q.instance AND m.state = 2
                         AND m.wake_at > t.now AND q.seq = ANY (m.taken)
                     WHERE m.instance IS NULL),
                 (SELECT count(*) FROM duroxide.work w
                     WHERE w.token IS NULL OR coalesce(w.wake_at, 0) <= t.now)
             FROM (SELECT coalesce($1, duroxide.now_ms()) AS now) t";
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

    /// Deletes a root with its descendants (R6.60, R6.61).
    pub(crate) async fn delete_tree(
        &self,
        root: &str,
        force: bool,
    ) -> Result<DeleteInstanceResult, Failure> {
        let refused = |why| Err(Refusal::Undeletable(why, root.to_owned()).into());
        match self.parent(root).await {
            Ok(None) => {}
            Ok(Some(parent)) => match self.parent(&parent).await {
                // Without its parent it is the root of what is left (R6.69).
                Err(Failure::Refused(_)) => {}
                Err(failure) => return Err(failure),
                Ok(_) => return refused(DeleteRefused::SubOrchestration),
            },
            Err(Failure::Refused(_)) => return refused(DeleteRefused::NotFound),
            Err(failure) => return Err(failure),
        }
        match self.delete(&[root.to_owned()], force, true).await {
            Ok(result) if result.instances_deleted == 0 => refused(DeleteRefused::NotFound),
            Err(Failure::Refused(Refusal::Undeletable(why, _))) => refused(why),
            result => result,
        }
    }

    /// Deletes instances, with their descendants or exactly these (R6.64).
    pub(crate) async fn delete(
        &self,
        ids: &[String],
        force: bool,
        tree: bool,
    ) -> Result<DeleteInstanceResult, Failure> {
        const DELETE: &str = "SELECT * FROM duroxide.delete_instances($1, $2, $3, $4, $5)";
        let ids: Vec<_> = ids.iter().map(|id| pack(id)).collect();
        let rows = self
            .pool
            .query(DELETE, &[&ids, &force, &tree, &self.given_time(), &self.retention()])
            .await?;
        let Some(row) = rows.first() else { return Ok(DeleteInstanceResult::default()) };
        let text = |column| unpack(row.get::<_, Option<String>>(column).unwrap_or_default());
        match row.get("refusal") {
            0_i16 => Ok(DeleteInstanceResult {
                instances_deleted: ms_out(row.get("instances")),
                executions_deleted: ms_out(row.get("executions")),
                events_deleted: ms_out(row.get("events")),
                queue_messages_deleted: ms_out(row.get("messages")),
            }),
            1 => Err(Refusal::Undeletable(DeleteRefused::StillRunning, text("culprit")).into()),
            _ => {
                let (child, parent) = (text("culprit"), text("parent"));
                Err(Refusal::ChildAppeared { child, parent }.into())
            }
        }
    }

    /// Deletes ended roots; those with a running descendant stay (R6.71, R6.74).
    pub(crate) async fn delete_bulk(
        &self,
        filter: &InstanceFilter,
    ) -> Result<DeleteInstanceResult, Failure> {
        const CHOOSE: &str = "SELECT duroxide.ended_roots($1, $2, $3)";
        let (ids, before, limit) = filter_in(filter);
        let mut choices = 0;
        loop {
            choices += 1;
            let rows = self.pool.query(CHOOSE, &[&ids, &before, &limit]).await?;
            let roots: Vec<String> = value(&rows).unwrap_or_default();
            let roots: Vec<String> = roots.into_iter().map(unpack).collect();
            match self.delete(&roots, false, true).await {
                Err(Failure::Refused(_)) if choices < CHOICES => {}
                result => return result,
            }
        }
    }

    /// Removes old executions of an instance (R6.80).
    pub(crate) async fn prune(
        &self,
        instance: &str,
        options: &PruneOptions,
    ) -> Result<PruneResult, Failure> {
        const FIND: &str = "SELECT key FROM duroxide.instance WHERE id = $1 AND name IS NOT NULL";
        let rows = self.pool.query(FIND, &[&pack(instance)]).await?;
        let key: i64 = value(&rows).ok_or_else(|| Self::unknown(instance))?;
        self.prune_keys(&[key], options).await
    }

    /// Removes old executions of many instances, whatever their status (R6.84).
    pub(crate) async fn prune_bulk(
        &self,
        filter: &InstanceFilter,
        options: &PruneOptions,
    ) -> Result<PruneResult, Failure> {
        const FIND: &str = "SELECT key FROM duroxide.candidates($1, $2) LIMIT $3";
        let (ids, before, limit) = filter_in(filter);
        let rows = self.pool.query(FIND, &[&ids, &before, &limit]).await?;
        let keys: Vec<i64> = rows.iter().map(|row| row.get(0)).collect();
        self.prune_keys(&keys, options).await
    }

    async fn prune_keys(
        &self,
        keys: &[i64],
        options: &PruneOptions,
    ) -> Result<PruneResult, Failure> {
        const PRUNE: &str = "SELECT executions, events FROM duroxide.prune($1, $2, $3)";
        let keep = i64::from(options.keep_last.unwrap_or(1));
        let before = options.completed_before.map(ms_in);
        let rows = self.pool.query(PRUNE, &[&keys, &keep, &before]).await?;
        let number = |column| rows.first().map_or(0, |row| ms_out(row.get(column)));
        Ok(PruneResult {
            instances_processed: keys.len() as u64,
            executions_deleted: number(0),
            events_deleted: number(1),
        })
    }
}

type Filter = (Option<Vec<String>>, Option<i64>, i64);

fn filter_in(filter: &InstanceFilter) -> Filter {
    let pack_all = |ids: &Vec<String>| ids.iter().map(|id| pack(id).into_owned()).collect();
    let limit = i64::from(filter.limit.unwrap_or(DEFAULT_LIMIT));
    (filter.instance_ids.as_ref().map(pack_all), filter.completed_before.map(ms_in), limit)
}
