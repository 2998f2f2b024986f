//! Who gets which activity while leases hold.

use super::super::ProviderFactory;
use super::super::lab::{Job, LONG, Lab, Promise, lab};
use super::super::words::*;
use super::{SECTION, renewed, worker};

/// An activity without a session goes to anybody.
pub async fn test_non_session_items_fetchable_by_any_worker(factory: &dyn ProviderFactory) {
    let says = "an activity without a session goes to whoever asks, before and after a retry";
    let lab = lab(factory, Promise { rule: "R8.81", says, section: SECTION }).await;
    for id in 2..=4 {
        lab.queue(activity("a", id)).await;
    }
    let (w1, w2) = (worker(&lab, "w1"), worker(&lab, "w2"));
    let job = w1.gets(2).await;
    w2.gets(3).await;
    lab.same("the activity for one who takes no sessions", lab.job().await.id(), 4);
    lab.ok("abandon_work_item", lab.abandon_work_item(&job.token, None, false).await);
    w2.gets(2).await;
}

/// A session nobody has belongs to the first who fetches from it.
pub async fn test_session_item_claimable_when_no_session(factory: &dyn ProviderFactory) {
    let says = "fetching from a session that nobody has makes it the fetcher's";
    let lab = lab(factory, Promise { rule: "R8.82", says, section: SECTION }).await;
    lab.queue(in_session(2, "s")).await;
    lab.queue(in_session(3, "s")).await;
    let (w1, w2) = (worker(&lab, "w1"), worker(&lab, "w2"));
    let job = w1.gets(2).await;
    lab.same("the activity", job.item, in_session(2, "s"));
    lab.same("the attempt", job.attempt, 1);
    w2.gets_nothing().await;
    w1.gets(3).await;
}

/// A session stays with its owner, and each fetch lengthens the lease.
pub async fn test_session_affinity_same_worker(factory: &dyn ProviderFactory) {
    let says = "a session stays with its owner, busy or not, and each fetch renews the lease";
    let lab = lab(factory, Promise { rule: "R8.81, R8.82", says, section: SECTION }).await;
    let (w1, w2) = (worker(&lab, "w1"), worker(&lab, "w2"));
    lab.queue(in_session(2, "s")).await;
    let job = worker(&lab, "w1").leasing(lab.lock).gets(2).await;
    lab.answered(&job, None).await;
    lab.queue(in_session(3, "s")).await;
    let job = w1.gets(3).await;
    lab.locks_run_out().await; // The first lease would be over, were it not for the second fetch.
    lab.answered(&job, None).await;
    for id in 4..=6 {
        lab.queue(in_session(id, "s")).await;
        w2.gets_nothing().await;
        w1.gets(id).await;
    }
}

/// A session is closed to everybody but its owner.
pub async fn test_session_affinity_blocks_other_worker(factory: &dyn ProviderFactory) {
    let says = "nobody but its owner gets anything from a leased session";
    let lab = lab(factory, Promise { rule: "R8.81", says, section: SECTION }).await;
    let (w1, w2) = (worker(&lab, "w1"), worker(&lab, "w2"));
    lab.queue(in_session(2, "s")).await;
    lab.queue(in_session(3, "s")).await;
    let job = w1.gets(2).await;
    w2.gets_nothing().await;
    lab.answered(&job, None).await;
    w2.gets_nothing().await;
    lab.same("the attempt, which asking in vain does not count", w1.gets(3).await.attempt, 1);
}

/// Different sessions can have different owners.
pub async fn test_different_sessions_different_workers(factory: &dyn ProviderFactory) {
    let says = "different sessions can have different owners, each served from its own";
    let lab = lab(factory, Promise { rule: "R8.82", says, section: SECTION }).await;
    let (w1, w2) = (worker(&lab, "w1"), worker(&lab, "w2"));
    lab.queue(in_session(2, "s")).await;
    w1.gets(2).await;
    lab.queue(in_session(3, "t")).await;
    w2.gets(3).await;
    for (id, session) in [(4, "t"), (5, "s"), (6, "t"), (7, "s")] {
        lab.queue(in_session(id, session)).await;
    }
    for id in [5, 7] {
        w1.gets(id).await;
    }
    w1.gets_nothing().await;
    for id in [4, 6] {
        w2.gets(id).await;
    }
}

/// A session of another does not keep one from work without a session.
pub async fn test_mixed_session_and_non_session_items(factory: &dyn ProviderFactory) {
    let says = "who does not own the session is served past it with activities without one";
    let lab = lab(factory, Promise { rule: "R8.81", says, section: SECTION }).await;
    let (w1, w2) = (worker(&lab, "w1"), worker(&lab, "w2"));
    for item in [in_session(2, "s"), in_session(3, "s"), activity("a", 4), activity("a", 5)] {
        lab.queue(item).await;
    }
    w1.gets(2).await;
    w2.gets(4).await;
    w1.gets(3).await;
    w1.gets(5).await;
    w2.gets_nothing().await;
}

/// Who takes no sessions gets nothing from them.
pub async fn test_none_session_skips_session_items(factory: &dyn ProviderFactory) {
    let says = "who takes no sessions gets no activity of a session, whether it is leased or free";
    let lab = lab(factory, Promise { rule: "R8.80", says, section: SECTION }).await;
    for item in [in_session(2, "s"), in_session(3, "s"), activity("a", 4)] {
        lab.queue(item).await;
    }
    let job = lab.job().await;
    lab.same("the activity", job.id(), 4);
    lab.answered(&job, None).await;
    lab.no_job().await;
    let w1 = worker(&lab, "w1");
    lab.same("the attempt, which passing over does not count", w1.gets(2).await.attempt, 1);
    lab.no_job().await;
    w1.gets(3).await;
}

/// Who takes sessions gets everything, in queue order.
pub async fn test_some_session_returns_all_items(factory: &dyn ProviderFactory) {
    let says = "who takes sessions gets activities with and without one, in queue order";
    let lab = lab(factory, Promise { rule: "R8.81", says, section: SECTION }).await;
    let items = [
        activity("a", 2),
        in_session(3, "s"),
        activity("a", 4),
        in_session(5, "t"),
        in_session(6, "s"),
        activity("a", 7),
    ];
    for item in items {
        lab.queue(item).await;
    }
    let w1 = worker(&lab, "w1");
    for id in 2..=7 {
        w1.gets(id).await;
    }
    w1.gets_nothing().await;
}

/// A session is served in order.
pub async fn test_session_items_processed_in_order(factory: &dyn ProviderFactory) {
    let says = "activities of a session are served in queue order, also after one was given back";
    let lab = lab(factory, Promise { rule: "R8.81", says, section: SECTION }).await;
    let (w1, w2) = (worker(&lab, "w1"), worker(&lab, "w2"));
    lab.queue(in_session(2, "t")).await;
    w2.gets(2).await;
    for (id, session) in [(3, "s"), (4, "t"), (5, "s"), (6, "t"), (7, "s"), (8, "s")] {
        lab.queue(in_session(id, session)).await;
    }
    for id in [3, 5, 7, 8] {
        let job = w1.gets(id).await;
        lab.ok("abandon_work_item", lab.abandon_work_item(&job.token, None, false).await);
        let job = w1.gets(id).await;
        lab.answered(&job, None).await;
    }
    w1.gets_nothing().await;
}

/// Taking sessions does not keep one from work without a session, nor make a session of it.
pub async fn test_non_session_items_returned_with_session_config(factory: &dyn ProviderFactory) {
    let says = "who takes sessions gets activities without one, and no lease comes of it";
    let lab = lab(factory, Promise { rule: "R8.81", says, section: SECTION }).await;
    lab.queue(activity("a", 2)).await;
    let job = worker(&lab, "w1").gets(2).await;
    lab.same("the activity", job.item, activity("a", 2));
    lab.same("the number of leases", renewed(&lab, &["w1"], LONG).await, 0);
}

/// Several callers can be one owner.
pub async fn test_shared_worker_id_any_caller_can_fetch_owned_session(
    factory: &dyn ProviderFactory,
) {
    let says = "all callers with one owner id share its sessions, also at the same time";
    let lab = lab(factory, Promise { rule: "R8.82", says, section: SECTION }).await;
    for id in 2..=5 {
        lab.queue(in_session(id, "s")).await;
    }
    let (slot1, slot2) = (worker(&lab, "node"), worker(&lab, "node"));
    slot1.gets(2).await;
    let (one, two) = tokio::join!(slot1.ask(), slot2.ask());
    let mut got = [one.as_ref().map(Job::id), two.as_ref().map(Job::id)];
    got.sort_unstable();
    lab.same("the activities for two callers of one owner", got, [Some(3), Some(4)]);
    worker(&lab, "other node").gets_nothing().await;
    slot2.gets(5).await;
}

/// Of several who want a session at the same time one gets it.
pub async fn test_concurrent_session_claim_only_one_wins(factory: &dyn ProviderFactory) {
    let says = "of several owners who ask for a session at the same time exactly one gets it";
    let lab = lab(factory, Promise { rule: "R8.82", says, section: SECTION }).await;
    for id in 2..=6 {
        lab.queue(in_session(id, "s")).await;
    }
    let [w1, w2, w3, w4] = ["w1", "w2", "w3", "w4"].map(|name| worker(&lab, name));
    let (one, two, three, four) = tokio::join!(w1.ask(), w2.ask(), w3.ask(), w4.ask());
    let mut winners = Vec::new();
    for (worker, job) in [(w1, one), (w2, two), (w3, three), (w4, four)] {
        match job {
            Some(_) => winners.push(worker),
            None => worker.gets_nothing().await,
        }
    }
    lab.same("the number of owners who got something", winners.len(), 1);
    for winner in winners {
        winner.gets(3).await;
    }
}

/// An activity that was given back stays in its session.
pub async fn test_abandoned_session_item_retryable(factory: &dyn ProviderFactory) {
    let says = "an activity that was given back stays in its session and counts one attempt more";
    let lab = lab(factory, Promise { rule: "R8.88", says, section: SECTION }).await;
    abandoned(&lab, false, 2).await;
}

/// The same if the attempt is not to count.
pub async fn test_abandoned_session_item_ignore_attempt(factory: &dyn ProviderFactory) {
    let says = "an activity that was given back uncounted stays in its session at its old count";
    let lab = lab(factory, Promise { rule: "R8.88", says, section: SECTION }).await;
    abandoned(&lab, true, 1).await;
}

async fn abandoned(lab: &Lab, ignore_attempt: bool, attempt: u32) {
    lab.queue(in_session(2, "s")).await;
    let w1 = worker(lab, "w1");
    let job = w1.gets(2).await;
    let result = lab.abandon_work_item(&job.token, None, ignore_attempt).await;
    lab.ok("abandon_work_item", result);
    worker(lab, "w2").gets_nothing().await;
    lab.no_job().await;
    let again = w1.gets(2).await;
    lab.same("the attempt", again.attempt, attempt);
    lab.same("the activity", again.item, in_session(2, "s"));
}
