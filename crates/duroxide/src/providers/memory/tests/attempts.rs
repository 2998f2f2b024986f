//! Counting attempts (R8.22, R8.65, R8.72, R8.76, R7.80).

use super::lab::*;
use crate::providers::Provider;

#[tokio::test(start_paused = true)]
async fn r8_22_the_first_fetch_is_attempt_one_and_each_more_counts() {
    let lab = lab();
    lab.send(start("a")).await;
    for attempt in 1..=3 {
        let turn = lab.turn().await;
        assert_eq!(turn.attempt_count, attempt);
        assert_eq!(lab.max_attempt_count("a"), attempt);
        lab.abandon(&turn).await;
    }
    lab.turn().await;
    pass(LOCK_MS).await;
    assert_eq!(lab.turn().await.attempt_count, 5, "an expired lock counts too");
}

#[tokio::test(start_paused = true)]
async fn r8_22_r7_80_a_batch_counts_as_its_most_tried_message() {
    let lab = lab();
    lab.begin("a").await;
    lab.send(raise("a", "old")).await;
    for _ in 0..2 {
        let turn = lab.turn().await;
        lab.abandon(&turn).await;
    }
    lab.send(raise("a", "new")).await;
    let turn = lab.turn().await;
    assert_eq!((turn.attempt_count, turn.item.messages.len()), (3, 2));
    let attempts = lab.snapshot().orchestrator_queue.iter().map(|m| m.attempts).collect::<Vec<_>>();
    assert_eq!(attempts, [3, 1]);
}

#[tokio::test(start_paused = true)]
async fn r8_65_an_attempt_can_be_taken_back() {
    let lab = lab();
    lab.send(start("a")).await;
    let turn = lab.turn().await;
    lab.abandon(&turn).await;
    let turn = lab.turn().await;
    assert_eq!(turn.attempt_count, 2);
    lab.abandon_orchestration_item(&turn.lock_token, None, true).await.unwrap();
    assert_eq!(lab.max_attempt_count("a"), 1);
    assert_eq!(lab.turn().await.attempt_count, 2);
}

#[tokio::test(start_paused = true)]
async fn r8_65_an_attempt_is_taken_back_only_from_what_was_fetched() {
    let lab = lab();
    lab.send(start("a")).await;
    let turn = lab.turn().await;
    lab.abandon_for(&turn, 1_000).await; // Hidden, with one attempt.
    lab.send(start("a")).await;
    let turn = lab.turn().await;
    lab.abandon_orchestration_item(&turn.lock_token, None, true).await.unwrap();
    let attempts = lab.snapshot().orchestrator_queue.iter().map(|m| m.attempts).collect::<Vec<_>>();
    assert_eq!(attempts, [1, 0]);
}

#[tokio::test(start_paused = true)]
async fn r8_65_attempts_never_go_below_zero() {
    let lab = lab();
    lab.send(start("a")).await;
    for _ in 0..3 {
        let turn = lab.turn().await;
        assert_eq!(turn.attempt_count, 1);
        lab.abandon_orchestration_item(&turn.lock_token, None, true).await.unwrap();
        assert_eq!(lab.max_attempt_count("a"), 0);
    }
}

#[tokio::test(start_paused = true)]
async fn r8_72_each_activity_counts_for_itself() {
    let lab = lab();
    lab.queue(activity("a", 2)).await;
    for attempt in 1..=2 {
        let job = lab.job().await;
        assert_eq!(job.attempt, attempt);
        lab.abandon_work_item(&job.token, None, false).await.unwrap();
    }
    lab.queue(activity("a", 3)).await;
    assert_eq!(lab.job().await.attempt, 3);
    assert_eq!(lab.job().await.attempt, 1);
    pass(LOCK_MS).await;
    assert_eq!(lab.job().await.attempt, 4, "an expired lock counts too");
}

#[tokio::test(start_paused = true)]
async fn r8_76_an_activity_s_attempt_can_be_taken_back() {
    let lab = lab();
    lab.queue(activity("a", 2)).await;
    for _ in 0..3 {
        let job = lab.job().await;
        assert_eq!(job.attempt, 1);
        lab.abandon_work_item(&job.token, None, true).await.unwrap();
    }
}
