//! Instances deleted, with everything that belongs to them (R6.60 – R6.75).

use std::collections::{HashSet, VecDeque};

use duroxide_core::provider::{DeleteInstanceResult, DeleteRefused, InstanceFilter, Refusal};

use super::Op;
use crate::error::OpError;
use crate::tables::instances::{self, Instance};
use crate::tables::{
    Sql, custom_status, executions, hidden, history, kv, mailboxes, messages, work,
};
use crate::tx::Tx;

/// How many instances a bulk call touches if it does not say (R6.70).
const DEFAULT_LIMIT: u32 = 1000;

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
            Some(identity) if identity.parent.is_some() => {
                return refused(DeleteRefused::SubOrchestration);
            }
            Some(_) => {}
        }
        let tree = tree(tx, &self.root)?;
        if !self.force && any_running(tx, &tree)? {
            return refused(DeleteRefused::StillRunning);
        }
        delete_exactly(tx, &tree, true)
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

/// Deletes ended roots; those with a running descendant stay (R6.71, R6.74).
#[derive(Debug)]
pub(crate) struct DeleteBulk(pub(crate) InstanceFilter);

impl Op for DeleteBulk {
    type Output = DeleteInstanceResult;

    fn apply(&self, tx: &mut Tx<'_>) -> Result<DeleteInstanceResult, OpError> {
        let limit = limit(&self.0);
        let (mut roots, mut doomed) = (0, Vec::new());
        for root in candidates(tx, &self.0)? {
            if roots == limit {
                break;
            }
            if root.identity.as_ref().is_none_or(|identity| identity.parent.is_some()) {
                continue;
            }
            let tree = tree(tx, &root.id)?;
            if !any_running(tx, &tree)? {
                roots += 1;
                doomed.extend(tree);
            }
        }
        delete_exactly(tx, &doomed, false)
    }
}

/// Instances that a filter lets through, oldest first; the limit is not applied (R6.70).
pub(super) fn candidates(tx: &Tx<'_>, filter: &InstanceFilter) -> Sql<Vec<Instance>> {
    let keys = match filter.completed_before {
        Some(limit) => instances::ended_before(tx.connection, limit)?,
        None => instances::keys(tx.connection)?,
    };
    let named: Option<HashSet<&str>> =
        filter.instance_ids.as_ref().map(|ids| ids.iter().map(String::as_str).collect());
    let mut chosen = Vec::new();
    for key in keys {
        let instance = instances::by_key(tx.connection, key)?;
        chosen.extend(instance.filter(|instance| {
            named.as_ref().is_none_or(|named| named.contains(instance.id.as_str()))
        }));
    }
    Ok(chosen)
}

/// How many instances a bulk call may touch.
pub(super) fn limit(filter: &InstanceFilter) -> usize {
    filter.limit.unwrap_or(DEFAULT_LIMIT) as usize
}

fn delete_exactly(
    tx: &mut Tx<'_>,
    ids: &[String],
    force: bool,
) -> Result<DeleteInstanceResult, OpError> {
    for id in ids {
        if !force && is_running(tx, id)? {
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
        delete_one(tx, id, &mut result)?;
    }
    Ok(result)
}

fn delete_one(tx: &mut Tx<'_>, id: &str, result: &mut DeleteInstanceResult) -> Sql<()> {
    let c = tx.connection;
    tx.notes.committed.push(id.to_owned());
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
fn tree(tx: &Tx<'_>, root: &str) -> Sql<Vec<String>> {
    let mut seen = HashSet::from([root.to_owned()]);
    let mut tree = vec![root.to_owned()];
    let mut to_visit = VecDeque::from([root.to_owned()]);
    while let Some(id) = to_visit.pop_front() {
        for child in instances::children(tx.connection, &id)? {
            if seen.insert(child.clone()) {
                tree.push(child.clone());
                to_visit.push_back(child);
            }
        }
    }
    Ok(tree)
}

fn any_running(tx: &Tx<'_>, ids: &[String]) -> Sql<bool> {
    for id in ids {
        if is_running(tx, id)? {
            return Ok(true);
        }
    }
    Ok(false)
}

fn is_running(tx: &Tx<'_>, id: &str) -> Sql<bool> {
    let instance = instances::by_id(tx.connection, id)?;
    let Some((key, identity)) = instance.and_then(|i| Some((i.key, i.identity?))) else {
        return Ok(false);
    };
    let current = executions::get(tx.connection, key, identity.execution)?;
    Ok(current.is_some_and(|execution| execution.is_running()))
}
