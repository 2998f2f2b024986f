//! Everything at once: stores that stumble at random, runtimes that are killed at random.

use std::sync::Arc;
use std::time::Duration;

use duroxide::providers::memory::{MemoryProvider, MemorySnapshot};
use duroxide::random::Random;
use duroxide::{Client, Either2, OrchestrationContext};
use tokio::time::sleep;

use crate::support::faults::{Faults, FaultyProvider};
use crate::support::look::count;
use crate::support::{WorldBuilder, world_on};

/// Two executions, a child, activities, a timer, a value.
async fn saga(ctx: OrchestrationContext, input: String) -> Result<String, String> {
    if input.is_empty() {
        ctx.set_kv_value("first", "1");
        let one = ctx.schedule_activity("A", "one").await?;
        return ctx.continue_as_new(one).await;
    }
    let kid = ctx.schedule_sub_orchestration("Echo", "kid");
    let (kid, two) = ctx.join2(kid, ctx.schedule_activity("A", "two")).await;
    ctx.schedule_timer(Duration::from_secs(3)).await;
    Ok(format!("{input} {} {} {}", ctx.get_kv_value("first").unwrap_or_default(), kid?, two?))
}

/// Many children, and children of children.
async fn fan(ctx: OrchestrationContext, input: String) -> Result<String, String> {
    let name = if input == "deep" { "Fan" } else { "Echo" };
    let kids = (0..4).map(|n| ctx.schedule_sub_orchestration(name, n.to_string()));
    let results = ctx.join(kids.collect()).await;
    Ok(results.into_iter().collect::<Result<Vec<_>, _>>()?.concat())
}

/// A child that is too slow, and is let go.
async fn impatient(ctx: OrchestrationContext, _input: String) -> Result<String, String> {
    let slow = ctx.schedule_sub_orchestration("Forever", "");
    let work = ctx.schedule_activity("A", "x").await?;
    match ctx.select2(slow, ctx.schedule_timer(Duration::from_secs(2))).await {
        Either2::First(never) => never,
        Either2::Second(()) => Ok(work),
    }
}

async fn letters(ctx: OrchestrationContext, _input: String) -> Result<String, String> {
    let mut read = String::new();
    while read.len() < 5 {
        read += &ctx.dequeue_event("q").await;
    }
    Ok(read)
}

fn cast(memory: &Arc<MemoryProvider>) -> WorldBuilder {
    world_on(memory.clone())
        // Lost answers of fetches count as attempts; here they are no sign of poison.
        .options(|options| options.max_attempts = 1_000)
        .echo("A")
        .orchestration("Saga", saga)
        .orchestration("Fan", fan)
        .orchestration("Impatient", impatient)
        .orchestration("Letters", letters)
        .orchestration("Echo", |_ctx, input| async move { Ok(input) })
        .orchestration("Forever", |ctx, _input| async move { Ok(ctx.schedule_wait("x").await) })
}

const RUNS: [(&str, &str, &str); 5] = [
    ("saga", "", "A:one 1 kid A:two"),
    ("fan", "", "0123"),
    ("deep", "deep", "0123012301230123"),
    ("impatient", "", "A:x"),
    ("letters", "", "abcde"),
];

fn orchestration(id: &str) -> &'static str {
    match id {
        "saga" => "Saga",
        "impatient" => "Impatient",
        "letters" => "Letters",
        _ => "Fan",
    }
}

/// Five pairs of lives amid faults, then one in peace. With faults that last instances may fail, but end.
async fn survives(seed: u64, per_mille: u64, for_good: bool) {
    let random = Random::seeded(seed);
    let memory = Arc::new(MemoryProvider::new());
    let client = Client::new(memory.clone());
    for (id, input, _) in RUNS {
        client.start_orchestration(id, orchestration(id), input).await.unwrap();
    }
    for letter in ["a", "b", "c", "d", "e"] {
        let faults = Faults::default();
        faults.chaos(&random, per_mille, for_good);
        if letter != "c" {
            faults.take_successors(); // R1.39, with the turns one by one for a while.
            faults.take_direct_turns(); // R1.64
            faults.take_timer_turns(); // R1.67
        }
        let store = |store| FaultyProvider::wrap(store, &faults);
        let world = cast(&memory).through(store).start().await;
        let other = cast(&memory).through(store).start().await;
        let life = Duration::from_millis(random.next_u64() % 15_000);
        sleep(life / 2).await;
        client.enqueue_event("letters", "q", letter).await.unwrap();
        sleep(life / 2).await;
        world.runtime.shutdown(Some(0)).await;
        other.runtime.shutdown(Some(random.next_u64() % 2_000)).await;
    }
    let world = cast(&memory).start().await;
    for (id, _, expected) in RUNS {
        let output = client.wait_for_orchestration_typed::<String>(id, Duration::from_secs(600));
        match output.await.unwrap() {
            Err(error) if for_good => assert_eq!(error, "infrastructure:fault: broken"),
            output => assert_eq!(output.as_deref(), Ok(expected), "{id}, seed {seed}"),
        }
    }
    sleep(Duration::from_secs(60)).await;
    assert_sound(&world.memory.snapshot(), seed);
    world.finish().await;
}

/// Nothing happened twice, nothing is left over.
fn assert_sound(store: &MemorySnapshot, seed: u64) {
    assert!(store.orchestrator_queue.is_empty() && store.worker_queue.is_empty(), "seed {seed}");
    assert!(store.dead_letters.is_empty(), "seed {seed}: {:?}", store.dead_letters);
    for (id, instance) in &store.instances {
        for execution in instance.executions.values() {
            let history = &execution.history;
            let ends = history.iter().filter(|event| event.is_terminal()).count();
            assert_eq!((count(history, "OrchestrationStarted"), ends), (1, 1), "{id}, seed {seed}");
            let ids: Vec<u64> = history.iter().map(|event| event.event_id).collect();
            assert_eq!(ids, Vec::from_iter(1..=history.len() as u64), "{id}, seed {seed}");
            let mut answered: Vec<u64> = history
                .iter()
                .filter(|event| !format!("{:?}", event.kind).contains("Cancel"))
                .filter_map(|event| event.source_event_id)
                .collect();
            let answers = answered.len();
            answered.sort_unstable();
            answered.dedup();
            assert_eq!(answered.len(), answers, "{id}, seed {seed}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn r1_11_r1_12_r7_127_stumbling_stores_and_kills_lose_and_double_nothing() {
    for seed in 0..20 {
        survives(seed, 50 * (seed % 10), false).await;
    }
}

#[tokio::test(start_paused = true)]
async fn r1_37_r7_51_refusals_end_instances_in_good_order_and_nobody_waits_for_ever() {
    for seed in 0..20 {
        survives(seed, 50 * (seed % 10), true).await;
    }
}
