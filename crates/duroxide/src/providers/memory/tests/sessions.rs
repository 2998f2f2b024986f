//! Who gets session work (R8.80 – R8.84, R8.88).

use std::time::Duration;

use super::lab::*;
use crate::providers::{Provider, SessionFetchConfig, TagFilter};

async fn with_jobs(items: impl IntoIterator<Item = duroxide_core::model::WorkItem>) -> Lab {
    let lab = lab();
    for item in items {
        lab.queue(item).await;
    }
    lab
}

async fn id_for(lab: &Lab, owner: &str) -> Option<u64> {
    lab.job_for(owner).await.map(|job| job.id())
}

#[tokio::test(start_paused = true)]
async fn r8_80_without_session_config_session_work_is_invisible() {
    let lab = with_jobs([in_session(2, "s"), activity("a", 3)]).await;
    assert_eq!(lab.job().await.id(), 3);
    lab.no_job().await;
}

#[tokio::test(start_paused = true)]
async fn r8_81_with_it_everything_comes_in_queue_order() {
    let lab =
        with_jobs([activity("a", 2), in_session(3, "s"), activity("a", 4), in_session(5, "s")])
            .await;
    for id in 2..=5 {
        assert_eq!(id_for(&lab, "w1").await, Some(id));
    }
    assert_eq!(id_for(&lab, "w1").await, None);
}

#[tokio::test(start_paused = true)]
async fn r8_81_a_session_belongs_to_one_owner() {
    let lab = with_jobs([in_session(2, "s"), in_session(3, "s"), activity("a", 4)]).await;
    assert_eq!(id_for(&lab, "w1").await, Some(2));
    assert_eq!(id_for(&lab, "w2").await, Some(4), "other work is for everybody");
    assert_eq!(id_for(&lab, "w2").await, None);
    assert_eq!(id_for(&lab, "w1").await, Some(3));
}

#[tokio::test(start_paused = true)]
async fn r8_82_each_session_has_its_own_owner() {
    let lab =
        with_jobs([in_session(2, "s"), in_session(3, "t"), in_session(4, "s"), in_session(5, "t")])
            .await;
    assert_eq!(id_for(&lab, "w1").await, Some(2));
    assert_eq!(id_for(&lab, "w2").await, Some(3));
    assert_eq!(id_for(&lab, "w2").await, Some(5));
    assert_eq!(id_for(&lab, "w1").await, Some(4));
}

#[tokio::test(start_paused = true)]
async fn r8_82_a_shared_owner_id_may_fetch_from_anywhere() {
    let lab = with_jobs([in_session(2, "s"), in_session(3, "s")]).await;
    assert_eq!(id_for(&lab, "node").await, Some(2));
    assert_eq!(id_for(&lab, "node").await, Some(3), "at the same time, too");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn r8_82_of_many_claims_one_wins() {
    for _ in 0..20 {
        let lab = with_jobs([in_session(2, "s"), in_session(3, "s")]).await;
        let claims = (0..4).map(|number| {
            let lab = lab.clone();
            tokio::spawn(async move { id_for(&lab, &format!("w{number}")).await })
        });
        let mut winners = 0;
        for claim in claims.collect::<Vec<_>>() {
            winners += usize::from(claim.await.unwrap().is_some());
        }
        assert_eq!(winners, 1);
    }
}

#[tokio::test(start_paused = true)]
async fn r8_82_a_claim_writes_the_lease() {
    let lab = with_jobs([in_session(2, "s")]).await;
    assert!(lab.snapshot().sessions["s"].owner.is_none());
    id_for(&lab, "w1").await;
    let session = &lab.snapshot().sessions["s"];
    assert_eq!(session.owner.as_deref(), Some("w1"));
    assert_eq!(session.leased_until, Some(lab.now() + LOCK_MS));
    assert_eq!(session.last_activity, Some(lab.now()));
}

#[tokio::test(start_paused = true)]
async fn r8_83_an_expired_lease_is_anybody_s() {
    for owner in ["w1", "w2"] {
        let lab = with_jobs([in_session(2, "s"), in_session(3, "s")]).await;
        let job = lab.job_for("w1").await.unwrap();
        lab.renew_work_item_lock(&job.token, LOCK * 2).await.unwrap();
        pass(LOCK_MS - 1).await;
        assert_eq!(id_for(&lab, "w2").await, None);
        pass(1).await;
        assert_eq!(id_for(&lab, owner).await, Some(3), "{owner}");
        assert_eq!(lab.snapshot().sessions["s"].owner.as_deref(), Some(owner));
    }
}

#[tokio::test(start_paused = true)]
async fn r8_83_r8_84_when_both_end_another_worker_takes_over() {
    let lab = with_jobs([in_session(2, "s")]).await;
    lab.job_for("w1").await.unwrap();
    pass(LOCK_MS).await;
    let job = lab.job_for("w2").await.unwrap();
    assert_eq!((job.id(), job.attempt), (2, 2));
}

#[tokio::test(start_paused = true)]
async fn r8_84_an_expired_activity_goes_back_to_the_session_s_owner() {
    let lab = with_jobs([in_session(2, "s")]).await;
    let long_lease =
        SessionFetchConfig { owner_id: "w1".into(), lock_timeout: Duration::from_secs(60) };
    lab.try_job(Some(&long_lease), &TagFilter::DefaultOnly).await.unwrap();
    pass(LOCK_MS).await;
    assert_eq!(id_for(&lab, "w2").await, None);
    assert_eq!(id_for(&lab, "w1").await, Some(2));
}

#[tokio::test(start_paused = true)]
async fn r8_84_an_expired_lease_does_not_spoil_the_activity() {
    let lab = with_jobs([in_session(2, "s"), in_session(3, "s")]).await;
    let job = lab.job_for("w1").await.unwrap();
    lab.renew_work_item_lock(&job.token, LOCK * 2).await.unwrap();
    pass(LOCK_MS).await;
    assert_eq!(id_for(&lab, "w2").await, Some(3), "the session moves on");
    lab.ack_work_item(&job.token, None).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn r8_88_abandoned_work_stays_in_its_session() {
    let lab = with_jobs([in_session(2, "s")]).await;
    for uncount in [false, true] {
        let job = lab.job_for("w1").await.unwrap();
        assert_eq!((job.id(), job.attempt), (2, if uncount { 2 } else { 1 }));
        lab.abandon_work_item(&job.token, None, uncount).await.unwrap();
        assert_eq!(id_for(&lab, "w2").await, None);
        lab.no_job().await;
    }
    assert_eq!(lab.job_for("w1").await.unwrap().attempt, 2);
}
