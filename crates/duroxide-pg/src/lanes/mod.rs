//! Lanes: a few connections on which everything that waits leaves together.
//!
//! Ops and fetches wait on the [`Floor`]. A lane that is free takes all of them and carries them as one
//! transaction in one round trip; while it is on its way the next ones gather. A fetch that finds
//! nothing stays, and rides along with the next transaction that may bring it something.
//!
//! Reading order: `op.rs` (what can be asked), `floor.rs`, `state.rs` and `desk.rs` (where it waits), `bounds.rs`
//! and `ends.rs` (from where and when queues are looked through), `lane.rs`
//! (who carries it), `blocked.rs` (what somebody
//! else's lock keeps waiting), `held.rs` (who is answered later), `lost.rs` (whose answers were lost), `transaction.rs` (how), `look.rs`, `alone.rs`, `calls.rs`, `commit.rs` and `commit_columns.rs` (as what).

mod alone;
mod blocked;
mod bounds;
mod call;
mod calls;
mod catch;
mod commit;
mod commit_columns;
mod desk;
mod ends;
mod floor;
mod held;
mod lane;
mod look;
mod lost;
mod op;
mod state;
mod transaction;

use std::sync::Arc;

use tokio::runtime::Handle;

pub(crate) use bounds::{BEGINNING, Swept};
pub(crate) use call::Call;
pub(crate) use catch::Catch;
pub(crate) use commit::CommitDraft;
pub(crate) use desk::{Fetch, What, Wish};
pub(crate) use floor::{FOR_EVER, Floor};
pub(crate) use op::{Lock, Op, Queue};

use crate::store::{RunningGuard, Store};

/// Starts the lanes of a store on a runtime, and whoever keeps the time for them.
pub(crate) fn start(store: &Arc<Store>, guard: &Arc<RunningGuard>, home: &Handle) {
    store.floor.begin_anew();
    for number in 0..store.pool.settings().lanes.max(1) {
        let (lane, guard) = (lane::Lane::new(Arc::clone(store), number), Arc::clone(guard));
        home.spawn(async move {
            let _running = guard;
            lane.run().await;
        });
    }
    let (floor, guard) = (Arc::clone(&store.floor), Arc::clone(guard));
    home.spawn(async move {
        let _running = guard;
        floor.keep_time().await;
    });
}

/// Starts what is not to wait for commits, and what commits are not to wait for, on the store's thread.
pub(crate) fn start_beside(store: &Arc<Store>) {
    let (home, lanes) = (store.pool.driver().handle(), store.pool.settings().lanes.max(1));
    home.spawn(lane::Lane::new(Arc::clone(store), lanes).run_renewals());
    home.spawn(lane::Lane::new(Arc::clone(store), lanes + 1).run_blocked());
    home.spawn(lost::give_back(Arc::clone(store)));
}
