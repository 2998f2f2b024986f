//! A fleet under fire: workers and clients are killed and stopped at random while work goes on.

use std::path::Path;
use std::time::{Duration, Instant};

use duroxide::random::Random;

use crate::attend::{finish_orphans, tried_starts};
use crate::check;
use crate::client::{AT_ONCE, SEED};
use crate::company::on_tokio;
use crate::journal::{Journal, now_ms};
use crate::process::{Process, SOON, alone};
use crate::programs::below;
use crate::roles::Stage;
use crate::support::{Folder, stranger};

const WORKERS: usize = 3;
const KILLS: usize = 60;
const KILLS_MIN: usize = 50;
/// Faults end then, however many there were.
const FIRE: Duration = Duration::from_secs(80);
/// The log of a store in use is no longer than this, once all who were stopped go on: while a process
/// is stopped in the middle of a read, the log can only grow.
const LOG_BYTES_MAX: u64 = 64 << 20;

/// A place in the fleet and who has it.
struct Place {
    role: &'static str,
    process: Option<Process>,
    /// When a dead one is replaced.
    restart_at: Instant,
    /// When a stopped one goes on.
    resume_at: Option<Instant>,
}

struct Fleet<'a> {
    folder: &'a Path,
    journal: Journal,
    random: Random,
    places: Vec<Place>,
    kills: usize,
    pauses: usize,
    /// As seen last.
    log_bytes: u64,
}

impl Fleet<'_> {
    /// Replaces the dead, wakes the stopped, looks at the log.
    fn tend(&mut self) {
        let now = Instant::now();
        for place in &mut self.places {
            if place.process.is_none() && place.restart_at <= now {
                let seed = (self.random.next_u64() % 1_000_000).to_string();
                let settings = [(SEED, seed.as_str()), (AT_ONCE, "24")];
                place.process = Some(Process::start(self.folder, place.role, &settings));
            }
            if let (Some(process), Some(at)) = (&place.process, place.resume_at)
                && at <= now
            {
                self.journal.note(format_args!("CONT {}", process.id()));
                process.resume();
                place.resume_at = None;
            }
        }
        let log = std::fs::metadata(self.folder.join("store.db-wal"));
        self.log_bytes = log.map_or(0, |log| log.len());
    }

    /// Kills somebody, or stops them for longer than their leases.
    fn strike(&mut self) {
        let chosen = below(&self.random, 10) as usize;
        let chosen = if chosen == 9 { WORKERS } else { chosen % WORKERS };
        let kind = below(&self.random, 5);
        let pause = Duration::from_millis(1_200 + below(&self.random, 2_800));
        let restart = Duration::from_millis(below(&self.random, 400));
        let place = &mut self.places[chosen];
        let Some(process) = &mut place.process else { return };
        if kind == 0 && place.role == "worker" {
            if place.resume_at.is_none() {
                self.journal.note(format_args!("STOP {}", process.id()));
                process.pause();
                place.resume_at = Some(Instant::now() + pause);
                self.pauses += 1;
            }
            return;
        }
        self.journal.note(format_args!("KILL {}", process.id()));
        process.kill();
        place.process = None;
        place.resume_at = None;
        place.restart_at = Instant::now() + restart;
        self.kills += 1;
    }

    fn rage(&mut self) {
        let began = Instant::now();
        while self.kills < KILLS && began.elapsed() < FIRE {
            let calm = Duration::from_millis(300 + below(&self.random, 900));
            let until = Instant::now() + calm;
            while Instant::now() < until {
                self.tend();
                std::thread::sleep(Duration::from_millis(5));
            }
            self.strike();
        }
    }

    /// Lets everybody live and all work end.
    fn drain(&mut self) {
        for place in &mut self.places {
            let now = Instant::now();
            place.restart_at = now;
            place.resume_at = place.resume_at.map(|_| now);
        }
        self.tend();
        // The client ends when it has seen its programs through; then those of its dead ancestors.
        self.places.pop().unwrap().process.unwrap().finish();
        on_tokio(finish_orphans(&Stage::new(self.folder)));
        let c = stranger(&self.folder.join("store.db"));
        let began = Instant::now();
        while check::open_work(&c) != 0 {
            assert!(began.elapsed() < SOON, "work is left over");
            std::thread::sleep(Duration::from_millis(20));
        }
        self.tend();
    }
}

/// The seed of this run: a given one, or a fresh one, which is printed.
pub(crate) fn seed() -> u64 {
    let given = std::env::var("DUROXIDE_SEED").ok().and_then(|seed| seed.parse().ok());
    let seed = given.unwrap_or_else(now_ms);
    println!("repeat with DUROXIDE_SEED={seed}");
    seed
}

#[test]
fn killed_and_stopped_workers_lose_nothing_and_double_nothing() {
    let _turn = alone();
    let seed = seed();
    let folder = Folder::new();
    let now = Instant::now();
    let place = |role| Place { role, process: None, restart_at: now, resume_at: None };
    let roles = std::iter::repeat_n("worker", WORKERS).chain(["client"]);
    let mut fleet = Fleet {
        folder: folder.path(),
        journal: Journal::open(folder.path()),
        random: Random::seeded(seed),
        places: roles.map(place).collect(),
        kills: 0,
        pauses: 0,
        log_bytes: 0,
    };
    fleet.rage();
    let rage = now.elapsed();
    fleet.drain();
    let Fleet { places, kills, pauses, log_bytes, journal, .. } = fleet;
    let processes = places.into_iter().filter_map(|place| place.process);
    processes.for_each(Process::finish);

    report(&folder, &journal, (kills, pauses), (rage, now.elapsed()));
    assert!(log_bytes <= LOG_BYTES_MAX, "seed {seed}: the log has {log_bytes} bytes");
    assert!(KILLS_MIN <= kills && 0 < pauses, "seed {seed}: {kills} kills, {pauses} pauses");
    check::assert_sound(folder.path(), &journal.read(), &format!("DUROXIDE_SEED={seed}"));
}

fn report(
    folder: &Folder,
    journal: &Journal,
    (kills, pauses): (usize, usize),
    (rage, all): (Duration, Duration),
) {
    let lines = journal.read();
    let c = stranger(&folder.file("store.db"));
    let repeats = check::repeats(&c, &lines);
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
