//! Waiting for commits to one instance (R8.134). Each instance has its own bell: a commit wakes
//! those who wait for this instance and nobody else.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Notify;

use super::MemoryProvider;
use super::instances::Id;

/// The bells of instances somebody waits for.
#[derive(Debug, Default)]
pub(super) struct CommitWatch {
    bells: HashMap<Id, Bell>,
}

#[derive(Debug, Default)]
struct Bell {
    notify: Arc<Notify>,
    listeners: usize,
}

impl CommitWatch {
    /// Wakes those who wait for this instance.
    pub(super) fn ring(&self, id: &str) {
        if let Some(bell) = self.bells.get(id) {
            bell.notify.notify_waiters();
        }
    }

    /// Number of instances somebody waits for.
    #[cfg(test)]
    pub(super) fn watched(&self) -> usize {
        self.bells.len()
    }

    fn listen(&mut self, id: &Id) -> Arc<Notify> {
        let bell = self.bells.entry(Id::clone(id)).or_default();
        bell.listeners += 1;
        Arc::clone(&bell.notify)
    }

    fn unlisten(&mut self, id: &Id) {
        if let Some(bell) = self.bells.get_mut(id) {
            bell.listeners -= 1;
            if bell.listeners == 0 {
                self.bells.remove(id);
            }
        }
    }
}

/// Waits until the number of the instance's latest commit is not `seen`, at most `timeout`; the
/// number then.
pub(super) async fn wait_for_commit(
    store: &MemoryProvider,
    instance: &str,
    seen: u64,
    timeout: Duration,
) -> u64 {
    let latest = || store.with(|inner, _| inner.state.last_commit(instance));
    let now = latest();
    if now != seen || timeout.is_zero() {
        return now;
    }
    let listener = Listener::new(store, instance);
    // Made before the second look: a commit after that look finds it waiting.
    let rung = listener.bell.notified();
    if latest() == seen {
        tokio::select! {
            () = rung => {}
            () = tokio::time::sleep(timeout) => {}
        }
    }
    latest()
}

/// Somebody who waits, until dropped.
struct Listener<'a> {
    store: &'a MemoryProvider,
    id: Id,
    bell: Arc<Notify>,
}

impl<'a> Listener<'a> {
    fn new(store: &'a MemoryProvider, instance: &str) -> Self {
        let (id, bell) = store.with(|inner, _| {
            let id = inner.state.shared_id(instance);
            let bell = inner.commit_watch.listen(&id);
            (id, bell)
        });
        Self { store, id, bell }
    }
}

impl Drop for Listener<'_> {
    fn drop(&mut self) {
        self.store.with(|inner, _| inner.commit_watch.unlisten(&self.id));
    }
}
