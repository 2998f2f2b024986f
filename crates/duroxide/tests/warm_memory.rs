//! The memory that instances between their turns may take, by what the system says the process takes.
//! Alone in its file: no other test may share the process.
#![cfg(target_os = "linux")]
#![allow(missing_docs, clippy::unwrap_used, clippy::panic)]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use duroxide::providers::Provider;
use duroxide::providers::memory::MemoryProvider;
use duroxide::runtime::registry::ActivityRegistry;
use duroxide::runtime::{Runtime, RuntimeTuning, WarmMode, WarmOptions};
use duroxide::{
    ActivityContext, Client, OrchestrationContext, OrchestrationRegistry, RuntimeOptions,
};

const MIB: usize = 1 << 20;
const INSTANCES: usize = 100;
/// What each has in its history, once as input and once as result.
const PAYLOAD: usize = 2 * MIB;
const LIMIT: usize = 16 * MIB;
/// For everything else that grows: threads, caches, what the allocator keeps back.
const ALLOWANCE: usize = 64 * MIB;
const PATIENCE: Duration = Duration::from_secs(100);

static ENTERED: AtomicUsize = AtomicUsize::new(0);

async fn waits(ctx: OrchestrationContext, _: String) -> Result<String, String> {
    ENTERED.fetch_add(1, Ordering::SeqCst);
    ctx.schedule_activity("Echo", "x".repeat(PAYLOAD / 2)).await?;
    for round in 0.. {
        ctx.set_custom_status(round.to_string());
        ctx.schedule_wait("next").await;
    }
    Ok(String::new())
}

fn resident_bytes() -> usize {
    let pages = std::fs::read_to_string("/proc/self/statm").unwrap();
    pages.split(' ').nth(1).unwrap().parse::<usize>().unwrap() * 4096
}

async fn runtime(store: &Arc<dyn Provider>) -> Arc<Runtime> {
    let echo = |_: ActivityContext, input: String| async move { Ok(input) };
    let activities = ActivityRegistry::builder().register("Echo", echo).build();
    let orchestrations = OrchestrationRegistry::builder().register("Waits", waits).build();
    let warm = WarmOptions { mode: WarmMode::On, max_bytes: LIMIT, ..Default::default() };
    let tuning = RuntimeTuning { warm, ..RuntimeTuning::default() };
    let options = RuntimeOptions::default();
    let code = (activities, orchestrations);
    Runtime::start_with_tuning(Arc::clone(store), code, options, tuning).await
}

/// All instances have come so far.
async fn all_at(client: &Client, round: u64) {
    for n in 0..INSTANCES {
        let poll = Duration::from_millis(20);
        client.wait_for_status_change(&format!("i{n}"), round, poll, PATIENCE).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r1_66_after_a_restart_as_before_it_the_limit_holds() {
    let store: Arc<dyn Provider> = Arc::new(MemoryProvider::new());
    let client = Client::new(Arc::clone(&store));
    let first = runtime(&store).await;
    for n in 0..INSTANCES {
        client.start_orchestration(format!("i{n}"), "Waits", "").await.unwrap();
    }
    all_at(&client, 0).await;
    first.shutdown(None).await;

    // The store has it all; what comes now is what the runtime keeps beside it.
    let before = resident_bytes();
    let entered = ENTERED.load(Ordering::SeqCst);
    let second = runtime(&store).await;
    for round in 1..=2 {
        for n in 0..INSTANCES {
            client.raise_event(format!("i{n}"), "next", "").await.unwrap();
        }
        all_at(&client, round).await;
    }
    let grown = resident_bytes().saturating_sub(before);
    let replays = ENTERED.load(Ordering::SeqCst) - entered;
    assert!(INSTANCES <= replays, "every instance is replayed once: {replays}");
    assert!(grown <= LIMIT + ALLOWANCE, "{} MiB more than before", grown / MIB);
    second.shutdown(None).await;
}
