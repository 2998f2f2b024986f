//! The queues: their order, what is visible in them when, and what happens to messages for nobody.

use std::time::Duration;

use tokio::time::Instant;

use super::ProviderFactory;
use super::lab::{Promise, lab};
use super::patience::OUTLASTING;
use super::words::*;

const SECTION: &str = "the-worker-queue";

/// Activities come out as they went in.
pub async fn test_worker_queue_fifo_ordering<F: ProviderFactory>(factory: &F) {
    let says = "activities are fetched in the order in which they were queued";
    let lab = lab(factory, Promise { rule: "R8.70", says, section: SECTION }).await.patient();
    lab.queue(activity("a", 9)).await;
    lab.queue(activity("b", 3)).await;
    lab.begin_as("c", first_commit("c").work(activity("c", 7)).work(activity("c", 2))).await;
    lab.queue(activity("a", 5)).await;
    let first = lab.job().await;
    lab.same("the first activity", first.id(), 9);
    lab.give_back(&first, None).await;
    for id in [9, 3, 7, 2, 5] {
        let job = lab.job().await;
        lab.same("the next activity", job.id(), id);
    }
    lab.no_job().await;
}

/// A fetched activity is hidden, and there until it is answered.
pub async fn test_worker_peek_lock_semantics<F: ProviderFactory>(factory: &F) {
    let says = "a fetched activity is hidden from others and goes only by its answer";
    let lab = lab(factory, Promise { rule: "R8.72", says, section: SECTION }).await;
    lab.queue(activity("a", 2)).await;
    let job = lab.patient().job().await;
    lab.same("the activity", &job.item, &activity("a", 2));
    lab.no_job().await;
    lab.give_back(&job, None).await;
    let answer = || async {
        let job = lab.job_soon().await;
        lab.ack_work_item(&job.token, None).await
    };
    lab.in_time("ack_work_item", answer).await;
    lab.no_job().await;
    lab.locks_run_out().await;
    lab.no_job().await; // it was not only locked
}

/// The answer removes the activity and queues the outcome, both or neither.
pub async fn test_worker_ack_atomicity<F: ProviderFactory>(factory: &F) {
    let says = "an answer removes the activity and queues its outcome, both or neither";
    let lab = lab(factory, Promise { rule: "R1.14", says, section: SECTION }).await.patient();
    lab.begin("a").await;
    for (id, outcome) in [(2, done("a", 2)), (3, failed("a", 3))] {
        lab.queue(activity("a", id)).await;
        let job = lab.job().await;
        let unknown = lab.ack_work_item("no such token", Some(outcome.clone())).await;
        lab.refused("ack_work_item with an unknown token", unknown, &[]);
        let no_outcome = lab.ack_work_item(&job.token, Some(raise("a", "x"))).await;
        lab.refused("ack_work_item with what is no outcome", no_outcome, &[]);
        lab.no_turn().await;
        lab.answered(&job, Some(outcome.clone())).await;
        let again = lab.ack_work_item(&job.token, Some(outcome.clone())).await;
        lab.refused("a second ack_work_item", again, &[]);
        lab.no_job().await;
        let turn = lab.turn_of("a").await;
        lab.batch(&turn, [outcome]);
        lab.committed(&turn, commit().event(note(id))).await;
    }
    lab.no_turn().await;
}

/// A timer fires when it is due.
pub async fn test_timer_delayed_visibility<F: ProviderFactory>(factory: &F) {
    let says = "a timer of a commit is hidden until it is due; queued otherwise, only by the delay";
    let section = "committing-a-turn";
    let lab = lab(factory, Promise { rule: "R8.53", says, section }).await;
    let (now, short) = (lab.now_ms(), millis(lab.lock));
    let (never, soon) = (timer_fired("a", now + millis(OUTLASTING)), timer_fired("a", now + short));
    lab.begin_as("a", first_commit("a").message(never.clone())).await;
    lab.no_turn().await;
    lab.send(raise("a", "x")).await;
    let turn = lab.patient().turn_of("a").await;
    lab.batch(&turn, [raise("a", "x")]); // the timer keeps nothing else back
    lab.committed(&turn, commit().message(soon.clone())).await;
    let turn = lab.patient().turn_soon().await;
    let is_due = now + short <= lab.now_ms() + CLOCKS_DIFFER_MS;
    lab.expect(is_due, "no timer before it is due", &turn);
    lab.batch(&turn, [soon]);
    lab.committed(&turn, commit().message(timer_fired("a", 1))).await;
    let turn = lab.patient().turn_of("a").await;
    lab.batch(&turn, [timer_fired("a", 1)]); // due long ago
    lab.committed(&turn, commit()).await;
    // R8.12: elsewhere the time in the message counts for nothing.
    lab.send_later(timer_fired("a", 2), OUTLASTING).await;
    lab.no_turn().await;
    lab.send(never.clone()).await;
    let turn = lab.patient().turn_of("a").await;
    lab.batch(&turn, [never]);
    lab.committed(&turn, commit()).await;
    let began = Instant::now();
    lab.send_later(raise("a", "later"), lab.lock).await;
    lab.batch(&lab.turn_soon().await, [raise("a", "later")]);
    lab.not_before(lab.lock, began, "the delay");
}

/// The activity of a worker that died comes back.
pub async fn test_lost_lock_token_handling<F: ProviderFactory>(factory: &F) {
    let says = "an activity that nobody answered comes back when its lock ran out";
    let lab = lab(factory, Promise { rule: "R8.77", says, section: SECTION }).await;
    lab.queue(activity("a", 2)).await;
    let began = Instant::now();
    let lost = lab.job().await;
    let found = lab.patient().job_soon().await;
    lab.not_before(lab.lock, began, "the lock");
    lab.same("the activity", &found.item, &lost.item);
    lab.expect(found.token != lost.token, "a new token", &found.token);
    lab.answered(&found, None).await;
}

/// A queued activity can be fetched at once.
pub async fn test_worker_item_immediate_visibility<F: ProviderFactory>(factory: &F) {
    let says = "an activity can be fetched as soon as it is queued";
    let lab = lab(factory, Promise { rule: "R8.71", says, section: SECTION }).await.patient();
    lab.no_job().await;
    lab.queue(activity("a", 2)).await;
    lab.same("the activity", lab.job().await.item, activity("a", 2));
    lab.begin_as("a", first_commit("a").work(activity("a", 3))).await;
    lab.same("the activity of a commit", lab.job().await.item, activity("a", 3));
}

/// What is not yet visible is passed over.
pub async fn test_worker_delayed_visibility_skips_future_items<F: ProviderFactory>(factory: &F) {
    let says = "an activity that is hidden for a time keeps none behind it waiting";
    let lab = lab(factory, Promise { rule: "R8.71", says, section: SECTION }).await.patient();
    lab.queue(activity("a", 2)).await;
    lab.queue(activity("a", 3)).await;
    let delayed = lab.job().await;
    lab.give_back(&delayed, Some(OUTLASTING)).await;
    lab.queue(activity("a", 4)).await;
    lab.same("the first visible activity", lab.job().await.id(), 3);
    lab.same("the second", lab.job().await.id(), 4);
    lab.no_job().await;
}

/// Queue messages for nobody are dropped; all other messages wait for their instance.
pub async fn test_orphan_queue_messages_dropped<F: ProviderFactory>(factory: &F) {
    queue_messages_for_nobody(factory).await;
    messages_for_the_unborn(factory).await;
}

async fn queue_messages_for_nobody<F: ProviderFactory>(factory: &F) {
    let says = "queue messages go at the next fetch if their instance neither exists nor starts";
    let section = "unknown-instances";
    let lab = lab(factory, Promise { rule: "R8.28", says, section }).await;
    lab.send(queue_message("a", "lost")).await;
    lab.no_turn().await;
    lab.send(start("a")).await;
    let turn = lab.patient().turn_of("a").await;
    lab.batch(&turn, [start("a")]);
    lab.committed(&turn, first_commit("a")).await;
    // Known, about to start, to start later: kept.
    lab.send(queue_message("a", "kept")).await;
    lab.batch(&lab.patient().turn_of("a").await, [queue_message("a", "kept")]);
    lab.send(queue_message("b", "kept")).await;
    lab.send(start("b")).await;
    lab.batch(&lab.patient().turn_of("b").await, [queue_message("b", "kept"), start("b")]);
    lab.send_later(start("c"), lab.patience / 2).await;
    lab.send(queue_message("c", "kept")).await;
    lab.batch(&lab.patient().turn_soon().await, [start("c"), queue_message("c", "kept")]);
}

async fn messages_for_the_unborn<F: ProviderFactory>(factory: &F) {
    let says = "messages for an unknown instance wait for its start and hold up nobody";
    let section = "unknown-instances";
    let lab = lab(factory, Promise { rule: "R8.29", says, section }).await.patient();
    lab.send(queue_message("nobody", "lost")).await;
    lab.send(raise("a", "x")).await;
    lab.send(cancel("a")).await;
    lab.send(start("b")).await;
    let other = lab.turn_soon().await;
    lab.same("the instance that can run", &other.item.instance, "b");
    lab.no_turn().await;
    lab.send(start("a")).await;
    lab.batch(&lab.turn_of("a").await, [raise("a", "x"), cancel("a"), start("a")]);
}

/// The store's clock and ours may differ so much.
const CLOCKS_DIFFER_MS: u64 = 20;

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
