//! Histories that cannot be read: what newer nodes wrote, or what rotted.

use super::super::ProviderFactory;
use super::super::lab::{Lab, Promise, Turn, lab};
use super::super::words::*;
use super::{SECTION, passed_over, pinned, served};
use duroxide_core::model::{ErrorDetails, Event, EventKind};

/// What cannot be read is passed over by its pin, or served with an error instead of a history.
pub async fn test_fetch_corrupted_history_filtered_vs_unfiltered<F: ProviderFactory>(factory: &F) {
    let says = "a turn whose history cannot be read is served with history_error and no history";
    let lab = lab(factory, Promise { rule: "R8.31", says, section: SECTION }).await;
    // The value of an ended execution would be in the snapshot, were it not for the damage.
    lab.begin_as("a", first_commit("a").event(set(2, "k", "v"))).await;
    lab.step("a", commit().ends("ContinuedAsNew", "x")).await;
    let mut first = started("a");
    first.execution_id = 2;
    lab.step("a", commit().in_execution(2).event(first).pinned("99.0.0")).await;
    lab.send(raise("a", "x")).await;
    factory.corrupt_instance_history("a").await;

    passed_over(&lab, &versions("0.0.0", "1.0.0")).await;
    let item = unreadable(&lab, lab.turn_of("a").await, 1).item;
    lab.same("the messages", &item.messages, &vec![raise("a", "x")]);
    lab.same("the name", &item.orchestration_name, "Orch");
    lab.same("the execution", item.execution_id, 2);
    lab.expect(item.kv_snapshot.is_empty(), "an empty snapshot", item.kv_snapshot);
}

/// A fetch is counted also if the history cannot be read.
pub async fn test_fetch_deserialization_error_increments_attempt_count<F: ProviderFactory>(
    factory: &F,
) {
    let says = "a fetch is counted, and counted for good, also if the history cannot be read";
    let lab = damaged(factory, Promise { rule: "R8.31", says, section: SECTION }).await;
    lab.same("the stored count before", factory.get_max_attempt_count("a").await, 0);
    unreadable(&lab, lab.turn_of("a").await, 1);
    lab.same("the stored count", factory.get_max_attempt_count("a").await, 1);
    lab.no_turn().await; // It is locked, as any turn.
    unreadable(&lab, lab.turn_soon().await, 2);
    lab.same("the stored count", factory.get_max_attempt_count("a").await, 2);
}

/// What can never be read reaches any limit of attempts, and can be ended then.
pub async fn test_fetch_deserialization_error_eventually_reaches_poison<F: ProviderFactory>(
    factory: &F,
) {
    let says = "fetched again and again, an unreadable history reaches the limit of attempts";
    let lab = damaged(factory, Promise { rule: "R8.31", says, section: SECTION }).await;
    let max_attempts = 10;
    for attempt in 1..=max_attempts {
        let turn = unreadable(&lab, lab.turn_of("a").await, attempt);
        lab.abandon(&turn).await;
    }
    let turn = unreadable(&lab, lab.turn_of("a").await, max_attempts + 1);
    lab.committed(&turn, commit().event(failure()).ends("Failed", "poison")).await;
    lab.no_turn().await;
}

/// Whether a turn is passed over is decided without its history.
pub async fn test_fetch_filter_applied_before_history_deserialization<F: ProviderFactory>(
    factory: &F,
) {
    let says = "the filter comes before the history: what is passed over is not read";
    let lab = lab(factory, Promise { rule: "R8.91", says, section: SECTION }).await;
    pinned(&lab, &[("a", "99.0.0"), ("healthy", "1.0.0")]).await;
    factory.corrupt_instance_history("a").await;
    let up_to_2 = versions("0.0.0", "2.0.0");
    let turn = served(&lab, &up_to_2, "healthy").await;
    lab.committed(&turn, commit().event(note(2))).await;
    passed_over(&lab, &up_to_2).await;
    lab.same("the stored count", factory.get_max_attempt_count("a").await, 0);
    unreadable(&lab, served(&lab, &versions("99.0.0", "99.0.0"), "a").await, 1);
}

/// A commit appends to a history that cannot be read.
pub async fn test_ack_appends_event_to_corrupted_history<F: ProviderFactory>(factory: &F) {
    let says = "a commit appends its events without reading or rewriting those before";
    let lab = damaged(factory, Promise { rule: "R8.48", says, section: SECTION }).await;
    let turn = unreadable(&lab, lab.turn_of("a").await, 1);
    lab.committed(&turn, commit().event(failure()).ends("Failed", "poison")).await;
    let info = lab.ok("get_execution_info", lab.admin().get_execution_info("a", 1).await);
    lab.same("the status", &info.status, "Failed");
    lab.same("the output", info.output.as_deref(), Some("poison"));
    lab.same("the number of events", info.event_count, 2);
    let read = lab.read("a").await;
    lab.refused("read, since the old event is as damaged as before,", read, &[]);
    lab.no_turn().await;
}

/// A store where the history of instance `a`, which has a message, cannot be read.
async fn damaged(factory: &dyn ProviderFactory, promise: Promise) -> Lab {
    let lab = lab(factory, promise).await;
    pinned(&lab, &[("a", "99.0.0")]).await;
    factory.corrupt_instance_history("a").await;
    lab
}

/// A turn must come with an error instead of a history, at this attempt.
fn unreadable(lab: &Lab, turn: Turn, attempt: u32) -> Turn {
    lab.expect(turn.item.history_error.is_some(), "history_error to be set", &turn);
    lab.expect(turn.item.history.is_empty(), "no history", &turn);
    lab.same("the attempt", turn.attempt, attempt);
    turn
}

/// The event that ends an execution whose history cannot be read (R7.78).
fn failure() -> Event {
    let details = ErrorDetails::nondeterminism("poison");
    event(99_999, EventKind::OrchestrationFailed { details })
}
