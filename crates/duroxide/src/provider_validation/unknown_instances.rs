//! Messages for an instance that does not exist hold up nobody, and a start that comes later finds
//! them.

use std::time::Duration;

use super::ProviderFactory;
use super::lab::{AT_ONCE, LONG, Promise, lab};
use super::words::*;
use duroxide_core::model::WorkItem;

const SECTION: &str = "unknown-instances";

/// Whatever is sent to nobody, others are served.
pub async fn messages_for_nobody_delay_no_one<F: ProviderFactory>(factory: &F) {
    let says = "messages for instances that do not exist are no turn and hold up nobody";
    let lab = lab(factory, Promise { rule: "R8.29", says, section: SECTION }).await.patient();
    let kinds = strays("").len();
    for number in 0..15 {
        for kind in 0..kinds {
            lab.send(strays(&format!("ghost {number} {kind}")).swap_remove(kind)).await;
        }
        lab.send(queue_message(&format!("queue of ghost {number}"), "x")).await;
    }
    for poll in [AT_ONCE, Duration::from_millis(50)] {
        let nothing = lab.fetch_orchestration_item(LONG, poll, None).await;
        let nothing = lab.ok("fetch_orchestration_item", nothing);
        lab.expect(nothing.is_none(), "no turn for an instance that does not exist", nothing);
    }
    lab.begin("b").await;
    for id in 2..5 {
        lab.send(raise(&format!("late ghost {id}"), "x")).await;
        lab.step("b", commit().event(note(id))).await;
    }
    lab.same("the events of the other instance", lab.event_ids("b").await, [1, 2, 3, 4]);
    lab.no_turn().await;
}

/// What came before the start is part of the first turn.
pub async fn a_start_finds_what_came_before_it<F: ProviderFactory>(factory: &F) {
    let says = "messages that waited for their instance are in the batch of its start, in order";
    let lab = lab(factory, Promise { rule: "R8.29", says, section: SECTION }).await.patient();
    let mut all = strays("a");
    for stray in &all {
        lab.send(stray.clone()).await;
    }
    for _ in 0..3 {
        lab.no_turn().await; // looking at them counts as no attempt
    }
    lab.send(start("a")).await;
    lab.send(raise("a", "after")).await;
    all.extend([start("a"), raise("a", "after")]);
    let turn = lab.turn_of("a").await;
    lab.same("the messages of the turn", &turn.item.messages, &all);
    lab.same("the attempt", turn.attempt, 1);
    lab.same("the name, from the start", &turn.item.orchestration_name, "Orch");
    lab.committed(&turn, first_commit("a")).await;
    lab.no_turn().await;
}

/// A start that is not due yet releases nothing yet.
pub async fn a_hidden_start_releases_them_when_it_is_due<F: ProviderFactory>(factory: &F) {
    let says = "messages for nobody wait for a start that is still hidden, queue messages too";
    let lab = lab(factory, Promise { rule: "R8.28", says, section: SECTION }).await;
    lab.send(raise("a", "x")).await;
    lab.send_later(start("a"), lab.patience / 2).await;
    lab.send_later(start("b"), lab.patience / 2).await;
    lab.send(queue_message("b", "y")).await;
    lab.no_turn().await;
    let patient = lab.patient();
    for _ in 0..2 {
        let turn = patient.turn_soon().await;
        lab.same("the attempt", turn.attempt, 1);
        match turn.item.instance.as_str() {
            "a" => lab.batch(&turn, [raise("a", "x"), start("a")]),
            _ => lab.batch(&turn, [start("b"), queue_message("b", "y")]),
        }
    }
}

/// Queue messages in company wait like the rest.
pub async fn queue_messages_among_others_wait_with_them<F: ProviderFactory>(factory: &F) {
    let says = "queue messages are given up only if nothing else waits for the instance";
    let lab = lab(factory, Promise { rule: "R8.28", says, section: SECTION }).await.patient();
    lab.send(raise("a", "x")).await;
    lab.send(queue_message("a", "y")).await;
    lab.send(queue_message("b", "alone")).await;
    lab.no_turn().await;
    lab.send(start("a")).await;
    lab.send(start("b")).await;
    let turn = lab.turn_of("a").await;
    lab.batch(&turn, [raise("a", "x"), queue_message("a", "y"), start("a")]);
    lab.batch(&lab.turn_of("b").await, [start("b")]);
}

/// An id is unknown again once its instance is deleted.
pub async fn a_deleted_instance_is_unknown_again<F: ProviderFactory>(factory: &F) {
    let says = "messages for a deleted instance wait like messages for one that never was";
    let lab = lab(factory, Promise { rule: "R8.29", says, section: SECTION }).await.patient();
    lab.begin("a").await;
    lab.send(raise("a", "before")).await;
    lab.delete_by_force("a").await;
    lab.send(raise("a", "after")).await;
    lab.no_turn().await;
    lab.begin("b").await;
    lab.send(start("a")).await;
    lab.batch(&lab.turn_of("a").await, [raise("a", "after"), start("a")]);
}

/// A history without a row is an instance to serve.
pub async fn a_history_makes_an_instance_known<F: ProviderFactory>(factory: &F) {
    let says = "an instance with a start event is served, though it has no row";
    let lab = lab(factory, Promise { rule: "R8.25", says, section: SECTION }).await.patient();
    lab.send(raise("a", "x")).await;
    lab.no_turn().await;
    let appended = lab.append_with_execution("a", 1, vec![started("a")]).await;
    lab.ok("append_with_execution", appended);
    lab.send(raise("a", "y")).await;
    let turn = lab.turn_of("a").await;
    lab.batch(&turn, [raise("a", "x"), raise("a", "y")]);
    lab.same("the name", &turn.item.orchestration_name, "Orch");
    lab.same("the version", &turn.item.version, "1.0.0");
    lab.same("the number of events", turn.item.history.len(), 1);
}

/// An instance that has ended is not unknown.
pub async fn an_ended_instance_is_served<F: ProviderFactory>(factory: &F) {
    let says = "messages for an ended instance are a turn: the runtime disposes of them";
    let lab = lab(factory, Promise { rule: "R8.20", says, section: SECTION }).await.patient();
    for status in ["Completed", "Failed", "ContinuedAsNew"] {
        lab.ended(status, status).await;
        lab.send(queue_message(status, "x")).await;
        let turn = lab.turn_of(status).await;
        lab.batch(&turn, [queue_message(status, "x")]);
        lab.committed(&turn, commit()).await;
    }
}

/// Commits and answers may be addressed to nobody.
pub async fn commits_and_answers_may_go_to_nobody<F: ProviderFactory>(factory: &F) {
    let says = "a commit or an answer with a message for nobody succeeds, and the message waits";
    let lab = lab(factory, Promise { rule: "R8.53", says, section: SECTION }).await.patient();
    let first = first_commit("a").message(raise("c", "x")).message(cancel("c"));
    lab.begin_as("a", first.message(raise("a", "y"))).await;
    lab.queue(activity("c", 2)).await;
    let job = lab.job().await;
    lab.answered(&job, Some(done("c", 2))).await;
    lab.batch(&lab.turn_of("a").await, [raise("a", "y")]);
    lab.no_turn().await;
    lab.send(start("c")).await;
    let all = [raise("c", "x"), cancel("c"), done("c", 2), start("c")];
    lab.batch(&lab.turn_of("c").await, all);
}

/// One message of every kind that needs an instance, except queue messages.
fn strays(instance: &str) -> Vec<WorkItem> {
    let child_done = WorkItem::SubOrchCompleted {
        parent_instance: instance.into(),
        parent_execution_id: 1,
        parent_id: 2,
        result: "ok".into(),
    };
    vec![
        raise(instance, "x"),
        cancel(instance),
        done(instance, 2),
        failed(instance, 3),
        timer_fired(instance, 1),
        child_done,
    ]
}
