//! Processes that have nothing to do write nothing, and do not keep each other awake.

use std::time::{Duration, Instant};

use duroxide_fleet::{Folder, Process, SOON, Stage, alone};
use rusqlite::Connection;

use crate::store::SQLITE;
use crate::support::stranger;

#[test]
fn idle_processes_do_not_write() {
    let _turn = alone();
    let folder = Folder::new();
    let stage = Stage::new(&SQLITE, folder.path());
    let workers = [stage.start_worker(&[]), stage.start_worker(&[])];
    let c = stranger(&folder.file("store.db"));
    let began = Instant::now();
    while !is_quiet(&c, Duration::from_millis(500)) {
        assert!(began.elapsed() < SOON, "they never rest");
    }
    workers.into_iter().for_each(Process::finish);
}

/// Whether no process commits anything for so long.
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
