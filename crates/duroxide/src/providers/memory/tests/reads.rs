//! Reading what is not there, and sizes (R8.95 – R8.98, R6.41, R6.42).

use super::lab::*;
use crate::providers::{Provider, ProviderAdmin};
use duroxide_core::model::{EventKind, OrchestrationStatus};

#[tokio::test(start_paused = true)]
async fn r8_95_r8_97_unknown_instances() {
    let lab = lab();
    assert!(lab.read("x").await.unwrap().is_empty());
    assert!(lab.read_with_execution("x", 1).await.unwrap().is_empty());
    assert!(lab.read_history("x").await.unwrap().is_empty());
    assert_eq!(lab.latest_execution_id("x").await.unwrap(), 1);
    assert!(lab.list_executions("x").await.unwrap().is_empty());
    assert!(lab.list_children("x").await.unwrap().is_empty());
    assert_eq!(lab.get_instance_tree("x").await.unwrap().all_ids, ["x"]);
    assert_refused(lab.get_instance_info("x").await, "get_instance_info", "not found");
    assert_refused(lab.get_execution_info("x", 1).await, "get_execution_info", "not found");
    assert_refused(lab.get_parent_id("x").await, "get_parent_id", "not found");
    assert_eq!(lab.get_instance_stats("x").await.unwrap(), None);
    assert_eq!(lab.read_status("x").await.unwrap(), OrchestrationStatus::NotFound);
    lab.begin("a").await;
    assert_refused(lab.get_execution_info("a", 2).await, "get_execution_info", "not found");
}

#[tokio::test(start_paused = true)]
async fn r8_98_an_empty_store_gives_nothing() {
    let lab = lab();
    lab.no_turn().await;
    lab.no_job().await;
}

#[tokio::test(start_paused = true)]
async fn r6_41_r8_116_sizes_of_the_current_execution() {
    let lab = lab();
    lab.looping("a", 2).await;
    lab.step("a", commit().in_execution(2).event(note(2))).await;
    let history = lab.read("a").await.unwrap();
    let bytes = history.iter().map(|e| serde_json::to_string(e).unwrap().len() as u64).sum();
    let stats = lab.get_instance_stats("a").await.unwrap().unwrap();
    assert_eq!((stats.history_event_count, stats.history_size_bytes), (2, bytes));
    assert_eq!((stats.queue_pending_count, stats.kv_user_key_count), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn r6_42_pending_is_what_was_carried_over() {
    let lab = lab();
    let mut first = started("a");
    if let EventKind::OrchestrationStarted { carry_forward_events, .. } = &mut first.kind {
        *carry_forward_events = Some(vec![("q".into(), "1".into()), ("q".into(), "2".into())]);
    }
    lab.begin_as("a", commit().named("Orch", "1.0.0").event(first)).await;
    lab.send(queue_message("a", "backlog does not count")).await;
    assert_eq!(lab.get_instance_stats("a").await.unwrap().unwrap().queue_pending_count, 2);
}

#[tokio::test(start_paused = true)]
async fn r8_96_appending_outside_a_turn() {
    let lab = lab();
    lab.begin("a").await;
    lab.append_with_execution("a", 1, vec![note(2), note(3)]).await.unwrap();
    lab.append_with_execution("b", 4, vec![note(9)]).await.unwrap();
    assert_eq!(lab.read("a").await.unwrap().len(), 3);
    assert_eq!(lab.read_with_execution("b", 4).await.unwrap().len(), 1);
    let refused = lab.append_with_execution("a", 1, vec![note(0)]).await;
    assert_refused(refused, "append_with_execution", "event id 0");
}
