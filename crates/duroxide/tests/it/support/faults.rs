//! What a store is told to fail at: any call, any number of times, before or after the deed.

use std::cmp::Ordering;
use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use duroxide::providers::{OrchestrationItem, ProviderError, TurnCommit, WorkItem};
use duroxide::random::Random;
use tokio::sync::Semaphore;

pub use super::faulty_provider::FaultyProvider;

/// What to do to a call.
#[derive(Clone, Debug)]
pub enum Fault {
    /// Fail without doing it.
    Before(ProviderError),
    /// Do it, then say that it failed.
    After(ProviderError),
    /// Never answer.
    Hang,
    /// Do it, then never answer.
    HangAfter,
    /// Panic.
    Panic,
    /// Do it after a while.
    Slow(Duration),
    /// Do it once the gate has a permit; the permit is used up.
    Gate(Arc<Semaphore>),
}

pub fn busy() -> Fault {
    Fault::Before(ProviderError::retryable("fault", "busy"))
}

pub fn broken() -> Fault {
    Fault::Before(ProviderError::permanent("fault", "broken"))
}

pub(super) type Twist = Arc<dyn Fn(&mut OrchestrationItem) + Send + Sync>;

#[derive(Default)]
pub(super) struct Plan {
    pub(super) blind: bool,
    pub(super) clock_hidden: bool,
    pub(super) successors: bool,
    pub(super) direct_turns: bool,
    pub(super) timer_turns: bool,
    pub(super) bare: bool,
    pub(super) twist: Option<Twist>,
    dropped_timers: Vec<WorkItem>,
    queued: HashMap<&'static str, Vec<Fault>>,
    standing: HashMap<&'static str, Fault>,
    outage: bool,
    /// The call, counted over all methods, at which everything stops, and how.
    crash: Option<(usize, Fault)>,
    all_calls: usize,
    chaos: Option<Chaos>,
    calls: HashMap<&'static str, usize>,
    fired: usize,
    planted: Option<Planted>,
}

/// Something in the worker queue that no store of ours would put there.
struct Planted {
    item: WorkItem,
    attempts: u32,
    is_locked: bool,
    /// What became of it: the delays it was given back with, `None` when it was removed.
    fate: Vec<Option<Duration>>,
}

/// Lock token of what is planted.
const PLANTED: &str = "planted";

/// The remote control of a [`FaultyProvider`].
#[derive(Clone, Default)]
pub struct Faults(pub(super) Arc<Mutex<Plan>>);

impl Faults {
    /// The next calls of a method meet these, in order.
    pub fn next(&self, method: &'static str, faults: impl IntoIterator<Item = Fault>) {
        self.0.lock().unwrap().queued.entry(method).or_default().extend(faults);
    }

    /// Every call of a method meets this until [`clear`](Self::clear).
    pub fn always(&self, method: &'static str, fault: Fault) {
        self.0.lock().unwrap().standing.insert(method, fault);
    }

    /// Every call of every method fails for a passing reason.
    pub fn outage(&self, on: bool) {
        self.0.lock().unwrap().outage = on;
    }

    /// Any call may fail, before or after its deed: so many of a thousand, and whether for good.
    pub fn chaos(&self, random: &Random, per_mille: u64, for_good: bool) {
        let random = random.clone();
        self.0.lock().unwrap().chaos = Some(Chaos { random, per_mille, for_good });
    }

    /// Fetches ignore the version filter, as those of an old store.
    pub fn blind(&self) {
        self.0.lock().unwrap().blind = true;
    }

    /// The store does not tell its time.
    pub fn hide_clock(&self) {
        self.0.lock().unwrap().clock_hidden = true;
    }

    /// Turns are taken together with their successors, as `commit_turn`.
    pub fn take_successors(&self) {
        self.0.lock().unwrap().successors = true;
    }

    /// Turns are taken together with the outcomes they have read, as `commit_direct_turn`.
    pub fn take_direct_turns(&self) {
        self.0.lock().unwrap().direct_turns = true;
    }

    /// Turns are taken together with the timers they have read, as `commit_timer_turn`.
    pub fn take_timer_turns(&self) {
        self.0.lock().unwrap().timer_turns = true;
    }

    /// Or not.
    pub fn take_no_timer_turns(&self) {
        self.0.lock().unwrap().timer_turns = false;
    }

    /// Fetches leave the history out; it is read by itself, as `read_history_from`.
    pub fn fetch_bare(&self) {
        self.0.lock().unwrap().bare = true;
    }

    /// Changes every fetched turn, as a strange store would.
    pub fn twist(&self, twist: impl Fn(&mut OrchestrationItem) + Send + Sync + 'static) {
        self.0.lock().unwrap().twist = Some(Arc::new(twist));
    }

    /// The call of this number, counted from 1 over all methods, ends so; later ones never answer.
    pub fn crash_at(&self, call: usize, end: Fault) {
        self.0.lock().unwrap().crash = Some((call, end));
    }

    /// Whether the call at which everything stops has come.
    pub fn crashed(&self) -> bool {
        let plan = self.0.lock().unwrap();
        plan.crash.as_ref().is_some_and(|(at, _)| *at <= plan.all_calls)
    }

    pub fn clear(&self) {
        let mut plan = self.0.lock().unwrap();
        plan.queued.clear();
        plan.standing.clear();
        plan.outage = false;
        plan.chaos = None;
    }

    /// Calls of a method so far.
    pub fn calls(&self, method: &'static str) -> usize {
        self.0.lock().unwrap().calls.get(method).copied().unwrap_or(0)
    }

    /// Faults that were met.
    pub fn fired(&self) -> usize {
        self.0.lock().unwrap().fired
    }

    /// Puts something into the worker queue; there until it is removed.
    pub fn plant(&self, item: WorkItem) {
        let planted = Planted { item, attempts: 0, is_locked: false, fate: Vec::new() };
        self.0.lock().unwrap().planted = Some(planted);
    }

    /// What became of what was planted: each delay it was given back with, `None` for its removal.
    pub fn fate(&self) -> Vec<Option<Duration>> {
        self.0.lock().unwrap().planted.as_ref().map(|p| p.fate.clone()).unwrap_or_default()
    }

    /// Timers that commits have said nothing waits for any more, in the order in which they came.
    pub fn dropped_timers(&self) -> Vec<WorkItem> {
        self.0.lock().unwrap().dropped_timers.clone()
    }

    pub(super) fn note_dropped_timers(&self, commit: &TurnCommit) {
        for turn in commit.turns().unwrap() {
            self.0.lock().unwrap().dropped_timers.extend(turn.dropped_timers.iter().cloned());
        }
    }

    pub(super) fn fetch_planted(&self) -> Option<(WorkItem, String, u32)> {
        let mut plan = self.0.lock().unwrap();
        let planted = plan.planted.as_mut().filter(|planted| !planted.is_locked)?;
        planted.is_locked = true;
        planted.attempts += 1;
        Some((planted.item.clone(), PLANTED.to_owned(), planted.attempts))
    }

    pub(super) fn end_planted(&self, token: &str, delay: Option<Duration>) -> Option<()> {
        let mut plan = self.0.lock().unwrap();
        let planted = plan.planted.as_mut().filter(|_| token == PLANTED)?;
        planted.fate.push(delay);
        planted.is_locked = delay.is_none();
        Some(())
    }

    pub(super) fn meet(&self, method: &'static str) -> Option<Fault> {
        let mut plan = self.0.lock().unwrap();
        *plan.calls.entry(method).or_default() += 1;
        plan.all_calls += 1;
        let crash = plan.crash.as_ref().and_then(|(at, end)| match plan.all_calls.cmp(at) {
            Ordering::Less => None,
            Ordering::Equal => Some(end.clone()),
            Ordering::Greater => Some(Fault::Hang),
        });
        if crash.is_some() {
            return crash;
        }
        let queued = plan.queued.get_mut(method).filter(|faults| !faults.is_empty());
        let queued = queued.map(|faults| faults.remove(0));
        let outage = plan.outage.then(busy);
        let fault = queued.or(outage).or_else(|| plan.standing.get(method).cloned());
        let fault = fault.or_else(|| plan.chaos.as_ref().and_then(Chaos::fault));
        plan.fired += usize::from(fault.is_some());
        fault
    }
}

struct Chaos {
    random: Random,
    per_mille: u64,
    for_good: bool,
}

impl Chaos {
    fn fault(&self) -> Option<Fault> {
        let draw = self.random.next_u64();
        let hit = draw % 1_000 < self.per_mille;
        hit.then(|| match draw >> 32 & 3 {
            0 => busy(),
            1 if self.for_good => broken(),
            // Longer than the lock of a turn, at times.
            1 | 2 => Fault::Slow(Duration::from_millis(draw >> 40 & 0x1fff)),
            _ => Fault::After(ProviderError::retryable("fault", "answer lost")),
        })
    }
}
