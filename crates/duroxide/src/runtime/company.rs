//! Who runs beside whom: what may have ended its process before runs alone.
//!
//! When a process dies, the store counts an attempt for all that the process had in hand, because it
//! cannot know what was running, let alone whose fault it was. The first half of its attempts an item
//! runs in company. After that it is a suspect: whatever else is in hand is finished or given back,
//! uncounted, before it begins, and nothing is fetched while it runs. Should the process die then, the
//! attempt counts for the suspect and nobody else; and an innocent one that has become a suspect in
//! bad company shows that it is innocent by running to its end.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::Poll;
use std::time::Duration;

use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, watch};
use tokio::time::{sleep, timeout};

/// How long a suspect waits for the others to be done before it is given back itself.
const PATIENCE: Duration = Duration::from_secs(2);
/// How long nothing else has to be in hand before a suspect begins.
const QUIET: Duration = Duration::from_millis(20);
/// After how long a suspect that could not run may be fetched again.
pub(crate) const LATER: Duration = Duration::from_millis(100);

/// Whether an item has been tried so often that it may be the cause.
pub(crate) fn is_suspect(attempt: u32, max_attempts: u32) -> bool {
    1 < attempt && max_attempts / 2 < attempt && attempt <= max_attempts
}

/// What a node has in hand.
pub(crate) struct Company {
    /// Turns, begun or not, and activities that have not begun.
    in_hand: AtomicUsize,
    left: Notify,
    /// Whether somebody has to be alone.
    hush: watch::Sender<bool>,
    is_hushed: AtomicBool,
    /// Whether a suspect runs beside others.
    is_wary: AtomicBool,
    /// One suspect at a time.
    suspects: Arc<Semaphore>,
}

impl Company {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self {
            in_hand: AtomicUsize::new(0),
            left: Notify::new(),
            hush: watch::Sender::new(false),
            is_hushed: AtomicBool::new(false),
            is_wary: AtomicBool::new(false),
            suspects: Arc::new(Semaphore::new(1)),
        })
    }

    /// One more in hand, until dropped.
    pub(crate) fn join(self: &Arc<Self>) -> InHand {
        self.in_hand.fetch_add(1, Ordering::SeqCst);
        InHand(Arc::clone(self))
    }

    /// Whether what has not begun must be given back.
    pub(crate) fn is_hushed(&self) -> bool {
        self.is_hushed.load(Ordering::SeqCst)
    }

    /// Whether nothing should be fetched ahead of what can begin.
    pub(crate) fn is_wary(&self) -> bool {
        self.is_wary.load(Ordering::Relaxed)
    }

    /// Waits until nobody has to be alone.
    pub(crate) async fn calm(&self) {
        self.wait_for(false).await;
    }

    /// Does something unless somebody has to be alone; then it is dropped.
    pub(crate) async fn unless_hushed<F: Future>(&self, future: F) -> Option<F::Output> {
        let mut future = std::pin::pin!(future);
        // What is ready at once need not listen.
        let first = std::future::poll_fn(|cx| Poll::Ready(future.as_mut().poll(cx)));
        if !self.is_hushed()
            && let Poll::Ready(output) = first.await
        {
            return Some(output);
        }
        tokio::select! {
            biased;
            () = self.wait_for(true) => None,
            output = &mut future => Some(output),
        }
    }

    /// Waits until somebody has to be alone.
    pub(crate) async fn hushed(&self) {
        self.wait_for(true).await;
    }

    /// Lets a suspect, which is itself in hand, be alone: nothing else is in hand, and nothing is
    /// fetched. `None` if there is another suspect, or the others are not done in time.
    pub(crate) async fn alone(self: &Arc<Self>) -> Option<Alone> {
        let permit = Arc::clone(&self.suspects).try_acquire_owned().ok()?;
        let alone = Alone { company: Arc::clone(self), _permit: permit };
        self.set_hushed(true);
        let quiet = async {
            // A fetch under way is not dropped, since its locks would last; it may bring once more
            // what was just given back.
            loop {
                self.until_others_left().await;
                sleep(QUIET).await;
                if self.in_hand.load(Ordering::SeqCst) <= 1 {
                    return;
                }
            }
        };
        timeout(PATIENCE, quiet).await.ok()?;
        Some(alone)
    }

    async fn until_others_left(&self) {
        loop {
            let left = self.left.notified();
            let mut left = std::pin::pin!(left);
            // Enabled before the look: who leaves after it is heard.
            left.as_mut().enable();
            if self.in_hand.load(Ordering::SeqCst) <= 1 {
                return;
            }
            left.await;
        }
    }

    async fn wait_for(&self, wanted: bool) {
        if self.is_hushed() == wanted {
            return;
        }
        // It fails only if the sender is gone, which is in here.
        drop(self.hush.subscribe().wait_for(|hushed| *hushed == wanted).await);
    }

    fn set_hushed(&self, is_hushed: bool) {
        self.is_hushed.store(is_hushed, Ordering::SeqCst);
        self.hush.send_replace(is_hushed);
    }
}

/// Something in hand.
pub(crate) struct InHand(Arc<Company>);

impl Drop for InHand {
    fn drop(&mut self) {
        self.0.in_hand.fetch_sub(1, Ordering::SeqCst);
        if self.0.is_hushed() {
            self.0.left.notify_waiters();
        }
    }
}

/// The right of a suspect, until dropped.
pub(crate) struct Alone {
    company: Arc<Company>,
    _permit: OwnedSemaphorePermit,
}

impl Alone {
    /// Lets others begin again, but no other suspect, and nothing waits in hand. For what may take
    /// long.
    pub(crate) fn beside_others(self) -> Self {
        self.company.is_wary.store(true, Ordering::Relaxed);
        self.company.set_hushed(false);
        self
    }
}

impl Drop for Alone {
    fn drop(&mut self) {
        self.company.is_wary.store(false, Ordering::Relaxed);
        self.company.set_hushed(false);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn r7_28_the_second_half_of_the_attempts_is_suspect() {
        let suspects = |max| (0..=12).filter(|n| is_suspect(*n, max)).collect::<Vec<_>>();
        assert_eq!(suspects(10), [6, 7, 8, 9, 10]);
        assert_eq!(suspects(3), [2, 3]);
        assert_eq!(suspects(2), [2]);
        assert_eq!(suspects(1), [0; 0]);
        assert_eq!(suspects(0), [0; 0]);
    }

    #[tokio::test(start_paused = true)]
    async fn r7_28_a_suspect_waits_until_it_is_alone() {
        let company = Company::new();
        let (own, other) = (company.join(), company.join());
        let waiting = tokio::spawn({
            let company = Arc::clone(&company);
            async move { company.alone().await }
        });
        company.hushed().await;
        assert!(company.unless_hushed(std::future::pending::<()>()).await.is_none());
        assert!(!waiting.is_finished());
        drop(other);
        let alone = waiting.await.unwrap().expect("alone");
        assert!(company.alone().await.is_none(), "one suspect at a time");
        assert!(company.is_hushed(), "a second one that gave up has changed nothing");
        let beside = alone.beside_others();
        company.calm().await;
        assert!(company.is_wary() && company.alone().await.is_none());
        drop(beside);
        assert!(!company.is_wary() && company.alone().await.is_some());
        drop(own);
    }

    #[tokio::test(start_paused = true)]
    async fn r7_28_a_suspect_does_not_wait_for_ever() {
        let company = Company::new();
        let (_own, _busy) = (company.join(), company.join());
        assert!(company.alone().await.is_none());
        assert!(!company.is_hushed(), "the others go on");
    }
}
