//! Processes that have nothing to do write nothing, and do not keep each other awake.

use std::time::{Duration, Instant};

use rusqlite::Connection;

use crate::journal::Journal;
use crate::process::{Process, SOON, alone};
use crate::support::{Folder, stranger};

#[test]
fn idle_processes_do_not_write() {
    let _turn = alone();
    let folder = Folder::new();
    let journal = Journal::open(folder.path());
    let start = |_| Process::start(folder.path(), "worker", &[]);
    let workers: Vec<Process> = (0..2).map(start).collect();
    journal.wait_for("two workers", SOON, |lines| {
        (lines.iter().filter(|line| line.says(&["UP"])).count() == 2).then_some(())
    });
    let c = stranger(&folder.file("store.db"));
    let began = Instant::now();
    while !is_quiet(&c, Duration::from_millis(500)) {
        assert!(began.elapsed() < SOON, "they never rest");
    }
    workers.into_iter().for_each(Process::finish);
}

/// Whether nobody commits anything for so long.
fn is_quiet(c: &Connection, duration: Duration) -> bool {
    let version = || c.query_row("PRAGMA data_version", [], |row| row.get::<_, i64>(0)).unwrap();
    let (before, began) = (version(), Instant::now());
    while began.elapsed() < duration {
        std::thread::sleep(Duration::from_millis(5));
        if version() != before {
            return false;
        }
    }
    true
}
