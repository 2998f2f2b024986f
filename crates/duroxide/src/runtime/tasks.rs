//! The tasks of a runtime and how they end (R7.120 – R7.127a).

use std::future::Future;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::task::AbortHandle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// Everything a runtime has spawned. It goes on when the handle is dropped: people start a runtime
/// and let go of it, as one does with a server.
///
/// Slots end first, each with what it has in hand; the tasks that serve them, such as the renewal of
/// their locks, end when no slot is left.
#[derive(Default)]
pub(crate) struct Tasks {
    slots: TaskTracker,
    servants: TaskTracker,
    /// Tells slots to take nothing more.
    stop: CancellationToken,
    /// Tells servants that no slot is left.
    dismissed: CancellationToken,
    aborts: Mutex<Vec<AbortHandle>>,
}

impl Tasks {
    pub(crate) fn stop(&self) -> CancellationToken {
        self.stop.clone()
    }

    pub(crate) fn dismissed(&self) -> CancellationToken {
        self.dismissed.clone()
    }

    /// Counts what slots spawn: they have not ended before it has.
    pub(crate) fn slot_tracker(&self) -> TaskTracker {
        self.slots.clone()
    }

    pub(crate) fn servant_tracker(&self) -> TaskTracker {
        self.servants.clone()
    }

    pub(crate) fn spawn_slot(&self, slot: impl Future<Output = ()> + Send + 'static) {
        self.remember(self.slots.spawn(slot).abort_handle());
    }

    pub(crate) fn spawn_servant(&self, servant: impl Future<Output = ()> + Send + 'static) {
        self.remember(self.servants.spawn(servant).abort_handle());
    }

    /// Ends everything: politely for `grace`, then by force. May be called many times, at the same
    /// time, and after a call that was dropped half-way.
    pub(crate) async fn end(&self, grace: Duration) {
        self.slots.close();
        self.servants.close();
        self.stop.cancel();
        // Without grace no timer is needed, so that works outside a tokio context too (R7.122).
        let ended_politely = !grace.is_zero()
            && tokio::time::timeout(grace, async {
                self.slots.wait().await;
                self.dismissed.cancel();
                self.servants.wait().await;
            })
            .await
            .is_ok();
        if !ended_politely {
            self.abort_all();
        }
        self.slots.wait().await;
        self.dismissed.cancel();
        self.servants.wait().await;
    }

    fn remember(&self, abort: AbortHandle) {
        self.aborts.lock().unwrap_or_else(PoisonError::into_inner).push(abort);
    }

    fn abort_all(&self) {
        let aborts = self.aborts.lock().unwrap_or_else(PoisonError::into_inner);
        aborts.iter().for_each(AbortHandle::abort);
    }
}
