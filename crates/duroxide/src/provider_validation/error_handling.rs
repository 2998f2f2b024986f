//! What is wrong is refused, for good and without traces; what is damaged is never taken for empty.

use super::ProviderFactory;
use super::lab::{Promise, Turn, lab};
use super::words::*;

const COMMIT: &str = "committing-a-turn";

/// A commit needs a lock token.
pub async fn test_invalid_lock_token_on_ack<F: ProviderFactory>(factory: &F) {
    let says = "a commit with an unknown lock token is refused, in words that say so";
    let lab = lab(factory, Promise { rule: "R8.40", says, section: COMMIT }).await.patient();
    lab.send(start("a")).await;
    let turn = lab.turn_of("a").await;
    lab.abandon(&turn).await;
    let (item, attempt) = (turn.item.clone(), turn.attempt);
    let never_given = Turn { item, token: "no such token".into(), attempt };
    for (call, turn) in [("a token never given", never_given), ("a token given back", turn)] {
        let committed = lab.commit(&turn, first_commit("a").message(start("b"))).await;
        lab.refused(&format!("a commit with {call}"), committed, &["Invalid lock token"]);
    }
    lab.same("the events", lab.event_ids("a").await, Vec::<u64>::new());
    lab.batch(&lab.turn_of("a").await, [start("a")]);
    lab.no_turn().await;
}

/// An event id is used once.
pub async fn test_duplicate_event_id_rejection<F: ProviderFactory>(factory: &F) {
    let says = "an event whose id is taken, or is 0, is refused with its whole commit";
    let lab = lab(factory, Promise { rule: "R8.62", says, section: COMMIT }).await.patient();
    lab.begin_as("a", first_commit("a").event(said(2, "first"))).await;
    lab.send(raise("a", "x")).await;
    let turn = lab.turn_of("a").await;
    let taken = commit().event(note(3)).event(said(2, "second"));
    lab.refused("a commit with a taken event id", lab.commit(&turn, taken).await, &[]);
    let twice = commit().event(note(3)).event(note(3));
    lab.refused("a commit with one event id twice", lab.commit(&turn, twice).await, &[]);
    let unnumbered = commit().event(note(3)).event(note(0)); // R8.61
    lab.refused("a commit with event id 0", lab.commit(&turn, unnumbered).await, &[]);
    let appended = lab.append_with_execution("a", 1, vec![said(2, "second")]).await; // R8.96
    lab.refused("append_with_execution with a taken event id", appended, &[]);
    let events = lab.ok("read", lab.read("a").await);
    let kinds: Vec<_> = events.into_iter().map(|event| event.kind).collect();
    lab.same("the events", kinds, [started("a").kind, said(2, "first").kind]);
    lab.committed(&turn, commit().event(note(3))).await;
    lab.same("the events", lab.event_ids("a").await, [1, 2, 3]);
}

/// Nothing is known of an unknown instance, and that is no error.
pub async fn test_missing_instance_metadata<F: ProviderFactory>(factory: &F) {
    let says = "an unknown instance has no events; a commit without a name makes no instance";
    let lab = lab(factory, Promise { rule: "R8.95", says, section: "reading" }).await.patient();
    lab.same("the events", lab.event_ids("a").await, Vec::<u64>::new());
    let read = lab.ok("read_with_execution", lab.read_with_execution("a", 1).await);
    lab.same("the number of events of execution 1", read.len(), 0);
    lab.send(start("a")).await;
    let turn = lab.turn_of("a").await;
    lab.committed(&turn, commit().event(started("a"))).await; // R8.44
    let instances = lab.ok("list_instances", lab.admin().list_instances().await);
    lab.same("the instances", instances, Vec::<String>::new());
}

/// What belongs into the other queue is refused, and fetching from empty queues is no error.
pub async fn test_corrupted_serialization_data<F: ProviderFactory>(factory: &F) {
    let says = "what belongs into the other queue is refused; empty queues give nothing, no error";
    let lab = lab(factory, Promise { rule: "R8.27", says, section: "fetching-a-turn" }).await;
    let misplaced = lab.enqueue_for_orchestrator(activity("a", 2), None).await; // R8.10
    lab.refused("enqueue_for_orchestrator of an activity", misplaced, &[]);
    let misplaced = lab.enqueue_for_worker(start("a")).await;
    lab.refused("enqueue_for_worker of a message", misplaced, &[]);
    lab.no_turn().await;
    lab.no_job().await;
}

/// A commit after the lock ran out is refused.
pub async fn test_lock_expiration_during_ack<F: ProviderFactory>(factory: &F) {
    let says = "a commit after the lock ran out changes nothing, even if nobody took the turn";
    let lab = lab(factory, Promise { rule: "R8.41", says, section: COMMIT }).await;
    lab.begin_as("a", first_commit("a").work(activity("a", 2))).await;
    lab.send(raise("a", "x")).await;
    let lapsed = lab.turn_of("a").await;
    lab.locks_run_out().await;
    let late = commit()
        .event(note(2))
        .message(start("b"))
        .cancelling(identity("a", 2))
        .ends("Completed", "out");
    lab.refused("a commit after the lock ran out", lab.commit(&lapsed, late).await, &[]);
    lab.same("the events", lab.event_ids("a").await, [1]);
    lab.same("the activity, which was not cancelled", lab.job().await.id(), 2);
    let info = lab.ok("get_instance_info", lab.admin().get_instance_info("a").await);
    lab.same("the status", info.status, "Running");
    let next = lab.patient().turn_of("a").await;
    lab.batch(&next, [raise("a", "x")]);
    lab.no_turn().await; // "b" was not queued
    lab.committed(&next, commit().event(note(2))).await;
}

/// A damaged history is not read as an empty one.
pub async fn test_read_corrupted_history_returns_error<F: ProviderFactory>(factory: &F) {
    let says = "a history that cannot be decoded is an error to read, never empty or shortened";
    let lab = lab(factory, Promise { rule: "R8.95", says, section: "reading" }).await;
    lab.begin("b").await;
    lab.begin_as("a", first_commit("a").event(note(2))).await;
    factory.corrupt_instance_history("a").await;
    lab.refused("read of a damaged history", lab.read("a").await, &[]);
    lab.same("the events of another instance", lab.event_ids("b").await, [1]);
}

/// A damaged history is not read as an empty one by execution, either.
pub async fn test_read_with_execution_corrupted_history_returns_error<F: ProviderFactory>(
    factory: &F,
) {
    let says = "a history that cannot be decoded is an error to read, never empty or shortened";
    let lab = lab(factory, Promise { rule: "R8.95", says, section: "reading" }).await;
    lab.begin("b").await;
    lab.begin_as("a", first_commit("a").event(note(2))).await;
    factory.corrupt_instance_history("a").await;
    let damaged = lab.read_with_execution("a", 1).await;
    lab.refused("read_with_execution of a damaged history", damaged, &[]);
    let intact = lab.ok("read_with_execution", lab.read_with_execution("b", 1).await);
    lab.same("the number of events of another instance", intact.len(), 1);
}
