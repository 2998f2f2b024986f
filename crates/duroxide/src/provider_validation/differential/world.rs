//! What has happened in a sequence so far, as far as the choice of the next operation needs it.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use duroxide_core::model::WorkItem;

use super::answer::{Answer, Handed, TurnFacts};
use super::clock::ManualClock;
use super::ops::{Op, Token};
use crate::clock::Clock;
use crate::providers::{ScheduledActivityIdentifier, TurnCommit};

/// Longer steps of the clock are not taken, so that it is known when messages for nobody are given
/// up.
pub(super) const LONGEST_STEP_MS: u64 = 60_000;
/// How much time may pass in such steps before everything that waits for nobody is given up.
const STEPS_MAX_MS: u64 = 45 * 60_000;

/// How many timers to choose from.
const HELD_MAX: usize = 16;

/// What is known of both stores.
#[derive(Debug)]
pub(super) struct World {
    pub(super) clock: Arc<ManualClock>,
    /// The kinds of operations that this sequence consists of.
    pub(super) menu: Vec<usize>,
    /// Whether operations may be such as no runtime does.
    pub(super) strange: bool,
    /// Whether the other store has a management side.
    pub(super) has_admin: bool,
    /// Whether the other store can be opened again.
    pub(super) can_reopen: bool,
    /// Whether the other store commits turns together with their successors.
    pub(super) takes_successors: bool,
    /// Whether the other store commits turns together with timers.
    pub(super) takes_timers: bool,
    /// Timers that were to be held back, the newest last.
    timers: Vec<WorkItem>,
    /// Where the histories of instances end whose activities are in hand, or whose timers are held back.
    pub(super) histories: HashMap<String, HistoryEnd>,
    /// Every lock that was handed out.
    pub(super) locks: Vec<Lock>,
    /// Instances that exist.
    pub(super) instances: Vec<String>,
    /// Instances that have, or had, something stored about them: by themselves or by children.
    pub(super) written: BTreeSet<String>,
    /// Every activity that was queued.
    pub(super) activities: Vec<ScheduledActivityIdentifier>,
    /// Times at which something was stored or used.
    pub(super) moments: Vec<u64>,
    /// Times at which an execution ended.
    pub(super) ends: Vec<u64>,
    /// Times at which something changes by itself.
    deadlines: Vec<u64>,
    /// When the lock ends that the latest operation took.
    locked_until: u64,
    stepped_ms: u64,
}

/// Where a history ends.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct HistoryEnd {
    pub(super) execution_id: u64,
    pub(super) event_id: u64,
    pub(super) at_ms: u64,
}

/// A lock as both stores know it.
#[derive(Debug)]
pub(super) struct Lock {
    pub(super) memory_token: String,
    pub(super) other_token: String,
    pub(super) what: Handed,
    /// Until when it holds, unless it is used up or given back before.
    pub(super) until: u64,
}

impl World {
    /// Nothing has happened.
    pub(super) fn new(clock: Arc<ManualClock>, menu: Vec<usize>) -> Self {
        Self {
            clock,
            menu,
            strange: true,
            has_admin: true,
            can_reopen: false,
            takes_successors: false,
            takes_timers: false,
            timers: Vec::new(),
            histories: HashMap::new(),
            locks: Vec::new(),
            instances: Vec::new(),
            written: BTreeSet::new(),
            activities: Vec::new(),
            moments: Vec::new(),
            ends: Vec::new(),
            deadlines: Vec::new(),
            locked_until: 0,
            stepped_ms: 0,
        }
    }

    pub(super) fn now(&self) -> u64 {
        self.clock.now_ms()
    }

    /// Times after now at which something changes by itself.
    pub(super) fn next_deadlines(&self) -> Vec<u64> {
        let soon = self.now() + 1..=self.now() + LONGEST_STEP_MS;
        self.deadlines.iter().copied().filter(|at| soon.contains(at)).collect()
    }

    /// Whether a step of the clock may be taken.
    pub(super) fn may_step(&self) -> bool {
        self.stepped_ms < STEPS_MAX_MS
    }

    /// The latest timers that were to be held back.
    pub(super) fn held_timers(&self) -> &[WorkItem] {
        self.timers.get(self.timers.len().saturating_sub(HELD_MAX)..).unwrap_or_default()
    }

    /// Locks of this kind, newest first.
    pub(super) fn locks_on(&self, turns: bool) -> impl Iterator<Item = (Token, &Lock)> {
        let all = self.locks.iter().enumerate().rev();
        let such = all.filter(move |(_, lock)| matches!(lock.what, Handed::Turn(_)) == turns);
        such.map(|(number, lock)| (Token::Handed(number), lock))
    }

    /// Locks of this kind that hold, newest first.
    pub(super) fn live_locks_on(&self, turns: bool) -> Vec<Token> {
        let live = self.locks_on(turns).filter(|(_, lock)| self.now() < lock.until);
        live.map(|(token, _)| token).collect()
    }

    /// The turn that this token locks, or locked once.
    pub(super) fn turn(&self, token: Token) -> Option<&TurnFacts> {
        match &self.lock(token)?.what {
            Handed::Turn(facts) => Some(facts),
            Handed::Work(_) => None,
        }
    }

    /// The activity that this token locks, or locked once.
    pub(super) fn work(&self, token: Token) -> Option<&WorkItem> {
        match &self.lock(token)?.what {
            Handed::Work(item) => Some(item),
            Handed::Turn(_) => None,
        }
    }

    /// The instances whose activities are in hand, or whose timers are held back.
    pub(super) fn at_work(&self) -> BTreeSet<String> {
        let work = self.live_locks_on(false).into_iter().filter_map(|token| self.work(token));
        let instance = |item: &WorkItem| match item {
            WorkItem::ActivityExecute { instance, .. } => Some(instance.clone()),
            _ => None,
        };
        let asleep = self.held_timers().iter().filter_map(|timer| timer.orchestration_key());
        work.filter_map(instance).chain(asleep.map(str::to_owned)).collect()
    }

    /// Locks of this kind that ran out without having been used, newest first.
    pub(super) fn expired_locks_on(&self, turns: bool) -> Vec<Token> {
        let such = self.locks_on(turns);
        let expired = such.filter(|(_, lock)| 0 < lock.until && lock.until <= self.now());
        expired.map(|(token, _)| token).collect()
    }

    /// Notes a lock that both stores handed out.
    pub(super) fn add_lock(&mut self, memory_token: String, other_token: String, what: Handed) {
        let until = self.locked_until;
        self.locks.push(Lock { memory_token, other_token, what, until });
    }

    /// All locks have ended at once.
    pub(super) fn forget_live_locks(&mut self) {
        let now = self.now();
        self.locks.iter_mut().for_each(|lock| lock.until = lock.until.min(now));
    }

    /// Whether the other store has handed out this token before.
    pub(super) fn knows_other_token(&self, token: &str) -> bool {
        self.locks.iter().any(|lock| lock.other_token == token)
    }

    /// The tokens an operation uses: of the memory provider, of the other store.
    pub(super) fn tokens(&self, op: &Op) -> (String, String) {
        match (op.token(), op.token().and_then(|token| self.lock(token))) {
            (_, Some(lock)) => (lock.memory_token.clone(), lock.other_token.clone()),
            (Some(Token::MadeUp(text)), _) => (text.to_owned(), text.to_owned()),
            _ => Default::default(),
        }
    }

    /// Notes what follows from an operation and the answer to it.
    pub(super) fn learn(&mut self, op: &Op, answer: &Answer) {
        match op {
            Op::Advance { ms } => self.stepped_ms += ms,
            Op::OutlastRetention => self.stepped_ms = 0,
            _ => {}
        }
        let ends_at = op.takes().map(|time| {
            let ms = u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
            self.now().saturating_add(ms)
        });
        self.deadlines.extend(ends_at);
        self.locked_until = ends_at.unwrap_or_else(|| self.now());
        if answer.said.is_err() {
            return;
        }
        let is_use = matches!(
            op,
            Op::AckWork { .. }
                | Op::RenewWork { .. }
                | Op::Commit { .. }
                | Op::CommitDirect { .. }
                | Op::CommitTimers { .. }
        );
        if is_use || answer.handed.is_some() {
            self.moments.push(self.now());
        }
        match op {
            Op::Commit { token, commit, bundled } => {
                let instance = self.turn(*token).map(|turn| turn.instance.clone());
                self.written.extend(instance);
                self.hold_until(*token, 0);
                let known = self.timers.len();
                self.note_turns(commit);
                if !bundled {
                    self.timers.truncate(known); // Nothing is held back then.
                }
            }
            Op::CommitDirect { token, turn } => {
                self.hold_until(*token, 0);
                self.note_turns(&turn.commit);
            }
            Op::CommitTimers { turn } => {
                self.timers.retain(|timer| !turn.timers.contains(timer));
                self.note_turns(&turn.commit);
            }
            Op::AbandonTurn { token, .. }
            | Op::AbandonWork { token, .. }
            | Op::AckWork { token, .. } => self.hold_until(*token, 0),
            Op::RenewTurn { token, .. } | Op::RenewWork { token, .. } => {
                self.hold_until(*token, self.locked_until);
            }
            Op::QueueWork { item } => self.note_activity(item),
            Op::Append { instance, .. } => {
                self.written.insert(instance.clone());
            }
            _ => {}
        }
    }

    fn lock(&self, token: Token) -> Option<&Lock> {
        match token {
            Token::Handed(number) => self.locks.get(number),
            Token::MadeUp(_) => None,
        }
    }

    fn hold_until(&mut self, token: Token, until: u64) {
        if let Token::Handed(number) = token
            && let Some(lock) = self.locks.get_mut(number)
        {
            lock.until = until;
        }
    }

    fn note_turns(&mut self, first: &TurnCommit) {
        for turn in std::iter::successors(Some(first), |turn| turn.successor.as_deref()) {
            self.note_turn(turn);
        }
    }

    fn note_turn(&mut self, turn: &TurnCommit) {
        self.ends.extend(turn.metadata.status.is_some().then(|| self.now()));
        self.written.extend(turn.metadata.parent_instance_id.clone());
        turn.worker_items.iter().for_each(|item| self.note_activity(item));
        for item in &turn.orchestrator_items {
            if let WorkItem::TimerFired { fire_at_ms, .. } = item {
                self.deadlines.extend([Some(*fire_at_ms), turn.due_at(item)].into_iter().flatten());
                self.timers.extend((0 < turn.timer_grace_ms).then(|| item.clone()));
            }
        }
    }

    fn note_activity(&mut self, item: &WorkItem) {
        if let WorkItem::ActivityExecute { instance, execution_id, id, .. } = item {
            self.activities.push(ScheduledActivityIdentifier {
                instance: instance.clone(),
                execution_id: *execution_id,
                activity_id: *id,
            });
        }
    }
}
