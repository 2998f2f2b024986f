//! What may wake an orchestration: its own turn, and nothing else.
//!
//! Durable futures, and whatever the code puts between them (joins, channels, unordered sets), keep
//! wakers as any future does. A wake counts if it comes from the running turn, on its thread: from an
//! event that is applied, or from the code itself. A replay repeats those in the same places. A wake
//! from anywhere else (a timer of the async runtime, I/O, another task) is no reason to poll, since no
//! replay could repeat it; it proves that the code waits for something that is not durable.

use std::cell::Cell;
use std::marker::PhantomData;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Wake;

thread_local! {
    /// Address of the wakeup whose turn runs on this thread; 0 if none does.
    static RUNNING: Cell<usize> = const { Cell::new(0) };
}

/// The end of all wakers of one execution.
#[derive(Debug, Default)]
pub(crate) struct Wakeup {
    woken: AtomicBool,
    foreign: AtomicBool,
}

impl Wakeup {
    /// Lets wakes from this thread count until what is returned is dropped.
    pub(crate) fn listen(&self) -> Listening {
        Listening { before: RUNNING.replace(self.address()), on_this_thread: PhantomData }
    }

    /// Whether this execution's turn runs on this thread.
    pub(crate) fn is_listening(&self) -> bool {
        RUNNING.get() == self.address()
    }

    /// Whether a wake at this moment counts. One that does not is remembered as foreign.
    pub(crate) fn counts(&self) -> bool {
        let counts = self.is_listening();
        if !counts {
            self.foreign.store(true, Ordering::Relaxed);
        }
        counts
    }

    pub(crate) fn wake(&self) {
        if self.counts() {
            self.woken.store(true, Ordering::Relaxed);
        }
    }

    pub(crate) fn is_woken(&self) -> bool {
        self.woken.load(Ordering::Relaxed)
    }

    pub(crate) fn take_woken(&self) -> bool {
        let woken = self.is_woken();
        self.woken.store(false, Ordering::Relaxed);
        woken
    }

    /// Whether anything outside its turn has ever tried to wake it.
    pub(crate) fn was_woken_by_others(&self) -> bool {
        self.foreign.load(Ordering::Relaxed)
    }

    fn address(&self) -> usize {
        std::ptr::from_ref(self).addr()
    }
}

impl Wake for Wakeup {
    fn wake(self: Arc<Self>) {
        Self::wake(&self);
    }

    fn wake_by_ref(self: &Arc<Self>) {
        Self::wake(self);
    }
}

/// While it lives, a turn runs on this thread.
pub(crate) struct Listening {
    before: usize,
    on_this_thread: PhantomData<*const ()>,
}

impl Drop for Listening {
    fn drop(&mut self) {
        RUNNING.set(self.before);
    }
}
