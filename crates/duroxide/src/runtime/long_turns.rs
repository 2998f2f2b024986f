//! Turns that run for long without an await: found while they run, since they may never end.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use duroxide_core::context::place::{Place, watched};

use super::observability::targets;

/// A turn that runs for longer is reported, and again whenever the time has doubled.
const LONG: Duration = Duration::from_secs(1);

/// The turns that run now.
#[derive(Default)]
pub(crate) struct RunningTurns(Mutex<Running>);

#[derive(Default)]
struct Running {
    next_id: u64,
    turns: HashMap<u64, Turn>,
}

struct Turn {
    instance: String,
    orchestration: String,
    place: Arc<Place>,
    since: Instant,
    /// How often it has been reported.
    reports: u32,
}

impl RunningTurns {
    /// Runs a turn, known to those who look on.
    pub(crate) fn run<T>(
        &self,
        instance: &str,
        orchestration: &str,
        code: impl FnOnce() -> T,
    ) -> T {
        let place = Arc::new(Place::default());
        let turn = Turn {
            instance: instance.to_owned(),
            orchestration: orchestration.to_owned(),
            place: Arc::clone(&place),
            since: Instant::now(),
            reports: 0,
        };
        let mut running = self.running();
        let id = running.next_id;
        running.next_id += 1;
        running.turns.insert(id, turn);
        drop(running);
        let _entry = Entry { turns: self, id };
        watched(place, code)
    }

    /// Says which turns have been running for long.
    pub(crate) fn report_long(&self) {
        for turn in self.running().turns.values_mut() {
            let took = turn.since.elapsed();
            if LONG.saturating_mul(1 << turn.reports.min(20)) <= took {
                turn.reports += 1;
                turn.report(took);
            }
        }
    }

    fn running(&self) -> MutexGuard<'_, Running> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Turn {
    fn report(&self, took: Duration) {
        let place = match self.place.last() {
            Some(location) => format!("{}:{}", location.file(), location.line()),
            None => "none in this turn".to_owned(),
        };
        let (instance, orchestration) = (&self.instance, &self.orchestration);
        tracing::warn!(
            target: targets::ORCHESTRATION_DISPATCHER,
            instance_id = %instance, orchestration_name = %orchestration, %place,
            took_ms = u64::try_from(took.as_millis()).unwrap_or(u64::MAX),
            "orchestration {orchestration} (instance {instance}) has been running for {:.1} s \
             without an await, and keeps a thread from all other work; its last scheduling call: \
             {place}. Long computations and blocking calls belong into activities",
            took.as_secs_f64()
        );
    }
}

/// A turn's place among those that run.
struct Entry<'a> {
    turns: &'a RunningTurns,
    id: u64,
}

impl Drop for Entry<'_> {
    fn drop(&mut self) {
        self.turns.running().turns.remove(&self.id);
    }
}
