//! Where commits are announced (R8.134).
//!
//! A fixed number of bells; an instance rings the one its name leads to. Two instances may share a
//! bell: whoever waits then looks once too often, which is harmless.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::Notify;

/// The number of a bell, the same in all processes: it travels in notifications.
pub(crate) type Place = u16;

/// Enough that two instances somebody waits for seldom share one.
const BELLS: u16 = 4096;

/// Where commits are announced.
pub(crate) struct CommitBoard {
    bells: Box<[Bell]>,
    watchers: AtomicUsize,
}

#[derive(Default)]
struct Bell {
    /// How often it rang.
    rung: AtomicU64,
    notify: Notify,
}

impl Bell {
    fn ring(&self) {
        self.rung.fetch_add(1, Ordering::Release);
        self.notify.notify_waiters();
    }
}

impl CommitBoard {
    pub(crate) fn new() -> Self {
        let bells = (0..BELLS).map(|_| Bell::default()).collect();
        Self { bells, watchers: AtomicUsize::new(0) }
    }

    /// Something was committed to an instance whose bell this is.
    pub(crate) fn ring(&self, place: Place) {
        if let Some(bell) = self.bells.get(usize::from(place)) {
            bell.ring();
        }
    }

    /// Something was committed to nobody knows whom.
    pub(crate) fn ring_all(&self) {
        self.bells.iter().for_each(Bell::ring);
    }

    /// Whether anybody waits.
    pub(crate) fn is_watched(&self) -> bool {
        self.watchers.load(Ordering::Acquire) != 0
    }

    /// Waits until the bell of this instance has rung more often than `seen`, at most `timeout`; how
    /// often it has, plus one, so that 0 is "never looked".
    pub(crate) async fn wait(&self, instance: &str, seen: u64, timeout: Duration) -> u64 {
        let bell = self.bell(instance);
        let rung = || bell.rung.load(Ordering::Acquire) + 1;
        // Made before the look: a commit after the look finds it waiting.
        let notified = bell.notify.notified();
        if rung() == seen && !timeout.is_zero() {
            let _watcher = Watcher::new(&self.watchers);
            tokio::select! {
                () = notified => {}
                () = tokio::time::sleep(timeout) => {}
            }
        }
        rung()
    }

    fn bell(&self, instance: &str) -> &Bell {
        &self.bells[usize::from(place_of(instance))]
    }
}

/// The bell of an instance: FNV-1a, which every build computes alike.
pub(crate) fn place_of(instance: &str) -> Place {
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    let hash = instance.bytes().fold(0xcbf2_9ce4_8422_2325, step);
    (hash ^ (hash >> 32)) as u16 % BELLS
}

/// Somebody who waits, until dropped.
struct Watcher<'a>(&'a AtomicUsize);

impl<'a> Watcher<'a> {
    fn new(watchers: &'a AtomicUsize) -> Self {
        watchers.fetch_add(1, Ordering::AcqRel);
        Self(watchers)
    }
}

impl Drop for Watcher<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}
