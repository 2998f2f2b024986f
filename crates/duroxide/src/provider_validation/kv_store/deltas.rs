//! What the running execution changed: laid over the store, folded into it at the end.

use super::{next, promise};
use crate::provider_validation::ProviderFactory;
use crate::provider_validation::admin_verbs::keep;
use crate::provider_validation::lab::lab;
use crate::provider_validation::words::*;

/// Outside, changes lie over what was there.
pub async fn test_kv_delta_client_reads_merged<F: ProviderFactory>(factory: &F) {
    let says = "outside, what the running execution set lies over what earlier ones left";
    let lab = lab(factory, promise("R8.110", says)).await.patient();
    lab.begin_as("a", first_commit("a").event(set(2, "k", "old")).event(set(3, "l", "kept"))).await;
    lab.continue_as_new("a", 2, next()).await;
    lab.values_are("a", &[("k", "old"), ("l", "kept")]).await;
    let changes = commit().in_execution(2).event(set(2, "k", "new")).event(set(3, "m", "added"));
    lab.step("a", changes).await;
    lab.values_are("a", &[("k", "new"), ("l", "kept"), ("m", "added")]).await;
}

/// A cleared key is gone outside, whoever set it.
pub async fn test_kv_delta_tombstone_overrides_store<F: ProviderFactory>(factory: &F) {
    let says = "a key that the running execution cleared is hidden, though an earlier one set it";
    let lab = lab(factory, promise("R8.110", says)).await.patient();
    lab.begin_as("a", first_commit("a").event(set(2, "k", "v")).event(set(3, "l", "w"))).await;
    lab.continue_as_new("a", 2, next().event(clear(2, "k"))).await;
    lab.same("the cleared value", lab.value("a", "k").await, None);
    lab.values_are("a", &[("l", "w")]).await;
    lab.snapshot_is("a", &[("k", "v"), ("l", "w")]).await;
    lab.step("a", commit().in_execution(2).event(set(3, "k", "back"))).await;
    lab.values_are("a", &[("k", "back"), ("l", "w")]).await;
}

/// Clearing all hides everything, whoever set it.
pub async fn test_kv_delta_clear_all_tombstones_store<F: ProviderFactory>(factory: &F) {
    let says = "clearing all hides what earlier executions left and what this one set";
    let lab = lab(factory, promise("R8.112", says)).await.patient();
    lab.begin_as("a", first_commit("a").event(set(2, "k", "v")).event(set(3, "l", "w"))).await;
    lab.continue_as_new("a", 2, next().event(set(2, "m", "x")).event(set(3, "k", "y"))).await;
    lab.step("a", commit().in_execution(2).event(clear_all(4))).await;
    lab.values_are("a", &[]).await;
    for key in ["k", "l", "m"] {
        lab.same("a cleared value", lab.value("a", key).await, None);
    }
    lab.snapshot_is("a", &[("k", "v"), ("l", "w")]).await;
    lab.step("a", commit().in_execution(2).event(set(5, "l", "back"))).await;
    lab.values_are("a", &[("l", "back")]).await;
    lab.step("a", commit().in_execution(2).ends("Completed", "out")).await;
    lab.values_are("a", &[("l", "back")]).await;
    lab.snapshot_is("a", &[("l", "back")]).await;
}

/// At its end an execution's changes become part of the store.
pub async fn test_kv_delta_merged_on_completion<F: ProviderFactory>(factory: &F) {
    let says =
        "the end of an execution makes its changes, the last commit's too, part of the store";
    let lab = lab(factory, promise("R8.113", says)).await.patient();
    for status in ["Completed", "Failed"] {
        let id = status;
        lab.begin_as(id, first_commit(id).event(set(2, "k", "old")).event(set(3, "l", "w"))).await;
        let second = commit().event(started(id)).event(set(2, "k", "new")).event(clear(3, "l"));
        lab.continue_as_new(id, 2, second.event(set(4, "m", "x"))).await;
        lab.snapshot_is(id, &[("k", "old"), ("l", "w")]).await;
        let end = commit().in_execution(2).event(set(5, "n", "y")).event(clear(6, "m"));
        lab.step(id, end.ends(status, "out")).await;
        lab.values_are(id, &[("k", "new"), ("n", "y")]).await;
        lab.snapshot_is(id, &[("k", "new"), ("n", "y")]).await;
        lab.same("a cleared value", lab.value(id, "l").await, None);
    }
}

/// Continuing as new hands the changes on.
pub async fn test_kv_delta_merged_on_can<F: ProviderFactory>(factory: &F) {
    let says = "continuing as new hands an execution's changes to the next one's snapshot";
    let lab = lab(factory, promise("R8.113", says)).await.patient();
    lab.begin_as("a", first_commit("a").event(set(2, "k", "v")).event(set(3, "l", "w"))).await;
    let end = commit().event(set(4, "k", "last")).event(clear(5, "l"));
    lab.step("a", end.ends("ContinuedAsNew", "x")).await;
    // Between the two executions, and then in the next.
    lab.snapshot_is("a", &[("k", "last")]).await;
    lab.step("a", next().in_execution(2).event(set(2, "m", "x"))).await;
    lab.snapshot_is("a", &[("k", "last")]).await;
    lab.values_are("a", &[("k", "last"), ("m", "x")]).await;
}

/// Changes that are not yet part of the store go with their instance, too.
pub async fn test_kv_delta_delete_instance_cascades<F: ProviderFactory>(factory: &F) {
    let says = "deleting a running instance and its children removes what they have set so far";
    let lab = lab(factory, promise("R8.115", says)).await.patient();
    lab.begin_as("a", first_commit("a").event(set(2, "k", "v"))).await;
    lab.begin_as("child", first_commit("child").child_of("a").event(set(2, "k", "v"))).await;
    lab.delete_by_force("a").await;
    for id in ["a", "child"] {
        lab.values_are(id, &[]).await;
        lab.same("a deleted value", lab.value(id, "k").await, None);
        lab.begin(id).await;
        lab.values_are(id, &[]).await;
        lab.step(id, commit().event(set(2, "l", "w")).ends("Completed", "out")).await;
        lab.values_are(id, &[("l", "w")]).await;
        lab.snapshot_is(id, &[("l", "w")]).await;
    }
}

/// A key nobody touches stays, though the execution that set it is pruned.
pub async fn test_kv_delta_prune_untouched_key_survives<F: ProviderFactory>(factory: &F) {
    let says = "a key whose execution was pruned is still read and handed to turns";
    let lab = lab(factory, promise("R8.115", says)).await.patient();
    lab.begin_as("a", first_commit("a").event(set(2, "k", "v"))).await;
    lab.continue_as_new("a", 2, next().event(set(2, "l", "w"))).await;
    lab.continue_as_new("a", 3, next().event(set(2, "m", "x"))).await;
    lab.prune("a", keep(1)).await;
    lab.same("the executions left", lab.executions("a").await, [3]);
    lab.values_are("a", &[("k", "v"), ("l", "w"), ("m", "x")]).await;
    lab.snapshot_is("a", &[("k", "v"), ("l", "w")]).await;
    lab.continue_as_new("a", 4, next()).await;
    lab.snapshot_is("a", &[("k", "v"), ("l", "w"), ("m", "x")]).await;
}
