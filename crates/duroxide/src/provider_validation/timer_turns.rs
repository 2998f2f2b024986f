//! Timers that are held back for whoever set them, fired together with the turn that has read them. A
//! store that cannot do that has to say so.

use std::time::Duration;

use duroxide_core::model::{EventKind, WorkItem};
use tokio::time::Instant;

use super::ProviderFactory;
use super::lab::{AT_ONCE, Lab, Promise, lab};
use super::words::*;
use crate::providers::{FetchedTurn, TimerTurn, TurnCommit};

const SECTION: &str = "timers-and-their-turn";
/// A message that is held back for so long is not seen in a check.
const AN_HOUR_MS: u64 = 3_600_000;

/// A timer that its sender means to fire is shown that much later, and not later than that.
pub async fn timers_are_held_back_as_asked<F: ProviderFactory>(factory: &F) {
    let says = "a timer becomes visible when it is due and its grace has passed";
    let lab = lab(factory, Promise { rule: "R8.150", says, section: SECTION }).await.patient();
    if asleep(&lab, "p", lab.now_ms()).await.is_none() {
        return;
    }
    lab.no_turn().await;
    // Only timers are held back.
    let others = raise("b", "now");
    lab.send(raise("p", "x")).await;
    let turn = fetched(&lab, "p").await;
    let set = commit().event(note(2)).message(timer_fired("p", lab.now_ms()));
    set_timers(&lab, turn, set.message(start("b")).message(others.clone()), AN_HOUR_MS).await;
    lab.batch(&lab.turn_of("b").await, [start("b"), others]);
    lab.no_turn().await;

    let (began, grace) = (Instant::now(), lab.patience / 8);
    let grace_ms = u64::try_from(grace.as_millis()).unwrap_or(u64::MAX);
    let timer = timer_fired("a", lab.now_ms());
    lab.send(start("a")).await;
    let turn = fetched(&lab, "a").await;
    set_timers(&lab, turn, first_commit("a").message(timer.clone()), grace_ms).await;
    lab.batch(&lab.turn_soon().await, [timer]);
    lab.not_before(grace, began, "the grace");
}

/// Everything the turn says is true afterwards, and the timer is gone.
pub async fn a_timer_and_its_turn_are_one_commit<F: ProviderFactory>(factory: &F) {
    let says = "the timer is gone, and the turn that has read it is stored";
    let lab = lab(factory, Promise { rule: "R8.150", says, section: SECTION }).await.patient();
    let Some(seen) = asleep(&lab, "a", lab.now_ms()).await else { return };
    lab.queue(activity("a", 9)).await;
    let turn = commit().event(note(2)).event(set(3, "k", "1")).event(show(4, Some("shown")));
    let turn = turn.work(activity("a", 5)).message(start("b")).cancelling(identity("a", 9));
    fired(&lab, TimerTurn { commit: turn, ..seen.clone() }).await;
    lab.same("the events", lab.event_ids("a").await, [1, 2, 3, 4]);
    lab.values_are("a", &[("k", "1")]).await;
    lab.same("the custom status", lab.custom_status("a", 0).await, Some((Some("shown".into()), 1)));
    lab.same("the activity", lab.job().await.item, activity("a", 5));
    lab.no_job().await;
    lab.batch(&lab.turn_of("b").await, [start("b")]);
    lab.no_turn().await;
    // It fires once.
    refused(&lab, seen_now(&lab, seen, commit().event(note(5))).await).await;
    lab.send(raise("a", "x")).await;
    lab.batch(&lab.turn_of("a").await, [raise("a", "x")]);
}

/// Several of them, and not those that are not due; the turn may set others, or be the last.
pub async fn a_timer_turn_may_be_any_turn<F: ProviderFactory>(factory: &F) {
    let says = "a turn that is committed with timers may do whatever a turn may do";
    let lab = lab(factory, Promise { rule: "R8.150", says, section: SECTION }).await.patient();
    let now = lab.now_ms();
    let Some(seen) = asleep(&lab, "a", now).await else { return };
    let (two, three) = (timer(3, now), timer(4, now));
    let more = commit().event(note(2)).message(two.clone()).message(three.clone());
    let more = more.change(|turn| turn.timer_grace_ms = AN_HOUR_MS);
    fired(&lab, TimerTurn { commit: more, ..seen.clone() }).await;
    lab.no_turn().await;
    let turn = seen_now(&lab, seen, commit().event(note(3)).message(raise("a", "self"))).await;
    fired(&lab, TimerTurn { timers: vec![three, two], ..turn.clone() }).await;
    let own = lab.turn_of("a").await;
    lab.batch(&own, [raise("a", "self")]);
    let last = commit().event(note(4)).message(timer(5, now));
    let last = last.change(|turn| turn.timer_grace_ms = AN_HOUR_MS);
    let stored = lab.commit_turn(&own.token, last).await.map_err(|rejected| rejected.error);
    lab.ok("commit_turn", stored);
    let output = EventKind::OrchestrationCompleted { output: "out".into() };
    let end = commit().event(event(5, output)).ends("Completed", "out");
    let turn = seen_now(&lab, turn, end).await;
    fired(&lab, TimerTurn { timers: vec![timer(5, now)], ..turn }).await;
    lab.same("the status", lab.info("a").await.status, "Completed");
    lab.no_turn().await;
}

/// What the turn has not seen keeps it out.
pub async fn only_an_instance_at_rest_takes_a_timer_turn<F: ProviderFactory>(factory: &F) {
    let says = "a turn that has not seen everything is refused, and its timer stays";
    let lab = lab(factory, Promise { rule: "R8.150", says, section: SECTION }).await.patient();
    let Some(seen) = asleep(&lab, "a", lab.now_ms()).await else { return };

    // Another end of the history, another execution, somebody else, another life.
    lab.begin("b").await;
    let unseen: [fn(&mut TimerTurn); 6] = [
        |turn| turn.last_event_id = 7,
        |turn| turn.last_event_at_ms += 1,
        |turn| turn.commit.execution_id = 2,
        |turn| turn.instance = "b".into(),
        |turn| turn.instance = "nobody".into(),
        |turn| turn.incarnation = turn.incarnation.wrapping_add(1).max(1),
    ];
    let tells_lives = seen.incarnation != 0;
    for change in &unseen[..if tells_lives { 6 } else { 5 }] {
        let mut turn = seen.clone();
        change(&mut turn);
        refused(&lab, turn).await;
    }
    // A message to be read, the lock of somebody who reads it, what they wrote.
    lab.send(raise("a", "x")).await;
    refused(&lab, seen.clone()).await;
    let turn = lab.turn_of("a").await;
    lab.batch(&turn, [raise("a", "x")]);
    refused(&lab, seen.clone()).await;
    lab.committed(&turn, commit().event(note(2))).await;
    refused(&lab, TimerTurn { commit: commit().event(note(3)), ..seen.clone() }).await;

    // What is not due yet disturbs nobody.
    lab.send_later(raise("a", "later"), Duration::from_secs(3600)).await;
    fired(&lab, seen_now(&lab, seen, commit().event(note(3))).await).await;
    lab.same("the events", lab.event_ids("a").await, [1, 2, 3]);
}

/// A timer fires when it is due, once, and only if it was held back.
pub async fn only_timers_that_are_due_and_held_back_are_fired<F: ProviderFactory>(factory: &F) {
    let says = "a timer that is not due, not there, or not held back is not fired";
    let lab = lab(factory, Promise { rule: "R8.150", says, section: SECTION }).await.patient();
    let now = lab.now_ms();
    let Some(seen) = asleep(&lab, "a", now).await else { return };
    let early = timer(3, now + AN_HOUR_MS);
    let set = commit().event(note(2)).message(early.clone());
    fired(&lab, TimerTurn { commit: set, ..seen.clone() }).await;
    let due = timer(6, now);
    lab.send(raise("a", "x")).await;
    let turn = fetched(&lab, "a").await;
    set_timers(&lab, turn, commit().event(note(3)).message(due.clone()), AN_HOUR_MS).await;
    let seen = seen_now(&lab, seen, commit().event(note(4))).await;
    let wrong = [
        vec![],
        vec![early.clone()],
        vec![due.clone(), early],
        vec![due.clone(), due.clone()],
        vec![timer(6, now - 1)],
        vec![timer(7, now)],
        vec![raise("a", "x")],
    ];
    for timers in wrong {
        refused(&lab, TimerTurn { timers, ..seen.clone() }).await;
    }
    fired(&lab, TimerTurn { timers: vec![due], ..seen.clone() }).await;

    // One that was fetched and given back goes the usual way.
    let again = timer(8, now);
    lab.send(raise("a", "x")).await;
    let turn = fetched(&lab, "a").await;
    set_timers(&lab, turn, commit().event(note(5)).message(again.clone()), 0).await;
    let seen = seen_now(&lab, seen, commit().event(note(6))).await;
    let seen = TimerTurn { timers: vec![again], ..seen };
    refused(&lab, seen.clone()).await;
    let turn = lab.turn_of("a").await;
    refused(&lab, seen.clone()).await;
    let later = Some(Duration::from_secs(3600));
    let given_back = lab.abandon_orchestration_item(&turn.token, later, false).await;
    lab.ok("abandon_orchestration_item", given_back);
    refused(&lab, seen).await;
}

/// If the turn cannot be stored, the timer stays.
pub async fn a_timer_with_its_turn_or_neither<F: ProviderFactory>(factory: &F) {
    let says = "a turn that makes no sense is refused, and its timer stays";
    let lab = lab(factory, Promise { rule: "R8.150", says, section: SECTION }).await.patient();
    let Some(seen) = asleep(&lab, "a", lab.now_ms()).await else { return };
    let bad = [
        commit().event(note(2)).event(note(2)),
        commit().event(note(1)),
        commit().event(note(0)),
        commit().event(note(2)).message(activity("a", 5)),
        commit().event(note(2)).work(start("c")),
    ];
    for commit in bad {
        refused(&lab, TimerTurn { commit, ..seen.clone() }).await;
    }
    lab.no_turn().await;
    fired(&lab, TimerTurn { commit: commit().event(note(2)), ..seen }).await;
}

/// An instance whose timer is due and held back; `None` if the store cannot commit its turn with it, and
/// says so.
async fn asleep(lab: &Lab, instance: &str, fire_at_ms: u64) -> Option<TimerTurn> {
    lab.send(start(instance)).await;
    let turn = fetched(lab, instance).await;
    let incarnation = turn.incarnation;
    let takes = lab.commits_timer_turns();
    let first = first_commit(instance).message(timer_fired(instance, fire_at_ms));
    set_timers(lab, turn, first, if takes { AN_HOUR_MS } else { 0 }).await;
    let turn = TimerTurn {
        instance: instance.into(),
        incarnation,
        last_event_id: 0,
        last_event_at_ms: 0,
        timers: vec![timer_fired(instance, fire_at_ms)],
        commit: commit(),
    };
    let turn = seen_now(lab, turn, commit().event(note(2))).await;
    if takes {
        return Some(turn);
    }
    refused(lab, turn).await;
    lab.batch(&lab.turn_of(instance).await, [timer_fired(instance, fire_at_ms)]);
    None
}

/// A commit whose timers are held back for so long.
async fn set_timers(lab: &Lab, turn: FetchedTurn, mut commit: TurnCommit, grace_ms: u64) {
    for event in &mut commit.history_delta {
        event.instance_id.clone_from(&turn.item.instance);
    }
    commit.timer_grace_ms = grace_ms;
    let stored = lab.commit_turn(&turn.lock_token, commit).await;
    lab.ok("commit_turn", stored.map_err(|rejected| rejected.error));
}

async fn fetched(lab: &Lab, instance: &str) -> FetchedTurn {
    match lab.ok("fetch_turn", lab.fetch_turn(lab.lock, AT_ONCE, None).await) {
        Some(turn) if turn.item.instance == instance => turn,
        other => lab.broken(&format!("a turn of {instance:?}"), other),
    }
}

/// The same for a turn that has seen all there is now.
async fn seen_now(lab: &Lab, turn: TimerTurn, commit: TurnCommit) -> TimerTurn {
    let history = lab.ok("read", lab.read(&turn.instance).await);
    let last = history.last();
    TimerTurn {
        last_event_id: last.map_or(0, |event| event.event_id),
        last_event_at_ms: last.map_or(0, |event| event.timestamp_ms),
        commit,
        ..turn
    }
}

fn timer(id: u64, fire_at_ms: u64) -> WorkItem {
    WorkItem::TimerFired { instance: "a".into(), execution_id: 1, id, fire_at_ms }
}

async fn fired(lab: &Lab, turn: TimerTurn) {
    lab.ok("commit_timer_turn", lab.commit_timer_turn(turn).await);
}

/// A turn that must be refused for good, and must not have done anything.
async fn refused(lab: &Lab, turn: TimerTurn) {
    let before = lab.event_ids("a").await;
    lab.refused("commit_timer_turn", lab.commit_timer_turn(turn).await, &[]);
    lab.same("the events", lab.event_ids("a").await, before);
}
