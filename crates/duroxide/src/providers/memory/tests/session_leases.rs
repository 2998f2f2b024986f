//! The life of session leases (R8.85 – R8.87).

use std::time::Duration;

use super::lab::*;
use crate::providers::Provider;

/// A lab where `w1` holds session `s`, with one activity fetched.
async fn leased() -> (Lab, Job) {
    let lab = lab();
    lab.queue(in_session(2, "s")).await;
    let job = lab.job_for("w1").await.unwrap();
    (lab, job)
}

const IDLE: Duration = Duration::from_millis(2_000);

async fn renew(lab: &Lab, owners: &[&str]) -> usize {
    lab.renew_session_lock(owners, LOCK, IDLE).await.unwrap()
}

#[tokio::test(start_paused = true)]
async fn r8_85_acknowledging_and_renewing_count_as_use() {
    let (lab, job) = leased().await;
    pass(1_000).await;
    lab.renew_work_item_lock(&job.token, LOCK).await.unwrap();
    assert_eq!(lab.snapshot().sessions["s"].last_activity, Some(lab.now()));
    pass(1_000).await;
    lab.ack_work_item(&job.token, None).await.unwrap();
    assert_eq!(lab.snapshot().sessions["s"].last_activity, Some(lab.now()));
}

#[tokio::test(start_paused = true)]
async fn r8_85_but_not_once_the_lease_has_ended() {
    let (lab, job) = leased().await;
    lab.renew_work_item_lock(&job.token, LOCK * 2).await.unwrap();
    let used = lab.now();
    pass(LOCK_MS).await;
    lab.ack_work_item(&job.token, None).await.unwrap();
    assert_eq!(lab.snapshot().sessions["s"].last_activity, Some(used));
}

#[tokio::test(start_paused = true)]
async fn r8_86_renewal_extends_live_leases_of_these_owners() {
    let (lab, _job) = leased().await;
    lab.queue(in_session(3, "t")).await;
    lab.job_for("w2").await.unwrap();
    pass(1_000).await;
    assert_eq!(renew(&lab, &["w1", "w9"]).await, 1);
    let sessions = lab.snapshot().sessions;
    assert_eq!(sessions["s"].leased_until, Some(lab.now() + LOCK_MS));
    assert_eq!(sessions["t"].leased_until, Some(lab.now() + LOCK_MS - 1_000));
    assert_eq!(renew(&lab, &["w1", "w2"]).await, 2);
    assert_eq!(renew(&lab, &[]).await, 0);
    assert_eq!(renew(&lab, &["nobody"]).await, 0);
}

#[tokio::test(start_paused = true)]
async fn r8_86_a_renewed_lease_outlives_its_first_end() {
    let (lab, _job) = leased().await;
    lab.queue(in_session(3, "s")).await;
    pass(1_000).await;
    renew(&lab, &["w1"]).await;
    pass(LOCK_MS - 1).await;
    assert!(lab.job_for("w2").await.is_none());
    pass(1).await;
    assert!(lab.job_for("w2").await.is_some());
}

#[tokio::test(start_paused = true)]
async fn r8_86_idle_sessions_are_let_go() {
    let (lab, _job) = leased().await;
    pass(1_999).await;
    assert_eq!(renew(&lab, &["w1"]).await, 1);
    pass(1).await;
    assert_eq!(renew(&lab, &["w1"]).await, 0, "unused for as long as the idle timeout");
}

#[tokio::test(start_paused = true)]
async fn r8_86_an_ended_lease_is_not_revived() {
    let (lab, _job) = leased().await;
    pass(LOCK_MS).await;
    let always = Duration::from_secs(3600);
    assert_eq!(lab.renew_session_lock(&["w1"], LOCK, always).await.unwrap(), 0);
}

#[tokio::test(start_paused = true)]
async fn r8_87_sessions_that_ended_and_have_no_work_are_forgotten() {
    let (lab, job) = leased().await;
    assert_eq!(lab.cleanup_orphaned_sessions(IDLE).await.unwrap(), 0, "leased");
    pass(LOCK_MS).await;
    assert_eq!(lab.cleanup_orphaned_sessions(IDLE).await.unwrap(), 0, "has queued work");
    let job = lab.job_for("w1").await.unwrap_or(job);
    lab.ack_work_item(&job.token, None).await.unwrap();
    assert_eq!(lab.cleanup_orphaned_sessions(IDLE).await.unwrap(), 0, "leased again");
    pass(LOCK_MS).await;
    assert_eq!(lab.cleanup_orphaned_sessions(IDLE).await.unwrap(), 1);
    assert!(lab.snapshot().sessions.is_empty());

    lab.queue(in_session(3, "s")).await; // A later item makes it anew.
    assert_eq!(lab.job_for("w2").await.unwrap().id(), 3);
    assert_eq!(lab.snapshot().sessions["s"].owner.as_deref(), Some("w2"));
}
