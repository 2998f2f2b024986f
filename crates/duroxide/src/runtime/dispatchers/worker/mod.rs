//! One activity: fetch, execute, complete.

mod slot;
mod sessions;
mod execute;
mod complete;

use std::sync::Arc;

use super::fetch::Lead;
use super::lease::LeaseKeeper;
use crate::runtime::node::Node;

pub(crate) use sessions::{Sessions, keep_sessions};
pub(crate) use slot::Slot;

/// What the slots of this dispatcher share.
pub(crate) struct Dispatcher {
    pub(crate) node: Arc<Node>,
    pub(crate) leases: Arc<LeaseKeeper>,
    pub(crate) lead: Lead,
    pub(crate) sessions: Sessions,
}
