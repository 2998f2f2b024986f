//! Lists, trees and totals (§6.7, R8.97).

use super::lab::*;
use crate::providers::{Provider, ProviderAdmin};

/// One instance in each status; `c` is a child of `r`, `g` of `c`.
async fn zoo() -> Lab {
    let lab = lab();
    lab.begin("r").await;
    lab.begin_child("c", "r").await;
    lab.begin_child("g", "c").await;
    lab.begin_child("c2", "r").await;
    lab.ended("done", "Completed").await;
    lab.ended("bad", "Failed").await;
    lab.ended("between", "ContinuedAsNew").await;
    lab
}

#[tokio::test(start_paused = true)]
async fn r6_50_lists_newest_first_and_by_exact_status() {
    let lab = zoo().await;
    let all = ["between", "bad", "done", "c2", "g", "c", "r"];
    assert_eq!(lab.list_instances().await.unwrap(), all);
    for (status, expected) in [
        ("Running", vec!["c2", "g", "c", "r"]),
        ("Completed", vec!["done"]),
        ("Failed", vec!["bad"]),
        ("ContinuedAsNew", vec!["between"]),
        ("running", vec![]),
        ("Nonsense", vec![]),
    ] {
        assert_eq!(lab.list_instances_by_status(status).await.unwrap(), expected, "{status}");
    }
}

#[tokio::test(start_paused = true)]
async fn r8_97_trees() {
    let lab = zoo().await;
    assert_eq!(lab.list_children("r").await.unwrap(), ["c", "c2"]);
    assert_eq!(lab.get_instance_tree("r").await.unwrap().all_ids, ["r", "c", "c2", "g"]);
    assert_eq!(lab.get_instance_tree("c").await.unwrap().all_ids, ["c", "g"]);
    assert_eq!(lab.get_parent_id("r").await.unwrap(), None);
    assert_eq!(lab.get_parent_id("g").await.unwrap().as_deref(), Some("c"));
}

#[tokio::test(start_paused = true)]
async fn r8_97_instances_that_name_each_other_as_parent_end_the_walk() {
    let lab = lab();
    lab.begin_child("a", "b").await;
    lab.begin_child("b", "a").await;
    assert_eq!(lab.get_instance_tree("a").await.unwrap().all_ids, ["a", "b"]);
}

#[tokio::test(start_paused = true)]
async fn totals_count_by_current_status() {
    let lab = zoo().await;
    lab.looping("loop", 3).await;
    let totals = lab.get_system_metrics().await.unwrap();
    assert_eq!((totals.total_instances, totals.total_executions), (8, 10));
    assert_eq!(totals.running_instances, 5);
    assert_eq!((totals.completed_instances, totals.failed_instances), (1, 1));
    assert_eq!(totals.total_events, 10);
}

#[tokio::test(start_paused = true)]
async fn r6_51_info_shows_the_output() {
    let lab = zoo().await;
    let info = lab.get_instance_info("bad").await.unwrap();
    assert_eq!((info.status.as_str(), info.output.as_deref()), ("Failed", Some("out")));
    let info = lab.get_execution_info("done", 1).await.unwrap();
    assert_eq!((info.execution_id, info.event_count), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn names_for_logs() {
    let lab = lab();
    assert_eq!((lab.name(), lab.version()), ("memory", env!("CARGO_PKG_VERSION")));
    assert!(lab.as_management_capability().is_some());
}
