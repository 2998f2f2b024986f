//! Routing by tag (R8.79, R7.65, R7.66).

use super::lab::*;
use crate::providers::{Provider, TagFilter};
use duroxide_core::model::WorkItem;

/// Activities 2 untagged, 3 gpu, 4 cpu, 5 untagged, 6 gpu.
async fn mixed() -> Lab {
    let lab = lab();
    for item in
        [activity("a", 2), tagged(3, "gpu"), tagged(4, "cpu"), activity("a", 5), tagged(6, "gpu")]
    {
        lab.queue(item).await;
    }
    lab
}

async fn all_for(lab: &Lab, filter: &TagFilter) -> Vec<u64> {
    let mut ids = Vec::new();
    while let Some(job) = lab.job_tagged(filter).await {
        ids.push(job.id());
    }
    ids
}

#[tokio::test(start_paused = true)]
async fn r8_79_r7_65_each_filter_takes_its_own_in_order() {
    let cases = [
        (TagFilter::default_only(), vec![2, 5]),
        (TagFilter::tags(["gpu"]), vec![3, 6]),
        (TagFilter::tags(["cpu", "gpu"]), vec![3, 4, 6]),
        (TagFilter::default_and(["gpu"]), vec![2, 3, 5, 6]),
        (TagFilter::any(), vec![2, 3, 4, 5, 6]),
        (TagFilter::none(), vec![]),
        (TagFilter::tags(["tpu"]), vec![]),
    ];
    for (filter, expected) in cases {
        assert_eq!(all_for(&mixed().await, &filter).await, expected, "{filter:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn r7_66_activities_nobody_takes_wait_uncounted() {
    let lab = mixed().await;
    assert!(all_for(&lab, &TagFilter::tags(["tpu"])).await.is_empty());
    all_for(&lab, &TagFilter::default_only()).await;
    assert_eq!(lab.job_tagged(&TagFilter::any()).await.unwrap().attempt, 1);
}

#[tokio::test(start_paused = true)]
async fn r8_79_workers_with_other_tags_do_not_meet() {
    let lab = mixed().await;
    assert_eq!(all_for(&lab, &TagFilter::tags(["gpu"])).await, [3, 6]);
    assert_eq!(all_for(&lab, &TagFilter::tags(["cpu"])).await, [4]);
    assert_eq!(all_for(&lab, &TagFilter::default_only()).await, [2, 5]);
}

#[tokio::test(start_paused = true)]
async fn r8_79_tags_survive_commits_abandons_and_expiry_verbatim() {
    let lab = lab();
    let odd = tagged(2, " Ünïcode \"tag\" ");
    lab.begin_as("a", first_commit("a").work(odd.clone())).await;
    let filter = TagFilter::tags([" Ünïcode \"tag\" "]);
    let job = lab.job_tagged(&filter).await.unwrap();
    assert_eq!(job.item, odd);
    lab.abandon_work_item(&job.token, None, false).await.unwrap();
    lab.no_job().await;
    assert_eq!(lab.job_tagged(&filter).await.unwrap().item, odd);
    pass(LOCK_MS).await;
    lab.no_job().await;
    assert_eq!(lab.job_tagged(&filter).await.unwrap().item, odd);
}

#[tokio::test(start_paused = true)]
async fn r8_79_r8_81_tags_and_sessions_both_count() {
    let lab = lab();
    for (id, session, with) in [(2, "s", "gpu"), (3, "s", "cpu"), (4, "t", "gpu")] {
        let mut item = in_session(id, session);
        if let WorkItem::ActivityExecute { tag, .. } = &mut item {
            *tag = Some(with.into());
        }
        lab.queue(item).await;
    }
    let cpu = TagFilter::tags(["cpu"]);
    let gpu = TagFilter::tags(["gpu"]);
    assert_eq!(lab.try_job(Some(&lease("w1")), &cpu).await.unwrap().id(), 3);
    assert_eq!(lab.try_job(Some(&lease("w2")), &gpu).await.unwrap().id(), 4, "s is w1's now");
    assert_eq!(lab.try_job(Some(&lease("w1")), &gpu).await.unwrap().id(), 2);
}
