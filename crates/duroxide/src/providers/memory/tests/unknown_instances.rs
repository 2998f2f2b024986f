//! Messages for instances that do not exist (R8.28, R8.29, R8.137, L1).

use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::lab::*;
use crate::providers::ProviderAdmin;

async fn dead_payloads(lab: &Lab) -> Vec<String> {
    lab.list_dead_letters().await.unwrap().into_iter().map(|letter| letter.payload).collect()
}

fn json(item: &duroxide_core::model::WorkItem) -> String {
    serde_json::to_string(item).unwrap()
}

#[tokio::test(start_paused = true)]
async fn r8_28_queue_messages_for_nobody_become_dead_letters_at_the_next_fetch() {
    let lab = lab();
    lab.send(queue_message("ghost", "m")).await;
    assert!(dead_payloads(&lab).await.is_empty());
    lab.no_turn().await;
    let letters = lab.list_dead_letters().await.unwrap();
    assert_eq!(letters.len(), 1);
    assert_eq!(letters[0].instance.as_deref(), Some("ghost"));
    assert_eq!(letters[0].payload, json(&queue_message("ghost", "m")));
    assert_eq!(letters[0].at_ms, lab.now());
    assert!(letters[0].reason.contains("does not exist"));

    lab.send(start("ghost")).await;
    assert_eq!(lab.turn().await.item.messages, [start("ghost")], "never returned");
    assert!(lab.snapshot().instance_locks.len() == 1, "only the new turn is locked");
}

#[tokio::test(start_paused = true)]
async fn r8_28_a_start_before_the_fetch_saves_queue_messages() {
    let lab = lab();
    lab.send(queue_message("a", "early")).await;
    lab.send(start("a")).await;
    assert_eq!(lab.turn().await.item.messages, [queue_message("a", "early"), start("a")]);
}

#[tokio::test(start_paused = true)]
async fn r8_28_a_start_that_is_hidden_saves_queue_messages_too() {
    let lab = lab();
    lab.send(start("a")).await;
    let turn = lab.turn().await;
    lab.abandon_for(&turn, 100).await;
    lab.send(queue_message("a", "m")).await;
    lab.no_turn().await;
    pass(100).await;
    assert_eq!(lab.turn().await.item.messages, [start("a"), queue_message("a", "m")]);
    assert!(dead_payloads(&lab).await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn r8_29_an_overdue_timer_for_nobody_waits_like_any_message() {
    let lab = lab();
    let overdue = timer_fired("ghost", 0);
    let first = first_commit("a").message(overdue.clone()).message(start("ghost"));
    lab.begin_as("a", first).await;
    assert_eq!(lab.turn().await.item.messages, [overdue, start("ghost")]);
    assert!(dead_payloads(&lab).await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn l1_r8_29_messages_for_nobody_hold_up_nobody() {
    let lab = lab();
    for stray in [raise("ghost", "x"), cancel("ghost2"), done("ghost3", 2)] {
        lab.send(stray).await;
    }
    lab.send(start("a")).await;
    assert_eq!(lab.turn().await.item.instance, "a");
    lab.no_turn().await;
    let snapshot = lab.snapshot();
    assert!(snapshot.orchestrator_queue.iter().all(|m| m.instance == "a" || m.attempts == 0));
    assert_eq!(snapshot.instance_locks.keys().collect::<Vec<_>>(), ["a"]);
}

#[tokio::test(start_paused = true)]
async fn l1_r8_29_a_start_releases_what_waited() {
    let lab = lab();
    lab.send(raise("a", "early")).await;
    lab.send(queue_message("a", "with it")).await;
    lab.no_turn().await;
    pass(1_000).await;
    lab.send(start("a")).await;
    let turn = lab.turn().await;
    assert_eq!(
        turn.item.messages,
        [raise("a", "early"), queue_message("a", "with it"), start("a")]
    );
    assert_eq!(turn.attempt_count, 1, "waiting counts no attempts");
}

#[tokio::test(start_paused = true)]
async fn l1_r8_29_after_the_retention_they_become_dead_letters() {
    let lab = lab_with_retention(Duration::from_secs(10));
    lab.send(cancel("ghost")).await;
    pass(4_000).await;
    lab.send(raise("ghost", "later")).await;
    lab.send(queue_message("ghost", "m")).await;
    pass(5_999).await;
    assert!(dead_payloads(&lab).await.is_empty());
    pass(1).await;
    assert_eq!(dead_payloads(&lab).await, [json(&cancel("ghost"))]);
    pass(4_000).await;
    assert_eq!(dead_payloads(&lab).await.len(), 3);
    let queue = lab.get_queue_depths().await.unwrap();
    assert_eq!(queue.orchestrator_queue, 0);
}

#[tokio::test(start_paused = true)]
async fn l1_r8_29_the_default_retention_is_an_hour() {
    let lab = lab();
    lab.send(raise("ghost", "x")).await;
    pass(3_599_999).await;
    assert!(dead_payloads(&lab).await.is_empty());
    pass(1).await;
    let letters = lab.list_dead_letters().await.unwrap();
    assert_eq!(letters[0].reason, "no such instance appeared within 3600 s");
}

#[tokio::test(start_paused = true)]
async fn l1_r8_29_a_deleted_instance_is_unknown_again() {
    let lab = lab();
    lab.ended("a", "Completed").await;
    lab.delete_instance("a", false).await.unwrap();
    lab.send(raise("a", "late")).await;
    lab.begin("b").await;
    lab.no_turn().await;
}

#[tokio::test(start_paused = true)]
async fn r8_137_dead_letters_are_limited() {
    let lab = lab();
    for number in 0..10_005 {
        lab.send(queue_message("ghost", &number.to_string())).await;
    }
    lab.no_turn().await;
    let letters = dead_payloads(&lab).await;
    assert_eq!(letters.len(), 10_000);
    assert_eq!(letters[0], json(&queue_message("ghost", "5")), "the oldest make room");
}

/// Where a test's log goes.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl std::io::Write for Log {
    fn write(&mut self, text: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().write(text)
    }
    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[tokio::test(start_paused = true)]
async fn r8_28_dead_letters_are_logged_as_warnings() {
    let log = Log::default();
    let writer = log.clone();
    let subscriber =
        tracing_subscriber::fmt().with_ansi(false).with_writer(move || writer.clone()).finish();
    let _guard = tracing::subscriber::set_default(subscriber);
    let lab = lab();
    lab.send(queue_message("ghost", "m")).await;
    lab.no_turn().await;
    let text = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
    assert_eq!(text.lines().count(), 1, "{text}");
    assert!(text.contains("WARN") && text.contains("instance=\"ghost\""), "{text}");
}
