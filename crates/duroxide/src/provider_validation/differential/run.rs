//! Runs a sequence on both stores, side by side.

use std::sync::Arc;
use std::time::Duration;

use super::answer::{Answer, is_same};
use super::call::call;
use super::clock::ManualClock;
use super::dice::{Dice, OWNERS};
use super::dump::dump;
use super::generate::{DIRECT_TURNS, TIMER_TURNS, menu, next_op};
use super::ops::Op;
use super::report::DifferentialReport;
use super::world::{HistoryEnd, LONGEST_STEP_MS, World};
use super::{Maker, ORPHAN_RETENTION};
use crate::clock::Clock;
use crate::providers::memory::{MemoryOptions, MemoryProvider};
use crate::providers::{Provider, ProviderAdmin, SessionFetchConfig, TagFilter};
use crate::random::Random;

/// More is not fetched at the end: a store that never runs dry has differed before.
const DRAIN_MAX: usize = 1000;

/// How thoroughly to look.
#[derive(Debug, Clone, Copy)]
pub(super) struct Looks {
    /// After how many operations everything is compared.
    pub(super) every: usize,
    /// Whether dead letters are, too.
    pub(super) dead_letters: bool,
}

/// What makes a sequence.
#[derive(Debug, Clone, Copy)]
pub(super) struct Steps<'s> {
    /// Says which kinds of operations there are.
    pub(super) seed: u64,
    /// Whether operations may be such as no runtime does.
    pub(super) strange: bool,
    /// Say which operations these are, one each.
    pub(super) dice: &'s [u64],
}

/// Where the stores differ.
#[derive(Debug)]
pub(super) struct Found {
    /// How many of the steps were taken.
    pub(super) steps: usize,
    pub(super) operations: Vec<String>,
    pub(super) question: String,
    pub(super) expected: String,
    pub(super) got: String,
    pub(super) store: String,
}

/// Runs one sequence: the steps, each by its own dice, and the end that brings out what is left.
pub(super) async fn run_sequence(
    maker: &impl Maker,
    steps: Steps<'_>,
    looks: Looks,
    report: &mut DifferentialReport,
) -> Result<(), Box<Found>> {
    let mut pair = Pair::new(maker, menu(&Dice::new(steps.seed)), looks, report).await;
    pair.world.strange = steps.strange;
    for (number, step) in (1..).zip(steps.dice) {
        pair.steps = number;
        pair.world.instances = pair.memory.list_instances().await.unwrap_or_default();
        pair.note_histories().await;
        let op = next_op(&Dice::new(*step), &pair.world);
        pair.perform(op).await?;
        if number % looks.every.max(1) == 0 {
            pair.look().await?;
        }
    }
    pair.look().await?;
    pair.drain().await?;
    pair.look().await
}

/// Both stores, and what was done to them.
struct Pair<'r, M> {
    maker: &'r M,
    memory: MemoryProvider,
    other: Arc<dyn Provider>,
    world: World,
    looks: Looks,
    report: &'r mut DifferentialReport,
    done: Vec<(Op, String)>,
    steps: usize,
}

impl<'r, M: Maker> Pair<'r, M> {
    async fn new(
        maker: &'r M,
        menu: Vec<usize>,
        looks: Looks,
        report: &'r mut DifferentialReport,
    ) -> Self {
        let clock = Arc::new(ManualClock::new());
        let memory = MemoryProvider::with_options(MemoryOptions {
            clock: Arc::clone(&clock) as Arc<dyn Clock>,
            random: Random::seeded(0),
            orphan_retention: ORPHAN_RETENTION,
        });
        let other = maker.make(Arc::clone(&clock) as Arc<dyn Clock>).await;
        let mut world = World::new(clock, menu);
        world.has_admin = other.as_management_capability().is_some();
        world.can_reopen = maker.can_reopen();
        world.takes_successors = other.commits_successors();
        world.takes_timers = other.commits_timer_turns();
        world.menu.retain(|choice| *choice != DIRECT_TURNS || other.commits_direct_turns());
        world.menu.retain(|choice| *choice != TIMER_TURNS || other.commits_timer_turns());
        report.sequences += 1;
        Self { maker, memory, other, world, looks, report, done: Vec::new(), steps: 0 }
    }

    /// Looks up what turns have to know that come with outcomes.
    async fn note_histories(&mut self) {
        self.world.histories.clear();
        for instance in self.world.at_work() {
            let history = self.memory.read(&instance).await.unwrap_or_default();
            if let Some(last) = history.last() {
                let (execution_id, event_id, at_ms) =
                    (last.execution_id, last.event_id, last.timestamp_ms);
                let end = HistoryEnd { execution_id, event_id, at_ms };
                self.world.histories.insert(instance, end);
            }
        }
    }

    /// Carries an operation out on both; whether something was there.
    async fn perform(&mut self, op: Op) -> Result<bool, Box<Found>> {
        match op {
            Op::Advance { ms } => self.world.clock.advance(ms),
            Op::OutlastRetention => {
                self.world.clock.advance(2 * ORPHAN_RETENTION.as_millis() as u64);
            }
            Op::Reopen => self.reopen().await,
            _ => {}
        }
        let (memory_token, other_token) = self.world.tokens(&op);
        let memory = call(&self.memory, &op, &memory_token).await;
        let other = call(self.other.as_ref(), &op, &other_token).await;
        self.count(&op, &memory);
        if !is_same(&op, &memory, &other) {
            return Err(self.found(format!("{op:?}"), memory.text(), other.text()));
        }
        self.world.learn(&op, &memory);
        if matches!(op, Op::Commit { .. } | Op::CommitDirect { .. } | Op::CommitTimers { .. }) {
            self.world.clock.advance(1); // no two instances begin at the same time
        }
        self.done.push((op, memory.text()));
        self.compare_clocks()?;
        self.note_locks(memory, other)
    }

    /// A store that tells its time goes by the clock it was given (R8.135).
    fn compare_clocks(&self) -> Result<(), Box<Found>> {
        let now = self.world.now();
        match self.other.store_time_ms() {
            Some(time) if time != now => {
                let got = Some(time);
                Err(self.found("store_time_ms", format!("{:?}", Some(now)), format!("{got:?}")))
            }
            _ => Ok(()),
        }
    }

    /// Remembers a lock that was handed out; tokens are fresh (R8.21, R8.72).
    fn note_locks(&mut self, memory: Answer, other: Answer) -> Result<bool, Box<Found>> {
        let (Some((memory_token, what)), Some((other_token, _))) = (memory.handed, other.handed)
        else {
            return Ok(false);
        };
        if self.world.knows_other_token(&other_token) {
            return Err(self.found("its lock token", "a fresh one", other_token));
        }
        self.world.add_lock(memory_token, other_token, what);
        Ok(true)
    }

    /// Compares everything that can be seen.
    async fn look(&mut self) -> Result<(), Box<Found>> {
        self.report.dumps += 1;
        let has_admin = self.world.has_admin;
        let is_written = |id: &str| self.world.written.contains(id);
        let other = dump(self.other.as_ref(), has_admin, is_written).await;
        let memory = dump(&self.memory, has_admin, is_written).await;
        let mut other = other.into_iter();
        for (question, expected) in memory {
            let got = other.next().map_or_else(String::new, |(_, got)| got);
            let counts = self.looks.dead_letters || question != "list_dead_letters";
            if got != expected && counts {
                return Err(self.found(question, expected, got));
            }
        }
        Ok(())
    }

    /// Brings out what is still queued: all that is hidden or locked for a short time comes, too.
    async fn drain(&mut self) -> Result<(), Box<Found>> {
        let lock = Duration::from_secs(30);
        self.perform(Op::Advance { ms: LONGEST_STEP_MS }).await?;
        for number in 0..DRAIN_MAX {
            let bare = number % 2 == 0;
            if !self.perform(Op::FetchTurn { lock, filter: None, bare }).await? {
                break;
            }
        }
        for owner in OWNERS {
            let config = SessionFetchConfig { owner_id: (*owner).to_owned(), lock_timeout: lock };
            for _ in 0..DRAIN_MAX {
                let (session, tags) = (Some(config.clone()), TagFilter::Any);
                if !self.perform(Op::FetchWork { lock, session, tags }).await? {
                    break;
                }
            }
            self.perform(Op::Advance { ms: LONGEST_STEP_MS }).await?;
        }
        Ok(())
    }

    /// Closes the other store and opens it again: nothing changes, except that locks and leases end
    /// with the store that gave them.
    async fn reopen(&mut self) {
        let closed = std::mem::replace(&mut self.other, Arc::new(MemoryProvider::new()));
        self.other = self.maker.reopen(closed, Arc::clone(&self.world.clock) as _).await;
        self.memory.expire_locks();
        self.world.forget_live_locks();
    }

    fn count(&mut self, op: &Op, memory: &Answer) {
        self.report.operations += 1;
        let count = self.report.calls.entry(op.name()).or_default();
        match &memory.said {
            Ok(said) if said == "nothing" => count.empty += 1,
            Ok(_) => count.answered += 1,
            Err(_) => count.refused += 1,
        }
    }

    fn found(
        &self,
        question: impl Into<String>,
        expected: impl Into<String>,
        got: impl Into<String>,
    ) -> Box<Found> {
        let operations = self.done.iter().map(|(op, answer)| format!("{op:?}\n      {answer}"));
        Box::new(Found {
            steps: self.steps,
            operations: operations.collect(),
            question: question.into(),
            expected: expected.into(),
            got: got.into(),
            store: self.other.name().to_owned(),
        })
    }
}
