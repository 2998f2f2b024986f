//! Deleting whole trees, and pruning old executions.

use std::collections::BTreeSet;

use duroxide::providers::{
    DeleteInstanceResult, DeleteRefused, InstanceFilter, ProviderError, PruneOptions, PruneResult,
};

use super::store::{Execution, Tables};
use super::turns::Message;

const LIMIT_DEFAULT: u32 = 1000;

impl Tables {
    /// Deletes exactly these instances, or none (R6.60 – R6.64), and the starts of their children
    /// that are still queued (R6.68).
    pub(crate) fn delete_all(
        &mut self,
        ids: &[String],
        force: bool,
        now: u64,
    ) -> Result<DeleteInstanceResult, ProviderError> {
        let ids: BTreeSet<&str> = ids.iter().map(String::as_str).collect();
        for id in &ids {
            if !self.instances.contains_key(*id) {
                return Err(DeleteRefused::NotFound.into_error(id));
            }
            if !force && self.is_running(id) {
                return Err(DeleteRefused::StillRunning.into_error(id));
            }
            if self.children(id).iter().any(|child| !ids.contains(child.as_str())) {
                let message = format!("a child of {id} was created after tree traversal");
                return Err(ProviderError::permanent("delete_instance", message));
            }
        }
        let queue_messages_deleted = self.delete_starts_of(&ids, now)?;
        let starts = DeleteInstanceResult { queue_messages_deleted, ..Default::default() };
        Ok(ids.iter().map(|id| self.delete_one(id)).fold(starts, total))
    }

    /// Deletes ended roots with their trees (R6.70 – R6.75).
    pub(crate) fn delete_bulk(
        &mut self,
        filter: &InstanceFilter,
        now: u64,
    ) -> Result<DeleteInstanceResult, ProviderError> {
        // A child whose parent does not exist is a root, too (R6.69).
        let is_root = |id: &String| {
            let parent = self.instances.get(id).and_then(|row| row.parent.as_ref());
            parent.is_none_or(|parent| !self.instances.contains_key(parent))
        };
        let mut roots = self.chosen(filter);
        roots.retain(|id| is_root(id) && !self.tree(id).iter().any(|id| self.is_running(id)));
        roots.truncate(filter.limit.unwrap_or(LIMIT_DEFAULT) as usize);
        let all: Vec<String> = roots.iter().flat_map(|root| self.tree(root)).collect();
        self.delete_all(&all, false, now)
    }

    /// Removes old executions of one instance (R6.80 – R6.83).
    pub(crate) fn prune(
        &mut self,
        id: &str,
        options: &PruneOptions,
    ) -> Result<PruneResult, ProviderError> {
        if !self.instances.contains_key(id) {
            let message = format!("Instance {id} not found");
            return Err(ProviderError::permanent("prune_executions", message));
        }
        // The newest one is the current one, so at least that is kept.
        let kept = options.keep_last.unwrap_or(1).max(1) as usize;
        let mut result = PruneResult { instances_processed: 1, ..PruneResult::default() };
        let Some(executions) = self.executions.get_mut(id) else { return Ok(result) };
        let old = executions.len().saturating_sub(kept);
        let goes = |row: &Execution| {
            row.status != "Running" && ended_before(row, options.completed_before)
        };
        let numbers: Vec<u64> =
            executions.iter().take(old).filter(|(_, row)| goes(row)).map(|(n, _)| *n).collect();
        for row in numbers.iter().filter_map(|number| executions.remove(number)) {
            result.executions_deleted += 1;
            result.events_deleted += row.events.len() as u64;
        }
        Ok(result)
    }

    /// The same for many, whatever their status (R6.84).
    pub(crate) fn prune_bulk(
        &mut self,
        filter: &InstanceFilter,
        options: &PruneOptions,
    ) -> Result<PruneResult, ProviderError> {
        let mut ids = self.chosen(filter);
        ids.truncate(filter.limit.unwrap_or(LIMIT_DEFAULT) as usize);
        let mut sum = PruneResult::default();
        for id in ids {
            let one = self.prune(&id, options)?;
            sum.instances_processed += one.instances_processed;
            sum.executions_deleted += one.executions_deleted;
            sum.events_deleted += one.events_deleted;
        }
        Ok(sum)
    }

    /// Instances by ids and time of the filter, oldest first.
    fn chosen(&self, filter: &InstanceFilter) -> Vec<String> {
        let mut ids = self.newest_first();
        ids.reverse();
        ids.retain(|id| {
            let named = filter.instance_ids.as_ref().is_none_or(|named| named.contains(id));
            let current = self.execution(id, self.latest_execution(id));
            named && current.is_some_and(|row| ended_before(row, filter.completed_before))
        });
        ids
    }

    /// Children that have not begun do not begin: how many messages went. Who has read the start of one
    /// loses the lock, and the attempt does not count.
    fn delete_starts_of(
        &mut self,
        parents: &BTreeSet<&str>,
        now: u64,
    ) -> Result<u64, ProviderError> {
        let is_theirs = |row: &mut Message| {
            row.parent.as_deref().is_some_and(|parent| parents.contains(parent))
        };
        let starts: Vec<Message> = self.messages.extract_if(.., is_theirs).collect();
        let mut rows = starts.len() as u64;
        for Message { instance, batch, .. } in starts {
            let lock = self.turn_locks.get(&instance).filter(|lock| lock.is_valid(now));
            if let Some(token) = batch.filter(|token| lock.is_some_and(|l| l.token == *token)) {
                self.abandon_turn(&token, now, None, true)?;
            }
            let has_start =
                self.messages.iter().any(|row| row.instance == instance && row.is_start);
            if !self.is_known(&instance) && !has_start {
                // What was sent to it was sent to the child that will not be.
                rows += self.delete_one(&instance).queue_messages_deleted;
            }
        }
        Ok(rows)
    }

    /// Everything of one instance, locks included: who holds one cannot commit (R8.57).
    fn delete_one(&mut self, id: &str) -> DeleteInstanceResult {
        let executions = self.executions.remove(id).unwrap_or_default();
        let rows_before = self.messages.len() + self.jobs.len();
        self.messages.retain(|row| row.instance != id);
        self.jobs.retain(|row| row.instance != id);
        self.turn_locks.remove(id);
        self.moved_to.remove(id);
        self.waits_until.remove(id);
        self.values.remove(id);
        self.instances.remove(id);
        let rows_after = self.messages.len() + self.jobs.len();
        DeleteInstanceResult {
            instances_deleted: 1,
            executions_deleted: executions.len() as u64,
            events_deleted: executions.values().map(|row| row.events.len() as u64).sum(),
            queue_messages_deleted: (rows_before - rows_after) as u64,
        }
    }

    /// An instance and its descendants, itself first.
    fn tree(&self, root: &str) -> Vec<String> {
        let below = self.children(root).into_iter().flat_map(|child| self.tree(&child));
        std::iter::once(root.to_owned()).chain(below).collect()
    }
}

/// Whether an execution ended strictly before a time; true without one.
fn ended_before(row: &Execution, time: Option<u64>) -> bool {
    time.is_none_or(|time| row.completed_at_ms.is_some_and(|at| at < time))
}

fn total(sum: DeleteInstanceResult, one: DeleteInstanceResult) -> DeleteInstanceResult {
    DeleteInstanceResult {
        instances_deleted: sum.instances_deleted + one.instances_deleted,
        executions_deleted: sum.executions_deleted + one.executions_deleted,
        events_deleted: sum.events_deleted + one.events_deleted,
        queue_messages_deleted: sum.queue_messages_deleted + one.queue_messages_deleted,
    }
}
