//! Values live as long as their instance: through executions and pruning, until it is deleted.

use super::{next, promise};
use crate::provider_validation::ProviderFactory;
use crate::provider_validation::admin_verbs::{Pruned, keep};
use crate::provider_validation::lab::lab;
use crate::provider_validation::words::*;
use crate::providers::{InstanceFilter, PruneOptions};

/// A value stays, whichever execution set it and wherever that went.
pub async fn test_kv_execution_id_tracking<F: ProviderFactory>(factory: &F) {
    let says = "pruning executions takes no value, whether they set it first or last";
    let lab = lab(factory, promise("R8.115", says)).await.patient();
    lab.begin_as("a", first_commit("a").event(set(2, "k", "1")).event(set(3, "l", "1"))).await;
    lab.continue_as_new("a", 2, next().event(set(2, "k", "2"))).await;
    lab.continue_as_new("a", 3, next()).await;
    for (kept, left) in [(2, &[2, 3][..]), (1, &[3])] {
        lab.prune("a", keep(kept)).await;
        lab.same("the executions left", lab.executions("a").await, left);
        lab.values_are("a", &[("k", "2"), ("l", "1")]).await;
        lab.snapshot_is("a", &[("k", "2"), ("l", "1")]).await;
    }
}

/// The later execution wins.
pub async fn test_kv_cross_execution_overwrite<F: ProviderFactory>(factory: &F) {
    let lab =
        lab(factory, promise("R8.113", "the value of a later execution wins")).await.patient();
    lab.begin_as("a", first_commit("a").event(set(9, "k", "zebra"))).await;
    lab.continue_as_new("a", 2, next().event(set(2, "k", "ant"))).await;
    lab.values_are("a", &[("k", "ant")]).await;
    lab.snapshot_is("a", &[("k", "zebra")]).await;
    lab.continue_as_new("a", 3, next()).await;
    lab.values_are("a", &[("k", "ant")]).await;
    lab.snapshot_is("a", &[("k", "ant")]).await;
}

/// A key can come back.
pub async fn test_kv_cross_execution_remove_readd<F: ProviderFactory>(factory: &F) {
    let says = "a key that one execution sets, the next clears and the third sets has a value";
    let lab = lab(factory, promise("R8.113", says)).await.patient();
    lab.begin_as("a", first_commit("a").event(set(2, "k", "first"))).await;
    lab.continue_as_new("a", 2, next().event(clear(2, "k"))).await;
    lab.values_are("a", &[]).await;
    lab.same("the cleared value", lab.value("a", "k").await, None);
    lab.continue_as_new("a", 3, next()).await;
    lab.snapshot_is("a", &[]).await;
    lab.step("a", commit().in_execution(3).event(set(2, "k", "third"))).await;
    lab.values_are("a", &[("k", "third")]).await;
    lab.continue_as_new("a", 4, next()).await;
    lab.values_are("a", &[("k", "third")]).await;
    lab.snapshot_is("a", &[("k", "third")]).await;
}

/// An overwritten key outlives the execution that set it first.
pub async fn test_kv_prune_preserves_overwritten<F: ProviderFactory>(factory: &F) {
    let says = "a key that a later execution overwrote keeps its value when the first is pruned";
    let lab = lab(factory, promise("R8.115", says)).await.patient();
    lab.begin_as("a", first_commit("a").event(set(2, "k", "old"))).await;
    lab.continue_as_new("a", 2, next().event(set(2, "k", "new"))).await;
    let went = Pruned { instances: 1, executions: 1, events: 2 };
    lab.same("what was pruned", lab.prune("a", keep(1)).await, went);
    lab.values_are("a", &[("k", "new")]).await;
    // The running execution goes on as before: it is handed what the pruned one left.
    lab.snapshot_is("a", &[("k", "old")]).await;
    lab.step("a", commit().in_execution(2).ends("Completed", "out")).await;
    lab.snapshot_is("a", &[("k", "new")]).await;
}

/// Pruning takes no value.
pub async fn test_kv_prune_preserves_all_keys<F: ProviderFactory>(factory: &F) {
    let says = "pruning takes executions, never values: these live as long as the instance";
    let lab = lab(factory, promise("R6.80", says)).await.patient();
    lab.begin_as("a", first_commit("a").event(set(2, "k1", "1"))).await;
    for (number, key) in [(2, "k2"), (3, "k3"), (4, "k4")] {
        lab.continue_as_new("a", number, next().event(set(2, key, key))).await;
    }
    lab.prune("a", keep(2)).await;
    let all = [("k1", "1"), ("k2", "k2"), ("k3", "k3"), ("k4", "k4")];
    lab.values_are("a", &all).await;
    lab.prune_bulk(InstanceFilter::default(), PruneOptions::default()).await;
    lab.same("the executions left", lab.executions("a").await, [4]);
    lab.values_are("a", &all).await;
    lab.snapshot_is("a", &all[..3]).await;
    lab.step("a", commit().in_execution(4).ends("Completed", "out")).await;
    lab.prune("a", keep(1)).await;
    lab.values_are("a", &all).await;
    lab.snapshot_is("a", &all).await;
}

/// Values go with their instance.
pub async fn test_kv_delete_instance_cascades<F: ProviderFactory>(factory: &F) {
    let says = "deleting an instance removes its values, and a new one with that id has none";
    let lab = lab(factory, promise("R8.115", says)).await.patient();
    let valued = |id| first_commit(id).event(set(2, "k", "v")).ends("Completed", "out");
    lab.begin_as("a", valued("a")).await;
    lab.begin_as("b", valued("b")).await;
    lab.delete("a").await;
    lab.values_are("a", &[]).await;
    lab.same("a deleted value", lab.value("a", "k").await, None);
    lab.begin("a").await;
    lab.values_are("a", &[]).await;
    lab.snapshot_is("a", &[]).await;
    lab.values_are("b", &[("k", "v")]).await;
    lab.snapshot_is("b", &[("k", "v")]).await;
}

/// A single execution keeps its values.
pub async fn test_kv_prune_current_execution_protected<F: ProviderFactory>(factory: &F) {
    let says = "pruning an instance with one execution takes neither that nor its values";
    let lab = lab(factory, promise("R6.80", says)).await.patient();
    lab.begin_as("a", first_commit("a").event(set(2, "k", "v"))).await;
    let nothing = || Pruned { instances: 1, executions: 0, events: 0 };
    lab.same("what was pruned", lab.prune("a", keep(1)).await, nothing());
    lab.values_are("a", &[("k", "v")]).await;
    lab.step("a", commit().ends("Completed", "out")).await;
    lab.same("what was pruned after the end", lab.prune("a", keep(1)).await, nothing());
    lab.values_are("a", &[("k", "v")]).await;
    lab.snapshot_is("a", &[("k", "v")]).await;
}

/// Values of descendants go with the root.
pub async fn test_kv_delete_instance_with_children<F: ProviderFactory>(factory: &F) {
    let says = "deleting a root removes the values of its descendants";
    let lab = lab(factory, promise("R8.115", says)).await.patient();
    let valued = |id| first_commit(id).event(set(2, "k", id)).ends("Completed", "out");
    lab.begin_as("root", valued("root")).await;
    lab.begin_as("child", valued("child").child_of("root")).await;
    lab.begin_as("grandchild", valued("grandchild").child_of("child")).await;
    lab.begin_as("other", valued("other")).await;
    lab.delete("root").await;
    for id in ["root", "child", "grandchild"] {
        lab.same("a deleted value", lab.value(id, "k").await, None);
        lab.values_are(id, &[]).await;
    }
    lab.begin("child").await;
    lab.snapshot_is("child", &[]).await;
    lab.values_are("other", &[("k", "other")]).await;
}
