//! A worker gets the activities whose tags it accepts, and no others.

use super::ProviderFactory;
use super::lab::{Job, Lab, Promise, lab};
use super::words::*;
use crate::providers::TagFilter;

const SECTION: &str = "tags";

/// Without tags of its own a worker gets untagged activities.
pub async fn test_default_only_fetches_untagged(factory: &dyn ProviderFactory) {
    let says = "a worker that takes the default only gets untagged activities and nothing else";
    let lab = lab(factory, Promise { rule: "R7.65", says, section: SECTION }).await;
    for item in [tagged(2, "gpu"), activity("a", 3), tagged(4, "gpu"), activity("a", 5)] {
        lab.queue(item).await;
    }
    served(&lab, &TagFilter::DefaultOnly, &[3, 5]).await;
    // A session opens no way around the filter.
    lab.queue(with_tag(in_session(6, "s"), "gpu")).await;
    let session_owner = lab.job_for("w").await;
    lab.expect(session_owner.is_none(), "no tagged activity for a session owner", session_owner);
    untouched(&lab, 2).await;
}

/// With tags a worker gets the activities that have one of them.
pub async fn test_tags_fetches_only_matching(factory: &dyn ProviderFactory) {
    let says = "a worker with tags gets activities with exactly these tags and nothing else";
    let lab = lab(factory, Promise { rule: "R7.65", says, section: SECTION }).await;
    lab.queue(activity("a", 2)).await;
    for (id, tag) in (3..).zip(["cpu", "GPU", "gp", "gpu2", " gpu", "gpu", "g%", "gpu"]) {
        lab.queue(tagged(id, tag)).await;
    }
    served(&lab, &TagFilter::tags(["gpu"]), &[8, 10]).await;
    served(&lab, &TagFilter::tags(["g%"]), &[9]).await;
    untouched(&lab, 2).await;
}

/// With the default and tags a worker gets both kinds.
pub async fn test_default_and_fetches_untagged_and_matching(factory: &dyn ProviderFactory) {
    let says = "a worker with the default and tags gets untagged and matching activities, no other";
    let lab = lab(factory, Promise { rule: "R7.65", says, section: SECTION }).await;
    for item in [tagged(2, "cpu"), tagged(3, "gpu"), activity("a", 4), tagged(5, "gpu")] {
        lab.queue(item).await;
    }
    served(&lab, &TagFilter::default_and(["gpu", "tpu"]), &[3, 4, 5]).await;
    untouched(&lab, 2).await;
}

/// A worker that takes nothing gets nothing.
pub async fn test_none_filter_returns_nothing(factory: &dyn ProviderFactory) {
    let says = "a worker that takes no activities gets none, whatever their tags";
    let lab = lab(factory, Promise { rule: "R8.79", says, section: SECTION }).await;
    for item in [activity("a", 2), tagged(3, "gpu"), in_session(4, "s")] {
        lab.queue(item).await;
    }
    served(&lab, &TagFilter::None, &[]).await;
    let for_owner = lab.try_job(Some(&lab.lease("w")), &TagFilter::None).await;
    lab.expect(for_owner.is_none(), "no activity for a session owner", for_owner);
    untouched(&lab, 2).await;
}

/// Any of several tags will do.
pub async fn test_multi_tag_filter(factory: &dyn ProviderFactory) {
    let says = "a worker with several tags gets activities with any of them, in queue order";
    let lab = lab(factory, Promise { rule: "R7.65", says, section: SECTION }).await;
    lab.queue(activity("a", 2)).await;
    for (id, tag) in (3..).zip(["e", "x", "a", "d", "b", "c", "a,b"]) {
        lab.queue(tagged(id, tag)).await;
    }
    served(&lab, &TagFilter::tags(["a", "b", "c", "d", "e"]), &[3, 5, 6, 7, 8]).await;
    untouched(&lab, 2).await;
}

/// A tag comes out as it went in.
pub async fn test_tag_round_trip_preservation(factory: &dyn ProviderFactory) {
    let says = "an activity comes out with the tag it went in with, character by character";
    let lab = lab(factory, Promise { rule: "R8.79", says, section: SECTION }).await;
    let long = "long".repeat(50);
    for tag in ["gpu", "GPU", " two words ", "größe-✓", "a'b\"c;%_\\", "a,b", "null", &long] {
        lab.queue(tagged(2, tag)).await;
        let job = must(&lab, &TagFilter::tags([tag])).await;
        lab.same("the activity", &job.item, &tagged(2, tag));
        lab.answered(&job, None).await;
    }
    lab.queue(activity("a", 3)).await;
    lab.same("the untagged activity", lab.job().await.item, activity("a", 3));
}

/// A worker that takes all gets all.
pub async fn test_any_filter_fetches_everything(factory: &dyn ProviderFactory) {
    let says = "a worker that takes any activity gets all of them, in queue order";
    let lab = lab(factory, Promise { rule: "R7.65", says, section: SECTION }).await;
    for item in [tagged(2, "gpu"), activity("a", 3), tagged(4, "cpu"), activity("a", 5)] {
        lab.queue(item).await;
    }
    served(&lab, &TagFilter::Any, &[2, 3, 4, 5]).await;
}

/// An activity that was given back still has its tag.
pub async fn test_tag_survives_abandon_and_refetch(factory: &dyn ProviderFactory) {
    let says = "an activity that was given back still has its tag";
    let lab = lab(factory, Promise { rule: "R8.79", says, section: SECTION }).await;
    lab.queue(tagged(2, "gpu")).await;
    let gpu = TagFilter::tags(["gpu"]);
    for attempt in 1..=3 {
        lab.no_job().await;
        let other = lab.job_tagged(&TagFilter::default_and(["cpu"])).await;
        lab.expect(other.is_none(), "nothing for a worker with other tags", other);
        let job = must(&lab, &gpu).await;
        lab.same("the activity", &job.item, &tagged(2, "gpu"));
        lab.same("the attempt", job.attempt, attempt);
        lab.ok("abandon_work_item", lab.abandon_work_item(&job.token, None, false).await);
    }
}

/// Workers with different filters share one queue.
pub async fn test_multi_runtime_tag_isolation(factory: &dyn ProviderFactory) {
    let says = "of one queue each worker gets what it accepts, and no activity goes to two workers";
    let lab = lab(factory, Promise { rule: "R7.66", says, section: SECTION }).await;
    for round in [0, 10] {
        for item in [tagged(round + 2, "gpu"), tagged(round + 3, "cpu"), activity("a", round + 4)] {
            lab.queue(item).await;
        }
    }
    let (gpu, cpu) = (TagFilter::tags(["gpu"]), TagFilter::tags(["cpu"]));
    let both = TagFilter::tags(["cpu", "gpu"]);
    let cpu_too = TagFilter::default_and(["cpu"]);
    // What does not overlap.
    for (filter, id) in [(&cpu, 3), (&TagFilter::DefaultOnly, 4), (&gpu, 2)] {
        took(&lab, filter, id).await;
    }
    // What overlaps.
    for (filter, id) in [(&both, 12), (&cpu_too, 13), (&cpu_too, 14)] {
        took(&lab, filter, id).await;
    }
    for filter in [&gpu, &cpu, &both, &cpu_too, &TagFilter::DefaultOnly, &TagFilter::Any] {
        served(&lab, filter, &[]).await;
    }
}

/// An activity that a commit queues has its tag.
pub async fn test_tag_preserved_through_ack_orchestration_item(factory: &dyn ProviderFactory) {
    let says = "an activity queued by a commit has the tag the commit gave it";
    let lab = lab(factory, Promise { rule: "R8.52", says, section: SECTION }).await;
    let in_both = with_tag(in_session(4, "s"), "cpu");
    let work = first_commit("a").work(tagged(2, "gpu")).work(activity("a", 3)).work(in_both);
    lab.begin_as("a", work).await;
    served(&lab, &TagFilter::DefaultOnly, &[3]).await;
    let job = must(&lab, &TagFilter::tags(["gpu", "cpu"])).await;
    lab.same("the activity", &job.item, &tagged(2, "gpu"));
    let cpu = TagFilter::tags(["cpu"]);
    let job = lab.try_job(Some(&lab.lease("w")), &cpu).await.map(|job| job.item);
    lab.same("the session's activity", job, Some(with_tag(in_session(4, "s"), "cpu")));
}

/// With this filter exactly these activities come, in this order; they are done then.
async fn served(lab: &Lab, filter: &TagFilter, ids: &[u64]) {
    let mut got = Vec::new();
    while let Some(job) = lab.job_tagged(filter).await
        && got.len() <= ids.len()
    {
        got.push(job.id());
        lab.answered(&job, None).await;
    }
    lab.same(&format!("the activities for {filter:?}"), got, ids);
}

async fn took(lab: &Lab, filter: &TagFilter, id: u64) {
    let job = must(lab, filter).await;
    lab.same(&format!("the activity for {filter:?}"), job.id(), id);
    lab.answered(&job, None).await;
}

/// The next activity of all was passed over without being counted.
async fn untouched(lab: &Lab, id: u64) {
    let job = must(lab, &TagFilter::Any).await;
    lab.same("the activity that was passed over", job.id(), id);
    lab.same("its attempts, which passing over does not count", job.attempt, 1);
}

async fn must(lab: &Lab, filter: &TagFilter) -> Job {
    match lab.job_tagged(filter).await {
        Some(job) => job,
        None => lab.broken(&format!("an activity for {filter:?}"), "nothing"),
    }
}
