//! What the names are given to.

use super::super::ProviderFactory;
use super::super::lab::{Promise, lab};
use super::super::words::*;
use super::odd_texts;
use crate::providers::TagFilter;
use duroxide_core::model::{ErrorDetails, Event, EventKind, WorkItem};

const SECTION: &str = "replay";
const MEBIBYTE: usize = 1024 * 1024;

/// Payloads of some megabytes come back whole, wherever they are.
pub async fn four_mebibytes_come_back_whole<F: ProviderFactory>(factory: &F) {
    let says = "payloads of 4 MiB come back whole: inputs, results, events, values, outputs";
    let lab = lab(factory, Promise { rule: "R8.60", says, section: SECTION }).await.patient();
    let unit = "0123456789 \"quoted\" back\\slash 🦀\n";
    let big = unit.repeat(4 * MEBIBYTE / unit.len() + 1);
    lab.send(with_input(start("a"), &big)).await;
    let turn = lab.turn_of("a").await;
    lab.same_text("the input of the start", input(&turn.item.messages[0]), &big);
    let first = first_commit("a").event(said(2, &big)).event(set(3, "k", &big));
    lab.committed(&turn, first.work(with_input(activity("a", 2), &big))).await;

    let job = lab.job().await;
    lab.same_text("the input of the activity", input(&job.item), &big);
    lab.answered(&job, Some(with_input(done("a", 2), &big))).await;
    let turn = lab.turn_of("a").await;
    lab.same_text("the result", input(&turn.item.messages[0]), &big);
    lab.same("the events of the turn", turn.item.history.len(), 3);
    lab.same_text("the event", data(&turn.item.history[1]), &big);
    lab.committed(&turn, commit().ends("Completed", &big)).await;

    let events = lab.ok("read", lab.read("a").await);
    lab.same_text("the event as read", data(&events[1]), &big);
    let value = lab.value("a", "k").await;
    lab.same_text("the value", &value.unwrap_or_default(), &big);
    let output = lab.info("a").await.output;
    lab.same_text("the output", &output.unwrap_or_default(), &big);
    lab.send(raise("a", "x")).await;
    let snapshot = lab.turn_of("a").await.item.kv_snapshot;
    let value = snapshot.get("k").map(|entry| entry.value.as_str());
    lab.same_text("the value in the snapshot", value.unwrap_or_default(), &big);
}

/// Messages come back as they were sent.
pub async fn messages_come_back_letter_by_letter<F: ProviderFactory>(factory: &F) {
    let says = "every text of a message comes back letter by letter";
    let lab = lab(factory, Promise { rule: "R8.21", says, section: SECTION }).await.patient();
    lab.begin("a").await;
    let mut sent = Vec::new();
    for text in odd_texts().iter().chain([&String::new()]) {
        let (instance, name, data) = ("a".to_owned(), text.clone(), text.clone());
        sent.push(WorkItem::ExternalRaised { instance: instance.clone(), name, data });
        let (name, data) = (text.clone(), text.clone());
        sent.push(WorkItem::QueueMessage { instance: instance.clone(), name, data });
        sent.push(WorkItem::CancelInstance { instance, reason: text.clone() });
        sent.push(with_input(start("a"), text));
        sent.push(with_input(done("a", 2), text));
        sent.push(failure(text));
    }
    for item in &sent {
        lab.send(item.clone()).await;
    }
    let turn = lab.turn_of("a").await;
    lab.same_list("messages", &turn.item.messages, &sent);
    let mut all = commit();
    all.orchestrator_items.clone_from(&sent);
    lab.committed(&turn, all).await;
    let turn = lab.turn_of("a").await;
    lab.same_list("messages of a commit", &turn.item.messages, &sent);
}

/// Activities come back as they were queued.
pub async fn activities_come_back_letter_by_letter<F: ProviderFactory>(factory: &F) {
    let says = "every text of an activity comes back letter by letter";
    let lab = lab(factory, Promise { rule: "R8.72", says, section: SECTION }).await.patient();
    let mut items = Vec::new();
    for (activity_id, text) in (2..).zip(odd_texts().iter().chain([&String::new()])) {
        items.push(WorkItem::ActivityExecute {
            instance: "a".into(),
            execution_id: 1,
            id: activity_id,
            name: text.clone(),
            input: text.clone(),
            session_id: Some(text.clone()),
            tag: Some(text.clone()),
        });
    }
    let (queued, committed) = items.split_at(items.len() / 2);
    for item in queued {
        lab.queue(item.clone()).await;
    }
    let mut first = first_commit("a");
    first.worker_items.extend_from_slice(committed);
    lab.begin_as("a", first).await;
    for item in &items {
        let job = lab.try_job(Some(&lab.lease("w")), &TagFilter::Any).await;
        lab.same("the activity", job.as_ref().map(|job| &job.item), Some(item));
    }
}

/// Events come back as they were written, stamps included.
pub async fn events_come_back_as_they_were<F: ProviderFactory>(factory: &F) {
    let says = "an event comes back as it was written: texts, stamps, times, numbers";
    let lab = lab(factory, Promise { rule: "R2.5", says, section: SECTION }).await.patient();
    let mut events = vec![started("a")];
    for (event_id, text) in (2..).zip(odd_texts()) {
        let kind = match event_id % 4 {
            0 => EventKind::ExternalEvent { name: text.clone(), data: text.clone() },
            1 => EventKind::ActivityCompleted { result: text.clone() },
            2 => EventKind::OrchestrationFailed { details: details(&text) },
            _ => EventKind::TimerCreated { fire_at_ms: 1 << 52 },
        };
        let mut odd = event(event_id, kind);
        odd.source_event_id = (event_id % 3 == 0).then_some(event_id - 1);
        odd.timestamp_ms = [0, 1, 1 << 52][event_id as usize % 3];
        odd.duroxide_version = text;
        events.push(odd);
    }
    let mut first = first_commit("a");
    first.history_delta.clone_from(&events);
    lab.begin_as("a", first).await;
    lab.same_list("events", &lab.ok("read", lab.read("a").await), &events);
    let read = lab.read_with_execution("a", 1).await;
    lab.same_list("events of the execution", &lab.ok("read_with_execution", read), &events);
    let read = lab.admin().read_history("a").await;
    lab.same_list("events for management", &lab.ok("read_history", read), &events);
    lab.send(raise("a", "x")).await;
    lab.same_list("events of a turn", &lab.turn_of("a").await.item.history, &events);
}

/// The same item with another payload.
fn with_input(mut item: WorkItem, text: &str) -> WorkItem {
    match &mut item {
        WorkItem::StartOrchestration { input, .. }
        | WorkItem::ActivityExecute { input, .. }
        | WorkItem::ActivityCompleted { result: input, .. } => *input = text.into(),
        _ => {}
    }
    item
}

fn input(item: &WorkItem) -> &str {
    match item {
        WorkItem::StartOrchestration { input, .. }
        | WorkItem::ActivityExecute { input, .. }
        | WorkItem::ActivityCompleted { result: input, .. } => input,
        _ => "",
    }
}

fn data(event: &Event) -> &str {
    match &event.kind {
        EventKind::ExternalEvent { data, .. } => data,
        _ => "",
    }
}

fn details(text: &str) -> ErrorDetails {
    let (operation, message) = (text.to_owned(), text.to_owned());
    ErrorDetails::Infrastructure { operation, message, retryable: true }
}

fn failure(text: &str) -> WorkItem {
    let instance = "a".to_owned();
    WorkItem::ActivityFailed { instance, execution_id: 1, id: 2, details: details(text) }
}
