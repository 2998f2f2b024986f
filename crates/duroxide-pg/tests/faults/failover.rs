//! A server that is gone for good, and a standby that takes its place.

use std::time::Duration;

use duroxide_fleet::alone;
use duroxide_pg_testserver::{Server, Stop};

use crate::proxy::Proxy;
use crate::site::Site;
use crate::store::{URL, URL_FILE};

/// Waits until commits of a server wait for its standby.
fn make_synchronous(server: &Server) {
    let ask = |sql: &str| server.psql("postgres", sql).unwrap();
    ask("ALTER SYSTEM SET synchronous_standby_names = '*'");
    ask("SELECT pg_reload_conf()");
    while ask("SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'") != "1" {
        std::thread::sleep(Duration::from_millis(20));
    }
}

// The client asks the old server until that is gone, and the new one by the same address.
#[test]
fn a_standby_that_takes_over_has_everything() {
    let _turn = alone();
    let Some(site) = Site::own(&[]) else { return };
    let standby = site.server().start_standby().unwrap();
    make_synchronous(site.server());
    let proxy = Proxy::start(site.server().port());
    // Clients go that way, too.
    let url = proxy.url(&site.server().url());
    std::fs::write(site.stage.folder.join(URL_FILE), &url).unwrap();
    let crew = site.start(&[(URL, &url)]);
    site.fault("failover");
    site.server().stop(Stop::Immediate).unwrap();
    proxy.lead_to(standby.port());
    standby.promote().unwrap();
    site.fault_over();
    site.progress(16);
    site.finish(crew, "failover");
}
