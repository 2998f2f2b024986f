//! Deleting takes whole trees, nothing else, and leaves no trace.

use std::time::Duration;

use super::ProviderFactory;
use super::admin_verbs::Removed;
use super::lab::{Lab, Promise, lab};
use super::words::*;
use crate::providers::{DeleteRefused, InstanceTree};

const SECTION: &str = "deleting";
const AN_HOUR: Duration = Duration::from_secs(3600);

/// Whatever has ended can be deleted, and the answer counts what went.
pub async fn test_delete_terminal_instances<F: ProviderFactory>(factory: &F) {
    let says = "an instance that has ended, in whatever way, can be deleted; what went is counted";
    let lab = lab(factory, Promise { rule: "R6.60", says, section: SECTION }).await.patient();
    lab.begin("bystander").await;
    lab.begin("cancelled").await;
    lab.send(cancel("cancelled")).await;
    let turn = lab.turn_of("cancelled").await;
    lab.committed(&turn, commit().ends("Failed", "canceled: because")).await;
    for (id, status) in [("done", "Completed"), ("failed", "Failed"), ("next", "ContinuedAsNew")] {
        lab.ended(id, status).await;
    }
    for id in ["cancelled", "done", "failed", "next"] {
        let one = Removed { instances: 1, executions: 1, events: 1, messages: 0 };
        lab.same(&format!("what went with {id:?}"), lab.delete(id).await, one);
        lab.gone(id).await;
    }

    lab.looping("long", 3).await;
    let end = commit().in_execution(3).event(note(2)).event(note(3));
    let end = end.event(set(4, "k", "v")).event(show(5, Some("s"))).ends("Completed", "o");
    lab.step("long", end).await;
    let long = Removed { instances: 1, executions: 3, events: 7, messages: 0 };
    lab.same("what went with three executions", lab.delete("long").await, long);
    lab.gone("long").await;
    lab.same("the instances that are left", lab.instances().await, ["bystander"]);
    lab.same("the bystander's events", lab.event_ids("bystander").await, [1]);
}

/// What runs is only deleted by force.
pub async fn test_delete_running_rejected_force_succeeds<F: ProviderFactory>(factory: &F) {
    let says = "an instance that runs, or has a descendant that does, is only deleted by force";
    let lab = lab(factory, Promise { rule: "R6.61", says, section: SECTION }).await.patient();
    lab.begin("running").await;
    lab.looping("looping", 2).await;
    lab.ended("parent", "Completed").await;
    lab.begin_child("child", "parent").await;
    for (id, went) in [("running", (1, 1, 1)), ("looping", (1, 2, 2)), ("parent", (2, 2, 2))] {
        let refused = lab.admin().delete_instance(id, false).await;
        lab.refused("delete_instance of what runs", refused, &["still running"]);
        refused_as(&lab, id, DeleteRefused::StillRunning).await;
        lab.same("the instance after the refusal", lab.info(id).await.instance_id, id);
        lab.same("its events after the refusal", lab.event_ids(id).await, [1]);
        let (instances, executions, events) = went;
        let went = Removed { instances, executions, events, messages: 0 };
        lab.same("what went by force", lab.delete_by_force(id).await, went);
        lab.gone(id).await;
    }
    lab.gone("child").await;
}

/// What is not there cannot be deleted.
pub async fn test_delete_nonexistent_instance<F: ProviderFactory>(factory: &F) {
    let says = "deleting an unknown instance is an error, not a silent success";
    let lab = lab(factory, Promise { rule: "R6.61", says, section: SECTION }).await.patient();
    lab.ended("a", "Completed").await;
    lab.delete("a").await;
    lab.send(start("queued")).await;
    for id in ["unknown", "a", "queued"] {
        for force in [false, true] {
            let refused = lab.admin().delete_instance(id, force).await;
            lab.refused(&format!("delete_instance of {id:?}"), refused, &["not found"]);
        }
        refused_as(&lab, id, DeleteRefused::NotFound).await;
    }
    lab.turn_of("queued").await;
}

/// Messages, activities and locks go with their instance.
pub async fn test_delete_cleans_queues_and_locks<F: ProviderFactory>(factory: &F) {
    let says = "messages, activities and locks go with their instance; its id is as good as new";
    let lab = lab(factory, Promise { rule: "R6.60", says, section: SECTION }).await.patient();
    lab.begin_as("a", first_commit("a").work(activity("a", 2)).work(activity("a", 3))).await;
    lab.begin("other").await;
    lab.step("a", commit().event(set(2, "k", "v")).event(show(3, Some("busy")))).await;
    lab.queue(activity("other", 9)).await;
    lab.same("the locked activity", lab.job().await.id(), 2);
    lab.send(raise("a", "locked")).await;
    let turn = lab.turn_of("a").await;
    lab.send(raise("a", "waiting")).await;
    lab.send_later(raise("a", "hidden"), AN_HOUR).await;
    lab.send(raise("other", "x")).await;

    let went = Removed { instances: 1, executions: 1, events: 3, messages: 5 };
    lab.same("what went", lab.delete_by_force("a").await, went);
    lab.gone("a").await;
    lab.refused("ack_orchestration_item", lab.commit(&turn, commit().event(note(4))).await, &[]);
    lab.same("the other's activity, which is next", lab.job().await.id(), 9);
    lab.no_job().await;
    lab.turn_of("other").await;
    lab.no_turn().await;

    lab.send(start("a")).await;
    let fresh = lab.turn_of("a").await;
    lab.same("the messages of the new one", fresh.item.messages.len(), 1);
    lab.same("the history of the new one", fresh.item.history, []);
    lab.same("the execution of the new one", fresh.item.execution_id, 1);
    lab.expect(fresh.item.kv_snapshot.is_empty(), "no old values", fresh.item.kv_snapshot.len());
    lab.same("the attempt", fresh.attempt, 1);
}

/// A tree goes as a whole, from its root.
pub async fn test_cascade_delete_hierarchy<F: ProviderFactory>(factory: &F) {
    let says = "a root is deleted with all its descendants; a child is not deleted on its own";
    let lab = lab(factory, Promise { rule: "R6.60", says, section: SECTION }).await.patient();
    family(&lab).await;
    lab.ended("other", "Completed").await;
    lab.begin_child("other's", "other").await;
    for id in ["child", "grandchild"] {
        for force in [false, true] {
            let refused = lab.admin().delete_instance(id, force).await;
            let words = ["sub-orchestration", "delete the root"];
            lab.refused("delete_instance of a child", refused, &words);
        }
        refused_as(&lab, id, DeleteRefused::SubOrchestration).await;
    }
    lab.queue(activity("grandchild", 2)).await;
    lab.send(raise("child", "x")).await;
    let went = Removed { instances: 4, executions: 4, events: 4, messages: 2 };
    lab.same("what went", lab.delete("root").await, went);
    for id in ["root", "child", "sibling", "grandchild"] {
        lab.gone(id).await;
    }
    lab.no_job().await;
    lab.no_turn().await;
    lab.same("the instances that are left", lab.instances().await, ["other", "other's"]);
}

/// A turn in progress cannot bring a deleted instance back.
pub async fn test_force_delete_prevents_ack_recreation<F: ProviderFactory>(factory: &F) {
    let says = "a commit after a forced deletion is refused and brings nothing back";
    let lab = lab(factory, Promise { rule: "R8.57", says, section: SECTION }).await.patient();
    lab.begin("a").await;
    lab.send(raise("a", "x")).await;
    let turn = lab.turn_of("a").await;
    lab.delete_by_force("a").await;
    let late = || first_commit("a").event(note(2)).work(activity("a", 2)).message(start("b"));
    lab.refused("ack_orchestration_item", lab.commit(&turn, late()).await, &[]);
    lab.gone("a").await;
    let renewed = lab.renew_orchestration_item_lock(&turn.token, lab.lock).await;
    lab.refused("renew_orchestration_item_lock", renewed, &[]);
    // Nor can it get in the way of a new one with that id.
    lab.begin("a").await;
    lab.refused("ack_orchestration_item", lab.commit(&turn, late()).await, &[]);
    lab.same("the events of the new one", lab.event_ids("a").await, [1]);
    lab.no_job().await;
    lab.no_turn().await;
}

/// Children are those that name the instance as their parent.
pub async fn test_list_children<F: ProviderFactory>(factory: &F) {
    let says = "list_children gives the direct children, and nothing for a leaf or unknown id";
    let lab = lab(factory, Promise { rule: "R8.97", says, section: SECTION }).await.patient();
    family(&lab).await;
    lab.same("the root's children", lab.children("root").await, ["child", "sibling"]);
    lab.same("the child's children", lab.children("child").await, ["grandchild"]);
    lab.same("a leaf's children", lab.children("grandchild").await, [""; 0]);
    lab.same("an unknown id's children", lab.children("?").await, [""; 0]);
}

/// The parent is what the first commit said.
pub async fn test_delete_get_parent_id<F: ProviderFactory>(factory: &F) {
    let says = "get_parent_id gives a child's parent, None for a root, an error for an unknown id";
    let lab = lab(factory, Promise { rule: "R8.97", says, section: SECTION }).await.patient();
    family(&lab).await;
    for (id, expected) in [("root", None), ("child", Some("root")), ("grandchild", Some("child"))] {
        let parent = lab.ok("get_parent_id", lab.admin().get_parent_id(id).await);
        lab.same(&format!("the parent of {id:?}"), parent.as_deref(), expected);
    }
    let unknown = lab.admin().get_parent_id("?").await;
    lab.refused("get_parent_id of an unknown instance", unknown, &["not found"]);
}

/// A tree holds an instance and all its descendants.
pub async fn test_delete_get_instance_tree<F: ProviderFactory>(factory: &F) {
    let says = "get_instance_tree gives an instance and all its descendants, itself first";
    let lab = lab(factory, Promise { rule: "R8.97", says, section: SECTION }).await.patient();
    family(&lab).await;
    lab.begin("other").await;
    for (id, below) in [
        ("root", &["child", "grandchild", "sibling"][..]),
        ("child", &["grandchild"]),
        ("grandchild", &[]),
        ("unknown", &[]),
    ] {
        let InstanceTree { root_id, mut all_ids } =
            lab.ok("get_instance_tree", lab.admin().get_instance_tree(id).await);
        lab.same("the id asked for", root_id, id);
        lab.same("the first of the tree", all_ids.first().map(String::as_str), Some(id));
        all_ids[1..].sort();
        lab.same("the descendants", &all_ids[1..], below);
    }
}

/// Several instances go in one call.
pub async fn test_delete_instances_atomic<F: ProviderFactory>(factory: &F) {
    let says = "delete_instances_atomic deletes exactly the instances it is given";
    let lab = lab(factory, Promise { rule: "R6.60", says, section: SECTION }).await.patient();
    for id in ["a", "b", "c", "kept"] {
        lab.ended(id, "Completed").await;
    }
    lab.send(raise("b", "x")).await;
    let result = lab.admin().delete_instances_atomic(&ids(&["a", "b", "c"]), false).await;
    let went = Removed { instances: 3, executions: 3, events: 3, messages: 1 };
    lab.same("what went", Removed::from(lab.ok("delete_instances_atomic", result)), went);
    for id in ["a", "b", "c"] {
        lab.gone(id).await;
    }
    lab.no_turn().await;
    lab.same("the instances that are left", lab.instances().await, ["kept"]);
}

/// One that runs keeps all from being deleted, unless forced.
pub async fn test_delete_instances_atomic_force<F: ProviderFactory>(factory: &F) {
    let says = "one running instance keeps all of a list from being deleted, unless forced";
    let lab = lab(factory, Promise { rule: "R6.61", says, section: SECTION }).await.patient();
    lab.ended("a", "Completed").await;
    lab.begin("b").await;
    lab.ended("c", "Failed").await;
    let all = ids(&["a", "b", "c"]);
    let refused = lab.admin().delete_instances_atomic(&all, false).await;
    lab.refused("delete_instances_atomic with a running one", refused, &["still running"]);
    lab.same("the instances after the refusal", lab.instances().await, ["a", "b", "c"]);
    lab.same("the events after the refusal", lab.event_ids("a").await, [1]);
    let result = lab.admin().delete_instances_atomic(&all, true).await;
    let went = Removed { instances: 3, executions: 3, events: 3, messages: 0 };
    lab.same("what went", Removed::from(lab.ok("delete_instances_atomic", result)), went);
    lab.same("the instances that are left", lab.instances().await, [""; 0]);
}

/// No child is left without its parent.
pub async fn test_delete_instances_atomic_orphan_detection<F: ProviderFactory>(factory: &F) {
    let says = "a list that would leave a child without its parent is refused, even by force";
    let lab = lab(factory, Promise { rule: "R6.64", says, section: SECTION }).await.patient();
    family(&lab).await;
    // As if the grandchild had come after the tree was read.
    let stale = ids(&["root", "child", "sibling"]);
    for force in [false, true] {
        let error = match lab.admin().delete_instances_atomic(&stale, force).await {
            Ok(result) => lab.broken("delete_instances_atomic to be refused", result),
            Err(error) => error,
        };
        let said = error.message.to_lowercase().contains("created after tree traversal");
        lab.expect(said, "the refusal to say `created after tree traversal`", error);
    }
    let everyone = ["child", "grandchild", "root", "sibling"];
    lab.same("the instances after the refusal", lab.instances().await, everyone);
    let result = lab.admin().delete_instances_atomic(&ids(&everyone), false).await;
    lab.same("what went", lab.ok("delete_instances_atomic", result).instances_deleted, 4);
    lab.same("the instances that are left", lab.instances().await, [""; 0]);
}

/// An activity of a deleted instance means nothing to its successor.
pub async fn test_stale_activity_after_delete_recreate<F: ProviderFactory>(factory: &F) {
    let says = "an activity from before a deletion cannot answer for one of the new instance";
    let lab = lab(factory, Promise { rule: "R5.31", says, section: SECTION }).await.patient();
    let with_activity = || first_commit("a").work(activity("a", 2));
    lab.begin_as("a", with_activity()).await;
    let stale = lab.job().await;
    lab.delete_by_force("a").await;
    lab.begin_as("a", with_activity()).await;
    let late = lab.ack_work_item(&stale.token, Some(done("a", 2))).await;
    lab.refused("ack_work_item of the old activity", late, &[]);
    let renewed = lab.renew_work_item_lock(&stale.token, lab.lock).await;
    lab.refused("renew_work_item_lock of the old activity", renewed, &[]);
    lab.no_turn().await;
    let fresh = lab.job().await;
    lab.same("the new activity's attempt", fresh.attempt, 1);
    let answer = lab.ack_work_item(&fresh.token, Some(done("a", 2))).await;
    lab.ok("ack_work_item of the new activity", answer);
    lab.turn_of("a").await;
}

/// A root with two children, one of which has a child; all have ended.
async fn family(lab: &Lab) {
    lab.begin("root").await;
    for (id, parent) in [("child", "root"), ("sibling", "root"), ("grandchild", "child")] {
        lab.begin_child(id, parent).await;
        lab.step(id, commit().ends("Completed", "out")).await;
    }
    lab.step("root", commit().ends("Completed", "out")).await;
}

/// The refusal has the right kind, too (R8.136).
async fn refused_as(lab: &Lab, instance: &str, why: DeleteRefused) {
    let answer = lab.admin().try_delete_instance(instance, false).await;
    match lab.ok("try_delete_instance", answer) {
        Ok(result) => lab.broken("try_delete_instance to be refused", result),
        Err(got) => lab.same(&format!("why {instance:?} cannot be deleted"), got, why),
    }
}

fn ids(ids: &[&str]) -> Vec<String> {
    ids.iter().map(|id| (*id).to_owned()).collect()
}
