//! Each execution of an instance has its own history, and the newest one is current.

use super::ProviderFactory;
use super::lab::{Lab, Promise, lab};
use super::words::*;

/// What one execution does is not in the other's history.
pub async fn test_execution_isolation<F: ProviderFactory>(factory: &F) {
    let says = "each execution has a history of its own, in which event ids start again";
    let section = "committing-a-turn";
    let lab = lab(factory, Promise { rule: "R8.48", says, section }).await.patient();
    lab.looping("a", 2).await;
    lab.step("a", commit().in_execution(2).event(note(2)).event(note(3))).await;
    lab.begin("b").await;
    lab.same("execution 1 of a", ids(&lab, "a", 1).await, [1]);
    lab.same("execution 2 of a", ids(&lab, "a", 2).await, [1, 2, 3]);
    lab.same("execution 3 of a, which does not exist", ids(&lab, "a", 3).await, Vec::<u64>::new());
    lab.same("execution 1 of b", ids(&lab, "b", 1).await, [1]);
}

/// Whoever asks for the history gets the newest execution's.
pub async fn test_latest_execution_detection<F: ProviderFactory>(factory: &F) {
    let says = "the newest execution is the one that is read, whichever was written last";
    let lab = lab(factory, Promise { rule: "R8.47", says, section: "reading" }).await.patient();
    lab.looping("a", 2).await;
    lab.step("a", commit().in_execution(2).event(note(2))).await;
    lab.same("the history that is read", lab.event_ids("a").await, [1, 2]);
    lab.same("the older history", ids(&lab, "a", 1).await, [1]);
    // A late commit to the older one does not make it current again.
    lab.step("a", commit().in_execution(1).event(note(7))).await;
    lab.same("the history that is read", lab.event_ids("a").await, [1, 2]);
    lab.same("the older history", ids(&lab, "a", 1).await, [1, 7]);
    lab.same("the latest execution", latest(&lab, "a").await, 2);
    let info = lab.ok("get_instance_info", lab.admin().get_instance_info("a").await);
    lab.same("the current execution", info.current_execution_id, 2);
}

/// A fetch says which execution is current.
pub async fn test_execution_id_sequencing<F: ProviderFactory>(factory: &F) {
    let says = "a fetch gives the current execution, from the commit that made it on";
    let lab = lab(factory, Promise { rule: "R8.24", says, section: "fetching-a-turn" }).await;
    lab.begin("a").await;
    for current in 1..=3 {
        lab.send(raise("a", "x")).await;
        let turn = lab.patient().turn_of("a").await;
        lab.same("the execution", turn.item.execution_id, current);
        let history: Vec<u64> = turn.item.history.iter().map(|event| event.event_id).collect();
        lab.same("its history", history, [1]);
        lab.same("whose it is", turn.item.history[0].execution_id, current);
        lab.committed(&turn, commit().in_execution(current).ends("ContinuedAsNew", "x")).await;
        // Ending it makes no other one.
        lab.send(continue_as_new("a")).await;
        let turn = lab.patient().turn_of("a").await;
        lab.same("the execution that ended last", turn.item.execution_id, current);
        lab.committed(&turn, first_of(current + 1)).await;
    }
}

/// The first commit of an execution makes it.
pub async fn test_continue_as_new_creates_new_execution<F: ProviderFactory>(factory: &F) {
    let says = "the first commit of the next execution makes it the current, running one";
    let section = "committing-a-turn";
    let lab = lab(factory, Promise { rule: "R8.45", says, section }).await;
    lab.begin("a").await;
    let end = commit().ends("ContinuedAsNew", "next").message(continue_as_new("a"));
    lab.step("a", end).await;
    lab.same("the executions before", executions(&lab, "a").await, [1]);
    let turn = lab.patient().turn_of("a").await;
    lab.batch(&turn, [continue_as_new("a")]);
    lab.committed(&turn, first_of(2)).await;
    lab.same("the executions after", executions(&lab, "a").await, [1, 2]);
    lab.same("the latest execution", latest(&lab, "a").await, 2);
    let info = lab.ok("get_instance_info", lab.admin().get_instance_info("a").await);
    lab.same("the current execution", info.current_execution_id, 2);
    lab.same("the status", info.status, "Running");
    lab.same("the status of the old one", status(&lab, "a", 1).await, "ContinuedAsNew");
    // A later commit to an execution does not make it anew.
    lab.step("a", commit().in_execution(1)).await;
    lab.same("the status of the old one", status(&lab, "a", 1).await, "ContinuedAsNew");
}

/// All executions stay readable.
pub async fn test_execution_history_persistence<F: ProviderFactory>(factory: &F) {
    let says = "the histories of all executions stay, each readable by its number";
    let lab = lab(factory, Promise { rule: "R8.48", says, section: "reading" }).await.patient();
    lab.begin("a").await;
    for number in 1..=3_u64 {
        if 1 < number {
            lab.step("a", first_of(number)).await;
        }
        let data = format!("of {number}");
        let end = commit().in_execution(number).event(said(2, &data)).ends("ContinuedAsNew", "x");
        lab.step("a", end).await;
    }
    lab.same("the executions", executions(&lab, "a").await, [1, 2, 3]);
    for number in 1..=3_u64 {
        let read = lab.read_with_execution("a", number).await;
        let events = lab.ok("read_with_execution", read);
        let kinds: Vec<_> = events.into_iter().map(|event| event.kind).collect();
        let expected = [started("a").kind, said(2, &format!("of {number}")).kind];
        lab.same("the events of an execution", kinds, expected);
    }
}

/// The first commit of a further execution.
fn first_of(number: u64) -> crate::providers::TurnCommit {
    let mut first = started("a");
    first.execution_id = number;
    commit().in_execution(number).event(first)
}

async fn ids(lab: &Lab, instance: &str, execution: u64) -> Vec<u64> {
    let read = lab.read_with_execution(instance, execution).await;
    let events = lab.ok("read_with_execution", read);
    events.iter().map(|event| event.event_id).collect()
}

async fn executions(lab: &Lab, instance: &str) -> Vec<u64> {
    lab.ok("list_executions", lab.admin().list_executions(instance).await)
}

async fn latest(lab: &Lab, instance: &str) -> u64 {
    lab.ok("latest_execution_id", lab.admin().latest_execution_id(instance).await)
}

async fn status(lab: &Lab, instance: &str, execution: u64) -> String {
    let info = lab.admin().get_execution_info(instance, execution).await;
    lab.ok("get_execution_info", info).status
}
