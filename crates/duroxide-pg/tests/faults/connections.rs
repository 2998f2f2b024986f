//! Connections that the server ends while they are in use.

use std::time::Duration;

use crate::site::{Site, times};

#[test]
fn forty_times_every_connection_ended_loses_nothing() {
    let _turn = duroxide_fleet::alone();
    let Some(site) = Site::shared() else { return };
    let crew = site.start(&[]);
    let mut ended = 0;
    for _ in 0..times(40) {
        site.fault("connections ended");
        ended += site.end_connections();
        std::thread::sleep(Duration::from_millis(100));
    }
    site.progress(16);
    assert!(40 <= ended, "{ended} connections");
    site.finish(crew, "connections ended");
}
