//! What a killed process held is taken up, though its leases last for longer than the test.

use duroxide::Client;

use crate::folder::Folder;
use crate::handlers::HOLD;
use crate::journal::{Line, middle_and_max};
use crate::process::{Process, SOON};
use crate::programs::{Program, Step};
use crate::roles::Stage;
use crate::store::Store;
use crate::worker::{LONG_LEASES, SHORT_LEASES};

/// The setting for leases that last longer than any test waits.
pub const LONG: (&str, &str) = (LONG_LEASES, "1");
/// The setting for leases that are waited for.
pub const SHORT: (&str, &str) = (SHORT_LEASES, "1");

/// Starts instances: id, orchestration, program.
pub fn start(stage: &Stage, starts: &[(&str, &str, Program)]) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let client = Client::new(stage.store().await);
        for (id, name, program) in starts {
            let input = serde_json::to_string(program).unwrap();
            client.start_orchestration(*id, *name, input).await.unwrap();
        }
    });
}

/// One activity.
pub fn work() -> Program {
    Program::new(vec![Step::Work { value: 1, ms: 1 }])
}

fn session() -> Program {
    Program::new(vec![Step::OnSession { value: 1, session: 1 }])
}

/// When a process first wrote a line that begins like this.
pub fn time_of(stage: &Stage, process: u32, words: &[&str]) -> u64 {
    let found = |lines: &[Line]| {
        let line = lines.iter().find(|line| line.process == process && line.says(words));
        line.map(|line| line.at_ms)
    };
    stage.journal.wait_for(&format!("{words:?} of {process}"), SOON, found)
}

/// Kills a process; when.
fn kill(stage: &Stage, mut process: Process) -> u64 {
    let id = process.id();
    stage.journal.note(format_args!("KILL {id}"));
    process.kill();
    time_of(stage, std::process::id(), &["KILL", &id.to_string()])
}

/// Tells how long it took. That it was not for the leases to end is shown by its being over.
fn report(what: &str, waits: &[u64]) {
    let (middle, max) = middle_and_max(waits);
    println!("{what}: {} waits, middle {middle} ms, longest {max} ms", waits.len());
}

/// A process that holds an activity and one on a session, and one that holds a turn.
fn holders(stage: &Stage) -> [Process; 2] {
    let turns = stage.start_worker(&[LONG, (HOLD, "turns")]);
    start(stage, &[("turn", "Turn", work())]);
    time_of(stage, turns.id(), &["T", "turn"]);
    // From here on that one has no room for anything else.
    let activities = stage.start_worker(&[LONG, (HOLD, "activities")]);
    start(stage, &[("activity", "Program", work()), ("session", "Program", session())]);
    time_of(stage, activities.id(), &["S", "activity"]);
    time_of(stage, activities.id(), &["S", "session"]);
    [activities, turns]
}

/// How long after the kills each of the three was taken up by this process.
fn waits(stage: &Stage, heir: u32, [activities, turns]: [Process; 2]) -> [u64; 3] {
    let killed = [kill(stage, activities), kill(stage, turns)];
    let taken = [
        time_of(stage, heir, &["S", "activity"]) - killed[0],
        time_of(stage, heir, &["S", "session"]) - killed[0],
        time_of(stage, heir, &["T", "turn"]) - killed[1],
    ];
    wait_for_end(stage, &["activity", "session", "turn"]);
    taken
}

/// Returns when instances have ended.
pub fn wait_for_end(stage: &Stage, ids: &[&str]) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let client = Client::new(stage.store().await);
        for id in ids {
            let status = client.wait_for_orchestration(id, SOON).await.unwrap();
            assert!(status.is_terminal(), "{id}: {status:?}");
        }
    });
}

/// A survivor takes up an activity, one on a session, and a turn in each round.
pub fn by_a_survivor(kind: &'static dyn Store, rounds: usize) {
    let mut all = Vec::new();
    for _ in 0..rounds {
        let folder = Folder::new();
        let stage = Stage::new(kind, folder.path());
        let holders = holders(&stage);
        let heir = stage.start_worker(&[LONG]);
        all.extend(waits(&stage, heir.id(), holders));
        heir.finish();
    }
    report("kill to run by a survivor", &all);
}

/// The same is done by a process that is started afterwards.
pub fn by_a_new_process(kind: &'static dyn Store, rounds: usize) {
    let mut all = Vec::new();
    for _ in 0..rounds {
        let folder = Folder::new();
        let stage = Stage::new(kind, folder.path());
        let holders = holders(&stage);
        let killed: Vec<u64> = holders.into_iter().map(|holder| kill(&stage, holder)).collect();
        let heir = stage.start("worker", &[LONG]);
        for words in [["S", "activity"], ["S", "session"], ["T", "turn"]] {
            all.push(time_of(&stage, heir.id(), &words) - killed[1]);
        }
        wait_for_end(&stage, &["activity", "session", "turn"]);
        heir.finish();
    }
    report("kill to run by a new process", &all);
}

/// A session that had no activity in hand goes on elsewhere.
pub fn of_a_session(kind: &'static dyn Store, rounds: usize) {
    let mut all = Vec::new();
    for _ in 0..rounds {
        let folder = Folder::new();
        let stage = Stage::new(kind, folder.path());
        let owner = stage.start_worker(&[LONG]);
        start(&stage, &[("first", "Program", session())]);
        time_of(&stage, owner.id(), &["E", "first"]);
        let heir = stage.start_worker(&[LONG]);
        let killed = kill(&stage, owner);
        start(&stage, &[("second", "Program", session())]);
        all.push(time_of(&stage, heir.id(), &["S", "second"]) - killed);
        wait_for_end(&stage, &["first", "second"]);
        heir.finish();
    }
    report("kill to the next activity of a session", &all);
}
