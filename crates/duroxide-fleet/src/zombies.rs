//! A process that was stopped until its leases ran out, and goes on as if nothing had happened:
//! what it does comes too late, also while the process that took over is not done yet.

use crate::folder::Folder;
use crate::handlers::{HOLD, let_go};
use crate::process::Process;
use crate::roles::Stage;
use crate::store::Store;
use crate::takeover::{LONG, SHORT, start, time_of, wait_for_end, work};

/// Stops a process that holds something until another holds it, and lets the first go on.
fn wake_too_late(stage: &Stage, kind: &str, sign: [&str; 2], orchestration: &str) -> [Process; 2] {
    let zombie = stage.start_worker(&[SHORT, (HOLD, kind)]);
    start(stage, &[(sign[1], orchestration, work())]);
    time_of(stage, zombie.id(), &sign);
    zombie.pause();
    let heir = stage.start_worker(&[LONG, (HOLD, kind)]);
    time_of(stage, heir.id(), &sign);
    let_go(&stage.folder, zombie.id());
    zombie.resume();
    [zombie, heir]
}

/// Of two processes that have a turn, the one whose lock is valid commits it.
pub fn late_turn(kind: &'static dyn Store) {
    let folder = Folder::new();
    let stage = Stage::new(kind, folder.path());
    let [zombie, heir] = wake_too_late(&stage, "turns", ["T", "turn"], "Turn");
    // It closes in good order, which it does when everything it has in hand has ended.
    zombie.finish();
    let output = || kind.read(folder.path()).ends.get("turn").and_then(|end| end.output.clone());
    assert_eq!(output(), None, "still with the heir");
    let_go(folder.path(), heir.id());
    wait_for_end(&stage, &["turn"]);
    let output = output().unwrap_or_default();
    assert!(output.ends_with(&format!(" by {}", heir.id())), "{output}");
    heir.finish();
}

/// The same for activities.
pub fn late_activity(kind: &'static dyn Store) {
    let folder = Folder::new();
    let stage = Stage::new(kind, folder.path());
    let [zombie, heir] = wake_too_late(&stage, "activities", ["S", "activity"], "Program");
    // It ends there, one way or another, and gives no answer that counts: it closes in good order,
    // which it does when everything it has in hand has ended.
    zombie.finish();
    assert_eq!(results(&stage), Vec::<String>::new(), "still with the heir");
    let_go(folder.path(), heir.id());
    wait_for_end(&stage, &["activity"]);
    let results = results(&stage);
    let by_the_heir = format!("\"{}-", heir.id());
    assert!(results.len() == 1 && results[0].contains(&by_the_heir), "{results:?}");
    heir.finish();
}

/// Results of activities in histories.
fn results(stage: &Stage) -> Vec<String> {
    let tables = stage.kind.read(&stage.folder);
    let completed = tables.of_kind("ActivityCompleted");
    completed.map(|event| event.body["result"].as_str().unwrap_or_default().to_owned()).collect()
}
