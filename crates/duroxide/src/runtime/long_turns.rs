//! Turns that run for long without an await: found while they run, since they may never end.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use duroxide_core::context::place::{Place, watched};

use super::observability::targets;

/// A turn that runs for longer is reported, and again whenever the time has doubled.
const LONG: Duration = Duration::from_secs(1);

/// The turns that run now.
#[derive(Default)]
pub(crate) struct RunningTurns(Mutex<Running>);

/// Places for as many turns as have run at once. They are used again, with the room they have for
/// names: this is done for every turn.
#[derive(Default)]
struct Running {
    turns: Vec<Turn>,
    free: Vec<usize>,
}

#[derive(Default)]
struct Turn {
    instance: String,
    orchestration: String,
    place: Arc<Place>,
    /// `None` while no turn has this place.
    since: Option<Instant>,
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
        let (index, place) = self.running().begin(instance, orchestration);
        let _entry = Entry { turns: self, index };
        watched(place, code)
    }

    /// Says which turns have been running for long.
    pub(crate) fn report_long(&self) {
        for turn in &mut self.running().turns {
            let Some(took) = turn.since.map(|since| since.elapsed()) else { continue };
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

impl Running {
    fn begin(&mut self, instance: &str, orchestration: &str) -> (usize, Arc<Place>) {
        let index = self.free.pop().unwrap_or_else(|| {
            self.turns.push(Turn::default());
            self.turns.len() - 1
        });
        let turn = &mut self.turns[index];
        instance.clone_into(&mut turn.instance);
        orchestration.clone_into(&mut turn.orchestration);
        (turn.since, turn.reports) = (Some(Instant::now()), 0);
        (index, Arc::clone(&turn.place))
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
    index: usize,
}

impl Drop for Entry<'_> {
    fn drop(&mut self) {
        let mut running = self.turns.running();
        running.turns[self.index].since = None;
        running.free.push(self.index);
    }
}
