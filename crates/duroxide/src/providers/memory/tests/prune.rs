//! Pruning executions (R6.80 – R6.85).

use super::lab::*;
use crate::providers::{InstanceFilter, ProviderAdmin, PruneOptions};

fn keep(last: u32) -> PruneOptions {
    PruneOptions { keep_last: Some(last), ..PruneOptions::default() }
}

async fn executions_after(options: PruneOptions) -> Vec<u64> {
    let lab = lab();
    lab.looping("a", 4).await;
    lab.prune_executions("a", options).await.unwrap();
    lab.list_executions("a").await.unwrap()
}

#[tokio::test(start_paused = true)]
async fn r6_81_keep_last_counts_the_current_one() {
    assert_eq!(executions_after(PruneOptions::default()).await, [4]);
    assert_eq!(executions_after(keep(0)).await, [4]);
    assert_eq!(executions_after(keep(1)).await, [4]);
    assert_eq!(executions_after(keep(3)).await, [2, 3, 4]);
    assert_eq!(executions_after(keep(9)).await, [1, 2, 3, 4]);
}

#[tokio::test(start_paused = true)]
async fn r6_81_completed_before_is_strict_and_both_must_agree() {
    let lab = lab();
    lab.looping("a", 3).await; // 1 and 2 end now.
    pass(10).await;
    let limit = lab.now();
    lab.step("a", commit().in_execution(3).ends("ContinuedAsNew", "x")).await;
    lab.step("a", commit().in_execution(4).event(started("a"))).await;
    let old = PruneOptions { completed_before: Some(limit), keep_last: Some(3) };
    let pruned = lab.prune_executions("a", old).await.unwrap();
    assert_eq!((pruned.instances_processed, pruned.executions_deleted), (1, 1)); // R6.82
    assert_eq!(pruned.events_deleted, 1);
    assert_eq!(lab.list_executions("a").await.unwrap(), [2, 3, 4]);
    let old = PruneOptions { completed_before: Some(limit), ..PruneOptions::default() };
    lab.prune_executions("a", old.clone()).await.unwrap();
    assert_eq!(lab.list_executions("a").await.unwrap(), [3, 4]);
    let pruned = lab.prune_executions("a", old).await.unwrap();
    assert_eq!((pruned.instances_processed, pruned.executions_deleted), (1, 0));
}

#[tokio::test(start_paused = true)]
async fn r6_80_the_current_execution_and_running_ones_stay() {
    let lab = lab();
    lab.ended("done", "Completed").await;
    lab.prune_executions("done", keep(0)).await.unwrap();
    assert_eq!(lab.list_executions("done").await.unwrap(), [1]);

    lab.begin("odd").await; // Its first execution never ended, yet it is in its third.
    lab.step("odd", commit().in_execution(2).ends("ContinuedAsNew", "x")).await;
    lab.step("odd", commit().in_execution(3)).await;
    lab.prune_executions("odd", keep(0)).await.unwrap();
    assert_eq!(lab.list_executions("odd").await.unwrap(), [1, 3]);
}

#[tokio::test(start_paused = true)]
async fn r6_83_unknown_instances() {
    let refused = lab().prune_executions("x", keep(1)).await;
    assert_refused(refused, "prune_executions", "not found");
}

#[tokio::test(start_paused = true)]
async fn r6_84_bulk_takes_any_status_roots_and_children() {
    let lab = lab();
    lab.looping("running", 3).await;
    lab.looping("ended", 2).await;
    lab.step("ended", commit().in_execution(2).ends("Completed", "")).await;
    lab.begin_child("child", "running").await;
    lab.step("child", commit().ends("ContinuedAsNew", "x")).await;
    lab.step("child", commit().in_execution(2).event(started("child"))).await;
    let pruned = lab.prune_executions_bulk(InstanceFilter::default(), keep(1)).await.unwrap();
    assert_eq!((pruned.instances_processed, pruned.executions_deleted), (3, 4));
}

#[tokio::test(start_paused = true)]
async fn r6_84_bulk_filters_by_name_age_and_limit() {
    let lab = lab();
    lab.looping("running", 2).await;
    lab.looping("ended", 2).await;
    lab.step("ended", commit().in_execution(2).ends("Completed", "")).await;
    let bulk = async |filter| lab.prune_executions_bulk(filter, keep(1)).await.unwrap();
    let none = InstanceFilter { instance_ids: Some(vec![]), ..Default::default() };
    assert_eq!(bulk(none).await.instances_processed, 0);
    pass(1).await;
    let old = InstanceFilter { completed_before: Some(lab.now()), ..Default::default() };
    assert_eq!(bulk(old).await.executions_deleted, 1, "running ones drop out");
    let one = InstanceFilter { limit: Some(1), ..Default::default() };
    assert_eq!(bulk(one).await.instances_processed, 1);
    let unknown = InstanceFilter { instance_ids: Some(vec!["x".into()]), ..Default::default() };
    assert_eq!(bulk(unknown).await.instances_processed, 0);
}
