//! Instances and executions removed.
//!
//! What removes many does so in small transactions: it chooses without a lock, and takes few at a time.
//! What somebody else has locked is left for the end, and waited for alone.

use duroxide_core::provider::{
    DeleteInstanceResult, DeleteRefused, InstanceFilter, PruneOptions, PruneResult, Refusal,
};
use tokio_postgres::Row;

use crate::error::Failure;
use crate::numbers::{ms_in, ms_out};
use crate::store::Store;
use crate::text::{pack, unpack};
use crate::value::Value;
use crate::writes::value;

/// How many instances a bulk call touches if it does not say (R6.70).
const DEFAULT_LIMIT: u32 = 1000;
/// Most trees that one transaction deletes.
const TREES_MAX: usize = 16;
/// Most executions that one transaction prunes, and about how many events.
const EXECUTIONS_MAX: usize = 100;
const EVENTS_MAX: i64 = 2_000;
/// Most executions that are chosen at a time.
const CHOSEN_MAX: i64 = 10_000;

impl Store {
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
        let (now, retention) = (self.given_time(), self.retention());
        deleted(&self.pool.change(DELETE, &[&ids, &force, &tree, &now, &retention]).await?)
    }

    /// Deletes ended roots; those with a running descendant stay (R6.71, R6.74). Each tree goes as a whole,
    /// few of them at a time (R6.75).
    pub(crate) async fn delete_bulk(
        &self,
        filter: &InstanceFilter,
    ) -> Result<DeleteInstanceResult, Failure> {
        const CHOOSE: &str = "SELECT duroxide.ended_roots($1, $2, $3)";
        const DELETE: &str = "SELECT * FROM duroxide.delete_trees($1, $2, $3)";
        let (ids, before, limit) = filter_in(filter);
        let rows = self.pool.query(CHOOSE, &[&ids, &before, &limit]).await?;
        let roots: Vec<String> = value(&rows).unwrap_or_default();
        let mut sum = DeleteInstanceResult::default();
        let mut left: Vec<&String> = Vec::new();
        for some in roots.chunks(TREES_MAX) {
            let (now, retention) = (self.given_time(), self.retention());
            let rows = self.pool.change(DELETE, &[&some, &now, &retention]).await;
            match rows.map_err(Failure::from).and_then(|rows| deleted(&rows)) {
                Ok(result) => add(&mut sum, &result),
                // One of them is in somebody else's hands, or runs again: each by itself.
                Err(Failure::Refused(_)) => left.extend(some),
                Err(Failure::Database(error)) if error.is_lock_timeout() => left.extend(some),
                Err(failure) => return Err(failure),
            }
        }
        for root in left {
            match self.delete(&[unpack(root.clone())], false, true).await {
                Ok(result) => add(&mut sum, &result),
                Err(Failure::Refused(_)) => {} // It runs again.
                Err(failure) => return Err(failure),
            }
        }
        Ok(sum)
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
        const CHOOSE: &str = "SELECT instance, number FROM duroxide.prunable($1, $2, $3, $4)";
        let terms = Pruning::of(options);
        let instances_processed = keys.len() as u64;
        let mut sum = PruneResult { instances_processed, ..PruneResult::default() };
        loop {
            let values: &[&dyn Value] = &[&keys, &terms.keep, &terms.before, &CHOSEN_MAX];
            let rows = self.pool.query(CHOOSE, values).await?;
            let chosen: Vec<(i64, i64)> = rows.iter().map(|row| (row.get(0), row.get(1))).collect();
            let before = sum.executions_deleted;
            let locked = self.prune_chosen(&chosen, terms, false, &mut sum).await?;
            for key in locked {
                let of_one: Vec<_> = chosen.iter().copied().filter(|(of, _)| *of == key).collect();
                self.prune_chosen(&of_one, terms, true, &mut sum).await?;
            }
            let is_over = (chosen.len() as i64) < CHOSEN_MAX;
            if is_over || before == sum.executions_deleted {
                return Ok(sum);
            }
        }
    }

    /// Removes what was chosen, in as many transactions as it takes; those that somebody else has locked
    /// are left, unless they are to be waited for.
    async fn prune_chosen(
        &self,
        chosen: &[(i64, i64)],
        terms: Pruning,
        waits: bool,
        sum: &mut PruneResult,
    ) -> Result<Vec<i64>, Failure> {
        const PRUNE: &str =
            "SELECT executions, events, seen, locked FROM duroxide.prune($1, $2, $3, $4, $5, $6)";
        let (mut locked, mut rest) = (Vec::new(), chosen);
        while !rest.is_empty() {
            let some = &rest[..rest.len().min(EXECUTIONS_MAX)];
            let (instances, numbers): (Vec<i64>, Vec<i64>) = some.iter().copied().unzip();
            let values: &[&dyn Value] =
                &[&instances, &numbers, &terms.keep, &terms.before, &EVENTS_MAX, &waits];
            let rows = self.pool.change(PRUNE, values).await?;
            let Some(row) = rows.first() else { break };
            sum.executions_deleted += ms_out(row.get("executions"));
            sum.events_deleted += ms_out(row.get("events"));
            locked.extend(row.get::<_, Vec<i64>>("locked"));
            let seen = usize::try_from(row.get::<_, i64>("seen")).unwrap_or(0);
            rest = &rest[seen.clamp(1, some.len())..];
        }
        locked.dedup();
        Ok(locked)
    }
}

/// What is pruned.
#[derive(Debug, Clone, Copy)]
struct Pruning {
    keep: i64,
    before: Option<i64>,
}

impl Pruning {
    fn of(options: &PruneOptions) -> Self {
        let keep = i64::from(options.keep_last.unwrap_or(1));
        Self { keep, before: options.completed_before.map(ms_in) }
    }
}

/// What a deletion came to.
fn deleted(rows: &[Row]) -> Result<DeleteInstanceResult, Failure> {
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

fn add(sum: &mut DeleteInstanceResult, more: &DeleteInstanceResult) {
    sum.instances_deleted += more.instances_deleted;
    sum.executions_deleted += more.executions_deleted;
    sum.events_deleted += more.events_deleted;
    sum.queue_messages_deleted += more.queue_messages_deleted;
}

type Filter = (Option<Vec<String>>, Option<i64>, i64);

fn filter_in(filter: &InstanceFilter) -> Filter {
    let pack_all = |ids: &Vec<String>| ids.iter().map(|id| pack(id).into_owned()).collect();
    let limit = i64::from(filter.limit.unwrap_or(DEFAULT_LIMIT));
    (filter.instance_ids.as_ref().map(pack_all), filter.completed_before.map(ms_in), limit)
}
