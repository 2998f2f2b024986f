//! One activity: fetch, execute, complete. A slot runs its code; the result finds its way alone.

mod slot;
mod ahead;
mod short;
mod sessions;
mod execute;
mod complete;

use std::sync::Arc;

use tokio::sync::Semaphore;

use super::fetch::Lead;
use super::lease::LeaseKeeper;
use super::orchestration;
use crate::runtime::node::Node;
use crate::runtime::reasons::Reasons;

use ahead::Ahead;
use sessions::Sessions;
use short::ShortActivities;

pub(crate) use ahead::pass_on_in_time;
pub(crate) use sessions::SessionLeases;
pub(crate) use slot::Slot;

/// Results at a time that wait for the store, without a slot.
const RESULTS_MAX: usize = 512;

/// What the slots of this dispatcher share.
pub(crate) struct Dispatcher {
    node: Arc<Node>,
    leases: Arc<LeaseKeeper>,
    lead: Lead,
    sessions: Arc<Sessions>,
    ahead: Ahead,
    short: ShortActivities,
    /// As many permits as activities may run at a time.
    running: Arc<Semaphore>,
    /// As many permits as results may wait for the store.
    results: Arc<Semaphore>,
    /// Who runs turns here, if anybody does.
    turns: Option<Arc<orchestration::Dispatcher>>,
    /// Why activities were given back here.
    reasons: Reasons<(String, u64, u64)>,
}

impl Dispatcher {
    pub(crate) fn new(
        node: Arc<Node>,
        leases: Arc<LeaseKeeper>,
        turns: Option<Arc<orchestration::Dispatcher>>,
    ) -> Arc<Self> {
        let running = Arc::new(Semaphore::new(node.options.worker_concurrency));
        let results = Arc::new(Semaphore::new(RESULTS_MAX));
        let (lead, sessions) = (Lead::new(), Arc::<Sessions>::default());
        let ahead = Ahead::new(node.options.worker_concurrency, node.options.worker_lock_timeout);
        let (short, reasons) = (ShortActivities::default(), Reasons::default());
        Arc::new(Self {
            node,
            leases,
            lead,
            sessions,
            ahead,
            short,
            running,
            results,
            turns,
            reasons,
        })
    }
}
