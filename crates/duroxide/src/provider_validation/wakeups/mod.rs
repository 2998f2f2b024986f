//! A fetch that waits returns as soon as there is something for it. For stores with long polls.

mod hammer;
mod time;
mod work;

use std::future::Future;
use std::time::Duration;

use tokio::time::{sleep, timeout};

use super::ProviderFactory;
use super::lab::{LONG, Lab, Promise, Turn, lab};
use super::words::*;
use crate::providers::{DispatcherCapabilityFilter, ProviderError, TagFilter};

pub use hammer::*;
pub use time::*;
pub use work::*;

const SECTION: &str = "long-polls";
/// Longer than any check waits: a fetch that returns in time was woken.
const POLL: Duration = Duration::from_secs(300);
/// Something happens at the moment the wait begins, and well after.
const MOMENTS: [Duration; 2] = [Duration::ZERO, Duration::from_millis(20)];

/// A message for an instance ends the wait for a turn.
pub async fn a_message_ends_the_wait<F: ProviderFactory>(factory: &F) {
    let says = "a fetch that waits for a turn returns soon after a message was queued";
    let lab = lab(factory, Promise { rule: "R8.32", says, section: SECTION }).await.patient();
    lab.begin("a").await;
    for moment in MOMENTS {
        let turn = meanwhile(&lab, moment, wait_for_turn(&lab), lab.send(raise("a", "x"))).await;
        lab.batch(&turn, [raise("a", "x")]);
        lab.committed(&turn, commit()).await;
    }
    lab.send(raise("b", "early")).await; // R8.29: waits for its start
    let turn = meanwhile(&lab, MOMENTS[1], wait_for_turn(&lab), lab.send(start("b"))).await;
    lab.batch(&turn, [raise("b", "early"), start("b")]);
}

/// A commit ends the waits for what it sends.
pub async fn a_commit_ends_the_wait<F: ProviderFactory>(factory: &F) {
    let says = "a fetch that waits for a turn returns soon after a commit sent or released one";
    let lab = lab(factory, Promise { rule: "R8.54", says, section: SECTION }).await.patient();
    lab.begin("a").await;
    lab.begin("b").await;
    for moment in MOMENTS {
        lab.send(raise("a", "x")).await;
        let turn = lab.turn_of("a").await;
        let commits = lab.committed(&turn, commit().message(raise("b", "y")));
        let next = meanwhile(&lab, moment, wait_for_turn(&lab), commits).await;
        lab.batch(&next, [raise("b", "y")]);
        // What came under the lock is free with the commit.
        lab.send(raise("b", "z")).await;
        let commits = lab.committed(&next, commit());
        let last = meanwhile(&lab, moment, wait_for_turn(&lab), commits).await;
        lab.batch(&last, [raise("b", "z")]);
        lab.committed(&last, commit()).await;
    }
}

/// An answer ends the wait of the instance that waits for it.
pub async fn an_answer_ends_the_wait<F: ProviderFactory>(factory: &F) {
    let says = "a fetch that waits for a turn returns soon after an activity was answered";
    let lab = lab(factory, Promise { rule: "R8.74", says, section: SECTION }).await.patient();
    lab.begin("a").await;
    for moment in MOMENTS {
        lab.queue(activity("a", 2)).await;
        let job = lab.job().await;
        let answers = lab.answered(&job, Some(done("a", 2)));
        let turn = meanwhile(&lab, moment, wait_for_turn(&lab), answers).await;
        lab.batch(&turn, [done("a", 2)]);
        lab.committed(&turn, commit()).await;
    }
}

/// A turn given back is there for who waits.
pub async fn a_turn_given_back_ends_the_wait<F: ProviderFactory>(factory: &F) {
    let says = "a fetch that waits for a turn returns soon after one was given back";
    let lab = lab(factory, Promise { rule: "R8.65", says, section: SECTION }).await.patient();
    lab.send(start("a")).await;
    for delay in [None, Some(Duration::from_millis(30))] {
        for moment in MOMENTS {
            let turn = meanwhile(&lab, moment, wait_for_turn(&lab), async {}).await;
            let gives_back = async {
                let result = lab.abandon_orchestration_item(&turn.token, delay, false).await;
                lab.ok("abandon_orchestration_item", result);
            };
            let again = meanwhile(&lab, moment, wait_for_turn(&lab), gives_back).await;
            lab.batch(&again, [start("a")]);
            lab.abandon(&again).await;
        }
    }
}

/// Those who wait for something else are no obstacle.
pub async fn others_who_wait_are_no_obstacle<F: ProviderFactory>(factory: &F) {
    let says = "a turn reaches the fetch that can take it, whoever else waits for what";
    let lab = lab(factory, Promise { rule: "R8.91", says, section: SECTION }).await.patient();
    lab.begin_as("a", first_commit("a").pinned("2.0.0")).await;
    let new = versions("2.0.0", "2.9.9");
    for moment in MOMENTS {
        let waits = beside_others(&lab, wait_for(&lab, Some(&new)));
        let turn = meanwhile(&lab, moment, waits, lab.send(raise("a", "x"))).await;
        lab.batch(&turn, [raise("a", "x")]);
        lab.committed(&turn, commit()).await;
    }
}

/// A fetch that waits must return soon, while something happens a moment after it began to wait.
pub(super) async fn meanwhile<T>(
    lab: &Lab,
    moment: Duration,
    waits: impl Future<Output = T>,
    happens: impl Future<Output = ()>,
) -> T {
    let happens = async {
        sleep(moment).await;
        happens.await;
    };
    let (returned, ()) = tokio::join!(timeout(moment + lab.patience, waits), happens);
    match returned {
        Ok(returned) => returned,
        Err(_) => lab.broken("the fetch that waits to return soon", "nothing"),
    }
}

/// A fetch that waits beside others, who came first and wait for what never comes.
async fn beside_others<T>(lab: &Lab, waits: impl Future<Output = T>) -> T {
    let (pins, tags) = (versions("0.0.1", "0.0.1"), TagFilter::tags(["never"]));
    tokio::select! {
        biased;
        turn = wait_for(lab, Some(&pins)) => lab.broken("nothing for another version", turn),
        turn = wait_for(lab, Some(&pins)) => lab.broken("nothing for another version", turn),
        job = work::wait(lab, None, &tags) => lab.broken("nothing for another tag", job),
        job = work::wait(lab, None, &tags) => lab.broken("nothing for another tag", job),
        waited = waits => waited,
    }
}

/// Waits for a turn.
pub(super) async fn wait_for_turn(lab: &Lab) -> Turn {
    wait_for(lab, None).await
}

async fn wait_for(lab: &Lab, filter: Option<&DispatcherCapabilityFilter>) -> Turn {
    let fetched = lab.fetch_orchestration_item(LONG, POLL, filter).await;
    let (item, token, attempt) = waited(lab, "fetch_orchestration_item", fetched);
    Turn { item, token, attempt }
}

/// A fetch must not have given up.
fn waited<T>(lab: &Lab, call: &str, fetched: Result<Option<T>, ProviderError>) -> T {
    match lab.ok(call, fetched) {
        Some(fetched) => fetched,
        None => lab.broken(&format!("{call} to wait for {POLL:?}"), "nothing, before that"),
    }
}
