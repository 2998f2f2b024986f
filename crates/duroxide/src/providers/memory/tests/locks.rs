//! Giving turns back, holding them longer, losing them (R8.41, R8.65 – R8.68).

use std::time::Duration;

use super::lab::*;
use crate::providers::Provider;

const ABANDON: &str = "abandon_orchestration_item";
const RENEW: &str = "renew_orchestration_item_lock";

#[tokio::test(start_paused = true)]
async fn r8_65_unknown_tokens_cannot_abandon() {
    let lab = lab();
    lab.send(start("a")).await;
    let turn = lab.turn().await;
    let refused = lab.abandon_orchestration_item("lock_x", None, false).await;
    assert_refused(refused, ABANDON, "Invalid lock token");
    lab.abandon(&turn).await;
    let again = lab.abandon_orchestration_item(&turn.lock_token, None, false).await;
    assert_refused(again, ABANDON, "Invalid lock token");
}

#[tokio::test(start_paused = true)]
async fn r8_65_r8_66_abandoning_releases_at_once() {
    let lab = lab();
    lab.send(start("a")).await;
    let turn = lab.turn().await;
    lab.no_turn().await;
    lab.abandon(&turn).await;
    assert_eq!(lab.turn().await.item.messages, [start("a")]);
}

#[tokio::test(start_paused = true)]
async fn r8_65_a_delay_hides_only_what_was_fetched() {
    let lab = lab();
    lab.begin("a").await;
    lab.send(raise("a", "fetched")).await;
    let turn = lab.turn().await;
    lab.send(raise("a", "not fetched")).await;
    lab.abandon_for(&turn, 100).await;
    let now = lab.turn().await;
    assert_eq!(now.item.messages, [raise("a", "not fetched")]);
    lab.commit(&now, commit()).await.unwrap();
    lab.no_turn().await;
    pass(100).await;
    assert_eq!(lab.turn().await.item.messages, [raise("a", "fetched")]);
}

#[tokio::test(start_paused = true)]
async fn r8_65_delayed_messages_keep_their_place() {
    let lab = lab();
    lab.begin("a").await;
    lab.send(raise("a", "1")).await;
    let turn = lab.turn().await;
    lab.send(raise("a", "2")).await;
    lab.abandon_for(&turn, 100).await;
    pass(100).await;
    assert_eq!(lab.turn().await.item.messages, [raise("a", "1"), raise("a", "2")]);
}

#[tokio::test(start_paused = true)]
async fn r8_67_an_expired_lock_can_still_be_abandoned_by_its_owner() {
    let lab = lab();
    lab.send(start("a")).await;
    let turn = lab.turn().await;
    pass(LOCK_MS + 1).await;
    lab.abandon_for(&turn, 100).await;
    lab.no_turn().await;
    pass(100).await;
    lab.turn().await;
}

#[tokio::test(start_paused = true)]
async fn r8_67_but_not_once_somebody_else_has_the_turn() {
    let lab = lab();
    lab.send(start("a")).await;
    let turn = lab.turn().await;
    pass(LOCK_MS).await;
    let theirs = lab.turn().await;
    let refused = lab.abandon_orchestration_item(&turn.lock_token, None, false).await;
    assert_refused(refused, ABANDON, "Invalid lock token");
    lab.commit(&theirs, first_commit("a")).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn r8_41_a_lock_ends_by_itself() {
    let lab = lab();
    lab.send(start("a")).await;
    lab.turn().await;
    pass(LOCK_MS - 1).await;
    lab.no_turn().await;
    pass(1).await;
    lab.turn().await;
}

#[tokio::test(start_paused = true)]
async fn r8_68_renewal_counts_from_now() {
    let lab = lab();
    lab.send(start("a")).await;
    let turn = lab.turn().await;
    pass(LOCK_MS - 1).await;
    lab.renew_orchestration_item_lock(&turn.lock_token, LOCK).await.unwrap();
    pass(LOCK_MS - 1).await;
    lab.no_turn().await;
    pass(1).await;
    let turn = lab.turn().await;
    lab.renew_orchestration_item_lock(&turn.lock_token, Duration::from_millis(10)).await.unwrap();
    pass(10).await;
    lab.turn().await; // Shorter is possible, too.
}

#[tokio::test(start_paused = true)]
async fn r8_68_only_the_current_unexpired_token_renews() {
    let lab = lab();
    lab.send(start("a")).await;
    let turn = lab.turn().await;
    assert_refused(lab.renew_orchestration_item_lock("lock_x", LOCK).await, RENEW, "lock token");
    pass(LOCK_MS).await;
    let expired = lab.renew_orchestration_item_lock(&turn.lock_token, LOCK).await;
    assert_refused(expired, RENEW, "expired");
    let turn = lab.turn().await;
    lab.commit(&turn, first_commit("a")).await.unwrap();
    let gone = lab.renew_orchestration_item_lock(&turn.lock_token, LOCK).await;
    assert_refused(gone, RENEW, "Invalid lock token");
}
