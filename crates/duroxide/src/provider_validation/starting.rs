//! A start that is answered: of all who start an id one begins it, the others learn who has it. A store
//! that cannot decide that has to say so.

use duroxide_core::model::EventKind;

use super::ProviderFactory;
use super::concurrency::cast;
use super::lab::{Lab, Promise, lab};
use super::words::*;
use crate::providers::StartOutcome::{self, Ended, Running, Started};

const SECTION: &str = "starting-an-instance";
const PEOPLE: usize = 8;
const ROUNDS: usize = 10;

/// From the queued start to the end of the instance, and nothing is queued twice.
pub async fn an_id_that_is_taken_is_not_started<F: ProviderFactory>(factory: &F) {
    let says = "an id is taken from the moment its start is stored; who starts it again is told so";
    let Some(lab) = deciding(factory, says).await else { return };
    lab.send(raise("a", "early")).await; // What is sent to nobody takes no id.
    lab.same("the first start", begun(&lab, "a").await, Started);
    lab.same("a start beside one that is queued", begun(&lab, "a").await, Running);
    let turn = lab.turn_of("a").await;
    lab.batch(&turn, [raise("a", "early"), start("a")]);
    lab.same("a start beside one in its first turn", begun(&lab, "a").await, Running);
    lab.committed(&turn, first_commit("a").work(activity("a", 2))).await;
    lab.same("a start beside one that runs", begun(&lab, "a").await, Running);
    lab.no_turn().await;
    lab.step("a", commit().event(completed(2)).ends("Completed", "out")).await;
    lab.same("a start after the end", begun(&lab, "a").await, Ended);
    lab.no_turn().await;
    lab.same("the events", lab.event_ids("a").await, [1, 2]);
}

/// A start that was given back for later is a start.
pub async fn a_start_that_is_not_due_takes_the_id<F: ProviderFactory>(factory: &F) {
    let says = "an id is taken by a start that is not due yet";
    let Some(lab) = deciding(factory, says).await else { return };
    lab.send_later(start("a"), std::time::Duration::from_secs(3600)).await;
    lab.same("a start", begun(&lab, "a").await, Running);
    lab.no_turn().await;
}

/// Deleted and begun anew in one step; what runs is never replaced.
pub async fn an_ended_instance_makes_room<F: ProviderFactory>(factory: &F) {
    let says = "an ended instance is replaced if that is asked for, one that runs never is";
    let Some(lab) = deciding(factory, says).await else { return };
    lab.begin("a").await;
    lab.same("a replacement of one that runs", replaced(&lab, "a").await, Running);
    lab.step("a", commit().event(set(2, "k", "1")).event(completed(3)).ends("Completed", "out"))
        .await;
    lab.send(raise("a", "late")).await;
    lab.same("a replacement of one that has ended", replaced(&lab, "a").await, Started);
    lab.same("a second replacement", replaced(&lab, "a").await, Running);
    lab.values_are("a", &[]).await;
    let turn = lab.turn_of("a").await;
    lab.batch(&turn, [start("a")]);
    lab.committed(&turn, first_commit("a")).await;
    lab.same("the events", lab.event_ids("a").await, [1]);
    // Not while a descendant runs, and not a child: nothing has changed then.
    lab.begin_as("p", first_commit("p").message(start_child("offspring", "p"))).await;
    let child = lab.turn_of("offspring").await;
    lab.committed(&child, first_commit("offspring").child_of("p")).await;
    lab.step("p", commit().event(completed(2)).ends("Completed", "out")).await;
    let refused = lab.start_instance(start("p"), true).await;
    let who = refused.as_ref().err().is_some_and(|error| error.message.contains("offspring"));
    lab.refused("start_instance", refused, &["running"]);
    lab.expect(who, "the refusal to name the one that runs", "another text");
    lab.step("offspring", commit().event(completed(2)).ends("Completed", "out")).await;
    lab.refused(
        "start_instance",
        lab.start_instance(start("offspring"), true).await,
        &["child", "sub-orchestration"],
    );
    lab.same("the events of the parent", lab.event_ids("p").await, [1, 2]);
    lab.same("the events of the child", lab.event_ids("offspring").await, [1, 2]);
    lab.no_turn().await;
    lab.same("a replacement of the parent", replaced(&lab, "p").await, Started);
    lab.gone("offspring").await;
}

/// Whoever comes at the same moment.
pub async fn of_many_starts_one_begins<F: ProviderFactory>(factory: &F) {
    let says = "of many who start or replace an id at once, exactly one is told that it has";
    let Some(lab) = deciding(factory, says).await else { return };
    for _ in 0..ROUNDS {
        let answers = cast(&lab, PEOPLE, move |lab, _| async move {
            let attempt = || async {
                match lab.start_instance(start("a"), true).await {
                    Err(error) if error.is_retryable() => None,
                    other => Some(lab.ok("start_instance", other)),
                }
            };
            lab.soon("start_instance to get through", attempt).await
        })
        .await;
        let began = answers.iter().filter(|answer| **answer == Started).count();
        lab.same("those who were told that they started it", began, 1);
        lab.same("the others", answers.iter().filter(|a| **a == Running).count(), PEOPLE - 1);
        let turn = lab.turn_of("a").await;
        lab.batch(&turn, [start("a")]);
        let ends = first_commit("a").event(completed(2)).ends("Completed", "out");
        lab.committed(&turn, ends).await;
        lab.no_turn().await;
        lab.same("the events", lab.event_ids("a").await, [1, 2]);
    }
}

/// A store that says it decides starts; others have nothing to show.
async fn deciding<F: ProviderFactory>(factory: &F, says: &'static str) -> Option<Lab> {
    let lab = lab(factory, Promise { rule: "R6.88", says, section: SECTION }).await.patient();
    lab.decides_starts().then_some(lab)
}

async fn begun(lab: &Lab, instance: &str) -> StartOutcome {
    lab.ok("start_instance", lab.start_instance(start(instance), false).await)
}

async fn replaced(lab: &Lab, instance: &str) -> StartOutcome {
    lab.ok("start_instance", lab.start_instance(start(instance), true).await)
}

fn completed(id: u64) -> duroxide_core::model::Event {
    event(id, EventKind::OrchestrationCompleted { output: "out".into() })
}
