//! An activity's outcome and the turn that has read it, committed together. A store that cannot do
//! that has to say so.

use std::time::Duration;

use duroxide_core::model::EventKind;

use super::ProviderFactory;
use super::big_batches::more_than_a_turn;
use super::lab::{Job, LONG, Lab, Promise, lab};
use super::words::*;
use crate::providers::{DirectTurn, TurnCommit};

const SECTION: &str = "an-outcome-and-its-turn";

/// Everything the turn says is true afterwards, and no message was needed.
pub async fn an_outcome_and_its_turn_are_one_commit<F: ProviderFactory>(factory: &F) {
    let says = "the activity is gone, and the turn that has read its outcome is stored";
    let lab = lab(factory, Promise { rule: "R8.142", says, section: SECTION }).await.patient();
    let Some(job) = at_work(&lab).await else { return };
    lab.queue(activity("a", 9)).await;
    let turn = commit().event(note(2)).event(set(3, "k", "1")).event(show(4, Some("shown")));
    let turn = turn.work(activity("a", 5)).message(start("b")).cancelling(identity("a", 9));
    committed(&lab, &job, turn).await;
    lab.same("the events", lab.event_ids("a").await, [1, 2, 3, 4]);
    lab.values_are("a", &[("k", "1")]).await;
    lab.same("the custom status", lab.custom_status("a", 0).await, Some((Some("shown".into()), 1)));
    lab.same("the activity", lab.job().await.item, activity("a", 5));
    lab.no_job().await;
    lab.batch(&lab.turn_of("b").await, [start("b")]);
    lab.no_turn().await;
    lab.refused("ack_work_item", lab.ack_work_item(&job.token, None).await, &[]);
    lab.send(raise("a", "x")).await;
    lab.batch(&lab.turn_of("a").await, [raise("a", "x")]);
}

/// The turn may end its instance, or write to itself.
pub async fn a_direct_turn_may_be_any_turn<F: ProviderFactory>(factory: &F) {
    let says = "a turn that is committed with an outcome may do whatever a turn may do";
    let lab = lab(factory, Promise { rule: "R8.142", says, section: SECTION }).await.patient();
    let Some(job) = at_work(&lab).await else { return };
    committed(&lab, &job, commit().event(note(2)).message(raise("a", "self"))).await;
    let turn = lab.turn_of("a").await;
    lab.batch(&turn, [raise("a", "self")]);
    lab.committed(&turn, commit().event(note(3)).work(activity("a", 6))).await;
    let job = lab.job().await;
    let output = EventKind::OrchestrationCompleted { output: "out".into() };
    committed(&lab, &job, commit().event(event(4, output)).ends("Completed", "out")).await;
    let info = lab.info("a").await;
    lab.same("the status", info.status, "Completed");
    lab.same("the output", info.output.as_deref(), Some("out"));
    lab.no_turn().await;
    lab.no_job().await;
}

/// With the first turn of the next execution, where the store takes such turns.
pub async fn a_direct_turn_may_have_a_successor<F: ProviderFactory>(factory: &F) {
    let says = "an outcome, its turn and the first turn of the next execution are one commit";
    let lab = lab(factory, Promise { rule: "R8.142", says, section: SECTION }).await.patient();
    let Some(job) = at_work(&lab).await else { return };
    if !lab.commits_successors() {
        return;
    }
    let next = first_commit("a").in_execution(2).work(activity("a", 7));
    let both = commit().event(note(2)).ends("ContinuedAsNew", "next");
    committed(&lab, &job, both.change(|turn| turn.successor = Some(Box::new(next)))).await;
    lab.same("the current execution", lab.info("a").await.current_execution_id, 2);
    lab.same("the events", lab.event_ids("a").await, [1]);
    lab.same("the activity", lab.job().await.item, activity("a", 7));
    lab.no_turn().await;
}

/// What the turn has not seen keeps it out.
pub async fn only_an_instance_at_rest_takes_a_direct_turn<F: ProviderFactory>(factory: &F) {
    let says = "a turn that has not seen everything is refused, and its activity stays";
    let lab = lab(factory, Promise { rule: "R8.142", says, section: SECTION }).await.patient();
    let Some(job) = at_work(&lab).await else { return };
    let seen = direct(&lab, &job, commit().event(note(2))).await;

    // Another end of the history, another execution, somebody else.
    lab.begin("b").await;
    let unseen: [fn(&mut DirectTurn); 5] = [
        |turn| turn.last_event_id = 7,
        |turn| turn.last_event_at_ms += 1,
        |turn| turn.commit.execution_id = 2,
        |turn| turn.instance = "b".into(),
        |turn| turn.instance = "nobody".into(),
    ];
    for change in unseen {
        let mut turn = seen.clone();
        change(&mut turn);
        refused(&lab, turn).await;
    }
    // A message to be read, the lock of somebody who reads it, what they wrote.
    lab.send(raise("a", "x")).await;
    refused(&lab, seen.clone()).await;
    let turn = lab.turn_of("a").await;
    refused(&lab, seen.clone()).await;
    lab.committed(&turn, commit().event(note(2))).await;
    let late = DirectTurn { commit: commit().event(note(3)), ..seen };
    lab.refused("commit_direct_turn", lab.commit_direct_turn(late).await, &[]);
    lab.same("the events", lab.event_ids("a").await, [1, 2]);

    // What is not due yet disturbs nobody.
    lab.send_later(raise("a", "later"), Duration::from_secs(3600)).await;
    committed(&lab, &job, commit().event(note(3))).await;
    lab.same("the events", lab.event_ids("a").await, [1, 2, 3]);
    lab.no_job().await;
}

/// What waits to be read again is not seen by a direct turn.
pub async fn an_instance_that_waits_takes_no_direct_turn<F: ProviderFactory>(factory: &F) {
    let says = "an instance whose turn was given back for a while takes no direct turn";
    let lab = lab(factory, Promise { rule: "R8.149", says, section: SECTION }).await.patient();
    let Some(job) = at_work(&lab).await else { return };
    for message in more_than_a_turn("a") {
        lab.send(message).await;
    }
    let turn = lab.turn_of("a").await;
    let result = lab.abandon_orchestration_item(&turn.token, Some(LONG), false).await;
    lab.ok("abandon_orchestration_item", result);
    let unseen = direct(&lab, &job, commit().event(note(2))).await;
    refused(&lab, unseen).await;
    lab.answered(&job, Some(done("a", 2))).await; // the usual way waits behind the others
    lab.no_turn().await;
}

/// Nor does anybody commit a turn whose activity they do not have.
pub async fn only_who_has_the_activity_commits_its_turn<F: ProviderFactory>(factory: &F) {
    let says = "without a valid lock on the activity there is no turn";
    let brief = lab(factory, Promise { rule: "R8.142", says, section: SECTION }).await;
    let Some(job) = at_work(&brief).await else { return };
    let lab = brief.patient();
    let turn = direct(&lab, &job, commit().event(note(2))).await;
    let token = "made up".to_owned();
    refused(&lab, DirectTurn { work_token: token, ..turn.clone() }).await;
    let again = lab.job_soon().await;
    refused(&lab, turn).await;
    lab.ok("ack_work_item", lab.ack_work_item(&again.token, None).await);
    let turn = direct(&lab, &again, commit().event(note(2))).await;
    refused(&lab, turn).await;
}

/// If the turn cannot be stored, the activity stays.
pub async fn an_outcome_with_its_turn_or_neither<F: ProviderFactory>(factory: &F) {
    let says = "a turn that makes no sense is refused, and its activity stays";
    let lab = lab(factory, Promise { rule: "R8.142", says, section: SECTION }).await.patient();
    let Some(job) = at_work(&lab).await else { return };
    let bad = [
        commit().event(note(2)).event(note(2)),
        commit().event(note(1)),
        commit().event(note(0)),
        commit().event(note(2)).message(activity("a", 5)),
        commit().event(note(2)).work(start("c")),
    ];
    for turn in bad {
        refused(&lab, direct(&lab, &job, turn).await).await;
    }
    lab.no_turn().await;
    committed(&lab, &job, commit().event(note(2))).await;
}

/// An instance whose activity is in hand; `None` if the store cannot commit its turn with the outcome,
/// and says so.
async fn at_work(lab: &Lab) -> Option<Job> {
    lab.begin("a").await;
    lab.queue(activity("a", 4)).await;
    let job = lab.job().await;
    if lab.commits_direct_turns() {
        return Some(job);
    }
    refused(lab, direct(lab, &job, commit().event(note(2))).await).await;
    lab.ok("ack_work_item", lab.ack_work_item(&job.token, None).await);
    None
}

/// A turn that has seen all there is.
async fn direct(lab: &Lab, job: &Job, commit: TurnCommit) -> DirectTurn {
    let history = lab.ok("read", lab.read("a").await);
    let last = history.last();
    DirectTurn {
        work_token: job.token.clone(),
        instance: "a".into(),
        last_event_id: last.map_or(0, |event| event.event_id),
        last_event_at_ms: last.map_or(0, |event| event.timestamp_ms),
        commit,
    }
}

async fn committed(lab: &Lab, job: &Job, commit: TurnCommit) {
    let turn = direct(lab, job, commit).await;
    lab.ok("commit_direct_turn", lab.commit_direct_turn(turn).await);
}

/// A turn that must be refused for good, and must not have done anything.
async fn refused(lab: &Lab, turn: DirectTurn) {
    let before = lab.event_ids("a").await;
    lab.refused("commit_direct_turn", lab.commit_direct_turn(turn).await, &[]);
    lab.same("the events", lab.event_ids("a").await, before);
}
