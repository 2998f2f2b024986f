//! Names that are used again: instances are deleted while they run, with children that have not begun,
//! and others are started under their names, while workers are killed. Every answer belongs to the input
//! of its own life (R6.68).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use duroxide::random::Random;
use duroxide::{Client, ClientError, OrchestrationStatus};

use crate::folder::Folder;
use crate::process::Process;
use crate::programs::{Program, Step, below};
use crate::roles::{Stage, on_tokio};
use crate::store::Store;
use crate::torture::seed;

/// Few, so that each is used often.
const NAMES: u64 = 6;
const WORKERS: usize = 2;
/// Longest time a life may take, kills included.
const PATIENCE: Duration = Duration::from_secs(120);
const LOOK: Duration = Duration::from_millis(2);

/// How many lives have come to their end, and how many were deleted before.
#[derive(Debug, Default)]
struct Lives {
    ended: u64,
    cut: u64,
}

/// Uses a few names again and again until so many workers were killed.
pub fn names_are_used_again(kind: &'static dyn Store, kills: usize) {
    let seed = seed();
    let folder = Folder::new();
    let stage = Stage::new(kind, folder.path());
    let random = Random::seeded(seed);
    let enough = Arc::new(AtomicBool::new(false));
    let mut workers: Vec<Process> = (0..WORKERS).map(|_| stage.start_worker(&[])).collect();
    let lives = std::thread::scope(|scope| {
        let clients = scope.spawn(|| on_tokio(use_all(&stage, seed, &enough)));
        for kill in 0..kills {
            std::thread::sleep(Duration::from_millis(100 + below(&random, 500)));
            if clients.is_finished() {
                break; // One of them has failed.
            }
            workers[kill % WORKERS].kill();
            workers[kill % WORKERS] = stage.start_worker(&[]);
        }
        enough.store(true, Ordering::SeqCst);
        clients.join().unwrap()
    });
    workers.into_iter().for_each(Process::finish);
    println!("{NAMES} names, {kills} kills: {lives:?}");
    assert!(NAMES <= lives.ended && NAMES <= lives.cut, "seed {seed}: {lives:?}");
}

/// All names at once; nothing is left of any of them.
async fn use_all(stage: &Stage, seed: u64, enough: &Arc<AtomicBool>) -> Lives {
    let client = Client::new(stage.store().await);
    let users = (0..NAMES).map(|number| {
        let (client, enough) = (client.clone(), Arc::clone(enough));
        let random = Random::seeded(seed.wrapping_add(1 + number));
        tokio::spawn(async move {
            let mut lives = Lives::default();
            while !enough.load(Ordering::SeqCst) {
                live(&client, &format!("name-{number}"), &random, &mut lives).await;
            }
            lives
        })
    });
    let mut all = Lives::default();
    for user in users.collect::<Vec<_>>() {
        let lives = user.await.unwrap();
        all.ended += lives.ended;
        all.cut += lives.cut;
    }
    assert_eq!(client.list_all_instances().await.unwrap(), [""; 0], "seed {seed}");
    let depths = client.get_queue_depths().await.unwrap();
    let left = (depths.orchestrator_queue, depths.worker_queue);
    assert_eq!(left, (0, 0), "seed {seed}: messages and activities of no instance");
    all
}

/// One life: to its end, or cut short.
async fn live(client: &Client, name: &str, random: &Random, lives: &mut Lives) {
    let program = program(random);
    let expected = program.expected().unwrap().to_string();
    let input = serde_json::to_string(&program).unwrap();
    tried(|| client.start_orchestration(name, "Program", input.as_str())).await;
    if below(random, 3) == 0 {
        let status = client.wait_for_orchestration(name, PATIENCE).await.unwrap();
        let OrchestrationStatus::Completed { output, .. } = status else {
            panic!("{name}, started with {input}: {status:?}")
        };
        assert_eq!(output, expected, "{name}, started with {input}");
        lives.ended += 1;
    } else {
        tokio::time::sleep(Duration::from_millis(below(random, 80))).await;
        lives.cut += 1;
    }
    // What has not begun cannot be deleted yet.
    tried(|| client.delete_instance(name, true)).await;
}

/// Children, with values that no other life has.
fn program(random: &Random) -> Program {
    let work = || Step::Work { value: below(random, 1_000_000), ms: below(random, 10) };
    let child = || Step::Child(vec![work()]);
    Program::new(vec![child(), work(), Step::Child(vec![child(), work()]), child()])
}

/// Makes a call until it succeeds.
async fn tried<T, F: Future<Output = Result<T, ClientError>>>(call: impl Fn() -> F) {
    let began = Instant::now();
    while let Err(error) = call().await {
        assert!(began.elapsed() < PATIENCE, "{error}");
        tokio::time::sleep(LOOK).await;
    }
}
