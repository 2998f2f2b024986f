//! Who runs beside whom: what may have ended its process before runs alone.
//!
//! When a process dies, the store counts an attempt for all that the process had in hand, because it
//! cannot know what was running, let alone whose fault it was. The first half of its attempts an item
//! runs in company. After that it is a suspect: whatever else is in hand is finished or given back,
//! uncounted, before it begins, and nothing is fetched while it runs. Should the process die then, the
//! attempt counts for the suspect and nobody else; and an innocent one that has become a suspect in
//! bad company shows that it is innocent by running to its end.
//!
//! Nobody is held up for long by that. Turns that do not end are not waited for, by one suspect or
//! another, and a suspect that does not end is alone for a while only.

use std::future::Future;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::Poll;
use std::time::{Duration, Instant};

use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, watch};
use tokio::time::{sleep, timeout};

/// How long a suspect waits for the others to be done before it begins beside them.
const PATIENCE: Duration = Duration::from_secs(2);
/// How long nothing else has to be in hand before a suspect begins.
const QUIET: Duration = Duration::from_millis(20);
/// How long a suspect turn that does not end keeps others from beginning.
pub(crate) const WATCHED: Duration = Duration::from_secs(10);
/// After how long a suspect that could not run may be fetched again, and the same while a suspect
/// activity takes its time.
const SOON: Duration = Duration::from_millis(100);
const LATER: Duration = Duration::from_secs(1);

/// Whether an item has been tried so often that it may be the cause.
pub(crate) fn is_suspect(attempt: u32, max_attempts: u32) -> bool {
    1 < attempt && max_attempts / 2 < attempt && attempt <= max_attempts
}

/// What a node has in hand.
pub(crate) struct Company {
    in_hand: Mutex<Counted>,
    left: Notify,
    /// Whether somebody has to be alone.
    hush: watch::Sender<bool>,
    is_hushed: AtomicBool,
    /// Whether a suspect runs beside others.
    is_wary: AtomicBool,
    /// One suspect at a time.
    suspects: Arc<Semaphore>,
    /// The turn that is alone, and since when.
    watched: Mutex<Option<(Instant, Weak<Watched>)>>,
}

/// The right of a suspect that may be taken from it.
type Watched = Mutex<Option<Alone>>;

/// Turns, begun or not, and activities that have not begun.
#[derive(Default)]
struct Counted {
    count: usize,
    /// How often what was in hand did not end, and is not counted since.
    overlooked: u64,
}

impl Company {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self {
            in_hand: Mutex::default(),
            left: Notify::new(),
            hush: watch::Sender::new(false),
            is_hushed: AtomicBool::new(false),
            is_wary: AtomicBool::new(false),
            suspects: Arc::new(Semaphore::new(1)),
            watched: Mutex::default(),
        })
    }

    /// One more in hand, until dropped.
    pub(crate) fn join(self: &Arc<Self>) -> InHand {
        let mut counted = self.counted();
        counted.count += 1;
        InHand { company: Arc::clone(self), overlooked: counted.overlooked }
    }

    /// Whether what has not begun must be given back.
    pub(crate) fn is_hushed(&self) -> bool {
        self.is_hushed.load(Ordering::SeqCst)
    }

    /// Whether nothing should be fetched ahead of what can begin.
    pub(crate) fn is_wary(&self) -> bool {
        self.is_wary.load(Ordering::Relaxed)
    }

    /// After how long a suspect that could not run may be fetched again.
    pub(crate) fn retry_after(&self) -> Duration {
        if self.is_wary() { LATER } else { SOON }
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

    /// Lets a suspect, which is itself in hand, be alone: nothing else is in hand but turns that do
    /// not end, and nothing is fetched. `None` if there is another suspect.
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
                if self.counted().count <= 1 {
                    return;
                }
            }
        };
        if timeout(PATIENCE, quiet).await.is_err() {
            self.overlook();
            sleep(QUIET).await; // For what a fetch has brought just now.
        }
        Some(alone)
    }

    /// Counts nothing of what is in hand any more: it does not end, and the next suspect need not find
    /// that out again.
    fn overlook(&self) {
        let mut counted = self.counted();
        counted.count = 0;
        counted.overlooked += 1;
    }

    /// Lets others begin if a turn has been alone for too long. Its code may keep its thread for ever,
    /// and with it whatever task was to look after it, so this is for another thread.
    pub(crate) fn end_watched(&self, patience: Duration) {
        let mut watched = self.watched.lock().unwrap_or_else(PoisonError::into_inner);
        if watched.as_ref().is_none_or(|(since, _)| since.elapsed() < patience) {
            return;
        }
        let alone = watched.take().and_then(|(_, alone)| alone.upgrade());
        drop(watched);
        drop(alone.and_then(|alone| taken(&alone)));
    }

    async fn until_others_left(&self) {
        loop {
            let left = self.left.notified();
            let mut left = std::pin::pin!(left);
            // Enabled before the look: who leaves after it is heard.
            left.as_mut().enable();
            if self.counted().count <= 1 {
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

    fn counted(&self) -> MutexGuard<'_, Counted> {
        self.in_hand.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set_hushed(&self, is_hushed: bool) {
        self.is_hushed.store(is_hushed, Ordering::SeqCst);
        self.hush.send_replace(is_hushed);
    }
}

/// Something in hand.
pub(crate) struct InHand {
    company: Arc<Company>,
    overlooked: u64,
}

impl Drop for InHand {
    fn drop(&mut self) {
        let mut counted = self.company.counted();
        if self.overlooked == counted.overlooked {
            counted.count -= 1;
        }
        drop(counted);
        if self.company.is_hushed() {
            self.company.left.notify_waiters();
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

    /// Can be ended by [`Company::end_watched`]: for code that may never end.
    pub(crate) fn watched(self) -> AloneWatched {
        let company = Arc::clone(&self.company);
        let alone = Arc::new(Mutex::new(Some(self)));
        let watched = Some((Instant::now(), Arc::downgrade(&alone)));
        *company.watched.lock().unwrap_or_else(PoisonError::into_inner) = watched;
        AloneWatched(alone)
    }
}

/// The right of a suspect, until dropped or taken away.
pub(crate) struct AloneWatched(Arc<Watched>);

impl Drop for AloneWatched {
    fn drop(&mut self) {
        drop(taken(&self.0));
    }
}

fn taken(alone: &Watched) -> Option<Alone> {
    alone.lock().unwrap_or_else(PoisonError::into_inner).take()
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
    async fn r7_28_nobody_waits_twice_for_what_does_not_end() {
        let company = Company::new();
        let (own, endless) = (company.join(), company.join());
        let began = tokio::time::Instant::now();
        drop(company.alone().await.expect("the other one is not waited for"));
        assert_eq!(began.elapsed(), PATIENCE + QUIET);
        assert!(!company.is_hushed(), "the others go on");
        drop(own);
        let (next, other) = (company.join(), company.join());
        let waiting = tokio::spawn({
            let company = Arc::clone(&company);
            async move { company.alone().await }
        });
        company.hushed().await;
        drop(endless);
        sleep(QUIET * 2).await;
        assert!(!waiting.is_finished(), "the new one is waited for");
        drop(other);
        assert!(waiting.await.unwrap().is_some());
        assert_eq!(company.counted().count, 1);
        drop(next);
    }

    #[tokio::test(start_paused = true)]
    async fn r7_28_a_turn_is_alone_for_a_while() {
        let company = Company::new();
        let own = company.join();
        let alone = company.alone().await.expect("alone").watched();
        company.end_watched(Duration::from_secs(3600));
        assert!(company.is_hushed());
        company.end_watched(Duration::ZERO);
        assert!(!company.is_hushed());
        let next = company.alone().await.expect("the next suspect").watched();
        drop(alone);
        assert!(company.is_hushed(), "one that has lost its right takes it from nobody");
        drop(next);
        company.end_watched(Duration::ZERO);
        assert!(!company.is_hushed());
        drop(own);
    }
}
