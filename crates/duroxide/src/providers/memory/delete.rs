//! Deleting instances (R6.60 – R6.75) and pruning old executions (R6.80 – R6.85).

use std::collections::HashSet;

use super::instances::{Id, Instance, Row};
use super::mailbox::Mailbox;
use super::state::State;
use crate::providers::Refusal;
use crate::providers::{
    DeleteInstanceResult, DeleteRefused, InstanceFilter, PruneOptions, PruneResult,
};

/// How many instances a bulk call touches if it does not say (R6.70).
const DEFAULT_LIMIT: u32 = 1000;

impl State {
    /// Deletes a root with its descendants (R6.60, R6.61).
    pub(super) fn delete_tree(
        &mut self,
        root: &str,
        force: bool,
        now: u64,
    ) -> Result<DeleteInstanceResult, Refusal> {
        let refused = |why| Err(Refusal::Undeletable(why, root.to_owned()));
        match self.instances.row(root) {
            None => return refused(DeleteRefused::NotFound),
            Some(row) if !self.is_root(row) => return refused(DeleteRefused::SubOrchestration),
            Some(_) => {}
        }
        let tree = self.instances.tree(root);
        if !force && tree.iter().any(|id| self.is_running(id)) {
            return refused(DeleteRefused::StillRunning);
        }
        self.delete_exactly(&tree, true, now)
    }

    /// Deletes an ended instance with its descendants, to begin it anew (R6.87).
    pub(super) fn make_room(&mut self, root: &str, now: u64) -> Result<(), Refusal> {
        match self.delete_tree(root, false, now) {
            Err(Refusal::Undeletable(DeleteRefused::StillRunning, root)) => {
                let tree = self.instances.tree(&root);
                let runs = tree.iter().find(|id| self.is_running(id));
                let descendant = runs.map_or_else(String::new, |id| id.to_string());
                Err(Refusal::DescendantRuns { root, descendant })
            }
            result => result.map(drop),
        }
    }

    /// Deletes these instances and nothing else, or nothing at all (R6.64).
    pub(super) fn delete_exactly(
        &mut self,
        ids: &[Id],
        force: bool,
        now: u64,
    ) -> Result<DeleteInstanceResult, Refusal> {
        if let Some(id) = ids.iter().find(|id| !force && self.is_running(id)) {
            return Err(Refusal::Undeletable(DeleteRefused::StillRunning, id.to_string()));
        }
        let doomed: HashSet<&Id> = ids.iter().collect();
        for parent in ids {
            if let Some(child) = self.instances.children(parent).find(|id| !doomed.contains(id)) {
                let (child, parent) = (child.to_string(), parent.to_string());
                return Err(Refusal::ChildAppeared { child, parent });
            }
        }
        let mut result = DeleteInstanceResult::default();
        for id in ids {
            self.delete_starts_of(id, &doomed, &mut result, now);
        }
        for id in ids {
            self.delete_one(id, &mut result);
        }
        Ok(result)
    }

    /// Deletes ended roots, all in one go; those with a running descendant stay (R6.71, R6.74).
    pub(super) fn delete_bulk(
        &mut self,
        filter: &InstanceFilter,
        now: u64,
    ) -> Result<DeleteInstanceResult, Refusal> {
        let trees: Vec<Id> = self
            .candidates(filter)
            .filter(|(_, instance)| instance.row.as_ref().is_some_and(|row| self.is_root(row)))
            .map(|(id, _)| self.instances.tree(id))
            .filter(|tree| !tree.iter().any(|id| self.is_running(id)))
            .take(limit(filter))
            .flatten()
            .collect();
        self.delete_exactly(&trees, false, now)
    }

    /// Removes old executions of an instance (R6.80).
    pub(super) fn prune(
        &mut self,
        instance: &str,
        options: &PruneOptions,
    ) -> Result<PruneResult, Refusal> {
        let known = self.instances.get_mut(instance).filter(|instance| instance.row.is_some());
        let known = known.ok_or_else(|| Refusal::UnknownInstance(instance.to_owned()))?;
        let mut result = PruneResult { instances_processed: 1, ..PruneResult::default() };
        for number in prunable(known, options) {
            if let Some(execution) = known.executions.remove(&number) {
                result.executions_deleted += 1;
                result.events_deleted += execution.history.raw().len() as u64;
            }
        }
        Ok(result)
    }

    /// Removes old executions of many instances, whatever their status (R6.84).
    pub(super) fn prune_bulk(
        &mut self,
        filter: &InstanceFilter,
        options: &PruneOptions,
    ) -> Result<PruneResult, Refusal> {
        let chosen: Vec<Id> =
            self.candidates(filter).take(limit(filter)).map(|(id, _)| Id::clone(id)).collect();
        let mut total = PruneResult::default();
        for id in chosen {
            let one = self.prune(&id, options)?;
            total.instances_processed += one.instances_processed;
            total.executions_deleted += one.executions_deleted;
            total.events_deleted += one.events_deleted;
        }
        Ok(total)
    }

    /// Whether an instance has no parent, or none that exists (R6.69).
    fn is_root(&self, row: &Row) -> bool {
        row.parent.as_ref().is_none_or(|parent| self.instances.row(parent).is_none())
    }

    /// Whether an instance's current execution runs.
    fn is_running(&self, id: &str) -> bool {
        self.instances
            .get(id)
            .is_some_and(|instance| instance.row.is_some() && instance.is_running())
    }

    /// Rows that a filter lets through, oldest first; the limit is not applied (R6.70).
    fn candidates<'a>(
        &'a self,
        filter: &'a InstanceFilter,
    ) -> impl Iterator<Item = (&'a Id, &'a Instance)> {
        let named: Option<HashSet<&str>> =
            filter.instance_ids.as_ref().map(|ids| ids.iter().map(String::as_str).collect());
        self.instances.rows().filter(move |(id, instance)| {
            let is_named = named.as_ref().is_none_or(|named| named.contains(&***id));
            let is_old = filter
                .completed_before
                .is_none_or(|limit| instance.completed_at().is_some_and(|at| at < limit));
            is_named && is_old
        })
    }

    /// Children of an instance that have not begun do not begin (R6.68).
    fn delete_starts_of(
        &mut self,
        parent: &Id,
        doomed: &HashSet<&Id>,
        result: &mut DeleteInstanceResult,
        now: u64,
    ) {
        for child in self.messages.remove_starts_of(parent, now) {
            result.queue_messages_deleted += 1;
            if doomed.contains(&child) {
                continue;
            }
            let is_known = self.instances.get(&child).is_some_and(Instance::is_known);
            let has_start = self.messages.mailbox(&child).is_some_and(Mailbox::has_start);
            if is_known || has_start {
                self.settle(&child, now);
            } else {
                // What was sent to it was sent to the child that will not be.
                self.delete_one(&child, result);
            }
        }
    }

    fn delete_one(&mut self, id: &Id, result: &mut DeleteInstanceResult) {
        let rows = self.work.rows_of_instance(id);
        result.queue_messages_deleted += rows.len() as u64;
        rows.into_iter().for_each(|sequence| self.work.remove(sequence));
        // The lock goes with the mailbox: a turn in progress cannot commit any more (R8.57).
        result.queue_messages_deleted += self.messages.remove(id) as u64;
        if let Some(instance) = self.instances.remove(id) {
            result.instances_deleted += u64::from(instance.row.is_some());
            result.executions_deleted += instance.executions.len() as u64;
            result.events_deleted += instance.event_count();
        }
        self.note_commit(id);
    }
}

/// Executions that may go: ended, not current, not among the newest to keep, old enough (R6.81).
fn prunable(instance: &Instance, options: &PruneOptions) -> Vec<u64> {
    let current = instance.current().map(|(number, _)| number);
    // The newest is the current one: at least that many stay in any case.
    let kept = options.keep_last.unwrap_or(1).max(1) as usize;
    let old = instance.executions.iter().rev().skip(kept);
    old.filter(|(number, execution)| {
        let is_old = options
            .completed_before
            .is_none_or(|limit| execution.completed_at.is_some_and(|at| at < limit));
        Some(**number) != current && !execution.is_running() && is_old
    })
    .map(|(number, _)| *number)
    .collect()
}

fn limit(filter: &InstanceFilter) -> usize {
    filter.limit.unwrap_or(DEFAULT_LIMIT) as usize
}
