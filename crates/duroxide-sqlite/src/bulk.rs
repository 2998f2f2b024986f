//! Bulk calls in small steps: what to touch is looked for in reads that are short, and done in
//! transactions of a bounded number of rows.
//!
//! A long read would keep the log from being cut off: it grows by all that others write meanwhile, and
//! has to be copied at once in the end, while they wait.

use duroxide_core::provider::{DeleteInstanceResult, InstanceFilter, PruneOptions, PruneResult};

use crate::database::Db;
use crate::error::Failure;
use crate::ops::{DeleteRoots, PruneSome, deletable, has_ended_before};
use crate::store::SqliteProvider;
use crate::tables::instances::{self, Candidate};
use crate::tables::{Sql, history};

/// How many instances a bulk call touches if it does not say (R6.70).
const DEFAULT_LIMIT: u32 = 1000;
/// Instances whose keys are read at once.
const KEYS_AT_ONCE: usize = 5000;
/// Instances that are looked at more closely in one read.
const LOOKED_AT_ONCE: usize = 200;
/// Roots or instances that are changed in one transaction: other operations run in between.
const CHANGED_AT_ONCE: usize = 50;
/// Events that are deleted in one transaction, unless a single tree has more: that goes as a whole.
pub(crate) const EVENTS_AT_ONCE: u64 = 1000;

/// An instance, or a root with its descendants, and how many events it has; a large number is not
/// counted to its end.
type Measured = (i64, u64);

impl SqliteProvider {
    /// Deletes what the filter lets through, up to its limit, oldest first (R6.70 – R6.74).
    pub(crate) async fn delete_in_steps(
        &self,
        filter: InstanceFilter,
    ) -> Result<DeleteInstanceResult, Failure> {
        let (mut left, mut total) = (limit(&filter), DeleteInstanceResult::default());
        for keys in self.candidates(&filter).await?.chunks(LOOKED_AT_ONCE) {
            if left == 0 {
                break;
            }
            let (keys, wanted) = (keys.to_vec(), filter.clone());
            let look = move |c: Db<'_>| Ok(roots_of(c, &keys, &wanted, left)?);
            let roots = self.readers.read(look).await?;
            left -= roots.len();
            for roots in portions(roots) {
                let some = self.writer.run(DeleteRoots { roots, filter: filter.clone() }).await?;
                total.instances_deleted += some.instances_deleted;
                total.executions_deleted += some.executions_deleted;
                total.events_deleted += some.events_deleted;
                total.queue_messages_deleted += some.queue_messages_deleted;
            }
        }
        Ok(total)
    }

    /// Prunes what the filter lets through, up to its limit, oldest first (R6.84).
    pub(crate) async fn prune_in_steps(
        &self,
        filter: InstanceFilter,
        options: PruneOptions,
    ) -> Result<PruneResult, Failure> {
        let mut total = PruneResult::default();
        let mut keys = self.candidates(&filter).await?;
        keys.truncate(limit(&filter));
        for keys in keys.chunks(LOOKED_AT_ONCE) {
            let keys = keys.to_vec();
            let look = move |c: Db<'_>| Ok(sizes_of(c, &keys)?);
            for keys in portions(self.readers.read(look).await?) {
                let (filter, options) = (filter.clone(), options.clone());
                let some = self.writer.run(PruneSome { keys, filter, options }).await?;
                total.instances_processed += some.instances_processed;
                total.executions_deleted += some.executions_deleted;
                total.events_deleted += some.events_deleted;
            }
        }
        Ok(total)
    }

    /// Keys of the instances that a filter lets through, oldest first; the limit is not applied
    /// (R6.70). They are looked at again when it is their turn.
    async fn candidates(&self, filter: &InstanceFilter) -> Result<Vec<i64>, Failure> {
        let mut found: Vec<Candidate> = Vec::new();
        if let Some(ids) = &filter.instance_ids {
            for ids in ids.chunks(LOOKED_AT_ONCE) {
                let (ids, filter) = (ids.to_vec(), filter.clone());
                let look = move |c: Db<'_>| Ok(candidates_by_id(c, &ids, &filter)?);
                found.extend(self.readers.read(look).await?);
            }
        } else {
            // Instances that begin meanwhile are not touched.
            let last = self.readers.read(|c: Db<'_>| Ok(instances::last_key(c)?)).await?;
            let (mut key, before) = (i64::MIN, filter.completed_before);
            while key < last {
                let look =
                    move |c: Db<'_>| Ok(instances::behind(c, key, before, KEYS_AT_ONCE as i64)?);
                let some = self.readers.read(look).await?;
                key = some.last().map_or(last, |candidate| candidate.key);
                found.extend(some.into_iter().filter(|candidate| candidate.is_wanted));
            }
        }
        found.sort_unstable_by_key(|candidate| (candidate.created_at, candidate.key));
        found.dedup_by_key(|candidate| candidate.key);
        Ok(found.into_iter().map(|candidate| candidate.key).collect())
    }
}

/// How many instances a bulk call may touch.
fn limit(filter: &InstanceFilter) -> usize {
    filter.limit.unwrap_or(DEFAULT_LIMIT) as usize
}

fn candidates_by_id(c: Db<'_>, ids: &[String], filter: &InstanceFilter) -> Sql<Vec<Candidate>> {
    let mut found = Vec::new();
    for id in ids {
        if let Some(instance) = instances::by_id(c, id)?
            && let Some(identity) = &instance.identity
            && has_ended_before(c, instance.key, identity, filter)?
        {
            let (key, created_at) = (instance.key, identity.created_at);
            found.push(Candidate { key, created_at, is_wanted: true });
        }
    }
    Ok(found)
}

/// Those of these that may be deleted, up to a limit.
fn roots_of(c: Db<'_>, keys: &[i64], filter: &InstanceFilter, limit: usize) -> Sql<Vec<Measured>> {
    let mut roots = Vec::new();
    for key in keys {
        if roots.len() == limit {
            break;
        }
        let Some(tree) = deletable(c, *key, filter)? else { continue };
        let mut events = 0;
        for id in &tree {
            if events <= EVENTS_AT_ONCE
                && let Some(instance) = instances::by_id(c, id)?
            {
                events += 1 + events_of(c, instance.key)?;
            }
        }
        roots.push((*key, events));
    }
    Ok(roots)
}

fn sizes_of(c: Db<'_>, keys: &[i64]) -> Sql<Vec<Measured>> {
    keys.iter().map(|key| Ok((*key, events_of(c, *key)?))).collect()
}

fn events_of(c: Db<'_>, key: i64) -> Sql<u64> {
    history::count_upto(c, key, EVENTS_AT_ONCE.cast_signed() + 1)
}

/// Splits them so that each part has few instances and few events, unless a single one has many.
fn portions(all: Vec<Measured>) -> Vec<Vec<i64>> {
    let mut portions: Vec<Vec<i64>> = Vec::new();
    let mut room = 0;
    for (key, events) in all {
        match portions.last_mut() {
            Some(last) if events <= room && last.len() < CHANGED_AT_ONCE => {
                last.push(key);
                room -= events;
            }
            _ => {
                portions.push(vec![key]);
                room = EVENTS_AT_ONCE.saturating_sub(events);
            }
        }
    }
    portions
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn r6_75_a_step_has_few_instances_and_few_events() {
        let small: Vec<_> = (0..120).map(|key| (key, 3)).collect();
        let sizes: Vec<_> = portions(small).iter().map(Vec::len).collect();
        assert_eq!(sizes, [50, 50, 20]);
        let mixed = vec![(1, 600), (2, 400), (3, 1), (4, 5000), (5, 0), (6, 1000), (7, 1000)];
        let expected = [vec![1, 2], vec![3], vec![4, 5], vec![6], vec![7]];
        assert_eq!(portions(mixed), expected);
        assert!(portions(Vec::new()).is_empty());
    }
}
