//! Nonsense: whatever a history and a batch say, the engine answers and does not panic.

use std::collections::HashMap;

use duroxide_core::model::{
    AppErrorKind, ErrorDetails, Event, EventKind, KvEntry, PoisonMessageType, WorkItem,
};
use duroxide_core::replay::{ReplayEngine, TurnResult, run_turn};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

use super::cases;
use super::script::{Ingredients, handler, program};
use super::world::{Choices, INSTANCE, World, queue_message, signal};

/// Ids that may exist, may not, and cannot.
fn id() -> impl Strategy<Value = u64> {
    prop_oneof![8 => 0..9u64, 1 => Just(u64::MAX), 1 => Just(u64::MAX - 1), 1 => any::<u64>()]
}

/// Texts that programs use, and others.
fn text() -> impl Strategy<Value = String> {
    let known = ["", "w0", "q0", "q1", "A0", "C", "k0", "k1", "sub::2", "D", "d1"];
    let reserved = ["__duroxide_syscall:new_guid", "\u{0}", "sub::", "dropped_future"];
    prop::sample::select([&known[..], &reserved[..]].concat()).prop_map(str::to_owned)
}

fn error() -> impl Strategy<Value = ErrorDetails> {
    let poison = PoisonMessageType::Orchestration { instance: String::new(), execution_id: 0 };
    prop::sample::select(vec![
        ErrorDetails::nondeterminism("x"),
        ErrorDetails::cancelled("x"),
        ErrorDetails::application(AppErrorKind::ActivityFailed, "x"),
        ErrorDetails::Infrastructure {
            operation: String::new(),
            message: String::new(),
            retryable: true,
        },
        ErrorDetails::Poison {
            attempt_count: 0,
            max_attempts: 0,
            message_type: poison,
            message: String::new(),
        },
    ])
}

/// A kind by number; all kinds have one.
fn kind() -> impl Strategy<Value = EventKind> {
    let carried = option::of(vec((text(), text()), 0..3));
    let parts = (text(), text(), text(), id(), option::of(text()), option::of(id()));
    (0..26u8, parts, error(), carried).prop_map(|(number, (a, b, c, ms, d, e), details, carry)| {
        match number {
            0 => EventKind::OrchestrationStarted {
                name: a,
                version: b,
                input: c,
                parent_instance: d.clone(),
                parent_id: e,
                parent_execution_id: e,
                carry_forward_events: carry,
                initial_custom_status: d,
            },
            1 => EventKind::OrchestrationCompleted { output: a },
            2 => EventKind::OrchestrationFailed { details },
            3 => EventKind::ActivityScheduled { name: a, input: b, session_id: d.clone(), tag: d },
            4 => EventKind::ActivityCompleted { result: a },
            5 => EventKind::ActivityFailed { details },
            6 => EventKind::ActivityCancelRequested { reason: a },
            7 => EventKind::TimerCreated { fire_at_ms: ms },
            8 => EventKind::TimerFired { fire_at_ms: ms },
            9 => EventKind::ExternalSubscribed { name: a },
            10 => EventKind::ExternalEvent { name: a, data: b },
            11 => EventKind::OrchestrationChained { name: a, instance: b, input: c },
            12 => EventKind::SubOrchestrationScheduled { name: a, instance: b, input: c },
            13 => EventKind::SubOrchestrationCompleted { result: a },
            14 => EventKind::SubOrchestrationFailed { details },
            15 => EventKind::SubOrchestrationCancelRequested { reason: a },
            16 => EventKind::OrchestrationContinuedAsNew { input: a },
            17 => EventKind::OrchestrationCancelRequested { reason: a },
            18 => EventKind::ExternalSubscribedCancelled { reason: a },
            19 => EventKind::QueueSubscribed { name: a },
            20 => EventKind::QueueEventDelivered { name: a, data: b },
            21 => EventKind::QueueSubscriptionCancelled { reason: a },
            22 => EventKind::CustomStatusUpdated { status: d },
            23 => EventKind::KeyValueSet { key: a, value: b, last_updated_at_ms: ms },
            24 => EventKind::KeyValueCleared { key: a },
            _ => EventKind::KeyValuesCleared,
        }
    })
}

fn stamp() -> impl Strategy<Value = String> {
    prop::sample::select(vec!["0.1.30", "0.1.31", "0.2.0", "9.0.0", "", "banana"])
        .prop_map(str::to_owned)
}

fn event() -> impl Strategy<Value = Event> {
    (id(), option::of(id()), id(), stamp(), kind()).prop_map(
        |(event_id, source_event_id, execution_id, duroxide_version, kind)| Event {
            event_id,
            source_event_id,
            instance_id: INSTANCE.to_owned(),
            execution_id,
            timestamp_ms: 0,
            duroxide_version,
            kind,
        },
    )
}

fn message() -> impl Strategy<Value = WorkItem> {
    let parts = (text(), text(), prop_oneof![3 => Just(1), 1 => id()], id(), option::of(id()));
    (0..11u8, parts, error(), vec((text(), text()), 0..3)).prop_map(
        |(number, (a, b, execution_id, id, e), details, carry)| {
            let instance = INSTANCE.to_owned();
            let parent_instance = instance.clone();
            let (parent_execution_id, parent_id) = (execution_id, id);
            match number {
                0 => WorkItem::ActivityCompleted { instance, execution_id, id, result: a },
                1 => WorkItem::ActivityFailed { instance, execution_id, id, details },
                2 => WorkItem::TimerFired { instance, execution_id, id, fire_at_ms: id },
                3 => WorkItem::SubOrchCompleted {
                    parent_instance,
                    parent_execution_id,
                    parent_id,
                    result: a,
                },
                4 => WorkItem::SubOrchFailed {
                    parent_instance,
                    parent_execution_id,
                    parent_id,
                    details,
                },
                5 => WorkItem::ExternalRaised { instance, name: a, data: b },
                6 => WorkItem::QueueMessage { instance, name: a, data: b },
                7 => WorkItem::CancelInstance { instance, reason: a },
                8 => WorkItem::ActivityExecute {
                    instance,
                    execution_id,
                    id,
                    name: a,
                    input: b,
                    session_id: None,
                    tag: None,
                },
                9 => WorkItem::StartOrchestration {
                    instance,
                    orchestration: a,
                    input: b,
                    version: None,
                    parent_instance: Some(parent_instance),
                    parent_id: e,
                    parent_execution_id: e,
                    execution_id,
                },
                _ => WorkItem::ContinueAsNew {
                    instance,
                    orchestration: a,
                    input: b,
                    version: None,
                    parent_instance: Some(parent_instance),
                    parent_id: e,
                    parent_execution_id: e,
                    carry_forward_events: carry,
                    initial_custom_status: None,
                },
            }
        },
    )
}

/// One thing that can be wrong with a history.
#[derive(Debug, Clone)]
enum Damage {
    Lost(usize),
    Twice(usize),
    Swapped(usize, usize),
    Renumbered(usize, u64),
    Misdirected(usize, Option<u64>),
    Restamped(String),
    Inserted(usize, Box<Event>),
    Cut(usize),
}

fn damage() -> impl Strategy<Value = Damage> {
    let place = 0..40usize;
    prop_oneof![
        place.clone().prop_map(Damage::Lost),
        place.clone().prop_map(Damage::Twice),
        (place.clone(), place.clone()).prop_map(|(a, b)| Damage::Swapped(a, b)),
        (place.clone(), id()).prop_map(|(place, id)| Damage::Renumbered(place, id)),
        (place.clone(), option::of(id())).prop_map(|(place, id)| Damage::Misdirected(place, id)),
        stamp().prop_map(Damage::Restamped),
        (place.clone(), event())
            .prop_map(|(place, event)| Damage::Inserted(place, Box::new(event))),
        place.prop_map(Damage::Cut),
    ]
}

fn apply(damage: Damage, history: &mut Vec<Event>) {
    let len = history.len();
    if len == 0 {
        return;
    }
    match damage {
        Damage::Lost(place) => drop(history.remove(place % len)),
        Damage::Twice(place) => history.push(history[place % len].clone()),
        Damage::Swapped(a, b) => history.swap(a % len, b % len),
        Damage::Renumbered(place, id) => history[place % len].event_id = id,
        Damage::Misdirected(place, source) => history[place % len].source_event_id = source,
        Damage::Restamped(stamp) => history[0].duroxide_version = stamp,
        Damage::Inserted(place, event) => history.insert(place % len, *event),
        Damage::Cut(place) => history.truncate(place % len),
    }
}

/// Some turns of a sound life.
fn lived(world: &mut World, choices: &mut Choices) {
    for n in 0..6 {
        let start = world.on_the_way.iter().position(WorkItem::is_start);
        let place = start.unwrap_or_else(|| choices.below(world.on_the_way.len()));
        let mut batch = vec![queue_message(0, n), signal(0, n)];
        if place < world.on_the_way.len() {
            batch.insert(0, world.on_the_way.swap_remove(place));
        }
        if world.ended.is_none() {
            world.take(&batch, true);
        }
    }
}

/// Runs a turn on the history, and the engine on it with any length taken for stored.
fn assert_survives(world: &World, messages: &[WorkItem], persisted_len: usize) {
    let outcome = run_turn(world.turn(messages, true));
    drop(format!(
        "{:?} {}",
        outcome.status,
        outcome.divergence.map_or_else(String::new, |report| report.to_string())
    ));
    let value = KvEntry { value: String::new(), last_updated_at_ms: u64::MAX };
    let mut engine = ReplayEngine::new(INSTANCE.to_owned(), 1, world.history.clone())
        .with_persisted_history_len(persisted_len)
        .with_kv_snapshot(HashMap::from([("k0".to_owned(), value)]))
        .with_now_ms(u64::MAX);
    engine.prep_completions(messages.to_vec());
    let (name, version) = ("O".to_owned(), String::new());
    let result =
        engine.execute_orchestration(world.handler.clone(), String::new(), name, version, "w");
    assert!(
        !matches!(
            &result,
            TurnResult::Failed(ErrorDetails::Application { kind: AppErrorKind::Panicked, .. })
        ),
        "{result:?}"
    );
    assert_eq!(engine.final_history().len(), world.history.len() + engine.history_delta().len());
}

proptest! {
    #![proptest_config(cases(800))]

    /// R2.17, R3.33, R3.34: any events, any messages.
    #[test]
    fn nonsense_is_answered(
        program in program(Ingredients::ALL),
        mut history in vec(event(), 0..12),
        headed in any::<bool>(),
        messages in vec(message(), 0..6),
        persisted_len in 0..15usize,
    ) {
        let mut world = World::new(handler(&program));
        if headed {
            world.take(&world.on_the_way.clone(), true);
            history.splice(0..0, world.history.drain(..));
        }
        world.history = history;
        assert_survives(&world, &messages, persisted_len);
    }

    /// A sound history, damaged.
    #[test]
    fn damaged_histories_are_answered(
        program in program(Ingredients::ALL),
        numbers in vec(any::<u8>(), 1..30),
        damages in vec(damage(), 1..4),
        messages in vec(message(), 0..6),
        persisted_len in 0..50usize,
    ) {
        let mut world = World::new(handler(&program));
        lived(&mut world, &mut Choices::new(numbers));
        // An ended history is not run again: take its end away.
        world.history.retain(|event| !event.is_terminal());
        for damage in damages {
            apply(damage, &mut world.history);
        }
        assert_survives(&world, &messages, persisted_len);
    }
}
