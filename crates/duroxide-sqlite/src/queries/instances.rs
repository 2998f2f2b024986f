//! Instances, executions and families (R8.97).

use std::collections::{HashSet, VecDeque};

use duroxide_core::model::INITIAL_EXECUTION_ID;
use duroxide_core::provider::{ExecutionInfo, InstanceInfo, InstanceTree, Refusal};

use crate::database::Db;
use crate::error::OpError;
use crate::tables::executions::Execution;
use crate::tables::{executions, history, instances, long_texts};

/// An instance as a whole.
pub(crate) fn info(c: Db<'_>, instance: &str) -> Result<InstanceInfo, OpError> {
    let unknown = || Refusal::UnknownInstance(instance.to_owned());
    let known = instances::by_id(c, instance)?.ok_or_else(unknown)?;
    let identity = known.identity.ok_or_else(unknown)?;
    let execution = executions::get(c, known.key, identity.execution)?.ok_or_else(unknown)?;
    Ok(InstanceInfo {
        instance_id: instance.to_owned(),
        orchestration_name: identity.name,
        orchestration_version: identity.version,
        current_execution_id: identity.execution,
        output: output(c, known.key, instance, &execution)?,
        status: execution.status,
        created_at: identity.created_at,
        updated_at: identity.updated_at,
        parent_instance_id: identity.parent,
    })
}

/// One execution.
pub(crate) fn execution(c: Db<'_>, instance: &str, number: u64) -> Result<ExecutionInfo, OpError> {
    let unknown = || Refusal::UnknownExecution(instance.to_owned(), number);
    let known = instances::by_id(c, instance)?.ok_or_else(unknown)?;
    let execution = executions::get(c, known.key, number)?.ok_or_else(unknown)?;
    let event_count = history::count(c, known.key, number)?;
    Ok(ExecutionInfo {
        execution_id: number,
        output: output(c, known.key, instance, &execution)?,
        status: execution.status,
        started_at: execution.started_at,
        completed_at: execution.completed_at,
        event_count: usize::try_from(event_count).unwrap_or(usize::MAX),
    })
}

/// Execution numbers, ascending.
pub(crate) fn execution_numbers(c: Db<'_>, instance: &str) -> Result<Vec<u64>, OpError> {
    let Some(known) = instances::by_id(c, instance)? else { return Ok(Vec::new()) };
    Ok(executions::list(c, known.key)?.into_iter().map(|execution| execution.number).collect())
}

/// Number of the newest execution; 1 for an unknown instance.
pub(crate) fn newest_execution(c: Db<'_>, instance: &str) -> Result<u64, OpError> {
    let Some(known) = instances::by_id(c, instance)? else { return Ok(INITIAL_EXECUTION_ID) };
    let newest = executions::newest(c, known.key)?;
    Ok(newest.map_or(INITIAL_EXECUTION_ID, |execution| execution.number))
}

/// Parent, for a child.
pub(crate) fn parent(c: Db<'_>, instance: &str) -> Result<Option<String>, OpError> {
    let known = instances::by_id(c, instance)?.and_then(|known| known.identity);
    let unknown = || Refusal::UnknownInstance(instance.to_owned());
    Ok(known.ok_or_else(unknown)?.parent)
}

/// An instance and its descendants, level by level; just the id if it is unknown.
pub(crate) fn tree(c: Db<'_>, root: &str) -> Result<InstanceTree, OpError> {
    let mut seen = HashSet::from([root.to_owned()]);
    let mut all_ids = vec![root.to_owned()];
    let mut to_visit = VecDeque::from([root.to_owned()]);
    while let Some(id) = to_visit.pop_front() {
        for child in instances::children(c, &id)? {
            if seen.insert(child.clone()) {
                all_ids.push(child.clone());
                to_visit.push_back(child);
            }
        }
    }
    Ok(InstanceTree { root_id: root.to_owned(), all_ids })
}

fn output(
    c: Db<'_>,
    key: i64,
    instance: &str,
    execution: &Execution,
) -> Result<Option<String>, OpError> {
    let mut text_reference = execution.long_output.clone();
    long_texts::fetch(c, key, &mut text_reference)?;
    let Some(mut text_reference) = text_reference else { return Ok(execution.output.clone()) };
    let unreadable = |why| format!("output of execution {} of {instance}: {why}", execution.number);
    Ok(Some(text_reference.take_text().map_err(|why| Refusal::UnreadableHistory(unreadable(why)))?))
}
