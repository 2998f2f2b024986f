//! Every fetch is counted, message by message, so that what never succeeds can be found out.

use std::time::Duration;

use tokio::time::Instant;

use super::ProviderFactory;
use super::lab::{Job, LONG, Lab, Promise, Turn, lab};
use super::words::*;

const SECTION: &str = "attempts-and-poison";

/// The first fetch of a message is attempt 1.
pub async fn orchestration_attempt_count_starts_at_one(factory: &dyn ProviderFactory) {
    let says = "the first fetch of a message is attempt 1";
    let lab = lab(factory, Promise { rule: "R8.22", says, section: SECTION }).await;
    lab.send(start("a")).await;
    let turn = lab.turn_of("a").await;
    lab.same("the attempt of a start", turn.attempt, 1);
    lab.committed(&turn, first_commit("a")).await;
    lab.send(raise("a", "x")).await;
    let turn = lab.turn_of("a").await;
    lab.same("the attempt of a message after a commit", turn.attempt, 1);
}

/// Each further fetch of a message is one more attempt.
pub async fn orchestration_attempt_count_increments_on_refetch(factory: &dyn ProviderFactory) {
    let says = "each fetch of a message that was given back, or whose lock ran out, is one more";
    let lab = lab(factory, Promise { rule: "R8.22", says, section: SECTION }).await;
    lab.send(start("a")).await;
    for attempt in 1..=3 {
        let turn = lab.turn_of("a").await;
        lab.same("the attempt", turn.attempt, attempt);
        lab.abandon(&turn).await;
    }
    lab.turn_of("a").await; // the fourth, never answered
    lab.same("the attempt after the lock ran out", lab.turn_soon().await.attempt, 5);
}

/// The first fetch of an activity is attempt 1.
pub async fn worker_attempt_count_starts_at_one(factory: &dyn ProviderFactory) {
    let says = "the first fetch of an activity is attempt 1";
    let lab = lab(factory, Promise { rule: "R8.72", says, section: SECTION }).await;
    lab.queue(activity("a", 2)).await;
    let job = lab.job().await;
    lab.same("the attempt of a queued activity", job.attempt, 1);
    lab.answered(&job, None).await;
    lab.begin_as("a", first_commit("a").work(activity("a", 3))).await;
    lab.same("the attempt of a committed activity", lab.job().await.attempt, 1);
}

/// An activity whose worker fell silent is fetched as one attempt more.
pub async fn worker_attempt_count_increments_on_lock_expiry(factory: &dyn ProviderFactory) {
    let says = "an activity whose lock ran out is fetched again as one attempt more";
    let lab = lab(factory, Promise { rule: "R8.72", says, section: SECTION }).await;
    lab.queue(activity("a", 2)).await;
    lab.same("the first attempt", lab.job().await.attempt, 1);
    let again = lab.job_soon().await;
    lab.same("the activity", again.id(), 2);
    lab.same("the attempt after the lock ran out", again.attempt, 2);
}

/// Activities are counted one by one.
pub async fn attempt_count_is_per_message(factory: &dyn ProviderFactory) {
    let says = "each activity's attempts are counted for itself";
    let lab = lab(factory, Promise { rule: "R8.72", says, section: SECTION }).await;
    lab.queue(activity("a", 2)).await;
    lab.queue(activity("a", 3)).await;
    for attempt in 1..=2 {
        let job = lab.job().await;
        lab.same("the activity and its attempt", (job.id(), job.attempt), (2, attempt));
        give_back(&lab, &job, false).await;
    }
    lab.queue(activity("a", 4)).await;
    for expected in [(2, 3), (3, 1), (4, 1)] {
        let job = lab.job().await;
        lab.same("the activity and its attempt", (job.id(), job.attempt), expected);
        lab.answered(&job, None).await;
    }
}

/// An activity can be given back uncounted.
pub async fn abandon_work_item_ignore_attempt_decrements(factory: &dyn ProviderFactory) {
    let says = "giving an activity back with ignore_attempt takes back one attempt";
    let lab = lab(factory, Promise { rule: "R8.76", says, section: SECTION }).await;
    lab.queue(activity("a", 2)).await;
    for (attempt, ignore) in [(1, false), (2, true), (2, false), (3, true), (3, false)] {
        let job = lab.job().await;
        lab.same("the attempt", job.attempt, attempt);
        give_back(&lab, &job, ignore).await;
    }
}

/// A turn can be given back uncounted.
pub async fn abandon_orchestration_item_ignore_attempt_decrements(factory: &dyn ProviderFactory) {
    let says = "giving a turn back with ignore_attempt takes back one attempt of its messages";
    let lab = lab(factory, Promise { rule: "R8.65", says, section: SECTION }).await;
    lab.send(start("a")).await;
    for (attempt, ignore) in [(1, false), (2, true), (2, false), (3, true), (3, false)] {
        let turn = lab.turn_of("a").await;
        lab.same("the attempt", turn.attempt, attempt);
        give_turn_back(&lab, &turn, None, ignore).await;
    }
}

/// Attempts never go below zero.
pub async fn ignore_attempt_never_goes_negative(factory: &dyn ProviderFactory) {
    let says = "however often attempts are taken back, the count never goes below zero";
    let lab = lab(factory, Promise { rule: "R8.65", says, section: SECTION }).await;
    lab.send(start("a")).await;
    lab.queue(activity("a", 2)).await;
    for _ in 0..3 {
        let (turn, job) = (lab.turn_of("a").await, lab.job().await);
        lab.same("the attempt of the turn", turn.attempt, 1);
        lab.same("the attempt of the activity", job.attempt, 1);
        give_turn_back(&lab, &turn, None, true).await;
        give_back(&lab, &job, true).await;
        // A token takes back one attempt, not two.
        let again = lab.abandon_orchestration_item(&turn.token, None, true).await;
        lab.refused("a second abandon_orchestration_item with one token", again, &[]);
        let again = lab.abandon_work_item(&job.token, None, true).await;
        lab.refused("a second abandon_work_item with one token", again, &[]);
    }
}

/// A turn counts as its most tried message.
pub async fn max_attempt_count_across_message_batch(factory: &dyn ProviderFactory) {
    let says = "the attempt of a turn is the highest among its messages";
    let lab = lab(factory, Promise { rule: "R7.80", says, section: SECTION }).await;
    lab.begin("a").await;
    // Messages around the tried one, which come to light after it: whether a turn counts as its
    // first, its last or its most tried message makes a difference.
    lab.send_later(raise("a", "before"), lab.lock).await;
    lab.send(raise("a", "tried")).await;
    for _ in 1..=3 {
        let turn = lab.turn_of("a").await;
        lab.abandon(&turn).await;
    }
    lab.send(raise("a", "after")).await;
    lab.locks_run_out().await;
    let turn = lab.turn_of("a").await;
    lab.same("the number of messages", turn.item.messages.len(), 3);
    lab.same("the attempt of the turn", turn.attempt, 4);
}

/// Taking an attempt back concerns the fetched messages alone.
pub async fn orchestration_ignore_attempt_preserves_hidden_start(factory: &dyn ProviderFactory) {
    let says = "ignore_attempt leaves the counts of messages alone that this fetch did not return";
    let lab = lab(factory, Promise { rule: "R8.65", says, section: SECTION }).await;
    lab.begin("a").await;
    lab.send(continue_as_new("a")).await;
    let turn = lab.turn_of("a").await;
    give_turn_back(&lab, &turn, Some(lab.lock), false).await; // hidden for a while, tried once
    lab.send(raise("a", "x")).await;
    let turn = lab.turn_of("a").await;
    give_turn_back(&lab, &turn, None, true).await;
    lab.locks_run_out().await;
    let turn = lab.turn_of("a").await;
    lab.same("the number of messages", turn.item.messages.len(), 2);
    lab.same("the attempt, which is that of the start", turn.attempt, 2);
}

/// A delay concerns the fetched messages alone.
pub async fn orchestration_delayed_abandon_preserves_unlocked_rows(factory: &dyn ProviderFactory) {
    let says = "giving a turn back with a delay hides the messages of that turn and no others";
    let lab = lab(factory, Promise { rule: "R8.65", says, section: SECTION }).await;
    lab.begin("a").await;
    lab.begin("b").await;
    lab.send_later(raise("a", "not yet due"), LONG).await;
    lab.send(raise("a", "fetched")).await;
    let turn = lab.turn_of("a").await;
    lab.send(raise("a", "came under the lock")).await;
    lab.send(raise("b", "of another instance")).await;
    give_turn_back(&lab, &turn, Some(LONG), false).await;
    for _ in 0..2 {
        let turn = lab.turn_of("a").await;
        lab.same("the messages", &turn.item.messages, &vec![raise("a", "came under the lock")]);
        lab.abandon(&turn).await; // without delay: this one stays visible, the others hidden
    }
    for instance in ["a", "b"] {
        let turn = lab.turn_of(instance).await;
        lab.committed(&turn, commit().event(note(2))).await;
    }
    lab.no_turn().await;
    lab.send(raise("b", "later")).await;
    let turn = lab.patient().turn_of("b").await;
    let began = Instant::now();
    give_turn_back(&lab, &turn, Some(lab.lock), false).await;
    lab.batch(&lab.turn_soon().await, [raise("b", "later")]);
    lab.not_before(lab.lock, began, "the delay");
}

async fn give_back(lab: &Lab, job: &Job, ignore_attempt: bool) {
    let result = lab.abandon_work_item(&job.token, None, ignore_attempt).await;
    lab.ok("abandon_work_item", result);
}

async fn give_turn_back(lab: &Lab, turn: &Turn, delay: Option<Duration>, ignore_attempt: bool) {
    let result = lab.abandon_orchestration_item(&turn.token, delay, ignore_attempt).await;
    lab.ok("abandon_orchestration_item", result);
}
