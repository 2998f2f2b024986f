//! The worker queue (R8.70 – R8.78, R1.14).

use std::time::Duration;

use super::lab::*;
use crate::providers::{Provider, ProviderAdmin};
use duroxide_core::model::{ErrorDetails, WorkItem};

const ACK: &str = "ack_work_item";
const RENEW: &str = "renew_work_item_lock";

#[tokio::test(start_paused = true)]
async fn r8_70_r8_71_first_in_first_out_and_visible_at_once() {
    let lab = lab();
    for id in 2..=4 {
        lab.queue(activity("a", id)).await;
    }
    for id in 2..=4 {
        assert_eq!(lab.job().await.id(), id);
    }
    lab.no_job().await;
}

#[tokio::test(start_paused = true)]
async fn r1_7_only_activities_go_to_workers() {
    let refused = lab().enqueue_for_worker(start("a")).await;
    assert_refused(refused, "enqueue_for_worker", "StartOrchestration");
}

#[tokio::test(start_paused = true)]
async fn r8_71_hidden_rows_are_passed_over() {
    let lab = lab();
    lab.queue(activity("a", 2)).await;
    lab.queue(activity("a", 3)).await;
    let job = lab.job().await;
    lab.abandon_work_item(&job.token, Some(Duration::from_millis(100)), false).await.unwrap();
    assert_eq!(lab.job().await.id(), 3);
    lab.no_job().await;
    pass(100).await;
    assert_eq!(lab.job().await.id(), 2);
}

#[tokio::test(start_paused = true)]
async fn r8_72_a_fetch_locks_and_does_not_remove() {
    let lab = lab();
    lab.queue(activity("a", 2)).await;
    let job = lab.job().await;
    assert!(job.token.starts_with("lock_"));
    lab.no_job().await;
    assert_eq!(lab.snapshot().worker_queue.len(), 1);
    lab.ack_work_item(&job.token, None).await.unwrap();
    assert!(lab.snapshot().worker_queue.is_empty());
}

#[tokio::test(start_paused = true)]
async fn r8_73_activities_of_ended_and_unknown_instances_are_fetched() {
    let lab = lab();
    lab.ended("a", "Completed").await;
    lab.queue(activity("a", 2)).await;
    lab.queue(activity("nobody", 3)).await;
    assert_eq!((lab.job().await.id(), lab.job().await.id()), (2, 3));
}

#[tokio::test(start_paused = true)]
async fn r8_74_r1_14_the_outcome_replaces_the_activity() {
    let lab = lab();
    lab.begin("a").await;
    lab.queue(activity("a", 2)).await;
    let job = lab.job().await;
    lab.ack_work_item(&job.token, Some(done("a", 2))).await.unwrap();
    pass(LOCK_MS).await;
    lab.no_job().await;
    assert_eq!(lab.turn().await.item.messages, [done("a", 2)]);

    let details = ErrorDetails::cancelled("x");
    let failed = WorkItem::ActivityFailed { instance: "a".into(), execution_id: 1, id: 3, details };
    lab.queue(activity("a", 3)).await;
    let job = lab.job().await;
    lab.ack_work_item(&job.token, Some(failed.clone())).await.unwrap();
    assert_eq!(lab.snapshot().orchestrator_queue.last().unwrap().item, failed);
}

#[tokio::test(start_paused = true)]
async fn r8_74_without_outcome_nothing_is_sent() {
    let lab = lab();
    lab.begin("a").await;
    lab.queue(activity("a", 2)).await;
    let job = lab.job().await;
    lab.ack_work_item(&job.token, None).await.unwrap();
    lab.no_turn().await;
    lab.no_job().await;
}

#[tokio::test(start_paused = true)]
async fn r8_74_r1_14_a_wrong_outcome_changes_nothing() {
    let lab = lab();
    lab.begin("a").await;
    lab.queue(activity("a", 2)).await;
    let job = lab.job().await;
    let refused = lab.ack_work_item(&job.token, Some(raise("a", "x"))).await;
    assert_refused(refused, ACK, "ExternalRaised does not complete an activity");
    lab.no_turn().await;
    lab.ack_work_item(&job.token, Some(done("a", 2))).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn r8_74_only_the_current_unexpired_token_acknowledges() {
    let lab = lab();
    lab.begin("a").await;
    lab.queue(activity("a", 2)).await;
    assert_refused(lab.ack_work_item("lock_x", None).await, ACK, "Invalid lock token");
    let late = lab.job().await;
    pass(LOCK_MS).await;
    assert_refused(lab.ack_work_item(&late.token, Some(done("a", 2))).await, ACK, "expired");
    lab.no_turn().await;
    let job = lab.job().await;
    assert_refused(lab.ack_work_item(&late.token, None).await, ACK, "Invalid lock token");
    lab.ack_work_item(&job.token, None).await.unwrap();
    assert_refused(lab.ack_work_item(&job.token, None).await, ACK, "Invalid lock token");
}

#[tokio::test(start_paused = true)]
async fn r8_74_r8_75_a_deleted_row_is_noticed() {
    let lab = lab();
    lab.begin("a").await;
    lab.queue(activity("a", 2)).await;
    let job = lab.job().await;
    lab.step("a", commit().cancelling(identity("a", 2))).await;
    let renewed = lab.renew_work_item_lock(&job.token, LOCK).await;
    assert_refused(renewed, RENEW, "Invalid lock token");
    let acked = lab.ack_work_item(&job.token, Some(done("a", 2))).await;
    assert_refused(acked, ACK, "Invalid lock token");
    lab.no_turn().await;
}

#[tokio::test(start_paused = true)]
async fn r8_75_renewal_counts_from_now() {
    let lab = lab();
    lab.queue(activity("a", 2)).await;
    let job = lab.job().await;
    for _ in 0..3 {
        pass(LOCK_MS - 1).await;
        lab.no_job().await;
        lab.renew_work_item_lock(&job.token, LOCK).await.unwrap();
    }
    pass(LOCK_MS).await;
    assert_refused(lab.renew_work_item_lock(&job.token, LOCK).await, RENEW, "expired");
    assert_refused(lab.renew_work_item_lock("lock_x", LOCK).await, RENEW, "Invalid lock token");
    let job = lab.job().await;
    lab.ack_work_item(&job.token, None).await.unwrap();
    let acked = lab.renew_work_item_lock(&job.token, LOCK).await;
    assert_refused(acked, RENEW, "Invalid lock token");
}

#[tokio::test(start_paused = true)]
async fn r8_76_abandoning_unlocks() {
    let lab = lab();
    lab.queue(activity("a", 2)).await;
    let job = lab.job().await;
    lab.abandon_work_item(&job.token, None, false).await.unwrap();
    let again = lab.abandon_work_item(&job.token, None, false).await;
    assert_refused(again, "abandon_work_item", "Invalid lock token");
    assert_eq!(lab.job().await.id(), 2);
}

#[tokio::test(start_paused = true)]
async fn r8_77_an_activity_whose_worker_vanished_comes_again() {
    let lab = lab();
    lab.queue(activity("a", 2)).await;
    lab.job().await;
    pass(LOCK_MS - 1).await;
    lab.no_job().await;
    pass(1).await;
    let job = lab.job().await;
    assert_eq!((job.id(), job.attempt), (2, 2));
}

#[tokio::test(start_paused = true)]
async fn r6_60_depths_count_unlocked_rows() {
    let lab = lab();
    lab.begin("a").await;
    for id in 2..=4 {
        lab.queue(activity("a", id)).await;
        lab.send(raise("a", "x")).await;
    }
    lab.job().await;
    let depths = lab.get_queue_depths().await.unwrap();
    assert_eq!((depths.orchestrator_queue, depths.worker_queue, depths.timer_queue), (3, 2, 0));
    lab.turn().await;
    lab.send(raise("a", "later")).await;
    assert_eq!(lab.get_queue_depths().await.unwrap().orchestrator_queue, 1);
    pass(LOCK_MS).await;
    let depths = lab.get_queue_depths().await.unwrap();
    assert_eq!((depths.orchestrator_queue, depths.worker_queue), (4, 3));
}
