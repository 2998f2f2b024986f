//! Turns without history, and the rest of the history.

use super::super::ProviderFactory;
use super::super::lab::{AT_ONCE, Lab, Promise, lab};
use super::super::words::*;
use crate::providers::FetchedTurn;
use duroxide_core::model::Event;

/// A turn without its history is the same turn.
pub async fn a_turn_without_history_is_the_same_turn<F: ProviderFactory>(factory: &F) {
    let says = "fetch_turn and read_history_from give what fetch_orchestration_item gives";
    let section = "fetching-a-turn";
    let lab = lab(factory, Promise { rule: "R8.130", says, section }).await.patient();
    lab.send(start("new")).await;
    the_same_both_ways(&lab, "new", &[]).await;
    let long = first_commit("a").event(set(2, "k", "v")).event(show(3, Some("s"))).event(note(7));
    lab.begin_as("a", long).await;
    lab.send(raise("a", "x")).await;
    lab.send(queue_message("a", "y")).await;
    the_same_both_ways(&lab, "a", &[1, 2, 3, 7]).await;
    // The next execution has a history of its own, and a snapshot.
    lab.step("a", commit().ends("ContinuedAsNew", "x")).await;
    lab.step("a", commit().in_execution(2).event(started("a")).event(note(2))).await;
    lab.send(raise("a", "z")).await;
    the_same_both_ways(&lab, "a", &[1, 2]).await;
}

/// `fetch_turn` locks like any fetch.
pub async fn a_turn_without_history_is_locked<F: ProviderFactory>(factory: &F) {
    let says = "fetch_turn locks, counts and filters like fetch_orchestration_item";
    let section = "fetching-a-turn";
    let lab = lab(factory, Promise { rule: "R8.130", says, section }).await.patient();
    let none = lab.fetch_turn(lab.lock, AT_ONCE, None).await;
    let none = lab.ok("fetch_turn", none);
    lab.expect(none.is_none(), "nothing to fetch", none);
    lab.begin_as("a", first_commit("a").pinned("2.0.0")).await;
    lab.send(raise("a", "x")).await;
    let unfit = lab.fetch_turn(lab.lock, AT_ONCE, Some(&versions("1.0.0", "1.9.9"))).await;
    let unfit = lab.ok("fetch_turn", unfit);
    lab.expect(unfit.is_none(), "nothing for another version", unfit);
    let turn = fetch_turn(&lab).await;
    lab.same("the attempt", turn.attempt_count, 1);
    lab.no_turn().await;
    let again = lab.ok("fetch_turn", lab.fetch_turn(lab.lock, AT_ONCE, None).await);
    lab.expect(again.is_none(), "the instance to be locked", again);
    let committed = lab.commit_turn(&turn.lock_token, commit().event(note(2))).await;
    lab.expect(committed.is_ok(), "the token to be good for a commit", committed);
    lab.no_turn().await;
}

/// A history can be read in parts.
pub async fn a_history_can_be_read_in_parts<F: ProviderFactory>(factory: &F) {
    let says = "read_history_from gives the events from an id on, at most so many, in order";
    let lab = lab(factory, Promise { rule: "R8.131", says, section: "reading" }).await.patient();
    let first = first_commit("a").event(note(2)).event(note(5)).event(note(6)).event(note(9));
    lab.begin_as("a", first).await;
    let all = lab.ok("read", lab.read("a").await);
    let cases: [(u64, Option<usize>, &[u64]); 9] = [
        (0, None, &[1, 2, 5, 6, 9]),
        (1, None, &[1, 2, 5, 6, 9]),
        (3, None, &[5, 6, 9]),
        (9, None, &[9]),
        (10, None, &[]),
        (1, Some(0), &[]),
        (1, Some(2), &[1, 2]),
        (3, Some(2), &[5, 6]),
        (6, Some(99), &[6, 9]),
    ];
    for (from, limit, ids) in cases {
        let part = lab.ok("read_history_from", lab.read_history_from("a", 1, from, limit).await);
        let expected: Vec<Event> =
            all.iter().filter(|event| ids.contains(&event.event_id)).cloned().collect();
        lab.same_list(&format!("events from {from}, at most {limit:?}"), &part, &expected);
    }
    lab.continue_as_new("a", 2, commit().event(started("a"))).await;
    for (instance, execution, expected) in [("a", 1, 5), ("a", 2, 1), ("a", 3, 0), ("b", 1, 0)] {
        let part = lab.read_history_from(instance, execution, 1, None).await;
        let part = lab.ok("read_history_from", part).len();
        lab.same(&format!("the events of {instance} {execution}"), part, expected);
    }
}

/// Damage is told in parts as well.
pub async fn damage_is_not_left_out<F: ProviderFactory>(factory: &F) {
    let says = "a history that cannot be read is an error in parts, and told with the turn";
    let lab = lab(factory, Promise { rule: "R8.95", says, section: "reading" }).await.patient();
    lab.begin_as("a", first_commit("a").event(note(2))).await;
    lab.send(raise("a", "x")).await;
    factory.corrupt_instance_history("a").await;
    lab.refused("read_history_from", lab.read_history_from("a", 1, 1, None).await, &[]);
    let turn = fetch_turn(&lab).await;
    lab.same("the attempt", turn.attempt_count, 1);
    lab.same("the events", turn.item.history.len(), 0);
    let told = turn.item.history_error.is_some() || !turn.history_included;
    lab.expect(told, "an error, or the history left out", turn);
}

/// The turn of an instance, fetched both ways, with these events.
async fn the_same_both_ways(lab: &Lab, instance: &str, ids: &[u64]) {
    let short = fetch_turn(lab).await;
    let given_back = lab.abandon_orchestration_item(&short.lock_token, None, true).await;
    lab.ok("abandon_orchestration_item", given_back);
    let whole = lab.turn_of(instance).await;
    lab.same("the instance", &short.item.instance, instance);
    lab.same("the name", &short.item.orchestration_name, &whole.item.orchestration_name);
    lab.same("the version", &short.item.version, &whole.item.version);
    lab.same("the execution", short.item.execution_id, whole.item.execution_id);
    lab.same("the messages", &short.item.messages, &whole.item.messages);
    lab.same("the snapshot", &short.item.kv_snapshot, &whole.item.kv_snapshot);
    lab.same("the error", &short.item.history_error, &whole.item.history_error);
    lab.same("the attempt", short.attempt_count, whole.attempt);
    lab.same("the last event id", short.last_event_id, ids.last().copied().unwrap_or(0));
    let execution = short.item.execution_id;
    let read = lab.read_history_from(instance, execution, 1, None).await;
    let read = lab.ok("read_history_from", read);
    let events = if short.history_included { &short.item.history } else { &read };
    lab.same_list("events", events, &whole.item.history);
    lab.same_list("events read", &read, &whole.item.history);
    let found: Vec<u64> = events.iter().map(|event| event.event_id).collect();
    lab.same("the event ids", found, ids);
    let left_out = short.history_included || short.item.history.is_empty();
    lab.expect(left_out, "no history where it is not included", &short);
    let next = ids.last().map_or(1, |id| id + 1);
    let next = commit().in_execution(execution).named("Orch", "1.0.0").event(note(next));
    lab.committed(&whole, next).await;
}

async fn fetch_turn(lab: &Lab) -> FetchedTurn {
    match lab.ok("fetch_turn", lab.fetch_turn(lab.lock, AT_ONCE, None).await) {
        Some(turn) => turn,
        None => lab.broken("a turn to fetch", "nothing"),
    }
}
