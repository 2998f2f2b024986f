//! Locks end: by themselves, by renewal later, by giving back at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::time::Instant;

use super::ProviderFactory;
use super::lab::{AT_ONCE, Lab, Promise, lab};
use super::patience::OUTLASTING;
use super::words::*;

const SECTION: &str = "renewing-locks";

/// A turn whose lock ran out is somebody else's.
pub async fn test_lock_expires_after_timeout<F: ProviderFactory>(factory: &F) {
    let says = "a lock ends after its time; then its token is worth nothing";
    let lab = lab(factory, Promise { rule: "R8.41", says, section: SECTION }).await;
    lab.send(start("a")).await;
    let began = Instant::now();
    let lapsing = lab.turn_of("a").await;
    let next = lab.patient().turn_soon().await;
    lab.not_before(lab.lock, began, "the lock");
    lab.expect(next.token != lapsing.token, "a new token", &next.token);
    lab.batch(&next, [start("a")]);
    let late = first_commit("a").work(activity("a", 2)).message(start("b"));
    lab.refused("a commit after the lock ran out", lab.commit(&lapsing, late).await, &[]);
    lab.no_job().await;
    lab.no_turn().await;
    lab.committed(&next, first_commit("a")).await;
    lab.same("the events", lab.event_ids("a").await, [1]);
}

/// A turn that is given back can be fetched at once.
pub async fn test_abandon_releases_lock_immediately<F: ProviderFactory>(factory: &F) {
    let says = "a turn that is given back can be fetched at once, with all its messages";
    let section = "giving-a-turn-back";
    let brief = lab(factory, Promise { rule: "R8.65", says, section }).await;
    let lab = brief.patient();
    lab.send(start("a")).await;
    lab.send(raise("a", "x")).await;
    let first = lab.turn_of("a").await;
    lab.no_turn().await;
    lab.abandon(&first).await;
    let second = lab.turn_of("a").await;
    lab.batch(&second, [start("a"), raise("a", "x")]);
    lab.expect(second.token != first.token, "a new token", &second.token);
    let again = lab.abandon_orchestration_item(&first.token, None, false).await;
    lab.refused("giving the turn back twice", again, &[]);
    let late = lab.commit(&first, first_commit("a")).await;
    lab.refused("a commit with the token given back", late, &["Invalid lock token"]);
    lab.committed(&second, first_commit("a")).await;

    // R8.67: after the lock ran out, too, unless somebody else has taken the turn.
    lab.send(raise("a", "y")).await;
    let lapsed = brief.turn_of("a").await;
    brief.locks_run_out().await;
    let late = lab.abandon_orchestration_item(&lapsed.token, Some(OUTLASTING), false).await;
    lab.ok("abandon_orchestration_item after the lock ran out", late);
    lab.no_turn().await; // hidden as asked
}

/// A commit ends the lock.
pub async fn test_lock_renewal_on_ack<F: ProviderFactory>(factory: &F) {
    let says = "a commit ends the lock: what came meanwhile can be fetched at once";
    let section = "committing-a-turn";
    let lab = lab(factory, Promise { rule: "R8.54", says, section }).await.patient();
    lab.send(start("a")).await;
    let turn = lab.turn_of("a").await;
    lab.send(raise("a", "meanwhile")).await;
    lab.no_turn().await;
    lab.committed(&turn, first_commit("a")).await;
    let next = lab.turn_of("a").await;
    lab.batch(&next, [raise("a", "meanwhile")]);
    lab.committed(&next, commit().event(note(2))).await;
    lab.send(raise("a", "after")).await;
    lab.batch(&lab.turn_of("a").await, [raise("a", "after")]);
}

/// Many who wait get nothing before the lock ends, and one of them the turn after.
pub async fn test_concurrent_lock_attempts_respect_expiration<F: ProviderFactory>(factory: &F) {
    let says = "however many try, nobody gets a turn before its lock ends, and one does then";
    let lab = lab(factory, Promise { rule: "R8.20", says, section: SECTION }).await;
    lab.send(start("a")).await;
    let held = lab.patient().turn_of("a").await;
    let early = lab.crowd(5, |lab| async move { fetch(&lab).await }).await;
    lab.same("who got the locked turn", early, [false; 5]);
    lab.abandon(&held).await;
    let began = Instant::now();
    lab.turn_of("a").await;
    let taken = Arc::new(AtomicBool::new(false));
    let wait = move |lab: Lab| {
        let taken = Arc::clone(&taken);
        async move {
            let look = || async {
                let mine = fetch(&lab).await;
                let over = taken.fetch_or(mine, Ordering::SeqCst) || mine;
                over.then_some(mine)
            };
            lab.soon("the turn to be fetched by somebody", look).await
        }
    };
    let served = lab.patient().crowd(5, wait).await;
    lab.not_before(lab.lock, began, "the lock");
    let winners = served.into_iter().filter(|mine| *mine).count();
    lab.same("how many got the turn", winners, 1);
}

/// Renewal succeeds while the lock holds, again and again.
pub async fn test_worker_lock_renewal_success<F: ProviderFactory>(factory: &F) {
    let says = "whoever holds an activity can renew its lock, as often as needed, and answer it";
    let lab = lab(factory, Promise { rule: "R8.75", says, section: SECTION }).await.patient();
    lab.begin("a").await;
    lab.queue(activity("a", 2)).await;
    let job = lab.job().await;
    for _ in 0..3 {
        let renewed = lab.renew_work_item_lock(&job.token, OUTLASTING).await;
        lab.ok("renew_work_item_lock", renewed);
        lab.no_job().await;
    }
    lab.answered(&job, Some(done("a", 2))).await;
    lab.batch(&lab.turn_of("a").await, [done("a", 2)]);
}

/// An unknown token renews nothing.
pub async fn test_worker_lock_renewal_invalid_token<F: ProviderFactory>(factory: &F) {
    let says = "an unknown token cannot renew an activity's lock";
    let lab = lab(factory, Promise { rule: "R8.75", says, section: SECTION }).await;
    let nothing = lab.renew_work_item_lock("no such token", OUTLASTING).await;
    lab.refused("renew_work_item_lock on an empty queue", nothing, &[]);
    lab.queue(activity("a", 2)).await;
    lab.job().await;
    let renewed = lab.renew_work_item_lock("no such token", OUTLASTING).await;
    lab.refused("renew_work_item_lock", renewed, &[]);
    lab.job_soon().await; // the lock of the other was not renewed
}

/// A lock that ran out cannot be renewed.
pub async fn test_worker_lock_renewal_after_expiration<F: ProviderFactory>(factory: &F) {
    let says = "a lock that ran out cannot be renewed, even if nobody else took the activity";
    let lab = lab(factory, Promise { rule: "R8.75", says, section: SECTION }).await;
    lab.queue(activity("a", 2)).await;
    let lapsed = lab.job().await;
    lab.locks_run_out().await;
    let renewed = lab.renew_work_item_lock(&lapsed.token, OUTLASTING).await;
    lab.refused("renew_work_item_lock after the lock ran out", renewed, &[]);
    let next = lab.patient().job().await;
    let renewed = lab.renew_work_item_lock(&lapsed.token, OUTLASTING).await;
    lab.refused("renew_work_item_lock of somebody else's activity", renewed, &[]);
    lab.answered(&next, None).await;
}

/// A renewed lock holds past its first end.
pub async fn test_worker_lock_renewal_extends_timeout<F: ProviderFactory>(factory: &F) {
    let says = "a renewed lock holds until its new end and no longer";
    let lab = lab(factory, Promise { rule: "R8.75", says, section: SECTION }).await;
    lab.queue(activity("a", 2)).await;
    let renew = || async {
        let job = lab.job_soon().await;
        lab.renew_work_item_lock(&job.token, OUTLASTING).await.map(|()| job)
    };
    let job = lab.in_time("renew_work_item_lock", renew).await;
    lab.locks_run_out().await;
    lab.no_job().await;
    let began = Instant::now();
    let renewed = lab.renew_work_item_lock(&job.token, lab.lock).await;
    lab.ok("renew_work_item_lock", renewed);
    lab.job_soon().await;
    lab.not_before(lab.lock, began, "the renewed lock");
}

/// An answered activity cannot be renewed.
pub async fn test_worker_lock_renewal_after_ack<F: ProviderFactory>(factory: &F) {
    let says = "the lock of an activity that was answered cannot be renewed";
    let lab = lab(factory, Promise { rule: "R8.75", says, section: SECTION }).await.patient();
    lab.queue(activity("a", 2)).await;
    let job = lab.job().await;
    lab.answered(&job, None).await;
    let renewed = lab.renew_work_item_lock(&job.token, OUTLASTING).await;
    lab.refused("renew_work_item_lock after the answer", renewed, &[]);
    lab.no_job().await;
}

/// An activity that is given back can be fetched at once.
pub async fn test_abandon_work_item_releases_lock<F: ProviderFactory>(factory: &F) {
    let says = "an activity that is given back can be fetched at once, under a new token";
    let section = "the-worker-queue";
    let brief = lab(factory, Promise { rule: "R8.76", says, section }).await;
    let lab = brief.patient();
    lab.queue(activity("a", 2)).await;
    let unknown = lab.abandon_work_item("no such token", None, false).await;
    lab.refused("abandon_work_item with an unknown token", unknown, &[]);
    let first = lab.job().await;
    lab.no_job().await;
    lab.give_back(&first, None).await;
    let second = lab.job().await;
    lab.same("the activity", &second.item, &first.item);
    lab.expect(second.token != first.token, "a new token", &second.token);
    let late = lab.ack_work_item(&first.token, None).await;
    lab.refused("ack_work_item with the token given back", late, &[]);
    lab.answered(&second, None).await;
    lab.no_job().await;

    // After the lock ran out, too, unless somebody else has taken it.
    lab.queue(activity("a", 3)).await;
    let lapsed = brief.job().await;
    brief.locks_run_out().await;
    lab.give_back(&lapsed, Some(OUTLASTING)).await;
    lab.no_job().await; // hidden as asked
}

/// An activity that is given back for later comes later.
pub async fn test_abandon_work_item_with_delay<F: ProviderFactory>(factory: &F) {
    let says = "an activity given back with a delay is hidden so long and then fetched";
    let section = "the-worker-queue";
    let lab = lab(factory, Promise { rule: "R8.76", says, section }).await;
    lab.queue(activity("a", 2)).await;
    let first = lab.patient().job().await;
    let began = Instant::now();
    lab.give_back(&first, Some(lab.lock)).await;
    let second = lab.job_soon().await;
    lab.not_before(lab.lock, began, "the delay");
    lab.same("the activity", &second.item, &first.item);
}

/// An answer after the lock ran out does not count.
pub async fn test_worker_ack_fails_after_lock_expiry<F: ProviderFactory>(factory: &F) {
    let says = "an answer after the lock ran out is refused, even if nobody took the activity";
    let section = "the-worker-queue";
    let lab = lab(factory, Promise { rule: "R8.74", says, section }).await;
    lab.begin("a").await;
    lab.queue(activity("a", 2)).await;
    let lapsed = lab.job().await;
    lab.locks_run_out().await;
    let late = lab.ack_work_item(&lapsed.token, Some(done("a", 2))).await;
    lab.refused("ack_work_item after the lock ran out", late, &[]);
    lab.no_turn().await; // the outcome was not queued
    let next = lab.patient().job().await;
    let late = lab.ack_work_item(&lapsed.token, Some(done("a", 2))).await;
    lab.refused("ack_work_item of somebody else's activity", late, &[]);
    lab.no_turn().await;
    lab.answered(&next, Some(done("a", 2))).await;
    lab.batch(&lab.turn_of("a").await, [done("a", 2)]);
}

/// A turn's lock can be renewed while it holds, and not after.
pub async fn test_orchestration_lock_renewal_after_expiration<F: ProviderFactory>(factory: &F) {
    let says = "a turn's lock can be renewed while it holds, and not after";
    let lab = lab(factory, Promise { rule: "R8.68", says, section: SECTION }).await;
    lab.send(start("a")).await;
    let renew = || async {
        let turn = lab.turn_soon().await;
        lab.renew_orchestration_item_lock(&turn.token, OUTLASTING).await.map(|()| turn)
    };
    let held = lab.in_time("renew_orchestration_item_lock", renew).await;
    lab.locks_run_out().await;
    lab.no_turn().await;
    lab.abandon(&held).await;
    let lapsed = lab.turn_of("a").await;
    lab.locks_run_out().await;
    let renewed = lab.renew_orchestration_item_lock(&lapsed.token, OUTLASTING).await;
    lab.refused("renew_orchestration_item_lock after the lock ran out", renewed, &[]);
    let next = lab.patient().turn_of("a").await;
    let renewed = lab.renew_orchestration_item_lock(&lapsed.token, OUTLASTING).await;
    lab.refused("renew_orchestration_item_lock of somebody else's turn", renewed, &[]);
    lab.committed(&next, first_commit("a")).await;
}

/// Whether a fetch among many gets a turn.
async fn fetch(lab: &Lab) -> bool {
    let fetch = || lab.fetch_orchestration_item(lab.lock, AT_ONCE, None);
    lab.through("fetch_orchestration_item", fetch).await.is_some()
}
