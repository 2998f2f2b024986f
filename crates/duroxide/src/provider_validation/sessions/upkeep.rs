//! Renewing leases while they are used, and forgetting sessions that nobody needs.

use super::super::ProviderFactory;
use super::super::lab::{LONG, Lab, Promise, lab};
use super::super::words::*;
use super::{SECTION, cleaned_up, renewed, worker};

/// Leases are renewed owner by owner, and counted.
pub async fn test_renew_session_lock_active(factory: &dyn ProviderFactory) {
    let says = "renewing extends the used leases of the named owners, and says how many";
    let lab = lab(factory, Promise { rule: "R8.86", says, section: SECTION }).await;
    for (id, session) in [(2, "s"), (3, "t"), (4, "u"), (5, "u")] {
        lab.queue(in_session(id, session)).await;
    }
    let w1 = worker(&lab, "w1");
    w1.gets(2).await;
    w1.gets(3).await;
    worker(&lab, "w2").leasing(lab.lock).gets(4).await;
    lab.same("the leases of w1", renewed(&lab, &["w1"], LONG).await, 2);
    lab.same("the leases of nobody", renewed(&lab, &["nobody"], LONG).await, 0);
    worker(&lab, "w3").soon_gets(5).await; // The lease of w2 was not extended.
    lab.same("the leases of all", renewed(&lab, &["w1", "w2", "w3"], LONG).await, 3);
}

/// A lease that is not used is not renewed.
pub async fn test_renew_session_lock_skips_idle(factory: &dyn ProviderFactory) {
    let says = "a session unused for the idle time is not renewed, and renewing is not use";
    let lab = lab(factory, Promise { rule: "R8.86", says, section: SECTION }).await;
    let lease = lab.lock * 2;
    lab.queue(in_session(2, "idle")).await;
    worker(&lab, "w1").leasing(lease).gets(2).await;
    let first = lab.renew_session_lock(&["w1"], lease, LONG).await;
    lab.same("the used leases", lab.ok("renew_session_lock", first), 1);
    lab.locks_run_out().await;
    lab.same("the used leases", renewed(&lab, &["w1"], lab.lock).await, 0);
    lab.queue(in_session(3, "busy")).await;
    worker(&lab, "w1").gets(3).await;
    lab.same("the used leases", renewed(&lab, &["w1"], lab.lock).await, 1);
    lab.queue(in_session(4, "idle")).await;
    worker(&lab, "w2").soon_gets(4).await; // The idle one was not extended.
}

/// Who has no sessions renews none.
pub async fn test_renew_session_lock_no_sessions(factory: &dyn ProviderFactory) {
    let says = "who has no leases renews none, and no owner at all renews none";
    let lab = lab(factory, Promise { rule: "R8.86", says, section: SECTION }).await;
    lab.same("the leases in an empty store", renewed(&lab, &["w1"], LONG).await, 0);
    lab.queue(in_session(2, "s")).await;
    lab.same("the leases on a free session", renewed(&lab, &["w1"], LONG).await, 0);
    worker(&lab, "w2").gets(2).await;
    lab.same("the leases of one who has none", renewed(&lab, &["w1"], LONG).await, 0);
    lab.same("the leases of no owners", renewed(&lab, &[], LONG).await, 0);
}

/// Sessions that ran out and have no activities are forgotten.
pub async fn test_cleanup_removes_expired_no_items(factory: &dyn ProviderFactory) {
    let says = "a session whose lease ran out and that has no activities is forgotten, and counted";
    let lab = lab(factory, Promise { rule: "R8.87", says, section: SECTION }).await;
    forgotten(&lab).await;
    lab.same("the sessions to forget after that", cleaned_up(&lab).await, 0);
}

/// Sessions with activities are kept.
pub async fn test_cleanup_keeps_sessions_with_pending_items(factory: &dyn ProviderFactory) {
    let says = "a session is kept while it has activities, queued or in work";
    let lab = lab(factory, Promise { rule: "R8.87", says, section: SECTION }).await;
    lab.queue(in_session(2, "s")).await;
    lab.queue(in_session(3, "s")).await;
    let brief = worker(&lab, "w1").leasing(lab.lock);
    let job = brief.gets(2).await;
    lab.answered(&job, None).await;
    lab.locks_run_out().await;
    lab.same("the sessions to forget, one queued", cleaned_up(&lab).await, 0);
    let job = brief.gets(3).await;
    lab.locks_run_out().await;
    lab.same("the sessions to forget, one in work", cleaned_up(&lab).await, 0);
    lab.answered(&job, None).await;
    forgets_one(&lab).await;
}

/// Leased sessions are kept.
pub async fn test_cleanup_keeps_active_sessions(factory: &dyn ProviderFactory) {
    let says = "a session is kept while its lease holds, though it has no activities";
    let lab = lab(factory, Promise { rule: "R8.87", says, section: SECTION }).await;
    let (w1, w2) = (worker(&lab, "w1"), worker(&lab, "w2"));
    lab.queue(in_session(2, "s")).await;
    let job = w1.gets(2).await;
    lab.answered(&job, None).await;
    lab.locks_run_out().await; // Idle, but leased.
    lab.same("the sessions to forget", cleaned_up(&lab).await, 0);
    lab.queue(in_session(3, "s")).await;
    w2.gets_nothing().await;
    w1.gets(3).await;
}

/// A forgotten session is made anew.
pub async fn test_cleanup_then_new_item_recreates_session(factory: &dyn ProviderFactory) {
    let says = "a forgotten session is made anew by the next activity";
    let lab = lab(factory, Promise { rule: "R8.87", says, section: SECTION }).await;
    forgotten(&lab).await;
    let (w1, w2) = (worker(&lab, "w1"), worker(&lab, "w2"));
    lab.queue(in_session(3, "s")).await;
    lab.queue(in_session(4, "s")).await;
    w2.gets(3).await;
    w1.gets_nothing().await;
    w2.gets(4).await;
}

/// Answering an activity is use of its session.
pub async fn test_ack_updates_session_last_activity(factory: &dyn ProviderFactory) {
    let says = "answering an activity counts as use of its session";
    let lab = lab(factory, Promise { rule: "R8.85", says, section: SECTION }).await;
    lab.queue(in_session(2, "s")).await;
    let job = worker(&lab, "w1").gets(2).await;
    lab.locks_run_out().await;
    lab.same("the used leases before", renewed(&lab, &["w1"], lab.lock).await, 0);
    lab.answered(&job, None).await;
    lab.same("the used leases", renewed(&lab, &["w1"], lab.lock).await, 1);
}

/// Renewing the lock of an activity is use of its session.
pub async fn test_renew_work_item_updates_session_last_activity(factory: &dyn ProviderFactory) {
    let says = "renewing the lock of an activity counts as use of its session";
    let lab = lab(factory, Promise { rule: "R8.85", says, section: SECTION }).await;
    lab.queue(in_session(2, "s")).await;
    let job = worker(&lab, "w1").gets(2).await;
    lab.locks_run_out().await;
    lab.same("the used leases before", renewed(&lab, &["w1"], lab.lock).await, 0);
    lab.ok("renew_work_item_lock", lab.renew_work_item_lock(&job.token, LONG).await);
    lab.same("the used leases", renewed(&lab, &["w1"], lab.lock).await, 1);
}

/// A lease that ran out cannot be renewed.
pub async fn test_renew_session_lock_after_expiry_returns_zero(factory: &dyn ProviderFactory) {
    let says = "a lease that ran out is not renewed, though nobody else has the session";
    let lab = lab(factory, Promise { rule: "R8.86", says, section: SECTION }).await;
    lab.queue(in_session(2, "s")).await;
    lab.queue(in_session(3, "s")).await;
    worker(&lab, "w1").leasing(lab.lock).gets(2).await;
    lab.locks_run_out().await;
    lab.same("the leases of w1", renewed(&lab, &["w1"], LONG).await, 0);
    worker(&lab, "w2").gets(3).await;
}

/// A renewed lease holds for longer.
pub async fn test_session_lock_renewal_extends_past_original_timeout(
    factory: &dyn ProviderFactory,
) {
    let says = "a renewed lease holds beyond its first end";
    let lab = lab(factory, Promise { rule: "R8.86", says, section: SECTION }).await;
    lab.queue(in_session(2, "s")).await;
    lab.queue(in_session(3, "s")).await;
    worker(&lab, "w1").leasing(lab.lock).gets(2).await;
    lab.same("the leases of w1", renewed(&lab, &["w1"], LONG).await, 1);
    lab.locks_run_out().await;
    worker(&lab, "w2").gets_nothing().await;
    worker(&lab, "w1").gets(3).await;
}

/// A session `s` that was used once, ran out and was forgotten.
async fn forgotten(lab: &Lab) {
    lab.queue(in_session(2, "s")).await;
    let job = worker(lab, "w1").leasing(lab.lock).gets(2).await;
    lab.answered(&job, None).await;
    forgets_one(lab).await;
}

/// One session is forgotten once its lease is over.
async fn forgets_one(lab: &Lab) {
    let cleaned_up = || async { Some(cleaned_up(lab).await).filter(|count| 0 < *count) };
    let count = lab.soon("a session to be forgotten when its lease is over", cleaned_up).await;
    lab.same("the number of forgotten sessions", count, 1);
}
