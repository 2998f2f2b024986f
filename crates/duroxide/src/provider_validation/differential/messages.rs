//! Messages and activities of every kind.

use duroxide_core::model::{AppErrorKind, ErrorDetails, WorkItem};

use super::dice::{Dice, INSTANCES, SESSIONS, TAGS};
use super::generate::version;
use super::ops::Token;
use super::world::World;

/// A message that begins an instance. The last of all instances never begins.
pub(super) fn start(dice: &Dice, instance: &str) -> WorkItem {
    if INSTANCES.last() == Some(&instance) {
        return any(dice, instance, 0);
    }
    let parent_instance = dice.chance(40).then(|| dice.instance());
    WorkItem::StartOrchestration {
        instance: instance.to_owned(),
        orchestration: dice.text(),
        input: dice.payload(),
        version: version(dice),
        parent_id: parent_instance.is_some().then(|| dice.below(9)),
        parent_execution_id: parent_instance.is_some().then_some(1),
        parent_instance,
        execution_id: 1,
    }
}

/// A message that begins the next execution.
pub(super) fn continue_as_new(dice: &Dice, instance: &str) -> WorkItem {
    let carried = 0..dice.below(3);
    WorkItem::ContinueAsNew {
        instance: instance.to_owned(),
        orchestration: dice.text(),
        input: dice.payload(),
        version: version(dice),
        parent_instance: None,
        parent_id: None,
        parent_execution_id: None,
        carry_forward_events: carried.map(|_| (dice.text(), dice.text())).collect(),
        initial_custom_status: dice.chance(30).then(|| dice.text()),
    }
}

/// A message that begins nothing.
pub(super) fn any(dice: &Dice, instance: &str, now: u64) -> WorkItem {
    let instance = instance.to_owned();
    let (execution_id, id) = (1 + dice.below(2), 1 + dice.below(6));
    match dice.below(20) {
        0..6 => WorkItem::ExternalRaised { instance, name: dice.text(), data: dice.payload() },
        6..11 => WorkItem::QueueMessage { instance, name: dice.text(), data: dice.payload() },
        11..13 => WorkItem::CancelInstance { instance, reason: dice.text() },
        13..15 => WorkItem::TimerFired {
            instance,
            execution_id,
            id,
            fire_at_ms: dice.time(now.max(99_999)),
        },
        15 => WorkItem::SubOrchCompleted {
            parent_instance: instance,
            parent_execution_id: execution_id,
            parent_id: id,
            result: dice.payload(),
        },
        16 => WorkItem::SubOrchFailed {
            parent_instance: instance,
            parent_execution_id: execution_id,
            parent_id: id,
            details: ErrorDetails::cancelled(dice.text()),
        },
        _ => outcome(dice, instance, execution_id, id),
    }
}

/// An activity, in some session, with some tag.
pub(super) fn activity(dice: &Dice, instance: &str, id: u64) -> WorkItem {
    WorkItem::ActivityExecute {
        instance: instance.to_owned(),
        execution_id: 1 + dice.below(2),
        id,
        name: dice.text(),
        input: dice.payload(),
        session_id: dice.maybe_name(40, SESSIONS),
        tag: dice.maybe_name(40, TAGS),
    }
}

/// The outcome of the activity that this token locks.
pub(super) fn outcome_of(dice: &Dice, world: &World, token: Token) -> WorkItem {
    match world.work(token) {
        Some(WorkItem::ActivityExecute { instance, execution_id, id, .. }) => {
            outcome(dice, instance.clone(), *execution_id, *id)
        }
        _ => outcome(dice, dice.instance(), 1, 1),
    }
}

fn outcome(dice: &Dice, instance: String, execution_id: u64, id: u64) -> WorkItem {
    if dice.chance(70) {
        return WorkItem::ActivityCompleted { instance, execution_id, id, result: dice.payload() };
    }
    let details = ErrorDetails::application(AppErrorKind::ActivityFailed, dice.text());
    WorkItem::ActivityFailed { instance, execution_id, id, details }
}
