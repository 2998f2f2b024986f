//! The network between nodes and server: answers that get lost, and nodes that are cut off.

use std::time::Duration;

use duroxide_fleet::takeover::{start, time_of, wait_for_end, work};
use duroxide_fleet::{HOLD, alone, now_ms};
use duroxide_pg_testserver::shared;

use crate::proxy::{Proxy, Way};
use crate::site::{Site, times};
use crate::store::{SETTINGS, URL};

/// Leases of activities are that long here.
const LEASE_MS: u64 = 2_000;

fn proxy() -> (Proxy, String) {
    let url = shared().unwrap().url();
    let (_, address) = url.rsplit_once('@').unwrap();
    let port = address.split_once('/').unwrap().0.rsplit_once(':').unwrap().1;
    let proxy = Proxy::start(port.parse().unwrap());
    let url = proxy.url(url);
    (proxy, url)
}

// A commit may have happened although nobody heard of it: then it counts, once.
#[test]
fn answers_that_get_lost_change_nothing() {
    let _turn = alone();
    let Some(site) = Site::shared() else { return };
    let (proxy, url) = proxy();
    let crew = site.start(&[(URL, &url)]);
    for _ in 0..times(30) {
        site.fault("an answer lost");
        proxy.set(Way::AnswerLost);
        std::thread::sleep(Duration::from_millis(100));
    }
    proxy.set(Way::Open);
    site.progress(16);
    assert!(10 <= proxy.cut(), "{} answers lost", proxy.cut());
    site.finish(crew, "answers lost");
}

#[test]
fn work_of_a_node_that_is_cut_off_goes_on_elsewhere_when_its_lease_is_over() {
    let _turn = alone();
    let Some(site) = Site::shared() else { return };
    let (proxy, url) = proxy();
    let stage = &site.stage;
    let lost =
        stage.start_worker(&[(URL, &url), (HOLD, "activities"), (SETTINGS, "timeout_ms=1000")]);
    start(stage, &[("activity", "Program", work())]);
    time_of(stage, lost.id(), &["S", "activity"]);
    let heir = stage.start_worker(&[]);
    site.fault("a node cut off");
    proxy.set(Way::Frozen);
    let cut_off = now_ms();
    let taken = time_of(stage, heir.id(), &["S", "activity"]) - cut_off;
    println!("cut off to run elsewhere: {taken} ms, leases of {LEASE_MS} ms");
    assert!(taken <= LEASE_MS + 1_000, "{taken} ms");
    wait_for_end(stage, &["activity"]);
    // It comes back, and does as it should.
    proxy.set(Way::Open);
    duroxide_fleet::let_go(&stage.folder, lost.id());
    lost.finish();
    heir.finish();
    duroxide_fleet::assert_sound(stage, "a node cut off");
}

#[test]
fn a_frozen_network_is_given_up_and_found_again() {
    let _turn = alone();
    let Some(site) = Site::shared() else { return };
    let (proxy, url) = proxy();
    let crew = site.start(&[(URL, &url), (SETTINGS, "timeout_ms=2000")]);
    site.fault("frozen");
    proxy.set(Way::Frozen);
    std::thread::sleep(Duration::from_millis(2_500));
    site.fault("free");
    proxy.set(Way::Open);
    let progress = site.progress(8);
    println!("frozen for 2.5 s: work went on after {progress:.1?}");
    assert!(progress <= Duration::from_secs(10), "{progress:?}");
    site.finish(crew, "frozen network");
}
