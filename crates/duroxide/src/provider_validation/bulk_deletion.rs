//! Deleting many takes roots that have ended, with their trees, all at once.

use super::ProviderFactory;
use super::admin_verbs::{Removed, at_most, ended_before, only};
use super::lab::{Lab, Promise, lab};
use super::words::*;
use crate::providers::InstanceFilter;

const SECTION: &str = "deleting";
const NOTHING: Removed = Removed { instances: 0, executions: 0, events: 0, messages: 0 };

/// The filter's conditions must all hold; without one, all that has ended goes.
pub async fn test_delete_instance_bulk_filter_combinations<F: ProviderFactory>(factory: &F) {
    let says = "a bulk deletion takes what meets all conditions of its filter (R6.70, R6.73)";
    let lab = lab(factory, Promise { rule: "R6.71", says, section: SECTION }).await.patient();
    for (id, status) in [
        ("a", "Completed"),
        ("b", "Failed"),
        ("c", "ContinuedAsNew"),
        ("d", "Completed"),
        ("e", "Failed"),
    ] {
        lab.ended(id, status).await;
        lab.tick().await;
    }
    lab.begin("running").await;
    lab.same("what an unknown id deletes", lab.delete_bulk(only(&["?"])).await, NOTHING);
    lab.same("what an empty list deletes", lab.delete_bulk(only(&[])).await, NOTHING);

    lab.send(raise("a", "x")).await;
    let went = Removed { instances: 1, executions: 1, events: 1, messages: 1 };
    lab.same("what ids delete", lab.delete_bulk(only(&["a", "?"])).await, went);
    left(&lab, &["b", "c", "d", "e", "running"]).await;
    lab.gone("a").await;
    lab.no_turn().await;

    // "d" and "e" are named but too young, "c" is old enough but not named.
    let time = lab.ended_at("d", 1).await;
    let both = InstanceFilter { completed_before: Some(time), ..only(&["b", "d", "e"]) };
    lab.same("ids and a time", lab.delete_bulk(both).await.instances, 1);
    left(&lab, &["c", "d", "e", "running"]).await;
    let limited = InstanceFilter { limit: Some(1), ..only(&["d"]) };
    lab.same("ids and a limit", lab.delete_bulk(limited).await.instances, 1);
    left(&lab, &["c", "e", "running"]).await;

    let went = lab.delete_bulk(InstanceFilter::default()).await;
    lab.same("an empty filter", went.instances, 2);
    left(&lab, &["running"]).await;
}

/// What runs is passed over, and a limit is a limit.
pub async fn test_delete_instance_bulk_safety_and_limits<F: ProviderFactory>(factory: &F) {
    let says = "what runs, and children, are passed over even if named; a limit counts roots";
    let lab = lab(factory, Promise { rule: "R6.71", says, section: SECTION }).await.patient();
    lab.begin("running").await;
    lab.looping("looping", 2).await;
    lab.ended("parent", "Completed").await;
    lab.begin_child("running child", "parent").await;
    lab.begin("busy").await;
    lab.begin_child("ended child", "busy").await;
    lab.step("ended child", commit().ends("Completed", "out")).await;
    let all = ["busy", "ended child", "looping", "parent", "running", "running child"];
    lab.same("what is named but safe", lab.delete_bulk(only(&all)).await, NOTHING);
    lab.same("what is safe", lab.delete_bulk(InstanceFilter::default()).await, NOTHING);
    left(&lab, &all).await;

    // All these are younger than the ones above, which must not use up the limit.
    for number in 1..=5 {
        lab.ended(&format!("done {number}"), "Completed").await;
    }
    for expected in [2, 2, 1, 0] {
        let went = lab.delete_bulk(at_most(2)).await;
        lab.same("how many went with limit 2", went.instances, expected);
    }
    left(&lab, &all).await;
}

/// A time lets go what ended before it.
pub async fn test_delete_instance_bulk_completed_before_filter<F: ProviderFactory>(factory: &F) {
    let says = "completed_before takes what ended before that time, not at it";
    let lab = lab(factory, Promise { rule: "R6.72", says, section: SECTION }).await.patient();
    // Began first, ended last; and one whose first execution ended early, but not its current one.
    lab.begin("slow").await;
    lab.looping("looping", 2).await;
    for id in ["early", "late"] {
        lab.tick().await;
        lab.ended(id, "Completed").await;
    }
    lab.tick().await;
    lab.step("slow", commit().ends("Completed", "out")).await;
    lab.step("looping", commit().in_execution(2).ends("Completed", "out")).await;
    let (early, late) = (lab.ended_at("early", 1).await, lab.ended_at("late", 1).await);

    let went = lab.delete_bulk(ended_before(early)).await;
    lab.same("what ended before the first end", went, NOTHING);
    let went = lab.delete_bulk(ended_before(late)).await;
    lab.same("how many ended before the second", went.instances, 1);
    left(&lab, &["late", "looping", "slow"]).await;
    let went = lab.delete_bulk(ended_before(late + 1)).await;
    lab.same("how many ended just before the time", went.instances, 1);
    left(&lab, &["looping", "slow"]).await;
}

/// Trees go as a whole, or stay as a whole.
pub async fn test_delete_instance_bulk_cascades_to_children<F: ProviderFactory>(factory: &F) {
    let says = "a root goes with its whole tree, counted; a running descendant keeps all of it";
    let lab = lab(factory, Promise { rule: "R6.74", says, section: SECTION }).await.patient();
    for root in ["done", "busy"] {
        lab.ended(root, "Completed").await;
        let (child, grandchild) = (format!("{root} child"), format!("{root} grandchild"));
        lab.begin_child(&child, root).await;
        lab.step(&child, commit().event(note(2)).ends("Failed", "out")).await;
        lab.begin_child(&grandchild, &child).await;
    }
    lab.step("done grandchild", commit().ends("Completed", "out")).await;
    lab.queue(activity("done grandchild", 2)).await;
    lab.ended("alone", "Completed").await;

    let tree = Removed { instances: 3, executions: 3, events: 4, messages: 1 };
    let one_root = InstanceFilter { limit: Some(1), ..only(&["done", "busy"]) };
    lab.same("what went with one root", lab.delete_bulk(one_root).await, tree);
    for id in ["done", "done child", "done grandchild"] {
        lab.gone(id).await;
    }
    lab.no_job().await;
    let went = lab.delete_bulk(InstanceFilter::default()).await;
    lab.same("how many went beside the busy tree", went.instances, 1);
    left(&lab, &["busy", "busy child", "busy grandchild"]).await;
    lab.same("the events of the busy tree", lab.event_ids("busy child").await, [1, 2]);

    lab.step("busy grandchild", commit().ends("Completed", "out")).await;
    let went = lab.delete_bulk(InstanceFilter::default()).await;
    lab.same("how many went once the tree had ended", went.instances, 3);
    left(&lab, &[]).await;
}

/// Exactly these instances are left.
async fn left(lab: &Lab, expected: &[&str]) {
    lab.same("the instances that are left", lab.instances().await, expected);
}
