//! Old executions removed (R6.80 – R6.85). Key-value data stays (R8.115).

use duroxide_core::provider::{InstanceFilter, PruneOptions, PruneResult, Refusal};

use super::Op;
use super::delete::has_ended_before;
use crate::error::OpError;
use crate::tables::executions::Execution;
use crate::tables::instances::{self, Instance};
use crate::tables::{Sql, executions, history, long_texts};
use crate::tx::Tx;

/// Removes old executions of an instance.
#[derive(Debug)]
pub(crate) struct Prune {
    pub(crate) instance: String,
    pub(crate) options: PruneOptions,
}

impl Op for Prune {
    type Output = PruneResult;

    fn apply(&self, tx: &mut Tx<'_>) -> Result<PruneResult, OpError> {
        let instance = instances::by_id(tx.connection, &self.instance)?;
        match instance.filter(|instance| instance.identity.is_some()) {
            Some(instance) => Ok(prune(tx, &instance, &self.options)?),
            None => Err(Refusal::UnknownInstance(self.instance.clone()).into()),
        }
    }
}

/// Removes old executions of these instances, whatever their status (R6.84): looked at again, since
/// they were chosen before.
#[derive(Debug)]
pub(crate) struct PruneSome {
    pub(crate) keys: Vec<i64>,
    pub(crate) filter: InstanceFilter,
    pub(crate) options: PruneOptions,
}

impl Op for PruneSome {
    type Output = PruneResult;

    fn apply(&self, tx: &mut Tx<'_>) -> Result<PruneResult, OpError> {
        let mut total = PruneResult::default();
        for key in &self.keys {
            let Some(instance) = instances::by_key(tx.connection, *key)? else { continue };
            let Some(identity) = &instance.identity else { continue };
            if !has_ended_before(tx.connection, *key, identity, &self.filter)? {
                continue;
            }
            let one = prune(tx, &instance, &self.options)?;
            total.instances_processed += one.instances_processed;
            total.executions_deleted += one.executions_deleted;
            total.events_deleted += one.events_deleted;
        }
        Ok(total)
    }
}

fn prune(tx: &Tx<'_>, instance: &Instance, options: &PruneOptions) -> Sql<PruneResult> {
    let c = tx.connection;
    let current = instance.identity.as_ref().map(|identity| identity.execution);
    let mut result = PruneResult { instances_processed: 1, ..PruneResult::default() };
    for number in prunable(&executions::list(c, instance.key)?, current, options) {
        result.events_deleted += history::delete(c, instance.key, number)? as u64;
        result.executions_deleted += executions::delete(c, instance.key, number)? as u64;
    }
    if 0 < result.executions_deleted {
        long_texts::sweep(c, instance.key)?; // Later executions may have the same texts.
    }
    Ok(result)
}

/// Executions that may go: ended, not current, not among the newest to keep, old enough (R6.81).
fn prunable(all: &[Execution], current: Option<u64>, options: &PruneOptions) -> Vec<u64> {
    // The newest is the current one: at least that many stay in any case.
    let kept = options.keep_last.unwrap_or(1).max(1) as usize;
    let old = all.iter().rev().skip(kept);
    old.filter(|execution| {
        let is_old = options
            .completed_before
            .is_none_or(|limit| execution.completed_at.is_some_and(|at| at < limit));
        Some(execution.number) != current && !execution.is_running() && is_old
    })
    .map(|execution| execution.number)
    .collect()
}
