//! Commits as bundles.

use super::super::ProviderFactory;
use super::super::lab::{Lab, Promise, lab};
use super::super::words::*;
use crate::providers::TurnCommit;
use duroxide_core::model::{Event, EventKind};

const SECTION: &str = "committing-a-turn";

/// A bundled commit does all that a commit does.
pub async fn a_bundled_commit_is_a_commit<F: ProviderFactory>(factory: &F) {
    let says = "commit_turn does what ack_orchestration_item does with the same parts";
    let lab = lab(factory, Promise { rule: "R8.132", says, section: SECTION }).await.patient();
    lab.send(start("a")).await;
    lab.queue(activity("a", 9)).await;
    let turn = lab.turn_of("a").await;
    let committed = lab.commit_turn(&turn.token, everything()).await;
    lab.expect(committed.is_ok(), "commit_turn to succeed", committed);
    lab.same("the events", lab.event_ids("a").await, [1, 2, 3]);
    lab.values_are("a", &[("k", "v")]).await;
    lab.same("the custom status", lab.custom_status("a", 0).await, Some((Some("s".into()), 1)));
    let info = lab.info("a").await;
    lab.same("the name", info.orchestration_name, "Orch");
    lab.same("the status", info.status, "Completed");
    lab.same("the output", info.output.as_deref(), Some("out"));
    lab.same("the activity", lab.job().await.item, activity("a", 4));
    lab.no_job().await; // the other one was cancelled
    lab.batch(&lab.turn_of("b").await, [start("b")]);
    lab.no_turn().await;
    let other = versions("1.0.0", "1.9.9");
    lab.send(raise("a", "x")).await;
    let unfit = lab.try_turn(Some(&other)).await;
    lab.expect(unfit.is_none(), "the pin to be stored", unfit);
}

/// A refused commit comes back whole and can be tried again.
pub async fn a_refused_commit_comes_back_whole<F: ProviderFactory>(factory: &F) {
    let says = "a refused commit_turn hands its commit back as it was, and changes nothing";
    let lab = lab(factory, Promise { rule: "R8.132", says, section: SECTION }).await;
    lab.send(start("a")).await;
    let expired = lab.turn_of("a").await;
    lab.locks_run_out().await;
    let back = handed_back(&lab, &expired.token, everything()).await;
    let back = handed_back(&lab, "no such token", back).await;
    let turn = lab.patient().turn_of("a").await;
    let mut doubled = back;
    doubled.history_delta.push(note(3));
    let mut back = handed_back(&lab, &turn.token, doubled).await;
    lab.same("the events", lab.event_ids("a").await, [0_u64; 0]);
    lab.no_job().await;
    lab.no_turn().await;
    back.history_delta.pop();
    let committed = lab.commit_turn(&turn.token, back).await;
    lab.expect(committed.is_ok(), "the commit to succeed at last", committed);
    lab.same("the events", lab.event_ids("a").await, [1, 2, 3]);
}

/// Event ids are given, unique, and not 0.
pub async fn events_without_a_place_are_refused<F: ProviderFactory>(factory: &F) {
    let says = "an event id that is 0, taken or given twice is refused, wherever it comes from";
    let lab = lab(factory, Promise { rule: "R8.61", says, section: SECTION }).await.patient();
    lab.begin_as("a", first_commit("a").event(note(4))).await;
    lab.send(raise("a", "x")).await;
    let turn = lab.turn_of("a").await;
    let bad: [&[u64]; 7] = [&[0], &[5, 0], &[0, 5], &[4], &[5, 1], &[5, 5], &[5, 6, 5]];
    for ids in bad {
        let events: Vec<Event> = ids.iter().map(|id| note(*id)).collect();
        let mut delta = commit();
        delta.history_delta.clone_from(&events);
        let what = format!("events {ids:?}");
        let acked = lab.commit(&turn, delta.clone()).await;
        lab.refused(&format!("ack_orchestration_item with {what}"), acked, &[]);
        handed_back(&lab, &turn.token, delta).await;
        let appended = lab.append_with_execution("a", 1, events).await;
        lab.refused(&format!("append_with_execution of {what}"), appended, &[]);
        lab.same("the events", lab.event_ids("a").await, [1, 4]);
    }
    // R8.60: ids say the order, not the time of writing; and each execution has its own.
    let late = commit().event(note(9)).event(note(2)).event(note(6));
    lab.committed(&turn, late).await;
    lab.same("the events", lab.event_ids("a").await, [1, 2, 4, 6, 9]);
    let appended = lab.append_with_execution("a", 2, vec![note(4)]).await;
    lab.ok("append_with_execution to another execution", appended);
}

/// A commit with something of everything.
fn everything() -> TurnCommit {
    let output = EventKind::OrchestrationCompleted { output: "out".into() };
    let first = commit().named("Orch", "1.0.0").pinned("2.0.0").ends("Completed", "out");
    let first = first.event(set(2, "k", "v")).event(show(1, Some("s"))).event(event(3, output));
    first.work(activity("a", 4)).message(start("b")).cancelling(identity("a", 9))
}

/// What a refused commit hands back, which must be what was given.
async fn handed_back(lab: &Lab, token: &str, commit: TurnCommit) -> TurnCommit {
    let given = format!("{commit:?}");
    match lab.commit_turn(token, commit).await {
        Ok(()) => lab.broken("commit_turn to be refused", given),
        Err(rejected) => {
            let permanent = !rejected.error.is_retryable();
            lab.expect(permanent, "a refusal for good", &rejected.error);
            lab.same("the commit handed back", format!("{:?}", rejected.commit), given);
            *rejected.commit
        }
    }
}
