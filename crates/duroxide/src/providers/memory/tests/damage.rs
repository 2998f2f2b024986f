//! Unreadable histories (R8.31, R8.48, R8.95, R1.24, R2.2, R7.78).

use super::lab::*;
use crate::providers::{Provider, ProviderAdmin};
use duroxide_core::model::{ErrorDetails, EventKind, OrchestrationStatus};

/// `a`, with values, whose history became garbage.
async fn damaged() -> Lab {
    let lab = lab();
    lab.begin_as("a", first_commit("a").event(set(2, "k", "v"))).await;
    lab.corrupt_history("a", "garbage at byte 7");
    lab.send(raise("a", "x")).await;
    lab
}

#[tokio::test(start_paused = true)]
async fn r8_31_r2_2_the_item_comes_with_an_error_instead_of_a_history() {
    let lab = damaged().await;
    for attempt in 1..=3 {
        let turn = lab.turn().await;
        assert_eq!(turn.item.history_error.as_deref(), Some("garbage at byte 7"));
        assert!(turn.item.history.is_empty() && turn.item.kv_snapshot.is_empty());
        assert_eq!(turn.item.messages, [raise("a", "x")]);
        assert_eq!(turn.attempt_count, attempt, "attempts lead to poison (R1.24)");
        lab.no_turn().await;
        lab.abandon(&turn).await;
    }
    let turn = lab.fetch_turn(LOCK, AT_ONCE, None).await.unwrap().unwrap();
    assert!(turn.item.history_error.is_some() && turn.item.history.is_empty());
}

#[tokio::test(start_paused = true)]
async fn r8_95_reads_fail_for_good() {
    let lab = damaged().await;
    let words = "garbage at byte 7";
    assert_refused(lab.read("a").await, "read", words);
    assert_refused(lab.read_with_execution("a", 1).await, "read_with_execution", words);
    assert_refused(lab.read_history("a").await, "read_history", words);
    let read = lab.read_history_with_execution_id("a", 1).await;
    assert_refused(read, "read_history_with_execution_id", words);
    assert_refused(lab.read_history_from("a", 1, 1, None).await, "read_history_from", words);
    assert_refused(lab.read_status("a").await, "read_status", words); // R6.25
    assert_eq!(lab.status("a").await, "Running", "the row can be read");
}

#[tokio::test(start_paused = true)]
async fn r8_48_r7_78_the_failure_can_be_appended_and_then_seen() {
    let lab = damaged().await;
    let turn = lab.turn().await;
    let details = ErrorDetails::nondeterminism("poison");
    let failed = event(99_999, EventKind::OrchestrationFailed { details: details.clone() });
    lab.commit(&turn, commit().event(failed).ends("Failed", "poison")).await.unwrap();
    assert_eq!(lab.status("a").await, "Failed");
    let status = lab.read_status("a").await.unwrap();
    assert!(matches!(status, OrchestrationStatus::Failed { details: d, .. } if d == details));
    lab.read("a").await.unwrap_err();
    lab.delete_instance("a", false).await.unwrap(); // R6.67
}

#[tokio::test(start_paused = true)]
async fn r8_31_damage_ends_with_its_execution() {
    let lab = damaged().await;
    let turn = lab.turn().await;
    lab.commit(&turn, commit().ends("ContinuedAsNew", "x")).await.unwrap();
    lab.step("a", commit().in_execution(2).event(started("a"))).await;
    assert_eq!(lab.read("a").await.unwrap().len(), 1);
    lab.corrupt_history("nobody", "nothing to damage");
    assert!(!lab.snapshot().instances.contains_key("nobody"));
}
