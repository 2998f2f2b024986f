//! A fleet under faults: workers and clients are killed and stopped at random while work goes on.

use std::time::{Duration, Instant};

use duroxide::random::Random;

use crate::attend::{finish_orphans, tried_starts};
use crate::check;
use crate::client::{AT_ONCE, SEED};
use crate::folder::Folder;
use crate::journal::now_ms;
use crate::process::{Process, SOON};
use crate::programs::below;
use crate::repeats::repeats;
use crate::roles::{Stage, on_tokio};
use crate::store::Store;
use crate::takeover::SHORT;

/// If set, how many seconds the faults last.
const SOAK: &str = "DUROXIDE_SOAK_SECONDS";

/// How a fleet is treated.
#[derive(Debug, Clone, Copy)]
pub struct Siege {
    /// Processes that work; one more starts programs.
    pub workers: usize,
    /// Faults end after so many kills, however long that takes.
    pub kills: usize,
}

impl Siege {
    /// So many kills, or as many as fit into the time that `DUROXIDE_SOAK_SECONDS` names: a kill
    /// comes about every three quarters of a second.
    pub fn of(workers: usize, kills: usize) -> Self {
        let soak = std::env::var(SOAK).ok().and_then(|seconds| seconds.parse::<usize>().ok());
        Self { workers, kills: soak.map_or(kills, |seconds| seconds * 4 / 3) }
    }
}

/// A place in the fleet and the process in it.
struct Place {
    role: &'static str,
    process: Option<Process>,
    /// When a dead one is replaced.
    restart_at: Instant,
    /// When a stopped one goes on.
    resume_at: Option<Instant>,
}

struct Fleet<'a> {
    stage: &'a Stage,
    siege: Siege,
    random: Random,
    places: Vec<Place>,
    kills: usize,
    pauses: usize,
}

impl Fleet<'_> {
    /// Replaces killed processes, resumes stopped ones, looks at the store.
    fn tend(&mut self) {
        let now = Instant::now();
        for place in &mut self.places {
            if place.process.is_none() && place.restart_at <= now {
                let seed = (self.random.next_u64() % 1_000_000).to_string();
                let settings = [(SEED, seed.as_str()), (AT_ONCE, "24"), SHORT];
                place.process = Some(self.stage.start(place.role, &settings));
            }
            if let (Some(process), Some(at)) = (&place.process, place.resume_at)
                && at <= now
            {
                self.stage.journal.note(format_args!("CONT {}", process.id()));
                process.resume();
                place.resume_at = None;
            }
        }
        self.stage.kind.watch(&self.stage.folder);
    }

    /// Kills a process, or stops it for longer than its leases.
    fn strike(&mut self) {
        let chosen = below(&self.random, 10) as usize;
        let workers = self.siege.workers;
        let chosen = if chosen == 9 { workers } else { chosen % workers };
        // Chance alone leaves out pauses altogether in some runs.
        let pauses = below(&self.random, 5) == 0 || self.pauses == 0 && 5 <= self.kills;
        let pause = Duration::from_millis(1_200 + below(&self.random, 2_800));
        let restart = Duration::from_millis(below(&self.random, 400));
        let place = &mut self.places[chosen];
        let Some(process) = &mut place.process else { return };
        if pauses && place.role == "worker" {
            if place.resume_at.is_none() {
                self.stage.journal.note(format_args!("STOP {}", process.id()));
                process.pause();
                place.resume_at = Some(Instant::now() + pause);
                self.pauses += 1;
            }
            return;
        }
        self.stage.journal.note(format_args!("KILL {}", process.id()));
        process.kill();
        place.process = None;
        place.resume_at = None;
        place.restart_at = Instant::now() + restart;
        self.kills += 1;
    }

    fn rage(&mut self) {
        while self.kills < self.siege.kills {
            let calm = Duration::from_millis(300 + below(&self.random, 900));
            let until = Instant::now() + calm;
            while Instant::now() < until {
                self.tend();
                std::thread::sleep(Duration::from_millis(5));
            }
            self.strike();
        }
    }

    /// Resumes and replaces all processes and lets all work end.
    fn drain(&mut self) {
        for place in &mut self.places {
            let now = Instant::now();
            place.restart_at = now;
            place.resume_at = place.resume_at.map(|_| now);
        }
        self.tend();
        // The client ends when it has seen its programs through; then what killed ones left.
        self.places.pop().unwrap().process.unwrap().finish();
        on_tokio(finish_orphans(self.stage));
        let began = Instant::now();
        while self.stage.kind.open_work(&self.stage.folder) != 0 {
            assert!(began.elapsed() < SOON, "work is left over");
            std::thread::sleep(Duration::from_millis(20));
        }
        self.tend();
    }
}

/// The seed of this run: a given one, or a fresh one, which is printed.
pub fn seed() -> u64 {
    let given = std::env::var("DUROXIDE_SEED").ok().and_then(|seed| seed.parse().ok());
    let seed = given.unwrap_or_else(now_ms);
    println!("repeat with DUROXIDE_SEED={seed}");
    seed
}

/// Killed and stopped workers lose nothing and double nothing.
pub fn lay_siege(kind: &'static dyn Store, siege: Siege) {
    let seed = seed();
    let folder = Folder::new();
    let stage = Stage::new(kind, folder.path());
    let now = Instant::now();
    let place = |role| Place { role, process: None, restart_at: now, resume_at: None };
    let roles = std::iter::repeat_n("worker", siege.workers).chain(["client"]);
    let mut fleet = Fleet {
        stage: &stage,
        siege,
        random: Random::seeded(seed),
        places: roles.map(place).collect(),
        kills: 0,
        pauses: 0,
    };
    fleet.rage();
    let rage = now.elapsed();
    fleet.drain();
    let Fleet { places, kills, pauses, .. } = fleet;
    let processes = places.into_iter().filter_map(|place| place.process);
    processes.for_each(Process::finish);

    report(&stage, (kills, pauses), (rage, now.elapsed()));
    assert!(0 < pauses, "seed {seed}: {kills} kills and no process was stopped");
    check::assert_sound(&stage, &format!("DUROXIDE_SEED={seed}"));
}

fn report(stage: &Stage, (kills, pauses): (usize, usize), (rage, all): (Duration, Duration)) {
    let lines = stage.journal.read();
    let repeats = repeats(&stage.kind.read(&stage.folder), &lines);
    let mut recovery: Vec<u64> = repeats.iter().filter_map(|repeat| repeat.recovery_ms).collect();
    recovery.sort_unstable();
    let at = |share: usize| {
        recovery.get((recovery.len() * share / 100).min(recovery.len().saturating_sub(1)))
    };
    println!(
        "{} programs, {} runs of activities, {} repeated; {kills} kills and {pauses} pauses in {rage:.0?}, \
         {all:.0?} in all; kill to next run p50 {:?} p95 {:?} max {:?} ms",
        tried_starts(&lines).len(),
        lines.iter().filter(|line| line.says(&["S"])).count(),
        repeats.len(),
        at(50),
        at(95),
        at(100),
    );
}
