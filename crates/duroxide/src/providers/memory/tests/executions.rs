//! Several executions of one instance (R8.45 – R8.48, R7.75).

use super::lab::*;
use crate::providers::{Provider, ProviderAdmin};

#[tokio::test(start_paused = true)]
async fn r8_45_continue_as_new_makes_the_next_execution() {
    let lab = lab();
    lab.looping("a", 3).await;
    assert_eq!(lab.list_executions("a").await.unwrap(), [1, 2, 3]);
    for (number, status) in [(1, "ContinuedAsNew"), (2, "ContinuedAsNew"), (3, "Running")] {
        assert_eq!(lab.get_execution_info("a", number).await.unwrap().status, status);
    }
    assert_eq!(lab.get_instance_info("a").await.unwrap().current_execution_id, 3);
}

#[tokio::test(start_paused = true)]
async fn r8_45_an_existing_execution_is_never_reset() {
    let lab = lab();
    lab.ended("a", "Completed").await;
    let begun = lab.get_execution_info("a", 1).await.unwrap().started_at;
    pass(10).await;
    lab.step("a", commit()).await; // Late messages, consumed (R1.26).
    let info = lab.get_execution_info("a", 1).await.unwrap();
    assert_eq!((info.status.as_str(), info.started_at), ("Completed", begun));
}

#[tokio::test(start_paused = true)]
async fn r8_47_the_current_execution_only_grows() {
    let lab = lab();
    lab.looping("a", 2).await;
    lab.step("a", commit().event(note(7))).await; // To execution 1.
    assert_eq!(lab.get_instance_info("a").await.unwrap().current_execution_id, 2);
    assert_eq!(lab.latest_execution_id("a").await.unwrap(), 2);
    assert_eq!(lab.read("a").await.unwrap().len(), 1, "the latest execution is read");
}

#[tokio::test(start_paused = true)]
async fn r8_48_histories_of_executions_are_separate() {
    let lab = lab();
    lab.looping("a", 2).await;
    lab.step("a", commit().in_execution(2).event(note(2)).event(note(3))).await;
    assert_eq!(lab.read_with_execution("a", 1).await.unwrap().len(), 1);
    assert_eq!(lab.read_with_execution("a", 2).await.unwrap().len(), 3);
    assert!(lab.read_with_execution("a", 3).await.unwrap().is_empty());
    let history = lab.read_history_with_execution_id("a", 2).await.unwrap();
    assert_eq!(history, lab.read_history("a").await.unwrap());
}

#[tokio::test(start_paused = true)]
async fn r7_75_a_failed_successor_leaves_its_predecessor_alone() {
    let lab = lab();
    lab.begin("a").await;
    lab.step("a", commit().ends("ContinuedAsNew", "x")).await;
    let poisoned = commit().in_execution(2).event(started("a")).ends("Failed", "poison");
    lab.step("a", poisoned).await;
    assert_eq!(lab.get_execution_info("a", 1).await.unwrap().status, "ContinuedAsNew");
    assert_eq!(lab.status("a").await, "Failed");
}

#[tokio::test(start_paused = true)]
async fn r1_25_a_batch_between_executions_can_be_given_back_whole() {
    let lab = lab();
    lab.begin("a").await;
    lab.step("a", commit().ends("ContinuedAsNew", "x")).await;
    lab.send(raise("a", "early")).await;
    let turn = lab.turn().await;
    lab.abandon_for(&turn, 50).await;
    lab.send(continue_as_new("a")).await;
    pass(50).await;
    assert_eq!(lab.turn().await.item.messages, [raise("a", "early"), continue_as_new("a")]);
}
