//! How messages are cut into turns.
//!
//! The cut decides when new schedules are recorded. Signals are lost before their wait is recorded,
//! and dequeues and system calls resolve when they are recorded, so where these race against other
//! work the cut may decide the winner. For everything else it changes nothing but event ids.

use duroxide_core::model::{Event, EventKind, WorkItem};
use proptest::collection::vec;
use proptest::prelude::*;

use super::cases;
use super::invariants::assert_sound;
use super::script::{Ingredients, Program, handler, program};
use super::world::{Choices, World, queue_message};

/// Something that reaches the instance, whatever event ids it has.
#[derive(Debug, Clone, Copy)]
enum Delivery {
    /// The answer to the n-th schedule of an execution.
    Answer {
        execution_id: u64,
        nth: usize,
    },
    Queue {
        queue: usize,
        n: usize,
    },
}

impl Delivery {
    fn is_for_the_past(self, world: &World) -> bool {
        let Self::Answer { execution_id, .. } = self else { return false };
        let is_over = world.history.iter().any(Event::is_terminal);
        execution_id < world.execution_id + u64::from(is_over)
    }
}

/// Schedules that are answered, in order.
fn schedules(history: &[Event]) -> impl Iterator<Item = &Event> {
    history.iter().filter(|event| {
        matches!(
            event.kind,
            EventKind::ActivityScheduled { .. }
                | EventKind::TimerCreated { .. }
                | EventKind::SubOrchestrationScheduled { .. }
        )
    })
}

/// Execution and schedule event that a message answers.
fn answers(message: &WorkItem) -> Option<(u64, u64)> {
    match message {
        WorkItem::ActivityCompleted { execution_id, id, .. }
        | WorkItem::ActivityFailed { execution_id, id, .. }
        | WorkItem::TimerFired { execution_id, id, .. } => Some((*execution_id, *id)),
        WorkItem::SubOrchCompleted { parent_execution_id, parent_id, .. }
        | WorkItem::SubOrchFailed { parent_execution_id, parent_id, .. } => {
            Some((*parent_execution_id, *parent_id))
        }
        _ => None,
    }
}

impl World {
    fn history_of(&self, execution_id: u64) -> &[Event] {
        self.past.get(execution_id as usize - 1).unwrap_or(&self.history)
    }

    /// Takes one answer off its way.
    fn take_answer(&mut self, execution_id: u64, nth: usize) -> Option<WorkItem> {
        let is_it = |world: &Self, message: &WorkItem| {
            answers(message).is_some_and(|(execution, id)| {
                let history = world.history_of(execution);
                let place = schedules(history).position(|schedule| schedule.event_id == id);
                execution == execution_id && place == Some(nth)
            })
        };
        let place = self.on_the_way.iter().position(|message| is_it(self, message))?;
        Some(self.on_the_way.swap_remove(place))
    }

    /// The successor's start, if one is due.
    fn take_start(&mut self) -> Option<WorkItem> {
        let place = self.on_the_way.iter().position(WorkItem::is_start)?;
        Some(self.on_the_way.swap_remove(place))
    }
}

/// One message a turn; what was delivered, in order.
fn one_by_one(world: &mut World, choices: &mut Choices, with_queues: bool) -> Vec<Delivery> {
    let mut deliveries = Vec::new();
    let mut sent = 0;
    while world.ended.is_none() {
        if let Some(start) = world.take_start() {
            world.take(&[start], true);
            continue;
        }
        if deliveries.len() >= 60 {
            break;
        }
        if with_queues && (world.on_the_way.is_empty() || choices.once_in(3)) {
            sent += 1;
            let queue = choices.below(2);
            deliveries.push(Delivery::Queue { queue, n: sent });
            world.take(&[queue_message(queue, sent)], true);
            continue;
        }
        if world.on_the_way.is_empty() {
            break;
        }
        let message = world.on_the_way.swap_remove(choices.below(world.on_the_way.len()));
        let (execution_id, id) = answers(&message).expect("an answer");
        let history = world.history_of(execution_id);
        let nth = schedules(history).position(|schedule| schedule.event_id == id).unwrap();
        deliveries.push(Delivery::Answer { execution_id, nth });
        world.take(&[message], true);
        assert_sound(&world.history);
    }
    deliveries
}

/// The same deliveries, several a turn where that is possible.
fn in_batches(world: &mut World, deliveries: &[Delivery], choices: &mut Choices) {
    let mut left = deliveries.iter().copied().peekable();
    while world.ended.is_none() {
        let mut batch: Vec<WorkItem> = world.take_start().into_iter().collect();
        let size = choices.below(6);
        while batch.len() <= size {
            let Some(delivery) = left.peek() else { break };
            let message = match delivery {
                Delivery::Queue { queue, n } => Some(queue_message(*queue, *n)),
                Delivery::Answer { execution_id, nth } => world.take_answer(*execution_id, *nth),
            };
            // What answers a schedule of this very turn cannot be here yet; what answers one that a
            // last turn recorded and did not send (R1.61) never will.
            if message.is_none() && !delivery.is_for_the_past(world) {
                break;
            }
            batch.extend(message);
            left.next();
        }
        if batch.is_empty() {
            assert!(left.peek().is_none(), "{:?} cannot be delivered", left.peek());
            return;
        }
        world.take(&batch, true);
        assert_sound(&world.history);
    }
}

/// Everything the code did, in order, in all executions; ids and times left out.
fn deeds(world: &World) -> Vec<String> {
    let histories = world.past.iter().chain([&world.history]);
    let deed = |event: &Event| match &event.kind {
        EventKind::ActivityScheduled { name, input, .. }
        | EventKind::SubOrchestrationScheduled { name, input, .. } => {
            Some(format!("{name}({input})"))
        }
        EventKind::TimerCreated { .. } => Some("timer".to_owned()),
        EventKind::KeyValueSet { key, value, .. } => Some(format!("{key}={value}")),
        EventKind::OrchestrationStarted { input, initial_custom_status, .. } => {
            Some(format!("started {input} {initial_custom_status:?}"))
        }
        EventKind::OrchestrationChained { .. }
        | EventKind::QueueSubscribed { .. }
        | EventKind::CustomStatusUpdated { .. }
        | EventKind::KeyValueCleared { .. }
        | EventKind::KeyValuesCleared
        | EventKind::OrchestrationCompleted { .. }
        | EventKind::OrchestrationFailed { .. } => Some(format!("{:?}", event.kind)),
        _ => None,
    };
    histories.flatten().filter_map(deed).collect()
}

fn assert_cut_does_not_matter(program: &Program, numbers: Vec<u8>, cuts: Vec<u8>, queues: bool) {
    let mut alone = World::new(handler(program));
    let deliveries = one_by_one(&mut alone, &mut Choices::new(numbers), queues);
    let mut together = World::new(handler(program));
    in_batches(&mut together, &deliveries, &mut Choices::new(cuts));
    assert_eq!(alone.ended, together.ended);
    assert_eq!(deeds(&alone), deeds(&together));
}

proptest! {
    #![proptest_config(cases(400))]

    /// R3.126, R3.127: activities, timers and children in any arrangement, races included.
    #[test]
    fn the_cut_does_not_matter_to_races_of_work(
        program in program(Ingredients { waits: false, in_turn: false, time: false, ..Ingredients::ALL }),
        numbers in vec(any::<u8>(), 1..60),
        cuts in vec(any::<u8>(), 1..30),
    ) {
        assert_cut_does_not_matter(&program, numbers, cuts, false);
    }

    /// R3.112, R3.158, R4.42, R4.95: mailboxes and system calls where nothing races; no message is
    /// lost, repeated or reordered, over executions either.
    #[test]
    fn the_cut_does_not_matter_to_mailboxes(
        program in program(Ingredients { waits: false, races: false, time: false, ..Ingredients::ALL }),
        numbers in vec(any::<u8>(), 1..60),
        cuts in vec(any::<u8>(), 1..30),
    ) {
        assert_cut_does_not_matter(&program, numbers, cuts, true);
    }
}
