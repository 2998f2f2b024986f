//! Big things at a time: more than a statement has parameters, more than a page holds.

use std::time::Duration;

use tokio::time::Instant;

use super::ProviderFactory;
use super::lab::{AT_ONCE, Job, LONG, Lab, Promise, Turn, lab};
use super::words::*;
use crate::providers::TagFilter;
use duroxide_core::model::limits::{MAX_FETCH_BYTES, MAX_TURN_BYTES, MAX_TURN_MESSAGES};
use duroxide_core::model::{Event, WorkItem};

const SECTION: &str = "committing-a-turn";
const TURNS: &str = "fetching-a-turn";
const RETURNS: &str = "giving-a-turn-back";
/// One more than what somebody might take for plenty.
const MANY: u64 = 1025;

/// A backlog comes in order, in turns that are bounded; what is behind a turn is not part of it.
pub async fn a_backlog_comes_in_bounded_turns<F: ProviderFactory>(factory: &F) {
    let says = "a turn has the oldest messages, 1000 at most; the others make the next turn";
    let lab = lab(factory, Promise { rule: "R8.147", says, section: TURNS }).await.patient();
    lab.begin("a").await;
    let messages: Vec<WorkItem> = (0..MANY).map(|n| raise("a", &n.to_string())).collect();
    for message in &messages {
        lab.send(message.clone()).await;
    }
    let first = bounded_turn(&lab, "a").await;
    lab.same("the attempt", first.attempt, 1);
    let few = first.item.messages.len();
    lab.same_list("messages of the first turn", &first.item.messages, &messages[..few]);
    lab.abandon(&first).await;
    let again = bounded_turn(&lab, "a").await;
    lab.same("the attempt", again.attempt, 2);
    lab.same_list("messages of the first turn", &again.item.messages, &messages[..few]);
    // What was behind it makes the next turn, and was not tried.
    lab.committed(&again, commit()).await;
    let mut rest = Vec::new();
    while rest.len() < messages.len() - few {
        let turn = bounded_turn(&lab, "a").await;
        lab.same("the attempt", turn.attempt, 1);
        rest.extend(turn.item.messages.clone());
        lab.committed(&turn, commit()).await;
    }
    lab.same_list("messages behind the first turn", &rest, &messages[few..]);
    lab.no_turn().await;
}

/// A turn that is given back for a while and has left messages behind is not overtaken by them, nor by
/// what comes meanwhile. Nobody else waits for it.
pub async fn a_backlog_given_back_is_not_overtaken<F: ProviderFactory>(factory: &F) {
    let says = "while a turn that left messages behind is given back, its instance waits";
    let brief = lab(factory, Promise { rule: "R8.149", says, section: RETURNS }).await;
    let lab = brief.patient();
    lab.begin("a").await;
    lab.begin("b").await;
    for message in more_than_a_turn("a") {
        lab.send(message).await;
    }
    let first = bounded_turn(&lab, "a").await;
    lab.send_later(raise("a", "due meanwhile"), brief.lock / 8).await;
    lab.send(raise("a", "came under the lock")).await;
    // For ever, as it seems: nothing that time or others do lets anything of it through.
    given_back_for(&lab, &first, LONG).await;
    lab.no_turn().await;
    lab.send(cancel("a")).await;
    lab.send(raise("b", "of another instance")).await;
    lab.committed(&lab.turn_of("b").await, commit()).await;
    brief.locks_run_out().await;
    lab.no_turn().await;
    let depths = lab.ok("get_queue_depths", lab.admin().get_queue_depths().await);
    lab.same("the number of messages that wait", depths.orchestrator_queue, 5);
}

/// It comes back by itself: the same turn, once more, and everything behind it in order.
pub async fn a_backlog_given_back_comes_in_order<F: ProviderFactory>(factory: &F) {
    let says = "when the time is up the turn comes again, and then what waited behind it";
    let brief = lab(factory, Promise { rule: "R8.149", says, section: RETURNS }).await;
    let lab = brief.patient();
    lab.begin("a").await;
    let mut messages: Vec<WorkItem> = (0..MANY).map(|n| raise("a", &n.to_string())).collect();
    for message in &messages {
        lab.send(message.clone()).await;
    }
    let first = bounded_turn(&lab, "a").await;
    let few = first.item.messages.len();
    let began = Instant::now();
    given_back_for(&lab, &first, brief.lock).await;
    messages.extend([raise("a", "came meanwhile"), cancel("a")]);
    for message in &messages[messages.len() - 2..] {
        lab.send(message.clone()).await;
    }
    let again = lab.turn_soon().await;
    lab.not_before(brief.lock, began, "the delay");
    lab.same("the attempt", again.attempt, 2);
    lab.same_list("messages of the first turn", &again.item.messages, &messages[..few]);
    lab.committed(&again, commit()).await;
    let mut rest = Vec::new();
    while rest.len() < messages.len() - few {
        let turn = bounded_turn(&lab, "a").await;
        lab.same("the attempt", turn.attempt, 1);
        rest.extend(turn.item.messages.clone());
        lab.committed(&turn, commit()).await;
    }
    lab.same_list("messages behind the first turn", &rest, &messages[few..]);
    lab.no_turn().await;
}

/// A turn is bounded in bytes as well, unless one message alone is larger.
pub async fn large_messages_come_in_bounded_turns<F: ProviderFactory>(factory: &F) {
    let says = "a turn has 4 MiB of messages at most, or a single larger one";
    let lab = lab(factory, Promise { rule: "R8.147", says, section: TURNS }).await.patient();
    lab.begin("a").await;
    let large = |n: usize, mib: usize| {
        let data = n.to_string().repeat(mib << 20);
        WorkItem::ExternalRaised { instance: "a".into(), name: n.to_string(), data }
    };
    let sizes = [1, 1, 1, 1, 1, 5, 1, 3, 3];
    let messages: Vec<WorkItem> = sizes.iter().enumerate().map(|(n, mib)| large(n, *mib)).collect();
    for message in &messages {
        lab.send(message.clone()).await;
    }
    let mut received = Vec::new();
    while received.len() < messages.len() {
        let turn = bounded_turn(&lab, "a").await;
        received.extend(turn.item.messages.clone());
        lab.committed(&turn, commit()).await;
    }
    lab.expect(received == messages, "all messages, in order", received.len());
    lab.no_turn().await;
}

/// What begins an execution is in its first turn, however much was there before.
pub async fn a_beginning_is_found_behind_a_backlog<F: ProviderFactory>(factory: &F) {
    let says = "the message that begins an execution is in the turn in any case, in its place";
    let lab = lab(factory, Promise { rule: "R8.147", says, section: TURNS }).await.patient();
    let backlog: Vec<WorkItem> = (0..MANY).map(|n| raise("a", &n.to_string())).collect();
    for message in &backlog {
        lab.send(message.clone()).await;
    }
    lab.send(start("a")).await;
    let turn = bounded_turn(&lab, "a").await;
    lab.same("the last message", turn.item.messages.last(), Some(&start("a")));
    lab.same("the name", &turn.item.orchestration_name, "Orch");
    let read = turn.item.messages.len() - 1;
    lab.same_list("messages before it", &turn.item.messages[..read], &backlog[..read]);
    lab.committed(&turn, first_commit("a").ends("ContinuedAsNew", "x")).await;
    // What begins the next execution is behind what is left, and behind a start that does not count.
    for message in &backlog {
        lab.send(message.clone()).await;
    }
    lab.send(start("a")).await;
    lab.send(continue_as_new("a")).await;
    let turn = bounded_turn(&lab, "a").await;
    let next = turn.item.messages.iter().filter(|item| **item == continue_as_new("a")).count();
    lab.same("messages that begin the next execution", next, 1);
    lab.committed(&turn, commit().in_execution(2).event(started("a"))).await;
    let mut left = turn.item.messages.len() - 1;
    while left < backlog.len() - read + backlog.len() + 1 {
        let turn = bounded_turn(&lab, "a").await;
        left += turn.item.messages.len();
        lab.committed(&turn, commit().in_execution(2)).await;
    }
    lab.no_turn().await;
}

/// Several turns or activities at once are bounded in bytes together.
pub async fn several_at_once_are_bounded_together<F: ProviderFactory>(factory: &F) {
    let says = "a fetch of several has 16 MiB at most beyond its first";
    let lab = lab(factory, Promise { rule: "R8.147", says, section: TURNS }).await.patient();
    let mib = "x".repeat(1 << 20);
    for n in 0..24 {
        let mut message = start(&format!("i{n:02}"));
        message.payload_mut().map(|input| input.clone_from(&mib)).unwrap_or_default();
        lab.send(message).await;
        let mut work = activity("a", n + 2);
        work.payload_mut().map(|input| input.clone_from(&mib)).unwrap_or_default();
        lab.queue(work).await;
    }
    let (mut names, mut ids) = (Vec::new(), Vec::new());
    loop {
        let turns = lab.ok("fetch_turns", lab.fetch_turns(lab.lock, AT_ONCE, None, 100).await);
        let fits = turns.len() <= 1 + (MAX_FETCH_BYTES >> 20);
        lab.expect(fits, "16 MiB beyond the first turn at most", turns.len());
        if turns.is_empty() {
            break;
        }
        names.extend(turns.into_iter().map(|turn| turn.item.instance));
    }
    let tags = TagFilter::DefaultOnly;
    loop {
        let work = lab.fetch_work_items(lab.lock, AT_ONCE, None, &tags, 100).await;
        let work = lab.ok("fetch_work_items", work);
        let fits = work.len() <= 1 + (MAX_FETCH_BYTES >> 20);
        lab.expect(fits, "16 MiB beyond the first activity at most", work.len());
        if work.is_empty() {
            break;
        }
        let work = work.into_iter().map(|(item, token, attempt)| Job { item, token, attempt });
        ids.extend(work.map(|job| job.id()));
    }
    let all: Vec<String> = (0..24).map(|n| format!("i{n:02}")).collect();
    lab.same_list("instances", &names, &all);
    lab.same_list("activities", &ids, &(2..26).collect::<Vec<u64>>());
}

/// Two messages of which a turn can have only the first.
pub(super) fn more_than_a_turn(instance: &str) -> [WorkItem; 2] {
    ["first", "second"].map(|name| WorkItem::ExternalRaised {
        instance: instance.into(),
        name: name.into(),
        data: "x".repeat(MAX_TURN_BYTES * 3 / 4),
    })
}

async fn given_back_for(lab: &Lab, turn: &Turn, delay: Duration) {
    let result = lab.abandon_orchestration_item(&turn.token, Some(delay), false).await;
    lab.ok("abandon_orchestration_item", result);
}

/// The next turn, which must not hold more than a turn may.
async fn bounded_turn(lab: &Lab, instance: &str) -> Turn {
    let turn = lab.turn_of(instance).await;
    let (count, sizes) = (turn.item.messages.len(), turn.item.messages.iter());
    let bytes: usize = sizes.filter_map(WorkItem::payload).map(String::len).sum();
    lab.expect(count <= MAX_TURN_MESSAGES, "1000 messages at most", count);
    let is_small = count == 1 || bytes <= MAX_TURN_BYTES;
    lab.expect(is_small, "4 MiB of messages at most, or a single one", (count, bytes));
    turn
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
    let mut received = turn.item.messages.clone();
    lab.committed(&turn, first_commit("b")).await;
    while received.len() < messages.len() {
        let turn = lab.turn_of("b").await;
        received.extend(turn.item.messages.clone());
        lab.committed(&turn, commit()).await;
    }
    lab.same_list("messages", &received, &messages);
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
