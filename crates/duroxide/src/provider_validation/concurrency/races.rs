//! Calls that compete for one lock, one activity, one instance.

use std::sync::Arc;

use super::super::ProviderFactory;
use super::super::lab::{Job, LONG, Lab, Promise, Turn, lab};
use super::super::words::*;
use super::{SECTION, cast, succeeds};
use crate::providers::TagFilter;

const ROUNDS: u64 = 20;

/// How a lock ended for somebody.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Committed,
    GivenBack,
}

/// A turn is committed or given back, and only once.
pub async fn a_turn_ends_once<F: ProviderFactory>(factory: &F) {
    let says =
        "of commits and returns with one token exactly one happens, whoever renews meanwhile";
    let lab = lab(factory, Promise { rule: "R8.56", says, section: SECTION }).await.patient();
    lab.begin("a").await;
    for round in 2..ROUNDS + 2 {
        lab.send(raise("a", "x")).await;
        let turn = Arc::new(lab.turn_of("a").await);
        let ends = cast(&lab, 6, move |lab, role| {
            let turn = Arc::clone(&turn);
            async move { end_turn(&lab, &turn, round, role + round as usize).await }
        })
        .await;
        let committed = lab.event_ids("a").await.last() == Some(&round);
        let left = lab.try_turn(None).await;
        agree(&lab, &ends, committed, left.is_some());
        if let Some(left) = left {
            lab.batch(&left, [raise("a", "x")]);
            lab.committed(&left, commit().event(note(round))).await;
        }
    }
    lab.same("the events", lab.event_ids("a").await, (1..ROUNDS + 2).collect::<Vec<u64>>());
}

/// An activity is answered or given back, and only once.
pub async fn an_activity_ends_once<F: ProviderFactory>(factory: &F) {
    let says =
        "of answers and returns with one token exactly one happens, whoever renews meanwhile";
    let lab = lab(factory, Promise { rule: "R8.74", says, section: SECTION }).await.patient();
    lab.begin("a").await;
    for id in 2..ROUNDS + 2 {
        lab.queue(activity("a", id)).await;
        let job = Arc::new(lab.job().await);
        let ends = cast(&lab, 6, move |lab, role| {
            let job = Arc::clone(&job);
            async move { end_activity(&lab, &job, role + id as usize).await }
        })
        .await;
        let told = lab.try_turn(None).await;
        let left = lab.try_job(None, &TagFilter::DefaultOnly).await;
        agree(&lab, &ends, told.is_some(), left.is_some());
        if let Some(told) = told {
            lab.batch(&told, [done("a", id)]);
            lab.committed(&told, commit()).await;
        }
        if let Some(left) = left {
            lab.answered(&left, None).await;
        }
    }
}

/// An activity that is cancelled while it is answered is gone, and its answer is there or refused.
pub async fn an_activity_is_answered_or_cancelled<F: ProviderFactory>(factory: &F) {
    let says = "when an answer meets a cancellation the activity is gone, and told of if answered";
    let lab = lab(factory, Promise { rule: "R8.52", says, section: SECTION }).await.patient();
    lab.begin("a").await;
    for id in 2..ROUNDS + 2 {
        lab.send(raise("a", "x")).await;
        lab.queue(activity("a", id)).await;
        let (turn, job) = (lab.turn_of("a").await, lab.job().await);
        let both = (Arc::new(turn), job.token);
        let results = cast(&lab, 2, move |lab, role| {
            let (turn, job) = both.clone();
            async move {
                if (role + id as usize).is_multiple_of(2) {
                    let cancelling = commit().event(note(id)).cancelling(identity("a", id));
                    let commit = || lab.commit(&turn, cancelling.clone());
                    lab.through("ack_orchestration_item", commit).await;
                    false
                } else {
                    let answer = || lab.ack_work_item(&job, Some(done("a", id)));
                    succeeds(&lab, "ack_work_item", answer).await
                }
            }
        })
        .await;
        let told = lab.try_turn(None).await;
        let answered = results.contains(&true);
        lab.same("whether the instance is told of the answer", told.is_some(), answered);
        lab.no_job().await;
        if let Some(told) = told {
            lab.committed(&told, commit()).await;
        }
    }
}

/// A commit that meets a deletion brings nothing back.
pub async fn a_deleted_instance_stays_deleted<F: ProviderFactory>(factory: &F) {
    let says = "when a commit meets a forced deletion, nothing is left of the instance";
    let lab = lab(factory, Promise { rule: "R8.57", says, section: SECTION }).await.patient();
    for round in 0..ROUNDS as usize {
        lab.begin("a").await;
        lab.send(raise("a", "x")).await;
        let turn = Arc::new(lab.turn_of("a").await);
        cast(&lab, 4, move |lab, role| {
            let turn = Arc::clone(&turn);
            async move {
                if (role + round).is_multiple_of(2) {
                    let delta = commit().event(note(2)).event(set(3, "k", "v"));
                    let all = delta.work(activity("a", 2)).message(raise("a", "y"));
                    let commit = || lab.commit(&turn, all.clone());
                    succeeds(&lab, "ack_orchestration_item", commit).await;
                } else {
                    // Of two deletions one may find nothing (R6.65).
                    let delete = || lab.admin().delete_instance("a", true);
                    succeeds(&lab, "delete_instance", delete).await;
                }
            }
        })
        .await;
        lab.gone("a").await;
        lab.no_turn().await;
        lab.no_job().await;
    }
}

/// One of the ways to end a turn; renewing is none.
async fn end_turn(lab: &Lab, turn: &Turn, event_id: u64, role: usize) -> Option<End> {
    match role % 3 {
        0 => {
            let commit = || lab.commit(turn, commit().event(note(event_id)));
            succeeds(lab, "ack_orchestration_item", commit).await.then_some(End::Committed)
        }
        1 => {
            let abandon = || lab.abandon_orchestration_item(&turn.token, None, false);
            succeeds(lab, "abandon_orchestration_item", abandon).await.then_some(End::GivenBack)
        }
        _ => {
            let renew = || lab.renew_orchestration_item_lock(&turn.token, LONG);
            succeeds(lab, "renew_orchestration_item_lock", renew).await;
            None
        }
    }
}

/// One of the ways to end an activity; renewing is none.
async fn end_activity(lab: &Lab, job: &Job, role: usize) -> Option<End> {
    match role % 3 {
        0 => {
            let answer = || lab.ack_work_item(&job.token, Some(done("a", job.id())));
            succeeds(lab, "ack_work_item", answer).await.then_some(End::Committed)
        }
        1 => {
            let give_back = || lab.abandon_work_item(&job.token, None, false);
            succeeds(lab, "abandon_work_item", give_back).await.then_some(End::GivenBack)
        }
        _ => {
            let renew = || lab.renew_work_item_lock(&job.token, LONG);
            succeeds(lab, "renew_work_item_lock", renew).await;
            None
        }
    }
}

/// What was answered and what is stored must tell the same story.
fn agree(lab: &Lab, ends: &[Option<End>], committed: bool, given_back: bool) {
    let ends: Vec<End> = ends.iter().copied().flatten().collect();
    let stored = match (committed, given_back) {
        (true, false) => End::Committed,
        (false, true) => End::GivenBack,
        both => lab.broken("the lock to be committed or given back, not both", (both, ends)),
    };
    lab.expect(ends.len() <= 1, "one of the ends to succeed", &ends);
    // A store that was in doubt may have asked for another try, and then refused it.
    lab.expect(ends.iter().all(|end| *end == stored), &format!("the end to be {stored:?}"), &ends);
}
