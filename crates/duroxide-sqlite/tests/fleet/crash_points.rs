//! A process that dies at a named point of the writer, at its k-th pass, for every point and many k;
//! what it leaves behind, another process brings to its end.

use std::collections::HashSet;
use std::os::unix::process::ExitStatusExt;
use std::sync::{Arc, Mutex};

use duroxide::random::Random;
use duroxide::runtime::Runtime;
use duroxide_fleet::torture::seed;
use duroxide_fleet::{
    Attendant, Folder, Program, Stage, Step, activities, alone, assert_sound, attend_all, below,
    on_tokio, orchestrations, short_leases, tried_starts, unattended,
};

use crate::store::SQLITE;

const POINTS: [&str; 4] = ["before-begin", "between-ops", "before-commit", "after-commit"];
const SIGABRT: i32 = 6;
/// Scenarios at a time: they wait more than they work.
const AT_ONCE: usize = 3;

/// All kinds of steps, and three ways for an instance to end.
fn programs() -> Vec<(String, Program)> {
    let first = vec![
        Step::Work { value: 1, ms: 0 },
        Step::FanOut { value: 2, width: 3 },
        Step::Timer { ms: 5 },
        Step::Put { key: 1, value: 3 },
        Step::ContinueAsNew,
        Step::Event { value: 4 },
        Step::Queue { messages: 2 },
    ];
    let second = vec![
        Step::Child(vec![Step::Work { value: 5, ms: 0 }]),
        Step::Race { value: 6 },
        Step::Retry { value: 7, failures: 1 },
        Step::OnSession { value: 8, session: 1 },
        Step::Get { key: 1 },
    ];
    let named = |name: &str, steps| (name.to_owned(), Program::new(steps));
    vec![
        named("first", first),
        named("second", second),
        named("cancelled", vec![Step::Never]),
        named("deleted", vec![]),
    ]
}

/// A runtime and its client in one process, from the first call to the last.
pub(crate) async fn play_scenario(stage: &Stage) {
    play(stage, programs(), HashSet::new()).await;
}

async fn play(stage: &Stage, programs: Vec<(String, Program)>, done: HashSet<String>) {
    let (store, options) = (stage.store().await, short_leases());
    let handlers = (activities(stage), orchestrations(stage));
    let runtime = Runtime::start_with_options(store, handlers.0, handlers.1, options).await;
    let attendant = Arc::new(Attendant::new(stage, done).await);
    attend_all(&attendant, programs).await;
    attendant.delete("deleted").await.unwrap();
    runtime.shutdown(Some(2_000)).await;
}

/// Lets a process die at the k-th pass of a point; whether it came so far.
fn dies(point: &str, pass: u64) -> bool {
    let folder = Folder::new();
    let stage = Stage::new(&SQLITE, folder.path());
    let crash = format!("{point}:{pass}");
    let mut process = stage.start("scenario", &[("DUROXIDE_CRASH_AT", &crash)]);
    let status = process.wait();
    let died = status.signal() == Some(SIGABRT);
    assert!(died || status.success(), "{crash}: {status}\n{}", process.read_log());
    stage.journal.note(format_args!("KILL {}", process.id()));

    // What was tried is finished; what the dead one never came to, begins here.
    on_tokio(async {
        let lines = stage.journal.read();
        let tried: HashSet<String> = tried_starts(&lines).into_iter().map(|(id, _)| id).collect();
        let (mut open, done) = unattended(&lines);
        open.extend(programs().into_iter().filter(|(id, _)| !tried.contains(id)));
        play(&stage, open, done).await;
    });
    assert_sound(&stage, &crash);
    died
}

#[test]
fn a_process_that_dies_at_any_point_of_the_writer_loses_nothing() {
    let _turn = alone();
    let seed = seed();
    // Each point with its next pass: the first ones all, then every second or third.
    let random = Random::seeded(seed);
    let next: Mutex<Vec<(&str, u64)>> = Mutex::new(POINTS.map(|point| (point, 0)).to_vec());
    let fired = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                loop {
                    let Some((point, pass)) = next.lock().unwrap().pop() else { return };
                    if dies(point, pass) {
                        fired.lock().unwrap().push(point);
                        let gap = 1 + below(&random, if pass < 8 { 1 } else { 4 });
                        next.lock().unwrap().insert(0, (point, pass + gap));
                    }
                }
            });
        }
    });
    let fired = fired.into_inner().unwrap();
    for point in POINTS {
        let count = fired.iter().filter(|fired| **fired == point).count();
        println!("{point}: died {count} times");
        assert!(0 < count, "{point} was never passed");
    }
}
