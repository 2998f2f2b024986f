//! Attempts are counted by message, and the count survives whatever happens to it.

use super::ProviderFactory;
use super::lab::{AT_ONCE, Job, LONG, Lab, Promise, Turn, lab};
use super::words::*;
use crate::providers::TagFilter;

const SECTION: &str = "attempts-and-poison";

/// A turn's count goes up by one with every fetch, and by nothing else.
pub async fn a_turn_counts_its_fetches_and_nothing_else<F: ProviderFactory>(factory: &F) {
    let says = "each fetch counts one, whether its lock expired, was renewed or was given back";
    let lab = lab(factory, Promise { rule: "R8.22", says, section: SECTION }).await;
    lab.begin("a").await;
    lab.send(raise("a", "x")).await;
    counted(&lab, &lab.turn_of("a").await, 1); // never ended
    let turn = lab.patient().turn_soon().await;
    counted(&lab, &turn, 2);
    for _ in 0..3 {
        let renewed = lab.renew_orchestration_item_lock(&turn.token, LONG).await;
        lab.ok("renew_orchestration_item_lock", renewed);
    }
    let refused = lab.commit(&turn, commit().event(started("a"))).await;
    lab.refused("a commit with an event that is there", refused, &[]);
    lab.no_turn().await;
    give_turn_back(&lab, &turn, Some(AT_ONCE), false).await;
    let turn = lab.patient().turn_soon().await;
    counted(&lab, &turn, 3);
    give_turn_back(&lab, &turn, Some(lab.lock / 2), false).await;
    let turn = lab.patient().turn_soon().await;
    counted(&lab, &turn, 4);
    lab.committed(&turn, commit()).await;
    lab.send(raise("a", "x")).await;
    counted(&lab, &lab.turn_of("a").await, 1); // the same words, another message
}

/// An activity's count goes up by one with every fetch, and by nothing else.
pub async fn an_activity_counts_its_fetches_and_nothing_else<F: ProviderFactory>(factory: &F) {
    let says = "each fetch counts one, whether its lock expired, was renewed or was given back";
    let lab = lab(factory, Promise { rule: "R8.72", says, section: SECTION }).await;
    lab.queue(activity("a", 2)).await;
    lab.same("the attempt", lab.job().await.attempt, 1); // never ended
    let job = lab.patient().job_soon().await;
    lab.same("the attempt after the lock expired", job.attempt, 2);
    for _ in 0..3 {
        let renewed = lab.renew_work_item_lock(&job.token, LONG).await;
        lab.ok("renew_work_item_lock", renewed);
    }
    lab.no_job().await;
    lab.give_back(&job, None).await;
    let job = lab.patient().job_soon().await;
    lab.same("the attempt after renewals and a return", job.attempt, 3);
    lab.give_back(&job, Some(lab.lock / 2)).await;
    let job = lab.patient().job_soon().await;
    lab.same("the attempt after a return for later", job.attempt, 4);
    lab.answered(&job, None).await;
    lab.queue(activity("a", 2)).await;
    lab.same("the attempt of another activity of that number", lab.job().await.attempt, 1);
}

/// Each message keeps its own count.
pub async fn each_message_has_its_own_count<F: ProviderFactory>(factory: &F) {
    let says = "a count belongs to a message: others that come, go or hide do not change it";
    let lab = lab(factory, Promise { rule: "R7.80", says, section: SECTION }).await.patient();
    lab.begin("a").await;
    lab.send(raise("a", "tried")).await;
    for attempt in 1..=3 {
        let turn = lab.turn_of("a").await;
        counted(&lab, &turn, attempt);
        let later = (attempt == 3).then_some(lab.patience / 2);
        give_turn_back(&lab, &turn, later, false).await;
    }
    lab.send(raise("a", "fresh")).await;
    let turn = lab.turn_of("a").await;
    lab.batch(&turn, [raise("a", "fresh")]);
    counted(&lab, &turn, 1);
    lab.send(raise("a", "under the lock")).await;
    lab.committed(&turn, commit()).await;
    let turn = lab.turn_of("a").await;
    lab.batch(&turn, [raise("a", "under the lock")]);
    counted(&lab, &turn, 1);
    lab.committed(&turn, commit()).await;
    let turn = lab.turn_soon().await;
    lab.batch(&turn, [raise("a", "tried")]);
    counted(&lab, &turn, 4);
}

/// Counts end with the messages they belong to.
pub async fn counts_go_with_their_messages<F: ProviderFactory>(factory: &F) {
    let says = "a new message begins at 1, whatever was tried before under the same name";
    let lab = lab(factory, Promise { rule: "R8.22", says, section: SECTION }).await.patient();
    for _ in 0..2 {
        lab.begin("a").await;
        lab.send(raise("a", "x")).await;
        lab.queue(activity("a", 2)).await;
        for attempt in 1..=3 {
            let (turn, job) = (lab.turn_of("a").await, lab.job().await);
            counted(&lab, &turn, attempt);
            lab.same("the attempt of the activity", job.attempt, attempt);
            lab.abandon(&turn).await;
            lab.give_back(&job, None).await;
        }
        lab.send(raise("a", "fresh")).await;
        counted(&lab, &lab.turn_of("a").await, 4); // the highest of both
        lab.delete_by_force("a").await;
    }
}

/// Being looked at is no attempt.
pub async fn what_is_passed_over_is_not_counted<F: ProviderFactory>(factory: &F) {
    let says = "messages and activities that a fetch passes over are not counted";
    let lab = lab(factory, Promise { rule: "R7.66", says, section: SECTION }).await.patient();
    lab.begin_as("a", first_commit("a").pinned("9.0.0")).await;
    lab.send(raise("a", "x")).await;
    lab.queue(tagged(2, "gpu")).await;
    lab.queue(in_session(3, "s")).await;
    for _ in 0..3 {
        let turn = lab.try_turn(Some(&versions("0.0.0", "1.0.0"))).await;
        lab.expect(turn.is_none(), "no turn for the wrong version", turn);
        lab.no_job().await;
    }
    counted(&lab, &lab.turn_of("a").await, 1);
    let job = lab.job_tagged(&TagFilter::Any).await;
    lab.same("the attempt of the tagged activity", job.map(|job| job.attempt), Some(1));
    let job = lab.job_for("w").await;
    lab.same("the attempt of the session's activity", job.map(|job| job.attempt), Some(1));
}

/// One attempt is taken back, from the messages of that fetch.
pub async fn taking_back_takes_back_one<F: ProviderFactory>(factory: &F) {
    let says = "ignore_attempt takes back the last fetch, with a delay and after expiry too";
    let lab = lab(factory, Promise { rule: "R8.65", says, section: SECTION }).await;
    lab.send(start("a")).await;
    counted(&lab, &lab.turn_of("a").await, 1);
    lab.locks_run_out().await;
    let turn = lab.turn_of("a").await;
    counted(&lab, &turn, 2);
    lab.locks_run_out().await;
    give_turn_back(&lab, &turn, None, true).await; // R8.67: expired, and nobody took it
    let turn = lab.patient().turn_of("a").await;
    counted(&lab, &turn, 2);
    give_turn_back(&lab, &turn, Some(lab.lock / 2), true).await;
    lab.send(raise("a", "x")).await; // R8.29: waits for its start, and is not counted meanwhile
    let turn = lab.patient().turn_soon().await;
    lab.batch(&turn, [start("a"), raise("a", "x")]);
    counted(&lab, &turn, 2);
}

/// A session's activity keeps its count when the session changes hands.
pub async fn a_count_outlives_the_owner_of_its_session<F: ProviderFactory>(factory: &F) {
    let says = "the count of an activity goes on when another worker takes over its session";
    let lab = lab(factory, Promise { rule: "R8.84", says, section: SECTION }).await;
    lab.queue(in_session(2, "s")).await;
    let attempt = |job: Option<Job>| job.map(|job| job.attempt);
    lab.same("the first attempt", attempt(lab.job_for("one").await), Some(1));
    lab.locks_run_out().await;
    let job = lab.soon("the session to change hands", || lab.job_for("two")).await;
    lab.same("the attempt of the second owner", job.attempt, 2);
    lab.locks_run_out().await;
    let job = lab.soon("the session to change hands again", || lab.job_for("one")).await;
    lab.same("the attempt of the first owner", job.attempt, 3);
}

#[track_caller]
fn counted(lab: &Lab, turn: &Turn, attempt: u32) {
    lab.same("the attempt", turn.attempt, attempt);
}

async fn give_turn_back(
    lab: &Lab,
    turn: &Turn,
    delay: Option<std::time::Duration>,
    ignore_attempt: bool,
) {
    let given_back = lab.abandon_orchestration_item(&turn.token, delay, ignore_attempt).await;
    lab.ok("abandon_orchestration_item", given_back);
}
