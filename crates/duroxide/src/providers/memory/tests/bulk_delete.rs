//! Deleting many instances (R6.70 – R6.75, L30).

use super::lab::*;
use crate::providers::{InstanceFilter, ProviderAdmin};

fn named(ids: &[&str]) -> InstanceFilter {
    let instance_ids = Some(ids.iter().map(|id| (*id).to_owned()).collect());
    InstanceFilter { instance_ids, ..InstanceFilter::default() }
}

async fn deleted(lab: &Lab, filter: InstanceFilter) -> u64 {
    lab.delete_instance_bulk(filter).await.unwrap().instances_deleted
}

#[tokio::test(start_paused = true)]
async fn r6_71_only_ended_roots_are_candidates_even_when_named() {
    let lab = lab();
    lab.ended("done", "Completed").await;
    lab.ended("bad", "Failed").await;
    lab.ended("between", "ContinuedAsNew").await;
    lab.begin("running").await;
    lab.begin_as("child", first_commit("child").child_of("running").ends("Completed", "")).await;
    let all = named(&["done", "bad", "between", "running", "child", "nobody"]);
    assert_eq!(deleted(&lab, all).await, 3);
    assert_eq!(lab.list_instances().await.unwrap(), ["child", "running"]);
}

#[tokio::test(start_paused = true)]
async fn r6_70_r6_73_limits_and_names() {
    let lab = lab();
    for number in 0..5 {
        lab.ended(&format!("i{number}"), "Completed").await;
    }
    assert_eq!(deleted(&lab, named(&[])).await, 0);
    let limited = InstanceFilter { limit: Some(2), ..InstanceFilter::default() };
    assert_eq!(deleted(&lab, limited.clone()).await, 2);
    let both = InstanceFilter { limit: Some(1), ..named(&["i3", "i4"]) };
    assert_eq!(deleted(&lab, both).await, 1);
    assert_eq!(deleted(&lab, InstanceFilter::default()).await, 2);
}

#[tokio::test(start_paused = true)]
async fn r6_70_at_most_a_thousand_if_nothing_is_said() {
    let lab = lab();
    for number in 0..1_001 {
        lab.ended(&format!("i{number}"), "Completed").await;
    }
    assert_eq!(deleted(&lab, InstanceFilter::default()).await, 1_000);
}

#[tokio::test(start_paused = true)]
async fn r6_72_completed_before_is_strict_and_combines() {
    let lab = lab();
    lab.ended("old", "Completed").await;
    lab.ended("old too", "Failed").await;
    pass(10).await;
    let limit = lab.now();
    lab.ended("at the limit", "Completed").await;
    lab.begin("running").await;
    let old = InstanceFilter { completed_before: Some(limit), ..InstanceFilter::default() };
    let old_and_named =
        InstanceFilter { completed_before: Some(limit), ..named(&["old", "at the limit"]) };
    assert_eq!(deleted(&lab, old_and_named).await, 1);
    assert_eq!(deleted(&lab, old).await, 1);
    assert_eq!(lab.list_instances().await.unwrap(), ["running", "at the limit"]);
}

#[tokio::test(start_paused = true)]
async fn r6_74_trees_go_as_a_whole() {
    let lab = lab();
    lab.begin("r").await;
    lab.begin_as("c", first_commit("c").child_of("r").ends("Completed", "")).await;
    lab.step("r", commit().ends("Completed", "")).await;
    assert_eq!(deleted(&lab, named(&["r"])).await, 2);
}

#[tokio::test(start_paused = true)]
async fn l30_r6_74_r6_75_roots_with_running_descendants_stay() {
    let lab = lab();
    lab.ended("free", "Completed").await;
    lab.ended("r", "Completed").await;
    lab.begin_as("c", first_commit("c").child_of("r").ends("Completed", "")).await;
    lab.begin_child("g", "c").await; // Runs.
    assert_eq!(deleted(&lab, InstanceFilter { limit: Some(2), ..Default::default() }).await, 1);
    assert_eq!(lab.list_instances().await.unwrap(), ["g", "c", "r"]);
    lab.step("g", commit().ends("Failed", "")).await;
    assert_eq!(deleted(&lab, InstanceFilter::default()).await, 3);
}
