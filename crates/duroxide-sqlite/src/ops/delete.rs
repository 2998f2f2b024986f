//! Instances deleted, with everything that belongs to them (R6.60 – R6.75).

use std::collections::{BTreeMap, HashSet, VecDeque};

use duroxide_core::provider::{DeleteInstanceResult, DeleteRefused, InstanceFilter, Refusal};

use super::Op;
use crate::database::Db;
use crate::error::OpError;
use crate::mailbox;
use crate::tables::instances::{self, Identity};
use crate::tables::{
    Sql, custom_status, executions, hidden, history, kv, long_texts, mailboxes, messages, starts,
    work,
};
use crate::tx::Tx;

/// Deletes a root with its descendants (R6.60, R6.61).
#[derive(Debug)]
pub(crate) struct DeleteTree {
    pub(crate) root: String,
    pub(crate) force: bool,
}

impl Op for DeleteTree {
    type Output = DeleteInstanceResult;

    fn apply(&self, tx: &mut Tx<'_>) -> Result<DeleteInstanceResult, OpError> {
        let refused = |why| Err(Refusal::Undeletable(why, self.root.clone()).into());
        let root = instances::by_id(tx.connection, &self.root)?;
        match root.and_then(|root| root.identity) {
            None => return refused(DeleteRefused::NotFound),
            Some(identity) if !is_root(tx.connection, &identity)? => {
                return refused(DeleteRefused::SubOrchestration);
            }
            Some(_) => {}
        }
        let tree = tree(tx.connection, &self.root)?;
        if !self.force && running_of(tx.connection, &tree)?.is_some() {
            return refused(DeleteRefused::StillRunning);
        }
        delete_exactly(tx, &tree, true)
    }
}

/// Deletes an ended instance with its descendants, to begin it anew (R6.87).
pub(super) fn make_room(tx: &mut Tx<'_>, root: &str) -> Result<(), OpError> {
    let root = root.to_owned();
    match (DeleteTree { root, force: false }).apply(tx) {
        Err(OpError::Refused(Refusal::Undeletable(DeleteRefused::StillRunning, root))) => {
            let tree = tree(tx.connection, &root)?;
            let descendant = running_of(tx.connection, &tree)?.cloned().unwrap_or_default();
            Err(Refusal::DescendantRuns { root, descendant }.into())
        }
        result => result.map(drop),
    }
}

/// Deletes these instances and nothing else, or nothing at all (R6.64).
#[derive(Debug)]
pub(crate) struct DeleteExactly {
    pub(crate) ids: Vec<String>,
    pub(crate) force: bool,
}

impl Op for DeleteExactly {
    type Output = DeleteInstanceResult;

    fn apply(&self, tx: &mut Tx<'_>) -> Result<DeleteInstanceResult, OpError> {
        delete_exactly(tx, &self.ids, self.force)
    }
}

/// Deletes those of these roots that may go, with their descendants (R6.71, R6.74): looked at again,
/// since they were chosen before.
#[derive(Debug)]
pub(crate) struct DeleteRoots {
    pub(crate) roots: Vec<i64>,
    pub(crate) filter: InstanceFilter,
}

impl Op for DeleteRoots {
    type Output = DeleteInstanceResult;

    fn apply(&self, tx: &mut Tx<'_>) -> Result<DeleteInstanceResult, OpError> {
        let mut doomed = Vec::new();
        for root in &self.roots {
            doomed.extend(deletable(tx.connection, *root, &self.filter)?.unwrap_or_default());
        }
        delete_exactly(tx, &doomed, false)
    }
}

/// A root with its descendants, if it is one, has ended as the filter wants, and none of them runs.
pub(crate) fn deletable(c: Db<'_>, key: i64, filter: &InstanceFilter) -> Sql<Option<Vec<String>>> {
    let Some(instance) = instances::by_key(c, key)? else { return Ok(None) };
    let Some(identity) = &instance.identity else { return Ok(None) };
    if !is_root(c, identity)? || !has_ended_before(c, key, identity, filter)? {
        return Ok(None);
    }
    let tree = tree(c, &instance.id)?;
    Ok(running_of(c, &tree)?.is_none().then_some(tree))
}

/// Whether the current execution ended before the filter's time, if it has one (R6.72).
pub(crate) fn has_ended_before(
    c: Db<'_>,
    key: i64,
    identity: &Identity,
    filter: &InstanceFilter,
) -> Sql<bool> {
    let Some(limit) = filter.completed_before else { return Ok(true) };
    let current = executions::get(c, key, identity.execution)?;
    Ok(current.and_then(|execution| execution.completed_at).is_some_and(|at| at < limit))
}

fn delete_exactly(
    tx: &mut Tx<'_>,
    ids: &[String],
    force: bool,
) -> Result<DeleteInstanceResult, OpError> {
    for id in ids {
        if !force && is_running(tx.connection, id)? {
            return Err(Refusal::Undeletable(DeleteRefused::StillRunning, id.clone()).into());
        }
    }
    let doomed: HashSet<&str> = ids.iter().map(String::as_str).collect();
    for parent in ids {
        let children = instances::children(tx.connection, parent)?;
        if let Some(child) = children.into_iter().find(|child| !doomed.contains(child.as_str())) {
            return Err(Refusal::ChildAppeared { child, parent: parent.clone() }.into());
        }
    }
    let mut result = DeleteInstanceResult::default();
    for id in ids {
        delete_starts_of(tx, id, &doomed, &mut result)?;
    }
    for id in ids {
        delete_one(tx, id, &mut result)?;
    }
    Ok(result)
}

/// Children of an instance that have not begun do not begin (R6.68).
fn delete_starts_of(
    tx: &mut Tx<'_>,
    parent: &str,
    doomed: &HashSet<&str>,
    result: &mut DeleteInstanceResult,
) -> Sql<()> {
    let mut starts = starts::delete_starts_of(tx.connection, parent)?;
    let hidden = hidden::delete_starts_of(tx.connection, parent)?;
    starts.extend(hidden.into_iter().map(|key| (key, false)));
    result.queue_messages_deleted += starts.len() as u64;
    let mut children: BTreeMap<i64, bool> = BTreeMap::new();
    for (key, is_taken) in starts {
        *children.entry(key).or_default() |= is_taken;
    }
    for (key, is_taken) in children {
        let Some(child) = instances::by_key(tx.connection, key)? else { continue };
        if doomed.contains(child.id.as_str()) {
            continue;
        }
        let c = tx.connection;
        if tx.is_known(&child)? || starts::has_start(c, key)? || hidden::has_start(c, key)? {
            without_start(tx, key, is_taken)?;
        } else {
            // What was sent to it was sent to the child that will not be.
            delete_one(tx, &child.id, result)?;
        }
    }
    Ok(())
}

/// Brings a mailbox in line that has lost a start. A turn that has read it loses its lock.
fn without_start(tx: &mut Tx<'_>, key: i64, is_taken: bool) -> Sql<()> {
    long_texts::sweep(tx.connection, key)?;
    match mailboxes::get(tx.connection, key)? {
        Some(mailbox) if is_taken && mailbox.is_locked(tx.now) => {
            mailbox::unlock(tx, key, mailbox.moved_to)
        }
        _ => mailbox::settle(tx, key),
    }
}

/// Whether an instance has no parent, or none that exists (R6.69).
fn is_root(c: Db<'_>, identity: &Identity) -> Sql<bool> {
    let Some(parent) = &identity.parent else { return Ok(true) };
    let parent = instances::by_id(c, parent)?;
    Ok(parent.is_none_or(|parent| parent.identity.is_none()))
}

fn delete_one(tx: &mut Tx<'_>, id: &str, result: &mut DeleteInstanceResult) -> Sql<()> {
    let c = tx.connection;
    tx.effects.committed.push(id.to_owned());
    let Some(instance) = instances::by_id(c, id)? else { return Ok(()) };
    let key = instance.key;
    result.queue_messages_deleted += work::delete_all(c, key)? as u64;
    result.queue_messages_deleted += messages::delete_all(c, key)? as u64;
    result.queue_messages_deleted += hidden::delete_all(c, key)? as u64;
    // The lock goes with the mailbox: a turn in progress cannot commit any more (R8.57).
    mailboxes::delete(c, key)?;
    result.instances_deleted += u64::from(instance.identity.is_some());
    result.executions_deleted += executions::delete_all(c, key)? as u64;
    result.events_deleted += history::delete_all(c, key)? as u64;
    kv::delete_all(c, key)?;
    tx.delete_long_texts(key)?;
    custom_status::delete(c, key)?;
    instances::delete(c, key)
}

/// An instance and its descendants, level by level (R8.97).
fn tree(c: Db<'_>, root: &str) -> Sql<Vec<String>> {
    let mut seen = HashSet::from([root.to_owned()]);
    let mut tree = vec![root.to_owned()];
    let mut to_visit = VecDeque::from([root.to_owned()]);
    while let Some(id) = to_visit.pop_front() {
        for child in instances::children(c, &id)? {
            if seen.insert(child.clone()) {
                tree.push(child.clone());
                to_visit.push_back(child);
            }
        }
    }
    Ok(tree)
}

/// The first of these that runs.
fn running_of<'a>(c: Db<'_>, ids: &'a [String]) -> Sql<Option<&'a String>> {
    for id in ids {
        if is_running(c, id)? {
            return Ok(Some(id));
        }
    }
    Ok(None)
}

fn is_running(c: Db<'_>, id: &str) -> Sql<bool> {
    let instance = instances::by_id(c, id)?;
    let Some((key, identity)) = instance.and_then(|i| Some((i.key, i.identity?))) else {
        return Ok(false);
    };
    let current = executions::get(c, key, identity.execution)?;
    Ok(current.is_some_and(|execution| execution.is_running()))
}
