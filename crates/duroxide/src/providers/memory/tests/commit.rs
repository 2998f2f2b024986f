//! Committing turns (R8.40 – R8.62, R1.12).

use super::lab::*;
use crate::providers::{Provider, ProviderAdmin, TurnCommit};
use duroxide_core::model::Event;

const ACK: &str = "ack_orchestration_item";

async fn event_ids(lab: &Lab, instance: &str) -> Vec<u64> {
    lab.read(instance).await.unwrap().iter().map(Event::event_id).collect()
}

#[tokio::test(start_paused = true)]
async fn r8_40_unknown_tokens_are_refused() {
    let lab = lab();
    let refused = lab.ack_orchestration_item(
        "lock_never_given",
        1,
        vec![],
        vec![],
        vec![],
        Default::default(),
        vec![],
    );
    assert_refused(refused.await, ACK, "Invalid lock token");
}

#[tokio::test(start_paused = true)]
async fn r8_41_an_expired_lock_commits_nothing() {
    let lab = lab();
    lab.send(start("a")).await;
    let turn = lab.turn().await;
    pass(LOCK_MS).await;
    assert_refused(lab.commit(&turn, first_commit("a")).await, ACK, "expired");
    assert!(lab.list_instances().await.unwrap().is_empty());
    assert_eq!(lab.turn().await.attempt_count, 2, "redelivered");
    assert_refused(lab.commit(&turn, first_commit("a")).await, ACK, "Invalid lock token");
}

#[tokio::test(start_paused = true)]
async fn r8_41_a_lock_holds_to_its_last_millisecond() {
    let lab = lab();
    lab.send(start("a")).await;
    let turn = lab.turn().await;
    pass(LOCK_MS - 1).await;
    lab.commit(&turn, first_commit("a")).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn r8_43_r6_52_name_and_version_make_the_row() {
    let lab = lab();
    let begun = lab.now();
    lab.begin("a").await;
    pass(50).await;
    lab.begin_child("c", "a").await;
    let info = lab.get_instance_info("a").await.unwrap();
    assert_eq!(info.orchestration_name, "Orch");
    assert_eq!((info.orchestration_version.as_str(), info.status.as_str()), ("1.0.0", "Running"));
    assert_eq!((info.created_at, info.updated_at, info.current_execution_id), (begun, begun, 1));
    assert_eq!(lab.get_parent_id("c").await.unwrap().as_deref(), Some("a"));
    assert_eq!(lab.get_instance_info("c").await.unwrap().created_at, begun + 50);

    let renamed = commit().named("Orch2", "2.0.0").child_of("somebody else");
    lab.step("c", renamed).await;
    let info = lab.get_instance_info("c").await.unwrap();
    assert_eq!(
        (info.orchestration_name.as_str(), info.orchestration_version.as_str()),
        ("Orch2", "2.0.0")
    );
    assert_eq!(info.parent_instance_id.as_deref(), Some("a"), "fixed at creation");
}

#[tokio::test(start_paused = true)]
async fn r8_44_without_name_and_version_there_is_no_row() {
    let lab = lab();
    lab.begin_as("a", commit().event(started("a"))).await;
    assert!(lab.list_instances().await.unwrap().is_empty());
    assert_eq!(event_ids(&lab, "a").await, [1]);
}

#[tokio::test(start_paused = true)]
async fn r8_48_events_are_appended_and_kept_exactly() {
    let lab = lab();
    lab.begin("a").await;
    let mut odd = note(2);
    odd.duroxide_version = "not semver".into(); // R2.4, R2.5
    odd.timestamp_ms = 7;
    lab.step("a", commit().event(odd.clone()).event(note(3))).await;
    lab.step("a", commit().event(note(5))).await;
    assert_eq!(event_ids(&lab, "a").await, [1, 2, 3, 5]);
    assert_eq!(lab.read("a").await.unwrap()[1], odd);
}

#[tokio::test(start_paused = true)]
async fn r8_49_status_output_and_end() {
    let lab = lab();
    let begun = lab.now();
    lab.begin("a").await;
    pass(20).await;
    lab.step("a", commit().ends("Failed", "why")).await; // Also without events.
    let info = lab.get_execution_info("a", 1).await.unwrap();
    assert_eq!((info.status.as_str(), info.output.as_deref()), ("Failed", Some("why")));
    assert_eq!((info.started_at, info.completed_at), (begun, Some(begun + 20)));
    assert_eq!(lab.get_instance_info("a").await.unwrap().updated_at, begun + 20);
}

#[tokio::test(start_paused = true)]
async fn r8_52_work_is_queued_and_cancelled_work_removed() {
    let lab = lab();
    let fan_out = (2..=6).fold(first_commit("a"), |commit, id| commit.work(activity("a", id)));
    lab.begin_as("a", fan_out).await;
    let locked = lab.job().await; // 2
    let unknown = identity("nobody", 9);
    let cancelled = commit().cancelling(identity("a", 2)).cancelling(identity("a", 4));
    lab.step("a", cancelled.cancelling(unknown).cancelling(identity("a", 4))).await;
    let ids = [lab.job().await.id(), lab.job().await.id(), lab.job().await.id()];
    assert_eq!(ids, [3, 5, 6]);
    lab.no_job().await;
    assert_refused(lab.ack_work_item(&locked.token, None).await, "ack_work_item", "lock token");
    let other_execution = identity("a", 3);
    lab.step("a", commit().cancelling(other_execution)).await;
    assert_eq!(lab.snapshot().worker_queue.len(), 2, "locked ones are removed too");
}

#[tokio::test(start_paused = true)]
async fn r8_52_scheduling_and_cancelling_in_one_commit_comes_to_nothing() {
    let lab = lab();
    let both = first_commit("a").work(activity("a", 2)).cancelling(identity("a", 2));
    lab.begin_as("a", both.work(activity("a", 3))).await;
    assert_eq!(lab.job().await.id(), 3);
    lab.no_job().await;
}

#[tokio::test(start_paused = true)]
async fn r8_53_r1_12_a_commit_does_everything_at_once() {
    let lab = lab();
    let all = first_commit("a")
        .event(note(2))
        .event(show(3, Some("busy")))
        .event(set(4, "k", "v"))
        .work(activity("a", 5))
        .message(start("b"))
        .message(raise("a", "self"));
    lab.begin_as("a", all).await;
    assert_eq!(event_ids(&lab, "a").await, [1, 2, 3, 4]);
    assert_eq!(lab.job().await.id(), 5);
    assert_eq!(lab.turn().await.item.messages, [start("b")]);
    assert_eq!(lab.turn().await.item.messages, [raise("a", "self")]);
    assert_eq!(lab.kv("a").await["k"], "v");
    assert_eq!(lab.get_custom_status("a", 0).await.unwrap(), Some((Some("busy".into()), 1)));
}

#[tokio::test(start_paused = true)]
async fn r8_54_the_lock_ends_with_the_commit() {
    let lab = lab();
    lab.begin("a").await;
    lab.send(raise("a", "1")).await;
    let turn = lab.turn().await;
    lab.send(raise("a", "2")).await;
    lab.no_turn().await;
    lab.commit(&turn, commit()).await.unwrap();
    assert_eq!(lab.turn().await.item.messages, [raise("a", "2")]);
}

/// Commits that must be refused, with the words they are refused with.
fn broken_commits() -> [(TurnCommit, &'static str); 5] {
    let good = || commit().event(note(2)).event(show(3, Some("busy"))).event(set(4, "k", "v"));
    let good = || good().work(activity("a", 7)).message(start("b")).ends("Completed", "out");
    [
        (good().event(note(0)), "event id 0"),           // R8.61
        (good().event(note(1)), "duplicate event id 1"), // R8.62
        (good().event(note(2)), "duplicate event id 2"), // R8.62
        (good().work(done("a", 2)), "does not belong in the worker queue"),
        (good().message(activity("a", 2)), "does not belong in the orchestrator queue"),
    ]
}

#[tokio::test(start_paused = true)]
async fn r8_55_r8_61_r8_62_r1_12_a_refused_commit_changes_nothing() {
    for (broken, words) in broken_commits() {
        let lab = lab();
        lab.begin("a").await;
        lab.send(raise("a", "x")).await;
        let turn = lab.turn().await;
        let before = format!("{:?}", lab.snapshot());
        assert_refused(lab.commit(&turn, broken).await, ACK, words);
        assert_eq!(format!("{:?}", lab.snapshot()), before, "{words}");

        lab.no_turn().await; // The lock stays,
        lab.commit(&turn, commit().event(note(2))).await.unwrap(); // and is still good.
        assert_eq!(event_ids(&lab, "a").await, [1, 2]);
    }
}

#[tokio::test(start_paused = true)]
async fn r8_55_after_a_refused_commit_the_messages_come_again() {
    let lab = lab();
    lab.begin("a").await;
    lab.send(raise("a", "x")).await;
    let turn = lab.turn().await;
    lab.commit(&turn, commit().event(note(1))).await.unwrap_err();
    lab.abandon(&turn).await;
    let again = lab.turn().await;
    assert_eq!((again.item.messages, again.attempt_count), (vec![raise("a", "x")], 2));
}

#[tokio::test(start_paused = true)]
async fn r8_56_a_token_commits_once() {
    let lab = lab();
    lab.send(start("a")).await;
    let turn = lab.turn().await;
    lab.commit(&turn, first_commit("a")).await.unwrap();
    assert_refused(lab.commit(&turn, commit()).await, ACK, "Invalid lock token");
}

#[tokio::test(start_paused = true)]
async fn r8_57_r6_62_a_forced_deletion_wins_against_the_turn_in_progress() {
    let lab = lab();
    lab.begin("a").await;
    lab.send(raise("a", "x")).await;
    let turn = lab.turn().await;
    lab.delete_instance("a", true).await.unwrap();
    assert_refused(lab.commit(&turn, first_commit("a")).await, ACK, "Invalid lock token");
    assert!(lab.list_instances().await.unwrap().is_empty());
    assert!(lab.snapshot().instances.is_empty());
}

#[tokio::test(start_paused = true)]
async fn r8_60_events_are_ordered_by_id() {
    let lab = lab();
    lab.begin_as("a", first_commit("a").event(note(99_999))).await;
    lab.step("a", commit().event(note(3)).event(note(2))).await;
    assert_eq!(event_ids(&lab, "a").await, [1, 2, 3, 99_999]);
    lab.append_with_execution("a", 1, vec![note(4)]).await.unwrap(); // R8.96
    let refused = lab.append_with_execution("a", 1, vec![note(5), note(4)]).await;
    assert_refused(refused, "append_with_execution", "duplicate event id 4");
    assert_eq!(event_ids(&lab, "a").await, [1, 2, 3, 4, 99_999]);
}
