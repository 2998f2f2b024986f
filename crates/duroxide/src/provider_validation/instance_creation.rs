//! Instances come into being by their first commit, and by nothing else.

use super::ProviderFactory;
use super::lab::{Promise, lab};
use super::words::*;
use duroxide_core::model::WorkItem;

const SECTION: &str = "committing-a-turn";

/// The first commit's metadata makes the instance.
pub async fn test_instance_creation_via_metadata<F: ProviderFactory>(factory: &F) {
    let says = "an instance exists from the commit that names it on";
    let lab = lab(factory, Promise { rule: "R8.43", says, section: SECTION }).await.patient();
    lab.begin("a").await;
    let info = lab.ok("get_instance_info", lab.admin().get_instance_info("a").await);
    lab.same("the name", info.orchestration_name, "Orch");
    lab.same("the version", info.orchestration_version, "1.0.0");
    lab.same("the current execution", info.current_execution_id, 1);
    lab.same("the status", info.status, "Running");

    // A later commit can give another name, but no other parent.
    lab.step("a", commit().named("Other", "2.0.0").child_of("b")).await;
    let info = lab.ok("get_instance_info", lab.admin().get_instance_info("a").await);
    lab.same("the later name", info.orchestration_name, "Other");
    lab.same("the later version", info.orchestration_version, "2.0.0");
    lab.same("the parent, fixed at creation", info.parent_instance_id, None::<String>);
    lab.send(raise("a", "x")).await;
    let turn = lab.turn_of("a").await;
    lab.same("the name of a turn", turn.item.orchestration_name, "Other");
    lab.same("the version of a turn", turn.item.version, "2.0.0");
}

/// Queueing a start makes no instance.
pub async fn test_no_instance_creation_on_enqueue<F: ProviderFactory>(factory: &F) {
    let says = "queueing a start makes no instance";
    let lab = lab(factory, Promise { rule: "R8.11", says, section: SECTION }).await.patient();
    lab.send(start("a")).await;
    let instances = lab.ok("list_instances", lab.admin().list_instances().await);
    lab.same("the instances", instances, Vec::<String>::new());
    let turn = lab.turn_of("a").await;
    lab.same("the history of an instance that has none", turn.item.history.len(), 0);
}

/// A start without a version is fetched, and the commit says which it is.
pub async fn test_null_version_handling<F: ProviderFactory>(factory: &F) {
    let says = "a start without a version is fetched as `unknown` until a commit names one";
    let lab = lab(factory, Promise { rule: "R8.25", says, section: SECTION }).await.patient();
    let mut unversioned = start("a");
    if let WorkItem::StartOrchestration { version, .. } = &mut unversioned {
        *version = None;
    }
    lab.send(unversioned).await;
    let turn = lab.turn_of("a").await;
    lab.same("the version", &turn.item.version, "unknown");
    lab.same("the name", &turn.item.orchestration_name, "Orch");
    lab.committed(&turn, first_commit("a").named("Orch", "2.1.0")).await;
    let info = lab.ok("get_instance_info", lab.admin().get_instance_info("a").await);
    lab.same("the version after the commit", info.orchestration_version, "2.1.0");
}

/// A child comes into being like any instance, and remembers its parent.
pub async fn test_sub_orchestration_instance_creation<F: ProviderFactory>(factory: &F) {
    let says = "a child exists from its own first commit on and remembers its parent";
    let lab = lab(factory, Promise { rule: "R8.43", says, section: SECTION }).await.patient();
    lab.begin("parent").await;
    lab.send(start("parent::sub::2")).await;
    let unknown = lab.admin().get_parent_id("parent::sub::2").await;
    lab.refused("get_parent_id before the first commit", unknown, &["not found"]);
    let turn = lab.turn_of("parent::sub::2").await;
    lab.committed(&turn, first_commit("parent::sub::2").child_of("parent")).await;
    let parent = lab.ok("get_parent_id", lab.admin().get_parent_id("parent::sub::2").await);
    lab.same("the parent", parent.as_deref(), Some("parent"));
}
