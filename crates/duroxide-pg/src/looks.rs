//! Looks at a queue that go to their end, whoever gave up meanwhile.
//!
//! A fetch may be dropped at any moment (R8.33), but what the server has been asked it does. So a
//! look runs by itself; what it found for somebody who is gone is given back as if it had not been
//! fetched, and who looks next waits for that.

use std::future::Future;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{oneshot, watch};

use crate::error::{Failure, PgError};

/// What a look at a queue came to.
pub(crate) enum Found<T> {
    Something(T),
    /// Nothing, and not before this time, by the store's clock, unless something happens.
    Nothing(Option<u64>),
}

/// The looks of a store.
pub(crate) struct Looks {
    /// How many of those under way nobody waits for any more.
    abandoned: watch::Sender<usize>,
}

impl Looks {
    pub(crate) fn new() -> Self {
        Self { abandoned: watch::Sender::new(0) }
    }

    /// Looks to the end. If the caller is gone by then, what was found is given back.
    pub(crate) async fn look<T: Send + 'static, Undo>(
        &self,
        look: impl Future<Output = Result<Found<T>, Failure>> + Send + 'static,
        give_back: impl FnOnce(T) -> Undo + Send + 'static,
    ) -> Result<Found<T>, Failure>
    where
        Undo: Future<Output = ()> + Send,
    {
        let closing = || PgError::Connection { reason: "the store is closing".to_owned() };
        let mut abandoned = self.abandoned.subscribe();
        // What they found is on its way back into the queue.
        abandoned.wait_for(|abandoned| *abandoned == 0).await.map_err(|_| closing())?;

        let slot = Arc::new(Slot { found: Mutex::new(None), abandoned: AtomicBool::new(false) });
        let (present, gone) = oneshot::channel::<()>();
        let (done, finished) = oneshot::channel();
        let (task_slot, count) = (Arc::clone(&slot), self.abandoned.clone());
        let caller = Caller { slot, count: &self.abandoned, is_served: false, _present: present };
        tokio::spawn(async move {
            task_slot.put(look.await);
            let _gone_already = done.send(());
            let _left = gone.await; // The caller has taken it, or never will.
            if let Some(Ok(Found::Something(unclaimed))) = task_slot.take() {
                give_back(unclaimed).await;
            }
            if task_slot.abandoned.load(Ordering::Acquire) {
                count.send_modify(|abandoned| *abandoned -= 1);
            }
        });
        finished.await.map_err(|_| closing())?;
        caller.take().ok_or_else(closing)?
    }
}

/// Where a look leaves what it found.
struct Slot<T> {
    found: Mutex<Option<Result<Found<T>, Failure>>>,
    abandoned: AtomicBool,
}

impl<T> Slot<T> {
    fn put(&self, found: Result<Found<T>, Failure>) {
        *self.found.lock().unwrap_or_else(PoisonError::into_inner) = Some(found);
    }

    fn take(&self) -> Option<Result<Found<T>, Failure>> {
        self.found.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// Somebody who waits for a look, until dropped.
struct Caller<'a, T> {
    slot: Arc<Slot<T>>,
    count: &'a watch::Sender<usize>,
    is_served: bool,
    /// Dropped last, which the look notices.
    _present: oneshot::Sender<()>,
}

impl<T> Caller<'_, T> {
    fn take(mut self) -> Option<Result<Found<T>, Failure>> {
        self.is_served = true;
        self.slot.take()
    }
}

impl<T> Drop for Caller<'_, T> {
    fn drop(&mut self) {
        if !self.is_served {
            self.slot.abandoned.store(true, Ordering::Release);
            self.count.send_modify(|abandoned| *abandoned += 1);
        }
    }
}
