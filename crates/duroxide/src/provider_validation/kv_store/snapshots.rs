//! What a turn is handed: the values of ended executions, and nothing younger.

use std::collections::HashMap;

use duroxide_core::model::KvEntry;

use super::{next, promise};
use crate::provider_validation::ProviderFactory;
use crate::provider_validation::lab::lab;
use crate::provider_validation::words::*;

/// A turn is handed the values of ended executions, with their stamps.
pub async fn test_kv_snapshot_in_fetch<F: ProviderFactory>(factory: &F) {
    let says = "a turn is handed the values of ended executions, each with the stamp it was set at";
    let lab = lab(factory, promise("R8.26", says)).await.patient();
    lab.begin("a").await;
    lab.step("a", commit().event(set(2, "k", "v")).event(set(3, "l", "w"))).await;
    lab.continue_as_new("a", 2, next()).await;
    let entry =
        |value: &str, last_updated_at_ms| KvEntry { value: value.into(), last_updated_at_ms };
    let expected =
        HashMap::from([("k".to_owned(), entry("v", 20)), ("l".to_owned(), entry("w", 30))]);
    lab.same("the snapshot", lab.snapshot("a").await, expected);
    lab.step("a", commit().in_execution(2).event(set(7, "k", "v2")).ends("Completed", "out")).await;
    let expected =
        HashMap::from([("k".to_owned(), entry("v2", 70)), ("l".to_owned(), entry("w", 30))]);
    lab.same("the snapshot after an overwrite", lab.snapshot("a").await, expected);
}

/// A key that an ended execution cleared is not handed out.
pub async fn test_kv_snapshot_after_clear_single<F: ProviderFactory>(factory: &F) {
    let says = "a key cleared by an ended execution is in no later snapshot";
    let lab = lab(factory, promise("R8.113", says)).await.patient();
    lab.begin_as("a", first_commit("a").event(set(2, "k", "v")).event(set(3, "l", "w"))).await;
    lab.continue_as_new("a", 2, next().event(clear(2, "k"))).await;
    lab.continue_as_new("a", 3, next()).await;
    lab.snapshot_is("a", &[("l", "w")]).await;
    lab.values_are("a", &[("l", "w")]).await;
}

/// After clearing all, nothing is handed out.
pub async fn test_kv_snapshot_after_clear_all<F: ProviderFactory>(factory: &F) {
    let says = "once an execution that cleared all has ended, the snapshot is empty";
    let lab = lab(factory, promise("R8.113", says)).await.patient();
    lab.begin_as("a", first_commit("a").event(set(2, "k", "v")).event(set(3, "l", "w"))).await;
    lab.continue_as_new("a", 2, next().event(set(2, "m", "x")).event(clear_all(3))).await;
    lab.continue_as_new("a", 3, next()).await;
    lab.snapshot_is("a", &[]).await;
    lab.values_are("a", &[]).await;
}

/// A new instance has nothing to be handed.
pub async fn test_kv_snapshot_empty<F: ProviderFactory>(factory: &F) {
    let lab = lab(factory, promise("R8.26", "a new instance's snapshot is empty")).await.patient();
    lab.begin_as("b", first_commit("b").event(set(2, "k", "v")).ends("Completed", "out")).await;
    lab.send(start("a")).await;
    let turn = lab.turn_of("a").await;
    lab.same("the first turn's snapshot", &turn.item.kv_snapshot, &HashMap::new());
    lab.committed(&turn, first_commit("a")).await;
    lab.snapshot_is("a", &[]).await;
}

/// Each execution is handed what those before it left.
pub async fn test_kv_snapshot_cross_execution<F: ProviderFactory>(factory: &F) {
    let says = "a snapshot holds the values of all earlier executions and none of the current one";
    let lab = lab(factory, promise("R8.111", says)).await.patient();
    lab.begin_as("a", first_commit("a").event(set(2, "one", "1"))).await;
    lab.snapshot_is("a", &[]).await;
    lab.continue_as_new("a", 2, next().event(set(2, "two", "2"))).await;
    lab.snapshot_is("a", &[("one", "1")]).await;
    lab.continue_as_new("a", 3, next().event(set(2, "three", "3"))).await;
    lab.snapshot_is("a", &[("one", "1"), ("two", "2")]).await;
    lab.values_are("a", &[("one", "1"), ("two", "2"), ("three", "3")]).await;
}

/// Changes of the running execution are not handed back to it.
pub async fn test_kv_delta_snapshot_excludes_current_execution<F: ProviderFactory>(factory: &F) {
    let says = "what the running execution changed is seen outside, but not in its snapshot";
    let lab = lab(factory, promise("R8.26", says)).await.patient();
    lab.begin_as("a", first_commit("a").event(set(2, "k", "v")).event(set(3, "l", "w"))).await;
    lab.snapshot_is("a", &[]).await;
    lab.values_are("a", &[("k", "v"), ("l", "w")]).await;
    let changes = next().event(set(2, "k", "new")).event(clear(3, "l")).event(set(4, "m", "x"));
    lab.continue_as_new("a", 2, changes).await;
    lab.snapshot_is("a", &[("k", "v"), ("l", "w")]).await;
    lab.values_are("a", &[("k", "new"), ("m", "x")]).await;
    lab.step("a", commit().in_execution(2).event(clear_all(5))).await;
    lab.snapshot_is("a", &[("k", "v"), ("l", "w")]).await;
    lab.values_are("a", &[]).await;
}

/// Changes of an ended execution are handed out.
pub async fn test_kv_delta_snapshot_includes_completed_execution<F: ProviderFactory>(factory: &F) {
    let says = "what an execution changed is in the snapshot once it has ended, in whatever way";
    let lab = lab(factory, promise("R8.111", says)).await.patient();
    for status in ["Completed", "Failed", "ContinuedAsNew"] {
        lab.begin_as(status, first_commit(status).event(set(2, "k", "v"))).await;
        lab.snapshot_is(status, &[]).await;
        lab.step(status, commit().event(set(3, "last", "w")).ends(status, "out")).await;
        lab.snapshot_is(status, &[("k", "v"), ("last", "w")]).await;
        lab.values_are(status, &[("k", "v"), ("last", "w")]).await;
    }
}
