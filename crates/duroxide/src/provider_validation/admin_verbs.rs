//! The verbs of the checks that look at a store, delete and prune.

use std::collections::HashMap;
use std::time::Duration;

use duroxide_core::model::{KvEntry, SystemStats};
use tokio::time::sleep;

use super::lab::Lab;
use super::words::{CommitWords, commit, raise};
use crate::providers::{
    DeleteInstanceResult, ExecutionInfo, InstanceFilter, InstanceInfo, PruneOptions, PruneResult,
};

/// What a deletion says it removed.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Removed {
    pub(crate) instances: u64,
    pub(crate) executions: u64,
    pub(crate) events: u64,
    /// Of both queues.
    pub(crate) messages: u64,
}

impl From<DeleteInstanceResult> for Removed {
    fn from(result: DeleteInstanceResult) -> Self {
        Self {
            instances: result.instances_deleted,
            executions: result.executions_deleted,
            events: result.events_deleted,
            messages: result.queue_messages_deleted,
        }
    }
}

/// What pruning says it did.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Pruned {
    /// Looked at, not removed.
    pub(crate) instances: u64,
    pub(crate) executions: u64,
    pub(crate) events: u64,
}

impl From<PruneResult> for Pruned {
    fn from(result: PruneResult) -> Self {
        Self {
            instances: result.instances_processed,
            executions: result.executions_deleted,
            events: result.events_deleted,
        }
    }
}

/// A filter with these ids.
pub(crate) fn only(ids: &[&str]) -> InstanceFilter {
    let ids = ids.iter().map(|id| (*id).to_owned()).collect();
    InstanceFilter { instance_ids: Some(ids), ..InstanceFilter::default() }
}

/// A filter with nothing but a limit.
pub(crate) fn at_most(limit: u32) -> InstanceFilter {
    InstanceFilter { limit: Some(limit), ..InstanceFilter::default() }
}

/// A filter with nothing but a time.
pub(crate) fn ended_before(time: u64) -> InstanceFilter {
    InstanceFilter { completed_before: Some(time), ..InstanceFilter::default() }
}

/// Keep the newest so many executions.
pub(crate) fn keep(keep_last: u32) -> PruneOptions {
    PruneOptions { keep_last: Some(keep_last), completed_before: None }
}

impl Lab {
    /// Lets the clock move on, so that what comes next has a later time.
    pub(crate) async fn tick(&self) {
        sleep(Duration::from_millis(10)).await;
    }

    // ---- Looking --------------------------------------------------------------------------------

    /// All instances by name.
    pub(crate) async fn instances(&self) -> Vec<String> {
        let mut ids = self.ok("list_instances", self.admin().list_instances().await);
        ids.sort();
        ids
    }

    /// Instances with this status, by name.
    pub(crate) async fn instances_with(&self, status: &str) -> Vec<String> {
        let ids = self.admin().list_instances_by_status(status).await;
        let mut ids = self.ok("list_instances_by_status", ids);
        ids.sort();
        ids
    }

    pub(crate) async fn children(&self, instance: &str) -> Vec<String> {
        let mut ids = self.ok("list_children", self.admin().list_children(instance).await);
        ids.sort();
        ids
    }

    pub(crate) async fn info(&self, instance: &str) -> InstanceInfo {
        self.ok("get_instance_info", self.admin().get_instance_info(instance).await)
    }

    pub(crate) async fn executions(&self, instance: &str) -> Vec<u64> {
        self.ok("list_executions", self.admin().list_executions(instance).await)
    }

    pub(crate) async fn execution(&self, instance: &str, number: u64) -> ExecutionInfo {
        self.ok("get_execution_info", self.admin().get_execution_info(instance, number).await)
    }

    /// When an execution ended, which it must have.
    pub(crate) async fn ended_at(&self, instance: &str, number: u64) -> u64 {
        match self.execution(instance, number).await {
            ExecutionInfo { completed_at: Some(time), .. } => time,
            info => self.broken("an ended execution to have a time of completion", info),
        }
    }

    pub(crate) async fn stats(&self, instance: &str) -> SystemStats {
        match self.ok("get_instance_stats", self.get_instance_stats(instance).await) {
            Some(stats) => stats,
            None => self.broken("statistics of an instance that exists", "none"),
        }
    }

    /// Custom status and version, if newer than what was seen.
    pub(crate) async fn custom_status(
        &self,
        instance: &str,
        seen: u64,
    ) -> Option<(Option<String>, u64)> {
        self.ok("get_custom_status", self.get_custom_status(instance, seen).await)
    }

    /// One value, as seen from outside.
    pub(crate) async fn value(&self, instance: &str, key: &str) -> Option<String> {
        self.ok("get_kv_value", self.get_kv_value(instance, key).await)
    }

    /// From outside exactly these values are seen, one by one and all together.
    pub(crate) async fn values_are(&self, instance: &str, expected: &[(&str, &str)]) {
        for (key, value) in expected {
            let got = self.value(instance, key).await;
            self.same(&format!("value {key:?} of {instance:?}"), got.as_deref(), Some(*value));
        }
        let expected: HashMap<String, String> =
            expected.iter().map(|(key, value)| ((*key).into(), (*value).into())).collect();
        let what = format!("all values of {instance:?}");
        self.same(&what, self.kv(instance).await, expected);
    }

    /// The entries that a turn of this instance is handed; the turn changes nothing.
    pub(crate) async fn snapshot(&self, instance: &str) -> HashMap<String, KvEntry> {
        self.send(raise(instance, "look")).await;
        let turn = self.turn_of(instance).await;
        self.committed(&turn, commit().in_execution(turn.item.execution_id)).await;
        turn.item.kv_snapshot
    }

    /// A turn of this instance is handed exactly these values.
    pub(crate) async fn snapshot_is(&self, instance: &str, expected: &[(&str, &str)]) {
        let got = self.snapshot(instance).await;
        let got: HashMap<&str, &str> =
            got.iter().map(|(key, entry)| (key.as_str(), entry.value.as_str())).collect();
        let expected: HashMap<&str, &str> = expected.iter().copied().collect();
        self.same(&format!("the snapshot of {instance:?}"), got, expected);
    }

    // ---- Deleting and pruning -------------------------------------------------------------------

    pub(crate) async fn delete(&self, instance: &str) -> Removed {
        self.ok("delete_instance", self.admin().delete_instance(instance, false).await).into()
    }

    pub(crate) async fn delete_by_force(&self, instance: &str) -> Removed {
        let deleted = self.admin().delete_instance(instance, true).await;
        self.ok("delete_instance with force", deleted).into()
    }

    pub(crate) async fn delete_bulk(&self, filter: InstanceFilter) -> Removed {
        self.ok("delete_instance_bulk", self.admin().delete_instance_bulk(filter).await).into()
    }

    pub(crate) async fn prune(&self, instance: &str, options: PruneOptions) -> Pruned {
        let pruned = self.admin().prune_executions(instance, options).await;
        self.ok("prune_executions", pruned).into()
    }

    pub(crate) async fn prune_bulk(&self, filter: InstanceFilter, options: PruneOptions) -> Pruned {
        let pruned = self.admin().prune_executions_bulk(filter, options).await;
        self.ok("prune_executions_bulk", pruned).into()
    }

    /// Nothing is left of an instance.
    pub(crate) async fn gone(&self, instance: &str) {
        let info = self.admin().get_instance_info(instance).await;
        self.refused("get_instance_info of a deleted instance", info, &["not found"]);
        self.same("its executions", self.executions(instance).await, [0_u64; 0]);
        self.same("its events", self.event_ids(instance).await, [0_u64; 0]);
        self.same("its custom status", self.custom_status(instance, 0).await, None);
        self.values_are(instance, &[]).await;
        let listed = self.instances().await.iter().any(|id| id == instance);
        self.expect(!listed, "a deleted instance not to be listed", instance);
    }
}
