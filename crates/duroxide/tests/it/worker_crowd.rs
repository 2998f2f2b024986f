//! Many activities at once, on several threads and nodes: what holds for one holds for all.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use duroxide::providers::memory::MemoryProvider;
use duroxide::{Either2, OrchestrationContext, OrchestrationStatus};

use crate::support::{World, WorldBuilder, kinds, world, world_on};

/// Sums what ten activities answer.
async fn sum(ctx: OrchestrationContext, _: String) -> Result<String, String> {
    let calls = (0..10).map(|n: u64| ctx.schedule_activity_typed::<u64, u64>("Double", &n));
    let answers = ctx.join(calls.collect()).await;
    let sum: u64 = answers.into_iter().collect::<Result<Vec<u64>, String>>()?.into_iter().sum();
    Ok(sum.to_string())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn r1_11_every_activity_of_many_is_done_and_counted_once() {
    let (memory, runs) = (Arc::new(MemoryProvider::new()), Arc::new(AtomicU64::new(0)));
    let mut nodes = Vec::new();
    for _ in 0..2 {
        let runs = Arc::clone(&runs);
        let node = world_on(Arc::clone(&memory))
            .activities(|activities| {
                activities.register_typed("Double", move |_ctx, n: u64| {
                    runs.fetch_add(1, Ordering::SeqCst);
                    async move { Ok(2 * n) }
                })
            })
            .orchestration("Sum", sum)
            .options(|options| {
                options.worker_concurrency = 4;
                options.orchestration_concurrency = 4;
            });
        nodes.push(node.start().await);
    }
    let instances: Vec<String> = (0..30).map(|n| format!("m{n}")).collect();
    for instance in &instances {
        nodes[0].begin(instance, "Sum", "").await;
    }
    for instance in &instances {
        assert_eq!(nodes[1].output(instance).await, "90");
    }
    assert_eq!(runs.load(Ordering::SeqCst), 300);
    let mut counted = (0, 0, 0);
    for node in nodes {
        let runtime = Arc::clone(&node.runtime);
        node.finish().await;
        let counts = runtime.metrics_snapshot().unwrap();
        counted.0 += counts.activity_success;
        counted.1 += counts.orch_starts;
        counted.2 += counts.orch_completions;
    }
    assert_eq!(counted, (300, 30, 30)); // R9.20, R9.21
}

/// How many activities run now, by session, and the most that ever did.
#[derive(Default)]
struct Crowd {
    running: HashMap<String, usize>,
    most_of_one: usize,
    most_sessions: usize,
}

fn crowded(memory: &Arc<MemoryProvider>, crowd: &Arc<Mutex<Crowd>>) -> WorldBuilder {
    let crowd = Arc::clone(crowd);
    world_on(Arc::clone(memory))
        .activity("Step", move |ctx, _| {
            let crowd = Arc::clone(&crowd);
            async move {
                let session = ctx.session_id().unwrap().to_owned();
                {
                    let mut crowd = crowd.lock().unwrap();
                    *crowd.running.entry(session.clone()).or_default() += 1;
                    crowd.most_of_one = crowd.most_of_one.max(crowd.running[&session]);
                    crowd.most_sessions = crowd.most_sessions.max(crowd.running.len());
                }
                for _ in 0..10 {
                    tokio::task::yield_now().await;
                }
                let mut crowd = crowd.lock().unwrap();
                *crowd.running.get_mut(&session).unwrap() -= 1;
                crowd.running.retain(|_, count| *count > 0);
                Ok(String::new())
            }
        })
        .orchestration("Main", |ctx, session| async move {
            let steps = (0..10).map(|_| ctx.schedule_activity_on_session("Step", "", &session));
            let answers = ctx.join(steps.collect()).await;
            Ok(answers.into_iter().filter(Result::is_ok).count().to_string())
        })
}

async fn run_sessions(node: &World, sessions: usize) {
    let instances: Vec<String> = (0..sessions).map(|n| format!("s{n}")).collect();
    for instance in &instances {
        node.begin(instance, "Main", instance).await;
    }
    for instance in &instances {
        assert_eq!(node.output(instance).await, "10");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn r7_70_no_session_ever_runs_twice_at_once() {
    let (memory, crowd) = (Arc::new(MemoryProvider::new()), Arc::default());
    let options = |options: &mut duroxide::RuntimeOptions| options.worker_concurrency = 3;
    let first = crowded(&memory, &crowd).options(options).start().await;
    let second = crowded(&memory, &crowd).options(options).start().await;
    run_sessions(&first, 8).await;
    assert_eq!(crowd.lock().unwrap().most_of_one, 1);
    first.finish().await;
    second.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn r7_69_never_more_sessions_than_allowed() {
    let (memory, crowd) = (Arc::new(MemoryProvider::new()), Arc::default());
    let node = crowded(&memory, &crowd)
        .options(|options| {
            options.worker_concurrency = 4;
            options.max_sessions_per_runtime = 2;
            options.worker_node_id = Some("n1".to_owned());
        })
        .start()
        .await;
    run_sessions(&node, 5).await;
    assert!(crowd.lock().unwrap().most_sessions <= 2);
    node.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn r5_27_a_completion_and_its_cancellation_may_meet_in_any_order() {
    let world = world()
        .activity("A", |_ctx, _| async move {
            tokio::time::sleep(Duration::from_millis(2)).await;
            Ok("answer".to_owned())
        })
        .orchestration("Main", |ctx, _| async move {
            let call = ctx.schedule_activity("A", "");
            let timer = ctx.schedule_timer(Duration::from_millis(2));
            match ctx.select2(call, timer).await {
                Either2::First(answer) => answer,
                Either2::Second(()) => Ok("timeout".to_owned()),
            }
        })
        .options(|options| {
            options.worker_concurrency = 8;
            options.orchestration_concurrency = 4;
        })
        .start()
        .await;
    let instances: Vec<String> = (0..50).map(|n| format!("m{n}")).collect();
    for instance in &instances {
        world.begin(instance, "Main", "").await;
    }
    for instance in &instances {
        let OrchestrationStatus::Completed { output, .. } = world.ended(instance).await else {
            panic!("{instance} failed")
        };
        let history = kinds(&world.history(instance).await);
        let answered = history.iter().any(|kind| kind == "ActivityCompleted");
        assert!(answered || output == "timeout", "{output}: {history:?}");
    }
    world.finish().await;
}
