//! Messages into the orchestrator queue (R8.10 – R8.12, R8.53).

use super::lab::*;
use crate::providers::{Provider, ProviderAdmin};

#[tokio::test(start_paused = true)]
async fn r8_10_activities_are_no_messages() {
    let refused = lab().enqueue_for_orchestrator(activity("a", 2), None).await;
    assert_refused(refused, "enqueue_for_orchestrator", "ActivityExecute");
}

#[tokio::test(start_paused = true)]
async fn r8_10_delayed_messages_become_visible_in_time() {
    let lab = lab();
    lab.begin("a").await;
    lab.send_later(raise("a", "late"), 100).await;
    pass(99).await;
    lab.no_turn().await;
    pass(1).await;
    assert_eq!(lab.turn().await.item.messages, [raise("a", "late")]);
}

#[tokio::test(start_paused = true)]
async fn r8_11_enqueue_makes_no_instance() {
    let lab = lab();
    lab.send(start("a")).await;
    assert!(lab.list_instances().await.unwrap().is_empty());
    assert!(lab.list_executions("a").await.unwrap().is_empty());
    assert_refused(lab.get_instance_info("a").await, "get_instance_info", "not found");
    lab.turn().await;
    assert!(lab.list_instances().await.unwrap().is_empty(), "nor does a fetch");
}

#[tokio::test(start_paused = true)]
async fn r8_12_enqueue_ignores_the_due_time_of_timers() {
    let lab = lab();
    lab.begin("a").await;
    let far = lab.now() + 60_000;
    lab.send(timer_fired("a", far)).await;
    assert_eq!(lab.turn().await.item.messages, [timer_fired("a", far)]);
}

#[tokio::test(start_paused = true)]
async fn r8_12_r8_53_a_commit_hides_timers_until_they_are_due() {
    let lab = lab();
    let due = lab.now() + 1_000;
    lab.begin_as("a", first_commit("a").message(timer_fired("a", due))).await;
    lab.no_turn().await;
    pass(999).await;
    lab.no_turn().await;
    pass(1).await;
    assert_eq!(lab.turn().await.item.messages, [timer_fired("a", due)]);
}

#[tokio::test(start_paused = true)]
async fn r8_53_messages_of_a_commit_arrive_in_order_anywhere() {
    let lab = lab();
    lab.begin("a").await;
    lab.begin("b").await;
    let fanned_out = commit()
        .message(raise("b", "1"))
        .message(start("c"))
        .message(raise("b", "2"))
        .message(raise("a", "3"));
    lab.step("a", fanned_out).await;
    assert_eq!(lab.turn().await.item.messages, [raise("b", "1"), raise("b", "2")]);
    assert_eq!(lab.turn().await.item.messages, [start("c")]);
    assert_eq!(lab.turn().await.item.messages, [raise("a", "3")]);
}
