//! A thread of its own that keeps leases when nobody else does.
//!
//! Leases are renewed by tasks on the caller's tokio runtime, by its clock. These are late if that
//! runtime is: code that computes for seconds keeps a worker thread, and with it whatever was about to
//! run there, and a runtime of one thread stands still. What nobody has attended to is done by this
//! thread then. It also finds the code that is to blame.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::runtime::{Builder, Handle, Runtime};
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tokio_util::task::task_tracker::TrackedFuture;

use super::company::{Company, WATCHED};
use super::long_turns::RunningTurns;
use super::observability::targets;
use crate::providers::Provider;

/// How often to look, at most and at least.
const LOOK_MAX: Duration = Duration::from_millis(500);
const LOOK_MIN: Duration = Duration::from_millis(5);

/// Something that has to be done in time. It does not hold the store.
pub(crate) trait Upkeep: Send + Sync {
    /// How late it may be done.
    fn slack(&self) -> Duration;

    /// Since when the most urgent of it has been due, if it is.
    fn overdue(&self, now: Instant) -> Option<Instant>;

    /// Does whatever is due.
    fn take_over(self: Arc<Self>, store: Arc<dyn Provider>, now: Instant) -> Vec<Deed>;
}

/// A renewal, for one.
pub(crate) type Deed = Pin<Box<dyn Future<Output = ()> + Send>>;

/// What the thread looks after.
pub(crate) struct Watch {
    pub(crate) upkeep: Vec<Arc<dyn Upkeep>>,
    pub(crate) turns: Arc<RunningTurns>,
    pub(crate) company: Arc<Company>,
    /// Weak, so that nobody has to wait for the thread.
    pub(crate) store: Weak<dyn Provider>,
    /// Knows of everything that does hold the store.
    pub(crate) tracker: TaskTracker,
    pub(crate) ended: CancellationToken,
}

/// Starts the thread, which ends soon after it is told to. Called on the tokio runtime whose tasks
/// are watched.
pub(crate) fn start(watch: Watch) {
    let (watched, log) = (Handle::current(), tracing::dispatcher::get_default(Clone::clone));
    let started = Builder::new_current_thread().enable_all().build().and_then(|own| {
        let look_after =
            move || tracing::dispatcher::with_default(&log, || watch.until_ended(&own, &watched));
        std::thread::Builder::new().name("duroxide-leases".to_owned()).spawn(look_after)
    });
    if let Err(error) = started {
        tracing::warn!(target: targets::RUNTIME, %error,
            "no thread to keep leases while tasks are late; code that blocks may lose its lock");
    }
}

impl Watch {
    fn until_ended(self, own: &Runtime, watched: &Handle) {
        let quarter = |upkeep: &Arc<dyn Upkeep>| upkeep.slack() / 4;
        let period = self.upkeep.iter().map(quarter).fold(LOOK_MAX, Duration::min).max(LOOK_MIN);
        own.block_on(async {
            let mut looks = interval(period);
            looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
            let (mut seen, mut begun) = (vec![None; self.upkeep.len()], JoinSet::new());
            let mut last_look = Time::of(watched);
            loop {
                tokio::select! {
                    biased;
                    () = self.ended.cancelled() => return,
                    Some(_) = begun.join_next() => {}
                    _ = looks.tick() => {
                        self.turns.report_long();
                        self.company.end_watched(WATCHED);
                        let now = Time::of(watched);
                        if now.goes_on_since(&last_look, period / 2) {
                            self.look(now.watched, &mut seen, |deed| {
                                begun.spawn(InContext { deed, of: watched.clone() });
                            });
                        } else {
                            seen.fill(None);
                        }
                        last_look = now;
                    }
                }
            }
        });
    }

    /// Takes over what was due at the last look already, and was not attended to since.
    fn look(&self, now: Instant, seen: &mut [Option<Instant>], mut begin: impl FnMut(Counted)) {
        for (upkeep, seen) in self.upkeep.iter().zip(seen) {
            let overdue = upkeep.overdue(now);
            if overdue.is_some() && overdue == *seen {
                self.take_over(upkeep, now, &mut begin);
            }
            *seen = overdue;
        }
    }

    fn take_over(&self, upkeep: &Arc<dyn Upkeep>, now: Instant, begin: &mut impl FnMut(Counted)) {
        // In this order, so that a shutdown either waits for this or is seen here.
        let _counted = self.tracker.token();
        if self.ended.is_cancelled() {
            return;
        }
        let Some(store) = self.store.upgrade() else { return };
        for deed in Arc::clone(upkeep).take_over(store, now) {
            begin(self.tracker.track_future(deed));
        }
    }
}

/// A deed that a shutdown waits for.
type Counted = TrackedFuture<Deed>;

/// A deed done here as if it were done on another tokio runtime: by its clock, and what it begins,
/// begins there. Stores may keep connections there.
struct InContext {
    deed: Counted,
    of: Handle,
}

impl Future for InContext {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = &mut *self;
        let _context = this.of.enter();
        Pin::new(&mut this.deed).poll(cx)
    }
}

/// A moment, by the clock of the watched runtime and by the real one.
struct Time {
    watched: Instant,
    real: std::time::Instant,
}

impl Time {
    fn of(watched: &Handle) -> Self {
        let _clock = watched.enter();
        Self { watched: Instant::now(), real: std::time::Instant::now() }
    }

    /// Whether both clocks have gone on alike. The watched one does not if it is paused, as in tests:
    /// nothing is late then.
    fn goes_on_since(&self, before: &Self, tolerance: Duration) -> bool {
        let watched = self.watched.saturating_duration_since(before.watched);
        let real = self.real.saturating_duration_since(before.real);
        watched.abs_diff(real) <= tolerance
    }
}
