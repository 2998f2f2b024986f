//! Times are real: when things began, changed and ended, and when they are due.

use std::time::Duration;

use tokio::time::Instant;

use super::lab::{LONG, Lab, Promise, lab};
use super::words::*;
use super::{ProviderFactory, Skip};

/// How far the store's clock may be from ours, where it does not tell its own.
const CLOCKS_DIFFER_MS: u64 = 1000;

/// Instances know when they came into being and when they last changed.
pub async fn instances_know_when_they_began_and_changed<F: ProviderFactory>(factory: &F) {
    let says = "created_at is the time of the first commit, updated_at that of the last";
    let lab = lab(factory, Promise { rule: "R6.52", says, section: "management" }).await;
    let before = lab.now_ms();
    lab.begin("a").await;
    let first = lab.info("a").await;
    between(&lab, "created_at", first.created_at, before);
    between(&lab, "updated_at", first.updated_at, before);
    lab.expect(first.created_at <= first.updated_at, "no change before the beginning", &first);
    lab.locks_run_out().await;
    let before = lab.now_ms();
    lab.step("a", commit().event(note(2))).await;
    let second = lab.info("a").await;
    lab.same("created_at after another commit", second.created_at, first.created_at);
    between(&lab, "updated_at after another commit", second.updated_at, before);
    lab.expect(first.updated_at < second.updated_at, "a later updated_at", (&first, &second));
    lab.locks_run_out().await;
    let before = lab.now_ms();
    lab.begin("b").await;
    between(&lab, "created_at of another instance", lab.info("b").await.created_at, before);
    let third = lab.info("a").await;
    lab.same("updated_at after the commit of another", third.updated_at, second.updated_at);
}

/// Executions know when they began and ended.
pub async fn executions_know_when_they_began_and_ended<F: ProviderFactory>(factory: &F) {
    let says = "started_at is the time of an execution's first commit, completed_at of its end";
    let lab = lab(factory, Promise { rule: "R6.52", says, section: "management" }).await;
    for status in ["Completed", "Failed", "ContinuedAsNew"] {
        let before = lab.now_ms();
        lab.begin(status).await;
        let begun = lab.execution(status, 1).await;
        between(&lab, "started_at", begun.started_at, before);
        lab.same("completed_at while it runs", begun.completed_at, None);
        lab.tick().await;
        lab.step(status, commit().event(note(2))).await;
        lab.same("completed_at", lab.execution(status, 1).await.completed_at, None);
        lab.tick().await;
        let before = lab.now_ms();
        lab.step(status, commit().event(note(3)).ends(status, "out")).await;
        let ended = lab.execution(status, 1).await;
        lab.same("started_at after the end", ended.started_at, begun.started_at);
        let ended_at = lab.ended_at(status, 1).await;
        between(&lab, "completed_at", ended_at, before);
        lab.expect(ended.started_at < ended_at, "an end after the beginning", &ended);
    }
}

/// What happened does not move.
pub async fn an_end_stays_where_it_was<F: ProviderFactory>(factory: &F) {
    let says = "later turns and executions move neither the beginning nor the end of one";
    let lab = lab(factory, Promise { rule: "R8.45", says, section: "management" }).await;
    lab.begin("a").await;
    lab.tick().await;
    lab.step("a", commit().ends("ContinuedAsNew", "x")).await;
    let first = lab.execution("a", 1).await;
    lab.tick().await;
    lab.step("a", commit().in_execution(2).event(started("a"))).await;
    lab.tick().await;
    lab.step("a", commit().event(note(9))).await; // something late for the first execution
    let again = lab.execution("a", 1).await;
    lab.same("started_at", again.started_at, first.started_at);
    lab.same("completed_at", again.completed_at, first.completed_at);
    let second = lab.execution("a", 2).await;
    let in_order = first.completed_at.is_some_and(|end| end <= second.started_at);
    lab.expect(in_order, "the second execution to begin after the first", (&first, &second));
    lab.same("completed_at of the second", second.completed_at, None);
    lab.expect(lab.info("a").await.created_at <= first.started_at, "an early created_at", first);
}

/// Looking changes no time.
pub async fn looking_changes_no_time<F: ProviderFactory>(factory: &F) {
    let says = "reading is no change: updated_at stays as it was";
    let lab = lab(factory, Promise { rule: "R6.52", says, section: "management" }).await;
    lab.begin_as("a", first_commit("a").event(set(2, "k", "v"))).await;
    let before = lab.info("a").await.updated_at;
    lab.tick().await;
    lab.event_ids("a").await;
    lab.kv("a").await;
    lab.stats("a").await;
    lab.custom_status("a", 0).await;
    lab.ok("read_status", lab.read_status("a").await);
    lab.instances().await;
    lab.same("updated_at", lab.info("a").await.updated_at, before);
}

/// A delayed message comes when its delay is over.
pub async fn a_delay_is_kept<F: ProviderFactory>(factory: &F) {
    let says = "a delayed message is hidden for its delay and fetchable after it";
    let section = "fetching-a-turn";
    let lab = lab(factory, Promise { rule: "R8.10", says, section }).await.patient();
    lab.begin("a").await;
    let (began, delay) = (Instant::now(), lab.patience / 8);
    lab.send_later(raise("a", "never"), LONG).await;
    lab.send_later(raise("a", "second"), delay * 2).await;
    lab.send_later(raise("a", "first"), delay).await;
    for (number, name) in [(1, "first"), (2, "second")] {
        let turn = lab.turn_soon().await;
        // On a slow machine both have come by now, in queue order.
        if turn.item.messages.len() == 2 {
            lab.not_before(delay * 2, began, "the second delay");
            return lab.batch(&turn, [raise("a", "second"), raise("a", "first")]);
        }
        lab.not_before(delay * number, began, "the delay");
        lab.batch(&turn, [raise("a", name)]);
        lab.committed(&turn, commit()).await;
    }
    lab.no_turn().await;
}

/// A turn or an activity given back with a delay comes when the delay is over.
pub async fn what_is_given_back_for_later_comes_later<F: ProviderFactory>(factory: &F) {
    let says = "what is given back with a delay is hidden for it, and comes back after it";
    let section = "giving-a-turn-back";
    let lab = lab(factory, Promise { rule: "R8.65", says, section }).await.patient();
    lab.send(start("a")).await;
    lab.queue(activity("a", 2)).await;
    let (turn, job) = (lab.turn_of("a").await, lab.job().await);
    let (began, delay) = (Instant::now(), lab.patience / 8);
    let abandoned = lab.abandon_orchestration_item(&turn.token, Some(delay), false).await;
    lab.ok("abandon_orchestration_item", abandoned);
    lab.batch(&lab.turn_soon().await, [start("a")]);
    lab.not_before(delay, began, "the delay of the turn");
    let began = Instant::now();
    lab.give_back(&job, Some(delay)).await;
    lab.same("the activity", lab.job_soon().await.id(), 2);
    lab.not_before(delay, began, "the delay of the activity");
}

/// Timers come in the order in which they are due.
pub async fn timers_come_when_they_are_due<F: ProviderFactory>(factory: &F) {
    let says = "timers of a commit become visible when they are due, each at its time";
    let section = "committing-a-turn";
    let lab = lab(factory, Promise { rule: "R8.53", says, section }).await.patient();
    let (now, step) = (lab.now_ms(), (lab.patience / 8).as_millis() as u64);
    let timers = [2, 1, 0].map(|number| timer_fired("a", now + number * step));
    let far = timer_fired("a", u64::MAX >> 1);
    let first =
        timers.iter().fold(first_commit("a"), |commit, timer| commit.message(timer.clone()));
    lab.begin_as("a", first.message(far)).await;
    let mut fired = 0;
    while fired < timers.len() {
        let turn = lab.turn_soon().await;
        fired += turn.item.messages.len();
        let due = lab.now_ms() + CLOCKS_DIFFER_MS.min(step / 2);
        for message in &turn.item.messages {
            let expected = timers.iter().filter(|timer| fire_at(timer) <= due);
            let in_time = expected.collect::<Vec<_>>().contains(&message);
            lab.expect(in_time, "no timer before it is due", message);
        }
        lab.committed(&turn, commit()).await;
    }
    lab.no_turn().await;
}

/// The clock a store tells is a clock.
pub async fn the_clock_of_the_store_runs<F: ProviderFactory>(factory: &F) -> Skip {
    let says = "the time a store tells runs like time, and is the one it goes by";
    let section = "committing-a-turn";
    let lab = lab(factory, Promise { rule: "R8.135", says, section }).await;
    if lab.store_time_ms().is_none() {
        return Some("the provider tells no time of its own");
    }
    let (began, before) = (Instant::now(), lab.now_ms());
    lab.locks_run_out().await;
    let (passed, after) = (began.elapsed(), lab.now_ms());
    let counted = Duration::from_millis(after.saturating_sub(before));
    let close = passed.mul_f64(0.8) <= counted && counted <= passed + lab.lock;
    lab.expect(close, &format!("about {passed:?} to have passed"), counted);
    let due = lab.now_ms() + 20;
    lab.begin_as("a", first_commit("a").message(timer_fired("a", due))).await;
    lab.patient().turn_soon().await;
    let now = lab.now_ms();
    lab.expect(due <= now, &format!("no timer before {due}"), now);
    None
}

/// A time must lie between then and now.
#[track_caller]
fn between(lab: &Lab, what: &str, time: u64, then: u64) {
    let slack = if lab.store_time_ms().is_some() { 50 } else { CLOCKS_DIFFER_MS };
    let times = then.saturating_sub(slack)..=lab.now_ms() + slack;
    lab.expect(times.contains(&time), &format!("{what} to be in {times:?}"), time);
}

fn fire_at(timer: &duroxide_core::model::WorkItem) -> u64 {
    match timer {
        duroxide_core::model::WorkItem::TimerFired { fire_at_ms, .. } => *fire_at_ms,
        _ => 0,
    }
}
