//! What happens when leases, or the locks of activities, run out.

use super::super::ProviderFactory;
use super::super::lab::{LONG, Promise, lab};
use super::super::words::*;
use super::{SECTION, renewed, worker};

/// A session whose lease ran out is free for all.
pub async fn test_session_claimable_after_lock_expiry(factory: &dyn ProviderFactory) {
    let says = "a session whose lease ran out goes to the next who asks";
    let lab = lab(factory, Promise { rule: "R8.83", says, section: SECTION }).await;
    lab.queue(in_session(2, "s")).await;
    let job = worker(&lab, "w1").leasing(lab.lock).gets(2).await;
    lab.answered(&job, None).await;
    lab.queue(in_session(3, "s")).await;
    let job = worker(&lab, "w2").soon_gets(3).await;
    lab.same("the attempt", job.attempt, 1);
    lab.same("the activity", job.item, in_session(3, "s"));
}

/// Who takes a session over owns it like its first owner.
pub async fn test_session_takeover_after_lock_expiry(factory: &dyn ProviderFactory) {
    let says = "who takes a session over owns it, and its former owner does not";
    let lab = lab(factory, Promise { rule: "R8.83", says, section: SECTION }).await;
    for id in 2..=5 {
        lab.queue(in_session(id, "s")).await;
    }
    let (w1, w2) = (worker(&lab, "w1"), worker(&lab, "w2"));
    worker(&lab, "w1").leasing(lab.lock).gets(2).await;
    w2.soon_gets(3).await;
    w1.gets_nothing().await;
    lab.same("the leases of the former owner", renewed(&lab, &["w1"], LONG).await, 0);
    lab.same("the leases of the new owner", renewed(&lab, &["w2"], LONG).await, 1);
    w2.gets(4).await;
    w1.gets_nothing().await;
}

/// The former owner may have its session again.
pub async fn test_original_worker_reclaims_expired_session(factory: &dyn ProviderFactory) {
    let says = "the former owner of a session may claim it again";
    let lab = lab(factory, Promise { rule: "R8.83", says, section: SECTION }).await;
    lab.queue(in_session(2, "s")).await;
    worker(&lab, "w1").locking(lab.lock).leasing(lab.lock).gets(2).await;
    lab.queue(in_session(3, "s")).await;
    lab.locks_run_out().await;
    worker(&lab, "w1").soon_gets(3).await;
    worker(&lab, "w2").gets_nothing().await;
    let again = worker(&lab, "w1").gets(2).await; // behind, since its lock ran out (R8.146)
    lab.same("the attempt", again.attempt, 2);
}

/// A silent worker's activity goes to the session's owner as long as there is one.
pub async fn test_activity_lock_expires_session_lock_valid_same_worker_refetches(
    factory: &dyn ProviderFactory,
) {
    let says =
        "an activity whose lock ran out under a valid lease goes to the session's owner only";
    let lab = lab(factory, Promise { rule: "R8.84", says, section: SECTION }).await;
    lab.queue(in_session(2, "s")).await;
    let silent = worker(&lab, "w1").locking(lab.lock).gets(2).await;
    lab.locks_run_out().await;
    worker(&lab, "w2").gets_nothing().await;
    lab.no_job().await;
    let again = worker(&lab, "w1").soon_gets(2).await;
    lab.same("the attempt", again.attempt, 2);
    let late = lab.ack_work_item(&silent.token, None).await;
    lab.refused("ack_work_item with the lost token", late, &[]);
    lab.answered(&again, None).await;
}

/// The new owner gets also what the former one leaves.
pub async fn test_session_lock_expires_new_owner_gets_redelivery(factory: &dyn ProviderFactory) {
    let says = "an activity the former owner never answered goes to the new owner of the session";
    let lab = lab(factory, Promise { rule: "R8.84", says, section: SECTION }).await;
    lab.queue(in_session(2, "s")).await;
    lab.queue(in_session(3, "s")).await;
    // The lease runs out long before the lock, so that the other takes over in between.
    worker(&lab, "w1").leasing(lab.lock).locking(lab.lock * 3).gets(2).await;
    let w2 = worker(&lab, "w2");
    w2.soon_gets(3).await;
    let again = w2.soon_gets(2).await;
    lab.same("the attempt", again.attempt, 2);
    lab.queue(in_session(4, "s")).await;
    worker(&lab, "w1").gets_nothing().await;
    // A lease runs out though the lock does not.
    lab.queue(in_session(5, "t")).await;
    worker(&lab, "w1").leasing(lab.lock).gets(5).await;
    lab.queue(in_session(6, "t")).await;
    w2.gets(4).await;
    w2.soon_gets(6).await;
}

/// An owner whose lease ran out gets it back with its next activity.
pub async fn test_session_lock_expires_same_worker_reacquires(factory: &dyn ProviderFactory) {
    let says = "an owner whose lease ran out has it again when it fetches the next activity";
    let lab = lab(factory, Promise { rule: "R8.83", says, section: SECTION }).await;
    for id in 2..=4 {
        lab.queue(in_session(id, "s")).await;
    }
    let job = worker(&lab, "w1").leasing(lab.lock).gets(2).await;
    lab.locks_run_out().await;
    let w1 = worker(&lab, "w1");
    let next = w1.gets(3).await;
    worker(&lab, "w2").gets_nothing().await;
    lab.answered(&job, None).await;
    lab.answered(&next, None).await;
    worker(&lab, "w2").gets_nothing().await;
    w1.gets(4).await;
}

/// When both ran out, anybody gets session and activity.
pub async fn test_both_locks_expire_different_worker_claims(factory: &dyn ProviderFactory) {
    let says = "when lock and lease ran out, the activity and its session go to whoever asks";
    let lab = lab(factory, Promise { rule: "R8.83", says, section: SECTION }).await;
    lab.queue(in_session(2, "s")).await;
    let silent = worker(&lab, "w1").locking(lab.lock).leasing(lab.lock).gets(2).await;
    let w2 = worker(&lab, "w2");
    let again = w2.soon_gets(2).await;
    lab.same("the attempt", again.attempt, 2);
    lab.same("the activity", &again.item, &in_session(2, "s"));
    let late = lab.ack_work_item(&silent.token, None).await;
    lab.refused("ack_work_item with the lost token", late, &[]);
    lab.queue(in_session(3, "s")).await;
    worker(&lab, "w1").gets_nothing().await;
    lab.answered(&again, None).await;
    w2.gets(3).await;
}

/// A lost lease does not take away the lock of an activity.
pub async fn test_session_lock_expires_activity_lock_valid_ack_succeeds(
    factory: &dyn ProviderFactory,
) {
    let says = "who lost the lease of a session can still answer the activity it holds";
    let lab = lab(factory, Promise { rule: "R8.84", says, section: SECTION }).await;
    lab.begin("a").await;
    for id in 2..=5 {
        lab.queue(in_session(id, "s")).await;
    }
    let brief = worker(&lab, "w1").leasing(lab.lock);
    let (first, second) = (brief.gets(2).await, brief.gets(3).await);
    lab.locks_run_out().await;
    lab.answered(&first, Some(done("a", 2))).await; // Nobody has the session.
    let w2 = worker(&lab, "w2");
    w2.soon_gets(4).await;
    let renewed = lab.renew_work_item_lock(&second.token, LONG).await;
    lab.ok("renew_work_item_lock", renewed);
    lab.answered(&second, Some(done("a", 3))).await; // Another has it.
    let turn = lab.turn_of("a").await;
    lab.same("the messages", &turn.item.messages, &vec![done("a", 2), done("a", 3)]);
    worker(&lab, "w1").gets_nothing().await;
    w2.gets(5).await;
}
