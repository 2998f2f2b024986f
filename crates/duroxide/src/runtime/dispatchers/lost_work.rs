//! Activities that were cancelled by another process, or whose instance was deleted: the store is asked
//! every second, so that they need not wait for their next renewal to learn it.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::fetch::or_stop;
use super::lease::LeaseKeeper;
use crate::providers::Provider;
use crate::runtime::catch_panic::catch_panic;
use crate::runtime::observability::targets;

const INTERVAL: Duration = Duration::from_secs(1);
/// Short activities end before anybody could tell them.
const MIN_AGE: Duration = Duration::from_millis(500);
/// Tokens in one question.
const ASKED_MAX: usize = 256;

/// Gives up the locks that the store has given away, until `stop`.
pub(super) async fn give_up_until(
    leases: &LeaseKeeper,
    store: Arc<dyn Provider>,
    stop: &CancellationToken,
) {
    let forever = async {
        loop {
            leases.any_held().await;
            sleep(INTERVAL).await;
            for tokens in leases.held_for(MIN_AGE).chunks(ASKED_MAX) {
                give_up_lost(leases, store.as_ref(), tokens).await;
            }
        }
    };
    or_stop(stop, forever).await;
}

async fn give_up_lost(leases: &LeaseKeeper, store: &dyn Provider, tokens: &[Arc<str>]) {
    let tokens: Vec<&str> = tokens.iter().map(AsRef::as_ref).collect();
    match catch_panic(store.lost_work_items(&tokens)).await {
        Ok(Ok(lost)) if lost.is_empty() => {}
        Ok(Ok(lost)) => leases.give_up_tokens(&lost),
        // The renewals will tell.
        Ok(Err(error)) => {
            tracing::debug!(target: targets::WORKER, %error, "not told which activities are cancelled");
        }
        Err(panic) => {
            tracing::warn!(target: targets::WORKER, %panic, "the store panicked when asked for lost locks");
        }
    }
}
