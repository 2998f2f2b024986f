//! A node gets the turns whose executions it can replay, and does not touch the others.

mod damage;
mod filter;
mod pins;

use super::lab::{AT_ONCE, Lab, Turn};
use super::words::*;
use crate::providers::DispatcherCapabilityFilter;

pub use damage::*;
pub use filter::*;
pub use pins::*;

const SECTION: &str = "versions-and-capabilities";

/// Instances pinned to these versions, each with a message to fetch, in this order.
async fn pinned(lab: &Lab, instances: &[(&str, &str)]) {
    for (instance, pin) in instances {
        lab.begin_as(instance, first_commit(instance).pinned(pin)).await;
    }
    for (instance, _) in instances {
        lab.send(raise(instance, "x")).await;
    }
}

/// A node with this filter gets the next turn of this instance, for the first time.
async fn served(lab: &Lab, filter: &DispatcherCapabilityFilter, instance: &str) -> Turn {
    let turn = match lab.try_turn(Some(filter)).await {
        Some(turn) => turn,
        None => lab.broken(&format!("a turn of {instance:?} for {filter:?}"), "nothing"),
    };
    lab.same("the fetched instance", &turn.item.instance, instance);
    lab.same("the attempt, which passing over does not count", turn.attempt, 1);
    turn
}

/// A node with this filter gets nothing, whichever way it asks.
async fn passed_over(lab: &Lab, filter: &DispatcherCapabilityFilter) {
    if let Some(turn) = lab.try_turn(Some(filter)).await {
        lab.broken(&format!("no turn for {filter:?}"), turn);
    }
    let fetched = lab.ok("fetch_turn", lab.fetch_turn(lab.lock, AT_ONCE, Some(filter)).await);
    lab.expect(fetched.is_none(), &format!("no turn for {filter:?} from fetch_turn"), fetched);
}
