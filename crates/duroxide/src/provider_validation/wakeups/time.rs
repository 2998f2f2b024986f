//! Waits that time alone ends.

use std::future::Future;

use super::super::ProviderFactory;
use super::super::big_batches::more_than_a_turn;
use super::super::lab::{AT_ONCE, LONG, Lab, Promise, lab};
use super::super::words::*;
use super::work::{wait, wait_for_work};
use super::{MOMENTS, SECTION, beside_others, meanwhile, wait_for_turn};
use crate::providers::TagFilter;

/// Time brings what is hidden to light.
pub async fn what_becomes_visible_ends_the_wait<F: ProviderFactory>(factory: &F) {
    let says = "a fetch that waits returns soon after something hidden has become visible";
    let lab = lab(factory, Promise { rule: "R8.32", says, section: SECTION }).await;
    lab.begin_as("a", first_commit("a").pinned("2.0.0")).await;
    let hidden = lab.lock / 2;
    lab.send_later(raise("a", "x"), hidden).await;
    let turn = soon(&lab, wait_for_turn(&lab)).await;
    let due = lab.now_ms() + hidden.as_millis() as u64;
    lab.committed(&turn, commit().message(timer_fired("a", due))).await;
    let turn = soon(&lab, wait_for_turn(&lab)).await;
    lab.batch(&turn, [timer_fired("a", due)]);
    lab.queue(activity("a", 2)).await;
    let job = lab.patient().job().await;
    lab.give_back(&job, Some(hidden)).await;
    let job = soon(&lab, wait_for_work(&lab)).await;
    lab.same("the activity", job.id(), 2);
}

/// A sooner time counts, though somebody waits for a later one.
pub async fn a_sooner_time_ends_the_wait_sooner<F: ProviderFactory>(factory: &F) {
    let says = "a fetch that waits for a late message returns soon if an earlier one is queued";
    let lab = lab(factory, Promise { rule: "R8.32", says, section: SECTION }).await;
    lab.begin("a").await;
    lab.send_later(raise("a", "late"), LONG).await;
    let sends = lab.send_later(raise("a", "soon"), lab.lock / 4);
    let turn = meanwhile(&lab, MOMENTS[1], wait_for_turn(&lab), sends).await;
    lab.batch(&turn, [raise("a", "soon")]);
}

/// Locks that run out free what they locked.
pub async fn an_expired_lock_ends_the_wait<F: ProviderFactory>(factory: &F) {
    let says = "a fetch that waits returns soon after the lock of a dead worker has run out";
    let lab = lab(factory, Promise { rule: "R8.20", says, section: SECTION }).await;
    lab.begin_as("a", first_commit("a").pinned("2.0.0")).await;
    lab.send(raise("a", "x")).await;
    lab.queue(activity("a", 2)).await;
    lab.turn_of("a").await;
    let turn = soon(&lab, wait_for_turn(&lab)).await;
    lab.batch(&turn, [raise("a", "x")]);
    lab.job().await;
    let job = soon(&lab, wait_for_work(&lab)).await;
    lab.same("the activity", job.id(), 2);
}

/// A backlog that was given back for a while comes by itself.
pub async fn a_backlog_given_back_ends_the_wait<F: ProviderFactory>(factory: &F) {
    let says = "a fetch that waits returns soon after the delay of a turn given back is over";
    let brief = lab(factory, Promise { rule: "R8.149", says, section: SECTION }).await;
    let lab = brief.patient();
    lab.begin("a").await;
    let [first, second] = more_than_a_turn("a");
    for message in [&first, &second] {
        lab.send(message.clone()).await;
    }
    let turn = lab.turn_of("a").await;
    let gives_back = async {
        let delay = Some(brief.lock / 2);
        let result = lab.abandon_orchestration_item(&turn.token, delay, false).await;
        lab.ok("abandon_orchestration_item", result);
    };
    let turn = meanwhile(&lab, MOMENTS[1], wait_for_turn(&lab), gives_back).await;
    lab.expect(turn.item.messages == [first], "the turn that was given back", turn.attempt);
}

/// Leases that run out free the session.
pub async fn a_lapsed_session_ends_the_wait<F: ProviderFactory>(factory: &F) {
    let says = "a fetch that waits returns soon after the lease of a session has run out";
    let lab = lab(factory, Promise { rule: "R8.83", says, section: SECTION }).await;
    lab.queue(in_session(2, "s")).await;
    let (tags, heir) = (TagFilter::DefaultOnly, lab.patient().lease("heir"));
    let job = wait(&lab, Some(&lab.lease("gone")), &tags).await;
    lab.answered(&job, None).await; // the lease holds on
    lab.queue(in_session(3, "s")).await;
    let job = soon(&lab, wait(&lab, Some(&heir), &tags)).await;
    lab.same("the activity", job.id(), 3);
}

/// What time brings to one of those who wait.
async fn soon<T>(lab: &Lab, waits: impl Future<Output = T>) -> T {
    meanwhile(lab, AT_ONCE, beside_others(lab, waits), async {}).await
}
