//! Turns per second on the memory provider.
//!
//! `cargo bench -p duroxide --bench turns`
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used)]

use std::sync::Arc;
use std::time::{Duration, Instant};

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use duroxide::providers::memory::MemoryProvider;
use duroxide::runtime::Runtime;
use duroxide::runtime::registry::ActivityRegistry;
use duroxide::{
    ActivityContext, Client, OrchestrationContext, OrchestrationRegistry, RuntimeOptions,
};

const PATIENCE: Duration = Duration::from_secs(60);

async fn runtime(store: Arc<MemoryProvider>) -> Arc<Runtime> {
    let activities = ActivityRegistry::builder()
        .register("Work", |_ctx: ActivityContext, input: String| async move { Ok(input) })
        .build();
    let orchestrations = OrchestrationRegistry::builder()
        .register("Chain", |ctx: OrchestrationContext, input: String| async move {
            for step in 0..input.parse().map_err(|_| "a number, please")? {
                ctx.schedule_activity("Work", format!("{step}")).await?;
            }
            Ok(input)
        })
        .register("FanOut", |ctx: OrchestrationContext, input: String| async move {
            let width: usize = input.parse().map_err(|_| "a number, please")?;
            let work = (0..width).map(|n| ctx.schedule_activity("Work", format!("{n}"))).collect();
            ctx.join(work).await.into_iter().collect::<Result<Vec<_>, _>>()?;
            Ok(input)
        })
        .build();
    let options = RuntimeOptions {
        orchestration_concurrency: 8,
        worker_concurrency: 8,
        ..RuntimeOptions::default()
    };
    Runtime::start_with_options(store, activities, orchestrations, options).await
}

/// Runs `instances` orchestrations at once, `rounds` times, on a fresh store each; the time taken.
async fn run(rounds: u64, instances: usize, name: &str, input: &str) -> Duration {
    let mut total = Duration::ZERO;
    for _ in 0..rounds {
        let store = Arc::new(MemoryProvider::new());
        let runtime = runtime(store.clone()).await;
        let client = Client::new(store);
        let began = Instant::now();
        for n in 0..instances {
            client.start_orchestration(format!("i{n}"), name, input).await.unwrap();
        }
        for n in 0..instances {
            client.wait_for_orchestration(&format!("i{n}"), PATIENCE).await.expect("it ends");
        }
        total += began.elapsed();
        runtime.shutdown(None).await;
    }
    total
}

fn benches(c: &mut Criterion) {
    let tokio = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let mut group = c.benchmark_group("memory");
    group.sample_size(10);
    // Instances, name, size, turns in all: one to start, one per completion of a chain.
    for (label, instances, name, size, turns) in [
        ("hello_one_at_a_time", 1, "Chain", 1, 2),
        ("hello_x500", 500, "Chain", 1, 1_000),
        ("chain_100", 1, "Chain", 100, 101),
        ("chain_1000", 1, "Chain", 1_000, 1_001),
        ("fan_out_1000", 1, "FanOut", 1_000, 1_001),
    ] {
        group.throughput(Throughput::Elements(turns));
        group.bench_function(label, |b| {
            let size = size.to_string();
            b.iter_custom(|rounds| tokio.block_on(run(rounds, instances, name, &size)));
        });
    }
    group.finish();
}

criterion_group!(all, benches);
criterion_main!(all);
