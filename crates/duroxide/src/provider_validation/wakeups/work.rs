//! Waits for activities.

use std::time::Duration;

use super::super::ProviderFactory;
use super::super::lab::{Job, LONG, Lab, Promise, lab};
use super::super::words::*;
use super::{MOMENTS, POLL, SECTION, beside_others, meanwhile, waited};
use crate::providers::{SessionFetchConfig, TagFilter};

/// A queued activity ends the wait for one.
pub async fn queued_work_ends_the_wait<F: ProviderFactory>(factory: &F) {
    let says = "a fetch that waits for an activity returns soon after one was queued";
    let lab = lab(factory, Promise { rule: "R8.32", says, section: SECTION }).await.patient();
    lab.begin("a").await;
    for moment in MOMENTS {
        let queues = lab.queue(activity("a", 2));
        let job = meanwhile(&lab, moment, wait_for_work(&lab), queues).await;
        lab.answered(&job, None).await;
        let commits = lab.step("a", commit().work(activity("a", 3)));
        let job = meanwhile(&lab, moment, wait_for_work(&lab), commits).await;
        lab.same("the activity of the commit", job.id(), 3);
        lab.answered(&job, None).await;
    }
}

/// An activity given back is there for who waits.
pub async fn work_given_back_ends_the_wait<F: ProviderFactory>(factory: &F) {
    let says = "a fetch that waits for an activity returns soon after one was given back";
    let lab = lab(factory, Promise { rule: "R8.76", says, section: SECTION }).await.patient();
    lab.queue(activity("a", 2)).await;
    for delay in [None, Some(Duration::from_millis(30))] {
        for moment in MOMENTS {
            let job = lab.job_soon().await;
            let gives_back = lab.give_back(&job, delay);
            let again = meanwhile(&lab, moment, wait_for_work(&lab), gives_back).await;
            lab.give_back(&again, None).await;
        }
    }
}

/// An activity reaches who waits for its tag.
pub async fn work_finds_who_waits_for_its_tag<F: ProviderFactory>(factory: &F) {
    let says = "an activity reaches the fetch that can take it, whoever else waits for what";
    let lab = lab(factory, Promise { rule: "R8.79", says, section: SECTION }).await.patient();
    for moment in MOMENTS {
        for (item, tags) in [
            (activity("a", 2), TagFilter::DefaultOnly),
            (tagged(3, "gpu"), TagFilter::tags(["gpu"])),
        ] {
            let waits = beside_others(&lab, wait(&lab, None, &tags));
            let job = meanwhile(&lab, moment, waits, lab.queue(item.clone())).await;
            lab.same("the activity", &job.item, &item);
            lab.answered(&job, None).await;
        }
    }
}

/// The owner of a session is woken for its activities.
pub async fn work_finds_the_owner_of_its_session<F: ProviderFactory>(factory: &F) {
    let says = "an activity of a session reaches its owner, if others wait too";
    let lab = lab(factory, Promise { rule: "R8.81", says, section: SECTION }).await.patient();
    lab.queue(in_session(2, "s")).await;
    let owner = lab.lease("owner");
    let tags = TagFilter::DefaultOnly;
    wait(&lab, Some(&owner), &tags).await;
    let stranger = lab.lease("stranger");
    for moment in MOMENTS {
        let others = async {
            tokio::join!(wait(&lab, None, &tags), wait(&lab, Some(&stranger), &tags));
        };
        let queues = lab.queue(in_session(3, "s"));
        let job = tokio::select! {
            job = meanwhile(&lab, moment, wait(&lab, Some(&owner), &tags), queues) => job,
            () = others => lab.broken("nothing for strangers", "a session's activity"),
        };
        lab.same("the activity", job.id(), 3);
        lab.answered(&job, None).await;
    }
}

/// Waits for an untagged activity without a session.
pub(super) async fn wait_for_work(lab: &Lab) -> Job {
    wait(lab, None, &TagFilter::DefaultOnly).await
}

pub(super) async fn wait(lab: &Lab, session: Option<&SessionFetchConfig>, tags: &TagFilter) -> Job {
    let fetched = lab.fetch_work_item(LONG, POLL, session, tags).await;
    let (item, token, attempt) = waited(lab, "fetch_work_item", fetched);
    Job { item, token, attempt }
}
