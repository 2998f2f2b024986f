//! Names of all kinds.

use super::super::ProviderFactory;
use super::super::lab::{Lab, Promise, lab};
use super::super::words::*;
use super::{alike_texts, odd_texts};
use crate::providers::TagFilter;
use duroxide_core::model::WorkItem;

const SECTION: &str = "replay";

/// An instance can have any name.
pub async fn an_instance_id_is_any_text<F: ProviderFactory>(factory: &F) {
    let says = "an instance id is any text, in every call that takes or returns one";
    let lab = lab(factory, Promise { rule: "R8.24", says, section: SECTION }).await.patient();
    for id in odd_texts() {
        let child = format!("{id}::sub::2");
        lab.begin_as(&id, first_commit(&id).work(activity(&id, 2)).event(set(2, "k", &id))).await;
        lab.begin_child(&child, &id).await;
        let job = lab.job().await;
        lab.same("the activity", &job.item, &activity(&id, 2));
        lab.answered(&job, Some(done(&id, 2))).await;
        let turn = lab.turn_of(&id).await;
        lab.batch(&turn, [done(&id, 2)]);
        lab.committed(&turn, commit().event(note(3)).ends("Completed", &id)).await;
        lab.same("the events", lab.event_ids(&id).await, [1, 2, 3]);
        lab.same("the id in its info", lab.info(&id).await.instance_id, id.as_str());
        lab.values_are(&id, &[("k", &id)]).await;
        lab.same("its children", lab.children(&id).await, [child.as_str()]);
        let parent = lab.info(&child).await.parent_instance_id;
        lab.same("the parent of its child", parent.as_deref(), Some(id.as_str()));
        lab.same("all instances", lab.instances().await.len(), 2);
        lab.same("the deleted instances", lab.delete_by_force(&id).await.instances, 2);
        lab.gone(&id).await;
    }
}

/// Instances with similar names have nothing in common.
pub async fn similar_instance_ids_never_mix<F: ProviderFactory>(factory: &F) {
    let says = "instances whose ids look alike are different instances";
    let lab = lab(factory, Promise { rule: "R8.114", says, section: SECTION }).await.patient();
    let ids = alike_texts();
    for id in &ids {
        let first = first_commit(id).event(set(2, "k", id)).event(show(3, Some(id)));
        lab.begin_as(id, first.work(activity(id, 2))).await;
    }
    for id in &ids {
        lab.send(raise(id, id)).await;
    }
    for (number, id) in (1..).zip(&ids) {
        let turn = lab.turn_of(id).await;
        lab.batch(&turn, [raise(id, id)]);
        let exchange = commit().cancelling(identity(id, 2)).work(activity(id, 9));
        lab.committed(&turn, exchange.event(note(4))).await;
        if number % 9 == 0 {
            let old = ids[number..].iter().map(|id| activity(id, 2));
            let new = ids[..number].iter().map(|id| activity(id, 9));
            lab.same_list("activities", &alive(&lab).await, &old.chain(new).collect::<Vec<_>>());
        }
    }
    for (number, id) in (1..).zip(&ids) {
        lab.same("the events", lab.event_ids(id).await, [1, 2, 3, 4]);
        lab.values_are(id, &[("k", id)]).await;
        let shown = lab.custom_status(id, 0).await.and_then(|(status, _)| status);
        lab.same("the custom status", shown.as_deref(), Some(id.as_str()));
        lab.same("the children", lab.children(id).await.len(), 0);
        lab.same("the deleted instances", lab.delete_by_force(id).await.instances, 1);
        let mut left = ids[number..].to_vec();
        left.sort();
        lab.same_list("instances", &lab.instances().await, &left);
    }
    lab.no_job().await;
}

/// Orchestrations, versions, statuses and outputs are any text.
pub async fn names_and_outputs_are_any_text<F: ProviderFactory>(factory: &F) {
    let says = "names, versions, custom statuses and outputs come back letter by letter";
    let lab = lab(factory, Promise { rule: "R8.43", says, section: SECTION }).await.patient();
    for (number, text) in odd_texts().iter().chain([&String::new()]).enumerate() {
        let id = format!("instance {number}");
        let first = first_commit(&id).named(text, text).event(show(2, Some(text)));
        lab.begin_as(&id, first).await;
        lab.step(&id, commit().ends("Failed", text)).await;
        let info = lab.info(&id).await;
        lab.same("the name", &info.orchestration_name, text);
        lab.same("the version", &info.orchestration_version, text);
        lab.same("the output", info.output.as_ref(), Some(text));
        let output = lab.execution(&id, 1).await.output;
        lab.same("the output of the execution", output.as_ref(), Some(text));
        let shown = lab.custom_status(&id, 0).await;
        lab.same("the custom status", shown, Some((Some(text.clone()), 1)));
        lab.send(raise(&id, "x")).await;
        let turn = lab.turn_of(&id).await;
        lab.same("the name of a turn", &turn.item.orchestration_name, text);
        lab.same("the version of a turn", &turn.item.version, text);
        lab.committed(&turn, commit()).await;
    }
}

/// Keys are any text, and different if they differ in the least.
pub async fn keys_are_taken_letter_by_letter<F: ProviderFactory>(factory: &F) {
    let says = "a key is any text, and another key if it differs in the least";
    let lab = lab(factory, Promise { rule: "R8.114", says, section: SECTION }).await.patient();
    let mut keys = alike_texts();
    keys.extend(odd_texts());
    keys.push(String::new());
    keys.sort();
    keys.dedup();
    let mut first = first_commit("a");
    for (id, key) in (2..).zip(&keys) {
        first = first.event(set(id, key, key));
    }
    lab.begin_as("a", first).await;
    let next = keys.len() as u64 + 2;
    let all: Vec<(&str, &str)> = keys.iter().map(|key| (key.as_str(), key.as_str())).collect();
    lab.values_are("a", &all).await;
    lab.step("a", commit().ends("ContinuedAsNew", "x")).await; // into the other layer
    lab.values_are("a", &all).await;
    lab.snapshot_is("a", &all).await;
    let (gone, left): (Vec<_>, Vec<_>) = all.iter().partition(|(key, _)| key.len() % 2 == 0);
    let mut clearing = commit().in_execution(2);
    for (id, (key, _)) in (next..).zip(&gone) {
        clearing = clearing.event(clear(id, key));
    }
    lab.step("a", clearing).await;
    lab.values_are("a", &left).await;
}

/// Tags are any text, and different if they differ in the least.
pub async fn tags_are_taken_letter_by_letter<F: ProviderFactory>(factory: &F) {
    let says = "a tag is any text, and another tag if it differs in the least";
    let lab = lab(factory, Promise { rule: "R8.79", says, section: "tags" }).await.patient();
    let mut tags = alike_texts();
    tags.extend(odd_texts());
    tags.sort();
    tags.dedup();
    for (id, tag) in (2..).zip(&tags) {
        lab.queue(tagged(id, tag)).await;
    }
    lab.no_job().await;
    let numbered: Vec<(u64, &String)> = (2..).zip(&tags).collect();
    for (id, tag) in numbered.into_iter().rev() {
        let only_this = TagFilter::tags([tag.as_str()]);
        let job = lab.job_tagged(&only_this).await;
        let item = job.as_ref().map(|job| &job.item);
        lab.same("the activity with this tag", item, Some(&tagged(id, tag)));
        let more = lab.job_tagged(&only_this).await;
        lab.expect(more.is_none(), "no other activity with this tag", more);
    }
}

/// Sessions and their owners are any text, and different if they differ in the least.
pub async fn sessions_are_taken_letter_by_letter<F: ProviderFactory>(factory: &F) {
    let says = "sessions and owners are any text, and others if they differ in the least";
    let lab = lab(factory, Promise { rule: "R8.81", says, section: "sessions" }).await.patient();
    let mut names = alike_texts();
    names.extend(odd_texts());
    names.sort();
    names.dedup();
    for (id, session) in (2..).zip(&names) {
        lab.queue(in_session(id, session)).await;
    }
    // Everybody takes the session of their own name, and sees nothing of the others'.
    for (id, name) in (2..).zip(&names) {
        let job = lab.job_for(name).await;
        let item = job.as_ref().map(|job| &job.item);
        lab.same("the activity of this session", item, Some(&in_session(id, name)));
    }
    for (id, session) in (1000..).zip(&names) {
        lab.queue(in_session(id, session)).await;
    }
    let numbered: Vec<(u64, &String)> = (1000..).zip(&names).collect();
    for (id, name) in numbered.into_iter().rev() {
        let job = lab.job_for(name).await;
        lab.same("the next activity of this owner", job.map(|job| job.id()), Some(id));
        let more = lab.job_for(name).await;
        lab.expect(more.is_none(), "nothing of other owners", more);
    }
}

/// All activities in the queue, which stay there.
async fn alive(lab: &Lab) -> Vec<WorkItem> {
    let mut jobs = Vec::new();
    while let Some(job) = lab.try_job(None, &TagFilter::DefaultOnly).await {
        jobs.push(job);
    }
    for job in &jobs {
        lab.give_back(job, None).await;
    }
    jobs.into_iter().map(|job| job.item).collect()
}
