//! Timers of instances that are kept, fired here when they are due (R1.67).
//!
//! The store is told to hold their messages back for a moment, so that nobody else fetches them at the
//! same time. What cannot be fired within that moment is fetched as if nobody had meant to.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use duroxide_core::replay::{Suspended, TurnOutcome};
use tokio::task::JoinSet;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::batch::Running;
use super::{Dispatcher, IN_FLIGHT_MAX, Subject};
use crate::runtime::catch_panic::catch_panic;
use crate::runtime::dispatchers::alarm::Alarm;
use crate::runtime::dispatchers::fetch::or_stop;
use crate::runtime::observability::targets;
use crate::runtime::warm::OwnTimers;

/// How long to sleep at most: no clock is trusted for longer.
const LONGEST_SLEEP: Duration = Duration::from_secs(60);
/// Pauses in the last millisecond, of which the clock does not tell how much is left.
const LAST_PAUSE: Duration = Duration::from_micros(250);

impl Dispatcher {
    /// The timers that a turn sets and that will be fired here, if its instance is kept.
    pub(super) fn own_timers(
        &self,
        subject: &Subject,
        outcome: &TurnOutcome,
        next: &Option<Suspended>,
    ) -> OwnTimers {
        let is_ours = self.fires_timers.load(Ordering::Relaxed)
            && next.as_ref().is_some_and(|next| self.node.warm.has_room(next.bytes()))
            && !self.is_delayed_for_tests(subject.instance());
        if is_ours { OwnTimers::set_by(&outcome.messages) } else { OwnTimers::default() }
    }

    /// Fires timers until told to stop; then what is in hand ends first.
    pub(super) async fn fire_timers(
        self: Arc<Self>,
        tracker: TaskTracker,
        stop: CancellationToken,
    ) {
        if !self.node.warm.is_on() || !self.node.store.commits_timer_turns() {
            return;
        }
        self.fires_timers.store(true, Ordering::Relaxed);
        let (mut in_flight, alarm) = (JoinSet::new(), Alarm::new());
        let mut number = 0;
        while let Some(running) = or_stop(&stop, self.right_to_fire(&mut in_flight, &alarm)).await {
            let Some((instance, mut kept)) = self.node.warm.take_due(self.node.now_ms()) else {
                continue;
            };
            let in_hand = self.node.company.join();
            let is_delayed = self.is_delayed_for_tests(&instance);
            // Who has to be alone may have said so just now (R7.28).
            if is_delayed || self.node.company.is_hushed() {
                if is_delayed {
                    kept.timers = OwnTimers::default();
                }
                self.node.warm.keep(&instance, kept);
                continue;
            }
            let worker_id = format!("orch-{}-{}", number % self.concurrency, self.node.runtime_id);
            number += 1;
            let dispatcher = Arc::clone(&self);
            in_flight.spawn(tracker.track_future(async move {
                let _in_hand = in_hand;
                let (now_ms, execution_id) =
                    (dispatcher.node.now_ms(), kept.suspended.execution_id());
                let timers = kept.timers.due(now_ms, &instance, execution_id);
                let fire = dispatcher.fire((&instance, &worker_id), kept, timers, running);
                // A panic in here would be a bug of ours; the timers come by way of the store.
                if let Err(panic) = catch_panic(Box::pin(fire)).await {
                    tracing::error!(target: targets::ORCHESTRATION_DISPATCHER, %instance, %panic,
                        "turn processing panicked; its timers will be fetched");
                }
            }));
        }
        self.fires_timers.store(false, Ordering::Relaxed);
        while in_flight.join_next().await.is_some() {}
    }

    /// Waits until a timer is due and a turn may run.
    async fn right_to_fire(&self, in_flight: &mut JoinSet<()>, alarm: &Alarm) -> Running {
        loop {
            while in_flight.try_join_next().is_some() {}
            if IN_FLIGHT_MAX <= in_flight.len() {
                in_flight.join_next().await;
                continue;
            }
            let now_ms = self.node.now_ms();
            match self.node.warm.first_due_at() {
                Some(due_at) if due_at <= now_ms => break,
                Some(due_at) => {
                    let pause = until(due_at - now_ms);
                    alarm.set(Instant::now() + pause);
                    tokio::select! {
                        () = alarm.rang() => {}
                        () = sleep(pause) => {} // Should there be no thread, or another time.
                        () = self.node.warm.sooner() => {}
                    }
                }
                None => self.node.warm.sooner().await,
            }
        }
        self.node.company.calm().await;
        loop {
            // Nobody closes the semaphore.
            if let Ok(permit) = Arc::clone(&self.running).acquire_owned().await {
                return Running { _permit: permit, since: Instant::now() };
            }
        }
    }
}

/// How long to sleep if so many milliseconds are left by a clock that shows whole ones.
fn until(left_ms: u64) -> Duration {
    let sure = Duration::from_millis(left_ms.saturating_sub(1));
    sure.clamp(LAST_PAUSE, LONGEST_SLEEP)
}
