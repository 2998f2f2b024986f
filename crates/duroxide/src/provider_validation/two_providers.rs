//! Two providers on one store are one store: what one does the other sees, and locks hold for both.

use std::sync::Arc;

use super::concurrency::cast;
use super::lab::{AT_ONCE, LONG, Lab, Promise, lab};
use super::wakeups::{meanwhile, wait_for_turn};
use super::words::*;
use super::{ProviderFactory, Skip, waits_for_work};
use crate::providers::TagFilter;
use duroxide_core::model::WorkItem;

const SECTION: &str = "fetching-a-turn";
const NO_SECOND: Skip = Some("the factory makes no second provider on one store");

/// What one queues the other serves.
pub async fn what_one_queues_the_other_serves<F: ProviderFactory>(factory: &F) -> Skip {
    let says = "messages and activities queued through one provider are fetched through another";
    let promise = Promise { rule: "R8.34", says, section: SECTION };
    let Some((one, two)) = pair(factory, promise).await else { return NO_SECOND };
    one.send(start("a")).await;
    let turn = two.turn_of("a").await;
    let first = first_commit("a").work(activity("a", 2)).message(start("b"));
    two.committed(&turn, first).await;
    let job = one.job().await;
    one.same("the activity", &job.item, &activity("a", 2));
    one.answered(&job, Some(done("a", 2))).await;
    one.batch(&one.turn_of("b").await, [start("b")]);
    two.batch(&two.turn_of("a").await, [done("a", 2)]);
    two.queue(tagged(3, "gpu")).await;
    let job = one.job_tagged(&TagFilter::tags(["gpu"])).await;
    one.same("the tagged activity", job.map(|job| job.id()), Some(3));
    None
}

/// A lock holds for both.
pub async fn locks_hold_for_both<F: ProviderFactory>(factory: &F) -> Skip {
    let says = "what is locked through one provider is locked for the other, and free when it is";
    let promise = Promise { rule: "R1.13", says, section: SECTION };
    let Some((one, two)) = pair(factory, promise).await else { return NO_SECOND };
    one.send(start("a")).await;
    one.queue(activity("a", 2)).await;
    let (turn, job) = (one.turn_of("a").await, one.job().await);
    two.no_turn().await;
    two.no_job().await;
    let renewed = one.renew_orchestration_item_lock(&turn.token, LONG).await;
    one.ok("renew_orchestration_item_lock", renewed);
    two.no_turn().await;
    one.abandon(&turn).await;
    one.give_back(&job, None).await;
    let (next_turn, next_job) = (two.turn_of("a").await, two.job().await);
    two.same("the attempts", (next_turn.attempt, next_job.attempt), (2, 2));
    let different = next_turn.token != turn.token && next_job.token != job.token;
    two.expect(different, "fresh tokens", (next_turn.token.clone(), next_job.token.clone()));
    one.no_turn().await;
    one.no_job().await;
    one.refused("a commit with an outlived token", one.commit(&turn, commit()).await, &[]);
    two.committed(&next_turn, first_commit("a")).await;
    two.answered(&next_job, None).await;
    None
}

/// A lock that ran out is the other's to take.
pub async fn the_other_takes_over_from_a_dead_one<F: ProviderFactory>(factory: &F) -> Skip {
    let says = "when a lock or a lease of one provider has run out, the other takes over";
    let promise = Promise { rule: "R8.77", says, section: SECTION };
    let Some((one, two)) = pair(factory, promise).await else { return NO_SECOND };
    let dead = Lab { lock: factory.lock_timeout(), ..one.clone() };
    one.send(start("a")).await;
    one.queue(activity("a", 2)).await;
    one.queue(in_session(3, "s")).await;
    let (turn, job) = (dead.turn_of("a").await, dead.job().await);
    let session = dead.job_for("dead").await;
    one.same("the session's activity", session.map(|job| job.id()), Some(3));
    let (next_turn, next_job) = (two.turn_soon().await, two.job_soon().await);
    let session = two.soon("the session to be free", || two.job_for("heir")).await;
    two.same("the session's activity", session.id(), 3);
    one.refused("the dead one's commit", one.commit(&turn, first_commit("a")).await, &[]);
    one.refused("the dead one's answer", one.ack_work_item(&job.token, None).await, &[]);
    two.committed(&next_turn, first_commit("a")).await;
    two.answered(&next_job, None).await;
    one.queue(in_session(4, "s")).await;
    let stranger = one.job_for("stranger").await;
    one.expect(stranger.is_none(), "the session to be the heir's for both", stranger);
    None
}

/// What one commits the other reads.
pub async fn commits_are_seen_by_both<F: ProviderFactory>(factory: &F) -> Skip {
    let says = "a commit through one provider is there for every call of the other";
    let promise = Promise { rule: "R8.95", says, section: "reading" };
    let Some((one, two)) = pair(factory, promise).await else { return NO_SECOND };
    one.begin_as("a", first_commit("a").event(set(2, "k", "2")).event(show(3, Some("3")))).await;
    for id in 4..20_u64 {
        // Both in turn, so that neither can rely on what it knows.
        let (writer, reader) = if id % 2 == 0 { (&one, &two) } else { (&two, &one) };
        let text = id.to_string();
        writer.send(raise("a", &text)).await;
        let turn = writer.turn_of("a").await;
        let known: Vec<u64> = turn.item.history.iter().map(|event| event.event_id).collect();
        writer.same("the history of the turn", known, (1..id * 2 - 4).collect::<Vec<u64>>());
        let delta = commit().event(set(id * 2 - 4, "k", &text));
        writer.committed(&turn, delta.event(show(id * 2 - 3, Some(&text)))).await;
        let events = (1..id * 2 - 2).collect::<Vec<u64>>();
        reader.same("the events", reader.event_ids("a").await, events);
        reader.values_are("a", &[("k", &text)]).await;
        let shown = reader.custom_status("a", 0).await;
        reader.same("the custom status", shown, Some((Some(text), id - 2)));
        let count = reader.execution("a", 1).await.event_count;
        reader.same("the counted events", count as u64, id * 2 - 3);
        let (here, there) = (one.read_status("a").await, two.read_status("a").await);
        let (here, there) = (one.ok("read_status", here), two.ok("read_status", there));
        reader.same("the status", here, there);
    }
    None
}

/// What one deletes is gone for the other.
pub async fn deletions_are_seen_by_both<F: ProviderFactory>(factory: &F) -> Skip {
    let says = "an instance deleted through one provider is gone for the other, locks included";
    let promise = Promise { rule: "R8.57", says, section: "deleting" };
    let Some((one, two)) = pair(factory, promise).await else { return NO_SECOND };
    one.begin_as("a", first_commit("a").work(activity("a", 2)).event(set(2, "k", "v"))).await;
    one.send(raise("a", "x")).await;
    let (turn, job) = (one.turn_of("a").await, one.job().await);
    two.delete_by_force("a").await;
    one.gone("a").await;
    one.refused("the commit", one.commit(&turn, commit().event(note(3))).await, &[]);
    one.refused("the answer", one.ack_work_item(&job.token, None).await, &[]);
    one.gone("a").await;
    one.begin("a").await;
    two.same("the events of the new instance", two.event_ids("a").await, [1]);
    None
}

/// What one queues wakes who waits at the other.
pub async fn wakeups_cross<F: ProviderFactory>(factory: &F) -> Skip {
    let says = "a fetch that waits at one provider sees what the other queues and commits";
    let promise = Promise { rule: "R8.32", says, section: "long-polls" };
    let Some((one, two)) = pair(factory, promise).await else { return NO_SECOND };
    if !waits_for_work(one.store.as_ref()).await {
        return Some("the provider has no long polls");
    }
    let moment = std::time::Duration::from_millis(20);
    for _ in 0..3 {
        one.begin("a").await;
        let turn = meanwhile(&one, moment, wait_for_turn(&one), two.send(raise("a", "x"))).await;
        let (tags, lock) = (TagFilter::DefaultOnly, one.lock);
        let waits = two.fetch_work_item(lock, LONG, None, &tags);
        let commits = one.committed(&turn, commit().work(activity("a", 2)));
        let job = two.ok("fetch_work_item", meanwhile(&two, moment, waits, commits).await);
        let item = job.map(|(item, _, _)| item);
        two.same("the activity", item, Some(activity("a", 2)));
        one.delete_by_force("a").await;
    }
    None
}

/// Workers of both do everything once.
pub async fn workers_of_both_never_share<F: ProviderFactory>(factory: &F) -> Skip {
    let says = "many workers of two providers do each turn and each activity once";
    let promise = Promise { rule: "R8.34", says, section: SECTION };
    let Some((one, two)) = pair(factory, promise).await else { return NO_SECOND };
    let all: Vec<String> = (10..50).map(|number| format!("a{number}")).collect();
    for name in &all {
        one.send(start(name)).await;
        two.queue(activity(name, 2)).await;
    }
    let labs = Arc::new([one.clone(), two.clone()]);
    let served = cast(&one, 6, move |_, role| {
        let labs = Arc::clone(&labs);
        async move { serve(&labs[role % 2]).await }
    })
    .await;
    let (turns, jobs): (Vec<_>, Vec<_>) = served.into_iter().unzip();
    for (what, names) in [("instances", turns), ("activities", jobs)] {
        let mut names: Vec<String> = names.into_iter().flatten().collect();
        names.sort();
        one.same_list(what, &names, &all);
    }
    None
}

/// Serves turns and activities until there are none; whose they were.
async fn serve(lab: &Lab) -> (Vec<String>, Vec<String>) {
    let (mut turns, mut jobs, tags) = (Vec::new(), Vec::new(), TagFilter::DefaultOnly);
    let fetch = || lab.fetch_orchestration_item(lab.lock, AT_ONCE, None);
    while let Some((item, token, _)) = lab.through("fetch_orchestration_item", fetch).await {
        let commit = || async {
            let committed = lab.commit_turn(&token, first_commit(&item.instance)).await;
            committed.map_err(|rejected| rejected.error)
        };
        lab.through("commit_turn", commit).await;
        turns.push(item.instance);
    }
    let fetch = || lab.fetch_work_item(lab.lock, AT_ONCE, None, &tags);
    while let Some((item, token, _)) = lab.through("fetch_work_item", fetch).await {
        lab.through("ack_work_item", || lab.ack_work_item(&token, None)).await;
        if let WorkItem::ActivityExecute { instance, .. } = item {
            jobs.push(instance);
        }
    }
    (turns, jobs)
}

/// Two providers on one fresh store.
async fn pair(factory: &dyn ProviderFactory, promise: Promise) -> Option<(Lab, Lab)> {
    let one = lab(factory, promise).await.patient();
    let store = factory.create_second(&one.store).await?;
    let two = Lab { store, ..one.clone() };
    Some((one, two))
}
