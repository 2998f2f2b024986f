//! The capability filter (R8.90 – R8.93, R8.46, R7.81 – R7.84).

use super::lab::*;
use crate::providers::{DispatcherCapabilityFilter, TurnCommit};

fn pinned_commit(instance: &str, pin: &str) -> TurnCommit {
    first_commit(instance).pinned(pin)
}

/// An instance pinned to a version, with a message to fetch.
async fn pinned(lab: &Lab, instance: &str, pin: &str) {
    lab.begin_as(instance, pinned_commit(instance, pin)).await;
    lab.send(raise(instance, "x")).await;
}

async fn fetched(lab: &Lab, filter: &DispatcherCapabilityFilter) -> Option<String> {
    lab.try_turn(Some(filter)).await.map(|turn| turn.item.instance)
}

#[tokio::test(start_paused = true)]
async fn r8_90_no_filter_takes_everything() {
    let lab = lab();
    pinned(&lab, "a", "99.0.0").await;
    lab.turn().await;
}

#[tokio::test(start_paused = true)]
async fn r8_90_r8_92_both_ends_count_and_the_order_is_semver_s() {
    for (pin, compatible) in [
        ("0.1.0", true),
        ("0.2.0", true),
        ("0.1.1000", true),
        ("0.2.0-rc.1", true),
        ("0.1.0-rc.1", false),
        ("0.0.9", false),
        ("0.2.1", false),
        ("1.0.0", false),
    ] {
        let lab = lab();
        pinned(&lab, "a", pin).await;
        let got = fetched(&lab, &versions("0.1.0", "0.2.0")).await;
        assert_eq!(got.is_some(), compatible, "{pin}");
    }
}

#[tokio::test(start_paused = true)]
async fn r8_90_r7_84_no_pin_suits_everybody() {
    let lab = lab();
    let narrow = versions("5.0.0", "5.0.0");
    lab.send(start("new")).await;
    assert_eq!(fetched(&lab, &narrow).await.as_deref(), Some("new"));
    lab.begin("unpinned").await;
    lab.send(raise("unpinned", "x")).await;
    assert_eq!(fetched(&lab, &narrow).await.as_deref(), Some("unpinned"));
}

#[tokio::test(start_paused = true)]
async fn r8_90_only_the_first_range_counts() {
    let lab = lab();
    pinned(&lab, "a", "2.0.0").await;
    let mut filter = versions("1.0.0", "1.9.9");
    filter
        .supported_duroxide_versions
        .extend(versions("2.0.0", "2.9.9").supported_duroxide_versions);
    assert_eq!(fetched(&lab, &filter).await, None);
    filter.supported_duroxide_versions.reverse();
    assert_eq!(fetched(&lab, &filter).await.as_deref(), Some("a"));
}

#[tokio::test(start_paused = true)]
async fn r8_90_a_filter_without_ranges_takes_nothing() {
    let lab = lab();
    lab.send(start("a")).await;
    let nothing = DispatcherCapabilityFilter { supported_duroxide_versions: vec![] };
    assert_eq!(fetched(&lab, &nothing).await, None);
    lab.turn().await;
}

#[tokio::test(start_paused = true)]
async fn r8_91_r7_83_incompatible_instances_are_passed_over_untouched() {
    let lab = lab();
    for (instance, pin) in [("newer", "2.0.0"), ("ours", "1.0.0")] {
        lab.begin_as(instance, pinned_commit(instance, pin)).await;
    }
    lab.send(raise("newer", "x")).await;
    lab.send(raise("ours", "x")).await;
    let filter = versions("0.0.0", "1.0.0");
    assert_eq!(fetched(&lab, &filter).await.as_deref(), Some("ours"));
    assert_eq!(fetched(&lab, &filter).await, None);
    let turn = lab.try_turn(Some(&versions("2.0.0", "2.0.0"))).await.unwrap();
    assert_eq!((turn.item.instance.as_str(), turn.attempt_count), ("newer", 1));
}

#[tokio::test(start_paused = true)]
async fn r8_91_r8_31_the_filter_comes_before_the_history() {
    let lab = lab();
    pinned(&lab, "a", "2.0.0").await;
    lab.corrupt_history("a", "garbage");
    assert_eq!(fetched(&lab, &versions("1.0.0", "1.0.0")).await, None);
    assert_eq!(lab.max_attempt_count("a"), 0);
    assert_eq!(lab.turn().await.item.history_error.as_deref(), Some("garbage"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn r8_91_concurrent_filtered_fetches_share_out() {
    let lab = lab();
    for number in 0..40 {
        let pin = if number % 2 == 0 { "1.0.0" } else { "2.0.0" };
        let instance = format!("i{number}");
        lab.begin_as(&instance, pinned_commit(&instance, pin)).await;
    }
    for number in 0..40 {
        lab.send(raise(&format!("i{number}"), "x")).await;
    }
    let fetchers = ["1.0.0", "1.0.0", "2.0.0", "2.0.0"].map(|version| {
        let lab = lab.clone();
        tokio::spawn(async move {
            let mut count = 0;
            while fetched(&lab, &versions(version, version)).await.is_some() {
                count += 1;
                tokio::task::yield_now().await;
            }
            count
        })
    });
    let mut counts = Vec::new();
    for fetcher in fetchers {
        counts.push(fetcher.await.unwrap());
    }
    assert_eq!((counts[0] + counts[1], counts[2] + counts[3]), (20, 20));
}

#[tokio::test(start_paused = true)]
async fn r8_46_r7_81_a_pin_stays_until_told_otherwise() {
    let lab = lab();
    let only_1 = versions("1.0.0", "1.0.0");
    pinned(&lab, "a", "1.0.0").await;
    let turn = lab.try_turn(Some(&only_1)).await.unwrap();
    lab.commit(&turn, commit().event(note(2))).await.unwrap(); // Says nothing of pins.
    lab.send(raise("a", "x")).await;
    assert_eq!(fetched(&lab, &versions("2.0.0", "2.0.0")).await, None);
    let turn = lab.try_turn(Some(&only_1)).await.unwrap();
    lab.commit(&turn, commit().pinned("2.0.0")).await.unwrap(); // Overwrites.
    lab.send(raise("a", "x")).await;
    assert_eq!(fetched(&lab, &only_1).await, None);
    assert_eq!(fetched(&lab, &versions("2.0.0", "2.0.0")).await.as_deref(), Some("a"));
}

#[tokio::test(start_paused = true)]
async fn r8_93_r7_81_the_pin_of_the_ended_execution_applies_until_the_next_begins() {
    let lab = lab();
    let (only_1, only_2) = (versions("1.0.0", "1.0.0"), versions("2.0.0", "2.0.0"));
    lab.begin_as("a", pinned_commit("a", "1.0.0")).await;
    lab.step("a", commit().ends("ContinuedAsNew", "x").message(continue_as_new("a"))).await;
    assert_eq!(fetched(&lab, &only_2).await, None);
    let turn = lab.try_turn(Some(&only_1)).await.unwrap();
    let next = commit().in_execution(2).event(started("a")).pinned("2.0.0");
    lab.commit(&turn, next).await.unwrap();
    lab.send(raise("a", "x")).await;
    assert_eq!(fetched(&lab, &only_1).await, None);
    assert_eq!(fetched(&lab, &only_2).await.as_deref(), Some("a"), "each has its own pin");
}
