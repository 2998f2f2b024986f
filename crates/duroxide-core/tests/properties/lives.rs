//! Whole lives of instances: whatever happens, a turn can be repeated, and a stored history replays.

use duroxide_core::model::{Event, EventKind, WorkItem};
use duroxide_core::replay::{
    Resumption, Suspended, TurnOutcome, TurnStatus, run_turn, run_turn_and_keep,
};
use proptest::collection::vec;
use proptest::prelude::*;

use super::cases;
use super::invariants::assert_sound;
use super::script::{Ingredients, handler, program};
use super::world::{Choices, World, queue_message, signal};

/// Takes the next messages out of the world: some of those on their way, in any order, some twice,
/// stale ones among them.
fn next_batch(world: &mut World, choices: &mut Choices, sent: &mut usize) -> Vec<WorkItem> {
    let mut batch = Vec::new();
    let size = 1 + choices.below(4);
    while batch.len() < size && !world.on_the_way.is_empty() {
        let place = choices.below(world.on_the_way.len());
        let message = world.on_the_way.swap_remove(place);
        if choices.once_in(5) {
            batch.push(message.clone());
        }
        if choices.once_in(7) {
            world.on_the_way.push(message.clone());
        }
        if choices.once_in(6) {
            batch.extend(stale(&message));
        }
        batch.push(message);
    }
    if choices.once_in(3) || batch.is_empty() {
        *sent += 1;
        let place = choices.below(batch.len() + 1);
        let message = match choices.below(2) {
            0 => queue_message(choices.below(2), *sent),
            _ => signal(choices.below(2), *sent),
        };
        batch.insert(place, message);
    }
    batch
}

/// The same message for another execution.
fn stale(message: &WorkItem) -> Option<WorkItem> {
    let mut message = message.clone();
    match &mut message {
        WorkItem::ActivityCompleted { execution_id, .. }
        | WorkItem::ActivityFailed { execution_id, .. }
        | WorkItem::TimerFired { execution_id, .. }
        | WorkItem::SubOrchCompleted { parent_execution_id: execution_id, .. }
        | WorkItem::SubOrchFailed { parent_execution_id: execution_id, .. } => *execution_id += 7,
        _ => return None,
    }
    Some(message)
}

/// What a turn came to, without the times in it.
fn timeless(outcome: &TurnOutcome) -> String {
    let mut events = outcome.events.clone();
    for event in &mut events {
        event.timestamp_ms = 0;
        match &mut event.kind {
            EventKind::TimerCreated { fire_at_ms } => *fire_at_ms = 0,
            EventKind::KeyValueSet { last_updated_at_ms, .. } => *last_updated_at_ms = 0,
            _ => {}
        }
    }
    format!("{events:?} {:?} {:?} {:?}", outcome.activities, outcome.cancelled, outcome.status)
}

/// A stored history, read again later without anything new, adds nothing.
fn assert_replays(world: &World, history: &[Event]) {
    let mut again = World::new(world.handler.clone());
    again.history = history.to_vec();
    again.execution_id = world.execution_id;
    again.kv_snapshot.clone_from(&world.kv_snapshot);
    again.now_ms = world.now_ms + 86_400_000;
    let outcome = run_turn(again.turn(&[], true));
    assert_eq!(outcome.status, TurnStatus::Running, "{history:#?}");
    assert!(outcome.events.is_empty(), "{:?} after {history:#?}", outcome.events);
    assert!(outcome.activities.is_empty() && outcome.messages.is_empty());
    assert!(outcome.cancelled.is_empty());
}

/// The same turn, taken by code that was kept since the last one if there is any.
fn take_warm(
    world: &World,
    kept: Option<Suspended>,
    batch: &[WorkItem],
    system_calls: bool,
) -> (TurnOutcome, Option<Suspended>) {
    let turn = world.turn(batch, system_calls);
    match kept.filter(|_| !batch.iter().any(WorkItem::is_start)) {
        None => run_turn_and_keep(turn),
        Some(kept) => {
            assert_eq!(kept.last_event_id(), world.history.last().map_or(0, |e| e.event_id));
            assert_eq!(kept.execution_id(), world.execution_id);
            assert_eq!(kept.history(), world.history);
            kept.resume(Resumption {
                messages: turn.messages.completion_messages,
                now_ms: turn.now_ms,
                system_calls: turn.system_calls,
            })
        }
    }
}

/// Lives a life, checking each turn.
fn live(world: &mut World, choices: &mut Choices) {
    let mut sent = 0;
    let mut kept = None;
    for _ in 0..60 {
        if world.ended.is_some() {
            return;
        }
        let batch = match &world.on_the_way[..] {
            // Between executions only the successor's start opens a turn (R1.25).
            messages if between_executions(world) => successor(messages),
            _ => next_batch(world, choices, &mut sent),
        };
        world.on_the_way.retain(|message| !message.is_start());
        world.now_ms += choices.below(200) as u64;
        let system_calls = !choices.once_in(4);

        // A turn that was not committed is repeated, and comes to the same.
        let repeated = run_turn(world.turn(&batch, system_calls));
        let warm = take_warm(world, kept, &batch, system_calls);
        let outcome = world.take(&batch, system_calls);
        assert_eq!(format!("{outcome:?}"), format!("{repeated:?}"));
        let (warm, kept_on) = warm;
        assert_eq!(format!("{outcome:?}"), format!("{warm:?}"));
        kept = kept_on.filter(|_| !choices.once_in(5)); // Evicted now and then.

        assert_sound(&world.history);
        assert_no_nondeterminism(&outcome);
        if outcome.status == TurnStatus::Running {
            assert_replays(world, &world.history);
        }
    }
}

fn between_executions(world: &World) -> bool {
    world.history.iter().any(|e| matches!(e.kind, EventKind::OrchestrationContinuedAsNew { .. }))
}

fn successor(messages: &[WorkItem]) -> Vec<WorkItem> {
    messages.iter().filter(|message| message.is_start()).cloned().collect()
}

fn assert_no_nondeterminism(outcome: &TurnOutcome) {
    if let TurnStatus::Failed(details) = &outcome.status {
        assert_eq!(details.category(), "application", "{details:?}\n{:?}", outcome.divergence);
    }
}

proptest! {
    #![proptest_config(cases(700))]

    /// R1.4, R1.11: turn by turn from the stored history; each turn repeatable, and the same with
    /// code kept since the last one; each stored history replays and adds nothing; duplicates and stale messages leave no trace.
    #[test]
    fn lives_replay(program in program(Ingredients::ALL), numbers in vec(any::<u8>(), 1..60)) {
        let mut world = World::new(handler(&program));
        live(&mut world, &mut Choices::new(numbers));
    }

    /// R1.15: the time of a repeated turn changes nothing but times.
    #[test]
    fn a_turn_repeated_later_differs_in_times_only(
        program in program(Ingredients { time: false, ..Ingredients::ALL }),
        numbers in vec(any::<u8>(), 1..60),
    ) {
        let mut world = World::new(handler(&program));
        let mut choices = Choices::new(numbers);
        let mut sent = 0;
        for _ in 0..8 {
            if world.ended.is_some() || between_executions(&world) {
                break;
            }
            let batch = next_batch(&mut world, &mut choices, &mut sent);
            let first = run_turn(world.turn(&batch, true));
            world.now_ms += 3_600_000;
            let later = world.take(&batch, true);
            prop_assert_eq!(timeless(&first), timeless(&later));
        }
    }
}
