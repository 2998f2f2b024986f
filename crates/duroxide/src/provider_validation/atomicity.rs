//! A commit happens as a whole or not at all.

use super::ProviderFactory;
use super::lab::{Promise, lab};
use super::words::*;
use crate::providers::TagFilter;

const SECTION: &str = "committing-a-turn";

/// A refused commit leaves everything as it was.
pub async fn test_atomicity_failure_rollback<F: ProviderFactory>(factory: &F) {
    let says = "a refused commit changes nothing: no events, no messages, no activities";
    let lab = lab(factory, Promise { rule: "R1.12", says, section: SECTION }).await.patient();
    lab.begin("a").await;
    lab.send(raise("a", "x")).await;
    let turn = lab.turn_of("a").await;
    // Event 1 is there already, so the whole commit is refused.
    let bad =
        commit().event(note(2)).event(started("a")).work(activity("a", 2)).message(start("b"));
    lab.refused("ack_orchestration_item with a duplicate event", lab.commit(&turn, bad).await, &[]);
    lab.same("the events", lab.event_ids("a").await, [1]);
    lab.no_job().await;
    lab.no_turn().await; // "b" was not queued, and "a" is still locked
    lab.abandon(&turn).await;
    let again = lab.turn_of("a").await;
    lab.same("the messages, which were not consumed", again.item.messages.len(), 1);
}

/// Everything a commit holds happens.
pub async fn test_multi_operation_atomic_ack<F: ProviderFactory>(factory: &F) {
    let says = "events, activities and messages of one commit are all there after it";
    let lab = lab(factory, Promise { rule: "R1.12", says, section: SECTION }).await.patient();
    lab.send(start("a")).await;
    let turn = lab.turn_of("a").await;
    let all = first_commit("a")
        .event(note(2))
        .event(note(3))
        .work(activity("a", 2))
        .work(activity("a", 3))
        .message(start("b"))
        .message(start("c"));
    lab.committed(&turn, all).await;
    lab.same("the events", lab.event_ids("a").await, [1, 2, 3]);
    lab.same("the first activity", lab.job().await.id(), 2);
    lab.same("the second activity", lab.job().await.id(), 3);
    lab.turn_of("b").await;
    lab.turn_of("c").await;
    lab.no_turn().await;
}

/// A refused commit keeps the lock.
pub async fn test_lock_released_only_on_successful_ack<F: ProviderFactory>(factory: &F) {
    let says = "a refused commit keeps the lock; a successful one releases it";
    let lab = lab(factory, Promise { rule: "R8.55", says, section: SECTION }).await.patient();
    lab.begin("a").await;
    lab.send(raise("a", "x")).await;
    let turn = lab.turn_of("a").await;
    let bad = lab.commit(&turn, commit().event(started("a"))).await;
    lab.refused("ack_orchestration_item with a duplicate event", bad, &[]);
    lab.no_turn().await;
    lab.committed(&turn, commit().event(note(2))).await;
    lab.send(raise("a", "y")).await;
    lab.turn_of("a").await;
}

/// Of two commits with one token, one succeeds.
pub async fn test_concurrent_ack_prevention<F: ProviderFactory>(factory: &F) {
    let says = "of two commits with one lock token exactly one succeeds";
    let lab = lab(factory, Promise { rule: "R8.56", says, section: SECTION }).await.patient();
    lab.begin("a").await;
    lab.send(raise("a", "x")).await;
    let turn = lab.turn_of("a").await;
    let (first, second) = tokio::join!(
        lab.commit(&turn, commit().event(note(2)).work(activity("a", 2))),
        lab.commit(&turn, commit().event(note(2)).work(activity("a", 2))),
    );
    let succeeded = usize::from(first.is_ok()) + usize::from(second.is_ok());
    lab.same("the number of successful commits", succeeded, 1);
    lab.same("the events", lab.event_ids("a").await, [1, 2]);
    lab.job().await;
    let more = lab.job_tagged(&TagFilter::Any).await;
    lab.expect(more.is_none(), "the activity to be queued once", more);
}
