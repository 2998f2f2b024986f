//! Deleting an instance (R6.60 – R6.67, L31).

use super::lab::*;
use crate::providers::{DeleteRefused, Provider, ProviderAdmin};

fn ids(ids: &[&str]) -> Vec<String> {
    ids.iter().map(|id| (*id).to_owned()).collect()
}

#[tokio::test(start_paused = true)]
async fn r6_60_r6_67_ended_instances_go_with_everything() {
    for status in ["Completed", "Failed", "ContinuedAsNew"] {
        let lab = lab();
        lab.ended("a", status).await; // R6.66: between executions is not running.
        lab.queue(activity("a", 2)).await;
        lab.send(raise("a", "late")).await;
        lab.send_later(raise("a", "later"), 100).await;
        let deleted = lab.delete_instance("a", false).await.unwrap();
        assert_eq!((deleted.instances_deleted, deleted.executions_deleted), (1, 1), "{status}");
        assert_eq!((deleted.events_deleted, deleted.queue_messages_deleted), (1, 3));
        let left = lab.snapshot();
        assert!(left.instances.is_empty() && left.instance_locks.is_empty());
        assert!(left.orchestrator_queue.is_empty() && left.worker_queue.is_empty());
        pass(100).await;
        lab.no_turn().await;
        lab.no_job().await;
    }
}

#[tokio::test(start_paused = true)]
async fn r6_60_a_tree_goes_as_a_whole() {
    let lab = lab();
    lab.looping("r", 2).await;
    lab.begin_child("c", "r").await;
    lab.begin_child("g", "c").await;
    lab.begin("other").await;
    let deleted = lab.delete_instance("r", true).await.unwrap();
    assert_eq!((deleted.instances_deleted, deleted.executions_deleted), (3, 4));
    assert_eq!(lab.list_instances().await.unwrap(), ["other"]);
    assert!(lab.list_children("r").await.unwrap().is_empty());
}

#[tokio::test(start_paused = true)]
async fn r6_61_r8_136_l31_refusals_are_typed_and_worded() {
    let lab = lab();
    lab.ended("not found", "Completed").await; // An id that looks like an error.
    lab.begin_child("child", "not found").await;
    for (id, refused, words) in [
        ("nobody", DeleteRefused::NotFound, "not found"),
        ("child", DeleteRefused::SubOrchestration, "sub-orchestration"),
        ("not found", DeleteRefused::StillRunning, "still running"), // Its child is.
    ] {
        assert_eq!(lab.try_delete_instance(id, false).await.unwrap().unwrap_err(), refused);
        assert_refused(lab.delete_instance(id, false).await, "delete_instance", words);
    }
    assert_eq!(lab.list_instances().await.unwrap().len(), 2);
    let deleted = lab.try_delete_instance("not found", true).await.unwrap().unwrap();
    assert_eq!(deleted.instances_deleted, 2);
}

#[tokio::test(start_paused = true)]
async fn r6_62_force_takes_work_in_progress_along() {
    let lab = lab();
    lab.begin_as("a", first_commit("a").work(activity("a", 2))).await;
    lab.send(raise("a", "x")).await;
    let (turn, job) = (lab.turn().await, lab.job().await);
    let deleted = lab.delete_instance("a", true).await.unwrap();
    assert_eq!(deleted.queue_messages_deleted, 2);
    lab.commit(&turn, first_commit("a")).await.unwrap_err(); // R8.57
    lab.ack_work_item(&job.token, Some(done("a", 2))).await.unwrap_err();
    assert!(lab.snapshot().instances.is_empty() && lab.snapshot().orchestrator_queue.is_empty());
}

#[tokio::test(start_paused = true)]
async fn r6_62_the_id_can_be_used_again() {
    let lab = lab();
    lab.begin("a").await;
    lab.delete_instance("a", true).await.unwrap();
    lab.begin("a").await;
    assert_eq!(lab.status("a").await, "Running");
}

#[tokio::test(start_paused = true)]
async fn r6_64_a_child_that_appeared_meanwhile_stops_the_deletion() {
    let lab = lab();
    lab.begin("r").await;
    lab.begin_child("c", "r").await;
    let tree = lab.get_instance_tree("r").await.unwrap();
    lab.begin_child("new", "c").await;
    let refused = lab.delete_instances_atomic(&tree.all_ids, true).await;
    assert_refused(refused, "delete_instances_atomic", "created after tree traversal");
    assert_eq!(lab.list_instances().await.unwrap().len(), 3);
    let tree = lab.get_instance_tree("r").await.unwrap();
    lab.delete_instances_atomic(&tree.all_ids, true).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn r6_61_deleting_exactly_is_all_or_nothing() {
    let lab = lab();
    lab.ended("a", "Completed").await;
    lab.begin("b").await;
    let refused = lab.delete_instances_atomic(&ids(&["a", "b"]), false).await;
    assert_refused(refused, "delete_instances_atomic", "still running");
    assert_eq!(lab.list_instances().await.unwrap().len(), 2);
    let deleted =
        lab.delete_instances_atomic(&ids(&["a", "b", "nobody", "a"]), true).await.unwrap();
    assert_eq!(deleted.instances_deleted, 2);
    assert_eq!(lab.delete_instances_atomic(&[], false).await.unwrap().instances_deleted, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn r6_65_of_concurrent_deletions_one_succeeds() {
    let lab = lab();
    lab.ended("a", "Completed").await;
    let deletions = (0..4).map(|_| {
        let lab = lab.clone();
        tokio::spawn(async move { lab.try_delete_instance("a", false).await.unwrap() })
    });
    let mut deleted = 0;
    for deletion in deletions.collect::<Vec<_>>() {
        match deletion.await.unwrap() {
            Ok(result) => deleted += result.instances_deleted,
            Err(refused) => assert_eq!(refused, DeleteRefused::NotFound),
        }
    }
    assert_eq!(deleted, 1);
}
