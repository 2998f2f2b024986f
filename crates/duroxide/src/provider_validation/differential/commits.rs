//! Commits: most of them such as the runtime makes, some of them wrong.

use duroxide_core::model::{AppErrorKind, ErrorDetails, Event, EventKind, WorkItem};
use semver::Version;

use super::answer::TurnFacts;
use super::dice::{Dice, INSTANCES, KEYS, PINS, SESSIONS, TAGS, VERSIONS};
use super::messages;
use super::ops::Token;
use super::world::{HistoryEnd, World};
use crate::providers::{DirectTurn, ScheduledActivityIdentifier, TimerTurn, TurnCommit};

/// The latest time that values are stamped with: stores may keep times as signed numbers.
const FAR_MS: u64 = u64::MAX >> 1;

/// A commit for the turn that this token locks, or locked once.
pub(super) fn commit(dice: &Dice, world: &World, token: Token) -> TurnCommit {
    let turn = world.turn(token).cloned();
    let mut draft = Draft::new(dice, world.now(), turn.unwrap_or_else(|| nobodys_turn(dice)));
    if world.strange && dice.chance(5) {
        draft.go_astray();
    }
    draft.fill(world);
    draft.commit
}

/// A turn that has read the outcome of the activity that this token locks, or locked once; now and
/// then it has not seen how its instance has gone on.
pub(super) fn direct(dice: &Dice, world: &World, token: Token) -> DirectTurn {
    let instance = match world.work(token) {
        Some(WorkItem::ActivityExecute { instance, .. }) if dice.chance(97) => instance.clone(),
        _ => dice.instance(),
    };
    let (end, commit) = without_lock(dice, world, &instance);
    let (last_event_id, last_event_at_ms) = (end.event_id, end.at_ms);
    DirectTurn { work_token: String::new(), instance, last_event_id, last_event_at_ms, commit }
}

/// A turn that has read timers which may be held back; `None` if there never were any.
pub(super) fn fired(dice: &Dice, world: &World) -> Option<TimerTurn> {
    let is_due = |timer: &&WorkItem| match timer {
        WorkItem::TimerFired { fire_at_ms, .. } => *fire_at_ms <= world.now(),
        _ => false,
    };
    let timers = world.held_timers();
    let only_due = dice.chance(90);
    let choice: Vec<_> = timers.iter().filter(|timer| !only_due || is_due(timer)).collect();
    // The newest is the one whose instance has most likely been left alone since.
    let first = match dice.chance(70) {
        true => *choice.last()?,
        false => *choice.get(usize::try_from(dice.below(choice.len() as u64)).ok()?)?,
    };
    let instance = first.orchestration_key()?.to_owned();
    let others = timers.iter().filter(|timer| {
        *timer != first && timer.orchestration_key() == Some(&instance) && is_due(timer)
    });
    let mut read = vec![first.clone()];
    read.extend(others.filter(|_| dice.chance(50)).cloned());
    if dice.chance(2) {
        read.push(first.clone());
    }
    let (end, commit) = without_lock(dice, world, &instance);
    Some(TimerTurn {
        instance: if dice.chance(97) { instance } else { dice.instance() },
        incarnation: 0, // The stores have numbers of their own.
        last_event_id: end.event_id,
        last_event_at_ms: end.at_ms,
        timers: read,
        commit,
    })
}

/// What a turn has seen that ran without a lock, and what it comes to; now and then it has not seen how
/// its instance has gone on.
fn without_lock(dice: &Dice, world: &World, instance: &str) -> (HistoryEnd, TurnCommit) {
    let mut end = world.histories.get(instance).copied().unwrap_or_default();
    match dice.below(20) {
        0 => end.event_id += 1,
        1 => end.at_ms += 1,
        _ => {}
    }
    let (execution_id, last_event_id) = (end.execution_id, end.event_id);
    let facts =
        TurnFacts { instance: instance.to_owned(), execution_id, last_event_id, continues: false };
    let mut draft = Draft::new(dice, world.now(), facts);
    if world.strange && dice.chance(5) {
        draft.go_astray();
    }
    draft.fill(world);
    (end, draft.commit)
}

/// A turn to go with one that continues as new, which then sends no message for it (R8.140).
pub(super) fn add_successor(dice: &Dice, world: &World, token: Token, first: &mut TurnCommit) {
    let turn = world.turn(token).cloned().unwrap_or_else(|| nobodys_turn(dice));
    let (execution_id, continues) = (first.execution_id, true);
    let mut draft = Draft::new(dice, world.now(), TurnFacts { execution_id, continues, ..turn });
    draft.fill(world);
    first.orchestrator_items.retain(|item| !matches!(item, WorkItem::ContinueAsNew { .. }));
    first.successor = Some(Box::new(draft.commit));
}

/// Events outside a turn: with ids that may be taken.
pub(super) fn loose_events(dice: &Dice, instance: &str, execution_id: u64, now: u64) -> Vec<Event> {
    let turn = TurnFacts { instance: instance.to_owned(), execution_id, ..TurnFacts::default() };
    let mut draft = Draft::new(dice, now, turn);
    draft.commit.execution_id = execution_id;
    draft.next_event_id = 1 + dice.below(10);
    for _ in 0..dice.below(4) {
        let kind = draft.plain_event();
        draft.event(kind);
    }
    draft.commit.history_delta
}

/// A commit in the making.
struct Draft<'d> {
    dice: &'d Dice,
    now: u64,
    instance: String,
    next_event_id: u64,
    commit: TurnCommit,
}

impl<'d> Draft<'d> {
    /// An empty commit, as a rule to the execution of the turn or to the next one.
    fn new(dice: &'d Dice, now: u64, turn: TurnFacts) -> Self {
        let (execution_id, next_event_id) = match turn.continues {
            true => (turn.execution_id + 1, 1),
            false => (turn.execution_id, turn.last_event_id + 1),
        };
        let commit = TurnCommit { execution_id, ..TurnCommit::default() };
        Self { dice, now, instance: turn.instance, next_event_id, commit }
    }

    /// Everything a turn does, and now and then what it must not.
    fn fill(&mut self, world: &World) {
        let dice = self.dice;
        if !world.strange || dice.chance(95) {
            self.begin();
        }
        for _ in 0..dice.below(5) {
            self.go_on();
        }
        self.end();
        if world.takes_timers && dice.chance(60) {
            let grace = [50, 5_000, 1_000_000, 10_000_000];
            self.commit.timer_grace_ms = grace[dice.below(4) as usize];
        }
        self.cancel(world);
        self.drop_timers(world);
        self.spoil();
        if world.strange && dice.chance(4) {
            self.commit.metadata.orchestration_version = None;
        }
    }

    /// Turns to another execution.
    fn go_astray(&mut self) {
        let (execution_id, dice) = (self.commit.execution_id, self.dice);
        (self.commit.execution_id, self.next_event_id) = match dice.below(2) {
            0 => (execution_id + 1 + dice.below(2), 1),
            _ => (execution_id.saturating_sub(1).max(1), 100 + dice.below(50)),
        };
    }

    /// A first turn says who the instance is.
    fn begin(&mut self) {
        let dice = self.dice;
        let is_first = self.next_event_id == 1;
        if is_first {
            let carried = dice.chance(30).then(|| vec![(dice.text(), dice.text())]);
            self.event(EventKind::OrchestrationStarted {
                name: dice.text(),
                version: dice.name(VERSIONS),
                input: dice.payload(),
                parent_instance: None,
                parent_id: None,
                parent_execution_id: None,
                carry_forward_events: carried,
                initial_custom_status: None,
            });
        }
        let metadata = &mut self.commit.metadata;
        if is_first || dice.chance(5) {
            metadata.orchestration_name = Some(dice.text());
            metadata.orchestration_version = Some(dice.name(VERSIONS));
            metadata.parent_instance_id = parent(dice, &self.instance);
        }
        if dice.chance(if is_first { 60 } else { 8 }) {
            metadata.pinned_duroxide_version = Version::parse(&dice.name(PINS)).ok();
        }
    }

    /// Something the turn asked for.
    fn go_on(&mut self) {
        let dice = self.dice;
        match dice.below(12) {
            0..3 => self.schedule_activity(),
            3 => {
                let (id, fire_at_ms) = (self.next_event_id, dice.time(self.now));
                self.event(EventKind::TimerCreated { fire_at_ms });
                let (instance, execution_id) = (self.instance.clone(), self.commit.execution_id);
                let timer = WorkItem::TimerFired { instance, execution_id, id, fire_at_ms };
                self.commit.orchestrator_items.push(timer);
            }
            4 => {
                let (name, input, child) = (dice.text(), dice.payload(), dice.instance());
                let instance = child.clone();
                self.event(EventKind::SubOrchestrationScheduled { name, instance, input });
                self.commit.orchestrator_items.push(messages::start(dice, &child));
            }
            5 => {
                let item = messages::any(dice, &dice.instance(), self.now);
                self.commit.orchestrator_items.push(item);
            }
            _ => {
                let kind = self.plain_event();
                self.event(kind);
            }
        }
    }

    fn schedule_activity(&mut self) {
        let dice = self.dice;
        let (session_id, tag) = (dice.maybe_name(40, SESSIONS), dice.maybe_name(40, TAGS));
        let (name, input, id) = (dice.text(), dice.payload(), self.next_event_id);
        self.commit.worker_items.push(WorkItem::ActivityExecute {
            instance: self.instance.clone(),
            execution_id: self.commit.execution_id,
            id,
            name: name.clone(),
            input: input.clone(),
            session_id: session_id.clone(),
            tag: tag.clone(),
        });
        self.event(EventKind::ActivityScheduled { name, input, session_id, tag });
    }

    /// An event that asks for nothing.
    fn plain_event(&self) -> EventKind {
        let dice = self.dice;
        match dice.below(16) {
            0..5 => EventKind::KeyValueSet {
                key: dice.name(KEYS),
                value: dice.value(),
                last_updated_at_ms: dice.time(self.now).min(FAR_MS),
            },
            5 | 6 => EventKind::KeyValueCleared { key: dice.name(KEYS) },
            7 => EventKind::KeyValuesCleared,
            8 | 9 => {
                EventKind::CustomStatusUpdated { status: dice.chance(75).then(|| dice.text()) }
            }
            10 => EventKind::ActivityCompleted { result: dice.payload() },
            11 => EventKind::ExternalEvent { name: dice.text(), data: dice.payload() },
            12 => EventKind::QueueEventDelivered { name: dice.text(), data: dice.payload() },
            13 => EventKind::OrchestrationCancelRequested { reason: dice.text() },
            14 => EventKind::TimerFired { fire_at_ms: dice.time(self.now) },
            _ => EventKind::ExternalSubscribed { name: dice.text() },
        }
    }

    /// Ends the execution now and then; mostly, but not always, with the event that says so.
    fn end(&mut self) {
        let dice = self.dice;
        if !dice.chance(30) {
            return;
        }
        let text = dice.payload();
        let (status, kind) = match dice.below(6) {
            0 => {
                let kind = AppErrorKind::OrchestrationFailed;
                let details = ErrorDetails::application(kind, text.clone());
                ("Failed", EventKind::OrchestrationFailed { details })
            }
            1..4 => {
                self.commit
                    .orchestrator_items
                    .push(messages::continue_as_new(dice, &self.instance));
                let input = text.clone();
                ("ContinuedAsNew", EventKind::OrchestrationContinuedAsNew { input })
            }
            _ => ("Completed", EventKind::OrchestrationCompleted { output: text.clone() }),
        };
        if dice.chance(85) {
            self.event(kind);
        }
        self.commit.metadata.status = Some(status.to_owned());
        self.commit.metadata.output = dice.chance(85).then_some(text);
    }

    /// Cancels activities: old ones, unknown ones, and those of this very turn.
    fn cancel(&mut self, world: &World) {
        let dice = self.dice;
        if dice.chance(20) {
            let recent: Vec<_> = world.activities.iter().rev().collect();
            let chosen =
                (0..dice.below(3)).filter_map(|_| dice.favour(&recent).map(|a| (*a).clone()));
            self.commit.cancelled_activities.extend(chosen);
        }
        if dice.chance(8) {
            self.commit.cancelled_activities.push(ScheduledActivityIdentifier {
                instance: self.instance.clone(),
                execution_id: self.commit.execution_id,
                activity_id: self.next_event_id.saturating_sub(dice.below(4)),
            });
        }
    }

    /// Tells of timers that nothing waits for any more, old ones and those of this turn: no store is to
    /// treat them in another way (R8.151).
    fn drop_timers(&mut self, world: &World) {
        let is_dropped = |item: &&WorkItem| match item {
            WorkItem::TimerFired { instance, id, .. } => instance == &self.instance && id % 3 != 0,
            _ => false,
        };
        let set = self.commit.orchestrator_items.iter().chain(world.held_timers());
        self.commit.dropped_timers = set.filter(is_dropped).cloned().collect();
    }

    /// Makes the commit wrong now and then.
    fn spoil(&mut self) {
        let dice = self.dice;
        let TurnCommit { history_delta, worker_items, orchestrator_items, .. } = &mut self.commit;
        match dice.below(60) {
            0 => history_delta.extend(history_delta.last().cloned()),
            1 => set_last_id(history_delta, 0),
            2 => set_last_id(history_delta, 1),
            3 => set_last_id(history_delta, self.next_event_id + 10),
            4 | 5 => history_delta.reverse(),

            6 => worker_items.push(messages::any(dice, &self.instance, self.now)),
            7 => orchestrator_items.push(messages::activity(dice, &self.instance, 1)),
            _ => {}
        }
    }

    fn event(&mut self, kind: EventKind) {
        self.commit.history_delta.push(Event {
            event_id: self.next_event_id,
            source_event_id: self.dice.chance(20).then(|| self.dice.below(9)),
            instance_id: self.instance.clone(),
            execution_id: self.commit.execution_id,
            timestamp_ms: self.now,
            duroxide_version: self.dice.name(PINS),
            kind,
        });
        self.next_event_id += 1;
    }
}

fn nobodys_turn(dice: &Dice) -> TurnFacts {
    TurnFacts { instance: dice.instance(), execution_id: 1, ..TurnFacts::default() }
}

/// A parent that stands before its child, so that no instance descends from itself.
fn parent(dice: &Dice, instance: &str) -> Option<String> {
    let own = INSTANCES.iter().position(|id| *id == instance)?;
    dice.chance(35).then(|| dice.pick(&INSTANCES[..own]).map(|id| (*id).to_owned()))?
}

fn set_last_id(events: &mut [Event], event_id: u64) {
    if let Some(event) = events.last_mut() {
        event.event_id = event_id;
    }
}
