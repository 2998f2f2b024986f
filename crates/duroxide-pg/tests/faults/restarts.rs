//! Servers that are restarted, or away for a while.

use std::time::Duration;

use duroxide_fleet::alone;
use duroxide_pg_testserver::Stop;

use crate::site::{Site, times};

/// Restarts a server so often while a fleet is at work.
fn restart(how: Stop, often: u32, away: Duration, what: &str) {
    let _turn = alone();
    let Some(site) = Site::own(&[]) else { return };
    let crew = site.start(&[]);
    for _ in 0..times(often) {
        site.fault(what);
        site.server().stop(how).unwrap();
        std::thread::sleep(away);
        site.server().resume().unwrap();
        site.fault_over();
        site.progress(16);
    }
    site.finish(crew, what);
}

#[test]
fn a_server_that_is_restarted_loses_nothing() {
    restart(Stop::Fast, 2, Duration::ZERO, "fast restart");
}

#[test]
fn a_server_that_crashes_loses_nothing() {
    restart(Stop::Immediate, 3, Duration::ZERO, "crash");
}

#[test]
fn an_outage_is_waited_for() {
    // Longer than leases last.
    restart(Stop::Fast, 1, Duration::from_secs(9), "outage");
}
