//! Crowds that work side by side.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use super::super::ProviderFactory;
use super::super::lab::{AT_ONCE, Lab, Promise, Turn, lab};
use super::super::words::*;
use super::{SECTION, cast};
use crate::providers::TagFilter;
use duroxide_core::model::WorkItem;

const PEOPLE: usize = 6;

/// Commits to different instances do not disturb each other.
pub async fn commits_of_many_instances_go_side_by_side<F: ProviderFactory>(factory: &F) {
    let says = "commits of different instances at the same moment all happen, each as a whole";
    let lab = lab(factory, Promise { rule: "R8.34", says, section: SECTION }).await.patient();
    lab.begin("sink").await;
    let mut turns = Vec::new();
    for number in 0..PEOPLE {
        lab.send(start(&name(number))).await;
        turns.push(lab.turn_of(&name(number)).await);
    }
    let turns = Arc::new(turns);
    cast(&lab, PEOPLE, move |lab, role| {
        let turns = Arc::clone(&turns);
        async move {
            let mut all = first_commit(&name(role));
            for id in 2..7 {
                all = all.event(note(id)).work(activity(&name(role), id));
                all = all.message(raise("sink", &format!("{role} {id}")));
            }
            let commit = || lab.commit(&turns[role], all.clone());
            lab.through("ack_orchestration_item", commit).await;
        }
    })
    .await;
    for number in 0..PEOPLE {
        let events = lab.event_ids(&name(number)).await;
        lab.same("the events of each instance", events, [1, 2, 3, 4, 5, 6]);
    }
    let sink = lab.turn_of("sink").await;
    kept_order(&lab, &sink.item.messages, 5);
    let mut work = BTreeMap::<String, Vec<u64>>::new();
    while let Some(job) = lab.try_job(None, &TagFilter::DefaultOnly).await {
        if let WorkItem::ActivityExecute { instance, id, .. } = job.item {
            work.entry(instance).or_default().push(id);
        }
    }
    let expected = (0..PEOPLE).map(|number| (name(number), vec![2, 3, 4, 5, 6]));
    lab.same("the activities of each instance", work, expected.collect::<BTreeMap<_, _>>());
}

/// Nothing that many send at a time is lost, and everybody's messages stay in order.
pub async fn what_many_send_at_once_is_all_there<F: ProviderFactory>(factory: &F) {
    let says = "messages sent at the same moment are all queued, each sender's in order";
    let lab = lab(factory, Promise { rule: "R8.10", says, section: SECTION }).await.patient();
    lab.begin("sink").await;
    cast(&lab, PEOPLE, |lab, role| async move {
        for number in 0..20 {
            let message = raise("sink", &format!("{role} {number}"));
            let send = || lab.enqueue_for_orchestrator(message.clone(), None);
            lab.through("enqueue_for_orchestrator", send).await;
        }
    })
    .await;
    kept_order(&lab, &lab.turn_of("sink").await.item.messages, 20);
}

/// An activity goes to one worker.
pub async fn workers_never_share_an_activity<F: ProviderFactory>(factory: &F) {
    let says =
        "of many workers at the same moment each gets activities of its own, all of them once";
    let lab = lab(factory, Promise { rule: "R8.72", says, section: SECTION }).await.patient();
    let ids: Vec<u64> = (2..102).collect();
    for id in &ids {
        lab.queue(activity("a", *id)).await;
    }
    let fetched = cast(&lab, PEOPLE, |lab, _| async move {
        let (mut mine, tags) = (Vec::new(), TagFilter::DefaultOnly);
        loop {
            let fetch = || lab.fetch_work_item(lab.lock, AT_ONCE, None, &tags);
            let Some((item, token, _)) = lab.through("fetch_work_item", fetch).await else {
                return mine;
            };
            lab.through("ack_work_item", || lab.ack_work_item(&token, None)).await;
            if let WorkItem::ActivityExecute { id, .. } = item {
                mine.push(id);
            }
        }
    })
    .await;
    for mine in &fetched {
        lab.expect(mine.is_sorted(), "each worker to be served in queue order", mine);
    }
    let mut all: Vec<u64> = fetched.into_iter().flatten().collect();
    all.sort_unstable();
    lab.same("the activities served", all, ids);
    lab.no_job().await;
}

/// Messages that come while turns are fetched and committed are each served once, in order.
pub async fn nothing_is_lost_between_send_and_commit<F: ProviderFactory>(factory: &F) {
    let says = "messages sent while their instance is fetched and committed are each served once";
    let lab = lab(factory, Promise { rule: "R8.23", says, section: SECTION }).await.patient();
    lab.begin("a").await;
    lab.begin("b").await;
    let served = Arc::new(Mutex::new(Vec::<WorkItem>::new()));
    let (board, all) = (Arc::clone(&served), 3 * 30 * 2);
    cast(&lab, PEOPLE, move |lab, role| {
        let board = Arc::clone(&board);
        async move {
            match role {
                0..3 => send_to_both(&lab, role).await,
                _ => serve(&lab, &board, all).await,
            }
        }
    })
    .await;
    let served = std::mem::take(&mut *served.lock().unwrap());
    for instance in ["a", "b"] {
        let of_this = |item: &&WorkItem| item.orchestration_key() == Some(instance);
        let messages: Vec<WorkItem> = served.iter().filter(of_this).cloned().collect();
        kept_order_of(&lab, &messages, 3, 30);
    }
    lab.no_turn().await;
}

async fn send_to_both(lab: &Lab, role: usize) {
    for number in 0..30 {
        for instance in ["a", "b"] {
            let message = raise(instance, &format!("{role} {number}"));
            let send = || lab.enqueue_for_orchestrator(message.clone(), None);
            lab.through("enqueue_for_orchestrator", send).await;
        }
    }
}

/// Serves turns until so many messages were served.
async fn serve(lab: &Lab, board: &Mutex<Vec<WorkItem>>, all: usize) {
    let next = || async {
        if all <= board.lock().unwrap().len() {
            return Some(None);
        }
        let fetch = || lab.fetch_orchestration_item(lab.lock, AT_ONCE, None);
        lab.through("fetch_orchestration_item", fetch).await.map(Some)
    };
    while let Some((item, token, attempt)) = lab.soon("the next turn", next).await {
        let turn = Turn { item, token, attempt };
        // Still locked: nobody else writes down messages of this instance.
        board.lock().unwrap().extend(turn.item.messages.iter().cloned());
        lab.tick().await; // so that messages come under the lock
        lab.through("ack_orchestration_item", || lab.commit(&turn, commit())).await;
    }
}

fn name(number: usize) -> String {
    format!("instance {number}")
}

#[track_caller]
fn kept_order(lab: &Lab, messages: &[WorkItem], each: usize) {
    kept_order_of(lab, messages, PEOPLE, each);
}

/// Messages named `<sender> <number>`: everybody's numbers are complete and ascend.
#[track_caller]
pub(super) fn kept_order_of(lab: &Lab, messages: &[WorkItem], senders: usize, each: usize) {
    let mut numbers = BTreeMap::<&str, Vec<u32>>::new();
    for message in messages {
        if let WorkItem::ExternalRaised { name, .. } = message
            && let Some((sender, number)) = name.split_once(' ')
        {
            numbers.entry(sender).or_default().push(number.parse().unwrap());
        }
    }
    let complete = numbers.len() == senders && numbers.values().all(|sent| sent.len() == each);
    let ordered = numbers.values().all(|sent| sent.is_sorted_by(|a, b| a < b));
    let expected = format!("{each} messages of each of {senders} senders, in order, once");
    lab.expect(complete && ordered, &expected, numbers);
}
