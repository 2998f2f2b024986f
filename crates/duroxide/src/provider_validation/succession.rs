//! A turn that continues as new, committed together with the first turn of the next execution. A
//! store that cannot do that has to say so.

use duroxide_core::model::EventKind;

use super::ProviderFactory;
use super::lab::{Lab, Promise, Turn, lab};
use super::words::*;
use crate::providers::TurnCommit;

const SECTION: &str = "committing-a-turn";

/// Both turns are there afterwards, as if they had been committed one after the other.
pub async fn two_turns_are_one_commit<F: ProviderFactory>(factory: &F) {
    let says = "a turn with its successor does what both would have done one after the other";
    let lab = lab(factory, Promise { rule: "R8.140", says, section: SECTION }).await.patient();
    let Some(turn) = begun(&lab).await else { return };
    let first = commit().event(set(2, "k", "1")).event(set(3, "gone", "1")).message(start("b"));
    let first = first.event(show(4, Some("one"))).cancelling(identity("a", 9));
    let next = successor().event(set(2, "k", "2")).event(clear(3, "gone"));
    let next = next.event(show(4, Some("two"))).work(activity("a", 5)).message(start("c"));
    committed(&lab, &turn, first.ends("ContinuedAsNew", "next"), next).await;
    let read = async |number| {
        let events = lab.ok("read", lab.read_with_execution("a", number).await);
        events.iter().map(|event| event.event_id).collect::<Vec<_>>()
    };
    lab.same("the events of execution 1", read(1).await, [1, 2, 3, 4]);
    lab.same("the events of execution 2", read(2).await, [1, 2, 3, 4]);
    let info = lab.info("a").await;
    lab.same("the current execution", info.current_execution_id, 2);
    lab.same("the status", info.status, "Running");
    let ended = lab.ok("get_execution_info", lab.admin().get_execution_info("a", 1).await);
    lab.same("the status of execution 1", ended.status, "ContinuedAsNew");
    lab.same("its output", ended.output.as_deref(), Some("next"));
    lab.values_are("a", &[("k", "2")]).await;
    lab.same("the custom status", lab.custom_status("a", 0).await, Some((Some("two".into()), 2)));
    lab.same("the activity", lab.job().await.item, activity("a", 5));
    lab.no_job().await;
    lab.batch(&lab.turn_of("b").await, [start("b")]);
    lab.batch(&lab.turn_of("c").await, [start("c")]);
    lab.no_turn().await;
    lab.send(raise("a", "x")).await;
    let turn = lab.turn_of("a").await;
    lab.same("the execution", turn.item.execution_id, 2);
    let left = turn.item.kv_snapshot.get("k").map(|entry| entry.value.as_str());
    lab.same("the value that execution 1 left", left, Some("1"));
}

/// What came while both ran waits for the next turn.
pub async fn what_came_meanwhile_is_the_successors<F: ProviderFactory>(factory: &F) {
    let says = "messages that come before the commit of both turns are for the turn after them";
    let lab = lab(factory, Promise { rule: "R8.140", says, section: SECTION }).await.patient();
    let Some(turn) = begun(&lab).await else { return };
    lab.send(raise("a", "late")).await;
    committed(&lab, &turn, commit().ends("ContinuedAsNew", "next"), successor()).await;
    let turn = lab.turn_of("a").await;
    lab.batch(&turn, [raise("a", "late")]);
    lab.same("the execution", turn.item.execution_id, 2);
    lab.same("the attempt", turn.attempt, 1);
}

/// The second turn may be the last one.
pub async fn a_successor_may_end_at_once<F: ProviderFactory>(factory: &F) {
    let says = "an instance whose successor ends in its first turn has ended";
    let lab = lab(factory, Promise { rule: "R8.140", says, section: SECTION }).await.patient();
    let Some(turn) = begun(&lab).await else { return };
    let output = EventKind::OrchestrationCompleted { output: "out".into() };
    let next = successor().event(event(2, output)).ends("Completed", "out");
    committed(&lab, &turn, commit().ends("ContinuedAsNew", "next"), next).await;
    let info = lab.info("a").await;
    lab.same("the status", info.status, "Completed");
    lab.same("the output", info.output.as_deref(), Some("out"));
    lab.same("the execution", info.current_execution_id, 2);
    lab.no_turn().await;
}

/// If one of the two cannot be stored, neither is.
pub async fn both_turns_or_neither<F: ProviderFactory>(factory: &F) {
    let says = "a successor that is refused is refused with its turn, which changes nothing";
    let lab = lab(factory, Promise { rule: "R8.140", says, section: SECTION }).await.patient();
    let Some(turn) = begun(&lab).await else { return };
    let first = || commit().event(set(2, "k", "1")).message(start("b")).ends("ContinuedAsNew", "n");
    let bad = [
        successor().event(note(2)).event(note(2)),
        successor().event(note(0)),
        successor().message(activity("a", 5)),
        successor().work(start("c")),
        successor().in_execution(1).event(note(7)),
        successor().in_execution(3),
    ];
    for next in bad {
        let both = with_successor(first(), next);
        let given = format!("{both:?}");
        let Err(rejected) = lab.commit_turn(&turn.token, both).await else {
            lab.broken("commit_turn to be refused", given)
        };
        lab.expect(!rejected.error.is_retryable(), "a refusal for good", &rejected.error);
        lab.same("the commit handed back", format!("{:?}", rejected.commit), given);
        lab.same("the events", lab.event_ids("a").await, [1]);
        lab.values_are("a", &[]).await;
        lab.no_turn().await;
    }
    committed(&lab, &turn, first(), successor()).await;
    lab.batch(&lab.turn_of("b").await, [start("b")]);
}

/// An instance with a turn in hand; `None` if the store cannot commit it with a successor, and says so.
async fn begun(lab: &Lab) -> Option<Turn> {
    lab.begin("a").await;
    lab.queue(activity("a", 9)).await;
    lab.send(raise("a", "x")).await;
    let turn = lab.turn_of("a").await;
    if lab.commits_successors() {
        return Some(turn);
    }
    let both = with_successor(commit().ends("ContinuedAsNew", "next"), successor());
    let refused = lab.commit_turn(&turn.token, both).await;
    lab.expect(refused.is_err(), "a store without successors to refuse them", refused);
    lab.same("the events", lab.event_ids("a").await, [1]);
    None
}

async fn committed(lab: &Lab, turn: &Turn, first: TurnCommit, next: TurnCommit) {
    let result = lab.commit_turn(&turn.token, with_successor(first, next)).await;
    lab.expect(result.is_ok(), "a turn and its successor to be committed", result);
}

fn with_successor(first: TurnCommit, next: TurnCommit) -> TurnCommit {
    first.change(|commit| commit.successor = Some(Box::new(next)))
}

/// The first turn of execution 2.
fn successor() -> TurnCommit {
    first_commit("a").in_execution(2)
}
