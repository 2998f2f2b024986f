//! Key-value data (R8.26, R8.110 – R8.116).

use super::lab::*;
use crate::providers::{Provider, ProviderAdmin, PruneOptions, TurnCommit};
use std::collections::BTreeMap;

async fn began(events: TurnCommit) -> Lab {
    let lab = lab();
    lab.begin_as("a", events).await;
    lab
}

/// What the next turn of `a` is handed.
async fn snapshot(lab: &Lab) -> BTreeMap<String, String> {
    lab.send(raise("a", "look")).await;
    let turn = lab.turn().await;
    lab.commit(&turn, commit()).await.unwrap();
    turn.item.kv_snapshot.into_iter().map(|(key, entry)| (key, entry.value)).collect()
}

fn pairs<const N: usize>(pairs: [(&str, &str); N]) -> BTreeMap<String, String> {
    pairs.into_iter().map(|(key, value)| (key.into(), value.into())).collect()
}

async fn seen(lab: &Lab) -> BTreeMap<String, String> {
    lab.kv("a").await.into_iter().collect()
}

#[tokio::test(start_paused = true)]
async fn r8_112_set_overwrite_and_get() {
    let lab = began(first_commit("a").event(set(2, "k", "1")).event(set(3, "k", "2"))).await;
    assert_eq!(lab.get_kv_value("a", "k").await.unwrap().as_deref(), Some("2"));
    assert_eq!(lab.get_kv_value("a", "none").await.unwrap(), None);
    assert_eq!(lab.get_kv_value("nobody", "k").await.unwrap(), None); // R6.40
    assert!(lab.kv("nobody").await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn r8_112_clear_one_clear_all_and_set_again() {
    let lab = began(first_commit("a").event(set(2, "k", "1")).event(set(3, "l", "2"))).await;
    lab.step("a", commit().event(clear(4, "k")).event(clear(5, "never there"))).await;
    assert_eq!(seen(&lab).await, pairs([("l", "2")]));
    lab.step("a", commit().event(set(6, "k", "3"))).await;
    assert_eq!(seen(&lab).await, pairs([("k", "3"), ("l", "2")]));
    lab.step("a", commit().event(clear_all(7)).event(set(8, "m", "4"))).await;
    assert_eq!(seen(&lab).await, pairs([("m", "4")]));
}

#[tokio::test(start_paused = true)]
async fn r8_26_r8_111_a_turn_is_handed_only_completed_executions_values() {
    let lab = began(first_commit("a").event(set(2, "k", "1"))).await;
    assert!(snapshot(&lab).await.is_empty());
    lab.step("a", commit().ends("ContinuedAsNew", "x")).await; // R8.113
    assert_eq!(snapshot(&lab).await, pairs([("k", "1")]));
    lab.step("a", commit().in_execution(2).event(set(2, "k", "2")).event(set(3, "l", "3"))).await;
    assert_eq!(snapshot(&lab).await, pairs([("k", "1")]), "not the current execution's");
    assert_eq!(seen(&lab).await, pairs([("k", "2"), ("l", "3")])); // R8.110
}

#[tokio::test(start_paused = true)]
async fn r8_111_the_snapshot_keeps_the_recorded_stamps() {
    let lab = began(first_commit("a").event(set(2, "k", "1")).ends("ContinuedAsNew", "x")).await;
    lab.send(raise("a", "x")).await;
    assert_eq!(lab.turn().await.item.kv_snapshot["k"].last_updated_at_ms, 20);
}

#[tokio::test(start_paused = true)]
async fn r8_110_tombstones_hide_stored_values_until_merged() {
    let lab = began(first_commit("a").event(set(2, "k", "1")).event(set(3, "l", "2"))).await;
    lab.step("a", commit().ends("ContinuedAsNew", "x")).await;
    lab.step("a", commit().in_execution(2).event(clear(2, "k"))).await;
    assert_eq!(seen(&lab).await, pairs([("l", "2")]));
    assert_eq!(lab.get_kv_value("a", "k").await.unwrap(), None);
    assert_eq!(snapshot(&lab).await, pairs([("k", "1"), ("l", "2")]));
    lab.step("a", commit().in_execution(2).ends("ContinuedAsNew", "x")).await;
    assert_eq!(snapshot(&lab).await, pairs([("l", "2")])); // R8.113
}

#[tokio::test(start_paused = true)]
async fn r8_112_r8_113_clear_all_covers_store_and_delta() {
    let lab = began(first_commit("a").event(set(2, "k", "1")).ends("ContinuedAsNew", "x")).await;
    let wipe = commit().in_execution(2).event(set(2, "l", "2")).event(clear_all(3));
    lab.step("a", wipe.event(set(4, "m", "3"))).await;
    assert_eq!(seen(&lab).await, pairs([("m", "3")]));
    lab.step("a", commit().in_execution(2).ends("ContinuedAsNew", "x")).await;
    assert_eq!(snapshot(&lab).await, pairs([("m", "3")]));
}

#[tokio::test(start_paused = true)]
async fn r8_113_every_kind_of_end_merges() {
    for status in ["Completed", "Failed", "ContinuedAsNew"] {
        let lab = began(first_commit("a").event(set(2, "k", "1")).ends(status, "x")).await;
        assert_eq!(snapshot(&lab).await, pairs([("k", "1")]), "{status}");
        assert!(lab.snapshot().instances["a"].kv_delta.is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn r8_114_values_and_keys_are_arbitrary() {
    let large = "x".repeat(64 * 1024);
    let odd = "key/with 'quotes' \"and\" ünïcode \n";
    let events = first_commit("a").event(set(2, "empty", "")).event(set(3, odd, "v"));
    let lab = began(events.event(set(4, "large", &large)).event(set(5, "", "no key"))).await;
    assert_eq!(
        seen(&lab).await,
        pairs([("empty", ""), (odd, "v"), ("large", &large), ("", "no key")])
    );
}

#[tokio::test(start_paused = true)]
async fn r8_114_instances_do_not_share() {
    let lab = began(first_commit("a").event(set(2, "k", "a's"))).await;
    lab.begin_as("b", first_commit("b").event(set(2, "k", "b's"))).await;
    lab.step("b", commit().event(clear_all(3))).await;
    assert_eq!(seen(&lab).await, pairs([("k", "a's")]));
    assert!(lab.kv("b").await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn r8_115_pruning_keeps_all_values() {
    let first = first_commit("a").event(set(2, "old", "1")).event(set(3, "k", "1"));
    let lab = began(first.ends("ContinuedAsNew", "x")).await;
    lab.step("a", commit().in_execution(2).event(started("a")).event(set(2, "k", "2"))).await;
    let pruned = lab.prune_executions("a", PruneOptions::default()).await.unwrap();
    assert_eq!(pruned.executions_deleted, 1);
    assert_eq!(seen(&lab).await, pairs([("old", "1"), ("k", "2")]));
    assert_eq!(snapshot(&lab).await, pairs([("old", "1"), ("k", "1")]));
}

#[tokio::test(start_paused = true)]
async fn r8_115_deleting_removes_both_stores_of_the_whole_tree() {
    let lab = began(first_commit("a").event(set(2, "k", "1")).ends("ContinuedAsNew", "x")).await;
    lab.step("a", commit().in_execution(2).event(set(2, "l", "2"))).await;
    lab.begin_as("c", first_commit("c").child_of("a").event(set(2, "k", "3"))).await;
    lab.delete_instance("a", true).await.unwrap();
    assert!(lab.kv("a").await.is_empty() && lab.kv("c").await.is_empty());
    lab.begin("a").await;
    assert!(snapshot(&lab).await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn r8_116_statistics_see_the_merged_view() {
    let first = first_commit("a").event(set(2, "k", "12")).event(set(3, "gone", "1"));
    let lab = began(first).await;
    let stats = lab.get_instance_stats("a").await.unwrap().unwrap();
    assert_eq!((stats.kv_user_key_count, stats.kv_total_value_bytes), (2, 3), "delta only");
    lab.step("a", commit().ends("ContinuedAsNew", "x")).await;
    lab.step("a", commit().in_execution(2).event(clear(2, "gone")).event(set(3, "l", "345"))).await;
    let stats = lab.get_instance_stats("a").await.unwrap().unwrap();
    assert_eq!((stats.kv_user_key_count, stats.kv_total_value_bytes), (2, 5), "merged");
}
