//! A process that was stopped until its leases ran out, and goes on as if nothing had happened:
//! what it does comes too late, also while its heir is not done yet.

use std::time::Instant;

use crate::handlers::{HOLD, let_go};
use crate::process::{Process, SOON, alone};
use crate::roles::Stage;
use crate::support::{Folder, stranger};
use crate::takeover::{LONG, start, time_of, wait_for_end, work};

/// Stops a process that holds something until another holds it, and lets the first go on.
fn wake_too_late(stage: &Stage, kind: &str, sign: [&str; 2], orchestration: &str) -> [Process; 2] {
    let zombie = stage.start_worker(&[(HOLD, kind)]);
    start(stage, &[(sign[1], orchestration, work())]);
    time_of(stage, zombie.id(), &sign);
    zombie.pause();
    let heir = stage.start_worker(&[LONG, (HOLD, kind)]);
    time_of(stage, heir.id(), &sign);
    let_go(&stage.folder, zombie.id());
    zombie.resume();
    [zombie, heir]
}

// R8.40, R8.41: of two who have a turn, the one whose lock holds commits it.
#[test]
fn a_turn_that_was_taken_over_is_not_committed_by_its_first_holder() {
    let _turn = alone();
    let folder = Folder::new();
    let stage = Stage::new(folder.path());
    let [zombie, heir] = wake_too_late(&stage, "turns", ["T", "turn"], "Turn");
    let began = Instant::now();
    while !zombie.read_log().contains("Invalid lock token") {
        assert!(began.elapsed() < SOON, "never refused: {}", zombie.read_log());
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    let_go(folder.path(), heir.id());
    wait_for_end(&stage, &["turn"]);
    let output: String = stranger(&folder.file("store.db"))
        .query_row("SELECT output FROM executions", [], |row| row.get(0))
        .unwrap();
    assert!(output.ends_with(&format!(" by {}", heir.id())), "{output}");
    zombie.finish();
    heir.finish();
}

// R8.74: the same for activities.
#[test]
fn an_activity_that_was_taken_over_is_not_answered_by_its_first_holder() {
    let _turn = alone();
    let folder = Folder::new();
    let stage = Stage::new(folder.path());
    let [zombie, heir] = wake_too_late(&stage, "activities", ["S", "activity"], "Program");
    // It ends there, one way or another, and gives no answer that counts: it closes in good order,
    // which it does when everything it has in hand has ended.
    zombie.finish();
    let c = stranger(&folder.file("store.db"));
    let waiting: i64 = c.query_row("SELECT count(*) FROM work", [], |row| row.get(0)).unwrap();
    assert_eq!(waiting, 1, "still with the heir");
    let_go(folder.path(), heir.id());
    wait_for_end(&stage, &["activity"]);
    let result: String = c
        .query_row(
            "SELECT json_extract(body, '$.result') FROM history
             WHERE json_extract(body, '$.type') = 'ActivityCompleted'",
            [],
            |row| row.get(0),
        )
        .unwrap();
    assert!(result.contains(&format!("\"{}-", heir.id())), "{result}");
    drop(c);
    heir.finish();
}
