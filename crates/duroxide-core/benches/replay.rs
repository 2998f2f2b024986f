//! Cost of replaying one turn over a long history, and of a warm turn after many. Per event, and per
//! turn, it must stay flat.
//!
//! `cargo bench -p duroxide-core --bench replay`
#![allow(missing_docs, clippy::unwrap_used)]

use std::collections::HashMap;
use std::hint::black_box;
use std::sync::Arc;
use std::time::Duration;

use criterion::{BatchSize, BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use duroxide_core::context::{FnOrchestration, OrchestrationContext, OrchestrationHandler};
use duroxide_core::model::{Event, EventKind, WorkItem};
use duroxide_core::replay::{
    ForeignWait, HistoryManager, ReplayEngine, Resumption, Suspended, Turn, TurnOutcome,
    TurnResult, WorkItemReader, run_turn_and_keep,
};

/// One shape of orchestration with a history of it.
struct Subject {
    name: &'static str,
    handler: Arc<dyn OrchestrationHandler>,
    history: fn(usize) -> Vec<Event>,
}

fn event(id: u64, source: Option<u64>, kind: EventKind) -> Event {
    Event::with_event_id(id, "bench", 1, source, kind)
}

fn started(input: usize) -> Event {
    let kind = EventKind::OrchestrationStarted {
        name: "Bench".into(),
        version: "1.0.0".into(),
        input: input.to_string(),
        parent_instance: None,
        parent_id: None,
        parent_execution_id: None,
        carry_forward_events: None,
        initial_custom_status: None,
    };
    event(1, None, kind)
}

fn scheduled() -> EventKind {
    EventKind::ActivityScheduled {
        name: "Work".into(),
        input: "input".into(),
        session_id: None,
        tag: None,
    }
}

fn completed() -> EventKind {
    EventKind::ActivityCompleted { result: "result".into() }
}

/// started, then (scheduled, completed) over and over; the last one is still open.
fn chain(events: usize) -> Vec<Event> {
    let steps = events as u64 / 2;
    let mut history = vec![started(usize::MAX)];
    for step in 0..steps {
        history.push(event(2 + step * 2, None, scheduled()));
        history.push(event(3 + step * 2, Some(2 + step * 2), completed()));
    }
    history.push(event(2 + steps * 2, None, scheduled()));
    history
}

/// All scheduled at once, all but one completed.
fn fan_out(events: usize) -> Vec<Event> {
    let width = events as u64 / 2;
    let mut history = vec![started(width as usize)];
    history.extend((0..width).map(|n| event(2 + n, None, scheduled())));
    history.extend((1..width).map(|n| event(1 + width + n, Some(1 + n), completed())));
    history
}

/// Messages arrive and are read one by one.
fn mailbox(events: usize) -> Vec<Event> {
    let messages = events as u64 / 2;
    let mut history = vec![started(usize::MAX)];
    for n in 0..messages {
        let subscribed = EventKind::QueueSubscribed { name: "q".into() };
        let delivered = EventKind::QueueEventDelivered { name: "q".into(), data: "m".into() };
        history.push(event(2 + n * 2, None, subscribed));
        history.push(event(3 + n * 2, None, delivered));
    }
    history
}

async fn sequential(ctx: OrchestrationContext, count: usize) -> Result<String, String> {
    for _ in 0..count {
        ctx.schedule_activity("Work", "input").await?;
    }
    Ok("done".into())
}

async fn joined(ctx: OrchestrationContext, count: usize) -> Result<String, String> {
    let all = (0..count).map(|_| ctx.schedule_activity("Work", "input")).collect();
    ctx.join(all).await.into_iter().collect::<Result<Vec<_>, _>>()?;
    Ok("done".into())
}

async fn parallel(ctx: OrchestrationContext, count: usize) -> Result<String, String> {
    let all: Vec<_> = (0..count).map(|_| ctx.schedule_activity("Work", "input")).collect();
    for one in all {
        one.await?;
    }
    Ok("done".into())
}

async fn reading(ctx: OrchestrationContext, count: usize) -> Result<String, String> {
    for _ in 0..count {
        ctx.dequeue_event("q").await;
    }
    Ok("done".into())
}

fn subjects() -> Vec<Subject> {
    let count = |input: String| input.parse().unwrap_or(usize::MAX);
    vec![
        Subject {
            name: "chain",
            handler: Arc::new(FnOrchestration(move |ctx, input| sequential(ctx, count(input)))),
            history: chain,
        },
        Subject {
            name: "fan_out",
            handler: Arc::new(FnOrchestration(move |ctx, input| parallel(ctx, count(input)))),
            history: fan_out,
        },
        Subject {
            name: "join",
            handler: Arc::new(FnOrchestration(move |ctx, input| joined(ctx, count(input)))),
            history: fan_out,
        },
        Subject {
            name: "mailbox",
            handler: Arc::new(FnOrchestration(move |ctx, input| reading(ctx, count(input)))),
            history: mailbox,
        },
    ]
}

/// A turn that brings nothing new but an event no code waits for: pure replay. The engine comes back
/// so that freeing the history, which the caller allocated, is not counted.
fn replay(
    handler: &Arc<dyn OrchestrationHandler>,
    history: Vec<Event>,
    input: String,
) -> ReplayEngine {
    let mut engine = ReplayEngine::new("bench".into(), 1, history);
    engine.prep_completions(vec![WorkItem::ExternalRaised {
        instance: "bench".into(),
        name: "nobody".into(),
        data: String::new(),
    }]);
    let result = engine.execute_orchestration(
        Arc::clone(handler),
        input,
        "Bench".into(),
        "1.0.0".into(),
        "bench",
    );
    assert!(matches!(result, TurnResult::Continue), "{result:?}");
    engine
}

fn benches(c: &mut Criterion) {
    for Subject { name, handler, history } in subjects() {
        let mut group = c.benchmark_group(format!("replay/{name}"));
        group.sample_size(10);
        // Half of them are schedules: a join of 5, 500, 10 000 and 100 000.
        for events in [10, 1_000, 20_000, 200_000] {
            let recorded = history(events);
            let EventKind::OrchestrationStarted { input, .. } = &recorded[0].kind else { continue };
            group.throughput(Throughput::Elements(recorded.len() as u64));
            group.bench_with_input(
                BenchmarkId::from_parameter(events),
                &recorded,
                |b, recorded| {
                    b.iter_batched(
                        || recorded.clone(),
                        |recorded| black_box(replay(&handler, recorded, input.clone())),
                        BatchSize::PerIteration,
                    );
                },
            );
        }
        group.finish();
    }
}

/// Races an activity against a timer, over and over; the timer loses and is dropped.
async fn racing(ctx: OrchestrationContext, _: String) -> Result<String, String> {
    loop {
        let work = ctx.schedule_activity("Work", "input");
        ctx.select2(work, ctx.schedule_timer(Duration::from_secs(3600))).await;
    }
}

/// Code that was kept, after so many races.
struct Races {
    kept: Option<Suspended>,
    open: u64,
}

impl Races {
    fn after(turns: usize) -> Self {
        let start = WorkItem::StartOrchestration {
            instance: "bench".into(),
            orchestration: "Bench".into(),
            input: String::new(),
            version: None,
            parent_instance: None,
            parent_id: None,
            parent_execution_id: None,
            execution_id: 1,
        };
        let nothing = HistoryManager::from_owned(Vec::new());
        let (outcome, kept) = run_turn_and_keep(Turn {
            instance: "bench".into(),
            execution_id: 1,
            history: Vec::new(),
            messages: WorkItemReader::from_owned(vec![start], &nothing, "bench"),
            handler: Arc::new(FnOrchestration(racing)),
            version: "1.0.0".into(),
            kv_snapshot: HashMap::new(),
            now_ms: 1,
            system_calls: None,
            foreign_wait: ForeignWait::Fail,
            parent_execution_fallback: 1,
        });
        let mut races = Self { kept, open: asked(&outcome) };
        (0..turns).for_each(|_| races.next());
        races
    }

    fn next(&mut self) {
        let completed = WorkItem::ActivityCompleted {
            instance: "bench".into(),
            execution_id: 1,
            id: self.open,
            result: "result".into(),
        };
        let next = Resumption { messages: vec![completed], now_ms: 1, system_calls: None };
        let (outcome, kept) = self.kept.take().unwrap().resume(next);
        *self = Self { kept, open: asked(&outcome) };
    }
}

/// The activity a turn asked for.
fn asked(outcome: &TurnOutcome) -> u64 {
    match outcome.activities.first() {
        Some(WorkItem::ActivityExecute { id, .. }) => *id,
        _ => 0,
    }
}

/// A thousand turns of code that has dropped so many futures before. It must not matter how many.
fn dropped(c: &mut Criterion) {
    const TURNS: usize = 1_000;
    let mut group = c.benchmark_group("warm/dropped");
    group.sample_size(10).throughput(Throughput::Elements(TURNS as u64));
    for futures in [0, 10_000, 100_000] {
        group.bench_function(BenchmarkId::from_parameter(futures), |b| {
            b.iter_batched(
                || Races::after(futures),
                |mut races| {
                    (0..TURNS).for_each(|_| races.next());
                    races
                },
                BatchSize::PerIteration,
            );
        });
    }
    group.finish();
}

criterion_group!(all, benches, dropped);
criterion_main!(all);
