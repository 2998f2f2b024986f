//! Many calls about the same instances, in all orders, from two nodes: nobody hears of deadlocks.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use duroxide::providers::{
    DeleteRefused, Provider, ProviderAdmin, ProviderError, TagFilter, WorkItem,
};
use duroxide::random::Random;
use duroxide_fleet::below;
use duroxide_fleet::torture::seed;
use duroxide_pg::PostgresProvider;

use crate::support::{TestSchema, stranger};

const INSTANCES: [&str; 4] = ["a", "b", "c", "d"];
const TASKS: u64 = 12;
/// For so long at least, and so many calls.
const TIME: Duration = Duration::from_secs(4);
const CALLS: usize = 200;

pub(crate) fn start(instance: &str) -> WorkItem {
    WorkItem::StartOrchestration {
        instance: instance.to_owned(),
        orchestration: "Main".to_owned(),
        input: String::new(),
        version: Some("1.0.0".to_owned()),
        parent_instance: None,
        parent_id: None,
        parent_execution_id: None,
        execution_id: 1,
    }
}

pub(crate) fn work(instance: &str) -> WorkItem {
    WorkItem::ActivityExecute {
        instance: instance.to_owned(),
        execution_id: 1,
        id: 2,
        name: "Work".to_owned(),
        input: String::new(),
        session_id: None,
        tag: None,
    }
}

/// Anything that a node may want of some instances.
async fn act(store: &PostgresProvider, random: &Random) -> Result<(), ProviderError> {
    let instance = INSTANCES[below(random, 4) as usize];
    let (lock, now) = (Duration::from_millis(200), Duration::ZERO);
    match below(random, 8) {
        0..=1 => store.enqueue_for_orchestrator(start(instance), None).await,
        2 => store.enqueue_for_worker(work(instance)).await,
        3 => match store.fetch_orchestration_item(lock, now, None).await? {
            Some((_, token, _)) if below(random, 2) == 0 => {
                tolerate(store.renew_orchestration_item_lock(&token, lock).await)?;
                tolerate(store.abandon_orchestration_item(&token, None, false).await)
            }
            _ => Ok(()),
        },
        4..=5 => match store.fetch_work_item(lock, now, None, &TagFilter::Any).await? {
            Some((_, token, _)) if below(random, 2) == 0 => {
                let done = WorkItem::ActivityCompleted {
                    instance: instance.to_owned(),
                    execution_id: 1,
                    id: 2,
                    result: String::new(),
                };
                tolerate(store.ack_work_item(&token, Some(done)).await)
            }
            Some((_, token, _)) => tolerate(store.abandon_work_item(&token, None, false).await),
            None => Ok(()),
        },
        6 => {
            let mut ids: Vec<String> = INSTANCES.iter().map(|&id| id.to_owned()).collect();
            ids.rotate_left(below(random, 4) as usize);
            tolerate(store.delete_instances_atomic(&ids, true).await.map(drop))
        }
        _ => match store.try_delete_instance(instance, true).await {
            Ok(Ok(_) | Err(DeleteRefused::NotFound | DeleteRefused::StillRunning)) => Ok(()),
            Ok(Err(refusal)) => panic!("{refusal:?}"),
            Err(error) => Err(error),
        },
    }
}

/// Locks are lost to others here.
fn tolerate(result: Result<(), ProviderError>) -> Result<(), ProviderError> {
    match result {
        Err(error) if !error.is_retryable() => Ok(()),
        other => other,
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nobody_hears_of_deadlocks() {
    let Some(schema) = TestSchema::new() else { return };
    let nodes = [Arc::new(schema.open().await), Arc::new(schema.open().await)];
    let seed = seed();
    let calls = Arc::new(AtomicUsize::new(0));
    let tasks = (0..TASKS).map(|task| {
        let store = Arc::clone(&nodes[(task % 2) as usize]);
        let (random, calls) = (Random::seeded(seed + task), Arc::clone(&calls));
        tokio::spawn(async move {
            let began = Instant::now();
            while began.elapsed() < TIME || calls.load(Ordering::Relaxed) < CALLS {
                let result = act(&store, &random).await;
                assert!(result.is_ok(), "{result:?}");
                calls.fetch_add(1, Ordering::Relaxed);
            }
        })
    });
    let tasks: Vec<_> = tasks.collect();
    for task in tasks {
        task.await.unwrap();
    }
    let count = "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()";
    let row = stranger(&schema.config()).await.query_one(count, &[]).await.unwrap();
    println!("{calls:?} calls; {} deadlocks on this server so far", row.get::<_, i64>(0));
}
