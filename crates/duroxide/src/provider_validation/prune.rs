//! Pruning removes old executions and nothing else.

use super::ProviderFactory;
use super::admin_verbs::{Pruned, ended_before, keep, only};
use super::lab::{Lab, Promise, lab};
use super::words::*;
use crate::providers::{InstanceFilter, PruneOptions};

const SECTION: &str = "pruning";

/// Number and age decide, and both must allow it.
pub async fn test_prune_options_combinations<F: ProviderFactory>(factory: &F) {
    let says = "an execution goes if it is neither among the newest to keep nor too young";
    let lab = lab(factory, Promise { rule: "R6.81", says, section: SECTION }).await.patient();
    let everything = PruneOptions::default();
    let one_or_less = [everything.clone(), keep(0), keep(1)];
    for (case, options) in one_or_less.into_iter().enumerate() {
        let id = format!("all {case}");
        five(&lab, &id).await;
        pruned_to(&lab, &id, options, &[5]).await;
    }
    five(&lab, "three").await;
    pruned_to(&lab, "three", keep(9), &[1, 2, 3, 4, 5]).await;
    pruned_to(&lab, "three", keep(5), &[1, 2, 3, 4, 5]).await;
    pruned_to(&lab, "three", keep(3), &[3, 4, 5]).await;

    five(&lab, "young").await;
    let third = lab.ended_at("young", 3).await;
    let first = lab.ended_at("young", 1).await;
    pruned_to(&lab, "young", before(first), &[1, 2, 3, 4, 5]).await;
    pruned_to(&lab, "young", before(third), &[3, 4, 5]).await;

    five(&lab, "both").await;
    let (second, third) = (lab.ended_at("both", 2).await, lab.ended_at("both", 3).await);
    let both = |keep, time| PruneOptions { keep_last: Some(keep), completed_before: Some(time) };
    // The number would let 1 to 4 go, the time only 1; then the number only 2, the time also 3.
    pruned_to(&lab, "both", both(1, second), &[2, 3, 4, 5]).await;
    pruned_to(&lab, "both", both(3, third + 1), &[3, 4, 5]).await;
}

/// What is current or runs stays, whatever the options say.
pub async fn test_prune_safety<F: ProviderFactory>(factory: &F) {
    let says = "neither the current execution nor one that runs is ever pruned";
    let lab = lab(factory, Promise { rule: "R6.80", says, section: SECTION }).await.patient();
    lab.begin("running").await;
    lab.ended("done", "Completed").await;
    lab.ended("between", "ContinuedAsNew").await;
    let time = lab.ended_at("done", 1).await + 1_000_000;
    let none = || Pruned { instances: 1, executions: 0, events: 0 };
    for id in ["running", "done", "between"] {
        for options in [PruneOptions::default(), keep(0), before(time)] {
            lab.same("what was pruned", lab.prune(id, options).await, none());
        }
        lab.same(&format!("the executions of {id:?}"), lab.executions(id).await, [1]);
        lab.same(&format!("the events of {id:?}"), lab.event_ids(id).await, [1]);
    }

    // The second execution began although the first never ended.
    lab.begin("odd").await;
    lab.step("odd", commit().in_execution(2).event(started("odd"))).await;
    lab.same("what was pruned", lab.prune("odd", keep(1)).await, none());
    lab.same("an execution that runs", lab.executions("odd").await, [1, 2]);

    let unknown = lab.admin().prune_executions("?", keep(1)).await;
    lab.refused("prune_executions of an unknown instance (R6.83)", unknown, &["not found"]);
    lab.same("the instances", lab.instances().await, ["between", "done", "odd", "running"]);
}

/// A bulk call prunes what its filter lets through.
pub async fn test_prune_bulk<F: ProviderFactory>(factory: &F) {
    let says = "bulk pruning touches only instances that the filter lets through";
    let lab = lab(factory, Promise { rule: "R6.84", says, section: SECTION }).await.patient();
    for id in ["a", "b", "c"] {
        lab.looping(id, 3).await;
    }
    for nobody in [only(&[]), only(&["?"])] {
        let nothing = Pruned { instances: 0, executions: 0, events: 0 };
        lab.same("what was pruned", lab.prune_bulk(nobody, keep(1)).await, nothing);
    }
    let went = lab.prune_bulk(only(&["a", "c", "?"]), keep(2)).await;
    lab.same("what was pruned", went, Pruned { instances: 2, executions: 2, events: 2 });
    for (id, left) in [("a", &[2, 3][..]), ("b", &[1, 2, 3]), ("c", &[2, 3])] {
        lab.same(&format!("the executions of {id:?}"), lab.executions(id).await, left);
    }

    // With a time, it counts when the current execution ended: those that run drop out.
    lab.tick().await;
    lab.step("a", commit().in_execution(3).ends("Completed", "out")).await;
    lab.tick().await;
    lab.step("b", commit().in_execution(3).ends("Completed", "out")).await;
    let time = lab.ended_at("b", 3).await;
    let went = lab.prune_bulk(ended_before(time), PruneOptions::default()).await;
    lab.same("what was pruned", went, Pruned { instances: 1, executions: 1, events: 1 });
    lab.same("the executions of the one that ended before", lab.executions("a").await, [3]);
    lab.same("those of the one that did not", lab.executions("b").await, [1, 2, 3]);

    let first = InstanceFilter { limit: Some(1), ..only(&["b", "c"]) };
    let went = lab.prune_bulk(first, keep(1)).await;
    lab.same("how many were looked at with limit 1", went.instances, 1);
    let both = (lab.executions("b").await, lab.executions("c").await);
    lab.expect((both.0.len() == 1) != (both.1.len() == 1), "one to be pruned, not both", &both);
    lab.prune_bulk(InstanceFilter::default(), keep(1)).await;
    let both = (lab.executions("b").await, lab.executions("c").await);
    lab.same("what is left without a filter", both, (vec![3], vec![3]));
    let went = lab.prune_bulk(InstanceFilter::default(), keep(1)).await;
    let nothing = Pruned { instances: 3, executions: 0, events: 0 }; // R6.82: looked at, all the same
    lab.same("what there was left to prune", went, nothing);
}

/// Instances that run are pruned, too.
pub async fn test_prune_bulk_includes_running_instances<F: ProviderFactory>(factory: &F) {
    let says = "bulk pruning takes old executions of running instances and of children, too";
    let lab = lab(factory, Promise { rule: "R6.84", says, section: SECTION }).await.patient();
    lab.looping("running", 3).await;
    lab.begin_child("child", "running").await;
    lab.continue_as_new("child", 2, commit().event(started("child"))).await;
    lab.looping("done", 2).await;
    lab.step("done", commit().in_execution(2).ends("Completed", "out")).await;
    let went = lab.prune_bulk(InstanceFilter::default(), keep(1)).await;
    lab.same("what was pruned", went, Pruned { instances: 3, executions: 4, events: 4 });
    for (id, current, status) in
        [("running", 3, "Running"), ("child", 2, "Running"), ("done", 2, "Completed")]
    {
        lab.same(&format!("the executions of {id:?}"), lab.executions(id).await, [current]);
        lab.same(&format!("the status of {id:?}"), lab.info(id).await.status, status);
    }
    // The one that runs goes on as if nothing had happened.
    lab.step("running", commit().in_execution(3).event(note(2))).await;
    lab.same("its events", lab.event_ids("running").await, [1, 2]);
}

/// An instance in its fifth execution. Execution n has n events, and all ended at different times.
async fn five(lab: &Lab, id: &str) {
    lab.begin(id).await;
    for number in 2..=5 {
        lab.tick().await;
        let first = commit().event(started(id));
        let first = (2..=number).fold(first, |commit, event_id| commit.event(note(event_id)));
        lab.continue_as_new(id, number, first).await;
    }
}

/// After pruning one of `five`, exactly these executions are left, with their histories.
async fn pruned_to(lab: &Lab, id: &str, options: PruneOptions, left: &[u64]) {
    let case = format!("{options:?}");
    let there = lab.executions(id).await;
    let gone: Vec<u64> = there.into_iter().filter(|number| !left.contains(number)).collect();
    let (executions, events) = (gone.len() as u64, gone.iter().sum());
    let went = Pruned { instances: 1, executions, events };
    lab.same(&format!("what {case} pruned"), lab.prune(id, options).await, went);
    lab.same(&format!("what {case} left"), lab.executions(id).await, left);
    for number in 1..=5 {
        let history = lab.ok("read_with_execution", lab.read_with_execution(id, number).await);
        let length = if left.contains(&number) { number as usize } else { 0 };
        lab.same(&format!("the events of execution {number}"), history.len(), length);
    }
}

fn before(time: u64) -> PruneOptions {
    PruneOptions { keep_last: None, completed_before: Some(time) }
}
