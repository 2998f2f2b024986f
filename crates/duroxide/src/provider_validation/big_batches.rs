//! Big things at a time: more than a statement has parameters, more than a page holds.

use super::ProviderFactory;
use super::lab::{Promise, lab};
use super::words::*;
use crate::providers::TagFilter;
use duroxide_core::model::{Event, WorkItem};

const SECTION: &str = "committing-a-turn";
/// One more than what somebody might take for plenty.
const MANY: u64 = 1025;

/// A batch of many messages is complete, in order, and consumed at once.
pub async fn a_thousand_messages_are_one_turn<F: ProviderFactory>(factory: &F) {
    let says = "a turn has all visible messages, however many, in order; its commit consumes them";
    let lab = lab(factory, Promise { rule: "R8.21", says, section: SECTION }).await.patient();
    lab.begin("a").await;
    let messages: Vec<WorkItem> = (0..MANY).map(|n| raise("a", &n.to_string())).collect();
    for message in &messages {
        lab.send(message.clone()).await;
    }
    for attempt in 1..=2 {
        let turn = lab.turn_of("a").await;
        lab.same_list("messages", &turn.item.messages, &messages);
        lab.same("the attempt", turn.attempt, attempt);
        match attempt {
            1 => lab.abandon(&turn).await,
            _ => lab.committed(&turn, commit().event(note(2))).await,
        }
    }
    lab.no_turn().await;
}

/// A commit can send many messages.
pub async fn a_commit_sends_a_thousand_messages<F: ProviderFactory>(factory: &F) {
    let says = "the messages of a commit, however many, arrive in the order of the commit";
    let lab = lab(factory, Promise { rule: "R8.53", says, section: SECTION }).await.patient();
    let mut all = first_commit("a");
    let mut messages = vec![start("b")];
    messages.extend((1..MANY).map(|n| queue_message("b", &n.to_string())));
    all.orchestrator_items.clone_from(&messages);
    lab.begin_as("a", all).await;
    let turn = lab.turn_of("b").await;
    lab.same_list("messages", &turn.item.messages, &messages);
    lab.committed(&turn, first_commit("b")).await;
    lab.no_turn().await;
}

/// A commit can queue many activities.
pub async fn a_commit_queues_a_thousand_activities<F: ProviderFactory>(factory: &F) {
    let says = "the activities of a commit, however many, are fetched in the order of the commit";
    let lab = lab(factory, Promise { rule: "R8.52", says, section: SECTION }).await.patient();
    let mut all = first_commit("a");
    all.worker_items.extend((0..MANY).map(|n| activity("a", n + 2)));
    lab.begin_as("a", all).await;
    for id in 2..MANY + 2 {
        let job = lab.job().await;
        lab.same("the next activity", job.id(), id);
        lab.answered(&job, None).await;
    }
    lab.no_job().await;
}

/// A commit can cancel many activities.
pub async fn a_commit_cancels_hundreds_of_activities<F: ProviderFactory>(factory: &F) {
    let says = "a commit cancels all activities it names, however many, and no others";
    let lab = lab(factory, Promise { rule: "R8.52", says, section: SECTION }).await.patient();
    let mut all = first_commit("a");
    all.worker_items.extend((0..400).map(|n| activity("a", n + 2)));
    lab.begin_as("a", all).await;
    let kept: Vec<u64> = (2..402).filter(|id| id % 4 == 1).collect();
    let mut cancelling = commit().event(note(2));
    let cancelled = (2..402).filter(|id| id % 4 != 1);
    cancelling.cancelled_activities.extend(cancelled.map(|id| identity("a", id)));
    lab.same("the number of cancelled activities", cancelling.cancelled_activities.len(), 300);
    lab.job().await; // one of them is being worked on
    lab.step("a", cancelling).await;
    let mut left = Vec::new();
    while let Some(job) = lab.try_job(None, &TagFilter::DefaultOnly).await {
        left.push(job.id());
    }
    lab.same_list("activities", &left, &kept);
}

/// A commit can append a long history.
pub async fn a_long_history_is_appended_and_read<F: ProviderFactory>(factory: &F) {
    let says = "a history of thousands of events is appended at once and read back as it was";
    let lab = lab(factory, Promise { rule: "R8.48", says, section: SECTION }).await.patient();
    let mut history: Vec<Event> = (2..=5000).map(|id| said(id, &format!("event {id}"))).collect();
    history.insert(0, started("a"));
    let mut all = first_commit("a");
    all.history_delta.clone_from(&history);
    lab.begin_as("a", all).await;
    lab.same_list("events", &lab.ok("read", lab.read("a").await), &history);
    let part = lab.read_history_from("a", 1, 4990, None).await;
    lab.same_list("events from 4990 on", &lab.ok("read_history_from", part), &history[4989..]);
    lab.same("the counted events", lab.execution("a", 1).await.event_count, 5000);
    lab.send(raise("a", "x")).await;
    let turn = lab.turn_of("a").await;
    lab.same_list("events of the turn", &turn.item.history, &history);
    let taken = lab.commit(&turn, commit().event(note(5001)).event(note(2500))).await;
    lab.refused("a commit with an event id amid the history", taken, &[]);
    lab.committed(&turn, commit().event(note(5001))).await;
    lab.same("the last event", lab.event_ids("a").await.last(), Some(&5001));
}

/// Many instances are served in the order of their oldest messages.
pub async fn many_instances_are_served_in_order<F: ProviderFactory>(factory: &F) {
    let says = "of many instances the one with the oldest message is next, however many came later";
    let lab = lab(factory, Promise { rule: "R8.20", says, section: SECTION }).await.patient();
    let name = |number: u64| format!("instance {}", (number * 37) % 101);
    for number in 0..101 {
        lab.send(start(&name(number))).await;
    }
    for number in (0..101).rev() {
        lab.send(raise(&name(number), "later")).await; // changes nothing about the order
    }
    for number in 0..101 {
        let turn = lab.turn_of(&name(number)).await;
        lab.batch(&turn, [start(&name(number)), raise(&name(number), "later")]);
        lab.committed(&turn, first_commit(&name(number))).await;
    }
    lab.no_turn().await;
}
