//! Fetches of several turns or activities in one call. A store that gives one at a time passes, too.

use std::time::Duration;

use tokio::time::timeout;

use super::ProviderFactory;
use super::concurrency::cast;
use super::lab::{AT_ONCE, Job, Lab, Promise, lab};
use super::words::*;
use crate::providers::{FetchedTurn, SessionFetchConfig, TagFilter};

const TURNS: &str = "fetching-a-turn";
const WORK: &str = "the-worker-queue";
/// Longer than any check waits.
const POLL: Duration = Duration::from_secs(300);

/// Several turns are those that single fetches would have given.
pub async fn several_turns_come_in_order<F: ProviderFactory>(factory: &F) {
    let says = "fetch_turns gives what as many fetches would have given, and at most so many";
    let lab = lab(factory, Promise { rule: "R8.138", says, section: TURNS }).await.patient();
    let names = ["e", "a", "d", "b", "c"];
    for name in names {
        lab.send(start(name)).await;
        lab.send(raise(name, "x")).await;
    }
    lab.same("turns for a limit of none", several_turns(&lab, 0).await.len(), 0);
    let mut turns = Vec::new();
    loop {
        let more = several_turns(&lab, 2).await;
        if more.is_empty() {
            break;
        }
        turns.extend(more);
    }
    let fetched: Vec<&str> = turns.iter().map(|turn| turn.item.instance.as_str()).collect();
    lab.same("the instances", fetched, names);
    lab.no_turn().await;
    for turn in turns {
        let name = turn.item.instance.clone();
        lab.same("the messages", turn.item.messages, [start(&name), raise(&name, "x")]);
        lab.same("the attempt", turn.attempt_count, 1);
        let committed = lab.commit_turn(&turn.lock_token, first_commit(&name)).await;
        lab.expect(committed.is_ok(), "each turn to have a lock of its own", committed);
    }
    lab.no_turn().await;
}

/// The filter holds for each of several turns.
pub async fn several_turns_fit_the_filter<F: ProviderFactory>(factory: &F) {
    let says = "fetch_turns gives only turns that the filter lets through";
    let lab = lab(factory, Promise { rule: "R8.138", says, section: TURNS }).await.patient();
    for (name, pin) in [("a", "1.0.0"), ("b", "2.0.0"), ("c", "1.5.0"), ("d", "2.0.0")] {
        lab.begin_as(name, first_commit(name).pinned(pin)).await;
    }
    for name in ["a", "b", "c", "d"] {
        lab.send(raise(name, "x")).await;
    }
    let filter = versions("2.0.0", "2.9.9");
    let mut found = Vec::new();
    loop {
        let turns = lab.fetch_turns(lab.lock, AT_ONCE, Some(&filter), 10).await;
        let turns = lab.ok("fetch_turns", turns);
        if turns.is_empty() {
            break;
        }
        found.extend(turns.into_iter().map(|turn| turn.item.instance));
    }
    lab.same("the instances that fit", found, ["b", "d"]);
    lab.turn_of("a").await;
    lab.turn_of("c").await;
    lab.no_turn().await;
}

/// Several activities are those that single fetches would have given.
pub async fn several_activities_come_in_order<F: ProviderFactory>(factory: &F) {
    let says = "fetch_work_items gives what as many fetches would have given, and at most so many";
    let lab = lab(factory, Promise { rule: "R8.139", says, section: WORK }).await.patient();
    for id in 2..9 {
        lab.queue(activity("a", id)).await;
    }
    let untagged = TagFilter::DefaultOnly;
    lab.same("activities for a limit of none", some_work(&lab, None, &untagged, 0).await.len(), 0);
    let jobs = all_work(&lab, None, &untagged, 3).await;
    let ids: Vec<u64> = jobs.iter().map(Job::id).collect();
    lab.same("the activities", ids, [2, 3, 4, 5, 6, 7, 8]);
    lab.no_job().await;
    for job in &jobs {
        lab.same("the attempt", job.attempt, 1);
        match job.id() % 2 {
            0 => lab.answered(job, None).await, // Each has a lock of its own.
            _ => lab.give_back(job, None).await,
        }
    }
    let again = all_work(&lab, None, &untagged, 100).await;
    let again: Vec<(u64, u32)> = again.iter().map(|job| (job.id(), job.attempt)).collect();
    lab.same("what was given back", again, [(3, 2), (5, 2), (7, 2)]);
}

/// The tags hold for each of several activities.
pub async fn several_activities_fit_the_tags<F: ProviderFactory>(factory: &F) {
    let says = "fetch_work_items gives only activities whose tag is accepted, in queue order";
    let lab = lab(factory, Promise { rule: "R8.139", says, section: WORK }).await.patient();
    for item in [tagged(2, "x"), activity("a", 3), tagged(4, "y"), tagged(5, "x"), activity("a", 6)]
    {
        lab.queue(item).await;
    }
    let none = all_work(&lab, None, &TagFilter::None, 10).await;
    lab.expect(none.is_empty(), "nothing for a filter that accepts nothing", none);
    for (tags, ids) in [
        (TagFilter::DefaultAnd(["x".to_owned()].into()), vec![2, 3, 5, 6]),
        (TagFilter::tags(["x"]), vec![2, 5]),
        (TagFilter::DefaultOnly, vec![3, 6]),
        (TagFilter::Any, vec![2, 3, 4, 5, 6]),
    ] {
        let jobs = all_work(&lab, None, &tags, 10).await;
        let found: Vec<u64> = jobs.iter().map(Job::id).collect();
        lab.same(&format!("the activities for {tags:?}"), found, ids);
        for job in &jobs {
            lab.give_back(job, None).await;
        }
    }
}

/// Of several activities one belongs to a session, and it is the last.
pub async fn several_activities_bind_one_session<F: ProviderFactory>(factory: &F) {
    let says = "fetch_work_items gives one activity of a session at most, as the last one";
    let lab = lab(factory, Promise { rule: "R8.139", says, section: WORK }).await.patient();
    for item in [
        activity("a", 2),
        in_session(3, "s"),
        activity("a", 4),
        in_session(5, "s"),
        in_session(6, "t"),
        activity("a", 7),
    ] {
        lab.queue(item).await;
    }
    let (tags, owner) = (TagFilter::DefaultOnly, lab.lease("owner"));
    let unbound = all_work(&lab, None, &tags, 10).await;
    let ids: Vec<u64> = unbound.iter().map(Job::id).collect();
    lab.same("the activities without a session", ids, [2, 4, 7]);
    for job in &unbound {
        lab.give_back(job, None).await;
    }
    let mut found = Vec::new();
    loop {
        let jobs = some_work(&lab, Some(&owner), &tags, 10).await;
        let Some((_, first)) = jobs.split_last() else { break };
        let bound = first.iter().find(|job| is_bound(job));
        lab.expect(bound.is_none(), "no session but for the last activity of a call", bound);
        found.extend(jobs.iter().map(Job::id));
    }
    lab.same("all activities, in queue order", found, [2, 3, 4, 5, 6, 7]);
    lab.queue(in_session(8, "s")).await;
    let stranger = some_work(&lab, Some(&lab.lease("stranger")), &tags, 10).await;
    lab.expect(stranger.is_empty(), "the session to be claimed", stranger);
}

/// Those who fetch several at a time do not share any.
pub async fn nobody_shares_what_several_fetch<F: ProviderFactory>(factory: &F) {
    let says = "of many who fetch several activities at the same moment each gets others";
    let lab = lab(factory, Promise { rule: "R8.139", says, section: WORK }).await.patient();
    let ids: Vec<u64> = (2..102).collect();
    for id in &ids {
        lab.queue(activity("a", *id)).await;
    }
    let fetched = cast(&lab, 4, |lab, _| async move {
        let (mut mine, tags) = (Vec::new(), TagFilter::DefaultOnly);
        loop {
            let fetch = || lab.fetch_work_items(lab.lock, AT_ONCE, None, &tags, 7);
            let jobs = lab.through("fetch_work_items", fetch).await;
            if jobs.is_empty() {
                return mine;
            }
            mine.extend(jobs.into_iter().map(job).map(|job| job.id()));
        }
    })
    .await;
    for mine in &fetched {
        lab.expect(mine.is_sorted(), "each to be served in queue order", mine);
    }
    let mut all: Vec<u64> = fetched.into_iter().flatten().collect();
    all.sort_unstable();
    lab.same("the activities served", all, ids);
}

/// One is enough to end the wait for several.
pub async fn several_wait_for_the_first_only<F: ProviderFactory>(factory: &F) {
    let says = "a fetch of several waits until there is one, not until there are so many";
    let lab = lab(factory, Promise { rule: "R8.139", says, section: "long-polls" }).await.patient();
    lab.send(start("a")).await;
    let turns = timeout(lab.patience, lab.fetch_turns(lab.lock, POLL, None, 5)).await;
    match turns {
        Ok(turns) => lab.same("the turns", lab.ok("fetch_turns", turns).len(), 1),
        Err(_) => lab.broken("the turn that is there", "a wait for more"),
    }
    lab.queue(activity("a", 2)).await;
    let any = TagFilter::Any;
    let work = timeout(lab.patience, lab.fetch_work_items(lab.lock, POLL, None, &any, 5)).await;
    match work {
        Ok(work) => lab.same("the activities", lab.ok("fetch_work_items", work).len(), 1),
        Err(_) => lab.broken("the activity that is there", "a wait for more"),
    }
}

async fn several_turns(lab: &Lab, max: usize) -> Vec<FetchedTurn> {
    let turns = lab.ok("fetch_turns", lab.fetch_turns(lab.lock, AT_ONCE, None, max).await);
    lab.expect(turns.len() <= max, &format!("at most {max} turns"), &turns);
    turns
}

async fn some_work(
    lab: &Lab,
    session: Option<&SessionFetchConfig>,
    tags: &TagFilter,
    max: usize,
) -> Vec<Job> {
    let fetched = lab.fetch_work_items(lab.lock, AT_ONCE, session, tags, max).await;
    let jobs: Vec<Job> = lab.ok("fetch_work_items", fetched).into_iter().map(job).collect();
    lab.expect(jobs.len() <= max, &format!("at most {max} activities"), &jobs);
    jobs
}

/// All there is, so many at a time.
async fn all_work(
    lab: &Lab,
    session: Option<&SessionFetchConfig>,
    tags: &TagFilter,
    max: usize,
) -> Vec<Job> {
    let mut all = Vec::new();
    loop {
        let more = some_work(lab, session, tags, max).await;
        if more.is_empty() {
            return all;
        }
        all.extend(more);
    }
}

fn job((item, token, attempt): (duroxide_core::model::WorkItem, String, u32)) -> Job {
    Job { item, token, attempt }
}

fn is_bound(job: &Job) -> bool {
    use duroxide_core::model::WorkItem::ActivityExecute;
    matches!(job.item, ActivityExecute { session_id: Some(_), .. })
}
